/*
 * paths.c - loose scans in the planner; see loose.h.
 *
 * When the planner has all its paths for a DISTINCT or GROUP BY step over one
 * table, add a loose scan of an index of ours, if it is clearly cheaper than
 * the best of them.  Some aggregates of all rows get one for their input.
 */
#include "loose/loose.h"

#include "access/stratnum.h"
#include "access/sysattr.h"
#include "am/am.h"
#include "catalog/pg_aggregate.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planner.h"
#include "optimizer/prep.h"
#include "optimizer/restrictinfo.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"

/* A loose scan is taken if it costs less than this share of another path. */
#define CHEAPER 0.75

static create_upper_paths_hook_type next_upper; /* before ours */

/* A step of the query, and an index that may serve it. */
typedef struct Loose
{
	PlannerInfo *root;
	RelOptInfo *output;
	const List *groups;			/* SortGroupClauses */
	List	   *tlist;			/* ... of these */
	const List *aggregates;		/* of all rows, not of groups; or NIL */
	const AggPath *aggregation; /* the planner's of these */
	const PathTarget *target;	/* of all paths, or of the aggregates' input */
	List	   *order;			/* pathkeys that are of use */
	IndexOptInfo *index;
	List	   *conditions;		/* IndexClauses */
	Bitmapset  *fixed;			/* columns that are equal to something */
	Bitmapset  *grouped;		/* columns to group by */
	int			covered;		/* columns that our scans can skip by */
	int			ncolumns;		/* that make the groups, from the first on ... */
	int			free;			/* ... and the first of these not fixed */
	List	   *columns;		/* as custom_private (loose.h) ... */
	List	   *first;			/* ... extremes */
	List	   *last;
	PathTarget *probe_target;
	List	   *pathkeys;		/* of the probe */
	ScanDirection direction;
	IndexPath  *probe;
	Cost		cost;
} Loose;

/* ---- the query ---- */

/*
 * May the query have such scans, and is this one plain table, with conditions
 * that may be evaluated at will?
 */
static bool
is_possible(const PlannerInfo *root, const RelOptInfo *rel)
{
	const RangeTblEntry *rte;
	ListCell   *lc;

	if (!lbt_enable || !lbt_enable_loose_scan ||
		root->parse->commandType != CMD_SELECT || root->parse->rowMarks != NIL ||
		root->rowMarks != NIL || root->hasPseudoConstantQuals ||
		rel->reloptkind != RELOPT_BASEREL || rel->rtekind != RTE_RELATION ||
		rel->lateral_relids != NULL)
		return false;
	rte = planner_rt_fetch(rel->relid, root);
	if (rte->inh || rte->tablesample != NULL ||
		(rte->relkind != RELKIND_RELATION && rte->relkind != RELKIND_MATVIEW))
		return false;
	foreach(lc, rel->baserestrictinfo)
	{
		Node	   *clause = (Node *) lfirst_node(RestrictInfo, lc)->clause;

		if (contain_volatile_functions(clause) || contain_subplans(clause))
			return false;
	}
	return true;
}

/* The index's key column that an expression is, from 0 on; or -1. */
static int
key_column(const IndexOptInfo *index, const void *expr)
{
	const Var  *var = expr;

	if (!IsA(var, Var) || var->varno != index->rel->relid || var->varattno <= 0 ||
		var->varlevelsup > 0)
		return -1;
	for (int i = 0; i < index->nkeycolumns; i++)
		if (index->indexkeys[i] == var->varattno && index->indexcollations[i] == var->varcollid)
			return i;
	return -1;
}

/* ---- conditions ---- */

/*
 * Is a condition one on this column of the index, that it can look up?
 * Returns it with the column on the left; or NULL.  Sets *fixes.
 */
