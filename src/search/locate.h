/*
 * locate.h - from a bound to the leaf that holds it: where a lookup's prediction is trusted.
 */
#ifndef LBT_LOCATE_H
#define LBT_LOCATE_H

#include "search/predict.h"

/* What became of a lookup, for its caller to count. */
typedef struct LbtOutcome
{
	LbtEvent	event;			/* LBT_EV_VERIFIED; LBT_EV_NO_MODEL,
								 * LBT_EV_BAD_BLOCK ... LBT_EV_HIGH: descended */
	int			moved;			/* leaves between the predicted one and the
								 * one proven: left first, then right */
	int			left;			/* ... of these, to the left */
} LbtOutcome;

/*
 * Find the leaf whose key space contains the bound, by a prediction that is proven right.  Returns its buffer, pinned
 * and share-locked, with *offset the first data item not before the bound (last offset + 1 when there is none on the
 * page).  InvalidBuffer, nothing locked, when there is no model or no proof: the caller counts the outcome, and then
 * descends.
 *
 * The relation's key spec must cover the bound's columns.  *target may be a prediction made ahead, which is used unless the model has changed
 * since; its pin is taken over in any case.  On return it is the prediction that was used.
 */
extern Buffer lbt_locate(Relation rel, LbtIndex *index, const LbtBound *bound, Snapshot snapshot,
						 OffsetNumber *offset, LbtTarget *target, LbtOutcome *outcome);

/*
 * The same by nbtree's descent; InvalidBuffer when the index is empty.  backward: the caller goes on to the left; only a
 * hint.
 */
extern Buffer lbt_descend(Relation rel, const LbtIndex *index, const LbtBound *bound, bool backward,
						  Snapshot snapshot, OffsetNumber *offset);

/* As lbt_locate(), of an index that has a model, with the view as it is. */
extern Buffer lbt_predict_leaf(Relation rel, LbtIndex *index, const LbtBound *bound, Snapshot snapshot,
							   OffsetNumber *offset, LbtTarget *target, LbtOutcome *outcome);

#endif							/* LBT_LOCATE_H */
