/*
 * locate.h - where a prediction is trusted: from a bound to the leaf that
 * holds it, and from a new index tuple to its place on a leaf.
 */
#ifndef LBT_LOCATE_H
#define LBT_LOCATE_H

#include "ahead/predict.h"

/* ---- lookups ---- */

/* What became of a lookup, for its caller to count. */
typedef struct LbtOutcome
{
	LbtEvent	event;			/* LBT_EV_VERIFIED, or why it must descend */
	int			moved;			/* leaves right of the predicted one */
} LbtOutcome;

/*
 * Find the leaf whose key space contains the bound, by a prediction that is
 * proven right.  Returns its buffer, pinned and share-locked, with *offset the
 * first data item not before the bound (last offset + 1 when there is none on
 * the page).  Returns InvalidBuffer, with nothing locked, when there is no
 * model or no proof: the caller counts the outcome, and then descends.
 *
 * The relation's key spec must cover the bound's columns, and the caller holds
 * no lock of a page.  *target may be a prediction made ahead, used unless the
 * model has changed since; else one in the mailbox is.  On return it is the
 * prediction that was used.  backward is a hint.
 */
extern Buffer lbt_locate(Relation rel, LbtIndex *index, const LbtBound *bound, bool backward,
						 Snapshot snapshot, OffsetNumber *offset, LbtTarget *target,
						 LbtOutcome *outcome);

/*
 * The same by nbtree's descent: returns a buffer, pinned and share-locked; or
 * InvalidBuffer, with nothing locked, if the index is empty.  The caller holds
 * no lock of a page.  backward is a hint.
 */
extern Buffer lbt_descend(Relation rel, LbtIndex *index, const LbtBound *bound, bool backward,
						  Snapshot snapshot, OffsetNumber *offset);

/* ---- inserts ---- */

typedef struct LbtPlace
{
	Buffer		buf;			/* when placed: pinned, exclusively locked */
	OffsetNumber offset;		/* ... the tuple goes in front of this item */
	bool		moved;			/* the leaf is right of the predicted one */

	BlockNumber block;			/* a leaf without room; or invalid */
	BlockNumber next;			/* ... its right link */
} LbtPlace;

/*
 * Find the place of a tuple: the leaf whose key space holds (key, heap TID),
 * and the place among its items.  key is the tuple's key as a bound, not past;
 * itup carries its heap TID.  With unique, success also means that the index
 * holds no equal key, on any page.
 *
 * Returns LBT_EV_INSERT_PLACED, or why nbtree has to insert: then nothing is
 * locked or pinned.  The model must be ready, and the caller hold no lock.
 */
extern LbtEvent lbt_place(Relation rel, LbtIndex *index, const LbtBound *key, IndexTuple itup,
						  bool unique, LbtPlace *place);

/*
 * After nbtree has inserted what could not be placed: has it split place's
 * leaf (true), and where do further tuples of this code go?  Looks at one
 * page, if it is in shared buffers, with no lock held on entry or on return.
 */
extern bool lbt_place_after_btree(Relation rel, LbtIndex *index, const LbtBound *key,
								  const LbtPlace *place);

#endif							/* LBT_LOCATE_H */