static RestrictInfo *
as_condition(IndexOptInfo *index, int column, RestrictInfo *rinfo, bool *fixes)
{
	const OpExpr *op = (const OpExpr *) rinfo->clause;
	const ScalarArrayOpExpr *any = (const ScalarArrayOpExpr *) rinfo->clause;
	const NullTest *test = (const NullTest *) rinfo->clause;
	Oid			opno;
	bool		commuted;

	*fixes = false;
	if (!restriction_is_securely_promotable(rinfo, index->rel))
		return NULL;
	if (IsA(test, NullTest))
	{
		*fixes = test->nulltesttype == IS_NULL;
		return !test->argisrow && match_index_to_operand((Node *) test->arg, column, index) ?
			rinfo : NULL;
	}
	if (IsA(any, ScalarArrayOpExpr))
		return any->useOr && any->inputcollid == index->indexcollations[column] &&
			match_index_to_operand(linitial(any->args), column, index) &&
			get_op_opfamily_strategy(any->opno, index->opfamily[column]) ==
			BTEqualStrategyNumber && !contain_var_clause(lsecond(any->args)) ? rinfo : NULL;
	if (!IsA(op, OpExpr) || list_length(op->args) != 2 ||
		op->inputcollid != index->indexcollations[column])
		return NULL;
	commuted = !match_index_to_operand(linitial(op->args), column, index);
	opno = commuted ? get_commutator(op->opno) : op->opno;
	if (!match_index_to_operand(list_nth(op->args, commuted), column, index) ||
		!op_in_opfamily(opno, index->opfamily[column]) ||
		contain_var_clause(list_nth(op->args, !commuted)))
		return NULL;
	*fixes = get_op_opfamily_strategy(opno, index->opfamily[column]) == BTEqualStrategyNumber;
	return commuted ? commute_restrictinfo(rinfo, opno) : rinfo;
}

/*
 * Collect the table's conditions in the order of the index's columns, as
 * IndexClauses, and the columns that one makes equal to something.  False if
 * the index cannot look up all of them.
 */
static bool
find_conditions(Loose *loose)
{
	IndexOptInfo *index = loose->index;
	List	   *rest = list_copy(index->indrestrictinfo);

	for (int i = 0; i < loose->covered; i++)
	{
		ListCell   *lc;

		foreach(lc, index->indrestrictinfo)
		{
			bool		fixes;
			RestrictInfo *condition = as_condition(index, i, lfirst(lc), &fixes);
			IndexClause *clause;

			if (condition == NULL)
				continue;
			clause = makeNode(IndexClause);
			clause->rinfo = lfirst(lc);
			clause->indexquals = list_make1(condition);
			clause->indexcol = i;
			loose->conditions = lappend(loose->conditions, clause);
			rest = list_delete_ptr(rest, lfirst(lc));
			if (fixes)
				loose->fixed = bms_add_member(loose->fixed, i);
		}
	}
	return rest == NIL;
}

/* ---- groups and output ---- */

/* Are the groups made by the index's first columns? */
static bool
find_groups(Loose *loose)
{
	const IndexOptInfo *index = loose->index;
	ListCell   *lc;
	int			n = 0;

	foreach(lc, loose->groups)
	{
		const SortGroupClause *group = lfirst(lc);
		Node	   *expr = get_sortgroupclause_expr(lfirst(lc), loose->tlist);
		int			column;

		if (IsA(expr, Const))
			continue;
		column = key_column(index, expr);
		if (column < 0 || get_op_opfamily_strategy(group->eqop, index->opfamily[column]) !=
			BTEqualStrategyNumber)
			return false;
		loose->grouped = bms_add_member(loose->grouped, column);
		if (!bms_is_member(column, loose->fixed) && !list_member(loose->target->exprs, expr))
			return false;
	}
	while (n < index->nkeycolumns &&
		   (bms_is_member(n, loose->grouped) || bms_is_member(n, loose->fixed)))
		n++;
	loose->ncolumns = n;
	loose->free = bms_next_member(bms_difference(loose->grouped, loose->fixed), -1);
	return bms_prev_member(loose->grouped, -1) < n && loose->free >= 0;
}

/* The column of the index that is an aggregate's only argument; or -1. */
static int
aggregated_column(const IndexOptInfo *index, const Aggref *aggref)
{
	const Var  *var;

	if (list_length(aggref->args) != 1 || aggref->aggfilter != NULL || aggref->aggorder != NIL ||
		aggref->aggdirectargs != NIL || aggref->agglevelsup > 0)
		return -1;
	var = (const Var *) linitial_node(TargetEntry, aggref->args)->expr;
	return aggref->inputcollid == exprCollation((const Node *) var) ? key_column(index, var) : -1;
}

