/*
 * vacuum.c - VACUUM: nbtree's, with an eye on the pages that it deletes.
 */
#include "am/am.h"

#include "registry/counters.h"

IndexBulkDeleteResult *
lbt_vacuumcleanup(IndexVacuumInfo *info, IndexBulkDeleteResult *stats)
{
	stats = btvacuumcleanup(info, stats);

	/* The count is of the whole VACUUM: this callback is its last for the index, and only called once. */
	if (stats != NULL && stats->pages_newly_deleted > 0 &&
		!RelationUsesLocalBuffers(info->index))
	{
		LbtIndex   *index = lbt_index_get(info->index);

		lbt_count_many(index, LBT_EV_PAGE_DELETED, stats->pages_newly_deleted);
		(void) lbt_counters_flush_index(index);	/* autovacuum's next commit may be far */
	}
	return stats;
}
