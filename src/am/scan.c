/*
 * scan.c - the scan callbacks, and which of the two engines serves a scan.
 *
 * Ours serves plain keys and arrays on an index that has a model; nbtree's serves everything else, from the first
 * call after a rescan to the last.  nbtree keeps its state in scan->opaque, so ours steps aside while
 * one of its functions runs; that state is made only when a scan first needs it.
 *
 * Events are counted for the index, whichever scan they are of.  In an instrumented statement each callback adds
 * what was counted while it ran to the scan's own counts, too.
 */
#include "am/am.h"

#include "am/scan.h"
#include "registry/counters.h"
#include "registry/settings.h"
#include "train/train.h"
#include "nodes/tidbitmap.h"
#include "server/executor.h"
#include "utils/memutils.h"

IndexScanDesc
lbt_beginscan(Relation rel, int nkeys, int norderbys)
{
	IndexScanDesc scan = RelationGetIndexScan(rel, nkeys, norderbys);
	LbtScan    *so = palloc(sizeof(LbtScan));

	so->index = lbt_index_get(rel);
	so->ours = false;
	so->asked_training = false;
	so->cur = (LbtLeafCopy) {.valid = false};
	so->mark = (LbtLeafCopy) {.valid = false};
	so->mark_at = -1;
	so->any_dead = false;
	so->room = NULL;
	so->bitmap = false;
	so->array_context = NULL;
	so->ahead = NULL;
	so->slot_generation = 0;
	so->btree = NULL;
	memset(so->counts, 0, sizeof(so->counts));
	scan->opaque = so;
	scan->xs_itupdesc = RelationGetDescr(rel);
	return scan;
}

/* Let nbtree's scan state take our place, made now if need be; back with leave_btree(). */
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

static inline void
leave_btree(IndexScanDesc scan, LbtScan *so)
{
	scan->opaque = so;
}

/* Is there a model to go by, or can there be one?  Asked first: to look at keys takes longer, sort keys above all. */
static inline bool
may_have_model(LbtScan *so)
{
	lbt_index_update(so->index);
	return likely(so->index->state == LBT_READY) || (!so->asked_training && lbt_may_ask(so->index));
}

/* Is there one, for keys that we serve?  Makes one if this index never had its chance. */
static inline bool
have_model(IndexScanDesc scan, LbtScan *so)
{
	if (likely(so->index->state == LBT_READY))
		return true;
	so->asked_training = true;
	lbt_train_on_use(scan->indexRelation, so->index);
	return so->index->state == LBT_READY;
}

/* Add to the scan's counts what has happened since these were its index's events. */
static void
add_counts(LbtScan *so, const uint64 *events)
{
	for (int i = 0; i < LBT_SCAN_EVENTS; i++)
		so->counts[i] += so->index->events[i] - events[i];
}

static void
rescan(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey orderbys, int norderbys)
{
	LbtScan    *so = (LbtScan *) scan->opaque;
	bool		was_btree = !so->ours && so->btree != NULL;

	so->mark_at = -1;
	if (so->cur.valid)
		lbt_scan_leave(scan, so);
	if (so->mark.valid)
		lbt_leafcopy_release(&so->mark);
	if (so->slot_generation != 0 || so->ahead != NULL)
		lbt_ahead_stop(so);
	so->ours = false;
	if (lbt_enable && scan->parallel_scan == NULL && so->index->learned)
	{
		if (keys && scan->numberOfKeys > 0)
			memmove(scan->keyData, keys, scan->numberOfKeys * sizeof(ScanKeyData));
		so->ours = may_have_model(so) && lbt_scan_interval(scan, so) && have_model(scan, so);
	}
	if (so->ours)
	{
		so->drop_pin = lbt_scan_drops_pin(scan);
		if (unlikely(was_btree))
		{
			/* It may still pin the leaf it was on. */
			enter_btree(scan, so);
			btrescan(scan, NULL, 0, NULL, 0);
			leave_btree(scan, so);
		}
		return;
	}
	if (so->index->learned || !lbt_is_btree(scan->indexRelation))
		lbt_count(so->index, LBT_EV_DELEGATED);	/* else it is not served any more */
	enter_btree(scan, so);
	btrescan(scan, keys, nkeys, orderbys, norderbys);
	leave_btree(scan, so);
}

void
lbt_rescan(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey orderbys, int norderbys)
{
	LbtScan    *so = (LbtScan *) scan->opaque;
	uint64		events[LBT_SCAN_EVENTS];

	if (likely(!lbt_instrumented))
	{
		rescan(scan, keys, nkeys, orderbys, norderbys);
		return;
	}
	memcpy(events, so->index->events, sizeof(events));
	rescan(scan, keys, nkeys, orderbys, norderbys);
	add_counts(so, events);
}

/* Move to the next item in this direction; false at the end of the interval. */
static inline bool
next_item(IndexScanDesc scan, LbtScan *so, ScanDirection dir)
{
	if (!so->cur.valid)
		return lbt_scan_first(scan, so, dir);
	if (ScanDirectionIsForward(dir))
	{
		if (++so->cur.at < so->cur.nitems)
			return true;
	}
	else if (--so->cur.at >= 0)
		return true;
	return lbt_scan_step(scan, so, dir);
}

