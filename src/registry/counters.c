/*
 * counters.c - per-index event counts; see counters.h.
 */
#include "registry/counters.h"

#include "miscadmin.h"
#include "server/guard.h"
#include "utils/timestamp.h"

static void
set_to_zero(LbtStats *stats, TimestampTz reset_at)
{
	memset((char *) stats + LBT_STATS_KEY_BYTES, 0, sizeof(LbtStats) - LBT_STATS_KEY_BYTES);
	stats->reset_at = reset_at;
}

/* An index's totals, made if needed, locked. */
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

void
lbt_stats_add(LbtIndex *index, const uint64 *events)
{
	LbtStats   *stats = lock_totals(index->file.database, index->oid);

	for (int i = 0; i < LBT_NEVENTS; i++)
		stats->events[i] += events[i];
	if (events[LBT_EV_TRAINING] > 0)
		stats->last_trained = GetCurrentTimestamp();
	dshash_release_lock(lbt_totals, stats);
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

void
lbt_stats_forget(Oid database, Oid oid)
{
	Oid			key[2] = {database, oid};

	LBT_GUARDED((void) dshash_delete_key(lbt_totals, key), (void) 0);
}

List *
lbt_stats_copy(void)
{
	List	   *copies = NIL;
	dshash_seq_status status;
	LbtStats   *stats;

	dshash_seq_init(&status, lbt_totals, false);
	while ((stats = dshash_seq_next(&status)) != NULL)
	{
		LbtStats   *copy = palloc(sizeof(LbtStats));

		*copy = *stats;
		copies = lappend(copies, copy);
	}
	dshash_seq_term(&status);
	return copies;
}
