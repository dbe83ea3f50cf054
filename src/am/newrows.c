/*
 * newrows.c - rows whose keys are needed next; see newrows.h.
 */
#include "am/newrows.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "server/bufferhint.h"
#include "utils/datum.h"
#include "utils/memutils.h"

void
lbt_newrows_make(LbtNewRows *new, const LbtIndex *index, MemoryContext context)
{
	LbtNewBatch *batches = MemoryContextAllocZero(context, 2 * sizeof(LbtNewBatch));

	new->now = &batches[0];
	new->next = &batches[1];
	new->context = context;
	new->page = MemoryContextAlloc(context, BLCKSZ);
	if (index->keyspec.encoded)
		new->scratch = MemoryContextAlloc(context, (Size) LBT_BATCH * index->keyspec.ncolumns *
										  LBT_SCRATCH_BYTES);
	new->keys = AllocSetContextCreate(context, "learnedbtree new rows", ALLOCSET_SMALL_SIZES);
}

/* Add a row's key, if it has one; false if it cannot be told. */
static bool
add_row(LbtNewRows *new, LbtIndex *index, Relation table, HeapTuple row, LbtNewBatch *batch)
{
	LbtKeyValue values[LBT_CODE_COLUMNS];
	TupleDesc	desc = RelationGetDescr(table);

	for (int i = 0; i < new->ncolumns; i++)
	{
		const LbtKeyColumn *column = &index->keyspec.column[i];
		AttrNumber	attribute = new->attribute[i];
		int			number = batch->batch.n * new->ncolumns + i;
		uint8	   *scratch = new->scratch ?
			new->scratch + (Size) number * LBT_SCRATCH_BYTES : NULL;
		Datum		key;

		if (attribute > HeapTupleHeaderGetNatts(row->t_data))
			return false;
		key = fastgetattr(row, attribute, desc, &values[i].isnull);
		values[i].ordered = 0;
		if (values[i].isnull && new->skip_nulls)
			return true;
		if (values[i].isnull)
			continue;
		if (!lbt_keyspec_plain(column, key))
			return false;
		if (column->bytes)
			key = datumCopy(key, TupleDescAttr(desc, attribute - 1)->attbyval,
							TupleDescAttr(desc, attribute - 1)->attlen);
		if (lbt_keyspec_argument(column, new->type[i], key, &values[i], scratch) != 0)
			return false;
	}
	batch->tid[batch->batch.n] = row->t_self;
	lbt_batch_add(index, &batch->batch, values, new->ncolumns, false);
	return true;
}

/* Has the command made the row?  A combo ID is no command's. */
static inline bool
is_new(const LbtNewRows *new, HeapTupleHeader row)
{
	return (row->t_infomask & HEAP_COMBOCID) == 0 &&
		HeapTupleHeaderGetRawCommandId(row) == new->command &&
		TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetRawXmin(row));
}

/*
 * Add what the command has put on this page of the table, from *at on.  Sets
 * *at to where to go on; false if that is not on the next page.
 */
static bool
add_page(LbtNewRows *new, LbtIndex *index, Relation table, BlockNumber block, OffsetNumber *at,
		 LbtNewBatch *batch)
{
	Page		page = (Page) new->page;
	Buffer		buf = ReadBuffer(table, block);
	bool		known = true;

	LockBuffer(buf, BUFFER_LOCK_SHARE);
	memcpy(new->page, BufferGetPage(buf), BLCKSZ);
	UnlockReleaseBuffer(buf);
	for (; known && batch->batch.n < LBT_BATCH && *at <= PageGetMaxOffsetNumber(page); (*at)++)
	{
		ItemId		line = PageGetItemId(page, *at);
		HeapTupleData row;

		if (!ItemIdIsNormal(line))
			continue;
		row.t_data = (HeapTupleHeader) PageGetItem(page, line);
		if (!is_new(new, row.t_data))
			continue;
		row.t_len = ItemIdGetLength(line);
		row.t_tableOid = RelationGetRelid(table);
		ItemPointerSet(&row.t_self, block, *at);
		known = add_row(new, index, table, &row, batch);
	}
	return known && *at > PageGetMaxOffsetNumber(page);
}

void
lbt_newrows_begin(LbtNewRows *new, Relation rel, LbtIndex *index, Relation table,
				  LbtNewBatch *batch)
{
	MemoryContext old = MemoryContextSwitchTo(new->keys);
	BlockNumber first = ItemPointerGetBlockNumber(&new->end);
	BlockNumber block = first;
	BlockNumber nblocks = RelationGetNumberOfBlocks(table);
	OffsetNumber at = ItemPointerGetOffsetNumberNoCheck(&new->end);

	/* An error on the way leaves an empty batch. */
	lbt_newrows_end(new, index, batch);
	MemoryContextReset(new->keys);
	lbt_batch_begin(&batch->batch, new->ncolumns, false);

	/* A lookup of the statement itself may come before its first row. */
	while (block < nblocks)
	{
		int			before = batch->batch.n;

		if (!add_page(new, index, table, block, &at, batch) ||
			(batch->batch.n == before && block > first) ||
			block + 1 >= nblocks || !lbt_block_cached(table, block + 1))
			break;
		block++;
		at = FirstOffsetNumber;
	}
	ItemPointerSet(&new->end, block, at);
	MemoryContextSwitchTo(new->context);
	if (batch->batch.n > 0)
	{
		lbt_batch_finish(index, &batch->batch);
		if (lbt_enable_prefetch)
			batch->leaves = lbt_batch_read(rel, index, &batch->batch, &new->leaves);
		lbt_reads_start(batch->leaves);
		if (index->keyspec.nplaces > 0)
			lbt_batch_near(rel, index, &batch->batch, false);
	}
	batch->n = batch->batch.n;
	MemoryContextSwitchTo(old);
}

void
lbt_newrows_end(LbtNewRows *new, LbtIndex *index, LbtNewBatch *batch)
{
	if (batch->leaves != NULL && batch->at > 0)
		lbt_reads_judge(batch->leaves, batch->at - 1, lbt_prediction_taken(index, batch->number));
	lbt_reads_end(&batch->leaves);
	lbt_reads_end(&batch->rows);
	lbt_count_tally(index, LBT_EV_PREFETCHED, &new->leaves, NULL);
	lbt_count_tally(index, LBT_EV_ROWS_PREFETCHED, &new->rows, NULL);
	batch->n = batch->at = 0;
}

void
lbt_newrows_turn(LbtNewRows *new, LbtIndex *index)
{
	LbtNewBatch *done = new->now;

	lbt_newrows_end(new, index, done);
	new->now = new->next;
	new->next = done;
}
