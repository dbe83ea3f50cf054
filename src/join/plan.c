/*
 * plan.c - nested loops that look ahead, as the planner sees them: paths, what they cost, and the plan node.
 *
 * For each pair of an outer path and an inner index path whose leading key columns are compared with values of the outer
 * side, the planner gets one more nested loop to choose from.  It is made from the outer path wrapped into a custom path;
 * the inner path, the join and its kinds are the server's.
 *
 * Left out: outer sides that do more than read, for reading them ahead would be seen (volatile functions, row locks,
 * changes of data); joins that depend on rows from further out, and those of single partitions, whose keys would have to be
 * translated.
 */
#include "join/join.h"

#include "am/am.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "optimizer/tlist.h"
#include "registry/settings.h"
#include "server/planner.h"
#include "utils/lsyscache.h"

/* Of what a nested loop costs above its outer side, this is left when it looks ahead. */
#define LOOKAHEAD_COST 0.25

/* Outer rows, and pages of the inner index and table, for which looking ahead is worth a path. */
#define MIN_OUTER_ROWS 8
#define MIN_INNER_PAGES 512

static set_join_pathlist_hook_type next_hook = NULL;

/* ---- may rows be read before they are needed? ---- */

static bool
is_volatile(Oid function, void *context)
{
	return func_volatile(function) == PROVOLATILE_VOLATILE;
}

/* Does the tree change data, lock rows, or call what may have effects?  Subqueries that are planned already are looked into. */
static bool
has_effects(Node *node, void *root)
{
	if (node == NULL)
		return false;
	if (check_functions_in_node(node, is_volatile, NULL) || IsA(node, NextValueExpr))
		return true;
	if (IsA(node, RestrictInfo))
		return has_effects((Node *) ((RestrictInfo *) node)->clause, root);
	if (IsA(node, SubPlan))
	{
		PlannerInfo *sub = list_nth(((PlannerInfo *) root)->glob->subroots, ((SubPlan *) node)->plan_id - 1);

		if (has_effects((Node *) sub->parse, root))
			return true;
	}
	if (IsA(node, Query))
	{
		Query	   *query = (Query *) node;

		return query->commandType != CMD_SELECT || query->hasModifyingCTE || query->rowMarks != NIL ||
			query_tree_walker(query, has_effects, root, 0);
	}
	return expression_tree_walker(node, has_effects, root);
}

static bool
may_read_ahead(PlannerInfo *root, const RelOptInfo *outer)
{
	int			relid = -1;

	/*
	 * WITH queries, and subqueries that run once, when their first user comes
	 * to them: these are parameters in expressions.
	 */
	for (PlannerInfo *level = root; level != NULL; level = level->parent_root)
		if (has_effects((Node *) level->parse->cteList, root) || has_effects((Node *) level->init_plans, root))
			return false;
	while ((relid = bms_next_member(outer->relids, relid)) >= 0)
	{
		RelOptInfo *rel = root->simple_rel_array[relid];
		RangeTblEntry *rte = root->simple_rte_array[relid];

		if (rel == NULL || rte == NULL)
			continue;			/* an outer join's own number */
		if (has_effects((Node *) rel->reltarget->exprs, root) ||
			has_effects((Node *) rel->baserestrictinfo, root) ||
			has_effects((Node *) rel->joininfo, root) ||
			range_table_entry_walker(rte, has_effects, root, 0))
			return false;
	}
	return true;
}

/*
 * May a custom scan have the columns?  Two kinds the server expects only in nodes of its own: row numbers of a target with
 * children, when it plans, and records of a subquery, whose fields it names in EXPLAIN.
 */
static bool
fit_custom_scan(const List *columns)
{
	ListCell   *lc;

	foreach(lc, columns)
		if (exprType(lfirst(lc)) == RECORDOID || (IsA(lfirst(lc), Var) && lfirst_node(Var, lc)->varno == ROWID_VAR))
		return false;
	return true;
}

/* ---- keys ---- */

