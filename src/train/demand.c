/*
 * demand.c - when to train again, and by whom; see demand.h, and src/README,
 * "When models are trained, and by whom".
 *
 * A worker serves the demands of one database, from a place of its own:
 *
 *     free --start_worker()--> expected --lbt_worker_enter()--> serving
 *       ^                         |                                |
 *       +--- after WORKER_MS -----+------- lbt_worker_leave() -----+
 */
#include "train/demand.h"

#include "access/xact.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_database.h"
#include "postmaster/bgworker.h"
#include "server/guard.h"
#include "storage/ipc.h"
#include "storage/lmgr.h"

/* A training's cost in page visits: one for eight leaves, and a worker. */
#define LEAVES_A_VISIT 8
#define WORKER_VISITS 4096

/* To compute a prediction costs half a visit: 1.2 us against 3.4 for four. */
#define VISITS_A_PREDICTION 1.5

/* Predictions before a model is judged. */
#define JUDGED_MIN 1000

/* A worker stays for a demand due so soon. */
#define SOON_MS 4000

/* Have a worker sweep after so many new entries: 0.5 MB, if all are gone. */
#define SWEEP_ENTRIES 1000

/* How long a worker is expected. */
#define WORKER_MS 60000

/* How often the log tells of a missing slot: normal with many databases. */
#define TELL_US (60 * 60 * UINT64CONST(1000000))

/* Short transactions on many cores shall not meet at the same cache lines. */
#define REPORT_INTERVAL_US 10000

static TimestampTz last_report = 0;

static bool exit_expected = false;

List	  **lbt_truncated = NULL;	/* on the C stack; the list: in the
								 * transaction's memory */

static object_access_hook_type next_access = NULL;

/* ---- the retrain policy ---- */

/* The page visits that the model has cost, or will where leaves have split. */
static double
visits_lost(const LbtEntry *entry)
{
	const LbtSince *since = &entry->since;

	return since->moved + since->fallbacks * (VISITS_A_PREDICTION + entry->height) + since->splits;
}

/* The one rule: train again when that comes to what a training costs. */
static bool
wants_training(const LbtEntry *entry)
{
	double		cost = lbt_retrain_visits >= 0 ? lbt_retrain_visits :
		entry->nleaves / LEAVES_A_VISIT + WORKER_VISITS;

	return visits_lost(entry) >= Max(cost, 1);
}

/* Have predictions saved anything? */
static bool
pays(const LbtEntry *entry)
{
	const LbtSince *since = &entry->since;
	double		hits = (double) since->predictions - since->fallbacks;

	return since->predictions < JUDGED_MIN ||
		hits * (entry->height - VISITS_A_PREDICTION) >
		since->moved + since->fallbacks * VISITS_A_PREDICTION;
}

static void
add_events(LbtSince *since, const uint64 *events)
{
	uint64		failed = events[LBT_EV_BAD_BLOCK] + events[LBT_EV_BAD_PAGE] +
		events[LBT_EV_LOW] + events[LBT_EV_HIGH];

	since->predictions += events[LBT_EV_VERIFIED] + failed + events[LBT_EV_INSERT_PLACED] +
		events[LBT_EV_INSERT_FALLBACK];
	since->moved += events[LBT_EV_MOVED_RIGHT] + events[LBT_EV_INSERT_MOVED];
	since->fallbacks += failed + events[LBT_EV_INSERT_FALLBACK];
	since->splits += events[LBT_EV_SPLIT];
}

/* ---- workers ---- */

/* This process's, if it is a worker. */
static LbtWorker *own_place = NULL;

/* Register a worker with the server; false when there is no slot. */
static bool
register_worker(Oid database)
{
	BackgroundWorker worker = {
		.bgw_name = "learnedbtree worker",.bgw_type = "learnedbtree worker",
		.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION,
		.bgw_start_time = BgWorkerStart_ConsistentState,.bgw_restart_time = BGW_NEVER_RESTART,
		.bgw_library_name = "learnedbtree",.bgw_function_name = "lbt_worker_main",
		.bgw_main_arg = ObjectIdGetDatum(database)
	};

	return RegisterDynamicBackgroundWorker(&worker, NULL);
}

