/*
 * newrows.c - rows whose keys are needed next; see newrows.h.
 */
#include "am/newrows.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "utils/datum.h"

bool
lbt_row_values(HeapTuple row, TupleDesc desc, int ncolumns, const AttrNumber *columns,
			   Datum *values, bool *isnull)
{
	for (int i = 0; i < ncolumns; i++)
	{
		if (columns[i] > HeapTupleHeaderGetNatts(row->t_data))
			return false;
		values[i] = fastgetattr(row, columns[i], desc, &isnull[i]);
	}
	return true;
}

/* A row's key.  Its byte strings are copied: the page's copy may not stay. */
static LbtNext
key_of_row(LbtNewRows *rows, HeapTuple row, LbtKeyValue *key, uint8 *scratch)
{
	TupleDesc	desc = RelationGetDescr(rows->table);
	const LbtKeySpec *spec = &rows->feed.index->keyspec;
	MemoryContext old;
	Datum		values[LBT_CODE_COLUMNS];
	bool		isnull[LBT_CODE_COLUMNS];

	if (!lbt_row_values(row, desc, rows->feed.ncolumns, rows->attribute, values, isnull))
		return LBT_NO_KEY;

	/* Of any number of rows without a key, copy nothing. */
	for (int i = 0; i < rows->feed.ncolumns; i++)
		if (isnull[i] ? !rows->nulls : !lbt_keyspec_plain(&spec->column[i], values[i]))
			return LBT_NO_KEY;
	old = MemoryContextSwitchTo(rows->keys);
	for (int i = 0; i < rows->feed.ncolumns; i++)
	{
		Form_pg_attribute column = TupleDescAttr(desc, rows->attribute[i] - 1);

		if (!isnull[i])
			values[i] = datumCopy(values[i], column->attbyval, column->attlen);
	}
	MemoryContextSwitchTo(old);
	return lbt_key_of(spec, rows->feed.ncolumns, rows->type, rows->nulls,
					  values, isnull, scratch, key) ? LBT_KEY : LBT_NO_KEY;
}

/* Has the command made the row?  A combo ID is no command's. */
static inline bool
is_new(const LbtNewRows *rows, HeapTupleHeader row)
{
	CommandId	command = HeapTupleHeaderGetRawCommandId(row);

	return (row->t_infomask & HEAP_COMBOCID) == 0 &&
		(command == rows->command || (rows->since && command > rows->command)) &&
		TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetRawXmin(row));
}

/* The first new row on a page from this offset on, beyond the end if none. */
static OffsetNumber
find_new(const LbtNewRows *rows, Page page, OffsetNumber offset)
{
	for (; offset <= PageGetMaxOffsetNumber(page); offset++)
	{
		ItemId		line = PageGetItemId(page, offset);

		if (ItemIdIsNormal(line) && is_new(rows, (HeapTupleHeader) PageGetItem(page, line)))
			break;
	}
	return offset;
}

/* The next new row on the page's copy, from offset on. */
static bool
next_on_page(LbtNewRows *rows, HeapTuple row)
{
	Page		page = (Page) rows->page;
	ItemId		line;

	rows->offset = find_new(rows, page, rows->offset);
	if (rows->offset > PageGetMaxOffsetNumber(page))
		return false;
	line = PageGetItemId(page, rows->offset);
	row->t_data = (HeapTupleHeader) PageGetItem(page, line);
	row->t_len = ItemIdGetLength(line);
	row->t_tableOid = RelationGetRelid(rows->table);
	ItemPointerSet(&row->t_self, rows->block, rows->offset++);
	return true;
}

/* Is a new row on this page, from offset on? */
static bool
any_new(const LbtNewRows *rows, BlockNumber block, OffsetNumber offset)
{
	Buffer		buf = ReadBuffer(rows->table, block);
	Page		page = BufferGetPage(buf);
	bool		any;

	LockBuffer(buf, BUFFER_LOCK_SHARE);
	any = find_new(rows, page, offset) <= PageGetMaxOffsetNumber(page);
	UnlockReleaseBuffer(buf);
	return any;
}

HeapTuple
lbt_copy_row(Relation table, ItemPointer tid)
{
	HeapTupleData row = {.t_self = *tid};
	HeapTuple	copy = NULL;
	Buffer		buf;

	if (heap_fetch(table, SnapshotAny, &row, &buf, false))
	{
		copy = heap_copytuple(&row);
		ReleaseBuffer(buf);
	}
	return copy;
}

