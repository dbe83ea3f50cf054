/*
 * place.c - the look-ahead node in a finished plan, of which nothing else
 * changes (src/README, "Costs and plans").
 */
#include "join/join.h"

#include "access/stratnum.h"
#include "access/sysattr.h"
#include "access/transam.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "registry/settings.h"
#include "server/btree.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

/*
 * Subqueries of fewer rows, as estimated, get no node: it would pass on its
 * first rows plainly (lookahead.c).
 */
#define MIN_ROWS 5

/*
 * Nor do outer rows of more than WIDE_COLUMNS columns, if these are also more
 * than COLUMNS_A_ROW for each row expected.  The server describes a node's
 * columns twice when it starts, which takes some 0.2 us for each.  In memory a
 * row saves as much as two columns take; but rows are often more than
 * expected.  Of TPC-DS, all nodes stay.
 */
#define WIDE_COLUMNS 30
#define COLUMNS_A_ROW 12

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
add_subqueries(LbtLookups *lookups, const void *expressions, const LbtPlanWalk *walk)
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
		lbt_add_lookup(lookups, params, exec_subplan_get_plan(walk->stmt, subquery), walk);
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

	pull_varattnos((Node *) list_make3(plan->targetlist, plan->qual, loop->join.joinqual),
				   OUTER_VAR, &columns);
	foreach(lc, loop->nestParams)
		pull_varattnos((Node *) lfirst_node(NestLoopParam, lc)->paramval, OUTER_VAR, &columns);
	while ((column = bms_next_member(columns, column)) >= 0)
		used = lappend_int(used, column + FirstLowInvalidHeapAttributeNumber);
	return used;
}

/* Do these conditions of a scan leave one row, by a unique index? */
static bool
find_one_row(const LbtPlannedScan *scan)
{
	Relation	index = RelationIdGetRelation(scan->index);
	Bitmapset  *equal = NULL;
	bool		one;
	ListCell   *lc;

	if (!RelationIsValid(index))
		return false;
	foreach(lc, index->rd_index->indisunique && lbt_is_btree(index) ? scan->conditions : NIL)
	{
		const OpExpr *condition = lfirst(lc);
		const Var  *var = IsA(condition, OpExpr) ? linitial(condition->args) : NULL;

		if (var != NULL && IsA(var, Var) &&
			get_op_opfamily_strategy(condition->opno, index->rd_opfamily[var->varattno - 1]) ==
			BTEqualStrategyNumber)
			equal = bms_add_member(equal, var->varattno);
	}
	one = bms_num_members(equal) == index->rd_index->indnkeyatts;
	RelationClose(index);
	return one;
}

/* Does a plan give no more than one row?  Then none is looked up early. */
static bool
gives_one_row(const Plan *plan)
{
	LbtPlannedScan scan;

	switch (nodeTag(plan))
	{
		case T_NestLoop:
			return ((const NestLoop *) plan)->join.inner_unique && gives_one_row(plan->lefttree);
		case T_Agg:
			return ((const Agg *) plan)->aggstrategy == AGG_PLAIN &&
				((const Agg *) plan)->groupingSets == NIL;
		case T_Result:
			return plan->lefttree == NULL;
		default:
			return lbt_planned_scan(plan, &scan) && find_one_row(&scan);
	}
}

/* Would a node cost more to start than so few rows save? */
static bool
is_dear(const Plan *outer)
{
	int			columns = list_length(outer->targetlist);

	return columns > WIDE_COLUMNS && columns > outer->plan_rows * COLUMNS_A_ROW;
}

/*
 * Place a node on the outer side of a loop that looks up its rows, below a
 * write, or below aggregates whose arguments are subqueries that look up.
 */
