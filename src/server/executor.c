/*
 * executor.c - hooks around planner, executor and COPY; see executor.h.
 *
 * Statements nest: a function's query runs within its caller's.  Each entry
 * into the executor sets running to its query, and its return restores the one
 * before.  An error leaves it until a transaction or subtransaction aborts.
 * (A handler for each statement would cost more than all else here.)  The plan
 * of a statement that then goes on is unknown, which costs only time.
 */
#include "postgres.h"

#include "access/xact.h"
#include "executor/executor.h"
#include "optimizer/pathnode.h"
#include "optimizer/plancat.h"
#include "optimizer/planner.h"
#include "server/executor.h"
#include "tcop/utility.h"
#include "utils/rel.h"

/* Planner hooks; the first is called after it has looked up a relation. */
#if PG_VERSION_NUM >= 190000
#define describe_hook build_simple_rel_hook
typedef build_simple_rel_hook_type describe_hook_type;
#define DESCRIBE_PARAMETERS PlannerInfo *root, RelOptInfo *rel, RangeTblEntry *rte
#define DESCRIBE_ARGUMENTS root, rel, rte
#define PLAN_PARAMETERS \
	Query *parse, const char *text, int options, ParamListInfo params, ExplainState *explain
#define PLAN_ARGUMENTS parse, text, options, params, explain
#else
#define describe_hook get_relation_info_hook
typedef get_relation_info_hook_type describe_hook_type;
#define DESCRIBE_PARAMETERS PlannerInfo *root, Oid relid, bool inhparent, RelOptInfo *rel
#define DESCRIBE_ARGUMENTS root, relid, inhparent, rel
#define PLAN_PARAMETERS Query *parse, const char *text, int options, ParamListInfo params
#define PLAN_ARGUMENTS parse, text, options, params
#endif

#if PG_VERSION_NUM >= 180000
#define RUN_PARAMETERS QueryDesc *query, ScanDirection direction, uint64 count
#define RUN_ARGUMENTS query, direction, count
#else
#define RUN_PARAMETERS QueryDesc *query, ScanDirection direction, uint64 count, bool once
#define RUN_ARGUMENTS query, direction, count, once
#endif

LbtStatementCallbacks lbt_statement;

/* The hooks before ours, or the server's own functions. */
static describe_hook_type next_describe;
static planner_hook_type next_planner;
static ExecutorStart_hook_type next_start;
static ExecutorRun_hook_type next_run;
static ExecutorEnd_hook_type next_end;
static ProcessUtility_hook_type next_utility;

static QueryDesc *running = NULL;	/* the innermost */

static void
describe_relation(DESCRIBE_PARAMETERS)
{
	if (next_describe)
		next_describe(DESCRIBE_ARGUMENTS);
	lbt_statement.described(rel);
}

static PlannedStmt *
plan(PLAN_PARAMETERS)
{
	PlannedStmt *stmt = next_planner(PLAN_ARGUMENTS);

	if (unlikely(*lbt_statement.looking) && stmt->commandType != CMD_SELECT)
		lbt_statement.starts(stmt);
	lbt_statement.planned(stmt);
	return stmt;
}

static void
executor_start(QueryDesc *query, int eflags)
{
	if (unlikely(lbt_statement.begins != NULL))
		lbt_statement.begins();
	if (unlikely(*lbt_statement.looking))
		lbt_statement.starts(query->plannedstmt);
	next_start(query, eflags);
}

static void
run(RUN_PARAMETERS)
{
	QueryDesc  *outer = running;

	running = query;
	next_run(RUN_ARGUMENTS);
	running = outer;
}

static void
executor_end(QueryDesc *query)
{
	List	   *routed = NIL;
	ListCell   *lc;

	if (unlikely(*lbt_statement.looking) && query->estate != NULL)
		foreach(lc, query->estate->es_tuple_routing_result_relations)
			routed = lappend_oid(routed,
								 RelationGetRelid(((ResultRelInfo *) lfirst(lc))->ri_RelationDesc));
	next_end(query);
	foreach(lc, routed)
		lbt_statement.routed(lfirst_oid(lc));
}

static void
utility(PlannedStmt *plan, const char *text, bool read_only_tree, ProcessUtilityContext context,
		ParamListInfo params, QueryEnvironment *environment, DestReceiver *dest,
		QueryCompletion *completion)
{
	const CopyStmt *copy =
		IsA(plan->utilityStmt, CopyStmt) ? (const CopyStmt *) plan->utilityStmt : NULL;

	if (unlikely(lbt_statement.begins != NULL))
		lbt_statement.begins();
	if (copy)
		lbt_statement.around_copy(copy);
	next_utility(plan, text, read_only_tree, context, params, environment, dest, completion);
	if (copy)
		lbt_statement.around_copy(copy);
}

PlanState *
lbt_executor_plan(void)
{
	return running ? running->planstate : NULL;
}

static void
forget_statements(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_ABORT || event == XACT_EVENT_PARALLEL_ABORT)
		running = NULL;
}

static void
at_subxact(SubXactEvent event, SubTransactionId subxact, SubTransactionId parent, void *arg)
{
	if (event == SUBXACT_EVENT_ABORT_SUB)
		running = NULL;
}

void
lbt_executor_init(void)
{
	RegisterXactCallback(forget_statements, NULL);
	RegisterSubXactCallback(at_subxact, NULL);
	next_describe = describe_hook;
	describe_hook = describe_relation;
	next_planner = planner_hook ? planner_hook : standard_planner;
	planner_hook = plan;
	next_start = ExecutorStart_hook ? ExecutorStart_hook : standard_ExecutorStart;
	ExecutorStart_hook = executor_start;
	next_run = ExecutorRun_hook ? ExecutorRun_hook : standard_ExecutorRun;
	ExecutorRun_hook = run;
	next_end = ExecutorEnd_hook ? ExecutorEnd_hook : standard_ExecutorEnd;
	ExecutorEnd_hook = executor_end;
	next_utility = ProcessUtility_hook ? ProcessUtility_hook : standard_ProcessUtility;
	ProcessUtility_hook = utility;
}
