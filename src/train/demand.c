/*
 * demand.c - when to train again, and by whom: the retrain policy, demands for
 * training, and workers' places.
 *
 * The unit of costs and benefits is a page visit: a descent of a tree of
 * height h visits h pages, a lookup that the model answers one, a step to the
 * right one more.  Where key codes are dear (sort keys of text) a visit says
 * too little: a training judges that (train/train.c).
 *
 *   When to train: when as much was lost to an old model since the training as
 *   another one costs (then all of it together is at most twice what the best
 *   choice of times would have cost), and, before that is felt, when a share
 *   of the leaves has split, or pages were deleted.
 *
 *   Whether it pays: when the visits that predictions have saved since the
 *   training are more than those that failed ones have wasted: so a model
 *   never costs more than it has brought.  Computing a prediction costs about
 *   half a visit (measured: 1.2 us against 3.4 us for four pages).
 *
 * A demand is a flag in the index's entry: there is at most one for each
 * index.  It stays until a worker takes it.  It comes back if that could not
 * serve it, and with every later report while its reason lasts.
 *
 * A worker serves one database (train/worker.c).  A backend that raises a
 * demand starts one for its database, unless there is one.  If the server has
 * no slot, the demand stays, and the next report of the index tries again.
 *
 *     free --lbt_worker_start()--> starting --lbt_worker_enter(),
 *     _connected()--> serving --lbt_worker_leave()--> free
 *     (starting: after a minute without a process free; after a failure to
 *     connect refused, and free after a minute)
 */
#include "train/demand.h"

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

/* A descent from a failed prediction wastes the way to it. */
#define VISITS_A_PREDICTION 1.5

/* Predictions before a model is judged; and that show it to be of use. */
#define JUDGED_MIN 1000
#define PROVEN_MIN 32768

/*
 * Models of one index in a row that did not pay before retraining is left to
 * others.
 */
#define STRIKES_MAX 3

/* A worker stays for a demand due so soon.  (DROP DATABASE waits for 5 s.) */
#define SOON_MS 4000

/* Wait so many times the last training's duration, up to this; or naptime. */
#define REST_SHARE 20
#define REST_MAX_MS 1000

/* Limit for a worker to come; pause after a database has refused one. */
#define WORKER_MS 60000

/* Pause after there was no slot. */
#define NO_SLOT_MS 1000

/* How often the log tells of a missing slot: normal with many databases. */
#define TELL_US (60 * 60 * UINT64CONST(1000000))

/* The first pause after a failed training, doubled with each; the longest. */
#define PAUSE_MS 1000
#define PAUSE_MAX_MS (60 * 60 * 1000)

static void
set_pause(LbtEntry *entry)
{
	int			pause = Min(PAUSE_MS << Min(entry->failures, 16), PAUSE_MAX_MS);

	if (entry->failures < PG_UINT8_MAX)
		entry->failures++;
	entry->not_before = Max(entry->not_before,
							TimestampTzPlusMilliseconds(GetCurrentTimestamp(), pause));
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
	uint64		threshold = retrain_splits >= 0 ? retrain_splits :
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
lbt_registry_unclaim_after_error(const LbtFile *file, LbtEnding ending)
{
	LbtEntry   *entry = dshash_find(lbt_entries, file, true);

	if (entry == NULL)
		return;
	if (entry->trainer == MyProcPid)
		entry->trainer = 0;
	if (ending != LBT_ENDED)
		set_pause(entry);
	if (ending != LBT_ENDED && entry->state != LBT_READY)
	{
		entry->state = ending == LBT_ENDED_BY_DAMAGE ? LBT_DAMAGED : LBT_FAILED;
		entry->trained_blocks = NO_GROWTH_BLOCKS;
		entry->changed_at = GetCurrentTimestamp();
	}
	dshash_release_lock(lbt_entries, entry);
	if (ending != LBT_ENDED)
		pg_atomic_fetch_add_u64(&lbt_control->generation, 1);
}

void
lbt_registry_unclaim(const LbtFile *file, LbtEnding ending)
{
	LBT_GUARDED(lbt_registry_unclaim_after_error(file, ending), (void) 0);
}

/* ---- demands ---- */

/* In how many milliseconds may the demand be served? */
static int64
due_in(const LbtEntry *entry)
{
	int			rest = Max(entry->rest_ms, lbt_naptime);
	TimestampTz due_at = Max(entry->not_before,
							 TimestampTzPlusMilliseconds(entry->attempted_at, rest));
	TimestampTz now = GetCurrentTimestamp();

	return due_at <= now ? 0 : (due_at - now) / 1000 + 1;
}

/*
 * A model that does not pay, off, is a strike, and one that has been of use
 * ends their row.
 */
static void
count_strikes(LbtEntry *entry, bool off)
{
	if (entry->state != LBT_READY)
		return;
	if (entry->since.predictions > PROVEN_MIN)
		entry->strikes = 0;
	if (off)
		entry->strikes = Min(entry->strikes + 1, STRIKES_MAX);
}

bool
lbt_demand_report(const LbtFile *file, Oid oid, const uint64 *events, int retrain_splits)
{
	LbtEntry   *entry = dshash_find(lbt_entries, file, true);
	TimestampTz now = GetCurrentTimestamp();
	bool		off;
	int64		wait = -1;

	if (entry == NULL)
		return false;
	entry->oid = oid;
	pg_atomic_write_u64(&entry->used_at, (uint64) now);
	add_events(&entry->since, events);
	off = entry->state == LBT_READY && !pays(entry);
	count_strikes(entry, off);
	if (off)
	{
		/*
		 * If the tree has changed since the model was made, give a new one a
		 * chance; also if one is wanted already, because this one came from a
		 * saved model.
		 */
		entry->wanted = lbt_autotrain && entry->strikes < STRIKES_MAX &&
			(entry->wanted || entry->since.splits + entry->since.deleted > 0);
	}
	else if (entry->state == LBT_READY && lbt_autotrain && wants_training(entry, retrain_splits) &&
			 entry->not_before <= now)
		entry->wanted = true;	/* else it failed a moment ago: no use */
	if (entry->wanted && lbt_autotrain)
		wait = due_in(entry);
	if (off)
		lbt_entry_replace_model(entry, LBT_NOT_PAYING, InvalidDsaPointer, 0);
	else
		dshash_release_lock(lbt_entries, entry);
	return wait >= 0 && wait <= SOON_MS && !lbt_worker_start(file->database, wait == 0) &&
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
		raised = lbt_worker_start(file->database, true);
	}
	LBT_GUARD_END(raised = false);
	return raised;
}

