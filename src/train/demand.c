/*
 * demand.c - when to train again, and by whom; see demand.h.
 *
 * Counts are reported before a commit, at most every 10 ms, so that short
 * transactions on many cores do not meet at the same cache lines, and at
 * exit.  Not after the commit: an error there would bring the server down.
 *
 * The retrain policy weighs page visits: a descent of a tree of height h
 * visits h pages, a lookup that the model answers one, a step to the right one
 * more.  src/README says when a training is wanted and when a model pays.
 *
 * A demand is a flag in the index's entry, raised by a report or a first use.
 * It stays until a training has ended, in whatever process.  A worker serves
 * the demands of one database (train/worker.c), from a place of its own:
 *
 *     free --start_worker()--> expected --lbt_worker_enter()--> serving
 *       ^                         |                                |
 *       +--- after WORKER_MS -----+------- lbt_worker_leave() -----+
 *
 * Nobody relies on a worker that has been expected for COME_MS, nor on one for
 * which the server had no slot: that place is free after NO_SLOT_MS.
 */
#include "train/demand.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "server/guard.h"
#include "storage/latch.h"
#include "storage/procarray.h"
#include "utils/timestamp.h"

/* Splits worth a training: 1 leaf in so many; small: this many, this share. */
#define SPLIT_SHARE 50
#define SPLITS_MIN 64
#define SPLIT_SHARE_SMALL 4

/* A training's cost in page visits: one for so many leaves, and a worker. */
#define TRAINING_LEAVES_A_VISIT 8
#define TRAINING_VISITS_MIN 4096

/* To compute it costs half a visit: 1.2 us against 3.4 us for four pages. */
#define VISITS_A_PREDICTION 1.5

/* Predictions before a model is judged; and that show it to be of use. */
#define JUDGED_MIN 1000
#define PROVEN_MIN 32768

/* Models in a row that did not pay: the next one is not trained on demand. */
#define STRIKES_MAX 3

/* A worker stays for a demand due so soon.  (DROP DATABASE waits for 5 s.) */
#define SOON_MS 4000

/* Wait so many times the last training's duration, up to this; or naptime. */
#define REST_SHARE 20
#define REST_MAX_MS 1000

/* Places of workers to come. */
#define WORKER_MS 60000
#define COME_MS 5000
#define NO_SLOT_MS 1000

/* How often the log tells of a missing slot: normal with many databases. */
#define TELL_US (60 * 60 * UINT64CONST(1000000))

/* The first pause after a failed training, doubled with each. */
#define PAUSE_MS 1000

#define REPORT_INTERVAL_US 10000

static TimestampTz last_report = 0;

/* ---- the retrain policy ---- */

static void
set_pause(LbtEntry *entry)
{
	int			pause = Min(PAUSE_MS << Min(entry->failures, 16), LBT_PAUSE_MAX_MS);

	if (entry->failures < PG_UINT8_MAX)
		entry->failures++;
	entry->not_before = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), pause);
}

void
lbt_policy_settle(LbtEntry *entry, LbtState state, const LbtTrained *trained)
{
	const LbtModelHeader *header = &trained->header;
	bool		ready = state == LBT_READY;
	bool		saved = ready && header->source == LBT_FROM_SAVED;

	memset(&entry->since, 0, sizeof(entry->since));
	entry->wanted = saved && lbt_autotrain;
	if (state == LBT_NO_MEMORY)
	{
		set_pause(entry);
		return;
	}
	entry->failures = 0;
	if (!ready)
		return;
	if (!saved)
	{
		entry->attempted_at = GetCurrentTimestamp();
		entry->rest_ms = (int) Min(REST_SHARE * header->training_ms, REST_MAX_MS);
	}
	if (!saved && trained->fingerprint == entry->fingerprint)
		entry->futile = Min(entry->futile + 1, 20);
	else
		entry->futile = 0;
	entry->fingerprint = trained->fingerprint;
	entry->nleaves = header->nleaves;
	entry->height = Max(header->height, 2);
}

/*
 * Trainings that found nothing new make the next one wait for twice the loss.
 * Losses count only once the model can be judged, too, so that one that does
 * not pay is not trained again and again.
 */
