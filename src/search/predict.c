/*
 * predict.c - predictions ahead of their use; see predict.h.
 */
#include "search/predict.h"

#include "access/tupmacs.h"
#include "server/tableblock.h"
#include "utils/memutils.h"

void
lbt_target_tied(const LbtIndex *index, const LbtKeyValue *values, int nvalues, bool past, uint64 code, LbtTarget *t)
{
	const LbtModel *model = &index->model;
	LbtTiedKey	key = {.values = values,.nvalues = nvalues,.past = past,.code = code};
	double		fraction = -1;
	uint32		slot = t->slot;

	lbt_separators_find(&model->separators, model->leaves, model->nleaves, &key, &slot, &fraction);
	if (slot != t->slot)
		target_slot(index, slot, code, t);
	if (fraction >= 0)
		t->fraction = fraction;
}

/* Copy the byte strings of a key with which entries will be compared: the caller's may be gone by then. */
static void
keep_bytes(LbtKeyValue *values, int nvalues, const LbtKeySpec *spec, uint8 *room)
{
	uint32		used = 0;

	for (int i = 0; i < nvalues; i++)
	{
		LbtKeyValue *value = &values[i];

		if (!spec->column[i].bytes || value->isnull)
			continue;
		value->length = Min(value->length, LBT_BATCH_BYTES - used);
		memcpy(room + used, value->bytes, value->length);
		value->bytes = room + used;
		used += value->length;
	}
}

void
lbt_batch_add(const LbtIndex *index, LbtBatch *batch, const LbtKeyValue *values, int nvalues, bool past)
{
	const LbtModel *model = &index->model;
	int			i = batch->n++;
	uint64		code = lbt_keycode(&model->code, values, nvalues, past ? LBT_MISSING_HIGH : LBT_MISSING_LOW);
	uint32		guess = lbt_spline_predict(model->knots, model->nknots, model->nleaves, code);

	/* To look at it now, or at the one before, would be to wait for it. */
	__builtin_prefetch(&model->leaves[guess]);
	batch->code[i] = code;
	batch->past[i] = past;
	batch->target[i].slot = guess;
	if (i == 0)
		batch->ncolumns = nvalues;
	batch->nvalues[i] = Min(nvalues, batch->ncolumns);
	memcpy(&batch->value[i * batch->ncolumns], values, batch->nvalues[i] * sizeof(LbtKeyValue));
	if (lbt_batch_looks(index))
		keep_bytes(&batch->value[i * batch->ncolumns], batch->nvalues[i], &index->keyspec, batch->bytes[i]);
}

static inline const LbtKeyValue *
batch_key(const LbtBatch *batch, int i)
{
	return &batch->value[i * batch->ncolumns];
}

void
lbt_batch_finish(const LbtIndex *index, LbtBatch *batch)
{
	const LbtModel *model = &index->model;
	uint64		tied = 0;		/* a bit for each */

	for (int i = 0; i < batch->n && lbt_enable_leaf_cache; i++)
	{
		LbtTarget  *target = &batch->target[i];

		target->slot = lbt_leaf_search(model->leaves, model->nleaves, target->slot, batch->code[i], batch->past[i]);
		if (lbt_model_tied(model, target->slot, batch->code[i], batch->past[i]))
		{
			tied |= UINT64CONST(1) << i;
			lbt_separators_prefetch(&model->separators, target->slot, batch->past[i], 0);
		}
	}
	for (int i = 0; i < batch->n && tied != 0; i++)
		if (tied >> i & 1)
			lbt_separators_prefetch(&model->separators, batch->target[i].slot, batch->past[i], 1);
	for (int i = 0; i < batch->n; i++)
		target_exactly(index, batch_key(batch, i), batch->nvalues[i], batch->past[i], batch->target[i].slot,
					   batch->code[i], &batch->target[i]);

	/*
	 * In a loop of its own, short enough for the processor to be at several
	 * pages at a time: to find a page's address in memory takes it longer
	 * than to fetch a line of it.
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
	LbtStream  *stream;			/* NULL: has ended, or not begun */
	int			n;
	int			asked;
	int			come;			/* blocks that are in, or given up */
	int			of[LBT_BATCH];	/* what each is wanted for, ascending */
	BlockNumber block[LBT_BATCH];
};

static bool
next_wanted(void *state, BlockNumber *block, uint32 *tag)
{
	LbtReads   *reads = state;

	if (reads->asked == reads->n)
		return false;
	*tag = reads->asked++;
	*block = reads->block[*tag];
	return true;
}

