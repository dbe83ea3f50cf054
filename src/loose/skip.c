/*
 * skip.c - skip scans in the planner: conditions that leave out an index's
 * leading columns, on servers that have no such scans of their own.
 *
 *     Custom Scan (Learned Skip Scan)        the table's rows
 *       -> Custom Scan (Learned Loose Scan)  values of the columns left out
 *            -> Index Only Scan           of rows that are dead, too
 *       -> Index (Only) Scan                 the rows that have one of these
 *       -> the planner's own plan            run instead, if there turn out
 *                                            to be many values
 *
 * Of an index on (a, b), with b = 5, the first input gives
 *
 *     1, 2, 3, NULL
 *
 * and the second one, in turn, the rows with
 *
 *     a = 1 and b = 5;  a = 2 and b = 5;  a = 3 and b = 5;
 *     a IS NULL and b = 5
 *
 * All values are taken before the first row is returned.  Should they cost
 * more than a small share of the planner's own plan to find, then that one
 * gives all rows.  So no row must be left out there, and many values, or many
 * more than statistics tell, cost little.
 *
 * Columns are left out up to the last one, before the last condition's, that
 * no condition makes equal to something.  Conditions on columns up to there,
 * as in a > 2 AND b = 5 or a = 2 AND c = 5, are the first input's, too.
 */
#include "loose/loose.h"

#include "catalog/pg_type_d.h"
#include "optimizer/cost.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/tlist.h"
#include "utils/selfuncs.h"

/*
 * A skip scan must be as cheap with so many times as many rows as thought:
 * once it gives rows, it cannot switch over.
 */
#define MISJUDGED 10.0

/* A table, and an index that may serve its conditions. */
typedef struct Skip
{
	PlannerInfo *root;
	RelOptInfo *rel;
	IndexOptInfo *index;
	List	   *conditions;		/* IndexClauses */
	Bitmapset  *fixed;			/* columns that are equal to something */
	int			ncolumns;		/* that values are taken of */
	List	   *columns;		/* as LBT_LOOSE_COLUMNS, of the values' */
	PathTarget *target;			/* of the values */
	CustomPath *values;
	IndexPath  *rows;
} Skip;

/* Find the columns that are left out; false if there are none. */
static bool
find_columns(Skip *skip)
{
	const IndexOptInfo *index = skip->index;

	if (skip->conditions == NIL)
		return false;			/* only the index's own */
	skip->ncolumns = llast_node(IndexClause, skip->conditions)->indexcol;
	while (skip->ncolumns > 0 && bms_is_member(skip->ncolumns - 1, skip->fixed))
		skip->ncolumns--;
	skip->target = create_empty_pathtarget();
	for (int i = 0; i < skip->ncolumns; i++)
	{
		Expr	   *expr = list_nth_node(TargetEntry, index->indextlist, i)->expr;
		bool		free = !bms_is_member(i, skip->fixed);

		if (free)
		{
			if (index->indexkeys[i] == 0 || index->opcintype[i] == NAMEOID)
				return false;	/* names are others in indexes */
			add_column_to_pathtarget(skip->target, expr, 0);
		}
		skip->columns = lappend_int(skip->columns,
									free ? list_length(skip->target->exprs) : 0);
	}
	set_pathtarget_cost_width(skip->root, skip->target);
	return skip->ncolumns > 0;
}

/*
 * The path that finds the values, by an index with their conditions only.
 * False if it costs more than this.
 */
static bool
plan_values(Skip *skip, Cost limit)
{
	RelOptInfo *rel = skip->rel;
	IndexOptInfo *index = makeNode(IndexOptInfo);
	Cardinality rows = rel->rows;
	List	   *conditions = NIL;
	bool		several = list_length(skip->target->exprs) > 1;
	double		selectivity;
	double		values;
	double		seeks;
	IndexPath  *probe = NULL;
	ListCell   *lc;

	*index = *skip->index;
	index->indrestrictinfo = NIL;
	foreach(lc, skip->conditions)
	{
		IndexClause *clause = lfirst(lc);

		if (clause->indexcol >= skip->ncolumns)
			break;
		conditions = lappend(conditions, clause);
		index->indrestrictinfo = lappend(index->indrestrictinfo, clause->rinfo);
	}
	selectivity = clauselist_selectivity(skip->root, index->indrestrictinfo, 0, JOIN_INNER, NULL);
	rel->rows = clamp_row_est(index->tuples * selectivity);
	values = estimate_num_groups(skip->root, skip->target->exprs, rel->rows, NULL, NULL);

	/* Each group by all columns but the last one ends with a seek in vain. */
	seeks = values * (several ? 2.0 : 1.0) + 1.0;
	if (seeks * LBT_LOOSE_SEEK_COST <= limit && lbt_loose_fit(index))
		probe = lbt_loose_index_path(skip->root, index, conditions, NIL, ForwardScanDirection,
									 skip->target);
	rel->rows = rows;
	if (probe == NULL || probe->path.pathtype != T_IndexOnlyScan)
		return false;
	skip->values = lbt_loose_make_path(rel, &lbt_loose_node, skip->target, list_make1(probe),
									   list_make3(skip->columns, NIL, NIL));
	skip->values->path.rows = values;
	skip->values->path.startup_cost = probe->path.startup_cost;
	skip->values->path.total_cost = probe->path.startup_cost +
		seeks * (LBT_LOOSE_SEEK_COST + cpu_index_tuple_cost + cpu_tuple_cost) +
		lbt_loose_pages_cost(skip->root, index, seeks, index->pages * selectivity);
	return skip->values->path.total_cost <= limit;
}

