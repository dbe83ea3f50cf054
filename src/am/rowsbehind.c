/*
 * rowsbehind.c - rows whose index entries come next; see rowsbehind.h.
 */
#include "am/rowsbehind.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "ahead/predict.h"
#include "server/bufferhint.h"
#include "utils/datum.h"
#include "utils/memutils.h"

/* Rows to insert before looking again, where none was behind; doubled. */
#define PAUSE_MIN 16
#define PAUSE_MAX 4096

typedef struct Rows
{
	int			n;
	int			at;				/* the next one to be inserted */
	ItemPointerData tid[LBT_BATCH];
	LbtReads   *leaves;			/* that are not at hand; or NULL */
	LbtBatch	batch;			/* of batch.n = n keys, of a model */
} Rows;

struct LbtRowsBehind
{
	bool		never;			/* the index has keys that are no columns */
	int			pause;			/* rows to let pass */
	int			next_pause;
	MemoryContext context;		/* of keys' copies while a batch is made */
	uint8	   *scratch;		/* for keys' encoded values; or NULL */
	Rows	   *now;			/* NULL: nothing was ever behind */
	Rows	   *next;
};

static LbtRowsBehind *
make_behind(const LbtIndex *index, Relation table, const IndexInfo *info)
{
	LbtRowsBehind *behind = MemoryContextAllocZero(info->ii_Context, sizeof(LbtRowsBehind));

	behind->next_pause = PAUSE_MIN;
	behind->never = !lbt_is_heap(table) || info->ii_Predicate != NIL;
	for (int i = 0; i < index->keyspec.ncolumns; i++)
		behind->never |= info->ii_IndexAttrNumbers[i] <= 0;
	return behind;
}

/* Is there any row behind this one on its page? */
static bool
is_any_behind(Relation table, ItemPointer tid)
{
	Buffer		buf = ReadBuffer(table, ItemPointerGetBlockNumber(tid));
	bool		any;

	LockBuffer(buf, BUFFER_LOCK_SHARE);
	any = PageGetMaxOffsetNumber(BufferGetPage(buf)) > ItemPointerGetOffsetNumber(tid);
	UnlockReleaseBuffer(buf);
	return any;
}

/* Make room for batches: they are large, and most statements need none. */
static void
make_batches(LbtRowsBehind *behind, const LbtIndex *index, const IndexInfo *info)
{
	Rows	   *rows = MemoryContextAllocZero(info->ii_Context, 2 * sizeof(Rows));

	behind->now = &rows[0];
	behind->next = &rows[1];
	behind->context = AllocSetContextCreate(info->ii_Context, "learnedbtree rows behind",
											ALLOCSET_SMALL_SIZES);
	if (index->keyspec.encoded)
		behind->scratch = MemoryContextAlloc(info->ii_Context, (Size) LBT_BATCH *
											 index->keyspec.ncolumns * LBT_SCRATCH_BYTES);
}

/* Add a row's key; false if it cannot be told from the row. */
static bool
add_row(LbtRowsBehind *behind, LbtIndex *index, Relation table, HeapTuple row,
		const IndexInfo *info, Rows *rows)
{
	const LbtKeySpec *spec = &index->keyspec;
	LbtKeyValue values[LBT_CODE_COLUMNS];

	for (int i = 0; i < spec->ncolumns; i++)
	{
		const LbtKeyColumn *column = &spec->column[i];
		AttrNumber	attribute = info->ii_IndexAttrNumbers[i];
		int			number = rows->n * spec->ncolumns + i;
		Datum		value;

		if (attribute > HeapTupleHeaderGetNatts(row->t_data))
			return false;
		value = fastgetattr(row, attribute, RelationGetDescr(table), &values[i].isnull);
		values[i].ordered = 0;
		if (values[i].isnull)
			continue;
		if (!lbt_keyspec_plain(column, value))
			return false;
		if (column->bytes)
			value = datumCopy(value, false, column->length);
		(void) lbt_keyspec_argument(column, InvalidOid, value, &values[i], behind->scratch ?
									behind->scratch + (Size) number * LBT_SCRATCH_BYTES : NULL);
	}
	rows->tid[rows->n++] = row->t_self;
	lbt_batch_add(index, &rows->batch, values, spec->ncolumns, false);
	return true;
}

/* Has this command made the row? */
static inline bool
is_new(HeapTupleHeader row)
{
	return HeapTupleHeaderGetRawCommandId(row) == GetCurrentCommandId(false) &&
		TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetRawXmin(row));
}

/*
 * Add what this command has put on this page of the table, from an offset on;
 * true if there is any, so that it may go on on the next page.
 */
