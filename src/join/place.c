/*
 * place.c - the look-ahead node in a finished plan; see join.h.
 *
 * The planner has chosen its plan, by costs that know nothing of us.  Each
 * nested loop whose inner side looks up a row of its outer side in a served
 * index then gets the node on that side:
 *
 *     Nested Loop                        Nested Loop
 *       -> outer side                      -> Custom Scan (Learned Look-Ahead)
 *       -> Index Scan on inner table  =>        -> outer side
 *            Index Cond: (k = outer.x)     -> Index Scan on inner table
 *
 * Nothing else of the plan changes, neither its shape nor its estimates.
 *
 * The node reads rows of the outer side before they are needed.  Leave alone
 * outer sides that do more than read, as reading them ahead could be seen:
 * those with volatile functions, row locks or changes of data anywhere below,
 * in what is evaluated at joins, in subqueries, or in those that run once,
 * when their first user comes to them.  A kind of node that this file does not
 * know counts as doing more than read.
 */
#include "join/join.h"

#include "access/stratnum.h"
#include "access/sysattr.h"
#include "am/am.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/plannodes.h"
#include "optimizer/optimizer.h"
#include "registry/settings.h"
#include "server/executor.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

/* Keys are evaluated twice: their functions may cost so many operators. */
#define MAX_KEY_COST 4.0

typedef enum Effects
{
	EFFECTS_UNKNOWN,
	EFFECTS_NONE,
	EFFECTS_SOME
} Effects;

typedef struct Walk
{
	const PlannedStmt *stmt;
	Effects    *subplan;		/* of each, by number */
	int		   *init_plan;		/* number + 1 of the subplan that sets a
								 * parameter, as it runs once; or 0 */
	int			last_id;		/* the highest plan_node_id */
	bool		any_loop;
} Walk;

/* ---- the nodes below a node ---- */

typedef bool (*Visitor) (Plan *plan, Walk *walk);

static bool
visit_all(const List *plans, Visitor visit, Walk *walk)
{
	bool		any = false;
	ListCell   *lc;

	foreach(lc, plans)
		any |= visit(lfirst(lc), walk);
	return any;
}

/* Visit the left child; true when the visit was. */
static bool
visit_left(Plan *plan, Visitor visit, Walk *walk)
{
	return plan->lefttree != NULL && visit(plan->lefttree, walk);
}

/* Visit the other children; true when any visit was. */
static bool
visit_others(Plan *plan, Visitor visit, Walk *walk)
{
	bool		any = plan->righttree != NULL && visit(plan->righttree, walk);

	switch (nodeTag(plan))
	{
		case T_Append:
			return any | visit_all(((Append *) plan)->appendplans, visit, walk);
		case T_MergeAppend:
			return any | visit_all(((MergeAppend *) plan)->mergeplans, visit, walk);
		case T_BitmapAnd:
			return any | visit_all(((BitmapAnd *) plan)->bitmapplans, visit, walk);
		case T_BitmapOr:
			return any | visit_all(((BitmapOr *) plan)->bitmapplans, visit, walk);
		case T_SubqueryScan:
			return any | visit(((SubqueryScan *) plan)->subplan, walk);
		case T_CustomScan:
			return any | visit_all(((CustomScan *) plan)->custom_plans, visit, walk);
		default:
			return any;
	}
}

/* ---- may rows be read before they are needed? ---- */

static Effects subplan_effects(int number, Walk *walk);

static bool
is_volatile(Oid function, void *context)
{
	return func_volatile(function) == PROVOLATILE_VOLATILE;
}

/*
 * May an expression itself run code of users that is not marked volatile?
 * Domains have constraints; an aggregate counts as immutable, whatever its
 * transition function is.
 */
static bool
runs_other_code(const Node *node)
{
	return IsA(node, CoerceToDomain) ||
		(IsA(node, Aggref) && ((const Aggref *) node)->aggfnoid >= FirstNormalObjectId) ||
		(IsA(node, WindowFunc) && ((const WindowFunc *) node)->winfnoid >= FirstNormalObjectId);
}

/* Does evaluating an expression, or what it refers to, have effects? */
static bool
has_effects(Node *node, void *context)
{
	Walk	   *walk = context;

	if (node == NULL)
		return false;
	if (IsA(node, Param))
	{
		const Param *param = (const Param *) node;
		int			number = param->paramkind == PARAM_EXEC ? walk->init_plan[param->paramid] : 0;

		return number > 0 && subplan_effects(number - 1, walk) == EFFECTS_SOME;
	}
	if (check_functions_in_node(node, is_volatile, NULL) || IsA(node, NextValueExpr) ||
		runs_other_code(node))
		return true;
	if (IsA(node, SubPlan) &&
		subplan_effects(((SubPlan *) node)->plan_id - 1, walk) == EFFECTS_SOME)
		return true;
	return expression_tree_walker(node, has_effects, walk);
}

