/*
 * loose.h - loose index scans: DISTINCT, DISTINCT ON and GROUP BY with no
 * aggregate except min() and max(), from one group's first row to the next's.
 *
 *     Custom Scan (Learned Loose Scan)     one row for each group
 *       -> Index (Only) Scan               the probe: given other keys for
 *                                          each group, finds its first row
 *       -> the planner's own plan          run instead, if there turn out to
 *                                          be many more groups than thought
 *
 * Of an index on (a, b, ...), with groups by a, the probe reads
 *
 *     a   1 1 1 1 1 1 1 1 2 2 2 2 2 2 2 2 2 3 3 3 3 3 3 3 3 3 3 NULL NULL
 *         ^ ->            ^ ->              ^ ->                ^
 *         |               |                 |                   a IS NULL
 *         a IS NOT NULL   a > 1             a > 2
 *
 * and a few rows behind each of these (->), in case the group ends there.
 *
 * The probe is an ordinary scan node: it decides what is visible and which
 * rows satisfy the conditions.  Both inputs have the node's columns, in the
 * same order.  For min(x) and max(x) the probe has x.  src/README, "Loose
 * scans", has the argument.
 */
#ifndef LBT_LOOSE_H
#define LBT_LOOSE_H

#include "postgres.h"

#include "optimizer/optimizer.h"
#include "server/executor.h"

/* The plan node's custom_plans. */
typedef enum LbtLooseInput
{
	LBT_LOOSE_PROBE,			/* an IndexScan or IndexOnlyScan */
	LBT_LOOSE_WHOLE				/* the planner's own; none below skip scans */
} LbtLooseInput;

/* The plan node's custom_private. */
typedef enum LbtLooseFact
{
	/*
	 * For each of the index's columns that make the groups, which of the
	 * rows' columns it is, from 1 on; 0 if a condition fixes it.
	 */
	LBT_LOOSE_COLUMNS,

	/*
	 * Extremes of the index's next column: of the rows' columns, those that
	 * come first as the probe goes, and those that come last.
	 */
	LBT_LOOSE_FIRST,
	LBT_LOOSE_LAST
} LbtLooseFact;

/* What it costs to find a leaf, and an item on it, in the planner's units. */
#define LBT_LOOSE_SEEK_COST (70.0 * cpu_operator_cost)

/* A scan of ours is taken if it costs less than this share of another path. */
#define LBT_LOOSE_CHEAPER 0.75

/* paths.c: in _PG_init. */
extern void lbt_loose_init(void);

/*
 * May the query have such scans, and is this one plain table, with conditions
 * that may be evaluated at will?
 */
extern bool lbt_loose_possible(const PlannerInfo *root, const RelOptInfo *rel);

/* May loose scans use this index? */
extern bool lbt_loose_fit(const IndexOptInfo *index);

/*
 * Collect the table's conditions in the order of the index's columns, as
 * IndexClauses, and the columns that one makes equal to something.  False if
 * the index cannot look up all of them.
 */
extern bool lbt_loose_conditions(const IndexOptInfo *index, List **conditions, Bitmapset **fixed);

/*
 * An index scan with these conditions, index-only if the index has all that is
 * wanted; NULL if such scans are switched off.
 */
extern IndexPath *lbt_loose_index_path(PlannerInfo *root, IndexOptInfo *index, List *conditions,
									   List *pathkeys, ScanDirection direction,
									   PathTarget *target);

/* The cost of fetching so many pages of so many, at random. */
extern Cost lbt_loose_pages_cost(PlannerInfo *root, const IndexOptInfo *index, double fetched,
								 double pages);

/* The planner's cheapest path with this output, in this order; or NULL. */
extern ListCell *lbt_loose_cheapest(const RelOptInfo *rel, const PathTarget *target,
									List *pathkeys);

extern CustomPath *lbt_loose_make_path(RelOptInfo *rel, const LbtNodeKind *kind,
									   PathTarget *target, List *inputs, List *facts);

/*
 * Put a path first in the list, with this one, which is there already or is
 * not (at is NULL), for its last input.  Later steps of the planner free paths
 * of the list: put another node in that one's place.
 */
extern void lbt_loose_add_path(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, Path *whole,
							   ListCell *at);

/* node.c */
extern const LbtNodeKind lbt_loose_node;

/*
 * Of a loose scan without a second input: how much it may spend, in the
 * planner's units, and whether it ended because it has spent that.
 */
extern void lbt_loose_set_limit(PlanState *node, double limit);
extern bool lbt_loose_gave_up(PlanState *node);

/* leaves.c: of an open index, in the current memory context; at a rescan */
typedef struct LbtGroupLeaves LbtGroupLeaves;
extern LbtGroupLeaves *lbt_leaves_open(Relation index, int ncolumns, bool forward);
extern void lbt_leaves_reset(LbtGroupLeaves *leaves);

/* Show how many were asked for, and used. */
extern void lbt_leaves_explain(const LbtGroupLeaves *leaves, struct ExplainState *es);

/*
 * A seek of the next group comes: ask for the leaves of this one and of some
 * behind it, if blocks are missing.  Call the other one when it has landed.
 */
extern void lbt_leaves_before(LbtGroupLeaves *leaves);
extern void lbt_leaves_after(LbtGroupLeaves *leaves, bool missed);

/* ---- skip scans ---- */

/* The plan node's custom_plans; custom_private has LBT_LOOSE_COLUMNS only. */
typedef enum LbtSkipInput
{
	LBT_SKIP_VALUES,			/* a loose scan without a second input */
	LBT_SKIP_ROWS,				/* an IndexScan or IndexOnlyScan */
	LBT_SKIP_WHOLE				/* the planner's own */
} LbtSkipInput;

/* The share of the whole's cost that the values may cost. */
#define LBT_SKIP_VALUES_SHARE 0.05

/* skip.c: in _PG_init. */
extern void lbt_skip_init(void);

/* skipnode.c */
extern const LbtNodeKind lbt_skip_node;

#endif							/* LBT_LOOSE_H */
