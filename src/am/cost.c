/*
 * cost.c - the planner's estimate of a scan's cost: btree's.
 *
 * Models change no estimate, so no plan depends on whether there is one.
 */
#include "am/am.h"

#include "utils/index_selfuncs.h"

/*
 * Before 18 the server fills in the height for indexes of its own btree only.
 * Without it a descent would look free.
 */
void
lbt_costestimate(PlannerInfo *root, IndexPath *path, double loop_count, Cost *startup_cost,
				 Cost *total_cost, Selectivity *selectivity, double *correlation, double *pages)
{
	IndexOptInfo *info = path->indexinfo;

	if (!info->hypothetical && info->tree_height < 0)
	{
		Relation	rel = index_open(info->indexoid, NoLock);	/* is locked */

		info->tree_height = _bt_getrootheight(rel);
		index_close(rel, NoLock);
	}
	btcostestimate(root, path, loop_count, startup_cost, total_cost, selectivity, correlation,
				   pages);
}