/* Find this database's oldest demand that is due; see lbt_demand_take(). */
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
			entry->wanted = false;
			entry->attempted_at = GetCurrentTimestamp();
			*oid = entry->oid;
			dshash_release_lock(lbt_entries, entry);
		}
	}
	LBT_GUARD_END((taken = false, *next_in = -1));
	return taken;
}

void
lbt_demand_defer(const LbtFile *file, int ms)
{
	LbtEntry   *entry = dshash_find(lbt_entries, file, true);

	if (entry == NULL)
		return;
	entry->wanted = true;
	entry->not_before = Max(entry->not_before,
							TimestampTzPlusMilliseconds(GetCurrentTimestamp(), ms));
	dshash_release_lock(lbt_entries, entry);
}

/* ---- workers ---- */

/* In a worker: its place, and whether it has connected. */
static LbtWorker *own_place = NULL;
static bool connected = false;

/* Register a worker with the server; false when there is no slot. */
static bool
register_worker(Oid database)
{
	BackgroundWorker worker = {
		.bgw_name = "learnedbtree worker",.bgw_type = "learnedbtree worker",
		.bgw_library_name = "learnedbtree",.bgw_function_name = "lbt_worker_main",
	};

	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_ConsistentState;
	worker.bgw_restart_time = BGW_NEVER_RESTART;
	worker.bgw_main_arg = ObjectIdGetDatum(database);
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

		if (w->pid == 0 && w->until <= now)
			w->database = InvalidOid;
		if (w->database == database || (w->database == InvalidOid && found == NULL))
			found = w;
		if (w->database == database)
			break;
	}
	return found;
}

bool
lbt_worker_start(Oid database, bool wake)
{
	TimestampTz now = GetCurrentTimestamp();
	uint64		no_slot_at = pg_atomic_read_u64(&lbt_control->no_slot_at);
	bool		slot = true;
	bool		served = false;
	LbtWorker  *place;

	LWLockAcquire(&lbt_control->workers_lock, LW_EXCLUSIVE);
	place = find_place(database, now);
	if (place != NULL && place->database == database)
	{
		served = !place->refused;
		if (wake && place->pid != 0)
			SetLatch(place->latch);
	}
	else if (place != NULL && (no_slot_at == 0 || (uint64) now - no_slot_at >= NO_SLOT_MS * 1000))
	{
		served = slot = register_worker(database);
		if (served)
		{
			place->database = database;
			place->refused = false;
			place->until = TimestampTzPlusMilliseconds(now, WORKER_MS);
		}
	}
	LWLockRelease(&lbt_control->workers_lock);

	if (!slot)
		pg_atomic_write_u64(&lbt_control->no_slot_at, now);
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
	TimestampTz now = GetCurrentTimestamp();

	LWLockAcquire(&lbt_control->workers_lock, LW_EXCLUSIVE);
	for (int i = 0; i < LBT_WORKERS_LIMIT; i++)
	{
		LbtWorker  *w = &lbt_control->workers[i];

		if (w->database == database && w->pid == 0 && !w->refused && w->until > now)
			own_place = w;
	}
	if (own_place != NULL)
	{
		own_place->pid = MyProcPid;
		own_place->latch = MyLatch;
	}
	LWLockRelease(&lbt_control->workers_lock);
	return own_place != NULL;
}

void
lbt_worker_connected(void)
{
	connected = true;
	pg_atomic_write_u64(&lbt_control->no_slot_at, 0);
}

void
lbt_worker_leave(void)
{
	LbtWorker  *place = own_place;

	if (place == NULL)
		return;
	LWLockAcquire(&lbt_control->workers_lock, LW_EXCLUSIVE);
	place->pid = 0;
	place->refused = !connected;
	place->until = connected ? 0 : TimestampTzPlusMilliseconds(GetCurrentTimestamp(), WORKER_MS);
	own_place = NULL;
	LWLockRelease(&lbt_control->workers_lock);
}
