/*
 * skipcost.c - what the planner is told of conditions that leave out an
 * index's leading columns.
 *
 * Up to 17 the server thinks that all of the index is read.  Our scans skip
 * from one value of the columns left out to the next (scanskip.c): a leaf for
 * each, and one for its matches.
 */
#include "am/am.h"

#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "registry/settings.h"
#include "utils/index_selfuncs.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"

Cost
lbt_pages_cost(PlannerInfo *root, const IndexOptInfo *index, double fetched, double pages)
{
	if (fetched <= 0)
		return 0;
	return random_page_cost *
		index_pages_fetched(fetched, (BlockNumber) Max(pages, 1.0), index->pages, root);
}

int
lbt_skip_columns(const IndexOptInfo *index)
{
	Relation	rel;
	const LbtIndex *view;

	if (index->hypothetical || index->nkeycolumns == 0 || index->sortopfamily == NULL ||
		(index->indpred != NIL && !index->predOK))
		return 0;
	rel = index_open(index->indexoid, NoLock);
	view = lbt_learned_view(rel);
	index_close(rel, NoLock);
	return view ? view->keyspec.ncolumns : 0;
}

/* How many values does a condition leave of a column?  2: a list; 3: many. */
static int
count_values(const IndexOptInfo *index, const IndexClause *clause)
{
	const Expr *expr = linitial_node(RestrictInfo, clause->indexquals)->clause;

	if (IsA(expr, ScalarArrayOpExpr))
		return 2;
	if (IsA(expr, NullTest))
		return ((const NullTest *) expr)->nulltesttype == IS_NULL ? 1 : 3;
	return IsA(expr, OpExpr) &&
		get_op_opfamily_strategy(((const OpExpr *) expr)->opno,
								 index->opfamily[clause->indexcol]) == BTEqualStrategyNumber ?
		1 : 3;
}

/*
 * Find the columns without an equality before the last condition's, and the
 * conditions on columns up to there.  NIL if btree need not read what is left
 * out, as each has one value or a list.
 */
static List *
columns_left_out(const IndexPath *path, List **conditions)
{
	const IndexOptInfo *index = path->indexinfo;
	int			last = llast_node(IndexClause, path->indexclauses)->indexcol;
	int			values[INDEX_MAX_KEYS];
	bool		any = false;
	List	   *columns = NIL;
	ListCell   *lc;

	for (int i = 0; i < last; i++)
		values[i] = 3;
	foreach(lc, path->indexclauses)
	{
		IndexClause *clause = lfirst_node(IndexClause, lc);
		int			i = clause->indexcol;

		if (i == last)
			break;
		*conditions = lappend(*conditions, clause->rinfo);
		values[i] = Min(values[i], count_values(index, clause));
	}
	for (int i = 0; i < last; i++)
	{
		any |= values[i] == 3;
		if (values[i] > 1)
			columns = lappend(columns, list_nth_node(TargetEntry, index->indextlist, i)->expr);
	}
	return any ? columns : NIL;
}

void
lbt_skip_cost(PlannerInfo *root, IndexPath *path, double loop_count, Cost *startup_cost,
			  Cost *total_cost, Selectivity *selectivity, double *correlation, double *pages)
{
	IndexOptInfo *index = path->indexinfo;
	Cardinality rows_found = index->rel->rows;
	List	   *conditions = NIL;
	List	   *columns;
	double		seeks;
	double		rows;
	double		leaves;
	Cost		cost;

	btcostestimate(root, path, loop_count, startup_cost, total_cost, selectivity, correlation,
				   pages);

	/* No order of joins depends on it. */
	if (LBT_BTREE_SKIPS || !lbt_enable || !lbt_enable_loose_scan || path->indexclauses == NIL ||
		bms_num_members(root->all_baserels) != 1)
		return;
	columns = columns_left_out(path, &conditions);
	if (columns == NIL ||
		llast_node(IndexClause, path->indexclauses)->indexcol >= lbt_skip_columns(index))
		return;
	rows = clamp_row_est(index->tuples *
						 clauselist_selectivity(root, conditions, 0, JOIN_INNER, NULL));
	index->rel->rows = rows;	/* other conditions leave no value out */
	seeks = 2.0 * estimate_num_groups(root, columns, rows, NULL, NULL) + 1.0;
	index->rel->rows = rows_found;
	rows = *selectivity * index->tuples;
	leaves = seeks + *selectivity * index->pages;
	cost = *startup_cost + seeks * LBT_SEEK_COST +
		rows * (cpu_index_tuple_cost + cpu_operator_cost * list_length(path->indexclauses)) +
		lbt_pages_cost(root, index, leaves, index->pages);
	if (cost >= *total_cost)
		return;
	*total_cost = cost;
	*pages = Min(*pages, leaves);
}
