/*
 * demand.c - costs and benefits of models; see demand.h.
 *
 * The unit is a page visit: a descent of a tree of height h visits h pages, a lookup that the model answers
 * one, a step to the right one more.  (Bourbon, Dai et al. 2020, decides in the same way, by measured
 * times, whether a file's model is worth making.)
 *
 *   When to train: when as much was lost to an old model since the training as another one costs (then all
 *   of it together is at most twice what the best choice of times would have cost), and, before that is
 *   felt, when a share of the leaves has split, or pages were deleted.
 *
 *   Whether it pays: when the visits that predictions save are more than those that failed ones waste.
 *   Computing a prediction costs about half a visit (measured: 1.2 us against 3.4 us for four pages).
 */
#include "learn/demand.h"

#include "learn/registry_internal.h"
#include "learn/settings.h"
#include "miscadmin.h"
#include "server/compat.h"
#include "server/guard.h"
#include "storage/ipc.h"
#include "utils/timestamp.h"

/* A split at every so many leaves is worth a training; in small indexes so many splits, or this share. */
#define SPLIT_SHARE 50
#define SPLITS_MIN 64
#define SPLIT_SHARE_SMALL 4

/* Page visits that a training costs: so many for each leaf's share, and for starting a worker. */
#define TRAINING_LEAVES_A_VISIT 8
#define TRAINING_VISITS_MIN 4096

/* A descent from a failed prediction wastes the way to it. */
#define VISITS_A_PREDICTION 1.5

/* Predictions before a model is judged, and after which the older half is forgotten. */
#define WINDOW_MIN 1000
#define WINDOW_MAX 65536

/* Models of one index in a row that did not pay before retraining is left to others. */
#define STRIKES_MAX 3

/* A demand that can be served so soon is worth keeping a launcher for. */
#define SOON_MS 10000

/* The pause after a training that failed: the first one, doubled with each further one in a row, and the longest. */
#define PAUSE_MS 1000
#define PAUSE_MAX_MS (60 * 60 * 1000)

/* Least time between two attempts to start a launcher; the second when there was no slot of late. */
#define LAUNCH_INTERVAL_MS 1000
#define NO_SLOT_INTERVAL_MS 60000

/* When the demand may be served. */
static TimestampTz
due_at(const LbtEntry *entry)
{
	return Max(entry->not_before, TimestampTzPlusMilliseconds(entry->attempted_at, lbt_naptime));
}

void
lbt_demand_pause(LbtEntry *entry)
{
	int			pause = Min(PAUSE_MS << Min(entry->failures, 16), PAUSE_MAX_MS);

	if (entry->failures < PG_UINT8_MAX)
		entry->failures++;
	entry->not_before = Max(entry->not_before, TimestampTzPlusMilliseconds(GetCurrentTimestamp(), pause));
}

void
lbt_demand_settle(LbtEntry *entry, const LbtModelHeader *header, uint32 fingerprint)
{
	bool		ready = entry->state == LBT_READY;
	bool		image = ready && header->source == LBT_FROM_IMAGE;

	memset(&entry->since, 0, sizeof(entry->since));
	memset(&entry->window, 0, sizeof(entry->window));
	entry->wanted = image && lbt_autotrain;
	if (entry->state == LBT_NO_MEMORY)
	{
		lbt_demand_pause(entry);
		return;
	}
	entry->failures = 0;
	if (!ready)
		return;
	if (!image)
		entry->attempted_at = GetCurrentTimestamp();
	if (!image && fingerprint == entry->fingerprint)
		entry->futile = Min(entry->futile + 1, 20);
	else
		entry->futile = 0;
	entry->fingerprint = fingerprint;
	entry->nleaves = header->nleaves;
	entry->height = Max(header->height, 2);
}

/*
 * Trainings that found nothing new make the next one wait for twice the loss.  What is lost counts only
 * once the model can be judged as well, lest one that does not pay be trained again and again.
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
		(entry->window.predictions >= WINDOW_MIN && lost >= cost * (1 << entry->futile));
}

/* Do predictions save anything? */
static bool
pays(const LbtEntry *entry)
{
	const LbtWindow *w = &entry->window;
	double		hits = w->predictions - Min(w->fallbacks, w->predictions);

	return w->predictions < WINDOW_MIN ||
		hits * (entry->height - VISITS_A_PREDICTION) >
		w->moved + w->fallbacks * VISITS_A_PREDICTION;
}

static void
add_events(LbtEntry *entry, const uint64 *events)
{
	LbtSince   *since = &entry->since;
	LbtWindow  *window = &entry->window;
	uint64		failed = events[LBT_EV_BAD_BLOCK] + events[LBT_EV_BAD_PAGE] +
		events[LBT_EV_LOW] + events[LBT_EV_HIGH];
	uint64		twice = events[LBT_EV_INSERT_FULL] + events[LBT_EV_INSERT_EQUAL];
	uint64		predictions = events[LBT_EV_VERIFIED] + failed + events[LBT_EV_INSERT];
	uint64		moved = events[LBT_EV_MOVED_RIGHT] + events[LBT_EV_INSERT_MOVED];

	failed += events[LBT_EV_INSERT_FALLBACK];
	since->predictions += predictions;
	since->moved += moved;
	since->fallbacks += failed;
	since->splits += events[LBT_EV_SPLIT];
	since->deleted += events[LBT_EV_PAGE_DELETED];

	/* Right about the leaf, but nbtree had to go there again: nothing saved, and no fault of the model. */
	predictions -= Min(twice, predictions);

	/* One flush may bring more than a window holds: then it is all of it, scaled down. */
	while (predictions > WINDOW_MAX)
	{
		predictions /= 2;
		moved /= 2;
		failed /= 2;
		memset(window, 0, sizeof(*window));
	}
	if (window->predictions + predictions > WINDOW_MAX)
	{
		window->predictions /= 2;
		window->moved /= 2;
		window->fallbacks /= 2;
	}
	window->predictions += predictions;
	window->moved += moved;
	window->fallbacks += failed;
}