static bool
add_page(LbtRowsBehind *behind, LbtIndex *index, Relation table, BlockNumber block,
		 OffsetNumber from, const IndexInfo *info, Rows *rows)
{
	Buffer		buf = ReadBuffer(table, block);
	Page		page = BufferGetPage(buf);
	int			before = rows->n;
	bool		known = true;

	LockBuffer(buf, BUFFER_LOCK_SHARE);
	for (OffsetNumber at = from; known && at <= PageGetMaxOffsetNumber(page); at++)
	{
		ItemId		line = PageGetItemId(page, at);
		HeapTupleData row;

		if (!ItemIdIsNormal(line))
			continue;
		row.t_data = (HeapTupleHeader) PageGetItem(page, line);
		if (!is_new(row.t_data))
			continue;
		row.t_len = ItemIdGetLength(line);
		row.t_tableOid = RelationGetRelid(table);
		ItemPointerSet(&row.t_self, block, at);
		known = add_row(behind, index, table, &row, info, rows) && rows->n < LBT_BATCH;
	}
	UnlockReleaseBuffer(buf);
	return known && rows->n > before;
}

/* Make a batch of the rows behind this one, and ask for missing leaves. */
static void
begin_rows_behind(LbtRowsBehind *behind, Relation rel, LbtIndex *index, Relation table,
				  ItemPointer tid, const IndexInfo *info, Rows *rows)
{
	MemoryContext old = MemoryContextSwitchTo(behind->context);
	BlockNumber block = ItemPointerGetBlockNumber(tid);
	OffsetNumber from = OffsetNumberNext(ItemPointerGetOffsetNumber(tid));

	MemoryContextReset(behind->context);
	rows->n = rows->at = rows->batch.n = 0;
	while (add_page(behind, index, table, block, from, info, rows) &&
		   ++block < RelationGetNumberOfBlocks(table) && lbt_block_cached(table, block))
		from = FirstOffsetNumber;
	MemoryContextSwitchTo(GetMemoryChunkContext(behind));
	if (rows->n > 0)
	{
		lbt_batch_finish(index, &rows->batch);
		if (lbt_enable_prefetch)
			rows->leaves = lbt_batch_read(rel, index, &rows->batch);
		lbt_reads_start(rows->leaves);
		if (index->keyspec.nplaces > 0)
			lbt_batch_near(rel, index, &rows->batch, false);
	}
	MemoryContextSwitchTo(old);
}

/* Forget a batch, if there is one. */
static void
end_rows(LbtIndex *index, Rows *rows)
{
	lbt_count_many(index, LBT_EV_PREFETCHED, lbt_reads_end(&rows->leaves));
	rows->n = rows->at = 0;
}

/* Is this the batch's next row? */
static inline bool
is_next(Rows *rows, ItemPointer tid)
{
	return rows->at < rows->n && ItemPointerEquals(&rows->tid[rows->at], tid);
}

/* Nothing is behind, or looking does not pay: not again for some rows. */
static void
let_pass(LbtRowsBehind *behind)
{
	behind->pause = behind->next_pause;
	behind->next_pause = Min(behind->next_pause * 2, PAUSE_MAX);
}

/* Is the row's place the index's right end, where all that comes goes? */
static inline bool
is_ascending(const LbtIndex *index)
{
	return index->inserting.last.block != InvalidBlockNumber &&
		index->inserting.last.hi == PG_UINT64_MAX;
}

void
lbt_rows_behind(LbtRowsBehind **where, Relation rel, LbtIndex *index, Relation table,
				ItemPointer tid, const IndexInfo *info)
{
	LbtRowsBehind *behind = *where;
	Rows	   *rows;
	bool		in_vain;

	if (unlikely(behind == NULL))
		behind = *where = make_behind(index, table, info);
	if (behind->never)
		return;
	if (behind->pause > 0)
	{
		behind->pause--;
		return;
	}
	if (behind->now == NULL)
	{
		if (is_ascending(index) || !is_any_behind(table, tid))
		{
			let_pass(behind);
			return;
		}
		make_batches(behind, index, info);
	}
	in_vain = behind->now->n > 0 && behind->now->at == 0;
	if (!is_next(behind->now, tid))
	{
		end_rows(index, behind->now);
		rows = behind->now;
		behind->now = behind->next;
		behind->next = rows;
	}
	rows = behind->now;
	if (!is_next(rows, tid))
	{
		end_rows(index, rows);
		if (in_vain || is_ascending(index))
		{
			let_pass(behind);
			return;
		}
		begin_rows_behind(behind, rel, index, table, tid, info, rows);
		if (rows->n == 0)
			let_pass(behind);
		return;
	}
	behind->next_pause = PAUSE_MIN;
	if (rows->leaves != NULL)
		(void) lbt_reads_come(rows->leaves, rows->at);
	index->mailbox.target = rows->batch.target[rows->at];
	index->mailbox.code = rows->batch.key[rows->at].code;
	if (rows->at++ == rows->n / 2 && rows->n == LBT_BATCH)
		begin_rows_behind(behind, rel, index, table, &rows->tid[rows->n - 1], info, behind->next);
}
