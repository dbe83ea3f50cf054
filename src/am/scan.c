/*
 * scan.c - the scan callbacks, and which of the two engines serves a scan.
 *
 * From one rescan to the next, ours serves keys that scankeys.c makes into
 * intervals, on an index that has a model, and nbtree's all else.  nbtree has
 * its state in scan->opaque, so ours steps aside while its functions run.
 */
#include "am/am.h"

#include "am/keysahead.h"
#include "am/scan.h"
#include "executor/instrument.h"
#include "nodes/tidbitmap.h"
#include "train/train.h"

/*
 * Of scans without a model that pays, one in so many asks how large the file
 * is: that took up to a sixth of a statement of one row.
 */
#define ASK_SCANS 64

static IndexScanDesc
lbt_beginscan(Relation rel, int nkeys, int norderbys)
{
	IndexScanDesc scan = RelationGetIndexScan(rel, nkeys, norderbys);
	LbtScan    *so = palloc(sizeof(LbtScan));

	memset(so, 0, offsetof(LbtScan, nprobes));
	so->index = lbt_index_get(rel);
	so->mark_at = -1;
	so->walk.slot = 0;
	so->landed[0] = so->landed[1] = InvalidBlockNumber;
	scan->opaque = so;
	scan->xs_itupdesc = RelationGetDescr(rel);
	return scan;
}

/* Put nbtree's scan state in our place; make it if there is none yet. */
static void
enter_btree(IndexScanDesc scan, LbtScan *so)
{
	if (so->btree == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(GetMemoryChunkContext(so));
		IndexScanDesc made = btbeginscan(scan->indexRelation, scan->numberOfKeys,
										 scan->numberOfOrderBys);

		so->btree = made->opaque;
		IndexScanEnd(made);
		MemoryContextSwitchTo(old);
	}
	scan->opaque = so->btree;
}

/* Run one of nbtree's callbacks on the scan. */
#define BY_BTREE(scan, so, call) \
	do { \
		enter_btree(scan, so); \
		call; \
		(scan)->opaque = (so); \
	} while (0)

static inline void
stop_reading_ahead(LbtScan *so)
{
	if (likely(so->rows == NULL && so->ahead == NULL))
		return;
	if (so->rows != NULL)
		lbt_rows_stop(so);
	if (so->ahead != NULL)
		lbt_ahead_stop(so);
	lbt_scan_count_ahead(so);
}

/* The scan begins anew, or goes back to its mark. */
static inline void
forget_gone(LbtScan *so)
{
	if (unlikely(so->gone != NULL))
		pfree(so->gone);
	so->gone = NULL;
}

/* Forget the current position and the mark. */
static inline void
stop(IndexScanDesc scan, LbtScan *so)
{
	so->mark_at = -1;
	if (so->cur.valid)
		lbt_scan_leave(scan, so);
	if (so->mark.valid)
		lbt_leafcopy_release(&so->mark);
	if (unlikely(so->go != NULL))
		pfree(so->go);
	so->go = NULL;
	forget_gone(so);
	stop_reading_ahead(so);
}

/*
 * Is a worker, or another backend, about to make a model?  Then our engine
 * serves the scan from the start, by descents, and uses the model once it is
 * there.
 */
static inline bool
model_comes(const LbtScan *so)
{
	const LbtIndex *index = so->index;

	return index->state == LBT_UNTRAINED && index->shareable && index->keyspec.ncolumns > 0 &&
		(so->asked_training || index->again_at != 0);
}

/* May the scan, which found no model, ask for a training? */
static inline bool
may_ask(const LbtScan *so, LbtIndex *index)
{
	if (so->asked_training || !lbt_may_ask(index))
		return false;
	return index->state != LBT_NOT_PAYING || index->scans == 0 || index->scans++ >= ASK_SCANS;
}

/*
 * Is there a model, or will there be one, and do we serve the keys?  Make one
 * if this index never had its chance.
 */
