/*
 * locate.h - from a bound to the leaf that holds it: the only place where a prediction is trusted.
 */
#ifndef LBT_LOCATE_H
#define LBT_LOCATE_H

#include "learn/bound.h"
#include "learn/registry.h"

/*
 * Find the leaf whose key space contains the bound, by prediction where that can be proven right, else
 * by nbtree's descent.  Returns its buffer, pinned and share-locked, with *offset the first data item
 * not before the bound (last offset + 1 when there is none on the page).  InvalidBuffer, nothing
 * locked, when the index is empty.
 *
 * backward: the caller goes on to the left; only a hint.  The relation's key spec must cover the
 * bound's columns.
 */
extern Buffer lbt_locate(Relation rel, LbtIndex *index, const LbtBound *bound, bool backward,
						 Snapshot snapshot, OffsetNumber *offset);

/* As lbt_locate(), by nbtree's descent alone. */
extern Buffer lbt_descend(Relation rel, const LbtIndex *index, const LbtBound *bound, bool backward,
						  Snapshot snapshot, OffsetNumber *offset);

/*
 * As lbt_locate(), by prediction alone: InvalidBuffer, nothing locked, when it cannot be proven.
 * *predicted is the block the model named, *hops how many steps right the leaf was away.
 */
extern Buffer lbt_predict_leaf(Relation rel, LbtIndex *index, const LbtBound *bound,
							   Snapshot snapshot, OffsetNumber *offset, BlockNumber *predicted,
							   int *hops);

#endif							/* LBT_LOCATE_H */
