/*
 * copyahead.c - rows whose entries COPY inserts next; see newrows.h.
 */
#include "am/newrows.h"

#include "access/xact.h"
#include "am/am.h"

/* Rows to insert before looking again, where none came after; doubled. */
#define PAUSE_MIN 16
#define PAUSE_MAX 4096

struct LbtCopyAhead
{
	bool		never;			/* keys are not columns */
	int			pause;			/* rows to let pass */
	int			next_pause;
	LbtNewRows	rows;
};

static LbtCopyAhead *
make_ahead(const LbtIndex *index, Relation table, const IndexInfo *info)
{
	LbtCopyAhead *ahead = MemoryContextAllocZero(info->ii_Context, sizeof(LbtCopyAhead));

	ahead->next_pause = PAUSE_MIN;
	ahead->never = !lbt_is_heap(table) || info->ii_Predicate != NIL;
	ahead->rows.command = GetCurrentCommandId(false);
	ahead->rows.ncolumns = index->keyspec.ncolumns;
	for (int i = 0; i < ahead->rows.ncolumns; i++)
	{
		ahead->rows.attribute[i] = info->ii_IndexAttrNumbers[i];
		ahead->never |= ahead->rows.attribute[i] <= 0;
	}
	return ahead;
}

/* Is there any row after this one on its page? */
static bool
is_any_after(Relation table, ItemPointer tid)
{
	Buffer		buf = ReadBuffer(table, ItemPointerGetBlockNumber(tid));
	bool		any;

	LockBuffer(buf, BUFFER_LOCK_SHARE);
	any = PageGetMaxOffsetNumber(BufferGetPage(buf)) > ItemPointerGetOffsetNumber(tid);
	UnlockReleaseBuffer(buf);
	return any;
}

/* Is this the batch's next row? */
static inline bool
is_next(LbtNewBatch *batch, ItemPointer tid)
{
	return batch->at < batch->n && ItemPointerEquals(&batch->tid[batch->at], tid);
}

/* Nothing comes after, or looking does not pay: not again for some rows. */
static void
let_pass(LbtCopyAhead *ahead)
{
	ahead->pause = ahead->next_pause;
	ahead->next_pause = Min(ahead->next_pause * 2, PAUSE_MAX);
}

/* Is the row's place the index's right end, where all that comes goes? */
static inline bool
is_ascending(const LbtIndex *index)
{
	return index->inserting.last.block != InvalidBlockNumber &&
		index->inserting.last.hi == PG_UINT64_MAX;
}

void
lbt_copy_ahead(LbtCopyAhead **where, Relation rel, LbtIndex *index, Relation table,
			   ItemPointer tid, IndexInfo *info)
{
	LbtCopyAhead *ahead = *where;
	LbtNewRows *rows;
	LbtNewBatch *batch;
	bool		wasted;

	if (unlikely(ahead == NULL))
		ahead = *where = make_ahead(index, table, info);
	if (ahead->never)
		return;
	if (ahead->pause > 0)
	{
		ahead->pause--;
		return;
	}
	rows = &ahead->rows;
	if (rows->now == NULL)
	{
		if (is_ascending(index) || !is_any_after(table, tid))
		{
			let_pass(ahead);
			return;
		}
		lbt_newrows_make(rows, index, info->ii_Context);
	}
	wasted = rows->now->n > 0 && rows->now->at == 0;
	if (!is_next(rows->now, tid))
		lbt_newrows_turn(rows, index);
	batch = rows->now;
	if (!is_next(batch, tid))
	{
		lbt_newrows_end(rows, index, batch);
		if (wasted || is_ascending(index))
		{
			let_pass(ahead);
			return;
		}
		rows->end = *tid;
		ItemPointerSetOffsetNumber(&rows->end, ItemPointerGetOffsetNumber(tid) + 1);
		lbt_newrows_begin(rows, rel, index, table, batch);
		if (batch->n == 0)
			let_pass(ahead);
		return;
	}
	ahead->next_pause = PAUSE_MIN;
	lbt_newrows_post_prediction(index, batch);
	if (batch->at++ == batch->n / 2 && batch->n == LBT_BATCH)
		lbt_newrows_begin(rows, rel, index, table, rows->next);
}
