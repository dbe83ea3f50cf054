/*
 * btree.c - nbtree functions whose signatures differ between server versions; see btree.h.
 */
#include "server/btree.h"

#include "utils/fmgroids.h"

Buffer
lbt_bt_search(Relation rel, BTScanInsert key, Snapshot snapshot)
{
	Buffer		buf;
	BTStack		stack;

#if PG_VERSION_NUM >= 160000
	stack = _bt_search(rel, NULL, key, &buf, BT_READ
#if PG_VERSION_NUM < 170000
					   ,snapshot
#endif
		);
#else
	stack = _bt_search(rel, key, &buf, BT_READ, snapshot);
#endif
	_bt_freestack(stack);
	return buf;
}

Buffer
lbt_bt_get_endpoint(Relation rel, uint32 level, bool rightmost, Snapshot snapshot)
{
#if PG_VERSION_NUM >= 170000
	return _bt_get_endpoint(rel, level, rightmost);
#else
	return _bt_get_endpoint(rel, level, rightmost, snapshot);
#endif
}

void
lbt_bt_init_search_key(Relation rel, BTScanInsert key, bool nextkey, bool backward)
{
	_bt_metaversion(rel, &key->heapkeyspace, &key->allequalimage);
	key->anynullkeys = false;
	key->nextkey = nextkey;
#if PG_VERSION_NUM >= 170000
	key->backward = backward;
#else
	key->pivotsearch = false;
#endif
	key->scantid = NULL;
	key->keysz = 0;
}

IndexAmRoutine *
lbt_bt_routine(void)
{
	IndexAmRoutine *routine;

	routine = (IndexAmRoutine *) DatumGetPointer(OidFunctionCall1(F_BTHANDLER, PointerGetDatum(NULL)));
#if PG_VERSION_NUM >= 170000 && PG_VERSION_NUM < 180000
	/* The workers' own relcache entries would fail btree's check of the access method. */
	routine->amcanbuildparallel = false;
#endif
	return routine;
}
