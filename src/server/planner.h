/*
 * planner.h - what differs between versions in making join paths.
 */
#ifndef LBT_PLANNER_H
#define LBT_PLANNER_H

#include "postgres.h"

#include "optimizer/cost.h"
#include "optimizer/pathnode.h"

/* The first estimate of a nested loop's cost. */
#if PG_VERSION_NUM >= 190000
#define lbt_initial_cost_nestloop(root, workspace, jointype, outer, inner, extra) \
	initial_cost_nestloop(root, workspace, jointype, PGS_NESTLOOP_PLAIN, outer, inner, extra)
#else
#define lbt_initial_cost_nestloop(root, workspace, jointype, outer, inner, extra) \
	initial_cost_nestloop(root, workspace, jointype, outer, inner, extra)
#endif

/*
 * The outer side of a join to rows that are made unique first (JOIN_UNIQUE_OUTER): its paths.  Before 19 the planner makes
 * the one such path when it makes the join's.
 */
static inline List *
lbt_unique_paths(PlannerInfo *root, RelOptInfo *outer, SpecialJoinInfo *join)
{
#if PG_VERSION_NUM >= 190000
	return outer->pathlist;
#else
	Path	   *path = (Path *) create_unique_path(root, outer, outer->cheapest_total_path, join);

	return path ? list_make1(path) : NIL;
#endif
}

#endif							/* LBT_PLANNER_H */
