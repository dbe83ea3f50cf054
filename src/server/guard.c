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
#include "storage/lock.h"
#include "storage/lwlock.h"
#include "utils/catcache.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

/* Least time between two lines in the log. */
#define REPORT_INTERVAL_US UINT64CONST(60000000)

static pg_atomic_uint64 own_report = {0};
pg_atomic_uint64 *lbt_guard_reported_at = &own_report;

bool		lbt_guard_has_failed = false;

/* Guards that are entered.  Each holds interrupts. */
static uint32 depth = 0;

bool		lbt_guard_interrupted = false;

/* Settings that are off in guards (src/README, "Guards"), as they were. */
static bool exit_on_error = false;
static bool zero_damaged = false;

#ifdef USE_ASSERT_CHECKING

/*
 * The server looks for invalidations when it has locked a relation.  With
 * debug_discard_caches, it then calls this for each lock, and nothing that a
 * block asks the catalogs for is known before, so each such question fails.
 */
static void
expect_no_lock(Datum arg, int cache, uint32 hash)
{
	Assert(depth == 0 || InterruptHoldoffCount < depth || lbt_guard_interrupted ||
		   proc_exit_inprogress);
}

static void
discard_caches(void)
{
	static bool registered = false;

	if (!registered)
		CacheRegisterSyscacheCallback(RELOID, expect_no_lock, (Datum) 0);
	registered = true;
	if (debug_discard_caches > 0)
		ResetCatalogCaches();
}

/* Servers without assertions lack it, on which this library may run, too. */
#pragma weak GetLockMethodLocalHash

static bool
holds_locks(ResourceOwner owner)
{
	HASH_SEQ_STATUS locks;
	const LOCALLOCK *lock;
	bool		found = false;

	if (GetLockMethodLocalHash == NULL)
		return false;
	hash_seq_init(&locks, GetLockMethodLocalHash());
	while ((lock = hash_seq_search(&locks)) != NULL)
		for (int i = 0; i < lock->numLockOwners; i++)
			found |= lock->lockOwners[i].owner == owner;
	return found;
}
#endif

/* In the outermost guard, and outside of it. */
static void
settings_off(void)
{
	exit_on_error = ExitOnAnyError;
	zero_damaged = zero_damaged_pages;
	ExitOnAnyError = zero_damaged_pages = false;
}

static void
settings_back(void)
{
	ExitOnAnyError = exit_on_error;
	zero_damaged_pages = zero_damaged;
}

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
	{
		/* What an error may have left. */
		depth = 0;
		lbt_guard_interrupted = false;
	}
	guard->holdoff = InterruptHoldoffCount;
	guard->cancel_holdoff = QueryCancelHoldoffCount;
	guard->depth = depth;
	guard->context = CurrentMemoryContext;
	guard->caller = CurrentResourceOwner;
	guard->owner = ResourceOwnerCreate(CurrentResourceOwner, "learnedbtree shared memory");
#ifdef USE_ASSERT_CHECKING
	discard_caches();
#endif
	CurrentResourceOwner = guard->owner;
	if (depth == 0)
		settings_off();
	HOLD_INTERRUPTS();
	depth++;
	return true;
}

void
lbt_guard_check_interrupts(void)
{
	bool		guarded = depth == 1 && InterruptHoldoffCount == 1;

	if (!INTERRUPTS_PENDING_CONDITION())
		return;
	lbt_guard_interrupted = true;
	if (guarded)
	{
		RESUME_INTERRUPTS();
		settings_back();
	}
	CHECK_FOR_INTERRUPTS();
	if (guarded)
	{
		HOLD_INTERRUPTS();
		settings_off();
	}
	lbt_guard_interrupted = false;
}

void
lbt_guard_leave(const LbtGuard *guard)
{
	CurrentResourceOwner = guard->caller;
	Assert(guard->failed || !holds_locks(guard->owner));
	ResourceOwnerRelease(guard->owner, RESOURCE_RELEASE_BEFORE_LOCKS, !guard->failed, false);

	/* Where there is no owner around, there are no locks, either. */
	if (guard->caller != NULL)
		ResourceOwnerRelease(guard->owner, RESOURCE_RELEASE_LOCKS, !guard->failed, false);
	ResourceOwnerRelease(guard->owner, RESOURCE_RELEASE_AFTER_LOCKS, !guard->failed, false);
	ResourceOwnerDelete(guard->owner);
	depth = guard->depth;
	if (depth == 0)
		settings_back();
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
	bool		due;

	guard->failed = true;
	if (lbt_guard_interrupted)
	{
		lbt_guard_interrupted = false;
		lbt_guard_leave(guard);
		PG_RE_THROW();
	}
	due = !guard->silent && lbt_log_is_due(lbt_guard_reported_at, REPORT_INTERVAL_US);
	lbt_guard_has_failed |= !guard->silent;
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

	/* Raising an error has set both to 0 (src/README, "Guards"). */
	InterruptHoldoffCount = guard->holdoff + 1;
	QueryCancelHoldoffCount = guard->cancel_holdoff;
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
