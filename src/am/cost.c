/*
 * cost.c - what the planner is told that a scan costs: btree's estimate, with the descent that this scan will make.
 *
 * btree's estimate takes the inner pages for cached and charges processor time for each page from the root to the
 * leaf.  A scan that a model serves looks at the leaf alone.  All else is the same for both engines: leaf pages
 * read, tuples, comparisons.
 *
 * What is known at plan time decides.  What turns up later makes a scan descend that was expected not to, or the
 * other way round, and never matters for answers: a model trained or dropped since, a list with too many
 * combinations, an argument out of line, a parallel scan (the estimate for one is asked for like any other's).
 */
#include "am/am.h"

#include "am/scan.h"
#include "nodes/nodeFuncs.h"
#include "registry/settings.h"
#include "utils/index_selfuncs.h"
#include "utils/lsyscache.h"

/* What a condition's operator is in the column's operator family: its strategy and its argument's type. */
static int
strategy_of(const IndexPath *path, int column, Oid operator, Oid *argtype)
{
	int			strategy;
	Oid			lefttype;

	get_op_opfamily_properties(operator, path->indexinfo->opfamily[column], false, &strategy, &lefttype, argtype);
	return strategy;
}

/* The same for each member of a row comparison, on the columns that the clause lists. */
static bool
takes_row(LbtShape *shape, const LbtKeySpec *spec, const IndexPath *path, const IndexClause *clause,
		  const RowCompareExpr *row)
{
	for (int i = 0; i < list_length(row->opnos); i++)
	{
		int			column = list_nth_int(clause->indexcols, i);
		Oid			argtype;

		(void) strategy_of(path, column, list_nth_oid(row->opnos, i), &argtype);
		if (!lbt_shape_add_member(shape, spec, i, column, argtype, list_nth_oid(row->inputcollids, i)))
			return false;
	}
	return true;
}

/* Is a condition on the clause's column of a shape that our engine serves? */
static bool
takes_condition(LbtShape *shape, const LbtKeySpec *spec, const IndexPath *path, const IndexClause *clause, Node *expr)
{
	int			column = clause->indexcol;
	bool		array = IsA(expr, ScalarArrayOpExpr);
	int			strategy;
	Oid			argtype;

	if (IsA(expr, NullTest))
		return lbt_shape_add_test(shape, spec, column, ((NullTest *) expr)->nulltesttype == IS_NULL, false);
	if (IsA(expr, RowCompareExpr))
		return takes_row(shape, spec, path, clause, (RowCompareExpr *) expr);
	if (!array && !IsA(expr, OpExpr))
		return false;
	strategy = strategy_of(path, column, array ? ((ScalarArrayOpExpr *) expr)->opno : ((OpExpr *) expr)->opno, &argtype);
	return lbt_shape_add(shape, spec, column, strategy, array, argtype, exprInputCollation(expr));
}

/* Are the path's conditions of a shape that our engine serves?  As lbt_scan_interval() will find it. */
static bool
takes_path(const LbtKeySpec *spec, const IndexPath *path)
{
	LbtShape	shape = {.column = -1,.equal = true};
	ListCell   *lc;

	foreach(lc, path->indexclauses)
	{
		IndexClause *clause = lfirst_node(IndexClause, lc);
		ListCell   *qual;

		foreach(qual, clause->indexquals)
			if (!takes_condition(&shape, spec, path, clause, (Node *) lfirst_node(RestrictInfo, qual)->clause))
			return false;
	}
	return path->indexorderbys == NIL;
}

/* As things are, will a model serve the scan?  Only looks: what has no model yet gets none here. */
static bool
will_use_model(Relation rel, const IndexPath *path)
{
	LbtIndex   *index;

	if (!lbt_enable || RelationUsesLocalBuffers(rel))
		return false;
	index = lbt_index_get(rel);
	lbt_index_update(index);
	return index->learned && index->state == LBT_READY && takes_path(&index->keyspec, path);
}

bool
lbt_path_is_served(const IndexPath *path)
{
	Relation	rel;
	bool		served;

	if (path->indexinfo->hypothetical || path->indexinfo->amcostestimate != (void *) lbt_costestimate)
		return false;
	rel = index_open(path->indexinfo->indexoid, NoLock);
	served = will_use_model(rel, path);
	index_close(rel, NoLock);
	return served;
}

void
lbt_costestimate(PlannerInfo *root, IndexPath *path, double loop_count, Cost *startup_cost,
				 Cost *total_cost, Selectivity *selectivity, double *correlation, double *pages)
{
	/* Copies: other paths of the index may be served otherwise. */
	IndexOptInfo info = *path->indexinfo;
	IndexPath	described = *path;

	if (!info.hypothetical)
	{
		/* The planner has locked it. */
		Relation	rel = index_open(info.indexoid, NoLock);

		/* Below 18 the server knows the height of btree's own indexes alone. */
		if (will_use_model(rel, path))
			info.tree_height = 0;
		else if (info.tree_height < 0)
			info.tree_height = _bt_getrootheight(rel);
		index_close(rel, NoLock);
	}
	described.indexinfo = &info;
	btcostestimate(root, &described, loop_count, startup_cost, total_cost, selectivity, correlation, pages);
}
