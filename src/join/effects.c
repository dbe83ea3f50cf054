/*
 * effects.c - may rows be read before they are needed?  What the nodes of a
 * finished plan evaluate, and whether that has effects (src/README, "Nested
 * loops that look ahead").
 */
#include "join/join.h"

#include "access/table.h"
#include "access/transam.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_class.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "parser/parsetree.h"
#include "server/compat.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

/* Types made of others so often are taken to contain a domain. */
#define MAX_TYPE_DEPTH 16

List *
lbt_other_children(const Plan *plan)
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

/* ---- what a node evaluates ---- */

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

/*
 * Look at what a node evaluates; true if "is" is true of any of it, or nobody
 * knows what the node does: ModifyTable, LockRows, others' nodes.
 */
static bool
any_expression(Plan *plan, bool (*is) (Node *node, void *context), void *context)
{
	int			i = 0;

	if (is((Node *) plan->targetlist, context) || is((Node *) plan->qual, context))
		return true;
	if (lbt_is_our_node(plan))
		return false;
	while (i < lengthof(readers) && readers[i].tag != nodeTag(plan))
		i++;
	if (i == lengthof(readers))
		return true;
	for (int j = 0; j < lengthof(readers[i].expressions); j++)
	{
		size_t		offset = readers[i].expressions[j];

		if (offset > 0 && is(*(Node **) ((char *) plan + offset), context))
			return true;
	}
	return false;
}

/* It counts as immutable, whatever its transition function is. */
static bool
is_users_aggregate(const Node *node)
{
	return (IsA(node, Aggref) && ((const Aggref *) node)->aggfnoid >= FirstNormalObjectId) ||
		(IsA(node, WindowFunc) && ((const WindowFunc *) node)->winfnoid >= FirstNormalObjectId);
}

/*
 * Is the type a domain, or made of one?  Older minors let a row contain itself
 * through a multirange.
 */
static bool
has_domain(Oid type, int depth)
{
	bool		found = false;
	TupleDesc	row;

	if (depth > MAX_TYPE_DEPTH)
		return true;
	switch (get_typtype(type))
	{
		case TYPTYPE_DOMAIN:
			return true;
		case TYPTYPE_RANGE:
			return has_domain(get_range_subtype(type), depth + 1);
		case TYPTYPE_MULTIRANGE:
			return has_domain(get_multirange_range(type), depth + 1);
		case TYPTYPE_COMPOSITE:
			row = lookup_rowtype_tupdesc(type, -1);
			for (int i = 0; i < row->natts && !found; i++)
				found = has_domain(TupleDescAttr(row, i)->atttypid, depth + 1);
			ReleaseTupleDesc(row);
			return found;
		default:
			type = get_element_type(type);
			return OidIsValid(type) && has_domain(type, depth + 1);
	}
}

static bool
have_domain(const List *types)
{
	ListCell   *lc;

	foreach(lc, types)
		if (has_domain(lfirst_oid(lc), 0))
			return true;
	return false;
}

/*
 * May the server run a domain's checks, which may have effects, to evaluate
 * this node of an expression?  It makes rows of JSON, for instance.
 */
static bool
checks_domain(Node *node)
{
	/* (Those of a type that is told as text only are not seen.) */
	if (IsA(node, RangeTblFunction))
		return have_domain(((RangeTblFunction *) node)->funccoltypes);
	if (IsA(node, TableFunc))
		return have_domain(((TableFunc *) node)->coltypes);
	if (IsA(node, FuncExpr) ? ((FuncExpr *) node)->funcid < FirstNormalObjectId :
		IsA(node, CoerceViaIO) || LBT_IS_JSON(node))
		return has_domain(exprType(node), 0);
	return IsA(node, CoerceToDomain);
}

/* ---- what a write evaluates ---- */

/*
 * A user's may be replaced by one that is, with no plan made anew for that.  A
 * subquery may read the sequence itself.
 */
static bool
may_be_volatile(Oid function, void *context)
{
	return function >= FirstNormalObjectId || func_volatile(function) == PROVOLATILE_VOLATILE;
}