/* One block more; made with the first. */
static LbtReads *
want(LbtReads *reads, Relation rel, BlockNumber block, int of)
{
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

/* Is it among those that are wanted already? */
static bool
is_wanted(const LbtReads *reads, BlockNumber block)
{
	for (int i = reads ? reads->n - 1 : -1; i >= 0; i--)
		if (reads->block[i] == block)
			return true;
	return false;
}

/* Read on, from what has not come yet. */
static void
begin_stream(LbtReads *reads, bool all)
{
	reads->asked = reads->come;
	lbt_stream_begin(&reads->stream, GetMemoryChunkContext(reads), reads->rel, all, true, next_wanted, reads);
	if (reads->stream == NULL)
		reads->come = reads->n;
}

void
lbt_reads_start(LbtReads *reads)
{
	if (reads == NULL || reads->come == reads->n)
		return;
	begin_stream(reads, true);
	if (reads->stream != NULL)
		lbt_stream_start(reads->stream);
}

/*
 * Wait for the next block that is wanted for one of the batch up to last: where it is, no longer pinned; InvalidBuffer
 * when there is none.  missed is set if it was not in shared buffers when it was asked for.
 */
static Buffer
next_come(LbtReads *reads, int last, int *which, bool *missed)
{
	uint32		tag;
	Buffer		buf;

	if (reads->come == reads->n || reads->of[reads->come] > last)
		return InvalidBuffer;

	/*
	 * The executor has returned meanwhile, and may do so again soon: few at
	 * first.
	 */
	if (reads->stream == NULL)
		begin_stream(reads, reads->come == 0);
	if (reads->stream == NULL || !lbt_stream_look(reads->stream, &tag))
	{
		reads->come = reads->n;
		return InvalidBuffer;
	}
	*missed |= lbt_stream_idle(reads->stream) == 0;
	buf = lbt_stream_take(reads->stream);
	ReleaseBuffer(buf);
	*which = (int) tag;
	reads->come = *which + 1;
	return buf;
}

int
lbt_reads_end(LbtReads **reads)
{
	int			asked;

	if (*reads == NULL)
		return 0;
	if ((*reads)->stream != NULL)
		(void) lbt_stream_end((*reads)->stream);
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

		if ((i == 0 || target->slot != target[-1].slot) &&
			(target->recent == InvalidBuffer ||
			 !lbt_buffer_holds(GetBufferDescriptor(target->recent - 1), rel, target->block)))
			reads = want(reads, rel, target->block, i);
	}
	return reads;
}

bool
lbt_batch_leaves_come(LbtIndex *index, LbtBatch *batch, LbtReads *reads, int last)
{
	bool		missed = false;
	Buffer		buf;
	int			which;

	while (BufferIsValid(buf = next_come(reads, last, &which, &missed)))
	{
		int			i = reads->of[which];
		uint32		slot = batch->target[i].slot;

		if (lbt_enable_buffer_hint && batch->target[i].generation == index->generation)
			lbt_index_set_hint(index, slot, buf);
		for (; i < batch->n && batch->target[i].slot == slot; i++)
			batch->target[i].recent = buf;
	}
	return missed;
}

bool
lbt_batch_rows_come(LbtReads *reads, int last)
{
	bool		missed = false;
	Buffer		buf;
	int			which;

	while (BufferIsValid(buf = next_come(reads, last, &which, &missed)))
		*lbt_block_hint(reads->rel, reads->block[which]) = buf;
	return missed;
}

/* ---- looking at leaves without a lock ---- */

/* What can be seen of a leaf: a page that may be changing, but is always mapped. */
typedef struct Glimpse
{
	const char *page;
	int			first;			/* data items, by offset */
	int			last;
} Glimpse;

/* The target's leaf, if it is in the buffer where it was seen last, and has items. */
static inline bool
glimpse_leaf(Relation rel, const LbtTarget *target, Glimpse *leaf)
{
	const PageHeaderData *header;
	const BTPageOpaqueData *opaque;

	if (target->recent == InvalidBuffer ||
		!lbt_buffer_holds(GetBufferDescriptor(target->recent - 1), rel, target->block))
		return false;
	leaf->page = (const char *) BufferGetBlock(target->recent);
	header = (const PageHeaderData *) leaf->page;
	opaque = (const BTPageOpaqueData *) (leaf->page + BLCKSZ - MAXALIGN(sizeof(BTPageOpaqueData)));
	leaf->first = opaque->btpo_next == P_NONE ? P_HIKEY : P_FIRSTKEY;
	leaf->last = ((int) header->pd_lower - (int) SizeOfPageHeaderData) / (int) sizeof(ItemIdData);
	leaf->last = Min(leaf->last, (int) MaxIndexTuplesPerPage);
	return leaf->first <= leaf->last;
}

