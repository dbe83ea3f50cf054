/*
 * guards.c - blocks that break the rules of guards, or take long; for tests.
 */
#include "server/guard.c"

#include "fmgr.h"
#include "storage/lmgr.h"

PG_MODULE_MAGIC;
PG_FUNCTION_INFO_V1(guard_fails);
PG_FUNCTION_INFO_V1(guard_locks);
PG_FUNCTION_INFO_V1(guard_lasts);

/* Lock a relation, and fail.  Was the failure noticed? */
Datum
guard_fails(PG_FUNCTION_ARGS)
{
	volatile bool failed = false;

	LBT_GUARD_BEGIN_SILENTLY();
	{
		LockRelationOid(PG_GETARG_OID(0), AccessShareLock);
		elog(ERROR, "failed");
	}
	LBT_GUARD_END(failed = true);
	PG_RETURN_BOOL(failed);
}

/* Lock a relation; keep: to the block's end. */
Datum
guard_locks(PG_FUNCTION_ARGS)
{
	LBT_GUARD_BEGIN_SILENTLY();
	{
		LockRelationOid(PG_GETARG_OID(0), AccessShareLock);
		if (!PG_GETARG_BOOL(1))
			UnlockRelationOid(PG_GETARG_OID(0), AccessShareLock);
	}
	LBT_GUARD_END((void) 0);
	PG_RETURN_VOID();
}

/* Go on until the statement is cancelled. */
Datum
guard_lasts(PG_FUNCTION_ARGS)
{
	LBT_GUARD_BEGIN_SILENTLY();
	{
		for (;;)
		{
			lbt_guard_check_interrupts();
			pg_usleep(1000);
		}
	}
	LBT_GUARD_END((void) 0);
	PG_RETURN_VOID();
}