static void
place_below(Plan *plan, LbtPlanWalk *walk)
{
	LbtLookups	lookups = {0};
	List	   *aggregates = NIL;
	List	   *used = NIL;

	if (IsA(plan, NestLoop) && ((NestLoop *) plan)->nestParams != NIL &&
		!is_dear(outerPlan(plan)) && !gives_one_row(outerPlan(plan)))
	{
		lbt_add_lookup(&lookups, ((NestLoop *) plan)->nestParams, innerPlan(plan), walk);
		used = used_columns((NestLoop *) plan);
	}
	else if (IsA(plan, ModifyTable))
		lookups = lbt_find_write((ModifyTable *) plan, walk->stmt->rtable);
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
place_above(Plan **place, LbtPlanWalk *walk)
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
	if (lookups.keys == NIL || lbt_node_has_effects(plan, walk))
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
 * many these are.
 */
static void
swap_with_limit(Plan **place)
{
	Plan	   *limit = *place;
	Plan	   *node = limit->lefttree;

	if (!lbt_is_lookahead(node) || node->qual != NIL ||
		((Limit *) limit)->limitOption != LIMIT_OPTION_COUNT)
		return;
	/* A subquery that is gone has left its columns' names at the Limit. */
	apply_tlist_labeling(node->targetlist, limit->targetlist);
	limit->lefttree = node->lefttree;
	limit->targetlist = copyObjectImpl(((CustomScan *) node)->custom_scan_tlist);
	node->lefttree = limit;
	node->initPlan = list_concat(node->initPlan, limit->initPlan);
	limit->initPlan = NIL;
	node->startup_cost = limit->startup_cost;
	node->total_cost = limit->total_cost;
	node->plan_rows = limit->plan_rows;
	node->parallel_safe = limit->parallel_safe;
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
		IsA(plan, SubqueryScan) || IsA(plan, LockRows);
}

/* What above a plan depends on the kind of its topmost node. */
typedef enum Fixed
{
	NOT_FIXED,
	FIXED,						/* a cursor, marks, or a node of ours */
	ANOTHERS					/* a node of others, which may look further */
} Fixed;

/* Does the same hold of a plan's children? */
static Fixed
fixed_below(const Plan *plan, Fixed fixed)
{
	if (IsA(plan, CustomScan) || IsA(plan, ForeignScan))
		return lbt_is_our_node(plan) ? FIXED : ANOTHERS;
	if (passes_position(plan) ||
		(fixed == ANOTHERS &&
		 (IsA(plan, Sort) || IsA(plan, IncrementalSort) || IsA(plan, Agg))))
		return fixed;
	return NOT_FIXED;
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
 * Place nodes in a plan; true if running the plan has effects.  limit: the
 * Limit that tells it how many rows are wanted: a node would not pass that on,
 * nor may one that has effects for the rows that an OFFSET skips change places
 * with it.
 */
static bool
place_nodes(Plan **place, Fixed fixed, const Limit *limit, LbtPlanWalk *walk)
{
	Plan	   *plan = *place;
	List	   *children;
	bool		left;
	bool		others;
	bool		effects;
	Fixed		below;
	const Limit *passed;
	ListCell   *lc;

	if (plan == NULL)
		return false;
	check_stack_depth();

	/* A CTE returns row after row to what may ask for the last number. */
	if (IsA(plan, ModifyTable) && ((ModifyTable *) plan)->operation == CMD_INSERT &&
		!walk->effects && lbt_write_is_large((ModifyTable *) plan) &&
		(plan == walk->stmt->planTree || ((ModifyTable *) plan)->returningLists == NIL) &&
		lbt_write_is_quiet((ModifyTable *) plan, walk->stmt->rtable))
		walk->early_nextval = plan->lefttree;
	passed = IsA(plan, Limit) ? (const Limit *) plan : passes_bound(plan) ? limit : NULL;
	below = fixed_below(plan, fixed);
	left = place_nodes(&plan->lefttree, below, passed, walk);
	others = place_nodes(&plan->righttree, IsA(plan, MergeJoin) ? FIXED : NOT_FIXED, NULL, walk);
	children = lbt_other_children(plan);
	foreach(lc, children)
		others |= place_nodes((Plan **) &lfirst(lc), below, passed, walk);
	if (IsA(plan, SubqueryScan))
		((SubqueryScan *) plan)->subplan = linitial(children);
	if (!left && !(IsA(plan, Agg) && fixed == ANOTHERS))
		place_below(plan, walk);
	walk->nextval_ok = plan == walk->early_nextval;
	effects = left | others | lbt_node_has_effects(plan, walk);
	walk->nextval_ok = false;

	/* A window function's condition counts the node's own columns. */
	if (fixed == NOT_FIXED && !left && !others && plan->plan_rows >= MIN_ROWS &&
		!IsA(plan, ProjectSet) &&
		!(IsA(plan, WindowAgg) && ((WindowAgg *) plan)->runCondition != NIL) &&
		(limit == NULL || (limit->plan.lefttree == plan && !(effects && limit->limitOffset))) &&
		!IsA(plan, ForeignScan))	/* may be asynchronous */
		place_above(place, walk);
	if (IsA(plan, Limit) && !(effects && ((Limit *) plan)->limitOffset != NULL))
		swap_with_limit(place);
	return effects;
}

static List *
add_scanned(const Plan *plan, List *indexes)
{
	LbtPlannedScan scan;
	ListCell   *lc;

	if (plan == NULL)
		return indexes;
	if (!plan->parallel_aware && lbt_planned_scan(plan, &scan) &&
		scan.index >= FirstNormalObjectId)
		indexes = lappend_oid(indexes, scan.index);
	foreach(lc, lbt_other_children(plan))
		indexes = add_scanned(lfirst(lc), indexes);
	return add_scanned(plan->righttree, add_scanned(plan->lefttree, indexes));
}

List *
lbt_scanned_indexes(const PlannedStmt *stmt)
{
	List	   *indexes = add_scanned(stmt->planTree, NIL);
	ListCell   *lc;

	foreach(lc, stmt->subplans)
		indexes = add_scanned(lfirst(lc), indexes);
	return indexes;
}

/* Collect what must be known of the whole statement first. */
static void
survey(const Plan *plan, LbtPlanWalk *walk)
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
	foreach(lc, lbt_other_children(plan))
		survey(lfirst(lc), walk);
}

void
lbt_look_ahead(PlannedStmt *stmt, bool for_cursor)
{
	LbtPlanWalk		walk = {
		.stmt = stmt,
		.asked_settings = for_cursor,
		.changes_settings = for_cursor
	};
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
		walk.effects |= place_nodes((Plan **) &lfirst(lc), NOT_FIXED, NULL, &walk);
	(void) place_nodes(&stmt->planTree, for_cursor ? FIXED : NOT_FIXED, NULL, &walk);
}

void
lbt_join_init(void)
{
	RegisterCustomScanMethods(&lbt_lookahead_node.plan);
}