/*
 * Is an aggregate the least or greatest value of this column of the index, or
 * NULL if there is none?  Sets *strategy to that of the smaller or greater.
 */
static bool
is_extreme(const IndexOptInfo *index, int column, const Aggref *aggref, int *strategy)
{
	HeapTuple	tuple;
	Oid			sortop;

	if (aggregated_column(index, aggref) != column || aggref->aggdistinct != NIL ||
		aggref->aggtype != exprType((Node *) linitial_node(TargetEntry, aggref->args)->expr))
		return false;
	tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(aggref->aggfnoid));
	if (!HeapTupleIsValid(tuple))
		return false;
	sortop = ((Form_pg_aggregate) GETSTRUCT(tuple))->aggsortop;
	ReleaseSysCache(tuple);
	*strategy = OidIsValid(sortop) ?
		get_op_opfamily_strategy(sortop, index->opfamily[column]) : InvalidStrategy;
	return *strategy == BTLessStrategyNumber || *strategy == BTGreaterStrategyNumber;
}

/*
 * Does a value that comes again make no difference to any of the aggregates?
 * Those with DISTINCT have one column, and its type's equality.
 */
static bool
ignore_duplicates(const Loose *loose)
{
	int			column = -1;
	ListCell   *lc;

	foreach(lc, loose->aggregates)
	{
		const Aggref *aggref = lfirst(lc);
		int			its = aggregated_column(loose->index, aggref);
		int			strategy;

		if (its < 0 || (column >= 0 && its != column) ||
			(aggref->aggdistinct == NIL && !is_extreme(loose->index, its, aggref, &strategy)))
			return false;
		column = its;
	}
	return true;
}

/*
 * Choose the direction in which the index has the order asked for, if any; if
 * it has none, forward, or backward if that makes all extremes come first.
 */
static void
choose_direction(Loose *loose)
{
	List	   *forward = build_index_pathkeys(loose->root, loose->index, ForwardScanDirection);
	List	   *backward = build_index_pathkeys(loose->root, loose->index, BackwardScanDirection);
	List	   *first = loose->first;
	bool		turns = first == NIL && loose->last != NIL;

	if (loose->order != NIL && pathkeys_contained_in(loose->order, forward))
		turns = false;
	else if (loose->order != NIL && pathkeys_contained_in(loose->order, backward))
		turns = true;
	loose->direction = turns ? BackwardScanDirection : ForwardScanDirection;
	loose->pathkeys = turns ? backward : forward;
	if (turns)
	{
		loose->first = loose->last;
		loose->last = first;
	}
}

/*
 * Make the target list of the probe, and find each free column among the rows'
 * columns; false if it cannot give the output.  DISTINCT ON wants the first
 * row in the query's order, and aggregates from 16 on rows in the order of
 * their DISTINCT.
 */
static bool
find_output(Loose *loose)
{
	const IndexOptInfo *index = loose->index;
	const Query *parse = loose->root->parse;
	bool		any_column = loose->groups == parse->distinctClause && parse->hasDistinctOn;
	ListCell   *lc;

	loose->probe_target = create_empty_pathtarget();
	for (int i = 0; i < loose->ncolumns; i++)
		loose->columns = lappend_int(loose->columns, 0);
	foreach(lc, loose->target->exprs)
	{
		Expr	   *expr = lfirst(lc);
		int			place = foreach_current_index(lc) + 1;
		int			column = key_column(index, expr);
		int			strategy;

		if (IsA(expr, Aggref))
		{
			if (!is_extreme(index, loose->ncolumns, (Aggref *) expr, &strategy))
				return false;
			if ((strategy == BTGreaterStrategyNumber) == index->reverse_sort[loose->ncolumns])
				loose->first = lappend_int(loose->first, place);
			else
				loose->last = lappend_int(loose->last, place);
			expr = linitial_node(TargetEntry, ((Aggref *) expr)->args)->expr;
		}
		else if (column >= 0 && column < loose->ncolumns)
			lfirst_int(list_nth_cell(loose->columns, column)) =
				bms_is_member(column, loose->fixed) ? 0 : place;
		else if (!any_column && !IsA(expr, Const))
			return false;
		add_column_to_pathtarget(loose->probe_target, expr,
								 get_pathtarget_sortgroupref(loose->target, place - 1));
	}
	if (contain_volatile_functions((Node *) loose->probe_target->exprs) ||
		contain_subplans((Node *) loose->probe_target->exprs))
		return false;
	set_pathtarget_cost_width(loose->root, loose->probe_target);
	choose_direction(loose);
	return (!any_column && loose->aggregates == NIL) ||
		pathkeys_contained_in(loose->order, loose->pathkeys);
}

