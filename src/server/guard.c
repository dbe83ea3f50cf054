/*
 * guard.c - swallowing errors of shared memory; see guard.h.
 */
#include "server/guard.h"

#include "miscadmin.h"
#include "pgstat.h"
#if PG_VERSION_NUM >= 180000
#include "storage/aio_subsys.h"
#endif
#include "storage/bufmgr.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

/* Least time between two lines in the log. */
#define REPORT_INTERVAL_US UINT64CONST(60000000)

static pg_atomic_uint64 own_report = {0};
pg_atomic_uint64 *lbt_guard_reported_at = &own_report;

bool		lbt_guard_has_failed = false;

/* Guards that are entered.  Each holds interrupts. */
static uint32 depth = 0;

bool
lbt_guard_may_enter(void)
{
	return InterruptHoldoffCount == 0 || InterruptHoldoffCount == depth || proc_exit_inprogress;
}

bool
lbt_guard_enter(LbtGuard *guard)
{
	if (unlikely(!lbt_guard_may_enter()))
		return false;
	if (InterruptHoldoffCount == 0)
		depth = 0;				/* an error may have left it too high */
	guard->holdoff = InterruptHoldoffCount;
	guard->depth = depth;
	guard->context = CurrentMemoryContext;
	guard->caller = CurrentResourceOwner;
	guard->owner = ResourceOwnerCreate(CurrentResourceOwner, "learnedbtree shared memory");
	CurrentResourceOwner = guard->owner;
	HOLD_INTERRUPTS();
	depth++;
	return true;
}

void
lbt_guard_leave(const LbtGuard *guard)
{
	CurrentResourceOwner = guard->caller;

	/* There may be no owner around this one to pass locks on to. */
	ResourceOwnerRelease(guard->owner, RESOURCE_RELEASE_BEFORE_LOCKS, !guard->failed, false);
	ResourceOwnerRelease(guard->owner, RESOURCE_RELEASE_AFTER_LOCKS, !guard->failed, false);
	ResourceOwnerDelete(guard->owner);
	depth = guard->depth;
	InterruptHoldoffCount = guard->holdoff;
}

bool
lbt_log_is_due(pg_atomic_uint64 *last, uint64 interval_us)
{
	uint64		now = (uint64) GetCurrentTimestamp();
	uint64		before = pg_atomic_read_u64(last);

	return (before == 0 || now - before >= interval_us) &&
		pg_atomic_compare_exchange_u64(last, &before, now);
}

/*
 * Clean up what an aborted subtransaction would and no resource owner does.
 * (From 19 on, buffers' content locks go with the pins.)
 */
static void
clean_up(void)
{
	LWLockReleaseAll();
	pgstat_report_wait_end();
	UnlockBuffers();
#if PG_VERSION_NUM >= 180000
	pgaio_error_cleanup();
#elif PG_VERSION_NUM < 160000
	/* Later, resource owners know of reads under way. */
	AbortBufferIO();
#endif
}

void
lbt_guard_swallow(LbtGuard *guard)
{
	ErrorData  *volatile error = NULL;
	bool		due = !guard->silent && lbt_log_is_due(lbt_guard_reported_at, REPORT_INTERVAL_US);

	lbt_guard_has_failed |= !guard->silent;
	guard->failed = true;
	MemoryContextSwitchTo(guard->context);

	/* The server sets another while it maps a segment. */
	CurrentResourceOwner = guard->caller;
	clean_up();
	if (due)
	{
		PG_TRY();
		{
			error = CopyErrorData();
		}
		PG_CATCH();
		{
			/* There is no memory for a copy: flush this error, too. */
		}
		PG_END_TRY();
	}

	/* Raising an error has set it to 0. */
	InterruptHoldoffCount = guard->holdoff + 1;
	depth = guard->depth + 1;
	FlushErrorState();
	if (due)
		ereport(LOG,
				(errcode(error ? error->sqlerrcode : ERRCODE_OUT_OF_MEMORY),
				 errmsg("learnedbtree goes on without a model: %s",
						error ? error->message : "out of memory"),
				 errhint("Models and counts that cannot be reached are done without. If it is memory, look at the limits of the "
						 "operating system: /dev/shm, memory, address space, open files.")));
	if (error)
		FreeErrorData(error);
}
