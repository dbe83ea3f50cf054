/*
 * guard.h - doing without shared memory that cannot be had.
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
	bool		lent;			/* the owner is the caller's */
	uint32		holdoff;
	bool		failed;
} LbtGuard;

/*
 * Around a block that uses shared memory, or reads pages for a model: any error in it is swallowed, and on_failure, a
 * statement, is run instead of what was left of the block.  LWLocks, half-mapped segments, pins and reads under way that
 * it left behind are released, and the log gets one line a minute.  Interrupts are held: what they raise (a cancelled
 * query, an error of a parallel worker) is not the block's.  For models and counts only: they are never worth failing a
 * user's statement.
 *
 *	LBT_GUARD_BEGIN();
 *	{
 *		...
 *	}
 *	LBT_GUARD_END(known = false);
 *
 * Mapping a segment may fail with any error: no memory, no file descriptor, no right, one of the server's own ("cannot
 * attach the same segment more than once", after a first failure).  The block leaves by its end, not by return; it must
 * have nothing else to clean up.  The caller holds no LWLock and is not in the course of handling an error.  While the
 * process exits an error ends the process at once, whatever is around it.
 */
#define LBT_GUARD_BEGIN() LBT_GUARD_BEGIN_AS(NULL)

/* The same, without a line in the log, for a block whose pins and reads are to belong to this resource owner; any error is
 * dropped. */
#define LBT_GUARD_BEGIN_AS(owner) \
	do { \
		LbtGuard	lbt_guard_; \
		lbt_guard_enter(&lbt_guard_, owner); \
		PG_TRY()

#define LBT_GUARD_END(on_failure) \
		PG_CATCH(); \
		{ \
			lbt_guard_swallow(&lbt_guard_); \
			on_failure; \
		} \
		PG_END_TRY(); \
		lbt_guard_leave(&lbt_guard_); \
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

/* Release what a resource owner of ours has, which is no lock, and delete it.  good: not after an error. */
extern void lbt_release_owner(ResourceOwner owner, bool good);

/* Let all processes together write one line a minute, by a TimestampTz in shared memory; until then, each does. */
extern void lbt_guard_report_together(pg_atomic_uint64 *reported_at);

/* Has this process met such an error?  It may meet it again wherever it looks at shared memory. */
extern bool lbt_guard_has_failed(void);

extern void lbt_guard_enter(LbtGuard *guard, ResourceOwner owner);
extern void lbt_guard_swallow(LbtGuard *guard);
extern void lbt_guard_leave(const LbtGuard *guard);

#endif							/* LBT_GUARD_H */
