/*
 * copyahead.c - rows whose entries COPY inserts next; see newrows.h.
 */
#include "am/newrows.h"

#include "access/xact.h"

static LbtNewRows *
make_rows(LbtIndex *index, Relation table, const IndexInfo *info)
{
	LbtNewRows *rows = MemoryContextAllocZero(info->ii_Context, sizeof(LbtNewRows));
	LbtFeed    *feed = &rows->feed;

	rows->command = GetCurrentCommandId(false);
	rows->nulls = true;
	feed->next_key = lbt_newrows_next;
	feed->producer = rows;
	feed->context = info->ii_Context;
	feed->index = index;
	feed->ncolumns = index->keyspec.ncolumns;
	feed->all = true;
	if (!lbt_is_heap(table) || info->ii_Predicate != NIL)
		feed->pause.resume = PG_UINT64_MAX;
	for (int i = 0; i < feed->ncolumns; i++)
	{
		rows->attribute[i] = info->ii_IndexAttrNumbers[i];
		if (rows->attribute[i] <= 0)
			feed->pause.resume = PG_UINT64_MAX; /* no column: never */
	}
	return rows;
}

/*
 * No row is known to come.  A statement may go on to hundreds of partitions'
 * indexes: keep no memory for each.
 */
static void
forget_rows(LbtNewRows *rows)
{
	lbt_feed_restart(&rows->feed, rows->number);
	lbt_feed_free(&rows->feed);
	if (rows->keys != NULL)
	{
		MemoryContextDelete(rows->keys);
		pfree(rows->page);
	}
	rows->keys = NULL;
	rows->page = NULL;
	rows->end = rows->number;
}

/*
 * Each insert is an item.  Where the row is none of those that are known, they
 * are looked for anew, from it on.
 */
void
lbt_copy_ahead(LbtNewRows **where, Relation rel, LbtIndex *index, Relation table,
			   ItemPointer tid, IndexInfo *info)
{
	LbtNewRows *rows = *where;
	uint64		number;
	bool		unknown;

	if (unlikely(rows == NULL))
		rows = *where = make_rows(index, table, info);
	number = rows->number++;
	if (number < rows->feed.pause.resume)
	{
		if (rows->feed.now != NULL)
			forget_rows(rows);
		return;
	}
	rows->table = table;
	if (rows->feed.now == NULL && !lbt_newrows_any_after(rows, tid))
	{
		lbt_pause_begin(&rows->feed.pause, number);
		return;
	}
	rows->feed.rel = rel;
	while (number < rows->end && !ItemPointerEquals(lbt_newrows_tid(rows, number), tid))
		number++;
	unknown = number >= rows->end;
	if (unknown)
	{
		rows->end = number;
		lbt_newrows_go(rows, ItemPointerGetBlockNumber(tid), ItemPointerGetOffsetNumber(tid));
	}
	rows->number = number + 1;
	lbt_feed_post(&rows->feed, number);
	if (rows->end == number + 1 && (unknown || !lbt_newrows_any_after(rows, tid)))
	{
		forget_rows(rows);
		if (unknown)
			lbt_pause_begin(&rows->feed.pause, number);
	}
}
