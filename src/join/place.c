/*
 * place.c - the look-ahead node in a finished plan; see join.h.
 *
 * The planner has chosen its plan, by costs that know nothing of us.  Each
 * nested loop whose inner side looks up a row of its outer side in a served
 * index, or in those of partitions, then gets the node on that side.  So does
 * each plan whose columns or conditions hold a subquery that looks up its
 * rows, above itself: the node takes over what is evaluated for a row.
 * Nothing else of the plan changes, neither its shape nor its estimates.
 *
 * The node reads rows of its input before they are needed.  Leave alone inputs
 * that do more than read, as reading them ahead could be seen: those with
 * volatile functions, row locks or changes of data anywhere below, or with a
 * subquery while any subquery of the statement has such effects.
 */
#include "join/join.h"

#include "access/stratnum.h"
#include "access/sysattr.h"
#include "access/table.h"
#include "access/transam.h"
#include "am/am.h"
#include "catalog/pg_proc.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
#include "registry/settings.h"
#include "server/compat.h"
#include "server/executor.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/partcache.h"

/*
 * Subqueries of fewer rows, as estimated, get no node: it would pass on its
 * first rows plainly (lookahead.c).
 */
#define MIN_ROWS 5

/* What is known of a whole statement. */
typedef struct Walk
{
	Bitmapset  *init_params;	/* set by a subquery that runs once, when its
								 * first user asks for them */
	bool		effects;		/* a subquery seen so far has some */
	int			last_id;		/* the highest plan_node_id */
	bool		any_use;		/* a loop, a subquery, or a write of many rows */
	const PlannedStmt *stmt;
	const Plan *early_nextval;	/* may take sequences' numbers early; or NULL */
	bool		nextval_ok;		/* what is looked at belongs to it */
} Walk;

/* A node's children besides the left and the right one. */
static List *
other_children(const Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_Append:
			return ((const Append *) plan)->appendplans;
		case T_MergeAppend:
			return ((const MergeAppend *) plan)->mergeplans;
		case T_BitmapAnd:
			return ((const BitmapAnd *) plan)->bitmapplans;
		case T_BitmapOr:
			return ((const BitmapOr *) plan)->bitmapplans;
		case T_SubqueryScan:
			return list_make1(((const SubqueryScan *) plan)->subplan);
		case T_CustomScan:
			return ((const CustomScan *) plan)->custom_plans;
		default:
			return NIL;
	}
}

/* ---- may rows be read before they are needed? ---- */

static bool
is_volatile(Oid function, void *context)
{
	if (function == F_GEN_RANDOM_UUID ||
		(function == F_NEXTVAL && ((const Walk *) context)->nextval_ok))
		return false;
	return func_volatile(function) == PROVOLATILE_VOLATILE;
}

/*
 * Does evaluating an expression, or a subquery that it uses, have effects?
 * Domains have constraints; an aggregate counts as immutable, whatever its
 * transition function is.
 */
static bool
has_effects(Node *node, void *context)
{
	const Walk *walk = context;

	if (node == NULL)
		return false;
	if (IsA(node, Param))
		return walk->effects && ((Param *) node)->paramkind == PARAM_EXEC &&
			bms_is_member(((Param *) node)->paramid, walk->init_params);
	if (IsA(node, SubPlan) && walk->effects)
		return true;
	if (check_functions_in_node(node, is_volatile, context) ||
		(IsA(node, NextValueExpr) && !walk->nextval_ok) || IsA(node, CoerceToDomain) ||
		(IsA(node, Aggref) && ((Aggref *) node)->aggfnoid >= FirstNormalObjectId) ||
		(IsA(node, WindowFunc) && ((WindowFunc *) node)->winfnoid >= FirstNormalObjectId))
		return true;
	return expression_tree_walker(node, has_effects, context);
}

/*
 * Nodes that only read, and the expressions that they evaluate besides Plan's.
 * (Those of Hash, Memoize and BitmapHeapScan are in the node above or below.)
 */
