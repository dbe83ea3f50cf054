/*
 * skipcost.c - what the planner is told, up to 17, of conditions that leave
 * out an index's leading columns (src/README, "Skipping").
 */
#include "am/am.h"

#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "train/train.h"
#include "utils/index_selfuncs.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"
#include "utils/spccache.h"

Cost
lbt_pages_cost(PlannerInfo *root, const IndexOptInfo *index, Oid tablespace, double fetched,
			   double pages)
{
	double		page_cost;

	if (fetched <= 0)
		return 0;
	get_tablespace_page_costs(tablespace, &page_cost, NULL);
	return page_cost *
		index_pages_fetched(fetched, (BlockNumber) Max(pages, 1.0), index->pages, root);
}

const LbtIndex *
lbt_skip_view(const IndexOptInfo *index)
{
	Relation	rel;
	LbtIndex   *view;

	if (index->hypothetical || index->nkeycolumns == 0 || index->sortopfamily == NULL ||
		(index->indpred != NIL && !index->predOK))
		return NULL;
	rel = index_open(index->indexoid, NoLock);
	view = lbt_learned_view(rel);
	index_close(rel, NoLock);
	return view != NULL && lbt_model_comes(view, index->pages) ? view : NULL;
}

double
lbt_count_values(PlannerInfo *root, RelOptInfo *rel, List *exprs, double rows)
{
	Cardinality before = rel->rows;
	double		n;

	rel->rows = clamp_row_est(rows);
	n = estimate_num_groups(root, exprs, rel->rows, NULL, NULL);
	rel->rows = before;
	return n;
}

bool
lbt_takes_conditions(const IndexOptInfo *index, const LbtKeySpec *spec, const List *clauses)
{
	int			before = -1;	/* column of the condition before ... */
	bool		listed = false; /* ... which was a list */
	ListCell   *lc;

	foreach(lc, clauses)
	{
		IndexClause *clause = lfirst_node(IndexClause, lc);
		const Expr *expr = linitial_node(RestrictInfo, clause->indexquals)->clause;
		bool		list = IsA(expr, ScalarArrayOpExpr);
		int			i = clause->indexcol;
		int			strategy;
		Oid			left;
		Oid			right;

		if (i >= spec->ncolumns || list_length(clause->indexquals) > 1 ||
			(i == before && (list || listed)))
			return false;
		before = i;
		listed = list;
		if (IsA(expr, NullTest))
			continue;
		if (!list && !IsA(expr, OpExpr))
			return false;
		get_op_opfamily_properties(list ? ((const ScalarArrayOpExpr *) expr)->opno :
								   ((const OpExpr *) expr)->opno,
								   index->opfamily[i], false, &strategy, &left, &right);
		if (!lbt_keyspec_takes(&spec->column[i], right) ||
			(list && strategy != BTEqualStrategyNumber))
			return false;
	}
	return true;
}

/*
 * Find the columns without an equality before the last condition's, and the
 * conditions on columns up to there.  *places: of that one's column, among
 * others that are equal.  NIL if btree need not read what is left out, as each
 * has one value or a list.
 */
static List *
columns_left_out(PlannerInfo *root, const IndexPath *path, List **conditions, double *places)
{
	const IndexOptInfo *index = path->indexinfo;
	int			last = llast_node(IndexClause, path->indexclauses)->indexcol;
	Bitmapset  *equal = NULL;
	Bitmapset  *listed = NULL;
	bool		any = false;
	List	   *columns = NIL;
	ListCell   *lc;

	foreach(lc, path->indexclauses)
	{
		IndexClause *clause = lfirst_node(IndexClause, lc);
		const Expr *expr = linitial_node(RestrictInfo, clause->indexquals)->clause;
		const ScalarArrayOpExpr *list = IsA(expr, ScalarArrayOpExpr) ?
			(const ScalarArrayOpExpr *) expr : NULL;
		int			i = clause->indexcol;

		if (list)
			listed = bms_add_member(listed, i);
		else if (IsA(expr, NullTest) ? ((const NullTest *) expr)->nulltesttype == IS_NULL :
				 get_op_opfamily_strategy(((const OpExpr *) expr)->opno, index->opfamily[i]) ==
				 BTEqualStrategyNumber)
			equal = bms_add_member(equal, i);
		if (i < last)
			*conditions = lappend(*conditions, clause->rinfo);
		else if (list)
			*places = Max(lbt_array_length(root, lsecond(list->args)), 1.0);
	}
	for (int i = 0; i < last; i++)
	{
		if (bms_is_member(i, equal))
			continue;
		any |= !bms_is_member(i, listed);
		columns = lappend(columns, list_nth_node(TargetEntry, index->indextlist, i)->expr);
	}
	return any ? columns : NIL;
}

/*
 * May parallel paths come, however few pages are read?  They are nbtree's, and
 * skip nothing.
 */
static bool
is_read_in_parallel(const RelOptInfo *rel)
{
	return rel->consider_parallel && max_parallel_workers_per_gather > 0 &&
		rel->rel_parallel_workers != 0 &&
		(rel->reloptkind != RELOPT_BASEREL || rel->rel_parallel_workers > 0 ||
		 min_parallel_index_scan_size == 0);
}

void
lbt_skip_cost(PlannerInfo *root, IndexPath *path, double loop_count, Cost *startup_cost,
			  Cost *total_cost, Selectivity *selectivity, double *correlation, double *pages)
{
	IndexOptInfo *index = path->indexinfo;
	List	   *conditions = NIL;
	List	   *columns;
	double		places = 1.0;
	double		seeks;
	const LbtIndex *view;
	double		rows;
	double		leaves;
	Cost		cost;

	/* Without the height a descent would look free. */
	if (!index->hypothetical && index->tree_height < 0)
	{
		Relation	rel = index_open(index->indexoid, NoLock);	/* is locked */

		index->tree_height = _bt_getrootheight(rel);
		index_close(rel, NoLock);
	}
	btcostestimate(root, path, loop_count, startup_cost, total_cost, selectivity, correlation,
				   pages);

	/* No order of joins depends on it. */
	if (LBT_BTREE_SKIPS || !lbt_enable || !lbt_enable_loose_scan || path->indexclauses == NIL ||
		llast_node(IndexClause, path->indexclauses)->indexcol == 0 ||
		bms_num_members(root->all_baserels) != 1 || is_read_in_parallel(index->rel) ||
		(view = lbt_skip_view(index)) == NULL ||
		!lbt_takes_conditions(index, &view->keyspec, path->indexclauses) ||
		(columns = columns_left_out(root, path, &conditions, &places)) == NIL)
		return;
	rows = index->tuples * clauselist_selectivity(root, conditions, 0, JOIN_INNER, NULL);

	/* Other conditions leave no value out. */
	seeks = (1.0 + places) * lbt_count_values(root, index->rel, columns, rows) + 1.0;
	rows = *selectivity * index->tuples;
	leaves = seeks + *selectivity * index->pages;
	cost = *startup_cost + seeks * LBT_SEEK_COST +
		rows * (cpu_index_tuple_cost + cpu_operator_cost * list_length(path->indexclauses)) +
		lbt_pages_cost(root, index, index->reltablespace, leaves, index->pages);
	if (cost >= *total_cost)
		return;
	*total_cost = cost;
	*correlation = 0;			/* of rows, as matches lie apart */

	/* So few that there is no parallel path. */
	*pages = Min(Min(*pages, leaves), Max(min_parallel_index_scan_size - 1, 0));
}
