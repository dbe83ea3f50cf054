/*
 * leafwalk.h - all leaves of a tree in key order, each with the separator left
 * of it, by a walk along level 1.
 *
 * No leaf is read.  Between two steps no lock or pin is held: each page of
 * level 1 is copied under a share lock.  If it splits after that, the copy
 * still names all children, and its right link is the one from before.  Leaves
 * split meanwhile, or whose split is unfinished, come without their right
 * halves.
 *
 *     level 2   [ . . . ] -> [ . . . ]   names pages of level 1: the operating
 *                 | | |        | | |     system is told of them ahead of need
 *     level 1    [ ]->[ ]->[ ]->[ ]->    the walk goes by right links, also to
 *                 |||  |||  |||  |||     pages that have been split off since
 *     leaves
 */
#ifndef LBT_LEAFWALK_H
#define LBT_LEAFWALK_H

#include "server/btree.h"

typedef struct LbtLeafWalk
{
	Relation	rel;
	uint32		height;			/* pages on the way of a descent */
	bool		empty;			/* the tree has no root */
	bool		damaged;		/* it has ended at a page that is not of level
								 * 1, was met before, or of which an item or a
								 * key does not end where it should */
	bool		heap_tids;		/* order equal keys: files from 12 on */
	bool		without_lsn;	/* a page has none: it was built without WAL */

	/* The leaf that the last step came to. */
	BlockNumber block;
	IndexTuple	separator;		/* good until the next step; NULL: the first */
	bool		own;			/* it is the leaf's low bound; else that may be
								 * less, if VACUUM deletes what was before */

	/* Where the walk is. */
	BlockNumber pages_left;		/* more are not copied: links lead in a circle */
	BlockNumber next_page;		/* P_NONE: there is none */
	OffsetNumber next;			/* downlink; InvalidOffsetNumber: none yet */
	OffsetNumber last;			/* InvalidOffsetNumber: not to be looked at */
	PGAlignedBlock page;		/* the copy */
	PGAlignedBlock high_key;	/* of the page before */
	BlockNumber next_parent;	/* on level 2; P_NONE: there is none */
	BlockNumber last_child;		/* of the parent before */
} LbtLeafWalk;

/* Begin a walk. */
extern void lbt_leafwalk_begin(LbtLeafWalk *walk, Relation rel);

/* The next leaf; false after the last. */
extern bool lbt_leafwalk_next(LbtLeafWalk *walk);

#endif							/* LBT_LEAFWALK_H */