/* Where on the page an item lies, by its line pointer: so many bytes of it are on the page.  0: nowhere. */
static inline uint32
item_place(const Glimpse *leaf, int offset, Size bytes)
{
	uint32		at = ((const PageHeaderData *) leaf->page)->pd_linp[offset - 1].lp_off;

	return at >= SizeOfPageHeaderData && at <= BLCKSZ - bytes && at == MAXALIGN(at) ? at : 0;
}

/* The values of an item's leading columns; false when it has none that can be told without a lock. */
static pg_attribute_always_inline bool
item_values(const LbtIndex *index, const Glimpse *leaf, int offset, int ncolumns, LbtKeyValue *values)
{
	const LbtKeySpec *spec = &index->keyspec;
	uint32		at = item_place(leaf, offset, spec->fixed);

	if (at == 0 || IndexTupleHasNulls((const IndexTupleData *) (leaf->page + at)))
		return false;
	for (int i = 0; i < ncolumns; i++)
	{
		const LbtKeyColumn *column = &spec->column[i];
		const char *value = leaf->page + at + spec->place[i];

		values[i].isnull = false;
		if (column->bytes)
			lbt_stored_bytes(column, value, &values[i]);
		else
			values[i].ordered = lbt_ordered(column, fetch_att(value, true, column->length));
	}
	return true;
}

/* The item at which the target's fraction points. */
static inline int
item_at(const Glimpse *leaf, double fraction)
{
	int			offset = leaf->first + (int) (fraction * (leaf->last + 1 - leaf->first));

	return Max(leaf->first, Min(offset, leaf->last));
}

void
lbt_batch_near(Relation rel, const LbtIndex *index, LbtBatch *batch, bool high_keys)
{
	const LbtModel *model = &index->model;

	for (int i = 0; i < batch->n; i++)
	{
		LbtTarget  *target = &batch->target[i];
		Glimpse		leaf;
		LbtKeyValue values[LBT_CODE_COLUMNS];
		uint64		code;
		uint64		width;
		int			offset;
		int			better;
		const char *item;

		if (target->slot + 1 >= model->nleaves || !glimpse_leaf(rel, target, &leaf))
			continue;
		if (high_keys)
			__builtin_prefetch(leaf.page + item_place(&leaf, P_HIKEY, sizeof(IndexTupleData)));
		offset = item_at(&leaf, target->fraction);
		width = model->leaves[target->slot + 1].min_code - model->leaves[target->slot].min_code;
		if (width == 0 || !item_values(index, &leaf, offset, model->code.ncolumns, values))
			continue;
		code = lbt_keycode(&model->code, values, model->code.ncolumns, LBT_MISSING_LOW);
		target->fraction += (double) (int64) (batch->code[i] - code) / (double) width;
		target->fraction = Max(0.0, Min(target->fraction, 1.0));

		/* Between the two, items are most likely of one size, and in order. */
		better = item_at(&leaf, target->fraction);
		item = leaf.page + item_place(&leaf, offset, sizeof(IndexTupleData));
		item -= (better - offset) * (int) MAXALIGN(IndexTupleSize((IndexTuple) item));
		__builtin_prefetch(&((const PageHeaderData *) leaf.page)->pd_linp[better - 1]);
		__builtin_prefetch(item);
		__builtin_prefetch(item - PG_CACHE_LINE_SIZE / 2);
	}
}

/* ---- rows ---- */

/* Is the item before the bound that the batch has in this place?  What cannot be told is not. */
static inline bool
item_before(const LbtIndex *index, const Glimpse *leaf, int offset, const LbtBatch *batch, int which)
{
	const LbtKeyValue *key = batch_key(batch, which);
	int			ncolumns = batch->nvalues[which];
	LbtKeyValue item[LBT_CODE_COLUMNS];

	if (!item_values(index, leaf, offset, ncolumns, item))
		return false;
	for (int i = 0; i < ncolumns; i++)
	{
		int			cmp = lbt_compare_value(&index->keyspec.column[i], &key[i], &item[i]);

		if (cmp != 0)
			return cmp > 0;
	}
	return batch->past[which];
}