static bool
wants_training(const LbtEntry *entry, int retrain_splits)
{
	const LbtSince *since = &entry->since;
	int			splits = retrain_splits >= 0 ? retrain_splits : lbt_retrain_splits;
	uint64		threshold = splits >= 0 ? splits :
		Max(entry->nleaves / SPLIT_SHARE, Min(SPLITS_MIN, entry->nleaves / SPLIT_SHARE_SMALL));
	double		lost = since->moved + since->fallbacks * (VISITS_A_PREDICTION + entry->height);
	double		cost = Max(entry->nleaves / TRAINING_LEAVES_A_VISIT, TRAINING_VISITS_MIN);

	return since->splits >= Max(threshold, 1) || since->deleted > 0 ||
		(since->predictions >= JUDGED_MIN && lost >= cost * (1 << entry->futile));
}

/* Have predictions saved anything? */
static bool
pays(const LbtEntry *entry)
{
	const LbtSince *since = &entry->since;
	double		hits = (double) since->predictions - since->useless - since->fallbacks;

	return since->predictions < JUDGED_MIN ||
		hits * (entry->height - VISITS_A_PREDICTION) >
		since->moved + since->fallbacks * VISITS_A_PREDICTION;
}

static void
add_events(LbtSince *since, const uint64 *events)
{
	uint64		failed = events[LBT_EV_BAD_BLOCK] + events[LBT_EV_BAD_PAGE] +
		events[LBT_EV_LOW] + events[LBT_EV_HIGH];

	since->predictions += events[LBT_EV_VERIFIED] + failed + events[LBT_EV_INSERT];
	since->moved += events[LBT_EV_MOVED_RIGHT] + events[LBT_EV_INSERT_MOVED];
	since->fallbacks += failed + events[LBT_EV_INSERT_FALLBACK];
	since->useless += events[LBT_EV_INSERT_FULL] + events[LBT_EV_INSERT_EQUAL];
	since->splits += events[LBT_EV_SPLIT];
	since->deleted += events[LBT_EV_PAGE_DELETED];
}

/* ---- claims ---- */

bool
lbt_registry_claim(const LbtFile *file, Oid oid)
{
	volatile bool mine = false;

	LBT_GUARD_BEGIN();
	{
		LbtEntry   *entry = lbt_entry_lock(file, oid);

		mine = entry->trainer == 0 || entry->trainer == MyProcPid ||
			BackendPidGetProc(entry->trainer) == NULL;
		if (mine)
			entry->trainer = MyProcPid;
		dshash_release_lock(lbt_entries, entry);
	}
	LBT_GUARD_END(mine = false);
	return mine;
}