#define EFFECTS(type, field) has_effects((Node *) ((type *) plan)->field, walk)

/* The same for what a node evaluates or does itself. */
static bool
node_has_effects(Plan *plan, Walk *walk)
{
	if (EFFECTS(Plan, targetlist) || EFFECTS(Plan, qual) || EFFECTS(Plan, initPlan))
		return true;
	switch (nodeTag(plan))
	{
		case T_Append:
		case T_MergeAppend:
		case T_RecursiveUnion:
		case T_BitmapAnd:
		case T_BitmapOr:
		case T_SeqScan:
		case T_SubqueryScan:
		case T_NamedTuplestoreScan:
		case T_WorkTableScan:
		case T_Material:
		case T_Sort:
		case T_IncrementalSort:
		case T_Group:
		case T_Agg:
		case T_Unique:
		case T_Gather:
		case T_GatherMerge:
		case T_SetOp:
		case T_ProjectSet:
			return false;
		case T_Result:
			return EFFECTS(Result, resconstantqual);
		case T_SampleScan:
			return EFFECTS(SampleScan, tablesample);
		case T_IndexScan:
			return EFFECTS(IndexScan, indexqual) || EFFECTS(IndexScan, indexorderby);
		case T_IndexOnlyScan:
			return EFFECTS(IndexOnlyScan, indexqual) || EFFECTS(IndexOnlyScan, indexorderby);
		case T_BitmapIndexScan:
			return EFFECTS(BitmapIndexScan, indexqual);
		case T_BitmapHeapScan:
			return EFFECTS(BitmapHeapScan, bitmapqualorig);
		case T_TidScan:
			return EFFECTS(TidScan, tidquals);
		case T_TidRangeScan:
			return EFFECTS(TidRangeScan, tidrangequals);
		case T_FunctionScan:
			return EFFECTS(FunctionScan, functions);
		case T_ValuesScan:
			return EFFECTS(ValuesScan, values_lists);
		case T_TableFuncScan:
			return EFFECTS(TableFuncScan, tablefunc);
		case T_CteScan:
			return subplan_effects(((CteScan *) plan)->ctePlanId - 1, walk) == EFFECTS_SOME;
		case T_ForeignScan:
			return ((ForeignScan *) plan)->operation != CMD_SELECT ||
				EFFECTS(ForeignScan, fdw_exprs);
		case T_NestLoop:
			return EFFECTS(Join, joinqual);
		case T_MergeJoin:
			return EFFECTS(Join, joinqual) || EFFECTS(MergeJoin, mergeclauses);
		case T_HashJoin:
			return EFFECTS(Join, joinqual) || EFFECTS(HashJoin, hashclauses) ||
				EFFECTS(HashJoin, hashkeys);
		case T_Hash:
			return EFFECTS(Hash, hashkeys);
		case T_Memoize:
			return EFFECTS(Memoize, param_exprs);
		case T_WindowAgg:
			return EFFECTS(WindowAgg, startOffset) || EFFECTS(WindowAgg, endOffset) ||
				EFFECTS(WindowAgg, runCondition);
		case T_Limit:
			return EFFECTS(Limit, limitOffset) || EFFECTS(Limit, limitCount);
		default:
			return true;		/* ModifyTable, LockRows, others' nodes */
	}
}

/* ---- the index that a row of the outer side is looked up in ---- */

static bool
is_ours(const Plan *plan)
{
	return IsA(plan, CustomScan) && ((const CustomScan *) plan)->methods == &lbt_lookahead_methods;
}

/*
 * Find the index scan that the inner side begins with, each time that it is
 * scanned; NULL if it does not begin with one.  (Where a Result's condition or
 * a Limit of 0 prevents it, keys are evaluated in vain.)
 */
static Scan *
find_scan(Plan *inner)
{
	while (inner)
		switch (nodeTag(inner))
		{
			case T_IndexScan:
			case T_IndexOnlyScan:
			case T_BitmapIndexScan:
				return (Scan *) inner;
			case T_SubqueryScan:
				inner = ((SubqueryScan *) inner)->subplan;
				break;
			case T_BitmapHeapScan:
			case T_Memoize:
			case T_Limit:
			case T_Result:
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
			case T_CustomScan:
				if (!is_ours(inner))
					return NULL;
				inner = inner->lefttree;
				break;
			default:
				return NULL;
		}
	return NULL;
}

/* A key, on its way from the inner scan's condition into the node. */
typedef struct Key
{
	const Walk *walk;
	const NestLoop *loop;
	bool		unfit;
	bool		varies;			/* with the outer row */
	double		cost;			/* of its functions, in operators */
} Key;

