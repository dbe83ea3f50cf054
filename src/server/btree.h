/*
 * btree.h - the one door to the server's nbtree.
 *
 * Files outside src/server/ include this, not access/nbtree.h.  Used, apart
 * from the callbacks that the handler passes on (btbuild, btinsert, ...):
 *
 *   _bt_search           descent to a leaf (through lbt_bt_search)
 *   _bt_get_endpoint     first page of a level (through lbt_bt_get_endpoint)
 *   _bt_getbuf, _bt_relandgetbuf, _bt_relbuf, _bt_lockbuf, _bt_unlockbuf,
 *   _bt_checkpage, _bt_metaversion, _bt_getrootheight, _bt_freestack (< 19)
 *   _bt_mkscankey, _bt_compare, _bt_binsrch_insert: an insert among equal keys
 *   the page layout macros: P_*, BTPageGetOpaque, BTPageGetMeta, BTreeTuple*
 */
#ifndef LBT_BTREE_H
#define LBT_BTREE_H

#include "postgres.h"

#include "access/amapi.h"
#include "access/nbtree.h"
#include "server/compat.h"

/*
 * Descend from the root to the first leaf that can hold the search position.
 * Returns it pinned and read-locked; InvalidBuffer if the index has no root.
 */
extern Buffer lbt_bt_search(Relation rel, BTScanInsert key, Snapshot snapshot);

/*
 * The leftmost or rightmost page of a level (0: leaves), pinned and
 * read-locked; InvalidBuffer if the index has no root.
 */
extern Buffer lbt_bt_get_endpoint(Relation rel, uint32 level, bool rightmost, Snapshot snapshot);

/*
 * Fill in a search key without its scankeys, for the leaf with the first tuple
 * >= the key, or > it with nextkey.  backward: on which side the scan goes on.
 */
extern void lbt_bt_init_search_key(Relation rel, BTScanInsert key, bool nextkey, bool backward);

/* Does block 0 look like a metapage?  Raises no error if it does not. */
extern bool lbt_bt_meta_is_good(Relation rel);

/* The metapage's bytes that nbtree does not use: how many, and where. */
#define LBT_BT_META_SPARE \
	(BLCKSZ - MAXALIGN(SizeOfPageHeaderData) - MAXALIGN(sizeof(BTMetaPageData)) - \
	 MAXALIGN(sizeof(BTPageOpaqueData)))

extern char *lbt_bt_meta_spare(Page metapage);

/*
 * Fill the metapage's spare bytes with data, zeroes behind it, and log the
 * page.  The caller holds it exclusively locked and is not in recovery; size
 * is at most LBT_BT_META_SPARE.
 *
 * The bytes lie in the page's hole (pd_lower is left alone), so the page is
 * logged as one without a hole.  nbtree's own records lose them when they
 * restore the metapage, which is fine for a hint; WAL checks ignore holes.
 */
extern void lbt_bt_fill_meta_spare(Relation rel, Buffer metabuf, const void *data, Size size);

/*
 * Put a tuple on a leaf, in front of the item at this offset, as nbtree does:
 * page, WAL, LSN.  The caller holds the leaf exclusively locked, also on
 * return, and has checked that the tuple belongs and fits there.
 */
extern void lbt_bt_add_to_leaf(Relation rel, Buffer buf, OffsetNumber offset, IndexTuple itup);

/*
 * The routine that the server's btree handler returns, padding included.
 * Relcache entries have it or, before 19, a copy.  Allocates only once.
 */
extern const IndexAmRoutine *lbt_bt_routine(void);

/* A copy for our handler to change and return; from 19 on always the same. */
extern IndexAmRoutine *lbt_bt_routine_for_our_method(void);

/* ---- passing for a btree index ---- */

/*
 * Some server functions refuse every pg_class.relam except btree, though the
 * file is btree's: index builds below 18 (PrepareSortSupportFromIndexRel), the
 * option macros of assert-enabled servers.  Run a statement while
 * rd_rel->relam of *this backend's* relcache entry, which must stay open, says
 * btree; a relcache callback keeps it so when the entry is rebuilt meanwhile.
 * The statement leaves by its end or an error.  It nests.
 */
#define LBT_AS_BTREE(rel, statement) \
	do { \
		LbtMask		lbt_mask_; \
		lbt_mask_push(&lbt_mask_, (rel)); \
		PG_TRY(); \
		{ \
			statement; \
		} \
		PG_FINALLY(); \
		{ \
			lbt_mask_pop(&lbt_mask_); \
		} \
		PG_END_TRY(); \
	} while (0)

typedef struct LbtMask
{
	Relation	rel;
	Oid			relam;			/* the true one, put back at the end */
	struct LbtMask *outer;
} LbtMask;

extern void lbt_mask_push(LbtMask *mask, Relation rel);
extern void lbt_mask_pop(LbtMask *mask);

/* For the relcache callback: this entry, or (InvalidOid) any, was rebuilt. */
extern void lbt_mask_again(Oid relid);

/* Does the server's insert path look at relam?  Only its assertions do. */
#ifdef USE_ASSERT_CHECKING
#define LBT_INSERT_NEEDS_MASK true
#else
#define LBT_INSERT_NEEDS_MASK false
#endif

#endif							/* LBT_BTREE_H */
