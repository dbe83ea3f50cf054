/*
 * executor.c - hooks of the planner and the executor; see executor.h.
 */
#include "postgres.h"

#include "commands/explain.h"
#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/plancat.h"
#include "optimizer/planner.h"
#include "server/compat.h"
#include "server/executor.h"

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
static ExecutorRun_hook_type next_run;

/* The query that is executed, the innermost; see run(). */
typedef struct Running
{
	const QueryDesc *query;
	uint64		count;			/* it ends after so many rows; 0: after all */
	bool		searched;
	List	   *limits;			/* its Limits, if it has been searched */
} Running;

static Running *running = NULL;

/* The query that the planner was called for last, and is not done with. */
static const Query *planning = NULL;
static int	planning_options;

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
	const Query *outer = planning;
	int			outer_options = planning_options;
	PlannedStmt *stmt;

	PG_TRY();
	{
		planning = parse;
		planning_options = options;
		stmt = next_planner(PLAN_ARGUMENTS);
	}
	PG_FINALLY();
	{
		planning = outer;
		planning_options = outer_options;
	}
	PG_END_TRY();
	lbt_statement.planned(stmt, (options & CURSOR_OPT_PARALLEL_OK) == 0 ||
						  (options & CURSOR_OPT_SCROLL) != 0);
	return stmt;
}

static void
run(RUN_PARAMETERS)
{
	Running    *outer = running;
	Running		this = {query, count};

	PG_TRY();
	{
		running = &this;
		next_run(RUN_ARGUMENTS);
	}
	PG_FINALLY();
	{
		running = outer;
	}
	PG_END_TRY();
}

