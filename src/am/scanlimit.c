/*
 * scanlimit.c - how many more rows a LIMIT lets its scan be asked for.
 *
 * The server tells a scan of no plan.  But in the tree of states that the
 * executor is running, one node has this very scan.  Where only nodes that
 * hand on each row are between it and a Limit above, the Limit's own state
 * says what is left:
 *
 *     Limit               offset + count - position
 *       -> LockRows       asks for a row when it is asked for one
 *            -> Index Scan, without a filter
 *
 * Look this up when blocks are missing; it only says how far to read ahead.
 * Where LockRows drops a row, or entries are dead, the scan goes on beyond
 * what was left, and looks again.
 */
#include "am/scan.h"

#include "nodes/execnodes.h"
#include "nodes/nodeFuncs.h"
#include "server/executor.h"

typedef struct Search
{
	IndexScanDesc scan;
	LbtLimit   *limit;
} Search;

static bool hands_on(PlanState *node, Search *search);

static bool
any_hands_on(PlanState **nodes, int n, Search *search)
{
	for (int i = 0; i < n; i++)
		if (hands_on(nodes[i], search))
			return true;
	return false;
}

/* Does this node hand on each row of the scan, perhaps among others'? */
static bool
hands_on(PlanState *node, Search *search)
{
	if (node == NULL || node->qual != NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_IndexScanState:
			return ((IndexScanState *) node)->iss_ScanDesc == search->scan;
		case T_IndexOnlyScanState:
			return ((IndexOnlyScanState *) node)->ioss_ScanDesc == search->scan;
		case T_ResultState:
		case T_LockRowsState:
			return hands_on(outerPlanState(node), search);
		case T_SubqueryScanState:
			return hands_on(((SubqueryScanState *) node)->subplan, search);
		case T_AppendState:
			return any_hands_on(((AppendState *) node)->appendplans,
								((AppendState *) node)->as_nplans, search);
		case T_MergeAppendState:
			search->limit->merged = true;
			return any_hands_on(((MergeAppendState *) node)->mergeplans,
								((MergeAppendState *) node)->ms_nplans, search);
		default:
			return false;
	}
}

/* Find the Limit of the scan.  For planstate_tree_walker(). */
static bool
find_limit(PlanState *node, void *state)
{
	Search	   *search = state;

	if (IsA(node, LimitState))
	{
		search->limit->merged = false;
		if (hands_on(outerPlanState(node), search))
		{
			search->limit->state = (LimitState *) node;
			return true;
		}
	}
	return planstate_tree_walker(node, find_limit, state);
}

int64
lbt_limit_left(LbtLimit *limit, IndexScanDesc scan)
{
	PlanState  *plan = limit->asked ? NULL : lbt_executor_plan();
	const LimitState *state;
	uint64		left;

	if (plan != NULL)
	{
		Search		search = {scan, limit};

		(void) find_limit(plan, &search);
		limit->asked = true;
	}
	state = limit->state;
	if (state == NULL || state->noCount || state->limitOption == LIMIT_OPTION_WITH_TIES ||
		!ScanDirectionIsForward(state->ps.state->es_direction))
		return LBT_NO_LIMIT;
	left = (uint64) state->offset + (uint64) state->count - (uint64) state->position;
	return (int64) Min(left, (uint64) LBT_NO_LIMIT);
}