/*
 * Is it unsafe to call a function more often than without us, and to drop its
 * errors?  The server's own immutable ones are safe: they keep nothing.
 */
static bool
is_unfit(Oid function, void *context)
{
	HeapTuple	row = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	bool		fit = false;

	if (HeapTupleIsValid(row))
	{
		Form_pg_proc proc = (Form_pg_proc) GETSTRUCT(row);

		fit = proc->provolatile == PROVOLATILE_IMMUTABLE && proc->prolang == INTERNALlanguageId;
		((Key *) context)->cost += proc->procost;
		ReleaseSysCache(row);
	}
	return !fit;
}

static NestLoopParam *
find_parameter(const NestLoop *loop, int number)
{
	ListCell   *lc;

	foreach(lc, loop->nestParams)
	{
		if (lfirst_node(NestLoopParam, lc)->paramno == number)
			return lfirst(lc);
	}
	return NULL;
}

/*
 * Copy what a column is compared with; parameters that the loop sets become
 * columns of the node's input.  Other parameters are set from further out, and
 * stay the same until the next rescan.  Do not ask early for one that a
 * subquery sets when it is first asked for.
 */
static Node *
copy_key(Node *node, Key *key)
{
	if (node == NULL || key->unfit)
		return NULL;
	if (IsA(node, Param) && ((Param *) node)->paramkind == PARAM_EXEC)
	{
		const Param *param = (const Param *) node;
		const NestLoopParam *set = find_parameter(key->loop, param->paramid);

		if (set != NULL)
		{
			const Var  *var = set->paramval;

			key->varies = true;
			return (Node *) makeVar(INDEX_VAR, var->varattno, var->vartype, var->vartypmod,
									var->varcollid, 0);
		}
		key->unfit |= key->walk->init_plan[param->paramid] > 0;
	}
	else if (check_functions_in_node(node, is_unfit, key) || IsA(node, CoerceToDomain) ||
			 IsA(node, SubPlan))
		key->unfit = true;
	return expression_tree_mutator(node, copy_key, key);
}

/* What must a column be equal to?  Sets *type; NULL if nothing is cheap. */
static Node *
equal_to(Relation index, int column, const List *conditions, Key *key, Oid *type)
{
	ListCell   *lc;

	foreach(lc, conditions)
	{
		const OpExpr *condition = lfirst(lc);
		const Var  *var;
		Key			tried = *key;
		Node	   *copy;
		Oid			lefttype;
		int			strategy;

		if (!IsA(condition, OpExpr) || list_length(condition->args) != 2)
			continue;
		var = linitial(condition->args);
		if (!IsA(var, Var) || var->varattno != column + 1)
			continue;
		get_op_opfamily_properties(condition->opno, index->rd_opfamily[column], false, &strategy,
								   &lefttype, type);
		if (strategy != BTEqualStrategyNumber)
			continue;
		copy = copy_key(lsecond(condition->args), &tried);
		if (!tried.unfit && tried.cost <= MAX_KEY_COST)
		{
			*key = tried;
			return copy;
		}
	}
	return NULL;
}

/* A scan's index, and the conditions on its columns. */
static Oid
index_of(const Scan *scan, const List **conditions)
{
	switch (nodeTag(scan))
	{
		case T_IndexScan:
			*conditions = ((const IndexScan *) scan)->indexqual;
			return ((const IndexScan *) scan)->indexid;
		case T_IndexOnlyScan:
			*conditions = ((const IndexOnlyScan *) scan)->indexqual;
			return ((const IndexOnlyScan *) scan)->indexid;
		default:
			*conditions = ((const BitmapIndexScan *) scan)->indexqual;
			return ((const BitmapIndexScan *) scan)->indexid;
	}
}

/*
 * Find the keys of an inner scan's leading columns, and what the node has to
 * know (LbtLookaheadFact); NIL if outer rows give none, or the index is not
 * served.
 */
