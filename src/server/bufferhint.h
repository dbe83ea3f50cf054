/*
 * bufferhint.h - finding a block through a hint of the buffer it was seen in,
 * without the buffer table; and handing a table's block to heap.
 *
 * The server finds a block by a hash table in partitions with a lock each:
 * four cache lines that follow each other, two of them written.  A hint is one
 * line, and can be fetched ahead.  Models have the hints of leaves.  Those of
 * tables are in shared memory:
 *
 *     hash(file) + block, modulo their number
 *       -> buffer hint: where such a block was seen last
 *         -> the buffer's header says whether it is there
 *
 * There are as many as shared buffers, for all tables together: one that
 * stands for another block now is overwritten.  Hints, and headers of buffers,
 * are read without a pin or lock, and never trusted (src/README, "Blocks of
 * tables").
 */
#ifndef LBT_BUFFERHINT_H
#define LBT_BUFFERHINT_H

#include "server/compat.h"

#include "common/hashfn.h"
#include "storage/buf_internals.h"

#if PG_VERSION_NUM >= 190000
#define lbt_buffer_state(desc) pg_atomic_read_u64(&(desc)->state)
#else
#define lbt_buffer_state(desc) pg_atomic_read_u32(&(desc)->state)
#endif

/*
 * Does the buffer, which may be none, hold this block, and not after a read
 * that has failed?  No pin, no lock: a hint.
 */
static inline bool
lbt_buffer_holds(Buffer buf, Relation rel, BlockNumber block)
{
	BufferDesc *desc;

	if (buf < 1 || buf > NBuffers)
		return false;
	desc = GetBufferDescriptor(buf - 1);
	return desc->tag.blockNum == block && desc->tag.forkNum == MAIN_FORKNUM &&
		BufTagMatchesRelFileLocator(&desc->tag, &rel->rd_locator) &&
		(lbt_buffer_state(desc) & BM_VALID) != 0;
}

/* By a hint, pin no buffer that the clock sweep counts fewer uses of. */
#define LBT_HINT_MIN_USAGE 3

/*
 * Pin the block through a hint of where it is, and count that as the server
 * would; false if it is not there.  This does not count as a use for the clock
 * sweep, so a buffer that looks idle goes through the buffer table.  Look
 * first: up to 18 the server locks the header of whatever block is there.
 */
static inline bool
lbt_pin_by_hint(Relation rel, BlockNumber block, Buffer recent)
{
	if (!lbt_buffer_holds(recent, rel, block) ||
		BUF_STATE_GET_USAGECOUNT(lbt_buffer_state(GetBufferDescriptor(recent - 1))) <
		LBT_HINT_MIN_USAGE ||
		!ReadRecentBuffer(rel->rd_locator, MAIN_FORKNUM, block, recent))
		return false;
	pgstat_count_buffer_read(rel);
	pgstat_count_buffer_hit(rel);
#if PG_VERSION_NUM >= 180000
	pgstat_count_io_op(IOOBJECT_RELATION, IOCONTEXT_NORMAL, IOOP_HIT, 1, 0);
#elif PG_VERSION_NUM >= 160000
	pgstat_count_io_op(IOOBJECT_RELATION, IOCONTEXT_NORMAL, IOOP_HIT);
#endif
	return true;
}

/* ---- blocks of tables ---- */

/* All backends' hints: zeroed shared memory of this size; NULL: none. */
extern Size lbt_hints_bytes(void);
extern void lbt_hints_are_at(void *memory);
extern int32 *lbt_block_hints;
extern uint32 lbt_hint_mask;

/* Where the hints of a table begin, when there are hints. */
static inline uint32
lbt_hint_start(Relation rel)
{
	return murmurhash32(rel->rd_locator.relNumber);
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
 * Ask for the cache lines of a buffer's header and page that say where a row
 * is; then, once these have come, for the row's.  Nothing is pinned, and the
 * buffer may hold another block: hints.
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

/* Bytes of a cache line, and how many lines of a row to prefetch. */
#define LBT_CACHE_LINE 64
#define LBT_ROW_LINES 3

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

/*
 * For a scan that fetches heap: pin the block of its next row where the fetch
 * looks for it.  The pin is heap's from then on.  The page may be pruned.
 */
extern void lbt_hand_over_block(IndexScanDesc scan, BlockNumber block);

#endif							/* LBT_BUFFERHINT_H */
