/*
 * report.c - this backend's counts, reported; see report.h.
 *
 * Counts are reported before a commit, at most every 10 ms, so that short
 * transactions on many cores do not meet at the same cache lines, and at
 * backend exit.  Not after the commit: an error there would bring the server
 * down.  Counts of aborted transactions wait for the next commit.
 */
#include "train/report.h"

#include "access/xact.h"
#include "registry/counters.h"
#include "server/guard.h"
#include "train/demand.h"
#include "utils/timestamp.h"

#define REPORT_INTERVAL_US 10000

static TimestampTz last_report = 0;

bool
lbt_report(LbtIndex *index)
{
	volatile bool unserved = false;
	uint64		events[LBT_NEVENTS];
	int			splits = index->serving.options.retrain_splits;

	if (!index->shareable || !lbt_guard_may_enter())
		return false;
	for (int i = 0; i < LBT_NEVENTS; i++)
		events[i] = lbt_count_unflushed(index, i);
	LBT_GUARD_BEGIN();
	{
		unserved = lbt_demand_report(&index->file, index->oid, events,
									 splits > 0 ? splits : lbt_retrain_splits);
		lbt_stats_add(index, events);
	}
	LBT_GUARD_END((void) 0);
	memcpy(index->counts.reported, index->counts.events, sizeof(index->counts.reported));
	return unserved;
}

void
lbt_report_all(void)
{
	while (!dlist_is_empty(&lbt_dirty_indexes))
	{
		LbtIndex   *index = dlist_container(LbtIndex, counts.node,
											dlist_pop_head_node(&lbt_dirty_indexes));

		index->counts.dirty = false;
		(void) lbt_report(index);
	}
	last_report = GetCurrentTimestamp();
}

static void
report_at_exit(void)
{
	if (!lbt_guard_has_failed)
		lbt_report_all();
}

static void
report_before_commit(XactEvent event, void *arg)
{
	TimestampTz now;

	if (dlist_is_empty(&lbt_dirty_indexes) ||
		!(event == XACT_EVENT_PRE_COMMIT || event == XACT_EVENT_PARALLEL_PRE_COMMIT ||
		  event == XACT_EVENT_PRE_PREPARE))
		return;
	now = GetCurrentTimestamp();
	if (now < last_report || now - last_report >= REPORT_INTERVAL_US)
		lbt_report_all();
}

void
lbt_report_init(void)
{
	RegisterXactCallback(report_before_commit, NULL);
	lbt_at_exit(report_at_exit);
}
