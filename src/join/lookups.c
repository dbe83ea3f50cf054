/*
 * lookups.c - what a row is looked up by, in a finished plan; see join.h.
 *
 *     inner side       index scan        conditions     parameters of the row
 *     (Limit, Sort,    that it begins    by which it    are columns of the
 *      Agg, ...)  -->  with          --> begins     --> node's input
 *
 * Or scans of partitions, of which each row has one.
 */
#include "join/join.h"

#include "access/stratnum.h"
#include "access/table.h"
#include "am/am.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/partcache.h"

/* What a row is looked up by. */
typedef struct Search
{
	const List *params;			/* NestLoopParams: what is set for each row */
	const LbtPlanWalk *walk;
	LbtLookups *lookups;		/* found, for the node */

	/* what an inner side begins with: find_lookup() */
	const Plan *append;			/* scans of partitions; or NULL: */
	LbtPlannedScan scan;

	/* its keys */
	Relation	index;
	const LbtIndex *view;
} Search;

bool
lbt_planned_scan(const Plan *plan, LbtPlannedScan *scan)
{
	ScanDirection direction = ForwardScanDirection;

	switch (nodeTag(plan))
	{
		case T_IndexScan:
			scan->index = ((const IndexScan *) plan)->indexid;
			scan->conditions = ((const IndexScan *) plan)->indexqual;
			direction = ((const IndexScan *) plan)->indexorderdir;
			break;
		case T_IndexOnlyScan:
			scan->index = ((const IndexOnlyScan *) plan)->indexid;
			scan->conditions = ((const IndexOnlyScan *) plan)->indexqual;
			direction = ((const IndexOnlyScan *) plan)->indexorderdir;
			break;
		case T_BitmapIndexScan:
			scan->index = ((const BitmapIndexScan *) plan)->indexid;
			scan->conditions = ((const BitmapIndexScan *) plan)->indexqual;
			break;
		default:
			return false;
	}
	scan->rows = !IsA(plan, IndexOnlyScan);
	scan->backward = ScanDirectionIsBackward(direction);
	return true;
}

/*
 * Find the index scan that an inner side, a loop's or a subquery's plan,
 * begins with each time that it is scanned, or an Append; false if it begins
 * with neither.  (Where a Result's condition or a Limit of 0 prevents it,
 * predictions go unused.)
 */
static bool
find_lookup(Search *search, const Plan *inner)
{
	search->append = NULL;
	while (inner != NULL)
	{
		if (lbt_planned_scan(inner, &search->scan))
			return true;
		switch (nodeTag(inner))
		{
			case T_Append:
			case T_MergeAppend:
				search->append = inner;
				return true;
			case T_SubqueryScan:
				inner = ((const SubqueryScan *) inner)->subplan;
				break;
			case T_CustomScan:
				if (!lbt_is_lookahead(inner))
					return false;
				inner = inner->lefttree;
				break;
			case T_Result:
				/* The planner's for max(): its column is a subquery. */
				inner = inner->lefttree != NULL || inner->initPlan == NIL ? inner->lefttree :
					exec_subplan_get_plan(search->walk->stmt,
										  linitial_node(SubPlan, inner->initPlan));
				break;
			case T_BitmapHeapScan:
			case T_Memoize:
			case T_Limit:
			case T_ProjectSet:
			case T_Agg:
			case T_Group:
			case T_Unique:
			case T_Sort:
			case T_IncrementalSort:
			case T_WindowAgg:
			case T_NestLoop:
				inner = inner->lefttree;
				break;
			default:
				return false;
		}
	}
	return false;
}

/*
 * Copy what a column is compared with; a parameter that is set to a column of
 * the row becomes that column of the node's input.  Other parameters are set
 * from further out, and stay the same until the next rescan.  NULL if it is
 * none of these, or set by a subquery when it is first asked for.
 */
