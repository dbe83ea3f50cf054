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
#include "optimizer/paths.h"
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

/* Our view of an index whose scans may skip; or NULL. */
static const LbtIndex *
view_of(const IndexOptInfo *index)
{
	Relation	rel;
	const LbtIndex *view;

	if (index->hypothetical || index->nkeycolumns == 0 || index->sortopfamily == NULL ||
		(index->indpred != NIL && !index->predOK))
		return NULL;
	rel = index_open(index->indexoid, NoLock);
	view = lbt_learned_view(rel);
	index_close(rel, NoLock);
	return view;
}

int
lbt_skip_columns(const IndexOptInfo *index)
{
	const LbtIndex *view = view_of(index);

	return view ? view->keyspec.ncolumns : 0;
}

/*
 * Do scans of ours take all of the path's conditions (scankeys.c)?  nbtree
 * would read the whole index.
 */
static bool
takes_conditions(const IndexPath *path, const LbtKeySpec *spec)
{
	int			before = -1;	/* column of the condition before */
	bool		list = false;	/* ... that is a list */
	ListCell   *lc;

	foreach(lc, path->indexclauses)
	{
		const IndexClause *clause = lfirst_node(IndexClause, lc);
		const Expr *expr = linitial_node(RestrictInfo, clause->indexquals)->clause;
		int			column = clause->indexcol;
		bool		again = column == before;

		if (column >= spec->ncolumns || list_length(clause->indexquals) > 1 ||
			(again && (list || IsA(expr, ScalarArrayOpExpr))))
			return false;
		if (!IsA(expr, NullTest))
		{
			Oid			opno = InvalidOid;
			int			strategy;
			Oid			left;
			Oid			right;

			if (IsA(expr, OpExpr))
				opno = ((const OpExpr *) expr)->opno;
			else if (IsA(expr, ScalarArrayOpExpr))
				opno = ((const ScalarArrayOpExpr *) expr)->opno;
			else
				return false;
			get_op_opfamily_properties(opno, path->indexinfo->opfamily[column], false, &strategy,
									   &left, &right);
			if (!lbt_keyspec_takes(&spec->column[column], right))
				return false;
		}
		before = column;
		list = IsA(expr, ScalarArrayOpExpr);
	}
	return true;
}

/* How many places does the last condition's column have among equal others? */
static double
count_places(PlannerInfo *root, const IndexPath *path)
{
	const IndexClause *last = llast_node(IndexClause, path->indexclauses);
	const Expr *expr = linitial_node(RestrictInfo, last->indexquals)->clause;

	return IsA(expr, ScalarArrayOpExpr) ?
		Max(lbt_array_length(root, lsecond(((const ScalarArrayOpExpr *) expr)->args)), 1.0) : 1.0;
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
	const LbtIndex *view;
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
	if (columns == NIL || (view = view_of(index)) == NULL ||
		!takes_conditions(path, &view->keyspec))
		return;
	rows = clamp_row_est(index->tuples *
						 clauselist_selectivity(root, conditions, 0, JOIN_INNER, NULL));
	index->rel->rows = rows;	/* other conditions leave no value out */
	seeks = (1.0 + count_places(root, path)) *
		estimate_num_groups(root, columns, rows, NULL, NULL) + 1.0;
	index->rel->rows = rows_found;
	rows = *selectivity * index->tuples;
	leaves = seeks + *selectivity * index->pages;
	cost = *startup_cost + seeks * LBT_SEEK_COST +
		rows * (cpu_index_tuple_cost + cpu_operator_cost * list_length(path->indexclauses)) +
		lbt_pages_cost(root, index, leaves, index->pages);
	if (cost >= *total_cost)
		return;
	*total_cost = cost;

	/* So few that there is no parallel path: nbtree's scans do not skip. */
	*pages = Min(Min(*pages, leaves), Max(min_parallel_index_scan_size - 1, 0));
}
