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
	uint32		guess = i > 0 ? batch->target[i - 1].slot : index->last_slot;

	/* The entry guessed for the bound before is fetched already. */
	if (!lbt_enable_leaf_cache || (uint64) guess + 1 >= model->nleaves ||
		code <= model->leaves[guess].min_code || code >= model->leaves[guess + 1].min_code)
	{
		guess = lbt_spline_predict(model->knots, model->nknots, model->nleaves, code);
		__builtin_prefetch(&model->leaves[guess]);
	}
	batch->code[i] = code;
	batch->past[i] = bound->past;
	batch->target[i].slot = guess;
}

void
lbt_batch_finish(const LbtIndex *index, LbtBatch *batch)
{
	const LbtModel *model = &index->model;

	for (int i = 0; i < batch->n; i++)
	{
		LbtTarget  *target = &batch->target[i];
		uint32		slot = target->slot;

		if (lbt_enable_leaf_cache)
			slot = lbt_leaf_search(model->leaves, model->nleaves, slot, batch->code[i], batch->past[i]);
		target_slot(index, slot, batch->code[i], target);
		if (i == 0 || slot != target[-1].slot)
			prefetch_target(index, target, false);
	}
}

bool
lbt_slot_cached(Relation rel, LbtIndex *index, uint32 slot, bool ask)
{
	const LbtLeaf *leaf = &index->model.leaves[slot];
	BlockNumber block = leaf->block;
	Buffer		recent = (Buffer) leaf->recent_buffer;

	if (lbt_enable_buffer_hint && recent >= 1 && recent <= NBuffers &&
		lbt_buffer_holds(GetBufferDescriptor(recent - 1), rel, block))
		return true;
	if (ask && block >= index->nblocks)
		index->nblocks = RelationGetNumberOfBlocks(rel);
	return ask && block < index->nblocks && lbt_block_cached(rel, block);
}

uint32
lbt_predict_slot(const LbtIndex *index, const LbtBound *bound, uint32 near)
{
	return predict_slot(&index->model, bound_code(index, bound), bound->past, near);
}
