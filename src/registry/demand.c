/*
 * demand.c - demands for training, from those who raise them to those who serve them; see demand.h.
 */
#include "registry/demand.h"

#include "miscadmin.h"
#include "registry/policy.h"
#include "registry/registry.h"
#include "registry/settings.h"
#include "server/compat.h"
#include "server/guard.h"
#include "utils/timestamp.h"

/* A demand that can be served so soon is worth keeping a launcher for. */
#define SOON_MS 10000

/* Least time between two attempts to start a launcher; the second when there was no slot of late. */
#define LAUNCH_INTERVAL_MS 1000
#define NO_SLOT_INTERVAL_MS 60000

/* When the demand may be served. */
static TimestampTz
due_at(const LbtEntry *entry)
{
	return Max(entry->not_before, TimestampTzPlusMilliseconds(entry->attempted_at, lbt_naptime));
}

LbtDemand
lbt_demand_report(const LbtFile *file, const uint64 *events, int retrain_splits)
{
	LbtEntry   *entry = dshash_find(lbt_entries, file, true);
	TimestampTz now = GetCurrentTimestamp();
	dsa_pointer dead = InvalidDsaPointer;
	Size		dead_bytes = 0;
	bool		wanted;
	bool		due;

	if (entry == NULL)
		return LBT_DEMAND_NONE;
	pg_atomic_write_u64(&entry->used_at, (uint64) now);
	if (!lbt_policy_report(entry, events, retrain_splits))
	{
		dead = lbt_model_of(entry);
		dead_bytes = entry->bytes;
		lbt_policy_switch_off(entry);
	}
	wanted = entry->wanted && lbt_autotrain &&
		due_at(entry) <= TimestampTzPlusMilliseconds(now, SOON_MS);
	due = due_at(entry) <= now;
	dshash_release_lock(lbt_entries, entry);

	if (DsaPointerIsValid(dead))
		lbt_model_free(dead, dead_bytes);
	if (!wanted)
		return LBT_DEMAND_NONE;
	return lbt_launcher_wake() || !due ? LBT_DEMAND_RAISED : LBT_DEMAND_UNSERVED;
}

bool
lbt_demand_raise(const LbtFile *file, Oid oid, bool anew)
{
	volatile bool raised = false;

	if (!lbt_autotrain)
		return false;
	LBT_GUARD_BEGIN();
	{
		LbtEntry   *entry = lbt_entry_lock(file, oid);

		entry->wanted = true;
		if (anew)
			entry->not_before = 0;
		dshash_release_lock(lbt_entries, entry);
		raised = lbt_launcher_wake();
	}
	LBT_GUARD_END(raised = false);
	return raised;
}

void
lbt_demand_renew(const LbtFile *file, Oid oid, TimestampTz since)
{
	volatile bool served = true;

	LBT_GUARD_BEGIN();
	{
		LbtEntry   *entry = dshash_find(lbt_entries, file, false);

		if (entry != NULL)
		{
			served = entry->wanted || entry->changed_at >= since;
			dshash_release_lock(lbt_entries, entry);
		}
	}
	LBT_GUARD_END(served = true);
	if (!served)
		(void) lbt_demand_raise(file, oid, true);
}

/* ---- the launcher ---- */

bool
lbt_start_process(const char *name, const char *function, Datum arg, int notify_pid,
				  BackgroundWorkerHandle **handle)
{
	BackgroundWorker worker = {0};

	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_ConsistentState;
	worker.bgw_restart_time = BGW_NEVER_RESTART;
	worker.bgw_main_arg = arg;
	worker.bgw_notify_pid = notify_pid;
	strlcpy(worker.bgw_library_name, "learnedbtree", sizeof(worker.bgw_library_name));
	strlcpy(worker.bgw_function_name, function, sizeof(worker.bgw_function_name));
	strlcpy(worker.bgw_name, name, BGW_MAXLEN);
	strlcpy(worker.bgw_type, name, BGW_MAXLEN);
	if (RegisterDynamicBackgroundWorker(&worker, handle))
		return true;
	if (pg_atomic_exchange_u32(&lbt_control->told_no_worker, 1) == 0)
		ereport(LOG,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("out of background worker slots: could not start the %s", name),
				 errhint("Models are not trained in the background meanwhile. Raise max_worker_processes.")));
	return false;
}

