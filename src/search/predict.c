/*
 * predict.c - predictions ahead of their use; see predict.h.
 */
#include "search/predict.h"

#include "access/tupmacs.h"
#include "server/tableblock.h"

void
lbt_batch_add(const LbtIndex *index, LbtBatch *batch, const LbtKeyValue *values, int nvalues, bool past)
{
	const LbtModel *model = &index->model;
	int			i = batch->n++;
	uint64		code = lbt_model_code(model, values, nvalues, past ? LBT_MISSING_HIGH : LBT_MISSING_LOW);
	uint32		guess = lbt_spline_predict(model->knots, model->nknots, model->nleaves, code);

	/* To look at it now, or at the one before, would be to wait for it. */
	__builtin_prefetch(&model->leaves[guess]);
	batch->code[i] = code;
	batch->past[i] = past;
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
	}

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

/* Blocks that ascend by no more than this are a run. */
#define RUN_STEP 8

/* Blocks of a relation, and where they are: InvalidBuffer, not known. */
typedef struct Wanted
{
	LbtStream  *stream;
	int			n;
	int			asked;
	int			of[LBT_BATCH];	/* what each is wanted for */
	BlockNumber block[LBT_BATCH];
	Buffer		buffer[LBT_BATCH];
} Wanted;

static bool
next_wanted(void *state, BlockNumber *block, uint32 *tag)
{
	Wanted	   *wanted = state;

	if (wanted->asked == wanted->n)
		return false;
	*tag = wanted->asked++;
	*block = wanted->block[*tag];
	return true;
}

/* One block more; made with the first. */
static Wanted *
want(Wanted *wanted, BlockNumber block, int of)
{
	if (wanted == NULL)
	{
		wanted = palloc(sizeof(Wanted));
		wanted->n = wanted->asked = 0;
	}
	wanted->of[wanted->n] = of;
	wanted->buffer[wanted->n] = InvalidBuffer;
	wanted->block[wanted->n++] = block;
	return wanted;
}

/* Are they missing, and ascend in small steps?  Then the operating system reads ahead by itself, and asking disturbs it. */
static bool
is_missing_run(Relation rel, const Wanted *wanted)
{
	BlockNumber middle = wanted->block[wanted->n / 2];
	int			steps = 0;

	for (int i = 1; i < wanted->n; i++)
		steps += wanted->block[i] > wanted->block[i - 1] && wanted->block[i] - wanted->block[i - 1] <= RUN_STEP;
	return lbt_reads_by_advice() && wanted->n > 2 && steps * 4 >= (wanted->n - 1) * 3 && middle < RelationGetNumberOfBlocks(rel) &&
		!lbt_block_cached(rel, middle);
}

/* Read them, as many at a time as effective_io_concurrency says, or (n becomes 0) none.  None stays pinned. */
static void
bring_in(Relation rel, Wanted *wanted)
{
	uint32		tag;

	if (is_missing_run(rel, wanted))
	{
		wanted->n = 0;
		return;
	}
	lbt_stream_begin(&wanted->stream, CurrentMemoryContext, rel, true, true, next_wanted, wanted);
	while (wanted->stream != NULL && lbt_stream_look(wanted->stream, &tag))
	{
		wanted->buffer[tag] = lbt_stream_take(wanted->stream);
		if (BufferIsValid(wanted->buffer[tag]))
			ReleaseBuffer(wanted->buffer[tag]);
	}
	if (wanted->stream != NULL)
		(void) lbt_stream_end(wanted->stream);
}

