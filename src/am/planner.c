/*
 * planner.c - what the planner is told about our indexes beyond what the access method's routine says.
 */
#include "am/am.h"

#include "catalog/pg_am.h"
#include "optimizer/plancat.h"

static get_relation_info_hook_type previous_hook = NULL;

/*
 * On 18 row comparisons become index conditions, and column extremes are probed, when the index claims
 * to be btree's; the executor there takes any ordered access method.
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

		if (info->relam == lbt_am_oid() && OidIsValid(info->relam))
			info->relam = BTREE_AM_OID;
	}
}

void
lbt_planner_init(void)
{
	if (!LBT_PLANNER_ASKS_RELAM)
		return;
	previous_hook = get_relation_info_hook;
	get_relation_info_hook = describe_our_indexes;
}