bool
lbt_launcher_wake(void)
{
	uint64		now = (uint64) GetCurrentTimestamp();
	bool		slots = pg_atomic_read_u32(&lbt_control->told_no_worker) == 0;
	uint64		interval = slots ? LAUNCH_INTERVAL_MS : NO_SLOT_INTERVAL_MS;
	uint64		tried;

	if (pg_atomic_read_u32(&lbt_control->launcher) != 0)
	{
		lbt_wake_process(pg_atomic_read_u32(&lbt_control->launcher_proc));
		return slots;
	}
	tried = pg_atomic_read_u64(&lbt_control->launch_tried);
	if (now - tried < interval * 1000 ||
		!pg_atomic_compare_exchange_u64(&lbt_control->launch_tried, &tried, now))
		return slots;			/* as it went for others */
	return lbt_start_process("learnedbtree launcher", "lbt_launcher_main", (Datum) 0, 0, NULL) && slots;
}

bool
lbt_launcher_enter(void)
{
	uint32		none = 0;

	if (!pg_atomic_compare_exchange_u32(&lbt_control->launcher, &none, MyProcPid))
		return false;
	pg_atomic_write_u32(&lbt_control->launcher_proc, lbt_my_process());
	return true;
}

void
lbt_launcher_leave(void)
{
	uint32		me = MyProcPid;

	(void) pg_atomic_compare_exchange_u32(&lbt_control->launcher, &me, 0);

	/*
	 * Whoever raises a demand from here on may start another at once, if
	 * there are slots.
	 */
	if (pg_atomic_read_u32(&lbt_control->told_no_worker) == 0)
		pg_atomic_write_u64(&lbt_control->launch_tried, 0);
}

/* ---- demands ---- */

int
lbt_demand_databases(Oid *databases, int max, bool *later)
{
	TimestampTz now = GetCurrentTimestamp();
	dshash_seq_status status;
	LbtEntry   *entry;
	int			n = 0;

	*later = false;
	dshash_seq_init(&status, lbt_entries, false);
	while ((entry = dshash_seq_next(&status)) != NULL)
	{
		int			i = 0;

		if (!entry->wanted)
			continue;
		if (due_at(entry) > now)
		{
			*later = *later || due_at(entry) <= TimestampTzPlusMilliseconds(now, SOON_MS);
			continue;
		}
		while (i < n && databases[i] != entry->file.database)
			i++;
		if (i < n)
			continue;
		if (n < max)
			databases[n++] = entry->file.database;
		else
			*later = true;
	}
	dshash_seq_term(&status);
	return n;
}

/* The file of this database whose demand has waited longest; false when there is none now. */
static bool
find_demand(Oid database, TimestampTz now, LbtFile *file)
{
	dshash_seq_status status;
	TimestampTz oldest = DT_NOEND;
	LbtEntry   *entry;

	dshash_seq_init(&status, lbt_entries, false);
	while ((entry = dshash_seq_next(&status)) != NULL)
	{
		TimestampTz due = due_at(entry);

		if (!entry->wanted || entry->file.database != database || due > now || due >= oldest)
			continue;
		oldest = due;
		*file = entry->file;
	}
	dshash_seq_term(&status);
	return oldest != DT_NOEND;
}

bool
lbt_demand_take(Oid database, LbtFile *file, Oid *oid)
{
	TimestampTz now = GetCurrentTimestamp();
	volatile bool taken = false;

	LBT_GUARD_BEGIN();
	{
		while (!taken && find_demand(database, now, file))
		{
			LbtEntry   *entry = dshash_find(lbt_entries, file, true);

			if (entry == NULL)
				continue;
			taken = entry->wanted;
			entry->wanted = false;
			entry->attempted_at = now;
			*oid = entry->oid;
			dshash_release_lock(lbt_entries, entry);
		}
	}
	LBT_GUARD_END(taken = false);
	return taken;
}

void
lbt_demand_defer(const LbtFile *file, int ms, bool again)
{
	LbtEntry   *entry = dshash_find(lbt_entries, file, true);

	if (entry == NULL)
		return;
	entry->wanted = again;
	entry->not_before = Max(entry->not_before, TimestampTzPlusMilliseconds(GetCurrentTimestamp(), ms));
	dshash_release_lock(lbt_entries, entry);
}

void
lbt_demand_drop_database(Oid database, int ms)
{
	TimestampTz until = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), ms);
	dshash_seq_status status;
	LbtEntry   *entry;

	dshash_seq_init(&status, lbt_entries, true);
	while ((entry = dshash_seq_next(&status)) != NULL)
	{
		if (!entry->wanted || entry->file.database != database)
			continue;
		entry->wanted = false;
		entry->not_before = until;
	}
	dshash_seq_term(&status);
}
