/*
 * am.h - the access method's callbacks, as the handler wires them up.
 */
#ifndef LBT_AM_H
#define LBT_AM_H

#include "postgres.h"

#include "registry/view.h"
#include "nodes/execnodes.h"
#include "nodes/pathnodes.h"

/* insert.c */
extern bool lbt_insert(Relation rel, Datum *values, bool *isnull, ItemPointer tid, Relation heap,
					   IndexUniqueCheck check_unique, bool unchanged, IndexInfo *info);

/* scan.c */
extern void lbt_rescan(IndexScanDesc scan, ScanKey keys, int nkeys,
					   ScanKey orderbys, int norderbys);

/* Do our callbacks scan this open index? */
static inline bool
lbt_scans(Relation index)
{
	return index->rd_indam->amrescan == lbt_rescan;
}

/* The view of an open index, if our plan nodes may look up in it; or NULL. */
static inline LbtIndex *
lbt_learned_view(Relation index)
{
	LbtIndex   *view = lbt_scans(index) && !RelationUsesLocalBuffers(index) ?
		lbt_index_get(index) : NULL;

	return view != NULL && view->serving.learned ? view : NULL;
}

/*
 * Move a scan by groups (LbtScan.group_columns) from its current row to the
 * edge, in direction past, of all entries that agree with that one in the
 * index's first columns.  It must go on in direction next, and may return rows
 * again if a row is not followed by this.  False if it needs to visit no leaf
 * there.
 */
extern bool lbt_scan_skip(IndexScanDesc scan, int ncolumns, ScanDirection past,
						  ScanDirection next);

/* Into btree's routine: all that shares the state of a scan. */
extern void lbt_take_scans(IndexAmRoutine *routine);

/* skipcost.c */

/* What it costs to find a leaf, and an item on it, in the planner's units. */
#define LBT_SEEK_COST (70.0 * cpu_operator_cost)

/* The cost of reading "fetched" of "pages" pages in random order. */
extern Cost lbt_pages_cost(PlannerInfo *root, const IndexOptInfo *index, Oid tablespace,
						   double fetched, double pages);

/*
 * How many values these have in so many of a table's rows.  (The server's
 * function goes by rel->rows.)
 */
extern double lbt_count_values(PlannerInfo *root, RelOptInfo *rel, List *exprs, double rows);

/* Our view of an index whose scans may skip; NULL if nbtree serves them. */
extern const LbtIndex *lbt_skip_view(const IndexOptInfo *index);

/*
 * Do our scans take all of these IndexClauses, which are in the order of the
 * index's columns (scankeys.c)?  Else nbtree reads the index.
 */
extern bool lbt_takes_conditions(const IndexOptInfo *index, const LbtKeySpec *spec,
								 const List *clauses);

/*
 * btree's estimate of an index scan; less, if our scans skip where it would
 * read the whole index.  Fills in the tree's height, which before 18 the
 * server does for indexes of its own btree only.
 */
extern void lbt_skip_cost(PlannerInfo *root, IndexPath *path, double loop_count,
						  Cost *startup_cost, Cost *total_cost, Selectivity *selectivity,
						  double *correlation, double *pages);

/* opclass.c */

/*
 * Give every btree operator class an alias for our access method; returns how
 * many were made.  Callers check the permission to change the catalogs.
 */
extern int	lbt_sync_opclasses(Oid am);

#endif							/* LBT_AM_H */