/* ---- the probe ---- */

/* Has the index all columns that are wanted, and in its conditions? */
static bool
is_index_only(const IndexOptInfo *index, const PathTarget *target)
{
	Bitmapset  *wanted = NULL;
	Bitmapset  *there = NULL;
	ListCell   *lc;

	pull_varattnos((Node *) target->exprs, index->rel->relid, &wanted);
	foreach(lc, index->indrestrictinfo)
		pull_varattnos((Node *) lfirst_node(RestrictInfo, lc)->clause, index->rel->relid, &wanted);
	for (int i = 0; i < index->ncolumns; i++)
		if (index->indexkeys[i] > 0 && index->canreturn[i])
			there = bms_add_member(there, index->indexkeys[i] - FirstLowInvalidHeapAttributeNumber);
	return enable_indexonlyscan && bms_is_subset(wanted, there);
}

/*
 * An index scan with the conditions, index-only if the index has all that is
 * wanted; NULL if such scans are switched off.
 */
static IndexPath *
make_probe(const Loose *loose)
{
	PathTarget *target = loose->probe_target;
	bool		only = is_index_only(loose->index, target);
	IndexPath  *path;

	path = create_index_path(loose->root, loose->index, loose->conditions, NIL, NIL,
							 loose->pathkeys, loose->direction, only, NULL, 1.0, false);
	path->path.pathtarget = target;
	return lbt_is_disabled(path) ? NULL : path;
}

/*
 * By statistics, how many values the groups' columns before this one have in
 * "in" rows.
 */
static double
count_values(const Loose *loose, int column, double in)
{
	List	   *exprs = NIL;
	ListCell   *lc;

	foreach(lc, loose->columns)
	{
		if (lfirst_int(lc) > 0 && foreach_current_index(lc) < column)
			exprs = lappend(exprs, list_nth(loose->target->exprs, lfirst_int(lc) - 1));
	}
	return lbt_count_values(loose->root, loose->index->rel, exprs, in);
}

/*
 * How many values has the probe to look at, one after the other?  Conditions
 * on the first free column, and before it, bound the range; those behind leave
 * out no value of the columns before them.
 */
static double
count_places(const Loose *loose, double groups)
{
	double		places = Max(groups, 1.0);
	List	   *before = NIL;	/* conditions on columns before */
	ListCell   *lc;

	foreach(lc, loose->conditions)
	{
		const IndexClause *clause = lfirst_node(IndexClause, lc);
		double		rows = loose->index->rel->tuples;

		if (clause->indexcol > loose->free)
		{
			rows *= clauselist_selectivity(loose->root, before, 0, JOIN_INNER, NULL);
			places = Max(places, count_values(loose, clause->indexcol, rows));
		}
		before = lappend(before, clause->rinfo);
	}
	return places;
}

/*
 * Estimate the cost: of finding each group, twice if there are conditions
 * behind the range's, and of the pages that it is on.  As nbtree likes to
 * split leaves between groups, one may begin a leaf after the end of the last.
 */
static void
estimate(Loose *loose, double groups)
{
	const IndexOptInfo *index = loose->index;
	RelOptInfo *rel = index->rel;
	bool		twice = loose->conditions != NIL &&
		llast_node(IndexClause, loose->conditions)->indexcol > loose->free;
	double		places = count_places(loose, groups);
	double		found = places * (1.0 + twice + (loose->last != NIL));
	double		pages = index->pages;

	loose->cost = found * (LBT_SEEK_COST + cpu_index_tuple_cost + cpu_tuple_cost +
						   cpu_operator_cost * list_length(loose->conditions));
	if (!twice)
		pages *= loose->probe->indexselectivity;
	loose->cost += lbt_pages_cost(loose->root, index, index->reltablespace,
								  found + Min(places, pages), pages);
	if (loose->probe->path.pathtype == T_IndexOnlyScan)
		found *= 1.0 - rel->allvisfrac;
	loose->cost += lbt_pages_cost(loose->root, index, rel->reltablespace, found, rel->pages);
}