int
lbt_batch_read(Relation rel, LbtIndex *index, LbtBatch *batch)
{
	Wanted	   *wanted = NULL;
	int			n;

	for (int i = 0; i < batch->n; i++)
	{
		const LbtTarget *target = &batch->target[i];

		if ((i == 0 || target->slot != target[-1].slot) &&
			(target->recent == InvalidBuffer ||
			 !lbt_buffer_holds(GetBufferDescriptor(target->recent - 1), rel, target->block)))
			wanted = want(wanted, target->block, i);
	}
	if (likely(wanted == NULL))
		return 0;
	bring_in(rel, wanted);
	n = wanted->n;
	for (int j = 0; j < n; j++)
	{
		uint32		slot = batch->target[wanted->of[j]].slot;

		if (wanted->buffer[j] == InvalidBuffer)
			continue;
		if (lbt_enable_buffer_hint)
			lbt_index_set_hint(index, slot, wanted->buffer[j]);
		for (int i = wanted->of[j]; i < batch->n && batch->target[i].slot == slot; i++)
			batch->target[i].recent = wanted->buffer[j];
	}
	pfree(wanted);
	return n;
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

/* The key code of an item; false when it has none that can be told without a lock. */
static pg_attribute_always_inline bool
item_code(const LbtIndex *index, const Glimpse *leaf, int offset, uint64 *code)
{
	const LbtKeySpec *spec = &index->keyspec;
	LbtKeyValue values[LBT_CODE_COLUMNS];
	uint32		at = item_place(leaf, offset, spec->fixed);

	if (at == 0 || IndexTupleHasNulls((const IndexTupleData *) (leaf->page + at)))
		return false;
	for (int i = 0; i < index->model.code.ncolumns; i++)
	{
		const LbtKeyColumn *column = &spec->column[i];
		const char *value = leaf->page + at + spec->place[i];

		values[i].isnull = false;
		if (column->bytes)
			lbt_stored_bytes(column, value, &values[i]);
		else
			values[i].ordered = lbt_ordered(column, fetch_att(value, true, column->length));
	}
	*code = lbt_model_code(&index->model, values, index->model.code.ncolumns, LBT_MISSING_LOW);
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
		if (width == 0 || !item_code(index, &leaf, offset, &code))
			continue;
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

/* Is the item before the bound?  What cannot be told is not. */
static inline bool
item_before(const LbtIndex *index, const Glimpse *leaf, int offset, uint64 bound, bool past)
{
	uint64		code;

	return item_code(index, leaf, offset, &code) && (code < bound || (past && code == bound));
}

/* The row of the first item that is not before the bound. */
static inline void
find_row(const LbtIndex *index, const Glimpse *leaf, double fraction, uint64 bound, bool past, ItemPointer row)
{
	int			lo = leaf->first - 1;
	int			hi = leaf->last + 1;
	int			at = item_at(leaf, fraction);
	uint32		place;
	IndexTupleData item;

	/* From the place that is known well, in growing steps; then by halves. */
	for (int step = 1; hi - lo > 1; step *= 2)
	{
		if (item_before(index, leaf, at, bound, past))
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
		if (item_before(index, leaf, at, bound, past))
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

/* Bring in the blocks of rows that are not where they should be; returns how many. */
static int
read_rows(Relation table, int n, const ItemPointerData *rows, Buffer *buffer)
{
	Wanted	   *wanted = NULL;
	int			nread;

	for (int i = 0; i < n; i++)
	{
		BlockNumber block;

		if (!ItemPointerIsValid(&rows[i]))
			continue;
		block = ItemPointerGetBlockNumber(&rows[i]);
		if (buffer[i] != InvalidBuffer && lbt_buffer_holds(GetBufferDescriptor(buffer[i] - 1), table, block))
			continue;
		buffer[i] = InvalidBuffer;
		if (wanted == NULL || wanted->block[wanted->n - 1] != block)
			wanted = want(wanted, block, i);
	}
	if (likely(wanted == NULL))
		return 0;
	bring_in(table, wanted);
	nread = wanted->n;
	for (int j = 0; j < nread; j++)
	{
		buffer[wanted->of[j]] = wanted->buffer[j];
		if (wanted->buffer[j] != InvalidBuffer)
			*lbt_block_hint(table, wanted->block[j]) = wanted->buffer[j];
	}
	pfree(wanted);
	return nread;
}

int
lbt_batch_rows(Relation rel, const LbtIndex *index, Relation table, LbtBatch *batch, bool read)
{
	ItemPointerData row[LBT_BATCH];
	Buffer		buffer[LBT_BATCH];
	int			nread = 0;

	for (int i = 0; i < batch->n; i++)
	{
		Glimpse		leaf;

		ItemPointerSetInvalid(&row[i]);
		if (!glimpse_leaf(rel, &batch->target[i], &leaf))
			continue;
		find_row(index, &leaf, batch->target[i].fraction, batch->code[i], batch->past[i], &row[i]);
		if (ItemPointerIsValid(&row[i]))
			__builtin_prefetch(lbt_block_hint(table, ItemPointerGetBlockNumber(&row[i])));
	}
	guess_buffers(table, batch->n, row, buffer);
	if (read)
		nread = read_rows(table, batch->n, row, buffer);
	for (int i = 0; i < batch->n; i++)
	{
		const PageHeaderData *header;

		if (buffer[i] == InvalidBuffer)
			continue;
		header = (const PageHeaderData *) BufferGetBlock(buffer[i]);
		__builtin_prefetch((const char *) header +
						   header->pd_linp[(ItemPointerGetOffsetNumber(&row[i]) - 1) % MaxHeapTuplesPerPage].lp_off % BLCKSZ);
	}
	return nread;
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
	return predict_slot(&index->model, bound_code(index, bound), bound->past, near);
}
