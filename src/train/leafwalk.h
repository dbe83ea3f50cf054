/*
 * leafwalk.h - all leaves of a tree in key order, each with the separator left of it, by a walk along level 1.
 *
 * No leaf is read.  Between two steps no lock or pin is held: each page of level 1 is copied under a share
 * lock and looked at without one.  A page that splits after it was copied costs nothing: the copy still names
 * all children, and its right link is the one from before the split.  Leaves split meanwhile, or whose split
 * is unfinished, come without their right halves.
 *
 *     level 2   [ . . . ] -> [ . . . ]     names the pages of level 1 that a stream brings into shared buffers
 *                 | | |        | | |
 *     level 1    [ ]->[ ]->[ ]->[ ]->      the walk goes by right links, which also lead to pages that have been split
 *                 |||  |||  |||  |||       off since, and are read as they come
 *     leaves
 */
#ifndef LBT_LEAFWALK_H
#define LBT_LEAFWALK_H

#include "server/btree.h"
#include "server/stream.h"

typedef struct LbtLeafWalk
{
	Relation	rel;
	uint32		height;			/* pages on the way of a descent */
	bool		empty;			/* the tree has no root */
	bool		damaged;		/* the walk has ended at a page that is not of
								 * level 1 */

	/* the leaf that the last step came to */
	BlockNumber block;
	IndexTuple	separator;		/* a pivot, good until the next step; NULL for
								 * the first leaf: minus infinity */

	/* where the walk is */
	BlockNumber next_page;		/* P_NONE: there is none */
	OffsetNumber next;			/* downlink on the page copied;
								 * InvalidOffsetNumber: before the first page */
	OffsetNumber last;			/* its last one; InvalidOffsetNumber: the page
								 * is not to be looked at */
	PGAlignedBlock *page;		/* the copy */
	PGAlignedBlock *high_key;	/* room for that of the page before */

	/*
	 * pages of level 1 brought in ahead, by what level 2 says; where the tree
	 * has no level 2, stream is NULL
	 */
	LbtStream  *stream;
	Buffer		ahead;			/* the stream's next page, pinned;
								 * InvalidBuffer: none */
	BlockNumber ahead_block;
	int			passed;			/* pages in a row that were not the stream's
								 * next */
	PGAlignedBlock *parent;		/* a copy of a page of level 2 */
	BlockNumber next_parent;	/* P_NONE: there is none */
	OffsetNumber next_child;	/* InvalidOffsetNumber: before the first
								 * parent */
	OffsetNumber last_child;
} LbtLeafWalk;

/* Begin a walk, which lbt_leafwalk_end() ends.  Allocates in the current context, where it stays. */
extern void lbt_leafwalk_begin(LbtLeafWalk *walk, Relation rel);

/* The next leaf; false behind the last. */
extern bool lbt_leafwalk_next(LbtLeafWalk *walk);

/* Give back the pins of what has been brought in ahead. */
extern void lbt_leafwalk_end(LbtLeafWalk *walk);

#endif							/* LBT_LEAFWALK_H */