static const struct
{
	NodeTag		tag;
	size_t		expressions[3]; /* offsets of them, or lists; 0: none */
}			readers[] = {
	{T_Agg}, {T_Append}, {T_BitmapAnd}, {T_BitmapHeapScan}, {T_BitmapOr}, {T_CteScan},
	{T_Gather}, {T_GatherMerge}, {T_Group}, {T_Hash}, {T_IncrementalSort}, {T_Material},
	{T_Memoize}, {T_MergeAppend}, {T_NamedTuplestoreScan}, {T_ProjectSet}, {T_RecursiveUnion},
	{T_SeqScan}, {T_SetOp}, {T_Sort}, {T_SubqueryScan}, {T_Unique}, {T_WorkTableScan},
	{T_BitmapIndexScan, {offsetof(BitmapIndexScan, indexqual)}},
	{T_ForeignScan, {offsetof(ForeignScan, fdw_exprs)}},
	{T_FunctionScan, {offsetof(FunctionScan, functions)}},
	{T_HashJoin, {offsetof(Join, joinqual), offsetof(HashJoin, hashclauses)}},
	{T_IndexOnlyScan, {offsetof(IndexOnlyScan, indexqual), offsetof(IndexOnlyScan, indexorderby)}},
	{T_IndexScan, {offsetof(IndexScan, indexqual), offsetof(IndexScan, indexorderby)}},
	{T_Limit, {offsetof(Limit, limitOffset), offsetof(Limit, limitCount)}},
	{T_MergeJoin, {offsetof(Join, joinqual), offsetof(MergeJoin, mergeclauses)}},
	{T_NestLoop, {offsetof(Join, joinqual)}},
	{T_Result, {offsetof(Result, resconstantqual)}},
	{T_SampleScan, {offsetof(SampleScan, tablesample)}},
	{T_TableFuncScan, {offsetof(TableFuncScan, tablefunc)}},
	{T_TidRangeScan, {offsetof(TidRangeScan, tidrangequals)}},
	{T_TidScan, {offsetof(TidScan, tidquals)}},
	{T_ValuesScan, {offsetof(ValuesScan, values_lists)}},
	{T_WindowAgg, {offsetof(WindowAgg, startOffset), offsetof(WindowAgg, endOffset),
	offsetof(WindowAgg, runCondition)}},
};

/* The same for what a node evaluates or does itself. */
static bool
node_has_effects(Plan *plan, Walk *walk)
{
	int			i = 0;

	if (has_effects((Node *) plan->targetlist, walk) || has_effects((Node *) plan->qual, walk) ||
		has_effects((Node *) plan->initPlan, walk) ||
		(IsA(plan, CteScan) && walk->effects) ||
		(IsA(plan, ForeignScan) && ((ForeignScan *) plan)->operation != CMD_SELECT))
		return true;
	while (i < lengthof(readers) && readers[i].tag != nodeTag(plan))
		i++;
	if (i == lengthof(readers))
		return true;			/* ModifyTable, LockRows, others' nodes */
	for (int j = 0; j < lengthof(readers[i].expressions); j++)
	{
		size_t		offset = readers[i].expressions[j];

		if (offset > 0 && has_effects(*(Node **) ((char *) plan + offset), walk))
			return true;
	}
	return false;
}

/* ---- the index that a row is looked up in ---- */

/* The index scan that an inner side begins with. */
typedef struct Lookup
{
	Oid			index;
	bool		rows;			/* it fetches rows */
	bool		backward;
	const List *conditions;
	const Plan *append;			/* or the scans of partitions; else NULL */
} Lookup;

static bool
found_lookup(Lookup *lookup, Oid index, bool rows, ScanDirection direction, const List *conditions)
{
	*lookup = (Lookup)
	{
		index, rows, ScanDirectionIsBackward(direction), conditions
	};
	return true;
}

static bool
is_ours(const Plan *plan)
{
	return IsA(plan, CustomScan) &&
		((const CustomScan *) plan)->methods == &lbt_lookahead_node.plan;
}

