/*
 * predict.c - predictions ahead of their use; see predict.h.
 */
#include "ahead/predict.h"

#include "server/guard.h"
#include "utils/memutils.h"

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
			lbt_stored_bytes(column, DatumGetCString((Datum) value->ordered), value);
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
	LbtKeyValue *copy = &batch->value[batch->n * nvalues];
	uint64		code = lbt_keycode(model->code, values, nvalues, past);
	uint32		guess = lbt_spline_predict(model->knots, model->nknots, model->nleaves, code);

	/* Looking at it now, or at the one before, would wait for it. */
	__builtin_prefetch(&model->leaves[guess]);
	memcpy(copy, values, nvalues * sizeof(LbtKeyValue));
	batch->key[batch->n++] = (LbtTiedKey)
	{
		.values = copy,.nvalues = nvalues,.past = past,.code = code,.slot = guess,.fraction = -1
	};
}

void
lbt_batch_finish(const LbtIndex *index, LbtBatch *batch)
{
	const LbtModel *model = &index->model;

	for (int i = 0; i < batch->n && lbt_enable_leaf_cache; i++)
		batch->key[i].slot = lbt_leaf_search(model->leaves, model->nleaves, batch->key[i].slot,
											 batch->key[i].code, batch->key[i].past);
	if (model->separators.bytes > 0 && lbt_enable_leaf_cache)
		for (int i = 0; i < batch->n; i += LBT_SEPARATORS_GROUP)
			lbt_separators_find(&model->separators, model->leaves, model->nleaves, &batch->key[i],
								Min(batch->n - i, LBT_SEPARATORS_GROUP));
	for (int i = 0; i < batch->n; i++)
	{
		const LbtTiedKey *key = &batch->key[i];

		target_slot(index, key->slot, key->code, &batch->target[i]);
		if (key->fraction >= 0)
			batch->target[i].fraction = key->fraction;
		keep_bytes(&batch->value[i * key->nvalues], Min(key->nvalues, index->keyspec.nplaces),
				   &index->keyspec, batch->bytes[i]);
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

/* ---- bringing blocks in ---- */

struct LbtReads
{
	Relation	rel;
	LbtIndex   *index;			/* of leaves; NULL: blocks of rows */
	LbtBatch   *batch;			/* ... that they are for */
	LbtStream  *stream;			/* NULL: not begun, or not available */
	LbtTally   *tally;
	LbtTally	read;			/* the stream's, of leaves: all are read here */
	uint64		missing;		/* a bit each: it was, when asked for */
	int			n;
	int			named;
	int			come;			/* blocks that are in, or given up */
	int			judged;
	int			of[LBT_BATCH];	/* what each is wanted for, ascending */
	BlockNumber block[LBT_BATCH];
};

static bool
next_wanted(void *state, BlockNumber *block)
{
	LbtReads   *reads = state;

	if (reads->named == reads->n)
		return false;
	*block = reads->block[reads->named++];
	return true;
}

LbtReads *
lbt_reads_want(LbtReads *reads, Relation rel, BlockNumber block, int of, LbtTally *tally)
{
	for (int i = reads ? reads->n - 1 : -1; i >= 0; i--)
		if (reads->block[i] == block)
			return reads;
	if (reads == NULL)
	{
		reads = palloc(sizeof(LbtReads));
		memset(reads, 0, offsetof(LbtReads, of));
		reads->rel = rel;
		reads->tally = tally;
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
									 reads, reads->index ? &reads->read : reads->tally);
	if (reads->stream != NULL)
		lbt_stream_start(reads->stream);
	else
		reads->come = reads->n;
}

void
lbt_reads_of(LbtReads *reads, Relation rel)
{
	if (reads == NULL)
		return;
	reads->rel = rel;
	if (reads->stream != NULL)
		lbt_stream_of(reads->stream, rel);
}

/* Read a leaf that has been asked for; false after an error. */
static bool
read_leaf_ahead(const LbtReads *reads, int which)
{
	LbtBatch   *batch = reads->batch;
	int			first = reads->of[which];
	const LbtTarget *target = &batch->target[first];
	volatile Buffer buf = InvalidBuffer;

	/* Perhaps nobody needs it: drop errors. */
	LBT_GUARD_BEGIN_SILENTLY();
	{
		buf = ReadBuffer(reads->rel, reads->block[which]);
		ReleaseBuffer(buf);
	}
	LBT_GUARD_END(buf = InvalidBuffer);
	if (!BufferIsValid(buf))
		return false;
	if (lbt_enable_buffer_hint && target->generation == reads->index->generation)
		lbt_index_set_hint(reads->index, target->slot, buf);
	for (int i = first; i < batch->n; i++)
		if (batch->target[i].slot == target->slot)
			batch->target[i].recent = buf;
	return true;
}

bool
lbt_reads_come(LbtReads *reads, int last)
{
	bool		missed = false;

	lbt_reads_start(reads);
	while (reads->stream != NULL && reads->come < reads->n && reads->of[reads->come] <= last)
	{
		int			which = reads->come++;
		LbtReached	reached = lbt_stream_reach(&reads->stream, reads->block[which]);

		missed |= reached == LBT_WAS_MISSING;
		if (reached == LBT_WAS_MISSING)
			reads->missing |= UINT64CONST(1) << which;
		if (reached != LBT_NOT_NAMED && reads->index != NULL && !read_leaf_ahead(reads, which))
			lbt_stream_end(&reads->stream);
	}
	if (reads->stream == NULL)
		reads->come = reads->n;
	return missed;
}

void
lbt_reads_judge(LbtReads *reads, int number, bool used)
{
	while (reads->judged < reads->n && reads->of[reads->judged] <= number)
	{
		int			which = reads->judged++;

		if ((reads->missing >> which & 1) == 0)
			continue;
		reads->tally->judged++;
		reads->tally->used += used && reads->of[which] == number;
	}
}

void
lbt_reads_end(LbtReads **reads)
{
	if (*reads == NULL)
		return;
	lbt_stream_end(&(*reads)->stream);
	if ((*reads)->index != NULL)
		(*reads)->tally->asked += (*reads)->read.asked;
	pfree(*reads);
	*reads = NULL;
}

LbtReads *
lbt_batch_read(Relation rel, LbtIndex *index, LbtBatch *batch, LbtTally *tally)
{
	LbtReads   *reads = NULL;

	for (int i = 0; i < batch->n && !lbt_tally_wasted(tally); i++)
	{
		const LbtTarget *target = &batch->target[i];

		if (target->recent == InvalidBuffer ||
			!lbt_buffer_holds(GetBufferDescriptor(target->recent - 1), rel, target->block))
			reads = lbt_reads_want(reads, rel, target->block, i, tally);
	}
	if (reads != NULL)
	{
		reads->index = index;
		reads->batch = batch;
	}
	return reads;
}

/* ---- leaves in shared buffers ---- */

bool
lbt_slot_cached(Relation rel, LbtIndex *index, uint32 slot)
{
	const LbtLeaf *leaf = &index->model.leaves[slot];
	BlockNumber block = leaf->block;
	Buffer		recent = (Buffer) leaf->recent_buffer;

	if (lbt_enable_buffer_hint && recent >= 1 && recent <= NBuffers &&
		lbt_buffer_holds(GetBufferDescriptor(recent - 1), rel, block))
		return true;
	if (block >= index->nblocks)
		index->nblocks = RelationGetNumberOfBlocks(rel);
	return block < index->nblocks && lbt_block_cached(rel, block);
}
