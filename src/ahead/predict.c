/*
 * predict.c - predictions ahead of their use; see predict.h.
 */
#include "ahead/predict.h"

#include "server/guard.h"
#include "utils/memutils.h"

/* What separators tell of a key whose target is as the key's code says. */
static inline void
refine_target(const LbtIndex *index, const LbtTiedKey *key, LbtTarget *t)
{
	if (key->slot != t->slot)
		target_slot(index, key->slot, key->code, t);
	if (key->fraction >= 0)
		t->fraction = key->fraction;
}

void
lbt_target_separated(const LbtIndex *index, const LbtKeyValue *values, int nvalues, bool past,
					 uint64 code, LbtTarget *t)
{
	const LbtModel *model = &index->model;
	LbtTiedKey	key = {.values = values,.nvalues = nvalues,.past = past,.code = code,
	.slot = t->slot,.fraction = -1};

	lbt_separators_find(&model->separators, model->leaves, model->nleaves, &key, 1);
	refine_target(index, &key, t);
}

/* The same for all of a batch. */
static void
separate_targets(const LbtIndex *index, LbtBatch *batch)
{
	const LbtModel *model = &index->model;
	LbtTiedKey	keys[LBT_SEPARATORS_GROUP];

	for (int from = 0; from < batch->n; from += LBT_SEPARATORS_GROUP)
	{
		int			n = Min(batch->n - from, LBT_SEPARATORS_GROUP);

		for (int i = 0; i < n; i++)
		{
			int			at = from + i;

			keys[i].values = lbt_batch_key(batch, at);
			keys[i].nvalues = batch->nvalues[at];
			keys[i].past = batch->past[at];
			keys[i].code = batch->code[at];
			keys[i].slot = batch->target[at].slot;
			keys[i].fraction = -1;
		}
		lbt_separators_find(&model->separators, model->leaves, model->nleaves, keys, n);
		for (int i = 0; i < n; i++)
			refine_target(index, &keys[i], &batch->target[from + i]);
	}
}

/*
 * Copy the byte strings of a key that entries will be compared with: the
 * caller's may be gone by then.  Of an encoded column, copy the text itself.
 */
static void
keep_bytes(LbtKeyValue *values, int nvalues, const LbtKeySpec *spec, uint8 *room)
{
	uint32		used = 0;

	for (int i = 0; i < nvalues; i++)
	{
		const LbtKeyColumn *column = &spec->column[i];
		LbtKeyValue *value = &values[i];

		if (!column->bytes || value->isnull)
			continue;
		if (column->encoded)
			lbt_stored_bytes(column, (const char *) value->ordered, value);
		value->length = Min(value->length, LBT_BATCH_BYTES - used);
		memcpy(room + used, value->bytes, value->length);
		value->bytes = room + used;
		used += value->length;
	}
}

void
lbt_batch_add(const LbtIndex *index, LbtBatch *batch, const LbtKeyValue *values, int nvalues,
			  bool past)
{
	const LbtModel *model = &index->model;
	int			i = batch->n++;
	uint64		code = lbt_keycode(model->code, values, nvalues,
								   past ? LBT_MISSING_HIGH : LBT_MISSING_LOW);
	uint32		guess = lbt_spline_predict(model->knots, model->nknots, model->nleaves, code);

	/* Looking at it now, or at the one before, would wait for it. */
	__builtin_prefetch(&model->leaves[guess]);
	batch->code[i] = code;
	batch->past[i] = past;
	batch->target[i].slot = guess;
	if (i == 0)
		batch->ncolumns = nvalues;
	batch->nvalues[i] = Min(nvalues, batch->ncolumns);
	memcpy(&batch->value[i * batch->ncolumns], values, batch->nvalues[i] * sizeof(LbtKeyValue));
}

void
lbt_batch_finish(const LbtIndex *index, LbtBatch *batch)
{
	const LbtModel *model = &index->model;

	for (int i = 0; i < batch->n; i++)
	{
		LbtTarget  *target = &batch->target[i];

		if (lbt_enable_leaf_cache)
			target->slot = lbt_leaf_search(model->leaves, model->nleaves, target->slot,
										   batch->code[i], batch->past[i]);
		target_slot(index, target->slot, batch->code[i], target);
	}
	if (model->separators.bytes > 0 && lbt_enable_leaf_cache)
		separate_targets(index, batch);
	for (int i = 0; i < batch->n && lbt_batch_looks(index); i++)
		keep_bytes(lbt_batch_key(batch, i), Min(batch->nvalues[i], index->keyspec.nplaces),
				   &index->keyspec, batch->bytes[i]);

	/*
	 * In a loop of its own, short enough for the processor to work on several
	 * pages at a time: finding a page's address in memory takes it longer
	 * than fetching a line of it.
	 */
	for (int i = 0; i < batch->n; i++)
		if (batch->target[i].recent != InvalidBuffer)
			__builtin_prefetch(BufferGetBlock(batch->target[i].recent));
	for (int i = 0; i < batch->n; i++)
		if (i == 0 || batch->target[i].slot != batch->target[i - 1].slot)
			prefetch_target(index, &batch->target[i], false);
}

