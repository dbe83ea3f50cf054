/*
 * btree.h - the one door to the server's nbtree.
 *
 * Files outside src/server/ include this, not access/nbtree.h.
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
 * backward: on which side the scan goes on.
 */
extern Buffer lbt_bt_search(Relation rel, BTScanInsert key, bool backward, Snapshot snapshot);

/*
 * The leftmost or rightmost page of a level (0: leaves), pinned and
 * read-locked; InvalidBuffer if the index has no root.
 */
extern Buffer lbt_bt_get_endpoint(Relation rel, uint32 level, bool rightmost, Snapshot snapshot);

/*
 * What is wrong with the file and, if asked, its metapage, or NULL.  On pages
 * of PostgreSQL 11's format, or older, no proof holds.  Drops errors.
 */
extern const char *lbt_bt_unreadable(Relation rel, bool metapage);

/* The metapage's bytes that nbtree does not use: how many, and where. */
#define LBT_BT_META_SPARE \
	(BLCKSZ - MAXALIGN(SizeOfPageHeaderData) - MAXALIGN(sizeof(BTMetaPageData)) - \
	 MAXALIGN(sizeof(BTPageOpaqueData)))

#define lbt_bt_meta_spare(metapage) \
	((char *) BTPageGetMeta(metapage) + MAXALIGN(sizeof(BTMetaPageData)))

/*
 * Fill the metapage's spare bytes, LBT_BT_META_SPARE, and log the page.  The
 * caller holds it exclusively locked and is not in recovery.  The bytes lie in
 * the page's hole: src/README, "The saved model in the metapage", says why.
 */
extern void lbt_bt_fill_meta_spare(Relation rel, Buffer metabuf, const void *data);

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

/*
 * Pin a page.  InvalidBuffer, and no error, if it cannot be read or is none of
 * an index: the caller may do without it.
 */
extern Buffer lbt_bt_try_read(Relation rel, BlockNumber block);

/*
 * The right link of a page, read without its lock; InvalidBlockNumber if the
 * page is not in shared buffers.  Other pages may be locked.
 */
extern BlockNumber lbt_bt_right_link(Relation rel, BlockNumber block);

/* ---- passing for a btree index ---- */

/*
 * Some server functions refuse every pg_class.relam except btree: index builds
 * below 18 (PrepareSortSupportFromIndexRel), and the option macros of servers
 * with assertions.  Run a statement while rd_rel->relam of *this backend's*
 * relcache entry, which must stay open, says btree, also when it is rebuilt
 * meanwhile.  The statement leaves by its end or an error.  It nests.
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