static inline bool
engine_serves(IndexScanDesc scan, LbtScan *so)
{
	LbtIndex   *index = so->index;

	/* Look at the keys last, as that takes longest. */
	lbt_index_update(index);
	if (unlikely(index->state != LBT_READY) && !may_ask(so, index) && !model_comes(so))
		return false;
	if (!lbt_scan_interval(scan, so))
		return false;
	if (likely(index->state == LBT_READY))
		return true;

	/* The planner looks for a column's end before rights are checked. */
	if (scan->xs_snapshot->snapshot_type == SNAPSHOT_NON_VACUUMABLE)
		return false;
	so->asked_training = true;
	index->scans = 1;
	lbt_train_on_use(scan->indexRelation, index);
	return index->state == LBT_READY || model_comes(so);
}

void
lbt_rescan(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey orderbys, int norderbys)
{
	LbtScan    *so = (LbtScan *) scan->opaque;
	bool		was_btree = !so->predicts && so->btree != NULL;

	stop(scan, so);
	so->predicts = false;

	/* A function that the statement calls may have settings of its own. */
	if (unlikely(so->index->serving.at != lbt_serving_generation))
		lbt_update_serving(so->index, scan->indexRelation);
	if (lbt_enable && scan->parallel_scan == NULL && so->index->serving.learned)
	{
		if (keys && scan->numberOfKeys > 0)
			memmove(scan->keyData, keys, scan->numberOfKeys * sizeof(ScanKeyData));
		so->predicts = engine_serves(scan, so);
	}
	so->pins_heap_block = so->predicts && lbt_enable_buffer_hint && lbt_block_hints != NULL &&
		scan->xs_heapfetch != NULL && !scan->xs_want_itup && lbt_is_heap(scan->heapRelation);
	if (so->pins_heap_block)
		so->hint_start = lbt_hint_start(scan->heapRelation);
	if (unlikely(lbt_keys_ahead != NULL || !dlist_is_empty(&lbt_keys_deferred)) && so->predicts &&
		so->nprobes == 1)
		lbt_check_comes(scan, so->index, &so->walk.probe.start);
	if (!so->predicts)
	{
		/* Do not count a btree index that is no longer served. */
		if (so->index->serving.learned || !lbt_is_btree(scan->indexRelation))
		{
			lbt_count(so->index, LBT_EV_DELEGATED);
			so->counts[LBT_EV_DELEGATED]++;
		}
		BY_BTREE(scan, so, btrescan(scan, keys, nkeys, orderbys, norderbys));
	}
	else if (unlikely(was_btree))
		BY_BTREE(scan, so, btrescan(scan, NULL, 0, NULL, 0));	/* drop pins */
}

/*
 * Fetch the next rows of the leaf into the processor's caches, in three steps
 * as the scan comes nearer, so that none waits for the one before:
 *
 *     HINT_AHEAD rows before   where its block is, by the block's hint
 *     PAGE_AHEAD               the headers of buffer and page, line pointer
 *     ROW_AHEAD                the row
 *
 * Leave out a row in the block of the one before it.
 */
#define HINT_AHEAD 20
#define PAGE_AHEAD 10
#define ROW_AHEAD 4

static inline void
fetch_hint(const LbtScan *so, const LbtItem *item, int step)
{
	if (!lbt_same_block(item, item - step))
		__builtin_prefetch(lbt_hint_at(so->hint_start,
									   ItemPointerGetBlockNumberNoCheck(&item->tid)));
	/* GCC 12 drops calls of functions that do nothing but prefetch. */
	__asm__ __volatile__("");
}

static inline void
fetch_page(const LbtScan *so, LbtItem *item, int step)
{
	Buffer		hint;

	if (lbt_same_block(item, item - step))
		return;
	hint = *lbt_hint_at(so->hint_start, ItemPointerGetBlockNumberNoCheck(&item->tid));
	if (hint < 1 || hint > NBuffers)
		return;
	item->buffer = hint;
	lbt_prefetch_page(hint, &item->tid);
}