/* Are the expression's inputs in the outer side's rows as they come? */
static bool
comes_from(List *columns, Node *expr)
{
	List	   *vars = pull_var_clause(expr, PVC_RECURSE_AGGREGATES | PVC_RECURSE_WINDOWFUNCS | PVC_INCLUDE_PLACEHOLDERS);
	ListCell   *lc;

	foreach(lc, vars)
		if (!list_member(columns, lfirst(lc)))
		return false;
	return true;
}

/* What this column of the index is to be equal to; NULL: nothing that is to be had from the outer side. */
static Node *
equal_to(PlannerInfo *root, const RelOptInfo *outer, const IndexPath *inner, int column, Oid *type)
{
	ListCell   *lc;

	foreach(lc, inner->indexclauses)
	{
		IndexClause *clause = lfirst_node(IndexClause, lc);
		OpExpr	   *expr;
		Node	   *value;
		int			strategy;
		Oid			lefttype;

		if (clause->indexcol != column || list_length(clause->indexquals) != 1)
			continue;
		expr = (OpExpr *) linitial_node(RestrictInfo, clause->indexquals)->clause;
		if (!IsA(expr, OpExpr))
			continue;
		get_op_opfamily_properties(expr->opno, inner->indexinfo->opfamily[column], false, &strategy, &lefttype, type);
		value = lsecond(expr->args);
		if (strategy == BTEqualStrategyNumber && bms_is_subset(pull_varnos(root, value), outer->relids) &&
			!contain_subplans(value) && comes_from(outer->reltarget->exprs, value))
			return value;
	}
	return NULL;
}

/* The keys of the inner scan that outer rows give, of its leading columns; NIL when there are none. */
static List *
find_keys(PlannerInfo *root, const RelOptInfo *outer, const IndexPath *inner, List **types)
{
	List	   *keys = NIL;
	bool		varies = false;

	for (int column = 0; column < LBT_CODE_COLUMNS && column < inner->indexinfo->nkeycolumns; column++)
	{
		Oid			type;
		Node	   *value = equal_to(root, outer, inner, column, &type);

		if (value == NULL)
			break;
		varies |= contain_var_clause(value);
		keys = lappend(keys, value);
		*types = lappend_oid(*types, type);
	}
	return varies ? keys : NIL;
}

/* ---- paths ---- */

static Plan *plan_lookahead(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses,
							List *custom_plans);

static const CustomPathMethods path_methods = {
	.CustomName = LBT_LOOKAHEAD_NAME,
	.PlanCustomPath = plan_lookahead
};

/* A join under consideration. */
typedef struct Candidate
{
	PlannerInfo *root;
	RelOptInfo *joinrel;
	JoinType	jointype;
	JoinPathExtraData *extra;
	IndexPath  *inner;
	List	   *keys;
	List	   *facts;			/* see LbtLookaheadField */
} Candidate;

/* The outer path, with its rows taken some at a time; and the nested loop over it.  NULL when it is no use. */
static Path *
make_nested_loop(const Candidate *c, Path *outer)
{
	CustomPath *ahead;
	NestPath   *nested;
	JoinCostWorkspace workspace;

	if (outer->rows < MIN_OUTER_ROWS || PATH_REQ_OUTER(outer) != NULL)
		return NULL;
	ahead = makeNode(CustomPath);
	ahead->path = *outer;
	ahead->path.type = T_CustomPath;
	ahead->path.pathtype = T_CustomScan;
	ahead->path.parallel_aware = false;
	ahead->path.total_cost += cpu_operator_cost * list_length(c->keys) * outer->rows;
	ahead->custom_paths = list_make1(outer);
	ahead->custom_private = list_make2(c->keys, c->facts);
	ahead->methods = &path_methods;

	lbt_initial_cost_nestloop(c->root, &workspace, c->jointype, &ahead->path, &c->inner->path, c->extra);
	nested = create_nestloop_path(c->root, c->joinrel, c->jointype, &workspace, c->extra, &ahead->path, &c->inner->path,
								  c->extra->restrictlist,
								  build_join_pathkeys(c->root, c->joinrel, c->jointype, outer->pathkeys), NULL);
	nested->jpath.path.total_cost = ahead->path.total_cost +
		Max(nested->jpath.path.total_cost - ahead->path.total_cost, 0) * LOOKAHEAD_COST;
	return &nested->jpath.path;
}

