/*
 * counters.c - per-index event counts; see counters.h.
 *
 * Lookups count in LbtIndex, private to the backend, and its events only grow: a scan takes the difference of two
 * moments for its own, whatever is flushed between (am/scan.c).  Before a commit, at most every 10 ms (so that short
 * transactions on many cores do not meet at the same cache lines), and at backend exit the counts are
 * added to the shared totals under their hash partition's lock.  Not after the commit: an error there
 * would bring the server down.  Counts of aborted transactions wait for the next commit.
 */
#include "registry/counters.h"

#include "miscadmin.h"
#include "server/guard.h"
#include "utils/timestamp.h"

#define FLUSH_INTERVAL_US 10000

static TimestampTz last_flush = 0;

static void
set_to_zero(LbtStats *stats, TimestampTz reset_at)
{
	memset((char *) stats + LBT_STATS_KEY_BYTES, 0, sizeof(LbtStats) - LBT_STATS_KEY_BYTES);
	stats->reset_at = reset_at;
}

/* An index's totals, made if need be, locked. */
static LbtStats *
lock_totals(Oid database, Oid oid)
{
	Oid			key[2] = {database, oid};
	bool		found;
	LbtStats   *stats = dshash_find_or_insert(lbt_totals, key, &found);

	if (!found)
		set_to_zero(stats, 0);
	return stats;
}

bool
lbt_counters_flush_index(LbtIndex *index)
{
	volatile bool unserved = false;
	uint64		events[LBT_NEVENTS];
	int			splits = index->options.retrain_splits;

	if (!index->shareable || !lbt_guard_may_enter())
		return false;
	for (int i = 0; i < LBT_NEVENTS; i++)
		events[i] = lbt_count_unflushed(index, i);
	LBT_GUARD_BEGIN();
	{
		LbtStats   *stats;

		unserved = lbt_demand_report(&index->file, index->oid, events, index->timing.times, index->changed_at,
									 splits > 0 ? splits : lbt_retrain_splits);
		stats = lock_totals(index->file.database, index->oid);
		for (int i = 0; i < LBT_NEVENTS; i++)
			stats->events[i] += events[i];
		if (events[LBT_EV_TRAINING] > 0)
			stats->last_trained = GetCurrentTimestamp();
		dshash_release_lock(lbt_totals, stats);
	}
	LBT_GUARD_END((void) 0);
	memcpy(index->flushed, index->events, sizeof(index->flushed));
	memset(index->timing.times, 0, sizeof(index->timing.times));
	return unserved;
}

void
lbt_counters_flush(void)
{
	while (!dlist_is_empty(&lbt_dirty_indexes))
	{
		LbtIndex   *index = dlist_container(LbtIndex, dirty_node, dlist_pop_head_node(&lbt_dirty_indexes));

		index->dirty = false;
		(void) lbt_counters_flush_index(index);
	}
	last_flush = GetCurrentTimestamp();
}

void
lbt_counters_before_commit(void)
{
	TimestampTz now = dlist_is_empty(&lbt_dirty_indexes) ? 0 : GetCurrentTimestamp();

	if (now != 0 && (now < last_flush || now - last_flush >= FLUSH_INTERVAL_US))
		lbt_counters_flush();
}

void
lbt_stats_get(Oid oid, LbtStats *out)
{
	Oid			key[2] = {MyDatabaseId, oid};

	memset(out, 0, sizeof(LbtStats));
	if (lbt_control == NULL)
		return;
	LBT_GUARD_BEGIN();
	{
		LbtStats   *stats = dshash_find(lbt_totals, key, false);

		if (stats != NULL)
		{
			*out = *stats;
			dshash_release_lock(lbt_totals, stats);
		}
	}
	LBT_GUARD_END((void) 0);
}

void
lbt_stats_reset(Oid oid)
{
	TimestampTz now = GetCurrentTimestamp();
	dshash_seq_status status;
	LbtStats   *stats;

	if (lbt_control == NULL)
		return;
	if (OidIsValid(oid))
	{
		stats = lock_totals(MyDatabaseId, oid);
		set_to_zero(stats, now);
		dshash_release_lock(lbt_totals, stats);
		return;
	}
	dshash_seq_init(&status, lbt_totals, true);
	while ((stats = dshash_seq_next(&status)) != NULL)
		if (stats->database == MyDatabaseId)
			set_to_zero(stats, now);
	dshash_seq_term(&status);
}

static void
forget(Oid database, Oid oid)
{
	Oid			key[2] = {database, oid};
	dshash_seq_status status;
	LbtStats   *stats;

	if (OidIsValid(oid))
	{
		(void) dshash_delete_key(lbt_totals, key);
		return;
	}
	dshash_seq_init(&status, lbt_totals, true);
	while ((stats = dshash_seq_next(&status)) != NULL)
		if (stats->database == database)
			dshash_delete_current(&status);
	dshash_seq_term(&status);
}

void
lbt_stats_forget(Oid database, Oid oid)
{
	if (lbt_control != NULL)
		LBT_GUARDED(forget(database, oid), (void) 0);
}

uint32
lbt_stats_copy(LbtStats **copy)
{
	uint32		capacity = 64;
	uint32		n = 0;
	dshash_seq_status status;
	LbtStats   *stats;

	*copy = palloc(capacity * sizeof(LbtStats));
	if (lbt_control == NULL)
		return 0;
	dshash_seq_init(&status, lbt_totals, false);
	while ((stats = dshash_seq_next(&status)) != NULL)
	{
		if (n == capacity)
			*copy = repalloc_huge(*copy, (Size) (capacity *= 2) * sizeof(LbtStats));
		(*copy)[n++] = *stats;
	}
	dshash_seq_term(&status);
	return n;
}