/* ---- paths ---- */

/* A loose scan with this path for its second input; NULL if that is cheap. */
static Path *
make_loose(Loose *loose, Path *whole, double groups)
{
	CustomPath *path = makeNode(CustomPath);

	estimate(loose, groups);
	if (loose->probe->path.startup_cost + loose->cost > whole->total_cost * CHEAPER)
		return NULL;
	path->path.pathtype = T_CustomScan;
	path->path.parent = loose->output;
	path->path.pathtarget = whole->pathtarget;
	path->path.parallel_safe = loose->output->consider_parallel && whole->parallel_safe &&
		loose->probe->path.parallel_safe;
	path->path.rows = groups;
	path->path.startup_cost = loose->probe->path.startup_cost;
	path->path.total_cost = path->path.startup_cost + loose->cost;
	if (pathkeys_contained_in(whole->pathkeys, loose->pathkeys))
		path->path.pathkeys = whole->pathkeys;
	path->custom_paths = list_make2(loose->probe, whole);
	path->custom_private = list_make3(loose->columns, loose->first, loose->last);
	path->methods = &lbt_loose_node.path;
	return &path->path;
}

/*
 * The planner's cheapest path with this output, in this order, for as many
 * rows as are wanted; or NULL.
 */
static ListCell *
cheapest(const Loose *loose, List *pathkeys)
{
	double		wanted = loose->root->tuple_fraction;
	ListCell   *best = NULL;
	ListCell   *lc;

	foreach(lc, loose->output->pathlist)
	{
		Path	   *path = lfirst(lc);

		if (path->param_info == NULL && !IsA(path, CustomPath) &&
			(pathkeys == NIL || pathkeys_contained_in(pathkeys, path->pathkeys)) &&
			(best == NULL ||
			 compare_fractional_path_costs(path, lfirst(best),
										   wanted < 1.0 ? wanted : wanted / path->rows) < 0) &&
			equal(path->pathtarget->exprs, loose->target->exprs))
			best = lc;
	}
	return best;
}

/*
 * Add a path that has for its second input the planner's cheapest one in the
 * order asked for, or of all, if either has none.  Later steps of the planner
 * free paths of the list: put another node in its place.
 */
static void
add_loose(Loose *loose)
{
	bool		ordered = pathkeys_contained_in(loose->order, loose->pathkeys);
	ListCell   *at = ordered ? cheapest(loose, loose->order) : NULL;
	Path	   *whole;
	Path	   *path;

	if (at == NULL)
		at = cheapest(loose, NIL);
	if (at == NULL)
		return;
	whole = lfirst(at);
	path = make_loose(loose, whole, whole->rows);
	if (path == NULL)
		return;
	lfirst(at) = create_projection_path(loose->root, loose->output, whole, whole->pathtarget);
	loose->output->pathlist = lcons(path, loose->output->pathlist);
}

/* Add the planner's aggregation, with a loose scan for its input. */
static void
add_aggregation(Loose *loose)
{
	AggClauseCosts costs;
	Path	   *path = make_loose(loose, loose->aggregation->subpath,
								  count_values(loose, loose->ncolumns, loose->index->rel->rows));

	if (path == NULL)
		return;
	memset(&costs, 0, sizeof(costs));
	get_agg_clause_costs(loose->root, AGGSPLIT_SIMPLE, &costs);
	path = &create_agg_path(loose->root, loose->output, path, loose->aggregation->path.pathtarget,
							AGG_PLAIN, AGGSPLIT_SIMPLE, NIL, NIL, &costs, 1.0)->path;
	loose->output->pathlist = lcons(path, loose->output->pathlist);
}

