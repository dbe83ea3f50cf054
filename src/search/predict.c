/*
 * predict.c - predictions ahead of their use; see predict.h.
 */
#include "search/predict.h"

void
lbt_batch_add(const LbtIndex *index, LbtBatch *batch, const LbtBound *bound)
{
	const LbtModel *model = &index->model;
	int			i = batch->n++;
	uint64		code = bound_code(index, bound);
	uint32		guess = i > 0 ? batch->guess[i - 1] : index->last_slot;

	/*
	 * Bounds come in order: the guess for the one before is as good, and
	 * fetched already, if this is there.
	 */
	if (!lbt_enable_leaf_cache || guess >= model->nleaves || code <= model->leaves[guess].min_code ||
		guess + 1 == model->nleaves || code >= model->leaves[guess + 1].min_code)
	{
		guess = lbt_spline_predict(model->knots, model->nknots, model->nleaves, code);
		__builtin_prefetch(&model->leaves[guess]);
	}
	batch->code[i] = code;
	batch->past[i] = bound->past;
	batch->guess[i] = guess;
}

void
lbt_batch_finish(const LbtIndex *index, LbtBatch *batch)
{
	const LbtModel *model = &index->model;

	for (int i = 0; i < batch->n; i++)
	{
		LbtTarget  *target = &batch->target[i];
		uint32		slot = batch->guess[i];

		if (lbt_enable_leaf_cache)
			slot = lbt_leaf_search(model->leaves, model->nleaves, slot, batch->code[i], batch->past[i]);
		target_slot(index, slot, batch->code[i], target);
		if (i == 0 || slot != target[-1].slot)
			prefetch_target(index, target);
	}
}

void
lbt_slot_target(const LbtIndex *index, uint32 slot, LbtTarget *target)
{
	target_slot(index, slot, index->model.leaves[slot].min_code, target);
}

bool
lbt_target_cached(Relation rel, LbtIndex *index, const LbtTarget *target, bool ask)
{
	if (hint_valid(rel, target))
		return true;
	if (!ask)
		return false;
	if (target->block >= index->nblocks)
		index->nblocks = RelationGetNumberOfBlocks(rel);
	return target->block < index->nblocks && lbt_block_cached(rel, target->block);
}

uint32
lbt_predict_slot(const LbtIndex *index, const LbtBound *bound, uint32 near)
{
	return predict_slot_near(&index->model, bound_code(index, bound), bound->past, near);
}