static const Plan *
plan_of(const SubPlan *subquery, const Walk *walk)
{
	return list_nth(walk->stmt->subplans, subquery->plan_id - 1);
}

/*
 * Find the index scan that an inner side, a loop's or a subquery's plan,
 * begins with each time that it is scanned, or an Append; false if it begins
 * with neither.  (Where a Result's condition or a Limit of 0 prevents it,
 * predictions go unused.)
 */
static bool
find_lookup(const Plan *inner, Lookup *lookup, const Walk *walk)
{
	while (inner != NULL)
		switch (nodeTag(inner))
		{
			case T_IndexScan:
				{
					const IndexScan *scan = (const IndexScan *) inner;

					return found_lookup(lookup, scan->indexid, true, scan->indexorderdir,
										scan->indexqual);
				}
			case T_IndexOnlyScan:
				{
					const IndexOnlyScan *scan = (const IndexOnlyScan *) inner;

					return found_lookup(lookup, scan->indexid, false, scan->indexorderdir,
										scan->indexqual);
				}
			case T_BitmapIndexScan:
				return found_lookup(lookup, ((const BitmapIndexScan *) inner)->indexid, true,
									ForwardScanDirection,
									((const BitmapIndexScan *) inner)->indexqual);
			case T_Append:
			case T_MergeAppend:
				*lookup = (Lookup)
				{
					.append = inner
				};
				return true;
			case T_SubqueryScan:
				inner = ((const SubqueryScan *) inner)->subplan;
				break;
			case T_CustomScan:
				if (!is_ours(inner))
					return false;
				inner = inner->lefttree;
				break;
			case T_Result:
				/* The planner's for max(): its column is a subquery. */
				inner = inner->lefttree != NULL || inner->initPlan == NIL ? inner->lefttree :
					plan_of(linitial(inner->initPlan), walk);
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
	return false;
}

/* For the keys of a row's lookup. */
typedef struct Search
{
	const List *params;			/* NestLoopParams: what is set for each row */
	const Walk *walk;
	Relation	index;
	const LbtIndex *view;
	Lookup		lookup;
	LbtLookups *lookups;		/* found, for the node */
	bool		varies;			/* some key does, with the row */
} Search;

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
		if (!IsA(var, Var))
			return NULL;
		search->varies = true;
		return (Node *) makeVar(INDEX_VAR, var->varattno, var->vartype, var->vartypmod,
								var->varcollid, 0);
	}
	if (param->paramkind != PARAM_EXTERN &&
		(param->paramkind != PARAM_EXEC ||
		 bms_is_member(param->paramid, search->walk->init_params)))
		return NULL;
	return copyObjectImpl(key);
}

/*
 * The condition on a column by one of these two operators (strategies), with
 * its key copied; NULL if there is none with a plain one.  Sets *strategy and
 * *type, the key's.
 */
static Node *
find_key(Search *search, int column, int either, int or, int *strategy, Oid *type)
{
	const LbtKeyColumn *c = &search->view->keyspec.column[column];
	ListCell   *lc;

	foreach(lc, search->lookup.conditions)
	{
		const OpExpr *condition = lfirst(lc);
		const Var  *var;
		Oid			lefttype;
		Node	   *key;

		if (!IsA(condition, OpExpr) || list_length(condition->args) != 2)
			continue;
		var = linitial(condition->args);
		if (!IsA(var, Var) || var->varattno != column + 1)
			continue;
		get_op_opfamily_properties(condition->opno, search->index->rd_opfamily[column], false,
								   strategy, &lefttype, type);
		if (*strategy != either && *strategy != or)
			continue;
		key = lbt_key_as_it_stands(lsecond(condition->args), c, type);
		key = lbt_keyspec_takes(c, *type) ? copy_key(search, key) : NULL;
		if (key != NULL)
			return key;
	}
	return NULL;
}

