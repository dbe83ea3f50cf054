/*
 * insert.c - inserting: nbtree's own way.
 */
#include "am/am.h"

#include "server/as_btree.h"

bool
lbt_insert(Relation rel, Datum *values, bool *isnull, ItemPointer tid, Relation heap,
		   IndexUniqueCheck check_unique, bool unchanged, IndexInfo *info)
{
	volatile bool result = false;

	if (!LBT_INSERT_NEEDS_MASK)
		return btinsert(rel, values, isnull, tid, heap, check_unique, unchanged, info);
	LBT_AS_BTREE_BEGIN(rel);
	{
		result = btinsert(rel, values, isnull, tid, heap, check_unique, unchanged, info);
	}
	LBT_AS_BTREE_END(rel);
	return result;
}