void
lbt_registry_unclaim(const LbtFile *file, LbtState ending)
{
	LbtEntry   *entry = dshash_find(lbt_entries, file, true);
	bool		failed = ending == LBT_FAILED || ending == LBT_DAMAGED;

	if (entry == NULL)
		return;
	if (entry->trainer == MyProcPid)
		entry->trainer = 0;
	if (ending != LBT_READY)
		entry->wanted = false;
	if (failed)
		set_pause(entry);
	if (failed && entry->state != LBT_READY)
	{
		entry->state = ending;
		entry->trained_blocks = NO_GROWTH_BLOCKS;
		entry->changed_at = GetCurrentTimestamp();
	}
	dshash_release_lock(lbt_entries, entry);
	if (failed)
		pg_atomic_fetch_add_u64(&lbt_control->generation, 1);
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

/*
 * Have a worker serve a database.  wake: one that is there already looks for
 * demands at once.  False when none can be started, or none has come.
 */
static bool
start_worker(Oid database, bool wake)
{
	TimestampTz now = GetCurrentTimestamp();
	bool		slot = true;
	bool		served = false;
	LbtWorker  *place;

	LWLockAcquire(&lbt_control->workers_lock, LW_EXCLUSIVE);
	place = find_place(database, now);
	if (place != NULL)
	{
		if (place->database != database)
		{
			slot = register_worker(database);
			place->database = database;
			place->until = TimestampTzPlusMilliseconds(now, slot ? WORKER_MS : NO_SLOT_MS);
		}
		else if (wake && place->pid != 0)
			SetLatch(place->latch);
		served = place->pid != 0 ||
			lbt_ms_until(place->until, now, WORKER_MS) > WORKER_MS - COME_MS;
	}
	LWLockRelease(&lbt_control->workers_lock);

	if (!slot && lbt_log_is_due(&lbt_control->no_slot_told, TELL_US))
		ereport(LOG,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("out of background worker slots: could not start the learnedbtree worker"),
				 errhint("Models are not trained in the background meanwhile. Raise max_worker_processes.")));
	return served;
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
		place->latch = MyLatch;
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

/* ---- demands ---- */

/* In how many milliseconds may the demand be served? */
static int64
due_in(const LbtEntry *entry)
{
	TimestampTz now = GetCurrentTimestamp();
	int			rest = Max(entry->rest_ms, lbt_naptime);
	int64		pause = lbt_ms_until(entry->not_before, now, LBT_PAUSE_MAX_MS);
	TimestampTz rested = TimestampTzPlusMilliseconds(entry->attempted_at, rest);

	return Max(pause, lbt_ms_until(rested, now, rest));
}

/*
 * Report an index's events to the retrain policy, mark the index as used, and
 * have a worker started where a training is wanted.  True when none is
 * available.  May raise errors.
 */
static bool
report_to_policy(const LbtIndex *index, const uint64 *events)
{
	LbtEntry   *entry = dshash_find(lbt_entries, &index->file, true);
	TimestampTz now = GetCurrentTimestamp();
	bool		ready;
	bool		off;
	int64		wait = -1;

	if (entry == NULL)
		return false;

	/* An extension may have given this index the file of another. */
	entry->oid = index->oid;
	pg_atomic_write_u64(&entry->used_at, (uint64) now);
	add_events(&entry->since, events);
	ready = entry->state == LBT_READY;
	off = ready && !pays(entry);
	if (ready && entry->since.predictions > PROVEN_MIN)
		entry->strikes = 0;
	if (off)
	{
		/*
		 * If the tree has changed since the model was made, give a new one a
		 * chance; also if one is wanted already, because this one came from a
		 * saved model.
		 */
		entry->strikes = Min(entry->strikes + 1, STRIKES_MAX);
		entry->wanted = lbt_autotrain && entry->strikes < STRIKES_MAX &&
			(entry->wanted || entry->since.splits + entry->since.deleted > 0);
	}
	else if (ready && lbt_autotrain &&
			 lbt_ms_until(entry->not_before, now, LBT_PAUSE_MAX_MS) == 0 &&
			 wants_training(entry, index->serving.options.retrain_splits))
		entry->wanted = true;
	if (entry->wanted && lbt_autotrain)
		wait = due_in(entry);
	if (off)
		lbt_entry_replace_model(entry, LBT_NOT_PAYING, InvalidDsaPointer, 0);
	else
		dshash_release_lock(lbt_entries, entry);
	return wait >= 0 && wait <= SOON_MS && !start_worker(index->file.database, wait == 0) &&
		wait == 0;
}

bool
lbt_demand_raise(const LbtFile *file, Oid oid)
{
	volatile bool raised = false;

	if (!lbt_autotrain)
		return false;
	LBT_GUARD_BEGIN();
	{
		LbtEntry   *entry = lbt_entry_lock(file, oid);

		entry->wanted = true;
		dshash_release_lock(lbt_entries, entry);
		raised = start_worker(file->database, true);
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
lbt_demand_take(LbtFile *file, Oid *oid, int *next_in)
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
			*oid = entry->oid;
			dshash_release_lock(lbt_entries, entry);
		}
	}
	LBT_GUARD_END((taken = false, *next_in = -1));
	return taken;
}

/* ---- reports ---- */

bool
lbt_report(LbtIndex *index)
{
	volatile bool unserved = false;
	uint64		events[LBT_NEVENTS];

	if (!index->shareable || !lbt_guard_may_enter())
		return false;
	for (int i = 0; i < LBT_NEVENTS; i++)
		events[i] = lbt_count_unflushed(index, i);
	LBT_GUARD_BEGIN();
	{
		unserved = report_to_policy(index, events);
		lbt_stats_add(index->file.database, index->oid, events);
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
