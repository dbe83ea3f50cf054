/*
 * launcher.c - the process that starts training workers: for each database with demands one, at most
 * learnedbtree.max_workers at a time.  Where more databases wait, workers are told to give way (demand.h).
 *
 * It comes with the first demand and goes when there has been none for a while.  It touches no table: it
 * is connected to no database, reads the demands in shared memory, and keeps an eye on its workers.
 */
#include "postgres.h"

#include "registry/demand.h"
#include "registry/settings.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/interrupt.h"
#include "server/compat.h"
#include "train/processes.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/timestamp.h"

/* Databases with demands that are looked at together. */
#define MAX_DATABASES 64

/* Time without demands after which the launcher goes. */
#define IDLE_MS 10000

/* How often to look when nothing is expected. */
#define LOOK_MS 1000

/* Demands of a database that no worker can connect to are dropped for so long. */
#define UNCONNECTABLE_MS 60000

typedef struct Served
{
	Oid			database;		/* InvalidOid: free */
	BackgroundWorkerHandle *handle;
	uint32		connected;		/* workers that had connected when this one
								 * was started */
} Served;

static Served served[LBT_WORKERS_LIMIT];
static Oid	last_served = InvalidOid;
static uint32 wait_event = 0;

static void
leave(int code, Datum arg)
{
	lbt_launcher_leave();
}

/* Forget workers that have ended; how many are left? */
static int
count_workers(void)
{
	int			running = 0;

	for (int i = 0; i < LBT_WORKERS_LIMIT; i++)
	{
		Served	   *s = &served[i];
		pid_t		pid;
		BgwHandleStatus status;

		if (!OidIsValid(s->database))
			continue;
		status = GetBackgroundWorkerPid(s->handle, &pid);
		if (status == BGWH_STOPPED || status == BGWH_POSTMASTER_DIED)
		{
			/*
			 * Connections not allowed, say.  Starting one after the other
			 * would not help.
			 */
			if (lbt_workers_connected() == s->connected)
				lbt_demand_drop_database(s->database, UNCONNECTABLE_MS);
			pfree(s->handle);
			s->database = InvalidOid;
		}
		else
			running++;
	}
	return running;
}

static bool
is_served(Oid database)
{
	for (int i = 0; i < LBT_WORKERS_LIMIT; i++)
		if (served[i].database == database)
			return true;
	return false;
}

/* Start a worker for the database; false when the server has no slot. */
static bool
start_worker(Oid database)
{
	uint32		connected = lbt_workers_connected();
	Served	   *s = served;

	while (OidIsValid(s->database))
		s++;
	if (!lbt_start_process("learnedbtree worker", "lbt_worker_main", ObjectIdGetDatum(database),
						   MyProcPid, &s->handle))
		return false;
	s->database = database;
	s->connected = connected;
	last_served = database;
	return true;
}

/* In turn: the databases behind the one served last come first. */
static int
compare_turns(const void *a, const void *b)
{
	Oid			x = *(const Oid *) a - last_served - 1;
	Oid			y = *(const Oid *) b - last_served - 1;

	return x < y ? -1 : x > y;
}

/* Serve the databases with demands; is there anything left to wait for? */
static bool
serve(bool *no_slot)
{
	Oid			databases[MAX_DATABASES];
	bool		later;
	bool		waiting = false;
	int			running = count_workers();
	int			n = lbt_demand_databases(databases, MAX_DATABASES, &later);

	*no_slot = false;
	qsort(databases, n, sizeof(Oid), compare_turns);
	for (int i = 0; i < n && !*no_slot; i++)
	{
		if (is_served(databases[i]) || lbt_forget_lost_database(databases[i]))
			continue;
		if (running >= lbt_max_workers)
			waiting = true;
		else if (start_worker(databases[i]))
			running++;
		else
			*no_slot = true;
	}
	lbt_workers_give_way(waiting);
	return n > 0 || later;
}

PGDLLEXPORT void
lbt_launcher_main(Datum arg)
{
	TimestampTz idle_since = GetCurrentTimestamp();

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	pqsignal(SIGINT, SIG_IGN);	/* there is nothing to cancel */
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);
	if (!lbt_registry_attach())
		proc_exit(0);
	before_shmem_exit(leave, (Datum) 0);

	while (lbt_launcher_enter())
	{
		bool		no_slot = false;

		for (;;)
		{
			bool		busy;

			CHECK_FOR_INTERRUPTS();
			if (ConfigReloadPending)
			{
				ConfigReloadPending = false;
				ProcessConfigFile(PGC_SIGHUP);
			}
			busy = count_workers() > 0;
			busy = (lbt_autotrain && serve(&no_slot)) || busy;
			if (no_slot && count_workers() == 0)
				break;			/* who holds the last slot itself should not
								 * wait for another */
			if (busy)
				idle_since = GetCurrentTimestamp();
			else if (!lbt_autotrain ||
					 TimestampDifferenceExceeds(idle_since, GetCurrentTimestamp(), IDLE_MS))
				break;
			pgstat_report_activity(STATE_IDLE, NULL);
			(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
							 Min(Max(lbt_naptime, 10), LOOK_MS),
							 lbt_wait_event(&wait_event, "LearnedBtreeLauncherMain"));
			ResetLatch(MyLatch);
		}

		/*
		 * A demand raised while we were leaving has found a launcher, and
		 * woken it: look once more.
		 */
		lbt_launcher_leave();
		if (!lbt_autotrain || no_slot || !serve(&no_slot))
			break;
	}
	proc_exit(0);
}
