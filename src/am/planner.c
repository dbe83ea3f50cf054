/*
 * planner.c - what the planner is told about our indexes beyond btree's own cost estimate.
 */
#include "am/am.h"

#include "catalog/pg_am.h"
#include "nodes/pathnodes.h"
#include "optimizer/plancat.h"
#include "utils/rel.h"

static get_relation_info_hook_type previous_hook = NULL;

/*
 * On 18 row comparisons become index conditions, and column extremes are probed, when the index claims
 * to be btree's; the executor there takes any ordered access method.  Below, the executor insists on
 * btree itself for row comparisons, so only the tree's height is filled in, which the planner otherwise
 * knows for btree alone: without it the descent would look free.
 */
static void
describe_our_indexes(PlannerInfo *root, Oid relid, bool inhparent, RelOptInfo *rel)
{
	ListCell   *lc;

	if (previous_hook)
		previous_hook(root, relid, inhparent, rel);
	foreach(lc, rel->indexlist)
	{
		IndexOptInfo *info = lfirst(lc);

		if (info->relam != lbt_am_oid() || !OidIsValid(info->relam))
			continue;
		if (LBT_PLANNER_ASKS_RELAM)
			info->relam = BTREE_AM_OID;
		else if (info->tree_height < 0 && !info->hypothetical && !inhparent)
		{
			Relation	index = index_open(info->indexoid, NoLock);

			info->tree_height = _bt_getrootheight(index);
			index_close(index, NoLock);
		}
	}
}

void
lbt_planner_init(void)
{
	previous_hook = get_relation_info_hook;
	get_relation_info_hook = describe_our_indexes;
}