/* Has this column a condition that is no equality? */
static bool
is_bounded(const Search *search, int column)
{
	ListCell   *lc;

	foreach(lc, search->lookup.conditions)
	{
		const Node *condition = lfirst(lc);
		const Var  *var = NULL;

		if (IsA(condition, OpExpr) &&
			get_op_opfamily_strategy(((const OpExpr *) condition)->opno,
									 search->index->rd_opfamily[column]) != BTEqualStrategyNumber)
			var = linitial(((const OpExpr *) condition)->args);
		else if (IsA(condition, NullTest) &&
				 ((const NullTest *) condition)->nulltesttype == IS_NOT_NULL)
			var = (const Var *) ((const NullTest *) condition)->arg;
		if (var != NULL && IsA(var, Var) && var->varattno == column + 1)
			return true;
	}
	return false;
}

/*
 * The key of the bound at which the scan begins, of the column after the
 * equalities; NULL if it begins where these do.  Sets *past.  NULLs at that
 * end are a bound of any other condition on the column.
 */
static Node *
find_bound(Search *search, int column, bool *past, Oid *type)
{
	const LbtKeyColumn *c = &search->view->keyspec.column[column];
	bool		backward = search->lookup.backward;
	bool		less = backward != c->desc; /* the bound is an upper one */
	int			strategy;
	Node	   *key = less ?
		find_key(search, column, BTLessStrategyNumber, BTLessEqualStrategyNumber, &strategy, type) :
		find_key(search, column, BTGreaterStrategyNumber, BTGreaterEqualStrategyNumber, &strategy,
				 type);

	/* x > v begins after v; backward, so does x <= v. */
	*past = backward;
	if (key != NULL)
		*past = backward !=
			(strategy == BTLessStrategyNumber || strategy == BTGreaterStrategyNumber);
	else if (c->nulls_first != backward && is_bounded(search, column))
	{
		key = (Node *) makeNullConst(c->type, -1, c->collation);
		*type = c->type;
		*past = !backward;
	}
	return key;
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
	bool		past = search->lookup.backward;
	int			nequal;
	int			strategy;
	Oid			type;
	Node	   *key;
	ListCell   *lc;

	foreach(lc, lookups->facts)
		if (list_nth_oid(lfirst(lc), LBT_LOOKAHEAD_INDEX) == search->lookup.index)
			return;
	if (!RelationIsValid(search->index = RelationIdGetRelation(search->lookup.index)))
		return;
	search->view = lbt_learned_view(search->index);
	search->varies = false;
	while (search->view != NULL && list_length(keys) < search->view->keyspec.ncolumns &&
		   (key = find_key(search, list_length(keys), BTEqualStrategyNumber,
						   BTEqualStrategyNumber, &strategy, &type)) != NULL)
	{
		keys = lappend(keys, key);
		types = lappend_oid(types, type);
	}
	nequal = list_length(keys);
	if (nequal > 0 && nequal < search->view->keyspec.ncolumns &&
		(key = find_bound(search, nequal, &past, &type)) != NULL)
	{
		keys = lappend(keys, key);
		types = lappend_oid(types, type);
	}
	if (search->varies)
	{
		lookups->keys = lappend(lookups->keys, keys);
		lookups->facts = lappend(lookups->facts,
								 lbt_lookahead_facts(search->lookup.index,
													 search->index->rd_index->indrelid,
													 search->lookup.rows, nequal, past,
													 search->lookup.backward, types));
	}
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

/*
 * Add what an inner side looks up by these parameters: in one index, or where
 * nothing else is, in those of partitions.
 */
static void
add_lookup(LbtLookups *lookups, const List *params, const Plan *inner, const Walk *walk)
{
	Search		search = {.params = params,.walk = walk,.lookups = lookups};
	const Plan *append;
	ListCell   *lc;

	if (lookups->route != NIL || !find_lookup(inner, &search.lookup, walk))
		return;
	append = search.lookup.append;
	if (append == NULL)
		find_keys(&search);
	else if (lookups->keys == NIL)
		find_table(&search, lbt_prune_info(walk->stmt, append));
	foreach(lc, lookups->route != NIL ? other_children(append) : NIL)
		if (find_lookup(lfirst(lc), &search.lookup, walk) && search.lookup.append == NULL)
			find_keys(&search);
	if (lookups->keys == NIL)
		lookups->route = lookups->partition_key = NIL;
}

/* ---- subqueries that are evaluated for each row ---- */

/* Collect those that depend on the row, and are not hashed. */
static bool
collect_subqueries(Node *node, void *context)
{
	List	  **found = context;

	if (node == NULL)
		return false;
	if (IsA(node, SubPlan) && ((SubPlan *) node)->parParam != NIL &&
		!((SubPlan *) node)->useHashTable)
		*found = lappend(*found, node);
	return expression_tree_walker(node, collect_subqueries, context);
}

static List *
subqueries_in(const void *expressions)
{
	List	   *found = NIL;

	(void) collect_subqueries(unconstify(void *, expressions), &found);
	return found;
}

/* Add what an expression's subqueries look up; NULL: none. */
static void
add_subqueries(LbtLookups *lookups, const void *expressions, const Walk *walk)
{
	ListCell   *lc;
	ListCell   *param;
	ListCell   *arg;

	foreach(lc, subqueries_in(expressions))
	{
		const SubPlan *subquery = lfirst(lc);
		List	   *params = NIL;

		forboth(param, subquery->parParam, arg, subquery->args)
		{
			NestLoopParam *set = makeNode(NestLoopParam);

			set->paramno = lfirst_int(param);
			set->paramval = lfirst(arg);	/* or another expression */
			params = lappend(params, set);
		}
		add_lookup(lookups, params, plan_of(subquery, walk), walk);
	}
}

/*
 * Copy an expression, for a node above its own.  What only that one can
 * evaluate becomes a column of it, which is added to *context.
 */
static Node *
to_columns(Node *node, void *context)
{
	List	  **columns = context;
	TargetEntry *column;

	if (node == NULL)
		return NULL;
	if (!IsA(node, Var) && !IsA(node, Aggref) && !IsA(node, WindowFunc) &&
		!IsA(node, GroupingFunc))
		return expression_tree_mutator(node, to_columns, context);
	column = tlist_member((Expr *) node, *columns);
	if (column == NULL)
	{
		column = makeTargetEntry((Expr *) node, list_length(*columns) + 1, NULL, false);
		*columns = lappend(*columns, column);
	}
	return (Node *) makeVarFromTargetEntry(INDEX_VAR, column);
}

/* ---- placing ---- */

/* The outer columns that a loop uses, from 1 on. */
static List *
used_columns(const NestLoop *loop)
{
	const Plan *plan = &loop->join.plan;
	Bitmapset  *columns = NULL;
	List	   *used = NIL;
	int			column = -1;
	ListCell   *lc;

	pull_varattnos((Node *) plan->targetlist, OUTER_VAR, &columns);
	pull_varattnos((Node *) plan->qual, OUTER_VAR, &columns);
	pull_varattnos((Node *) loop->join.joinqual, OUTER_VAR, &columns);
	foreach(lc, loop->nestParams)
		pull_varattnos((Node *) lfirst_node(NestLoopParam, lc)->paramval, OUTER_VAR, &columns);
	while ((column = bms_next_member(columns, column)) >= 0)
		used = lappend_int(used, column + FirstLowInvalidHeapAttributeNumber);
	return used;
}

/*
 * Place a node on the outer side of a loop that looks up its rows, or below
 * aggregates whose arguments are subqueries that do.
 */
static void
place_below(Plan *plan, Walk *walk)
{
	LbtLookups	lookups = {0};
	List	   *aggregates = NIL;
	List	   *used = NIL;

	if (IsA(plan, NestLoop) && ((NestLoop *) plan)->nestParams != NIL)
	{
		add_lookup(&lookups, ((NestLoop *) plan)->nestParams, innerPlan(plan), walk);
		used = used_columns((NestLoop *) plan);
	}
	else if (IsA(plan, Agg) && subqueries_in(plan->targetlist) != NIL)
	{
		(void) to_columns((Node *) plan->targetlist, &aggregates);
		add_subqueries(&lookups, aggregates, walk);
	}
	if (lookups.keys != NIL)
		lbt_place_node(&outerPlan(plan), &lookups, used, ++walk->last_id);
}

/*
 * Place a node above a plan whose rows are looked up by subqueries in its
 * columns or conditions.  The node takes over the columns, and the conditions
 * from the first such one on: they are evaluated in the same order as ever.
 */
static void
place_above(Plan **place, Walk *walk)
{
	Plan	   *plan = *place;
	Plan		before = *plan;
	List	   *below = NIL;
	List	   *above = NIL;
	List	   *columns = NIL;
	List	   *targetlist;
	LbtLookups	lookups = {0};
	ListCell   *lc;

	foreach(lc, plan->qual)
	{
		if (above == NIL && subqueries_in(lfirst(lc)) == NIL)
			below = lappend(below, lfirst(lc));
		else
			above = lappend(above, lfirst(lc));
	}
	if (above == NIL && subqueries_in(plan->targetlist) == NIL)
		return;
	above = (List *) to_columns((Node *) above, &columns);
	targetlist = (List *) to_columns((Node *) plan->targetlist, &columns);
	add_subqueries(&lookups, above, walk);
	add_subqueries(&lookups, targetlist, walk);
	plan->targetlist = columns;
	plan->qual = below;
	if (lookups.keys == NIL || node_has_effects(plan, walk))
	{
		*plan = before;
		return;
	}
	lbt_place_node(place, &lookups, NIL, ++walk->last_id);
	(*place)->targetlist = targetlist;
	(*place)->qual = above;
	(*place)->initPlan = plan->initPlan;	/* EXPLAIN looks further up for them */
	plan->initPlan = NIL;
}

/*
 * Exchange a Limit and a node below it that evaluates no conditions: the node
 * reads no more rows than that passes on, and a sort below the Limit knows how
 * many these are.  effects: what the node evaluates has some, which rows that
 * an OFFSET skips must have, too.
 */
static void
swap_with_limit(Plan **place, bool effects)
{
	Plan	   *limit = *place;
	Plan	   *node = limit->lefttree;

	if (!is_ours(node) || node->qual != NIL ||
		(effects && ((Limit *) limit)->limitOffset != NULL) ||
		((Limit *) limit)->limitOption != LIMIT_OPTION_COUNT)
		return;
	limit->lefttree = node->lefttree;
	limit->targetlist = copyObjectImpl(((CustomScan *) node)->custom_scan_tlist);
	node->lefttree = limit;
	node->initPlan = list_concat(node->initPlan, limit->initPlan);
	limit->initPlan = NIL;
	node->startup_cost = limit->startup_cost;
	node->total_cost = limit->total_cost;
	node->plan_rows = limit->plan_rows;
	node->extParam = limit->extParam;
	node->allParam = limit->allParam;
	*place = node;
}

/*
 * May a scan below be the one that a cursor is positioned on, or goes backward
 * through?
 */
static bool
passes_position(const Plan *plan)
{
	return IsA(plan, Append) || IsA(plan, MergeAppend) || IsA(plan, Result) || IsA(plan, Limit) ||
		IsA(plan, SubqueryScan);
}

/* Does a plan tell the one below how many rows its Limit wants? */
static bool
passes_bound(const Plan *plan)
{
	return IsA(plan, Result) || IsA(plan, Append) || IsA(plan, MergeAppend) ||
		IsA(plan, Gather) || IsA(plan, GatherMerge) ||
		(IsA(plan, SubqueryScan) && plan->qual == NIL);
}

/*
 * Place nodes in a plan; true if running the plan has effects.  fixed: what is
 * above depends on the kind of its topmost node.  limit: the Limit that tells
 * it how many rows are wanted; a node would not pass that on.
 */
static bool
place_nodes(Plan **place, bool fixed, const Plan *limit, Walk *walk)
{
	Plan	   *plan = *place;
	List	   *children;
	bool		left;
	bool		others;
	bool		effects;
	bool		below;
	const Plan *passed;
	ListCell   *lc;

	if (plan == NULL)
		return false;
	check_stack_depth();

	/* A CTE returns row after row to what may ask for the last number. */
	if (IsA(plan, ModifyTable) && !walk->effects &&
		(plan == walk->stmt->planTree || ((ModifyTable *) plan)->returningLists == NIL) &&
		lbt_write_nextval_ok((ModifyTable *) plan, walk->stmt->rtable))
		walk->early_nextval = plan->lefttree;
	passed = IsA(plan, Limit) ? plan : passes_bound(plan) ? limit : NULL;
	below = IsA(plan, CustomScan) || IsA(plan, ForeignScan) || (fixed && passes_position(plan));
	left = place_nodes(&plan->lefttree, below, passed, walk);
	others = place_nodes(&plan->righttree, IsA(plan, MergeJoin), NULL, walk);	/* marks */
	children = other_children(plan);
	foreach(lc, children)
		others |= place_nodes((Plan **) &lfirst(lc), below, passed, walk);
	if (IsA(plan, SubqueryScan))
		((SubqueryScan *) plan)->subplan = linitial(children);
	if (!left)
		place_below(plan, walk);
	if (IsA(plan, ModifyTable) && !left)
		lbt_place_for_write((ModifyTable *) plan, walk->stmt->rtable, &walk->last_id);
	walk->nextval_ok = plan == walk->early_nextval;
	effects = left | others | node_has_effects(plan, walk);
	walk->nextval_ok = false;
	if (!fixed && !left && !others && plan->plan_rows >= MIN_ROWS && !IsA(plan, ProjectSet) &&
		(limit == NULL || limit->lefttree == plan) &&
		!IsA(plan, ForeignScan))	/* may be asynchronous */
		place_above(place, walk);
	if (IsA(plan, Limit))
		swap_with_limit(place, left);
	return effects;
}

/* Collect what must be known of the whole statement first. */
static void
survey(const Plan *plan, Walk *walk)
{
	ListCell   *lc;
	ListCell   *set;

	if (plan == NULL)
		return;
	walk->last_id = Max(walk->last_id, plan->plan_node_id);
	walk->any_use |= IsA(plan, NestLoop) ||
		(IsA(plan, ModifyTable) && lbt_write_is_large((const ModifyTable *) plan));
	foreach(lc, plan->initPlan)
	{
		foreach(set, lfirst_node(SubPlan, lc)->setParam)
			walk->init_params = bms_add_member(walk->init_params, lfirst_int(set));
	}
	survey(plan->lefttree, walk);
	survey(plan->righttree, walk);
	foreach(lc, other_children(plan))
		survey(lfirst(lc), walk);
}

void
lbt_look_ahead(PlannedStmt *stmt, bool for_cursor)
{
	Walk		walk = {.stmt = stmt};
	ListCell   *lc;

	if (stmt->planTree == NULL || !lbt_enable || lbt_lookahead_rows < 2)
		return;
	walk.any_use = stmt->subplans != NIL;
	survey(stmt->planTree, &walk);
	foreach(lc, stmt->subplans)
		survey(lfirst(lc), &walk);
	if (!walk.any_use)
		return;

	/* The planner puts a subquery after those that it uses itself. */
	foreach(lc, stmt->subplans)
		walk.effects |= place_nodes((Plan **) &lfirst(lc), false, NULL, &walk);
	(void) place_nodes(&stmt->planTree, for_cursor, NULL, &walk);
}

void
lbt_join_init(void)
{
	RegisterCustomScanMethods(&lbt_lookahead_node.plan);
}
