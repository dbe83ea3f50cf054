/*
 * tableblock.h - blocks of tables, found in shared buffers without the buffer
 * table, and handed to the table's access method.
 *
 *     hash(file) + block, modulo their number
 *       -> buffer hint: where such a block was seen last
 *         -> the buffer's header says whether it is there
 *
 * The server finds a block by a hash table in partitions with a lock each:
 * four cache lines that follow each other, two of them written.  A hint is one
 * line, which sixteen neighbouring blocks share, and can be fetched ahead.
 * There are as many hints as shared buffers (4 bytes each), for all tables
 * together: one that stands for another block now is overwritten.  They are
 * read and written without a lock, and never trusted: the buffer's tag
 * decides, under its header's lock.
 */
#ifndef LBT_TABLEBLOCK_H
#define LBT_TABLEBLOCK_H

#include "server/compat.h"

#include "common/hashfn.h"
#include "storage/buf_internals.h"
#include "storage/bufmgr.h"

/* Bytes of a cache line, and how many lines of a row to prefetch. */
#define LBT_CACHE_LINE 64
#define LBT_ROW_LINES 3

/* All backends' hints: zeroed shared memory of this size; NULL: none. */
extern Size lbt_hints_bytes(void);
extern void lbt_hints_are_at(void *memory);
extern int32 *lbt_block_hints;
extern uint32 lbt_hint_mask;

/* Where the hints of a table begin, when there are hints. */
static inline uint32
lbt_hint_start(Relation rel)
{
	return murmurhash32(LbtRelNumber(rel));
}

/* Where the hint for a block is, of a table whose hints begin there. */
static inline int32 *
lbt_hint_at(uint32 start, BlockNumber block)
{
	return &lbt_block_hints[(start + block) & lbt_hint_mask];
}

static inline int32 *
lbt_block_hint(Relation rel, BlockNumber block)
{
	return lbt_hint_at(lbt_hint_start(rel), block);
}

/*
 * Ask for the cache lines by which a row will be found: those of its buffer's
 * header and of its page that say where it is; then, once these have come, its
 * own.  Nothing is pinned, and the buffer may hold another block: hints.
 */
static inline void
lbt_prefetch_page(Buffer buf, const ItemPointerData *tid)
{
	const PageHeaderData *page = (const PageHeaderData *) BufferGetBlock(buf);

	__builtin_prefetch(GetBufferDescriptor(buf - 1), 1);
	__builtin_prefetch(page);
	__builtin_prefetch(&page->pd_linp[(ItemPointerGetOffsetNumberNoCheck(tid) - 1) %
									  MaxHeapTuplesPerPage]);
	/* GCC 12 drops calls of functions that do nothing but prefetch. */
	__asm__ __volatile__("");
}

static inline void
lbt_prefetch_row(Buffer buf, const ItemPointerData *tid)
{
	const PageHeaderData *page = (const PageHeaderData *) BufferGetBlock(buf);
	ItemIdData	line =
		page->pd_linp[(ItemPointerGetOffsetNumberNoCheck(tid) - 1) % MaxHeapTuplesPerPage];
	const char *row = (const char *) page + line.lp_off % BLCKSZ;

	for (int i = 0; i < LBT_ROW_LINES; i++)
		__builtin_prefetch(row + i * LBT_CACHE_LINE);
	__asm__ __volatile__("");
}

/* Are the table's rows in blocks of shared buffers, by their TIDs? */
static inline bool
lbt_is_heap(Relation table)
{
	return table->rd_tableam == GetHeapamTableAmRoutine() && !RelationUsesLocalBuffers(table);
}

/* Does heap fetch the scan's rows from shared buffers, one by one? */
static inline bool
lbt_scan_fetches_heap(IndexScanDesc scan)
{
	return scan->xs_heapfetch != NULL && !scan->xs_want_itup && lbt_block_hints != NULL &&
		lbt_is_heap(scan->heapRelation);
}

/*
 * For a scan that fetches heap: pin the block of its next row, and put it
 * where the fetch looks for it.  The pin is heap's own from then on.  As
 * there, a page that comes anew may be pruned.
 */
extern void lbt_hand_over_block(IndexScanDesc scan, BlockNumber block);

#endif							/* LBT_TABLEBLOCK_H */
