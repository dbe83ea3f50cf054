/*
 * locate.h - from a bound to the leaf that holds it: the only place where a prediction is trusted.
 */
#ifndef LBT_LOCATE_H
#define LBT_LOCATE_H

#include "learn/bound.h"
#include "learn/registry.h"

/* A prediction. */
typedef struct LbtTarget
{
	uint64		generation;		/* of the registry, when it was made; 0: there is none */
	uint32		slot;
	BlockNumber block;
	Buffer		recent;			/* a buffer of this server's, or invalid */
	Buffer		pinned;			/* the block's, pinned by us; or invalid */
	double		fraction;		/* where in the leaf, from 0 to 1 */
} LbtTarget;

/*
 * Find the leaf whose key space contains the bound, by prediction where that can be proven right, else
 * by nbtree's descent.  Returns its buffer, pinned and share-locked, with *offset the first data item
 * not before the bound (last offset + 1 when there is none on the page).  InvalidBuffer, nothing
 * locked, when the index is empty.
 *
 * backward: the caller goes on to the left; only a hint.  The relation's key spec must cover the
 * bound's columns.  *target may be a prediction made ahead, which is used unless the model has changed
 * since; its pin is taken over in any case.  On return it is the prediction that was used.
 */
extern Buffer lbt_locate(Relation rel, LbtIndex *index, const LbtBound *bound, bool backward,
						 Snapshot snapshot, OffsetNumber *offset, LbtTarget *target);

/* As lbt_locate(), by nbtree's descent alone. */
extern Buffer lbt_descend(Relation rel, const LbtIndex *index, const LbtBound *bound, bool backward,
						  Snapshot snapshot, OffsetNumber *offset);

/*
 * As lbt_locate(), by prediction alone: InvalidBuffer, nothing locked, when it cannot be proven.
 * target->block is the block the model named, *hops how many steps right the leaf was away.
 */
extern Buffer lbt_predict_leaf(Relation rel, LbtIndex *index, const LbtBound *bound,
							   Snapshot snapshot, OffsetNumber *offset, LbtTarget *target,
							   int *hops);

/* Bounds that are predicted together. */
#define LBT_BATCH 16

typedef struct LbtBatch
{
	int			n;
	uint64		code[LBT_BATCH];
	uint32		guess[LBT_BATCH];
	bool		past[LBT_BATCH];
	LbtTarget	target[LBT_BATCH];
} LbtBatch;

/*
 * Predictions ahead of their use, all at once, so that their cache misses overlap: add the bounds to an empty
 * batch, then finish it.  Between the lbt_index_update() before the first and the finish there must be no dsa
 * call, and the index must have a model.
 */
extern void lbt_batch_add(const LbtIndex *index, LbtBatch *batch, const LbtBound *bound);
extern void lbt_batch_finish(const LbtIndex *index, LbtBatch *batch);

/* The leaf in a slot of the leaf cache, as for lbt_batch_add().  The slot is one that a prediction named. */
extern void lbt_slot_target(const LbtIndex *index, uint32 slot, LbtTarget *target);

/* Is the target in shared buffers, by its hint, or if that does not say so and we may ask, by a lookup? */
extern bool lbt_target_cached(Relation rel, LbtIndex *index, const LbtTarget *target, bool ask);

/* The slot that the model predicts for a bound; near: one that may be near.  As for lbt_batch_add(). */
extern uint32 lbt_predict_slot(const LbtIndex *index, const LbtBound *bound, uint32 near);

#endif							/* LBT_LOCATE_H */
