/*
 * bufferhint.c - blocks of tables by their buffer hints; see bufferhint.h.
 */
#include "server/bufferhint.h"

#include "port/pg_bitutils.h"

int32	   *lbt_block_hints = NULL;
uint32		lbt_hint_mask = 0;

Size
lbt_hints_bytes(void)
{
	return (Size) pg_nextpower2_32(NBuffers) * sizeof(int32);
}

void
lbt_hints_are_at(void *memory)
{
	lbt_block_hints = memory;
	lbt_hint_mask = pg_nextpower2_32(NBuffers) - 1;
}

/* Pin the block, by its hint if that is right. */
static inline Buffer
pin_block(Relation rel, BlockNumber block)
{
	int32	   *hint = lbt_block_hint(rel, block);
	Buffer		recent = *hint;
	Buffer		buf;

	if (lbt_pin_by_hint(rel, block, recent))
		return recent;
	buf = ReadBuffer(rel, block);
	if (buf != recent)
		*hint = buf;
	return buf;
}

void
lbt_hand_over_block(IndexScanDesc scan, BlockNumber block)
{
	IndexFetchHeapData *fetch = (IndexFetchHeapData *) scan->xs_heapfetch;
	Relation	rel = scan->heapRelation;

#if PG_VERSION_NUM >= 190000
	if (fetch->xs_blk == block)
		return;
	fetch->xs_blk = InvalidBlockNumber;
#else
	if (BufferIsValid(fetch->xs_cbuf) && BufferGetBlockNumber(fetch->xs_cbuf) == block)
		return;
#endif
	if (BufferIsValid(fetch->xs_cbuf))
		ReleaseBuffer(fetch->xs_cbuf);
	fetch->xs_cbuf = InvalidBuffer;
	fetch->xs_cbuf = pin_block(rel, block);
#if PG_VERSION_NUM >= 190000
	fetch->xs_blk = block;
	heap_page_prune_opt(rel, fetch->xs_cbuf, &fetch->xs_vmbuffer,
						(fetch->xs_base.flags & SO_HINT_REL_READ_ONLY) != 0);
#else
	heap_page_prune_opt(rel, fetch->xs_cbuf);
#endif
}
