/*
 * executor.h - moments in the life of a statement, and whom to call then; what
 * all kinds of plan nodes of ours have in common.
 *
 * Hooks run for every statement: with nothing to do, in a few instructions.
 */
#ifndef LBT_EXECUTOR_H
#define LBT_EXECUTOR_H

#include "access/genam.h"
#include "nodes/execnodes.h"
#include "nodes/extensible.h"
#include "nodes/pathnodes.h"
#include "server/stream.h"

typedef struct LbtStatementCallbacks
{
	/* The planner has described something in FROM, and its indexes. */
	void		(*described) (RelOptInfo *rel);

	/* Rows go to this partition, which the statement is about to open. */
	void		(*routed) (Oid table);

	/*
	 * The planner has finished a plan, which may still be changed.
	 * for_cursor: maybe of a cursor, to go backward or be WHERE CURRENT OF.
	 */
	void		(*planned) (PlannedStmt *plan, bool for_cursor);
} LbtStatementCallbacks;

extern LbtStatementCallbacks lbt_statement;

/* A kind of plan node: what its path, plan node and state point to. */
typedef struct LbtNodeKind
{
	CustomPathMethods path;
	CustomScanMethods plan;
	CustomExecMethods exec;
	size_t		state_size;
} LbtNodeKind;

/* One of this name and state; what follows are its CustomExecMethods. */
#define LBT_NODE_KIND(name, state, ...) \
	{ \
		{.CustomName = (name), .PlanCustomPath = lbt_node_plan}, \
		{.CustomName = (name), .CreateCustomScanState = lbt_node_state}, \
		{.CustomName = (name), __VA_ARGS__}, \
		sizeof(state) \
	}

extern Plan *lbt_node_plan(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist,
						   List *clauses, List *plans);
extern Node *lbt_node_state(CustomScan *plan);

/* Is it one of our kinds?  They only read, and evaluate what Plan has. */
static inline bool
lbt_is_our_node(const Plan *plan)
{
	return IsA(plan, CustomScan) &&
		((const CustomScan *) plan)->methods->CreateCustomScanState == lbt_node_state;
}

/* In EXPLAIN ANALYZE, of blocks asked for ahead, if there were any. */
extern void lbt_explain_tally(const char *of_what, const LbtTally *tally,
							  struct ExplainState *es);

/*
 * Begin the scan of an index (only) scan node, before the node does so itself
 * and without its keys: it needs a rescan.
 */
extern IndexScanDesc lbt_begin_index_scan(PlanState *node);

/*
 * The Limit above a node of the innermost query, or above the node of an index
 * scan (by its IndexScanDesc), where only nodes that pass on rows as they come
 * are in between; NULL if there is none, or nobody knows.  every: where these
 * pass each row once, so that the Limit's state says what is left.  Sets
 * *merged if other nodes' rows may come instead.  The Limit lives as long as
 * the node.
 */
extern LimitState *lbt_limit_above(const void *target, bool every, bool *merged);

/* Does the innermost query write, and end once it has returned some rows? */
extern bool lbt_write_is_limited(void);

/* The rows that a Limit takes, those it skips among them. */
extern int64 lbt_limit_rows(const LimitState *limit);

#define LBT_NO_LIMIT PG_INT64_MAX

/*
 * May a cursor go backwards through the plan that is being made?  Not if it is
 * NO SCROLL; nor does one of a plan that workers may run, which is a portal of
 * the protocol.  True if not known.
 */
extern bool lbt_planner_for_cursor(const PlannerInfo *root);

/* Call in _PG_init, when all of them are set. */
extern void lbt_executor_init(void);

#endif							/* LBT_EXECUTOR_H */
