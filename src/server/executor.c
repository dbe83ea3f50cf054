/*
 * executor.c - hooks around the executor and COPY; see executor.h.
 *
 * Statements nest: a function's query runs within its caller's.  depth counts how far.  An error leaves it as it is,
 * until the transaction or subtransaction that has caught it is aborted: the callbacks put back what was when it
 * began.  (A handler of errors for each statement would cost more than all else here.)
 */
#include "postgres.h"

#include "access/xact.h"
#include "executor/executor.h"
#include "server/executor.h"
#include "tcop/utility.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#if PG_VERSION_NUM >= 180000
#define RUN_PARAMETERS QueryDesc *query, ScanDirection direction, uint64 count
#define RUN_ARGUMENTS query, direction, count
#else
#define RUN_PARAMETERS QueryDesc *query, ScanDirection direction, uint64 count, bool once
#define RUN_ARGUMENTS query, direction, count, once
#endif

LbtStatementCallbacks lbt_statement;

static ExecutorStart_hook_type next_start_hook = NULL;
static ExecutorRun_hook_type next_run_hook = NULL;
static ExecutorEnd_hook_type next_end_hook = NULL;
static ProcessUtility_hook_type next_utility_hook = NULL;
static int	depth = 0;

/* depth when a subtransaction began, by its nesting level. */
static int *saved = NULL;
static int	nsaved = 0;

static void
start(QueryDesc *query, int eflags)
{
	if (unlikely(*lbt_statement.looking))
		lbt_statement.starts(query->plannedstmt);
	if (next_start_hook)
		next_start_hook(query, eflags);
	else
		standard_ExecutorStart(query, eflags);
}

static void
run(RUN_PARAMETERS)
{
	depth++;
	if (next_run_hook)
		next_run_hook(RUN_ARGUMENTS);
	else
		standard_ExecutorRun(RUN_ARGUMENTS);
	if (--depth == 0)
		lbt_statement.returned();
}

static void
end(QueryDesc *query)
{
	List	   *routed = NIL;
	ListCell   *lc;

	if (unlikely(query->instrument_options != 0) && query->planstate != NULL)
		lbt_statement.instrumented_ends(query);
	if (unlikely(*lbt_statement.looking) && query->estate != NULL)
		foreach(lc, query->estate->es_tuple_routing_result_relations)
			routed = lappend_oid(routed, RelationGetRelid(((ResultRelInfo *) lfirst(lc))->ri_RelationDesc));
	if (next_end_hook)
		next_end_hook(query);
	else
		standard_ExecutorEnd(query);
	if (unlikely(routed != NIL))
	{
		lbt_statement.routed(routed);
		list_free(routed);
	}
}

static void
utility(PlannedStmt *plan, const char *text, bool read_only_tree, ProcessUtilityContext context, ParamListInfo params,
		QueryEnvironment *environment, DestReceiver *dest, QueryCompletion *completion)
{
	const CopyStmt *copy = IsA(plan->utilityStmt, CopyStmt) ? (const CopyStmt *) plan->utilityStmt : NULL;

	if (copy)
		lbt_statement.around_copy(copy);
	if (next_utility_hook)
		next_utility_hook(plan, text, read_only_tree, context, params, environment, dest, completion);
	else
		standard_ProcessUtility(plan, text, read_only_tree, context, params, environment, dest, completion);
	if (copy)
		lbt_statement.around_copy(copy);
}

static void
at_xact_end(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_ABORT || event == XACT_EVENT_PARALLEL_ABORT)
		depth = 0;
}

static void
at_subxact(SubXactEvent event, SubTransactionId subxact, SubTransactionId parent, void *arg)
{
	int			level = GetCurrentTransactionNestLevel();

	if (event == SUBXACT_EVENT_START_SUB)
	{
		if (level >= nsaved)
		{
			int			larger = Max(16, 2 * level);

			saved = saved ? repalloc(saved, larger * sizeof(int)) :
				MemoryContextAlloc(TopMemoryContext, larger * sizeof(int));
			nsaved = larger;
		}
		saved[level] = depth;
	}
	else if (event == SUBXACT_EVENT_ABORT_SUB && level < nsaved)
		depth = saved[level];
}

void
lbt_executor_init(void)
{
	RegisterXactCallback(at_xact_end, NULL);
	RegisterSubXactCallback(at_subxact, NULL);
	next_start_hook = ExecutorStart_hook;
	ExecutorStart_hook = start;
	next_run_hook = ExecutorRun_hook;
	ExecutorRun_hook = run;
	next_end_hook = ExecutorEnd_hook;
	ExecutorEnd_hook = end;
	next_utility_hook = ProcessUtility_hook;
	ProcessUtility_hook = utility;
}
