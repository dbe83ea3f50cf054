/*
 * copyahead.c - rows whose entries COPY inserts next; see newrows.h.
 */
#include "am/newrows.h"

#include "access/xact.h"
#include "am/am.h"

struct LbtCopyAhead
{
	uint64		number;			/* of the row that is inserted next */
	LbtNewRows	rows;
};

static LbtCopyAhead *
make_ahead(LbtIndex *index, Relation table, const IndexInfo *info)
{
	LbtCopyAhead *ahead = MemoryContextAllocZero(info->ii_Context, sizeof(LbtCopyAhead));
	LbtFeed    *feed = &ahead->rows.feed;

	ahead->rows.command = GetCurrentCommandId(false);
	ahead->rows.nulls = true;
	feed->next_key = lbt_newrows_next;
	feed->producer = &ahead->rows;
	feed->context = info->ii_Context;
	feed->index = index;
	feed->ncolumns = index->keyspec.ncolumns;
	feed->all = true;
	if (!lbt_is_heap(table) || info->ii_Predicate != NIL)
		feed->pause.resume = PG_UINT64_MAX;
	for (int i = 0; i < feed->ncolumns; i++)
	{
		ahead->rows.attribute[i] = info->ii_IndexAttrNumbers[i];
		if (ahead->rows.attribute[i] <= 0)
			feed->pause.resume = PG_UINT64_MAX; /* no column: never */
	}
	return ahead;
}

/*
 * No row is known to come.  A statement may go on to hundreds of partitions'
 * indexes: keep no memory for each.
 */
static void
forget_rows(LbtCopyAhead *ahead)
{
	LbtNewRows *rows = &ahead->rows;

	lbt_feed_restart(&rows->feed, ahead->number);
	lbt_feed_free(&rows->feed);
	if (rows->keys != NULL)
	{
		MemoryContextDelete(rows->keys);
		pfree(rows->page);
	}
	rows->keys = NULL;
	rows->page = NULL;
	rows->end = ahead->number;
}

/*
 * Each insert is an item.  Where the row is none of those that are known, they
 * are looked for anew, from it on.
 */
void
lbt_copy_ahead(LbtCopyAhead **where, Relation rel, LbtIndex *index, Relation table,
			   ItemPointer tid, IndexInfo *info)
{
	LbtCopyAhead *ahead = *where;
	LbtNewRows *rows;
	uint64		number;
	bool		unknown;

	if (unlikely(ahead == NULL))
		ahead = *where = make_ahead(index, table, info);
	number = ahead->number++;
	rows = &ahead->rows;
	if (number < rows->feed.pause.resume)
	{
		if (rows->feed.now != NULL)
			forget_rows(ahead);
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
	ahead->number = number + 1;
	lbt_feed_post(&rows->feed, number);
	if (rows->end == number + 1 && (unknown || !lbt_newrows_any_after(rows, tid)))
	{
		forget_rows(ahead);
		if (unknown)
			lbt_pause_begin(&rows->feed.pause, number);
	}
}