/* step: 1 or -1, as the scan goes.  first: nothing was asked for before. */
static inline void
fetch_ahead(const LbtScan *so, int step, bool first)
{
	LbtItem    *item = &so->cur.items[so->cur.at];
	int			left = step > 0 ? so->cur.nitems - 1 - so->cur.at : so->cur.at;

	if (left == 0)
		return;
	for (int at = unlikely(first) ? 1 - HINT_AHEAD : 0; at <= 0; at++)
	{
		if (at + HINT_AHEAD <= left)
			fetch_hint(so, item + (at + HINT_AHEAD) * step, step);
		if (at + PAGE_AHEAD > 0 && at + PAGE_AHEAD <= left)
			fetch_page(so, item + (at + PAGE_AHEAD) * step, step);
		if (at + ROW_AHEAD > 0 && at + ROW_AHEAD <= left)
		{
			const LbtItem *near = item + (at + ROW_AHEAD) * step;

			if (near->buffer != InvalidBuffer)
				lbt_prefetch_row(near->buffer, &near->tid);
		}
	}
}

static bool
lbt_gettuple(IndexScanDesc scan, ScanDirection dir)
{
	LbtScan    *so = (LbtScan *) scan->opaque;
	LbtLeafCopy *cur = &so->cur;
	LbtItem    *item;
	bool		missed;
	bool		first = false;

	if (!so->predicts)
	{
		bool		found;

		BY_BTREE(scan, so, found = btgettuple(scan, dir));
		return found;
	}
	scan->xs_recheck = false;
	if (unlikely(so->group_columns > 0) && lbt_scan_gives_up(so))
		return false;
	missed = cur->valid && pgBufferUsage.shared_blks_read != so->reads_seen;
	if (cur->valid)
	{
		if (scan->kill_prior_tuple)
			so->any_dead = cur->items[cur->at].dead = true;
		cur->at += ScanDirectionIsForward(dir) ? 1 : -1;
	}
	if (!cur->valid || cur->at < 0 || cur->at >= cur->nitems)
	{
		if (!lbt_scan_next_leaf(scan, so, dir))
		{
			stop_reading_ahead(so);
			return false;
		}
		first = true;
	}
	so->reads_seen = pgBufferUsage.shared_blks_read;
	if (unlikely(missed) && so->nfilters == 0 && so->group_columns == 0)
		lbt_rows_ahead(scan, so, ScanDirectionIsForward(dir));
	item = &cur->items[cur->at];
	scan->xs_heaptid = item->tid;
	if (so->pins_heap_block)
	{
		if (lbt_enable_row_prefetch)
			fetch_ahead(so, ScanDirectionIsForward(dir) ? 1 : -1, first);
		lbt_hand_over_block(scan, ItemPointerGetBlockNumber(&item->tid));
	}
	if (scan->xs_want_itup)
		scan->xs_itup = (IndexTuple) (cur->tuples + item->tuple);
	return true;
}

static int64
lbt_getbitmap(IndexScanDesc scan, TIDBitmap *tbm)
{
	LbtScan    *so = (LbtScan *) scan->opaque;
	int64		ntids = 0;

	if (!so->predicts)
	{
		BY_BTREE(scan, so, ntids = btgetbitmap(scan, tbm));
		return ntids;
	}
	so->bitmap = true;
	while (lbt_scan_next_leaf(scan, so, ForwardScanDirection))
	{
		for (int i = 0; i < so->cur.nitems; i++)
			tbm_add_tuples(tbm, &so->cur.items[i].tid, 1, false);
		ntids += so->cur.nitems;
	}
	stop_reading_ahead(so);
	return ntids;
}

static void
lbt_endscan(IndexScanDesc scan)
{
	LbtScan    *so = (LbtScan *) scan->opaque;
	bool		own_view = RelationUsesLocalBuffers(scan->indexRelation);
	void	   *chunks[] = {
		so->cur.items, so->cur.tuples, so->mark.items, so->mark.tuples, so->rows, so->scratch,
		so->filter, own_view ? so->index : NULL, so
	};

	stop(scan, so);
	if (so->ahead)
		lbt_ahead_free(so);
	if (so->btree != NULL)
		BY_BTREE(scan, so, btendscan(scan));
	if (so->array_context)
		MemoryContextDelete(so->array_context);
	if (so->go_context)
		MemoryContextDelete(so->go_context);
	for (int i = 0; i < lengthof(chunks); i++)
		if (chunks[i] != NULL)
			pfree(chunks[i]);
}