/* The place of the database's worker, or a free one, or NULL; lock is held. */
static LbtWorker *
find_place(Oid database, TimestampTz now)
{
	LbtWorker  *found = NULL;

	for (int i = 0; i < LBT_WORKERS_LIMIT; i++)
	{
		LbtWorker  *w = &lbt_control->workers[i];

		if (w->pid == 0 && lbt_ms_until(w->until, now, WORKER_MS) == 0)
			w->database = InvalidOid;
		if (w->database == database)
			return w;
		if (w->database == InvalidOid && found == NULL)
			found = w;
	}
	return found;
}

/* Have a worker serve, or sweep, a database; false if none can be started. */
static bool
start_worker(Oid database, bool sweeps)
{
	TimestampTz now = GetCurrentTimestamp();
	bool		slot = true;
	LbtWorker  *place;

	LWLockAcquire(&lbt_control->workers_lock, LW_EXCLUSIVE);
	place = find_place(database, now);
	if (place != NULL && place->database != database)
	{
		slot = register_worker(database);
		if (slot)
		{
			place->database = database;
			place->until = TimestampTzPlusMilliseconds(now, WORKER_MS);
			place->sweeps = false;
		}
	}
	if (place != NULL && place->database == database)
		place->sweeps |= sweeps;
	LWLockRelease(&lbt_control->workers_lock);

	if (!slot && lbt_log_is_due(&lbt_control->no_slot_told, TELL_US))
		ereport(LOG,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("out of background worker slots: could not start the learnedbtree worker"),
				 errhint("Models are not trained in the background meanwhile. Raise max_worker_processes.")));
	return place != NULL && slot;
}

bool
lbt_worker_enter(Oid database)
{
	LbtWorker  *place;

	LWLockAcquire(&lbt_control->workers_lock, LW_EXCLUSIVE);
	place = find_place(database, GetCurrentTimestamp());
	if (place != NULL && place->pid == 0)
	{
		place->database = database;
		place->pid = MyProcPid;
		own_place = place;
	}
	LWLockRelease(&lbt_control->workers_lock);
	return own_place != NULL;
}

void
lbt_worker_leave(void)
{
	if (own_place == NULL)
		return;
	LWLockAcquire(&lbt_control->workers_lock, LW_EXCLUSIVE);
	own_place->pid = 0;
	own_place->until = 0;
	own_place = NULL;
	LWLockRelease(&lbt_control->workers_lock);
}

bool
lbt_worker_sweeps(void)
{
	bool		sweeps;

	LWLockAcquire(&lbt_control->workers_lock, LW_EXCLUSIVE);
	sweeps = own_place->sweeps;
	own_place->sweeps = false;
	LWLockRelease(&lbt_control->workers_lock);
	return sweeps;
}

/* ---- demands ---- */

/* In how many milliseconds may the demand be served? */
static int64
due_in(const LbtEntry *entry)
{
	TimestampTz now = GetCurrentTimestamp();
	TimestampTz rested = TimestampTzPlusMilliseconds(entry->attempted_at, lbt_naptime);

	return Max(lbt_ms_until(entry->not_before, now, LBT_PAUSE_MAX_MS),
			   lbt_ms_until(rested, now, lbt_naptime));
}

/*
 * Add an index's events to its totals, tell the retrain policy, mark the index
 * as used, and have a worker started where a training is wanted.  May raise
 * errors.
 */