bool
lbt_may_have_effects(Node *node, void *context)
{
	return node != NULL &&
		(check_functions_in_node(node, may_be_volatile, NULL) || checks_domain(node) ||
		 IsA(node, NextValueExpr) || IsA(node, SubPlan) || IsA(node, AlternativeSubPlan) ||
		 expression_tree_walker(node, lbt_may_have_effects, context));
}

bool
lbt_write_is_quiet(const ModifyTable *modify, const List *rtable)
{
	Relation	rel;
	const TupleConstr *checks;
	bool		may;
	Node	   *evaluated;

	evaluated = (Node *) list_make4(modify->returningLists, modify->withCheckOptionLists,
									modify->onConflictSet, modify->onConflictWhere);
	if (modify->operation == CMD_MERGE || modify->rootRelation > 0 ||
		lbt_may_have_effects(evaluated, NULL))
		return false;
	rel = table_open(rt_fetch(linitial_int(modify->resultRelations), rtable)->relid, NoLock);
	may = rel->rd_rel->relkind == RELKIND_RELATION; /* else partitions have their own */
	for (int i = 0; rel->trigdesc != NULL && i < rel->trigdesc->numtriggers; i++)
		may &= rel->trigdesc->triggers[i].tgisinternal;
	checks = RelationGetDescr(rel)->constr;
	for (int i = 0; checks != NULL && i < checks->num_check; i++)
		may &= !lbt_may_have_effects(stringToNode(checks->check[i].ccbin), NULL);
	table_close(rel, NoLock);
	return may;
}

/* ---- settings that change from row to row ---- */

/*
 * Where set_config() is called for each row, the setting, or the role, is read
 * for the next row after that.  Policies read settings, too, and nobody sets
 * any: so look whether the statement does.  Between two FETCHes of a cursor
 * anybody may.  Stable functions may read TimeZone, search_path, or another.
 */
static bool
reads_function(Oid function, void *context)
{
	return function != F_NOW && function != F_TRANSACTION_TIMESTAMP &&
		func_volatile(function) == PROVOLATILE_STABLE;
}

/* Does an aggregate, as json_agg()?  All of them count as immutable. */
static bool
reads_aggregate(Oid aggregate)
{
	HeapTuple	tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(aggregate));
	Form_pg_aggregate form;
	bool		reads;

	if (!HeapTupleIsValid(tuple))
		return false;			/* a window function */
	form = (Form_pg_aggregate) GETSTRUCT(tuple);
	reads = reads_function(form->aggtransfn, NULL) ||
		(OidIsValid(form->aggfinalfn) && reads_function(form->aggfinalfn, NULL));
	ReleaseSysCache(tuple);
	return reads;
}

/* What makes text, JSON or XML of values calls functions that nodes hide. */
static bool
reads_settings(Node *node)
{
	if (IsA(node, Aggref))
		return reads_aggregate(((Aggref *) node)->aggfnoid);
	if (IsA(node, WindowFunc) && reads_aggregate(((WindowFunc *) node)->winfnoid))
		return true;
	if (IsA(node, SQLValueFunction))
		return ((SQLValueFunction *) node)->type != TIMESTAMPTZOID;
	if (IsA(node, XmlExpr) || IsA(node, TableFunc) || LBT_IS_JSON(node))
		return true;
	if (IsA(node, CoerceViaIO))
	{
		Oid			type = exprType((Node *) ((CoerceViaIO *) node)->arg);

		/* Output functions count as immutable, even bytea's and float8's. */
		if (type != INT2OID && type != INT4OID && type != INT8OID && type != NUMERICOID &&
			type != TEXTOID && type != VARCHAROID && type != BPCHAROID && type != UUIDOID)
			return true;
	}
	return check_functions_in_node(node, reads_function, NULL);
}

/* Some of the server's run SQL that they are given. */
static bool
sets_function(Oid function, void *context)
{
	return function != F_NEXTVAL && !lbt_draws_uuid(function) &&
		function != F_CLOCK_TIMESTAMP && func_volatile(function) == PROVOLATILE_VOLATILE;
}