/*
 * Behind the groups' columns, does each condition but the last fix its column,
 * and is none left out?  Else the probe may read all of a group, or of the
 * index, before it finds a row, and nobody could switch over meanwhile.
 */
static bool
finds_groups_soon(const Loose *loose)
{
	const IndexClause *last = loose->conditions ? llast(loose->conditions) : NULL;

	for (int i = loose->ncolumns; last != NULL && i < last->indexcol; i++)
		if (!bms_is_member(i, loose->fixed))
			return false;
	return true;
}

static void
consider_index(Loose *loose)
{
	const LbtIndex *view = lbt_skip_view(loose->index);

	loose->covered = view ? view->keyspec.ncolumns : 0;
	if (loose->covered == 0 || !ignore_duplicates(loose) || !find_conditions(loose) ||
		!lbt_takes_conditions(loose->index, &view->keyspec, loose->conditions) ||
		!find_groups(loose) || !finds_groups_soon(loose) || !find_output(loose) ||
		loose->ncolumns + (loose->first != NIL || loose->last != NIL) > loose->covered)
		return;

	/* A cursor that could go back through a Sort must keep it. */
	if (lbt_planner_for_cursor(loose->root) && loose->aggregates == NIL)
		loose->pathkeys = NIL;
	loose->probe = make_probe(loose);
	if (loose->probe == NULL)
		return;
	if (loose->aggregates != NIL)
		add_aggregation(loose);
	else
		add_loose(loose);
}

/*
 * Take a query's aggregates of all rows, and the DISTINCT of one of them for
 * the groups; false if none has one.
 */
static bool
take_aggregates(Loose *loose)
{
	ListCell   *best = cheapest(loose, NIL);
	ListCell   *lc;

	loose->aggregation = best ? lfirst(best) : NULL;
	if (best == NULL || !IsA(loose->aggregation, AggPath) ||
		loose->aggregation->aggstrategy != AGG_PLAIN ||
		loose->aggregation->aggsplit != AGGSPLIT_SIMPLE)
		return false;
	loose->aggregates = pull_var_clause((Node *) loose->target->exprs, PVC_INCLUDE_AGGREGATES |
										PVC_RECURSE_PLACEHOLDERS);
	loose->target = loose->aggregation->subpath->pathtarget;
	loose->order = loose->root->group_pathkeys;
	foreach(lc, loose->aggregates)
	{
		const Aggref *aggref = lfirst(lc);

		if (!IsA(aggref, Aggref))
			return false;
		if (aggref->aggdistinct != NIL)
		{
			loose->groups = aggref->aggdistinct;
			loose->tlist = aggref->args;
		}
	}
	return loose->groups != NIL;
}

/*
 * The planner has found its paths for a step of a query above its joins, and
 * not chosen one yet.
 */
static void
consider(PlannerInfo *root, UpperRelationKind step, RelOptInfo *input, RelOptInfo *output,
		 void *extra)
{
	const Query *parse = root->parse;
	Loose		common = {.root = root,.output = output,.tlist = root->processed_tlist,
	.order = root->sort_pathkeys};
	ListCell   *lc;

	if (next_upper)
		next_upper(root, step, input, output, extra);

	/* A table proven to have no rows has no list of conditions either. */
	if ((step != UPPERREL_DISTINCT && step != UPPERREL_GROUP_AGG) || output->pathlist == NIL ||
		IS_DUMMY_REL(input) || parse->groupingSets != NIL ||
		parse->hasWindowFuncs || parse->hasTargetSRFs ||
		(step == UPPERREL_GROUP_AGG && parse->havingQual != NULL) ||
		!is_possible(root, input))
		return;
	common.groups = step == UPPERREL_DISTINCT ? parse->distinctClause : parse->groupClause;
	common.target = ((Path *) linitial(output->pathlist))->pathtarget;
	if (common.groups == NIL && !take_aggregates(&common))
		return;
	foreach(lc, input->indexlist)
	{
		Loose		loose = common;

		loose.index = lfirst(lc);
		consider_index(&loose);
	}
}

void
lbt_loose_init(void)
{
	RegisterCustomScanMethods(&lbt_loose_node.plan);
	next_upper = create_upper_paths_hook;
	create_upper_paths_hook = consider;
}
