/*
 * btree.h - the one door to the server's nbtree.
 *
 * Only the files of src/server/ include access/nbtree.h; all others include this.  Relied on, apart
 * from the callbacks that the handler passes on (btbuild, btinsert, btbeginscan, ...):
 *
 *   _bt_search           descent to a leaf (through lbt_bt_search)
 *   _bt_get_endpoint     first page of a level (through lbt_bt_get_endpoint)
 *   _bt_getbuf, _bt_relandgetbuf, _bt_relbuf, _bt_lockbuf, _bt_unlockbuf, _bt_checkpage
 *   _bt_metaversion, _bt_freestack
 *   the page layout macros: P_*, BTPageGetOpaque, BTPageGetMeta, BTreeTuple*
 */
#ifndef LBT_BTREE_H
#define LBT_BTREE_H

#include "postgres.h"

#include "access/amapi.h"
#include "access/nbtree.h"

#include "server/compat.h"

/*
 * Descend from the root to the first leaf that can hold the search position.  Returns the leaf,
 * pinned and read-locked, or InvalidBuffer when the index has no root.
 */
extern Buffer lbt_bt_search(Relation rel, BTScanInsert key, Snapshot snapshot);

/*
 * The leftmost or rightmost page of a level (0: leaves), pinned and read-locked; InvalidBuffer when
 * the index has no root.
 */
extern Buffer lbt_bt_get_endpoint(Relation rel, uint32 level, bool rightmost, Snapshot snapshot);

/*
 * Fill in a search key but for its scankeys: the leaf searched for is the one with the first tuple
 * >= the key, or > the key with nextkey.  backward says on which side the scan goes on.
 */
extern void lbt_bt_init_search_key(Relation rel, BTScanInsert key, bool nextkey, bool backward);

/* The server's btree handler's routine, a fresh copy. */
extern IndexAmRoutine *lbt_bt_routine(void);

#endif							/* LBT_BTREE_H */