static pg_attribute_always_inline bool
gettuple(IndexScanDesc scan, ScanDirection dir)
{
	LbtScan    *so = (LbtScan *) scan->opaque;
	LbtItem    *item;

	if (!so->ours)
	{
		bool		found;

		enter_btree(scan, so);
		found = btgettuple(scan, dir);
		leave_btree(scan, so);
		return found;
	}
	scan->xs_recheck = false;
	if (scan->kill_prior_tuple && so->cur.valid)
	{
		so->cur.items[so->cur.at].dead = true;
		so->any_dead = true;
	}
	if (!next_item(scan, so, dir))
		return false;
	item = &so->cur.items[so->cur.at];
	scan->xs_heaptid = item->tid;
	if (scan->xs_want_itup)
		scan->xs_itup = (IndexTuple) (so->cur.tuples + item->tuple);
	return true;
}

static pg_noinline bool
gettuple_counted(IndexScanDesc scan, ScanDirection dir)
{
	LbtScan    *so = (LbtScan *) scan->opaque;
	uint64		events[LBT_SCAN_EVENTS];
	bool		found;

	memcpy(events, so->index->events, sizeof(events));
	found = gettuple(scan, dir);
	add_counts(so, events);
	return found;
}

bool
lbt_gettuple(IndexScanDesc scan, ScanDirection dir)
{
	return unlikely(lbt_instrumented) ? gettuple_counted(scan, dir) : gettuple(scan, dir);
}

static int64
getbitmap(IndexScanDesc scan, TIDBitmap *tbm)
{
	LbtScan    *so = (LbtScan *) scan->opaque;
	int64		ntids = 0;

	if (!so->ours)
	{
		enter_btree(scan, so);
		ntids = btgetbitmap(scan, tbm);
		leave_btree(scan, so);
		return ntids;
	}
	so->bitmap = true;
	for (bool more = lbt_scan_first(scan, so, ForwardScanDirection); more;
		 more = lbt_scan_step(scan, so, ForwardScanDirection))
	{
		for (int i = 0; i < so->cur.nitems; i++)
			tbm_add_tuples(tbm, &so->cur.items[i].tid, 1, false);
		ntids += so->cur.nitems;
	}
	return ntids;
}

int64
lbt_getbitmap(IndexScanDesc scan, TIDBitmap *tbm)
{
	LbtScan    *so = (LbtScan *) scan->opaque;
	uint64		events[LBT_SCAN_EVENTS];
	int64		ntids;

	memcpy(events, so->index->events, sizeof(events));
	ntids = getbitmap(scan, tbm);
	add_counts(so, events);
	return ntids;
}

bool
lbt_node_counts(PlanState *node, LbtScanCounts *counts)
{
	Relation	rel;
	IndexScanDesc scan;

	if (IsA(node, IndexScanState))
	{
		rel = castNode(IndexScanState, node)->iss_RelationDesc;
		scan = castNode(IndexScanState, node)->iss_ScanDesc;
	}
	else if (IsA(node, IndexOnlyScanState))
	{
		rel = castNode(IndexOnlyScanState, node)->ioss_RelationDesc;
		scan = castNode(IndexOnlyScanState, node)->ioss_ScanDesc;
	}
	else if (IsA(node, BitmapIndexScanState))
	{
		rel = castNode(BitmapIndexScanState, node)->biss_RelationDesc;
		scan = castNode(BitmapIndexScanState, node)->biss_ScanDesc;
	}
	else
		return false;
	if (rel == NULL || rel->rd_indam->amrescan != lbt_rescan)
		return false;
	memset(counts, 0, sizeof(*counts));
	counts->index = RelationGetRelid(rel);
	if (scan)
		memcpy(counts->events, ((LbtScan *) scan->opaque)->counts, sizeof(counts->events));
	return true;
}

void
lbt_endscan(IndexScanDesc scan)
{
	LbtScan    *so = (LbtScan *) scan->opaque;

	if (so->cur.valid)
	{
		so->mark_at = -1;
		lbt_scan_leave(scan, so);
	}
	lbt_leafcopy_release(&so->mark);
	lbt_ahead_free(so);
	if (so->btree != NULL)
	{
		enter_btree(scan, so);
		btendscan(scan);
		leave_btree(scan, so);
	}
	for (int i = 0; i < 2; i++)
	{
		LbtLeafCopy *copy = i == 0 ? &so->cur : &so->mark;

		if (copy->items)
			pfree(copy->items);
		if (copy->tuples)
			pfree(copy->tuples);
	}
	if (so->room)
		pfree(so->room);
	if (so->array_context)
		MemoryContextDelete(so->array_context);
	pfree(so);
}

void
lbt_markpos(IndexScanDesc scan)
{
	LbtScan    *so = (LbtScan *) scan->opaque;

	if (!so->ours)
	{
		enter_btree(scan, so);
		btmarkpos(scan);
		leave_btree(scan, so);
		return;
	}
	lbt_leafcopy_release(&so->mark);
	so->mark_at = so->cur.valid ? so->cur.at : -1;
}

void
lbt_restrpos(IndexScanDesc scan)
{
	LbtScan    *so = (LbtScan *) scan->opaque;

	if (!so->ours)
	{
		enter_btree(scan, so);
		btrestrpos(scan);
		leave_btree(scan, so);
		return;
	}
	if (so->mark_at >= 0)
	{
		so->cur.at = so->mark_at;
		return;
	}
	if (so->cur.valid)
		lbt_scan_leave(scan, so);
	lbt_ahead_stop(so);
	if (so->mark.valid)
	{
		/* Back onto the marked leaf, copy and pin and all; the mark is on the current leaf again. */
		LbtLeafCopy spare = so->cur;

		so->cur = so->mark;
		so->mark = spare;
		so->mark_at = so->cur.at;
	}
}
