/*
 * guard.h - going on without shared memory that is not available.
 */
#ifndef LBT_GUARD_H
#define LBT_GUARD_H

#include "postgres.h"

#include "port/atomics.h"
#include "utils/resowner.h"

typedef struct LbtGuard
{
	MemoryContext context;
	ResourceOwner caller;
	ResourceOwner owner;		/* of what the block acquires */
	uint32		holdoff;		/* InterruptHoldoffCount at entry */
	uint32		cancel_holdoff; /* QueryCancelHoldoffCount at entry */
	uint32		depth;			/* guards around this one */
	bool		silent;
	bool		failed;
} LbtGuard;

/*
 * Around a block that uses shared memory, or reads pages for a model or ahead
 * of need: swallow any error in it, release what it has left, and run
 * on_failure, a statement, instead of its rest.  The log gets one line a
 * minute, of each process until it has attached.  Interrupts are held, so the
 * block must wait for no other session: it reads no catalog, opens no relation
 * and takes no heavyweight lock (src/README, "Guards").
 *
 *	LBT_GUARD_BEGIN();
 *	{
 *		...
 *	}
 *	LBT_GUARD_END(known = false);
 *
 * The block leaves by its end, not by return, and has nothing else to clean
 * up.  The caller is not handling an error.  While the process exits, an error
 * ends it at once.
 *
 * After an error all LWLocks are released, whoever took them.  So where
 * interrupts are held, as they are while a process holds an LWLock or a page's
 * lock, on_failure runs instead of the block.  (Guards around this one, and
 * the exit of the process, hold them without a lock.)  Where that must not
 * count as a failure, ask lbt_guard_may_enter() before.
 */
#define LBT_GUARD_BEGIN() LBT_GUARD_BEGIN_AS(false)

/* The same without a line in the log. */
#define LBT_GUARD_BEGIN_SILENTLY() LBT_GUARD_BEGIN_AS(true)

#define LBT_GUARD_BEGIN_AS(silently) \
	do { \
		LbtGuard	lbt_guard_ = {.silent = silently}; \
		if (lbt_guard_enter(&lbt_guard_)) \
		{ \
			PG_TRY()

#define LBT_GUARD_END(on_failure) \
			PG_CATCH(); \
			{ \
				lbt_guard_swallow(&lbt_guard_); \
				on_failure; \
			} \
			PG_END_TRY(); \
			lbt_guard_leave(&lbt_guard_); \
		} \
		else \
			on_failure; \
	} while (0)

/* The same around one statement. */
#define LBT_GUARDED(statement, on_failure) \
	do { \
		LBT_GUARD_BEGIN(); \
		{ \
			statement; \
		} \
		LBT_GUARD_END(on_failure); \
	} while (0)

/* When the log got the last line, a TimestampTz.  Processes may share it. */
extern pg_atomic_uint64 *lbt_guard_reported_at;

/*
 * Is it time for another line in the log, this many microseconds after the one
 * at *last, a TimestampTz (0: never)?  Then set *last to now: of all
 * processes, only one is told so.
 */
extern bool lbt_log_is_due(pg_atomic_uint64 *last, uint64 interval_us);

/* Has this process met such an error?  It may again, at any shared memory. */
extern bool lbt_guard_has_failed;

/* Would a guard's block be run now? */
extern bool lbt_guard_may_enter(void);

/*
 * Check for interrupts, in a guard's block that takes long, while it holds no
 * lock and no pin: an error that they raise is not swallowed.  Does nothing
 * within a second guard, and is CHECK_FOR_INTERRUPTS() outside of them.
 */
extern void lbt_guard_check_interrupts(void);

/* For who handles an error, and has entered a guard before: is it of these? */
extern bool lbt_guard_interrupted;

extern bool lbt_guard_enter(LbtGuard *guard);
extern void lbt_guard_swallow(LbtGuard *guard);
extern void lbt_guard_leave(const LbtGuard *guard);

#endif							/* LBT_GUARD_H */
