/*
 * guard.c - swallowing errors of shared memory; see guard.h.
 */
#include "server/guard.h"

#include "miscadmin.h"
#include "pgstat.h"
#include "storage/lwlock.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

/* Least time between two lines in the log, of one process. */
#define REPORT_INTERVAL_MS 60000

static bool has_failed = false;

bool
lbt_guard_has_failed(void)
{
	return has_failed;
}

LbtGuard
lbt_guard_enter(void)
{
	return (LbtGuard) {.context = CurrentMemoryContext,.owner = CurrentResourceOwner,.holdoff = InterruptHoldoffCount};
}

static void
report(const ErrorData *error)
{
	static TimestampTz reported_at = 0;
	TimestampTz now = GetCurrentTimestamp();

	if (reported_at != 0 && !TimestampDifferenceExceeds(reported_at, now, REPORT_INTERVAL_MS))
		return;
	reported_at = now;
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

	if (ERRCODE_TO_CATEGORY(geterrcode()) == ERRCODE_TO_CATEGORY(ERRCODE_OPERATOR_INTERVENTION))
		PG_RE_THROW();
	has_failed = true;
	MemoryContextSwitchTo(guard->context);
	CurrentResourceOwner = guard->owner;	/* the server sets another while it maps a segment */
	LWLockReleaseAll();
	pgstat_report_wait_end();
	InterruptHoldoffCount = guard->holdoff; /* raising the error had set it to 0 */
	error = CopyErrorData();
	FlushErrorState();
	report(error);
	FreeErrorData(error);
}