/*
 * The model does not pay.  If the tree has changed since it was made, a new one gets a chance; and so it does where one
 * is wanted already, because this one came from an image.
 */
static void
switch_off(LbtEntry *entry)
{
	entry->state = LBT_NOT_PAYING;
	entry->memory = InvalidDsaPointer;
	entry->changed_at = GetCurrentTimestamp();
	if (entry->strikes < STRIKES_MAX)
		entry->strikes++;
	entry->wanted = lbt_autotrain && entry->strikes < STRIKES_MAX &&
		(entry->wanted || entry->since.splits + entry->since.deleted > 0);
}

LbtDemand
lbt_demand_report(LbtIndex *index, const uint64 *events)
{
	LbtEntry   *entry = dshash_find(lbt_entries, &index->file, true);
	TimestampTz now = GetCurrentTimestamp();
	dsa_pointer dead = InvalidDsaPointer;
	Size		dead_bytes = 0;
	bool		switched_off = false;
	bool		wanted;
	bool		due;

	if (entry == NULL)
		return LBT_DEMAND_NONE;
	pg_atomic_write_u64(&entry->used_at, (uint64) now);
	add_events(entry, events);
	if (entry->state == LBT_READY)
	{
		if (!pays(entry))
		{
			dead = lbt_model_of(entry);
			dead_bytes = entry->bytes;
			switch_off(entry);
			switched_off = true;
		}
		else if (lbt_autotrain && wants_training(entry, index->retrain_splits) &&
				 entry->not_before <= now)
			entry->wanted = true;	/* else it failed a moment ago: no use */
		if (entry->window.predictions > WINDOW_MAX / 2 && !switched_off)
			entry->strikes = 0;
	}
	wanted = entry->wanted && lbt_autotrain &&
		due_at(entry) <= TimestampTzPlusMilliseconds(now, SOON_MS);
	due = due_at(entry) <= now;
	dshash_release_lock(lbt_entries, entry);

	if (switched_off)
		lbt_model_free(dead, dead_bytes);
	if (!wanted)
		return LBT_DEMAND_NONE;
	return lbt_launcher_wake() || !due ? LBT_DEMAND_RAISED : LBT_DEMAND_UNSERVED;
}

static void
raise_demand(const LbtFile *file, Oid oid, bool anew)
{
	LbtEntry   *entry = lbt_entry_lock_file(file, oid);

	entry->wanted = true;
	if (anew)
		entry->not_before = 0;
	dshash_release_lock(lbt_entries, entry);
}

bool
lbt_demand_raise(const LbtFile *file, Oid oid, bool anew)
{
	volatile bool raised = lbt_autotrain;

	if (!raised)
		return false;
	LBT_GUARD_BEGIN();
	{
		raise_demand(file, oid, anew);
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

	/* Whoever raises a demand from here on may start another at once, if there are slots. */
	if (pg_atomic_read_u32(&lbt_control->told_no_worker) == 0)
		pg_atomic_write_u64(&lbt_control->launch_tried, 0);
}

void
lbt_worker_connected(void)
{
	pg_atomic_fetch_add_u32(&lbt_control->workers_connected, 1);
	pg_atomic_write_u32(&lbt_control->told_no_worker, 0);
}

uint32
lbt_workers_connected(void)
{
	return pg_atomic_read_u32(&lbt_control->workers_connected);
}

void
lbt_workers_give_way(bool waiting)
{
	if (pg_atomic_read_u32(&lbt_control->databases_wait) != waiting)
		pg_atomic_write_u32(&lbt_control->databases_wait, waiting);
}

bool
lbt_worker_should_give_way(void)
{
	return pg_atomic_read_u32(&lbt_control->databases_wait) != 0;
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

static bool
take(Oid database, LbtFile *file, Oid *oid)
{
	TimestampTz now = GetCurrentTimestamp();

	while (find_demand(database, now, file))
	{
		LbtEntry   *entry = dshash_find(lbt_entries, file, true);
		bool		mine;

		if (entry == NULL)
			continue;
		mine = entry->wanted;
		entry->wanted = false;
		entry->attempted_at = now;
		*oid = entry->oid;
		dshash_release_lock(lbt_entries, entry);
		if (mine)
			return true;
	}
	return false;
}

bool
lbt_demand_take(Oid database, LbtFile *file, Oid *oid)
{
	volatile bool taken = false;

	LBT_GUARD_BEGIN();
	{
		taken = take(database, file, oid);
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
