/*
 * worker.c - the background process that trains the indexes of one database on
 * demand; see train/demand.c for who starts it.
 *
 * Each index is trained in a transaction of its own, so an error ends only
 * that training.  Nothing waits for locks: an index that is locked is tried
 * again later.
 */
#include "postgres.h"

#include "catalog/index.h"
#include "catalog/pg_database.h"
#include "fmgr.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "server/guard.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lock.h"
#include "storage/proc.h"
#include "tcop/tcopprot.h"
#include "train/demand.h"
#include "train/train.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

extern PGDLLEXPORT void lbt_worker_main(Datum arg);

/* Leave so soon after the last demand: others need the slot. */
#define LINGER_MS 500

/* How often it looks for demands. */
#define LOOK_MS 50

/* A training pays for a look at so many entries, of 10 us each. */
#define SWEEP_SHARE 100

static int	served = 0;			/* trainings that were begun */

/*
 * Train an index, in the current transaction; not now if it is locked.  Lock
 * its table, too: who drops an index concurrently waits for users of that.
 */
static void
train_index(const LbtFile *file)
{
	Oid			table = IndexGetRelation(file->index, true);
	LbtFile		now;
	Relation	rel;
	LbtIndex   *index;

	if (OidIsValid(table) && !ConditionalLockRelationOid(table, AccessShareLock))
		return;
	if (!ConditionalLockRelationOid(file->index, AccessShareLock))
		return;
	if (!lbt_index_file(file->index, &now))
	{
		lbt_registry_forget(file);
		return;
	}
	rel = index_open(file->index, NoLock);
	index = lbt_index_get(rel);
	if (lbt_untrainable(rel, index) == NULL)
	{
		pgstat_report_activity(STATE_RUNNING,
							   psprintf("learnedbtree: training %s.%s",
										get_namespace_name(RelationGetNamespace(rel)),
										RelationGetRelationName(rel)));
		(void) lbt_train(rel, index);
	}
	else
		lbt_training_failed(file, LBT_UNTRAINED, false);
	index_close(rel, NoLock);
}

static void
training_context(void *arg)
{
	errcontext("training the model of the index with OID %u in the background", ((const LbtFile *) arg)->index);
}

static void
leave_at_exit(int code, Datum arg)
{
	LWLockReleaseAll();
	lbt_worker_leave();
}

/* Train one index in a transaction of its own; errors go to the log. */
static void
serve(LbtFile *file)
{
	MemoryContext context = CurrentMemoryContext;
	volatile bool failed = false;
	ErrorContextCallback callback = {.callback = training_context,.arg = file};

	served++;
	callback.previous = error_context_stack;
	PG_TRY();
	{
		error_context_stack = &callback;
		SetCurrentStatementStartTimestamp();
		StartTransactionCommand();
		/* With a snapshot, pages that links lead to are not recycled. */
		PushActiveSnapshot(GetTransactionSnapshot());
		train_index(file);
		PopActiveSnapshot();
		CommitTransactionCommand();
	}
	PG_CATCH();
	{
		HOLD_INTERRUPTS();
		MemoryContextSwitchTo(context);
		EmitErrorReport();
		AbortCurrentTransaction();
		FlushErrorState();
		RESUME_INTERRUPTS();
		failed = true;
	}
	PG_END_TRY();
	error_context_stack = callback.previous;
	MemoryContextSwitchTo(context);

	/* Do not try over and over: the next report raises the demand again. */
	if (failed)
		LBT_GUARDED(lbt_training_failed(file, LBT_UNTRAINED, false), (void) 0);
	pgstat_report_stat(true);
	pgstat_report_activity(STATE_IDLE, NULL);
}

/* Has an index of this database been dropped, or never been committed? */
static bool
is_gone(const LbtFile *file)
{
	bool		gone;

	/* Who is about to make or drop it holds it locked. */
	if (!ConditionalLockRelationOid(file->index, AccessShareLock))
		return false;
	gone = !SearchSysCacheExists1(RELOID, ObjectIdGetDatum(file->index));
	UnlockRelationOid(file->index, AccessShareLock);
	return gone;
}

/* Forget the entries of what is gone (src/README, "Shared models"). */
static void
sweep(void)
{
	List	   *entries = NIL;
	ListCell   *lc;

	StartTransactionCommand();
	foreach(lc, lbt_registry_list())
	{
		LbtFile    *file = lfirst(lc);

		CHECK_FOR_INTERRUPTS();
		if (file->database == MyDatabaseId)
			entries = lappend(entries, file);
		else if (!SearchSysCacheExists1(DATABASEOID, ObjectIdGetDatum(file->database)))
			lbt_registry_forget(file);
	}
	if (!lbt_worker_sweeps() && served < list_length(entries) / SWEEP_SHARE)
		entries = NIL;
	if (entries != NIL)
		served = 0;
	foreach(lc, entries)
	{
		CHECK_FOR_INTERRUPTS();
		if (is_gone(lfirst(lc)))
			lbt_registry_forget(lfirst(lc));
	}
	CommitTransactionCommand();
}