static Node *
copy_key(Search *search, Node *key)
{
	const Param *param = (const Param *) key;
	ListCell   *lc;

	if (IsA(key, Const))
		return copyObjectImpl(key);
	if (!IsA(key, Param))
		return NULL;
	foreach(lc, param->paramkind == PARAM_EXEC ? search->params : NIL)
	{
		const NestLoopParam *set = lfirst(lc);
		const Var  *var = set->paramval;

		if (set->paramno != param->paramid)
			continue;
		return IsA(var, Var) ? (Node *) makeVar(INDEX_VAR, var->varattno, var->vartype,
												var->vartypmod, var->varcollid, 0) : NULL;
	}
	if (param->paramkind != PARAM_EXTERN &&
		(param->paramkind != PARAM_EXEC ||
		 bms_is_member(param->paramid, search->walk->init_params)))
		return NULL;
	return copyObjectImpl(key);
}

/* Where in a column a key is: the scan begins there, equals it, or ends. */
typedef enum Where
{
	END = -1,
	EQUAL,
	BEGIN
} Where;

/*
 * A copy of the key that a column equals or, of a bound, at which the scan
 * begins or ends in it, but for NULLs; NULL if no condition has a plain one.
 * Sets *type, the key's, and the bound's *past.
 */
static Node *
find_key(Search *search, int column, Where where, bool *past, Oid *type)
{
	const LbtKeyColumn *c = &search->view->keyspec.column[column];
	bool		backward = search->scan.backward;
	int			side = backward != c->desc ? -where : where;	/* -1: upper bounds */
	ListCell   *lc;

	foreach(lc, search->scan.conditions)
	{
		const OpExpr *condition = lfirst(lc);
		const Var  *var;
		int			strategy;
		Oid			lefttype;
		Node	   *key;

		if (!IsA(condition, OpExpr) || list_length(condition->args) != 2)
			continue;
		var = linitial(condition->args);
		if (!IsA(var, Var) || var->varattno != column + 1)
			continue;
		get_op_opfamily_properties(condition->opno, search->index->rd_opfamily[column], false,
								   &strategy, &lefttype, type);
		if ((strategy > BTEqualStrategyNumber) - (strategy < BTEqualStrategyNumber) != side)
			continue;
		key = lbt_key_as_it_stands(lsecond(condition->args), c, type);
		key = lbt_keyspec_takes(c, *type) ? copy_key(search, key) : NULL;
		if (key == NULL)
			continue;

		/* x > v begins after v; backward, so does x <= v, and x > v ends. */
		if (where != EQUAL)
			*past = (strategy == BTLessStrategyNumber || strategy == BTGreaterStrategyNumber) !=
				(backward == (where == BEGIN));
		return key;
	}
	return NULL;
}

/*
 * Find the keys of the bound at which inner scans begin, and what the node has
 * to know (LbtLookaheadFact); nothing if rows give none, or the index is not
 * served.  Rows are looked up once in an index, as that has one mailbox.
 */
static void
find_keys(Search *search)
{
	LbtLookups *lookups = search->lookups;
	List	   *keys = NIL;
	List	   *types = NIL;
	bool		past = search->scan.backward;
	bool		end_past;
	int			end = 0;
	int			nequal = 0;
	Oid			type;
	Node	   *key;
	ListCell   *lc;

	/* Partitions have indexes of their own, perhaps thousands. */
	foreach(lc, lookups->route == NIL ? lookups->facts : NIL)
		if (list_nth_oid(lfirst(lc), LBT_LOOKAHEAD_INDEX) == search->scan.index)
			return;
	if (!RelationIsValid(search->index = RelationIdGetRelation(search->scan.index)))
		return;
	search->view = lbt_learned_view(search->index);
	while (search->view != NULL && nequal < search->view->keyspec.ncolumns &&
		   nequal == list_length(keys))
	{
		key = find_key(search, nequal, EQUAL, NULL, &type);
		if (key != NULL)
			nequal++;
		else if (nequal == 0 || (key = find_key(search, nequal, BEGIN, &past, &type)) == NULL)
			break;
		keys = lappend(keys, key);
		types = lappend_oid(types, type);
	}
	if (nequal > 0 && nequal < search->view->keyspec.ncolumns &&
		(key = find_key(search, nequal, END, &end_past, &type)) != NULL)
	{
		keys = lappend(keys, key);
		types = lappend_oid(types, type);
		end = 1 + end_past;
	}
	lbt_add_index(lookups, search->index, keys, types,
				  list_make5_oid(search->scan.rows, nequal, past, search->scan.backward, end));
	RelationClose(search->index);
}

