/*
 * executor.c - a hook around runs of the executor; see executor.h.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "server/executor.h"

#if PG_VERSION_NUM >= 180000
#define RUN_PARAMETERS QueryDesc *query, ScanDirection direction, uint64 count
#define RUN_ARGUMENTS query, direction, count
#else
#define RUN_PARAMETERS QueryDesc *query, ScanDirection direction, uint64 count, bool once
#define RUN_ARGUMENTS query, direction, count, once
#endif

static ExecutorRun_hook_type next_hook = NULL;
static void (*on_return) (void);
static int	depth = 0;

static void
run(RUN_PARAMETERS)
{
	depth++;
	PG_TRY();
	{
		if (next_hook)
			next_hook(RUN_ARGUMENTS);
		else
			standard_ExecutorRun(RUN_ARGUMENTS);
	}
	PG_FINALLY();
	{
		depth--;
	}
	PG_END_TRY();
	if (depth == 0)
		on_return();
}

void
lbt_executor_on_return(void (*function) (void))
{
	on_return = function;
	next_hook = ExecutorRun_hook;
	ExecutorRun_hook = run;
}