/* ---- bringing blocks in ---- */

struct LbtReads
{
	Relation	rel;
	LbtStream  *stream;			/* NULL: not begun, or not available */
	int			n;
	int			asked;
	int			come;			/* blocks that are in, or given up */
	int			of[LBT_BATCH];	/* what each is wanted for, ascending */
	BlockNumber block[LBT_BATCH];
};

static bool
next_wanted(void *state, BlockNumber *block)
{
	LbtReads   *reads = state;

	if (reads->asked == reads->n)
		return false;
	*block = reads->block[reads->asked++];
	return true;
}

LbtReads *
lbt_reads_want(LbtReads *reads, Relation rel, BlockNumber block, int of)
{
	for (int i = reads ? reads->n - 1 : -1; i >= 0; i--)
		if (reads->block[i] == block)
			return reads;
	if (reads == NULL)
	{
		reads = palloc(sizeof(LbtReads));
		reads->rel = rel;
		reads->stream = NULL;
		reads->n = reads->asked = reads->come = 0;
	}
	reads->of[reads->n] = of;
	reads->block[reads->n++] = block;
	return reads;
}

void
lbt_reads_start(LbtReads *reads)
{
	if (reads == NULL || reads->stream != NULL || reads->come == reads->n)
		return;
	reads->stream = lbt_stream_begin(GetMemoryChunkContext(reads), reads->rel, true, next_wanted,
									 reads);
	if (reads->stream != NULL)
		lbt_stream_start(reads->stream);
	else
		reads->come = reads->n;
}

/*
 * Pass by the next block that the batch wants for a bound up to last; returns
 * its number in reads, -1 if there is none.  Sets *missed if the block was not
 * in shared buffers when it was asked for.
 */
static int
next_wanted_for(LbtReads *reads, int last, bool *missed)
{
	lbt_reads_start(reads);
	while (reads->stream != NULL && reads->come < reads->n && reads->of[reads->come] <= last)
	{
		int			which = reads->come++;
		LbtReached	reached = lbt_stream_reach(&reads->stream, reads->block[which]);

		*missed |= reached == LBT_WAS_MISSING;
		if (reached != LBT_NOT_NAMED)
			return which;
	}
	if (reads->stream == NULL)
		reads->come = reads->n;
	return -1;
}

/* Read a block; InvalidBuffer if that fails: perhaps nobody needs it. */
static Buffer
read_block(Relation rel, BlockNumber block)
{
	volatile Buffer buf = InvalidBuffer;

	LBT_GUARD_BEGIN_SILENTLY();
	{
		buf = ReadBuffer(rel, block);
		ReleaseBuffer(buf);
	}
	LBT_GUARD_END(buf = InvalidBuffer);
	return buf;
}

int
lbt_reads_end(LbtReads **reads)
{
	int			asked;

	if (*reads == NULL)
		return 0;
	lbt_stream_end(&(*reads)->stream);
	asked = (*reads)->asked;
	pfree(*reads);
	*reads = NULL;
	return asked;
}

LbtReads *
lbt_batch_read(Relation rel, const LbtBatch *batch)
{
	LbtReads   *reads = NULL;

	for (int i = 0; i < batch->n; i++)
	{
		const LbtTarget *target = &batch->target[i];

		if (target->recent == InvalidBuffer ||
			!lbt_buffer_holds(GetBufferDescriptor(target->recent - 1), rel, target->block))
			reads = lbt_reads_want(reads, rel, target->block, i);
	}
	return reads;
}

bool
lbt_batch_leaves_come(LbtIndex *index, LbtBatch *batch, LbtReads *reads, int last)
{
	bool		missed = false;
	int			which;

	while ((which = next_wanted_for(reads, last, &missed)) >= 0)
	{
		Buffer		buf = read_block(reads->rel, reads->block[which]);
		int			i = reads->of[which];
		uint32		slot = batch->target[i].slot;

		if (!BufferIsValid(buf))
		{
			reads->come = reads->n;
			break;
		}
		if (lbt_enable_buffer_hint && batch->target[i].generation == index->generation)
			lbt_index_set_hint(index, slot, buf);
		for (; i < batch->n; i++)
			if (batch->target[i].slot == slot)
				batch->target[i].recent = buf;
	}
	return missed;
}

bool
lbt_batch_rows_come(LbtReads *reads, int last)
{
	bool		missed = false;

	while (next_wanted_for(reads, last, &missed) >= 0)
		continue;
	return missed;
}

/* ---- leaves in shared buffers ---- */

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
	LbtTarget	target;

	predict_target(index, bound, bound_code(index, bound), near, &target);
	return target.slot;
}