static void
add_paths(const Candidate *c, List *outer_paths, List *partial_paths)
{
	ListCell   *lc;

	foreach(lc, outer_paths)
	{
		Path	   *path = make_nested_loop(c, lfirst(lc));

		if (path)
			add_path(c->joinrel, path);
	}
	if (!c->joinrel->consider_parallel || !c->inner->path.parallel_safe || !bms_is_empty(c->joinrel->lateral_relids))
		return;
	foreach(lc, partial_paths)
	{
		Path	   *path = make_nested_loop(c, lfirst(lc));

		if (path)
			add_partial_path(c->joinrel, path);
	}
}

/* The planner has found its own paths for a join. */
static void
consider_join(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *outer, RelOptInfo *inner, JoinType jointype,
			  JoinPathExtraData *extra)
{
	bool		unique = jointype == JOIN_UNIQUE_OUTER;
	Candidate	candidate = {.root = root,.joinrel = joinrel,.jointype = unique ? JOIN_INNER : jointype,.extra = extra};
	List	   *outer_paths = NIL;
	ListCell   *lc;

	if (next_hook)
		next_hook(root, joinrel, outer, inner, jointype, extra);
	if (lbt_lookahead_rows < 2 || !enable_nestloop || outer->top_parent_relids != NULL ||
		!(unique || jointype == JOIN_INNER || jointype == JOIN_LEFT || jointype == JOIN_SEMI || jointype == JOIN_ANTI))
		return;
	foreach(lc, inner->cheapest_parameterized_paths)
	{
		IndexPath  *path = lfirst(lc);
		List	   *types = NIL;
		List	   *keys;
		bool		rows;

		if (!IsA(path, IndexPath) || !bms_is_subset(PATH_REQ_OUTER(&path->path), outer->relids) ||
			!lbt_path_is_served(path))
			continue;
		rows = path->path.pathtype == T_IndexScan;
		keys = find_keys(root, outer, path, &types);
		if (keys == NIL || path->indexinfo->pages + (rows ? inner->pages : 0) < MIN_INNER_PAGES)
			continue;
		if (outer_paths == NIL)
		{
			if (!fit_custom_scan(outer->reltarget->exprs) || !may_read_ahead(root, outer))
				return;
			outer_paths = unique ? lbt_unique_paths(root, outer, extra->sjinfo) : outer->pathlist;
		}
		candidate.inner = path;
		candidate.keys = keys;
		candidate.facts = list_concat(list_make2_oid(path->indexinfo->indexoid, (Oid) rows), types);
		add_paths(&candidate, outer_paths, unique ? NIL : outer->partial_pathlist);
	}
}

/* ---- the plan node ---- */

/*
 * Its tuples are its child's, column for column.  Keys that these do not have in the end, as a path may be planned with
 * fewer columns, are left out: the node then hands rows on and does nothing else.  (copyObject() is a macro that wants the
 * compiler that the server was built by.)
 */
static Plan *
plan_lookahead(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses, List *custom_plans)
{
	CustomScan *scan = makeNode(CustomScan);
	Plan	   *child = linitial(custom_plans);
	List	   *columns = NIL;
	ListCell   *lc;

	foreach(lc, child->targetlist)
		columns = lappend(columns, lfirst_node(TargetEntry, lc)->expr);
	foreach(lc, linitial(path->custom_private))
	{
		if (!comes_from(columns, lfirst(lc)))
			break;
		scan->custom_exprs = lappend(scan->custom_exprs, copyObjectImpl(lfirst(lc)));
	}
	scan->scan.plan.targetlist = tlist;
	scan->custom_scan_tlist = copyObjectImpl(child->targetlist);
	scan->custom_plans = custom_plans;
	scan->custom_private = copyObjectImpl(lsecond(path->custom_private));
	scan->methods = &lbt_lookahead_methods;
	return &scan->scan.plan;
}

void
lbt_join_init(void)
{
	RegisterCustomScanMethods(&lbt_lookahead_methods);
	next_hook = set_join_pathlist_hook;
	set_join_pathlist_hook = consider_join;
}
