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
#include "storage/ipc.h"
#include "utils/timestamp.h"

#define FLUSH_INTERVAL_US 10000

static dshash_table *totals = NULL;
static TimestampTz last_flush = 0;

#define STATS_KEY_BYTES (2 * sizeof(Oid))

dshash_table_handle
lbt_stats_create(dsa_area *area, int tranche)
{
	dshash_parameters params = lbt_dshash_parameters(STATS_KEY_BYTES, sizeof(LbtStats), tranche);
	dshash_table *table = dshash_create(area, &params, NULL);
	dshash_table_handle handle = dshash_get_hash_table_handle(table);

	dshash_detach(table);
	return handle;
}

void
lbt_stats_attach(dsa_area *area, int tranche, dshash_table_handle handle)
{
	dshash_parameters params = lbt_dshash_parameters(STATS_KEY_BYTES, sizeof(LbtStats), tranche);

	totals = dshash_attach(area, &params, handle, NULL);
}

/* An index's totals, made if need be, locked. */
static LbtStats *
lock_totals(Oid database, Oid oid)
{
	Oid			key[2] = {database, oid};
	bool		found;
	LbtStats   *stats = dshash_find_or_insert(totals, key, &found);

	if (!found)
		memset((char *) stats + STATS_KEY_BYTES, 0, sizeof(LbtStats) - STATS_KEY_BYTES);
	return stats;
}

static void
add_to_totals(const LbtIndex *index, const uint64 *events)
{
	TimestampTz now = GetCurrentTimestamp();
	LbtStats   *stats = lock_totals(index->file.database, index->oid);

	for (int i = 0; i < LBT_NEVENTS; i++)
		stats->events[i] += events[i];
	if (events[LBT_EV_TRAINING] > 0)
		stats->last_trained = now;
	dshash_release_lock(totals, stats);
}

static LbtDemand
flush_index(LbtIndex *index)
{
	volatile LbtDemand demand = LBT_DEMAND_NONE;
	uint64		events[LBT_NEVENTS];

	for (int i = 0; i < LBT_NEVENTS; i++)
		events[i] = lbt_count_unflushed(index, i);
	LBT_GUARD_BEGIN();
	{
		demand = lbt_demand_report(&index->file, events, index->retrain_splits);
		add_to_totals(index, events);
	}
	LBT_GUARD_END((void) 0);
	memcpy(index->flushed, index->events, sizeof(index->flushed));
	return demand;
}

LbtDemand
lbt_counters_flush_index(LbtIndex *index)
{
	return index->dirty ? flush_index(index) : LBT_DEMAND_NONE;
}

void
lbt_counters_flush(void)
{
	LbtIndex   *index;

	while ((index = lbt_next_dirty()) != NULL)
		(void) flush_index(index);
	last_flush = GetCurrentTimestamp();
}

void
lbt_counters_before_commit(void)
{
	TimestampTz now;

	if (!lbt_any_dirty())
		return;
	now = GetCurrentTimestamp();
	if (now >= last_flush && now - last_flush < FLUSH_INTERVAL_US)
		return;
	lbt_counters_flush();
}

static void
get(Oid oid, LbtStats *out)
{
	Oid			all[2] = {MyDatabaseId, InvalidOid};
	Oid			key[2] = {MyDatabaseId, oid};
	LbtStats   *stats;

	stats = dshash_find(totals, key, false);
	if (stats != NULL)
	{
		*out = *stats;
		dshash_release_lock(totals, stats);
	}
	stats = dshash_find(totals, all, false);
	if (stats != NULL)
	{
		out->reset_at = Max(out->reset_at, stats->reset_at);
		dshash_release_lock(totals, stats);
	}
}

void
lbt_stats_get(Oid oid, LbtStats *out)
{
	memset(out, 0, sizeof(LbtStats));
	if (totals == NULL)
		return;
	LBT_GUARD_BEGIN();
	{
		get(oid, out);
	}
	LBT_GUARD_END((void) 0);
}

static void
set_to_zero(LbtStats *stats, TimestampTz now)
{
	memset((char *) stats + STATS_KEY_BYTES, 0, sizeof(LbtStats) - STATS_KEY_BYTES);
	stats->reset_at = now;
}

void
lbt_stats_reset(Oid oid)
{
	TimestampTz now = GetCurrentTimestamp();
	dshash_seq_status status;
	LbtStats   *stats;

	if (totals == NULL)
		return;

	/* What can fail for want of memory comes first. */
	stats = lock_totals(MyDatabaseId, oid);
	set_to_zero(stats, now);
	dshash_release_lock(totals, stats);
	if (!OidIsValid(oid))
	{
		dshash_seq_init(&status, totals, true);
		while ((stats = dshash_seq_next(&status)) != NULL)
			if (stats->database == MyDatabaseId)
				set_to_zero(stats, now);
		dshash_seq_term(&status);
	}
}

void
lbt_stats_forget(Oid database, Oid oid)
{
	Oid			key[2] = {database, oid};
	dshash_seq_status status;
	LbtStats   *stats;

	if (totals == NULL)
		return;
	if (OidIsValid(oid))
	{
		if (!dshash_delete_key(totals, key))
			return;
	}
	else
	{
		dshash_seq_init(&status, totals, true);
		while ((stats = dshash_seq_next(&status)) != NULL)
			if (stats->database == database)
				dshash_delete_current(&status);
		dshash_seq_term(&status);
	}
}

static bool
any(Oid database, Oid oid)
{
	Oid			key[2] = {database, oid};
	LbtStats   *stats = dshash_find(totals, key, false);

	if (stats == NULL)
		return false;
	dshash_release_lock(totals, stats);
	return true;
}

bool
lbt_stats_any(Oid database, Oid oid)
{
	volatile bool found = false;

	if (totals == NULL)
		return false;
	LBT_GUARD_BEGIN();
	{
		found = any(database, oid);
	}
	LBT_GUARD_END(found = true);
	return found;
}

uint32
lbt_stats_copy(LbtStats **copy)
{
	uint32		capacity = 64;
	uint32		n = 0;
	dshash_seq_status status;
	LbtStats   *stats;

	*copy = palloc(capacity * sizeof(LbtStats));
	if (totals == NULL)
		return 0;
	dshash_seq_init(&status, totals, false);
	while ((stats = dshash_seq_next(&status)) != NULL)
	{
		if (n == capacity)
			*copy = repalloc_huge(*copy, (Size) (capacity *= 2) * sizeof(LbtStats));
		(*copy)[n++] = *stats;
	}
	dshash_seq_term(&status);
	return n;
}