static List *
find_keys(const NestLoop *loop, const Scan *scan, const Walk *walk, List **facts)
{
	Key			key = {.walk = walk,.loop = loop};
	List	   *keys = NIL;
	const List *conditions;
	Oid			oid = index_of(scan, &conditions);
	Relation	index = RelationIdGetRelation(oid);
	LbtIndex   *view;

	if (!RelationIsValid(index))
		return NIL;
	*facts = list_make2_oid(oid, (Oid) !IsA(scan, IndexOnlyScan));
	if (lbt_scans(index) && !RelationUsesLocalBuffers(index) &&
		(view = lbt_index_get(index))->serving.learned)
		for (int column = 0; column < view->keyspec.ncolumns; column++)
		{
			Oid			type;
			Node	   *value = equal_to(index, column, conditions, &key, &type);

			if (value == NULL || !lbt_keyspec_takes(&view->keyspec.column[column], type))
				break;
			keys = lappend(keys, value);
			*facts = lappend_oid(*facts, type);
		}
	RelationClose(index);
	return key.varies ? keys : NIL;
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

static List *
add_column(List *list, const TargetEntry *like, int varno)
{
	const Node *expr = (const Node *) like->expr;
	TargetEntry *entry = makeNode(TargetEntry);

	*entry = *like;
	entry->expr = (Expr *) makeVar(varno, like->resno, exprType(expr), exprTypmod(expr),
								   exprCollation(expr), 0);
	return lappend(list, entry);
}

/*
 * Make a node above a loop's outer side, with the same columns.  They refer to
 * its input, so that EXPLAIN finds their names below.
 */
static Plan *
make_node(const NestLoop *loop, List *keys, List *facts, int id)
{
	CustomScan *scan = makeNode(CustomScan);
	Plan	   *node = &scan->scan.plan;
	Plan	   *outer = loop->join.plan.lefttree;
	ListCell   *lc;

	*node = *outer;
	node->type = T_CustomScan;
	node->parallel_aware = node->async_capable = false;
	node->plan_node_id = id;
	node->targetlist = node->qual = node->initPlan = NIL;
	node->lefttree = outer;
	node->righttree = NULL;
	node->extParam = bms_copy(outer->extParam);
	node->allParam = bms_copy(outer->allParam);
	foreach(lc, outer->targetlist)
	{
		scan->custom_scan_tlist = add_column(scan->custom_scan_tlist, lfirst(lc), OUTER_VAR);
		node->targetlist = add_column(node->targetlist, lfirst(lc), INDEX_VAR);
	}
	scan->custom_exprs = keys;
	scan->custom_private = list_make2(facts, used_columns(loop));
	scan->methods = &lbt_lookahead_methods;
	return node;
}

/* Place nodes in a plan; true if running the plan has effects. */
static bool
place_nodes(Plan *plan, Walk *walk)
{
	bool		left;
	bool		others;

	check_stack_depth();
	left = visit_left(plan, place_nodes, walk);
	others = visit_others(plan, place_nodes, walk);
	if (IsA(plan, NestLoop) && !left && ((NestLoop *) plan)->nestParams != NIL)
	{
		Scan	   *scan = find_scan(plan->righttree);
		List	   *facts = NIL;
		List	   *keys = scan ? find_keys((NestLoop *) plan, scan, walk, &facts) : NIL;

		if (keys != NIL)
			plan->lefttree = make_node((NestLoop *) plan, keys, facts, ++walk->last_id);
	}
	return left | others | node_has_effects(plan, walk);
}

static Effects
subplan_effects(int number, Walk *walk)
{
	Plan	   *plan = list_nth(walk->stmt->subplans, number);

	if (walk->subplan[number] == EFFECTS_UNKNOWN)
	{
		walk->subplan[number] = EFFECTS_NONE;	/* for references to itself */
		if (plan != NULL && place_nodes(plan, walk))
			walk->subplan[number] = EFFECTS_SOME;
	}
	return walk->subplan[number];
}

/* Collect what must be known of the whole plan first. */
static bool
survey(Plan *plan, Walk *walk)
{
	ListCell   *lc;
	ListCell   *set;

	walk->last_id = Max(walk->last_id, plan->plan_node_id);
	walk->any_loop |= IsA(plan, NestLoop);
	foreach(lc, plan->initPlan)
	{
		foreach(set, lfirst_node(SubPlan, lc)->setParam)
			walk->init_plan[lfirst_int(set)] = lfirst_node(SubPlan, lc)->plan_id;
	}
	return visit_left(plan, survey, walk) | visit_others(plan, survey, walk);
}

static void
planned(PlannedStmt *stmt)
{
	int			nsubplans = list_length(stmt->subplans);
	Walk		walk = {.stmt = stmt};
	ListCell   *lc;

	if (stmt->planTree == NULL || !lbt_enable || lbt_lookahead_rows < 2)
		return;
	walk.subplan = palloc0(nsubplans * sizeof(Effects));
	walk.init_plan = palloc0(list_length(stmt->paramExecTypes) * sizeof(int));
	(void) survey(stmt->planTree, &walk);
	foreach(lc, stmt->subplans)
	{
		if (lfirst(lc) != NULL)
			(void) survey(lfirst(lc), &walk);
	}
	if (!walk.any_loop)
		return;
	(void) place_nodes(stmt->planTree, &walk);
	for (int i = 0; i < nsubplans; i++)
		(void) subplan_effects(i, &walk);
}

void
lbt_join_init(void)
{
	RegisterCustomScanMethods(&lbt_lookahead_methods);
	lbt_statement.planned = planned;
}