/* The row of the first item that is not before the bound that the batch has in this place. */
static inline void
find_row(const LbtIndex *index, const Glimpse *leaf, const LbtBatch *batch, int which, ItemPointer row)
{
	int			lo = leaf->first - 1;
	int			hi = leaf->last + 1;
	int			at = item_at(leaf, batch->target[which].fraction);
	uint32		place;
	IndexTupleData item;

	/* From the place that is known well, in growing steps; then by halves. */
	for (int step = 1; hi - lo > 1; step *= 2)
	{
		if (item_before(index, leaf, at, batch, which))
			lo = at;
		else
			hi = at;
		if (lo >= leaf->first && hi <= leaf->last)
			break;
		at = lo >= leaf->first ? Min(lo + step, hi - 1) : Max(hi - step, lo + 1);
	}
	while (hi - lo > 1)
	{
		at = (lo + hi) / 2;
		if (item_before(index, leaf, at, batch, which))
			lo = at;
		else
			hi = at;
	}
	if (hi > leaf->last || (place = item_place(leaf, hi, sizeof(item))) == 0)
		return;
	memcpy(&item, leaf->page + place, sizeof(item));
	if (!BTreeTupleIsPosting(&item))
		*row = item.t_tid;
	else if (BTreeTupleGetPostingOffset(&item) <= BLCKSZ - place - sizeof(ItemPointerData))
		memcpy(row, leaf->page + place + BTreeTupleGetPostingOffset(&item), sizeof(ItemPointerData));
	if (!ItemPointerIsValid(row) || !BlockNumberIsValid(ItemPointerGetBlockNumber(row)))
		ItemPointerSetInvalid(row);
}

/* Where the rows' blocks should be, by their hints; asks for the lines that tell whether they are there. */
static void
guess_buffers(Relation table, int n, const ItemPointerData *rows, Buffer *buffer)
{
	for (int i = 0; i < n; i++)
	{
		const ItemPointerData *row = &rows[i];

		buffer[i] = ItemPointerIsValid(row) ? *lbt_block_hint(table, ItemPointerGetBlockNumber(row)) : InvalidBuffer;
		if (buffer[i] < 1 || buffer[i] > NBuffers)
			buffer[i] = InvalidBuffer;
		else
		{
			const PageHeaderData *header = (const PageHeaderData *) BufferGetBlock(buffer[i]);

			__builtin_prefetch(GetBufferDescriptor(buffer[i] - 1), 1);
			__builtin_prefetch(header);
			__builtin_prefetch(&header->pd_linp[ItemPointerGetOffsetNumber(row) - 1]);
		}
	}
}

/* The blocks of rows that are not where they should be.  Of one block, the first row waits. */
static LbtReads *
missing_blocks(Relation table, int n, const ItemPointerData *rows, Buffer *buffer)
{
	LbtReads   *reads = NULL;

	for (int i = 0; i < n; i++)
	{
		BlockNumber block;

		if (!ItemPointerIsValid(&rows[i]))
			continue;
		block = ItemPointerGetBlockNumber(&rows[i]);
		if (buffer[i] != InvalidBuffer && lbt_buffer_holds(GetBufferDescriptor(buffer[i] - 1), table, block))
			continue;
		buffer[i] = InvalidBuffer;
		if (!is_wanted(reads, block))
			reads = want(reads, table, block, i);
	}
	return reads;
}

LbtReads *
lbt_batch_rows(Relation rel, const LbtIndex *index, Relation table, const LbtBatch *batch, bool read)
{
	ItemPointerData row[LBT_BATCH];
	Buffer		buffer[LBT_BATCH];
	LbtReads   *reads = NULL;

	for (int i = 0; i < batch->n; i++)
	{
		Glimpse		leaf;

		ItemPointerSetInvalid(&row[i]);
		if (!glimpse_leaf(rel, &batch->target[i], &leaf))
			continue;
		find_row(index, &leaf, batch, i, &row[i]);
		if (ItemPointerIsValid(&row[i]))
			__builtin_prefetch(lbt_block_hint(table, ItemPointerGetBlockNumber(&row[i])));
	}
	guess_buffers(table, batch->n, row, buffer);
	if (read)
		reads = missing_blocks(table, batch->n, row, buffer);
	for (int i = 0; i < batch->n; i++)
	{
		const PageHeaderData *header;

		if (buffer[i] == InvalidBuffer)
			continue;
		header = (const PageHeaderData *) BufferGetBlock(buffer[i]);
		__builtin_prefetch((const char *) header +
						   header->pd_linp[(ItemPointerGetOffsetNumber(&row[i]) - 1) % MaxHeapTuplesPerPage].lp_off % BLCKSZ);
	}
	return reads;
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
