/*
 * guard.c - catching "out of resources"; see guard.h.
 */
#include "server/guard.h"

#include "miscadmin.h"
#include "storage/lwlock.h"
#include "utils/memutils.h"

bool
lbt_guarded(void (*body) (void *arg), void *arg)
{
	MemoryContext caller = CurrentMemoryContext;
	uint32		holdoff = InterruptHoldoffCount;
	volatile bool done = true;

	PG_TRY();
	{
		body(arg);
	}
	PG_CATCH();
	{
		if (ERRCODE_TO_CATEGORY(geterrcode()) != ERRCODE_TO_CATEGORY(ERRCODE_INSUFFICIENT_RESOURCES))
			PG_RE_THROW();
		MemoryContextSwitchTo(caller);
		FlushErrorState();
		LWLockReleaseAll();
		InterruptHoldoffCount = holdoff;	/* raising the error had set it to 0 */
		done = false;
	}
	PG_END_TRY();
	return done;
}
