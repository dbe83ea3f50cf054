/*
 * guard.c - swallowing errors of shared memory; see guard.h.
 */
#include "server/guard.h"

#include "miscadmin.h"
#include "pgstat.h"
#include "storage/lwlock.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

/* Least time between two lines in the log. */
#define REPORT_INTERVAL_US UINT64CONST(60000000)

static pg_atomic_uint64 own_report = {0};
static pg_atomic_uint64 *reported_at = &own_report;

static bool has_failed = false;

void
lbt_guard_report_together(pg_atomic_uint64 *shared)
{
	reported_at = shared;
}

bool
lbt_guard_has_failed(void)
{
	return has_failed;
}

LbtGuard
lbt_guard_enter(void)
{
	LbtGuard	guard = {.context = CurrentMemoryContext,.owner = CurrentResourceOwner,.holdoff = InterruptHoldoffCount};

	HOLD_INTERRUPTS();
	return guard;
}

void
lbt_guard_leave(const LbtGuard *guard)
{
	InterruptHoldoffCount = guard->holdoff;
}

static void
report(const ErrorData *error)
{
	uint64		now = (uint64) GetCurrentTimestamp();
	uint64		last = pg_atomic_read_u64(reported_at);

	if ((last != 0 && now - last < REPORT_INTERVAL_US) || !pg_atomic_compare_exchange_u64(reported_at, &last, now))
		return;
	ereport(LOG,
			(errcode(error->sqlerrcode),
			 errmsg("learnedbtree could not use its shared memory, and goes on as btree: %s", error->message),
			 errhint("Models and counts that cannot be reached are done without. Look at the limits of the operating "
					 "system: /dev/shm, memory, address space, open files.")));
}

void
lbt_guard_swallow(const LbtGuard *guard)
{
	ErrorData  *error;

	has_failed = true;
	MemoryContextSwitchTo(guard->context);
	CurrentResourceOwner = guard->owner;	/* the server sets another while it maps a segment */
	LWLockReleaseAll();
	pgstat_report_wait_end();
	InterruptHoldoffCount = guard->holdoff + 1; /* raising the error had set it to 0 */
	error = CopyErrorData();
	FlushErrorState();
	report(error);
	FreeErrorData(error);
}
