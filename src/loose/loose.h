/*
 * loose.h - loose index scans: DISTINCT, DISTINCT ON and GROUP BY with no
 * aggregate except min() and max(), from one group's first row to the next's;
 * the same for an aggregation of all rows by count(DISTINCT x) and its like.
 *
 *     Custom Scan (Learned Loose Scan)     one row for each group
 *       -> Index (Only) Scan               the probe: an ordinary one, of
 *                                          which one row a group is read
 *       -> the planner's own plan          run instead, if there turn out to
 *                                          be many more groups than thought
 *
 * Both inputs have the node's columns, in the same order.  For min(x) and
 * max(x) the probe has x.  src/README, "Loose scans", has the argument.
 */
#ifndef LBT_LOOSE_H
#define LBT_LOOSE_H

#include "postgres.h"

#include "optimizer/optimizer.h"
#include "server/executor.h"

/*
 * The plan node's custom_plans are these two inputs.  Its custom_private has
 * three lists of numbers of the rows' columns, from 1 on:
 *
 *   - for each of the index's columns that make the groups, which it is; 0 if
 *     a condition fixes it;
 *   - extremes of the index's next column: those that come first as the probe
 *     goes, and those that come last.
 */

/* paths.c: in _PG_init. */
extern void lbt_loose_init(void);

/* node.c */
extern const LbtNodeKind lbt_loose_node;

#endif							/* LBT_LOOSE_H */