/*
 * Run as the database's owner: with FORCE, who drops it ends processes only of
 * roles that he has the rights of.
 */
static void
belong_to_owner(void)
{
	HeapTuple	row;

	StartTransactionCommand();
	row = SearchSysCache1(DATABASEOID, ObjectIdGetDatum(MyDatabaseId));
	if (HeapTupleIsValid(row))
	{
		MyProc->roleId = ((Form_pg_database) GETSTRUCT(row))->datdba;
		ReleaseSysCache(row);
	}
	CommitTransactionCommand();
}

/*
 * Override what the database or cluster sets for users' transactions.  (A
 * standby has no serializable ones.)
 */
static void
override_settings(void)
{
	static const char *const settings[][2] = {
		{"default_transaction_isolation", "read committed"},
		{"default_transaction_deferrable", "off"},
		{"default_transaction_read_only", "off"},
		{"exit_on_error", "off"},
		{"lock_timeout", "0"},
		{"transaction_timeout", "0"},
		{"zero_damaged_pages", "off"},
	};

	for (int i = 0; i < lengthof(settings); i++)
		if (GetConfigOption(settings[i][0], true, false) != NULL)
			SetConfigOption(settings[i][0], settings[i][1], PGC_SUSET, PGC_S_OVERRIDE);
}

/*
 * Is somebody waiting for this process to go?  Who drops or copies a database
 * locks it, and then waits for 5 s.
 */
static bool
is_in_the_way(void)
{
	LOCKTAG		tag;

	SET_LOCKTAG_OBJECT(tag, InvalidOid, DatabaseRelationId, MyDatabaseId, 0);
	if (LockAcquire(&tag, RowExclusiveLock, true, true) == LOCKACQUIRE_NOT_AVAIL)
		return true;
	LockRelease(&tag, RowExclusiveLock, true);
	return false;
}

/* What this process cannot map, another may: leave demands to the next one. */
static bool
may_train(void)
{
	return lbt_autotrain && !lbt_guard_has_failed && !is_in_the_way();
}

/* Train what is wanted, until nothing has been for a while. */
static void
serve_demands(void)
{
	static uint32 wait_event = 0;
	TimestampTz idle_since = GetCurrentTimestamp();
	LbtFile		file;
	int			next_in;

	for (;;)
	{
		QueryCancelPending = false; /* what was to be cancelled is over */
		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
		}
		if (!may_train())
			return;
		if (lbt_demand_take(&file, &next_in))
		{
			serve(&file);
			idle_since = GetCurrentTimestamp();
			continue;
		}
		if (next_in < 0 && lbt_is_over(idle_since, GetCurrentTimestamp(), LINGER_MS))
			return;
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 next_in >= 0 ? Min(next_in, LOOK_MS) : LOOK_MS,
						 lbt_wait_event(&wait_event, "LearnedBtreeWorkerMain"));
		ResetLatch(MyLatch);
	}
}

PGDLLEXPORT void
lbt_worker_main(Datum arg)
{
	Oid			database = DatumGetObjectId(arg);
	LbtFile		file;
	int			next_in = -1;

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	pqsignal(SIGINT, StatementCancelHandler);
	BackgroundWorkerUnblockSignals();

	BackgroundWorkerInitializeConnectionByOid(database, InvalidOid, 0);
	if (!lbt_registry_attach())
		proc_exit(0);
	lbt_expect_exit();
	if (!lbt_worker_enter(database))
		proc_exit(0);
	before_shmem_exit(leave_at_exit, (Datum) 0);
	override_settings();
	belong_to_owner();
	CurrentMemoryContext = AllocSetContextCreate(TopMemoryContext, "learnedbtree worker",
												 ALLOCSET_DEFAULT_SIZES);
	do
	{
		serve_demands();
		sweep();
		lbt_worker_leave();

		/*
		 * A demand raised since the last look has found a worker here.  Serve
		 * it; come back for one that has to rest first.
		 */
		while (may_train() && lbt_demand_take(&file, &next_in))
		{
			CHECK_FOR_INTERRUPTS();
			serve(&file);
		}
	} while (may_train() && next_in >= 0 && lbt_worker_enter(database));
	proc_exit(0);
}
