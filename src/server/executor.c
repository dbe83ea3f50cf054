/*
 * executor.c - hooks around the executor; see executor.h.
 *
 * Statements nest (a function's query runs within its caller's), and so does lbt_instrumented: each entry into the
 * executor sets it for its statement, and its return or error puts back what was before.
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

bool		lbt_instrumented = false;

static ExecutorStart_hook_type next_start_hook = NULL;
static ExecutorRun_hook_type next_run_hook = NULL;
static ExecutorFinish_hook_type next_finish_hook = NULL;
static ExecutorEnd_hook_type next_end_hook = NULL;
static void (*on_return) (void);
static void (*on_start) (const QueryDesc *query);
static void (*on_end) (const QueryDesc *query, bool nested);
static int	depth = 0;

static void
start(QueryDesc *query, int eflags)
{
	bool		outer = lbt_instrumented;

	lbt_instrumented = true;
	PG_TRY();
	{
		if (next_start_hook)
			next_start_hook(query, eflags);
		else
			standard_ExecutorStart(query, eflags);
	}
	PG_FINALLY();
	{
		lbt_instrumented = outer;
	}
	PG_END_TRY();
	if (query->instrument_options != 0)
		on_start(query);
}

static void
run(RUN_PARAMETERS)
{
	bool		outer = lbt_instrumented;

	depth++;
	lbt_instrumented = query->instrument_options != 0;
	PG_TRY();
	{
		if (next_run_hook)
			next_run_hook(RUN_ARGUMENTS);
		else
			standard_ExecutorRun(RUN_ARGUMENTS);
	}
	PG_FINALLY();
	{
		depth--;
		lbt_instrumented = outer;
	}
	PG_END_TRY();
	if (depth == 0)
		on_return();
}

/* Data-modifying WITH queries may still have to be read to their ends here. */
static void
finish(QueryDesc *query)
{
	bool		outer = lbt_instrumented;

	lbt_instrumented = query->instrument_options != 0;
	PG_TRY();
	{
		if (next_finish_hook)
			next_finish_hook(query);
		else
			standard_ExecutorFinish(query);
	}
	PG_FINALLY();
	{
		lbt_instrumented = outer;
	}
	PG_END_TRY();
}

static void
end(QueryDesc *query)
{
	if (query->instrument_options != 0 && query->planstate != NULL)
		on_end(query, depth > 0);
	if (next_end_hook)
		next_end_hook(query);
	else
		standard_ExecutorEnd(query);
}

void
lbt_executor_on_return(void (*function) (void))
{
	on_return = function;
	next_run_hook = ExecutorRun_hook;
	ExecutorRun_hook = run;
}

void
lbt_executor_watch(void (*started) (const QueryDesc *query), void (*ended) (const QueryDesc *query, bool nested))
{
	on_start = started;
	on_end = ended;
	next_start_hook = ExecutorStart_hook;
	ExecutorStart_hook = start;
	next_finish_hook = ExecutorFinish_hook;
	ExecutorFinish_hook = finish;
	next_end_hook = ExecutorEnd_hook;
	ExecutorEnd_hook = end;
}