/* Can the page after this one be looked at without reading it? */
static bool
next_is_there(const LbtNewRows *rows, BlockNumber block)
{
	return block + 1 < RelationGetNumberOfBlocks(rows->table) &&
		lbt_block_is_there(rows->table, block + 1);
}

bool
lbt_newrows_any_after(const LbtNewRows *rows, ItemPointer tid)
{
	BlockNumber block = ItemPointerGetBlockNumber(tid);

	return any_new(rows, block, ItemPointerGetOffsetNumber(tid) + 1) ||
		(next_is_there(rows, block) && any_new(rows, block + 1, FirstOffsetNumber));
}

bool
lbt_newrows_next_page(LbtNewRows *rows)
{
	if (!next_is_there(rows, rows->block))
		return false;
	lbt_newrows_go(rows, rows->block + 1, FirstOffsetNumber);
	return true;
}

/* A batch begins, with an item that may have been told before. */
static void
begin_batch(LbtNewRows *rows, uint64 number)
{
	if (number < rows->end && rows->end - number <= lengthof(rows->tid))
	{
		ItemPointer tid = lbt_newrows_tid(rows, number);

		rows->block = ItemPointerGetBlockNumber(tid);
		rows->offset = ItemPointerGetOffsetNumber(tid);
	}
	rows->end = rows->deleted ? 0 : number;
	rows->empty = 0;
	rows->copied = InvalidBlockNumber;	/* there may be more by now */
	if (rows->keys == NULL)
		rows->keys = AllocSetContextCreate(rows->feed.context, "learnedbtree new rows",
										   ALLOCSET_SMALL_SIZES);
	if (rows->page == NULL)
		rows->page = MemoryContextAlloc(rows->feed.context, BLCKSZ);
	MemoryContextReset(rows->keys);
}

/*
 * The key of a deleted row.  The server will read its page, too, for the row's
 * triggers: if others have taken its place, ask for it early.
 */
static LbtNext
key_of_deleted(LbtNewRows *rows, uint64 number, LbtKeyValue *key, uint8 *scratch)
{
	const uint64 later = number + LBT_BATCH / 2;
	LbtNext		next = LBT_NO_KEY;
	HeapTuple	row;

	if (number >= rows->ndeleted)
		return LBT_NO_MORE;
	if (later < rows->ndeleted)
		lbt_ask_for_row(rows->table, ItemPointerGetBlockNumber(&rows->deleted[later]),
						&rows->pages);
	row = lbt_copy_row(rows->table, &rows->deleted[number]);
	if (row != NULL &&
		(row->t_data->t_infomask & (HEAP_XMAX_INVALID | HEAP_XMAX_IS_MULTI)) == 0 &&
		!HEAP_XMAX_IS_LOCKED_ONLY(row->t_data->t_infomask) &&
		TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetRawXmax(row->t_data)))
		next = key_of_row(rows, row, key, scratch);
	if (row != NULL)
		heap_freetuple(row);
	return next;
}

LbtNext
lbt_newrows_next(void *producer, uint64 number, LbtKeyValue *key, uint8 *scratch)
{
	LbtNewRows *rows = producer;

	if (number == rows->feed.first)
		begin_batch(rows, number);
	if (rows->deleted != NULL)
		return key_of_deleted(rows, number, key, scratch);
	for (;;)
	{
		HeapTupleData row;
		LbtNext		next;

		if (rows->copied != rows->block)
		{
			Buffer		buf;

			if (rows->block >= RelationGetNumberOfBlocks(rows->table))
				return LBT_NO_MORE;
			CHECK_FOR_INTERRUPTS();
			buf = ReadBuffer(rows->table, rows->block);
			LockBuffer(buf, BUFFER_LOCK_SHARE);
			memcpy(rows->page, BufferGetPage(buf), BLCKSZ);
			UnlockReleaseBuffer(buf);
			rows->copied = rows->block;
			rows->empty++;
		}
		if (!next_on_page(rows, &row))
		{
			/* It may have none: a lookup may come before the first row. */
			if (rows->empty > 1 || !lbt_newrows_next_page(rows))
				return LBT_NO_MORE;
			continue;
		}
		rows->empty = 0;
		next = key_of_row(rows, &row, key, scratch);
		if (next == LBT_NO_KEY && !rows->nulls)
			continue;			/* a NULL refers to nothing */
		*lbt_newrows_tid(rows, number) = row.t_self;
		rows->end = number + 1;
		return next;
	}
}