static bool
sets_settings(Node *node, void *context)
{
	return node != NULL &&
		(check_functions_in_node(node, sets_function, NULL) || is_users_aggregate(node) ||
		 checks_domain(node) || expression_tree_walker(node, sets_settings, context));
}

/* May a plan's expressions, or what it runs for each row, set any? */
static bool
plan_sets(Plan *plan, const PlannedStmt *stmt)
{
	ListCell   *lc;

	if (plan == NULL)
		return false;
	if (IsA(plan, ModifyTable) ? !lbt_write_is_quiet((ModifyTable *) plan, stmt->rtable) :
		!IsA(plan, LockRows) && any_expression(plan, sets_settings, NULL))
		return true;
	foreach(lc, lbt_other_children(plan))
		if (plan_sets(lfirst(lc), stmt))
			return true;
	return plan_sets(plan->lefttree, stmt) || plan_sets(plan->righttree, stmt);
}

/* May the statement?  Few have to ask. */
static bool
statement_sets(LbtPlanWalk *walk)
{
	ListCell   *lc;

	if (!walk->asked_settings)
	{
		walk->asked_settings = true;
		walk->changes_settings = plan_sets(walk->stmt->planTree, walk->stmt);
		foreach(lc, walk->stmt->subplans)
			walk->changes_settings |= plan_sets(lfirst(lc), walk->stmt);
	}
	return walk->changes_settings;
}

/* ---- may rows be read before they are needed? ---- */

static bool
is_volatile(Oid function, void *context)
{
	if (lbt_draws_uuid(function) ||
		(function == F_NEXTVAL && ((const LbtPlanWalk *) context)->nextval_ok))
		return false;
	return function == F_TXID_CURRENT_IF_ASSIGNED ||	/* by this write, perhaps */
		function == F_PG_CURRENT_XACT_ID_IF_ASSIGNED ||
		func_volatile(function) == PROVOLATILE_VOLATILE;
}

/*
 * Is it xmax, cmin or cmax?  No snapshot covers them: the statement itself may
 * lock rows, or change them.
 */
static bool
is_written_by_locks(const Node *node)
{
	const Var  *var = (const Var *) node;

	return IsA(node, Var) && var->varattno <= MinCommandIdAttributeNumber &&
		var->varattno >= MaxCommandIdAttributeNumber;
}

/*
 * Does evaluating an expression, or a subquery that it uses, have effects, or
 * read what others set?
 */
static bool
has_effects(Node *node, void *context)
{
	LbtPlanWalk	   *walk = context;

	if (node == NULL)
		return false;
	if (IsA(node, Param))
		return walk->effects && ((Param *) node)->paramkind == PARAM_EXEC &&
			bms_is_member(((Param *) node)->paramid, walk->init_params);
	if (IsA(node, SubPlan) && walk->effects)
		return true;
	if (check_functions_in_node(node, is_volatile, context) ||
		(IsA(node, NextValueExpr) && !walk->nextval_ok) || checks_domain(node) ||
		is_users_aggregate(node) || is_written_by_locks(node) ||
		(reads_settings(node) && statement_sets(walk)))
		return true;
	return expression_tree_walker(node, has_effects, context);
}

/*
 * No snapshot covers a sequence, so when it is read matters.  It has no index,
 * and cannot be sampled.
 */
static bool
reads_sequence(const Plan *plan, const List *rtable)
{
	return (IsA(plan, SeqScan) || IsA(plan, TidScan) || IsA(plan, TidRangeScan)) &&
		rt_fetch(((const Scan *) plan)->scanrelid, rtable)->relkind == RELKIND_SEQUENCE;
}

bool
lbt_node_has_effects(Plan *plan, LbtPlanWalk *walk)
{
	return any_expression(plan, has_effects, walk) || has_effects((Node *) plan->initPlan, walk) ||
		(IsA(plan, CteScan) && walk->effects) || reads_sequence(plan, walk->stmt->rtable) ||
		(IsA(plan, ForeignScan) && ((ForeignScan *) plan)->operation != CMD_SELECT);
}
