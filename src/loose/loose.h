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

#include "nodes/extensible.h"
#include "optimizer/optimizer.h"

#define LBT_LOOSE_NAME "Learned Loose Scan"

/* The plan node's custom_plans. */
typedef enum LbtLooseInput
{
	LBT_LOOSE_PROBE,			/* an IndexScan or IndexOnlyScan */
	LBT_LOOSE_WHOLE				/* the planner's own */
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

/* paths.c: in _PG_init. */
extern void lbt_loose_init(void);

/* node.c */
extern const CustomScanMethods lbt_loose_methods;

#endif							/* LBT_LOOSE_H */