/* What the state of an index (only) scan would begin its scan with. */
#if PG_VERSION_NUM >= 190000
#define BEGIN_SCAN(node, prefix) \
	index_beginscan((node)->ss.ss_currentRelation, (node)->prefix##_RelationDesc, \
					(node)->ss.ps.state->es_snapshot, (node)->prefix##_Instrument, \
					(node)->prefix##_NumScanKeys, 0, 0)
#elif PG_VERSION_NUM >= 180000
#define BEGIN_SCAN(node, prefix) \
	index_beginscan((node)->ss.ss_currentRelation, (node)->prefix##_RelationDesc, \
					(node)->ss.ps.state->es_snapshot, &(node)->prefix##_Instrument, \
					(node)->prefix##_NumScanKeys, 0)
#else
#define BEGIN_SCAN(node, prefix) \
	index_beginscan((node)->ss.ss_currentRelation, (node)->prefix##_RelationDesc, \
					(node)->ss.ps.state->es_snapshot, (node)->prefix##_NumScanKeys, 0)
#endif

IndexScanDesc
lbt_begin_index_scan(PlanState *node)
{
	IndexOnlyScanState *only = (IndexOnlyScanState *) node;

	if (IsA(node, IndexScanState))
		return ((IndexScanState *) node)->iss_ScanDesc = BEGIN_SCAN((IndexScanState *) node, iss);
	only->ioss_ScanDesc = BEGIN_SCAN(castNode(IndexOnlyScanState, node), ioss);
	only->ioss_ScanDesc->xs_want_itup = true;
	return only->ioss_ScanDesc;
}

/* ---- Limits ---- */

/* For planstate_tree_walker(). */
static bool
collect_limits(PlanState *node, void *context)
{
	List	  **limits = context;

	if (IsA(node, LimitState))
		*limits = lappend(*limits, node);
	return planstate_tree_walker(node, collect_limits, context);
}

/* Do rows of the target come out of a node as they come, maybe with others? */
static bool
passes_rows(PlanState *node, const void *target, bool every, bool *merged)
{
	PlanState **nodes;
	int			n;

	if (node == NULL || (every && node->qual != NULL))
		return false;
	if (node == target)
		return true;
	switch (nodeTag(node))
	{
		case T_IndexScanState:
			return ((IndexScanState *) node)->iss_ScanDesc == target;
		case T_IndexOnlyScanState:
			return ((IndexOnlyScanState *) node)->ioss_ScanDesc == target;
		case T_ResultState:
		case T_LockRowsState:
			return passes_rows(outerPlanState(node), target, every, merged);
		case T_AggState:
			return !every && ((Agg *) node->plan)->aggstrategy == AGG_SORTED &&
				passes_rows(outerPlanState(node), target, every, merged);
		case T_GroupState:
		case T_UniqueState:
		case T_WindowAggState:
		case T_IncrementalSortState:
		case T_ProjectSetState:
		case T_NestLoopState:
		case T_HashJoinState:
		case T_MergeJoinState:
		case T_CustomScanState:
			return !every && passes_rows(outerPlanState(node), target, every, merged);
		case T_SubqueryScanState:
			return passes_rows(((SubqueryScanState *) node)->subplan, target, every, merged);
		case T_AppendState:
			nodes = ((AppendState *) node)->appendplans;
			n = ((AppendState *) node)->as_nplans;
			break;
		case T_MergeAppendState:
			*merged = true;
			nodes = ((MergeAppendState *) node)->mergeplans;
			n = ((MergeAppendState *) node)->ms_nplans;
			break;
		default:
			return false;
	}
	for (int i = 0; i < n; i++)
		if (passes_rows(nodes[i], target, every, merged))
			return true;
	return false;
}

bool
lbt_write_is_limited(void)
{
	return running != NULL && running->count > 0 && running->query->operation != CMD_SELECT;
}

LimitState *
lbt_limit_above(const void *target, bool every, bool *merged)
{
	ListCell   *lc;

	if (running == NULL || running->query->planstate == NULL)
		return NULL;
	if (!running->searched)
	{
		MemoryContext old = MemoryContextSwitchTo(running->query->estate->es_query_cxt);

		(void) collect_limits(running->query->planstate, &running->limits);
		running->searched = true;
		MemoryContextSwitchTo(old);
	}
	foreach(lc, running->limits)
	{
		*merged = false;
		if (passes_rows(outerPlanState(lfirst(lc)), target, every, merged))
			return lfirst(lc);
	}
	return NULL;
}

int64
lbt_limit_rows(const LimitState *limit)
{
	if (limit == NULL || limit->noCount || limit->limitOption == LIMIT_OPTION_WITH_TIES ||
		!ScanDirectionIsForward(limit->ps.state->es_direction))
		return LBT_NO_LIMIT;
	return (int64) Min((uint64) limit->offset + (uint64) limit->count, (uint64) LBT_NO_LIMIT);
}

bool
lbt_planner_for_cursor(const PlannerInfo *root)
{
	while (root->parent_root != NULL)
		root = root->parent_root;

	/* Another query, if another planner's hook has put it there. */
	return root->parse != planning ||
		(planning_options & (CURSOR_OPT_NO_SCROLL | CURSOR_OPT_PARALLEL_OK)) == 0;
}

Plan *
lbt_node_plan(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses,
			  List *plans)
{
	const LbtNodeKind *kind = (const LbtNodeKind *) path->methods;
	CustomScan *scan = makeNode(CustomScan);

	scan->scan.plan.targetlist = tlist;
	scan->custom_scan_tlist = copyObjectImpl(tlist);
	scan->custom_plans = plans;
	scan->custom_private = path->custom_private;
	scan->methods = &kind->plan;
	return &scan->scan.plan;
}

Node *
lbt_node_state(CustomScan *plan)
{
	const LbtNodeKind *kind = (const LbtNodeKind *)
		((const char *) plan->methods - offsetof(LbtNodeKind, plan));
	CustomScanState *state = (CustomScanState *) newNode(kind->state_size, T_CustomScanState);

	state->methods = &kind->exec;
	return (Node *) state;
}

void
lbt_explain_tally(const char *of_what, const LbtTally *tally, ExplainState *es)
{
	if (tally->asked == 0)
		return;
	ExplainPropertyInteger(psprintf("%s Prefetched", of_what), NULL, (int64) tally->asked, es);
	ExplainPropertyInteger(psprintf("%s Used", of_what), NULL, (int64) tally->used, es);
}

void
lbt_executor_init(void)
{
	next_describe = describe_hook;
	describe_hook = describe_relation;
	next_planner = planner_hook ? planner_hook : standard_planner;
	planner_hook = plan;
	next_run = ExecutorRun_hook ? ExecutorRun_hook : standard_ExecutorRun;
	ExecutorRun_hook = run;
}