/*
 * What the columns of a partitioned table's key are compared with, if a step
 * of pruning finds one partition by the equality of all; NIL if it does not,
 * or by functions of a user.
 */
static List *
find_partition_key(Search *search, PartitionKey key, const PartitionPruneStepOp *step)
{
	List	   *values = NIL;
	ListCell   *lc;
	ListCell   *function;

	if (!IsA(step, PartitionPruneStepOp) || list_length(step->exprs) != key->partnatts ||
		(key->strategy != PARTITION_STRATEGY_HASH && step->opstrategy != BTEqualStrategyNumber))
		return NIL;
	forboth(lc, step->exprs, function, step->cmpfns)
	{
		Node	   *value = lfirst(lc);

		while (IsA(value, RelabelType))
			value = (Node *) ((RelabelType *) value)->arg;
		value = copy_key(search, value);
		if (value == NULL ||
			!lbt_can_route(key->parttypid[list_length(values)], lfirst_oid(function)) ||
			!lbt_can_route(exprType(value), lfirst_oid(function)))
			return NIL;
		values = lappend(values, value);
	}
	return values;
}

/*
 * Find by which key an Append leaves out all but one partition for each row.
 * Of one that is partitioned itself, nothing will be looked up.
 */
static void
find_table(Search *search, const PartitionPruneInfo *prune)
{
	const PartitionedRelPruneInfo *info;
	Relation	rel;
	ListCell   *lc;

	/* Scans of something else, or of two tables, might need the row, too. */
	if (prune == NULL || list_length(prune->prune_infos) != 1 || prune->other_subplans != NULL)
		return;
	info = linitial((List *) linitial(prune->prune_infos));
	foreach(lc, info->exec_pruning_steps)
	{
		const PartitionPruneStepCombine *step = lfirst(lc);

		/* By OR, a row needs several. */
		if (IsA(step, PartitionPruneStepCombine) && step->combineOp == PARTPRUNE_COMBINE_UNION)
			return;
	}
	rel = table_open(rt_fetch(info->rtindex, search->walk->stmt->rtable)->relid, NoLock);
	foreach(lc, info->exec_pruning_steps)
	{
		const PartitionPruneStepOp *step = lfirst(lc);
		List	   *key = find_partition_key(search, RelationGetPartitionKey(rel), step);

		if (key == NIL)
			continue;
		search->lookups->partition_key = key;
		search->lookups->route = lcons_oid(RelationGetRelid(rel), list_copy(step->cmpfns));
		break;
	}
	table_close(rel, NoLock);
}

void
lbt_add_lookup(LbtLookups *lookups, const List *params, const Plan *inner,
			   const LbtPlanWalk *walk)
{
	Search		search = {.params = params,.walk = walk,.lookups = lookups};
	const Plan *append;
	ListCell   *lc;

	if (lookups->route != NIL || !find_lookup(&search, inner))
		return;
	append = search.append;
	if (append == NULL)
		find_keys(&search);
	else if (lookups->keys == NIL)
		find_table(&search, lbt_prune_info(walk->stmt, append));
	foreach(lc, lookups->route != NIL ? lbt_other_children(append) : NIL)
		if (find_lookup(&search, lfirst(lc)) && search.append == NULL)
			find_keys(&search);
	if (lookups->keys == NIL)
		lookups->route = lookups->partition_key = NIL;
}