static void
lbt_markpos(IndexScanDesc scan)
{
	LbtScan    *so = (LbtScan *) scan->opaque;

	if (!so->predicts)
		BY_BTREE(scan, so, btmarkpos(scan));
	else
	{
		lbt_leafcopy_release(&so->mark);
		so->mark_at = so->cur.valid ? so->cur.at : -1;
	}
}

static void
lbt_restrpos(IndexScanDesc scan)
{
	LbtScan    *so = (LbtScan *) scan->opaque;

	if (!so->predicts)
		BY_BTREE(scan, so, btrestrpos(scan));
	else if (so->mark_at >= 0)
		so->cur.at = so->mark_at;
	else
	{
		lbt_scan_leave(scan, so);
		forget_gone(so);
		stop_reading_ahead(so);
		if (so->mark.valid)
		{
			/* the mark is on the current leaf again */
			lbt_scan_swap_mark(so);
			so->mark_at = so->cur.at;
		}
	}
}

void
lbt_take_scans(IndexAmRoutine *routine)
{
	routine->ambeginscan = lbt_beginscan;
	routine->amrescan = lbt_rescan;
	routine->amgettuple = lbt_gettuple;
	routine->amgetbitmap = lbt_getbitmap;
	routine->amendscan = lbt_endscan;
	routine->ammarkpos = lbt_markpos;
	routine->amrestrpos = lbt_restrpos;
}

/* ---- groups ---- */

/*
 * The first copied item after the bound, in this direction from the current
 * one; -1 if the copy has none.
 */
static int
find_copied(const LbtScan *so, TupleDesc tupdesc, const LbtBound *bound, bool forward)
{
	const LbtLeafCopy *cur = &so->cur;
	int			end = forward ? cur->nitems - 1 - cur->at : cur->at;
	int			low = 0;		/* this far from the current one: not after it */
	int			high = end + 1; /* ... after it, or none */

	for (int step = end; high - low > 1;)
	{
		int			from_here = low + step;
		int			item = forward ? cur->at + from_here : cur->at - from_here;
		IndexTuple	itup = (IndexTuple) (cur->tuples + cur->items[item].tuple);

		if (lbt_before_bound(&so->index->keyspec, tupdesc, bound, itup, false) != forward)
			high = from_here;
		else
			low = from_here;

		/* The last one first, as mostly there is none; then gallop. */
		step = step == end ? 1 : Min(step * 2, (high - low) / 2);
		step = Max(step, 1);
	}
	return high > end ? -1 : forward ? cur->at + high : cur->at - high;
}

bool
lbt_scan_skip(IndexScanDesc scan, int ncolumns, ScanDirection past, ScanDirection next)
{
	LbtScan    *so = (LbtScan *) scan->opaque;
	LbtLeafCopy *cur = &so->cur;
	TupleDesc	tupdesc = RelationGetDescr(scan->indexRelation);
	bool		forward = ScanDirectionIsForward(past);
	LbtBound	bound = {.ncolumns = ncolumns,.past = forward};
	MemoryContext old;
	IndexTuple	itup;
	int			found;

	Assert(cur->valid && cur->tuples != NULL);
	itup = (IndexTuple) (cur->tuples + cur->items[cur->at].tuple);
	old = MemoryContextSwitchTo(lbt_go_context(so));
	lbt_bound_take(&so->index->keyspec, tupdesc, itup, ncolumns, NULL, &bound);
	MemoryContextSwitchTo(old);
	found = find_copied(so, tupdesc, &bound, forward);
	if (found >= 0)
	{
		/* lbt_gettuple() goes one on from the current item. */
		cur->at = ScanDirectionIsForward(next) == forward ? found - (forward ? 1 : -1) : found;
		so->short_groups = true;
		return false;
	}
	so->go = lbt_make_position(so, itup, ncolumns, &bound);
	lbt_scan_leave(scan, so);
	if (ncolumns == so->group_columns && past == next)
		lbt_ahead_group(scan, so, NULL, forward);
	return true;
}
