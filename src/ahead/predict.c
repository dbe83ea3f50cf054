/*
 * predict.c - predictions ahead of their use; see predict.h.
 */
#include "ahead/predict.h"

void
lbt_target_separated(const LbtIndex *index, const LbtBound *bound, uint64 code, LbtTarget *t)
{
	const LbtModel *model = &index->model;
	LbtTiedKey	key = {.values = bound->value,.nvalues = bound->ncolumns,.past = bound->past,
	.code = code,.slot = t->slot,.fraction = -1};

	lbt_separators_find(&model->separators, model->leaves, model->nleaves, &key, 1);
	if (key.slot != t->slot)
		target_slot(index, key.slot, code, t);
	if (key.fraction >= 0)
		t->fraction = key.fraction;
}

/* Entries will be compared with an encoded column's text itself. */
static void
use_texts(LbtKeyValue *values, int nvalues, const LbtKeySpec *spec)
{
	for (int i = 0; i < nvalues; i++)
		if (spec->column[i].encoded && !values[i].isnull)
			lbt_stored_bytes(&spec->column[i], DatumGetCString((Datum) values[i].ordered),
							 &values[i]);
}

/* The key codes' guesses, whose entries of the leaf cache are on their way. */
static void
guess_slots(const LbtModel *model, LbtBatch *batch)
{
	for (int i = 0; i < batch->n; i++)
	{
		const LbtKeyValue *values = lbt_batch_values(batch, i);
		uint64		code = lbt_keycode(model->code, values, batch->ncolumns, batch->past);
		uint32		guess = lbt_spline_predict(model->knots, model->nknots, model->nleaves, code);

		/* Looking at it now, or at the one before, would wait for it. */
		__builtin_prefetch(&model->leaves[guess]);
		batch->key[i] = (LbtTiedKey)
		{
			.values = values,.nvalues = batch->ncolumns,.past = batch->past,.code = code,
				.slot = guess,.fraction = -1
		};
	}
}

void
lbt_batch_predict(const LbtIndex *index, LbtBatch *batch)
{
	const LbtModel *model = &index->model;

	guess_slots(model, batch);
	for (int i = 0; i < batch->n && lbt_enable_leaf_cache; i++)
		batch->key[i].slot = lbt_leaf_search(model->leaves, model->nleaves, batch->key[i].slot,
											 batch->key[i].code, batch->past);
	if (model->separators.bytes > 0 && lbt_enable_leaf_cache)
		for (int i = 0; i < batch->n; i += LBT_SEPARATORS_GROUP)
			lbt_separators_find(&model->separators, model->leaves, model->nleaves, &batch->key[i],
								Min(batch->n - i, LBT_SEPARATORS_GROUP));
	for (int i = 0; i < batch->n; i++)
	{
		LbtTiedKey *key = &batch->key[i];

		key->slot = first_slot(model, key->slot, key->code, key->nvalues, batch->past,
							   !batch->backward);
		target_slot(index, key->slot, key->code, &batch->target[i]);
		if (key->fraction >= 0)
			batch->target[i].fraction = key->fraction;
		if (index->keyspec.encoded)
			use_texts(lbt_batch_values(batch, i),
					  Min(batch->ncolumns, index->keyspec.nplaces), &index->keyspec);
	}

	/*
	 * A short loop of its own, so that the processor translates the addresses
	 * of several pages at a time: that takes longer than fetching a line.
	 */
	for (int i = 0; i < batch->n; i++)
		if (batch->target[i].recent != InvalidBuffer)
			__builtin_prefetch(BufferGetBlock(batch->target[i].recent));
	for (int i = 0; i < batch->n; i++)
		if (i == 0 || batch->target[i].slot != batch->target[i - 1].slot)
			prefetch_target(index, &batch->target[i], false);
}

bool
lbt_slot_cached(Relation rel, LbtIndex *index, uint32 slot)
{
	const LbtLeaf *leaf = &index->model.leaves[slot];
	BlockNumber block = leaf->block;

	return (lbt_enable_buffer_hint && lbt_buffer_holds((Buffer) leaf->recent_buffer, rel, block)) ||
		(lbt_in_file(rel, index, block) && lbt_block_is_there(rel, block));
}