/* The cost of so many rows, with one value after the other. */
static Cost
rows_cost(const Skip *skip, double rows)
{
	const RelOptInfo *rel = skip->rel;
	const IndexOptInfo *index = skip->index;
	bool		only = skip->rows->path.pathtype == T_IndexOnlyScan;
	double		seeks = skip->values->path.rows;

	rows = Min(rows, Max(rel->tuples, 1.0));
	return seeks * LBT_LOOSE_SEEK_COST +
		rows * (cpu_index_tuple_cost + cpu_tuple_cost +
				cpu_operator_cost * list_length(skip->conditions)) +
		lbt_loose_pages_cost(skip->root, index,
							 seeks + rows / Max(index->tuples, 1.0) * index->pages, index->pages) +
		lbt_loose_pages_cost(skip->root, index, rows * (only ? 1.0 - rel->allvisfrac : 1.0),
							 rel->pages);
}

/* The path that gives the rows. */
static bool
plan_rows(Skip *skip)
{
	Path	   *path;

	skip->rows = lbt_loose_index_path(skip->root, skip->index, skip->conditions, NIL,
									  ForwardScanDirection, skip->rel->reltarget);
	if (skip->rows == NULL)
		return false;

	/* It was thought to read all of the index. */
	path = &skip->rows->path;
	path->total_cost = path->startup_cost + rows_cost(skip, skip->rel->rows);
	return true;
}

/* The skip scan by this index, if it is clearly cheaper; or NULL. */
static CustomPath *
consider_index(Skip *skip, const Path *whole)
{
	CustomPath *path;

	if (skip->index->nkeycolumns < 2 ||
		!lbt_loose_conditions(skip->index, &skip->conditions, &skip->fixed) ||
		!find_columns(skip) || !plan_values(skip, whole->total_cost * LBT_SKIP_VALUES_SHARE) ||
		!plan_rows(skip))
		return NULL;
	path = lbt_loose_make_path(skip->rel, &lbt_skip_node, skip->rel->reltarget,
							   list_make2(skip->values, skip->rows), list_make1(skip->columns));
	path->flags = CUSTOMPATH_SUPPORT_BACKWARD_SCAN;
	path->path.rows = skip->rel->rows;
	path->path.startup_cost = skip->values->path.total_cost;
	path->path.total_cost = path->path.startup_cost + skip->rows->path.total_cost;
	return path->path.startup_cost + rows_cost(skip, MISJUDGED * skip->rel->rows) <=
		whole->total_cost * LBT_LOOSE_CHEAPER ? path : NULL;
}

/*
 * The cheapest of the planner's paths; *at is its place in their list.  One
 * that gathers workers' rows is not there yet: NULL.
 */
static Path *
cheapest_path(PlannerInfo *root, RelOptInfo *rel, ListCell **at)
{
	Path	   *best;

	*at = lbt_loose_cheapest(rel, rel->reltarget, NIL);
	best = *at ? lfirst(*at) : NULL;
	if (best != NULL && rel->consider_parallel && rel->partial_pathlist != NIL)
	{
		Path	   *gather = &create_gather_path(root, rel, linitial(rel->partial_pathlist),
												 rel->reltarget, NULL, NULL)->path;

		if (gather->total_cost < best->total_cost)
		{
			best = gather;
			*at = NULL;
		}
	}
	return best;
}

static void
consider(PlannerInfo *root, RelOptInfo *rel)
{
	CustomPath *best = NULL;
	Path	   *whole;
	ListCell   *at;
	ListCell   *lc;

	/* A Sort on top, which other plans may not need, hides the row's place. */
	if (root->query_pathkeys != NIL && lbt_planner_for_cursor(root))
		return;
	if (rel->indexlist == NIL || rel->baserestrictinfo == NIL ||
		bms_num_members(root->all_baserels) != 1 || !lbt_loose_possible(root, rel))
		return;
	foreach(lc, rel->reltarget->exprs)
	{
		if (!IsA(lfirst(lc), Var))
			return;
	}
	whole = cheapest_path(root, rel, &at);

	/* Most queries end here: even one value would cost too much. */
	if (whole == NULL ||
		whole->total_cost * LBT_SKIP_VALUES_SHARE < random_page_cost + 2.0 * LBT_LOOSE_SEEK_COST)
		return;
	foreach(lc, rel->indexlist)
	{
		Skip		skip = {.root = root,.rel = rel,.index = lfirst(lc)};
		CustomPath *path = consider_index(&skip, whole);

		if (path != NULL && (best == NULL || path->path.total_cost < best->path.total_cost))
			best = path;
	}
	if (best != NULL)
		lbt_loose_add_path(root, rel, best, whole, at);
}

void
lbt_skip_init(void)
{
	RegisterCustomScanMethods(&lbt_skip_node.plan);
	lbt_statement.scanned = consider;
}