static void
report(const LbtIndex *index, const uint64 *events)
{
	LbtEntry   *entry;
	bool		off;
	bool		due;

	/* Without a slot for a worker, after half as many again. */
	if (pg_atomic_read_u32(&lbt_control->unswept) >= SWEEP_ENTRIES)
		pg_atomic_write_u32(&lbt_control->unswept,
							start_worker(pg_atomic_read_u32(&lbt_control->unswept_database),
										 true) ? 0 : SWEEP_ENTRIES / 2);
	entry = dshash_find(lbt_entries, &index->file, true);

	/* An error of the exit would end it: then nothing is made or freed. */
	if (entry == NULL && proc_exit_inprogress)
		return;
	if (entry == NULL)
		entry = lbt_entry_lock(&index->file);
	for (int i = 0; i < LBT_NEVENTS; i++)
		entry->totals.events[i] += events[i];
	if (events[LBT_EV_TRAINING] > 0)
		entry->totals.last_trained = GetCurrentTimestamp();
	if (!lbt_same_file(&entry->file, &index->file))
	{
		/* These are counts of a file that has been replaced. */
		dshash_release_lock(lbt_entries, entry);
		return;
	}
	pg_atomic_write_u64(&entry->used_at, (uint64) GetCurrentTimestamp());

	/* Without the leaf cache, predictions fail that are right with it. */
	if (lbt_enable_leaf_cache)
		add_events(&entry->since, events);
	off = entry->state == LBT_READY && !pays(entry) && !proc_exit_inprogress;
	if (off)
		lbt_entry_pause(entry, LBT_PAUSE_WASTED_MS);
	if (lbt_autotrain && (off || (entry->state == LBT_READY && wants_training(entry))))
		entry->wanted = true;
	due = entry->wanted && lbt_autotrain && due_in(entry) <= SOON_MS;
	if (off)
		lbt_entry_replace_model(entry, LBT_NOT_PAYING, InvalidDsaPointer, 0);
	else
		dshash_release_lock(lbt_entries, entry);
	if (due)
		(void) start_worker(index->file.database, false);
}

bool
lbt_demand_raise(const LbtFile *file)
{
	volatile bool raised = false;

	if (!lbt_autotrain)
		return false;
	LBT_GUARD_BEGIN();
	{
		LbtEntry   *entry = lbt_entry_lock(file);
		bool		due = due_in(entry) <= SOON_MS;

		entry->wanted = true;
		dshash_release_lock(lbt_entries, entry);
		raised = !due || start_worker(file->database, false);
	}
	LBT_GUARD_END(raised = false);
	return raised;
}

/* This database's oldest demand that is due; see lbt_demand_take(). */
static bool
find_demand(LbtFile *file, int *next_in)
{
	dshash_seq_status status;
	TimestampTz oldest = DT_NOEND;
	LbtEntry   *entry;

	*next_in = -1;
	dshash_seq_init(&status, lbt_entries, false);
	while ((entry = dshash_seq_next(&status)) != NULL)
	{
		int64		wait;

		if (!entry->wanted || entry->file.database != MyDatabaseId)
			continue;
		wait = due_in(entry);
		if (wait <= SOON_MS && (*next_in < 0 || wait < *next_in))
			*next_in = (int) wait;
		if (wait > 0 || entry->attempted_at >= oldest)
			continue;
		oldest = entry->attempted_at;
		*file = entry->file;
	}
	dshash_seq_term(&status);
	return oldest != DT_NOEND;
}

bool
lbt_demand_take(LbtFile *file, int *next_in)
{
	volatile bool taken = false;

	LBT_GUARD_BEGIN();
	{
		while (!taken && find_demand(file, next_in))
		{
			LbtEntry   *entry = dshash_find(lbt_entries, file, true);

			if (entry == NULL)
				continue;
			taken = entry->wanted;
			entry->attempted_at = GetCurrentTimestamp();
			dshash_release_lock(lbt_entries, entry);
		}
	}
	LBT_GUARD_END((taken = false, *next_in = -1));
	return taken;
}

/* ---- reports ---- */

void
lbt_report(LbtIndex *index)
{
	index->counts.misses = 0;
	if (!index->shareable || !lbt_guard_may_enter())
		return;
	LBT_GUARDED(report(index, index->counts.events), (void) 0);
	memset(index->counts.events, 0, sizeof(index->counts.events));
}

void
lbt_report_all(void)
{
	while (!dlist_is_empty(&lbt_dirty_indexes))
	{
		LbtIndex   *index = dlist_container(LbtIndex, counts.node,
											dlist_pop_head_node(&lbt_dirty_indexes));

		index->counts.dirty = false;
		lbt_report(index);
	}
	last_report = GetCurrentTimestamp();
}

/* ---- drops, transactions, the exit ---- */

/* An index is about to be dropped: forget it (src/README, "Shared models"). */
static void
forget_dropped(Oid index)
{
	LbtFile		file;

	if (!lbt_index_file(index, &file) || !lbt_registry_attach())
		return;
	lbt_report_all();			/* counts of it would make a new entry later */
	lbt_registry_forget(&file);
}

/* The models of tables' indexes; their counts stay. */
void
lbt_forget_models(const List *tables)
{
	ListCell   *lc;

	foreach(lc, tables)
	{
		Relation	table = RelationIdGetRelation(lfirst_oid(lc));
		List	   *indexes = RelationIsValid(table) ? RelationGetIndexList(table) : NIL;
		LbtFile		file;
		ListCell   *index;

		if (RelationIsValid(table))
			RelationClose(table);
		foreach(index, indexes)
			if (lbt_index_file(lfirst_oid(index), &file) && lbt_registry_attach())
				lbt_registry_reset(&file);
		list_free(indexes);
	}
}

/*
 * (The hook comes before the table is locked, but one whose file is of this
 * transaction is.)
 */
static void
note_truncated(Oid oid)
{
	Relation	table = lbt_holds_lock(oid, AccessExclusiveLock) ?
		RelationIdGetRelation(oid) : NULL;
	bool		in_place = RelationIsValid(table) && lbt_relation_is_new_file(table);

	if (RelationIsValid(table))
		RelationClose(table);
	if (!in_place)
		return;
	lbt_forget_models(list_make1_oid(oid));
	if (lbt_truncated != NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(TopTransactionContext);

		*lbt_truncated = lappend_oid(*lbt_truncated, oid);
		MemoryContextSwitchTo(old);
	}
}

static void
at_access(ObjectAccessType access, Oid class, Oid object, int sub, void *arg)
{
	if (next_access)
		next_access(access, class, object, sub, arg);

	/* A drop of what depended on a temporary object may come with the exit. */
	if (class != RelationRelationId || sub != 0 || proc_exit_inprogress)
		return;
	if (access == OAT_DROP)
		forget_dropped(object);
	else if (access == OAT_TRUNCATE)
		note_truncated(object);
}

/*
 * Reads no catalog: the files are gone, and an error before the commit would
 * bring back the database without them.
 */
void
lbt_forget_database(Oid database)
{
	ListCell   *lc;

	foreach(lc, lbt_registry_attach() ? lbt_registry_list() : NIL)
		if (((const LbtFile *) lfirst(lc))->database == database)
			lbt_registry_forget(lfirst(lc));
}

/*
 * While shared memory is still mapped.  An error ends the process, see
 * lbt_guard_has_failed.
 */
static void
finish_at_exit(int code, Datum arg)
{
	if (lbt_control == NULL)
		return;
	LWLockReleaseAll();
	if (!lbt_guard_has_failed)
		lbt_report_all();
}

void
lbt_expect_exit(void)
{
	if (exit_expected)
		return;
	before_shmem_exit(lbt_registry_leave, (Datum) 0);
	before_shmem_exit(finish_at_exit, (Datum) 0);
	exit_expected = true;
}

void
lbt_report_if_due(void)
{
	TimestampTz now;

	if (dlist_is_empty(&lbt_dirty_indexes))
		return;
	now = GetCurrentTimestamp();
	if (now < last_report || now - last_report >= REPORT_INTERVAL_US)
		lbt_report_all();
}

static void
at_transaction_event(XactEvent event, void *arg)
{
	lbt_expect_exit();
	if (proc_exit_inprogress)
		return;					/* finish_at_exit() comes */
	if (event == XACT_EVENT_PRE_COMMIT || event == XACT_EVENT_PARALLEL_PRE_COMMIT ||
		event == XACT_EVENT_PRE_PREPARE)
		lbt_report_if_due();
	else
		lbt_views_trim();
}

void
lbt_report_init(void)
{
	RegisterXactCallback(at_transaction_event, NULL);
	next_access = object_access_hook;
	object_access_hook = at_access;
}
