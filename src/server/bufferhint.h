/*
 * bufferhint.h - finding a block through a hint of the buffer that it is in,
 * without the buffer table.
 *
 * Headers of buffers are read without a pin or lock.  What they say is a hint,
 * until the server's ReadRecentBuffer() has pinned the buffer and checked.
 */
#ifndef LBT_BUFFERHINT_H
#define LBT_BUFFERHINT_H

#include "postgres.h"

#include "server/compat.h"
#include "storage/buf_internals.h"

/* Do not pin a buffer used less often (of BM_MAX_USAGE_COUNT) by a hint. */
#define LBT_HINT_MIN_USAGE 3

/* Does the buffer hold this block just now?  No pin, no lock: a hint. */
static inline bool
lbt_buffer_holds(const BufferDesc *desc, Relation rel, BlockNumber block)
{
	const BufferTag *tag = &desc->tag;

#if PG_VERSION_NUM >= 160000
	return tag->blockNum == block && tag->forkNum == MAIN_FORKNUM &&
		tag->relNumber == rel->rd_locator.relNumber && tag->spcOid == rel->rd_locator.spcOid &&
		tag->dbOid == rel->rd_locator.dbOid;
#else
	return tag->blockNum == block && tag->forkNum == MAIN_FORKNUM &&
		RelFileNodeEquals(tag->rnode, rel->rd_node);
#endif
}

/* The clock sweep's count of uses, up to BM_MAX_USAGE_COUNT.  A hint, too. */
static inline uint32
lbt_buffer_usage(BufferDesc *desc)
{
#if PG_VERSION_NUM >= 190000
	return BUF_STATE_GET_USAGECOUNT(pg_atomic_read_u64(&desc->state));
#else
	return BUF_STATE_GET_USAGECOUNT(pg_atomic_read_u32(&desc->state));
#endif
}

/*
 * Pin the block through a hint of where it is, and count that as the server
 * would; false if it is not there.  This leaves the buffer's usage count
 * alone, so one that the clock sweep has worn down goes through the buffer
 * table, which counts the use: what is used often must not look idle.
 */
static inline bool
lbt_pin_by_hint(Relation rel, BlockNumber block, Buffer recent)
{
	if (recent < 1 || recent > NBuffers ||
		lbt_buffer_usage(GetBufferDescriptor(recent - 1)) < LBT_HINT_MIN_USAGE ||
		!lbt_read_recent_buffer(rel, block, recent))
		return false;
	pgstat_count_buffer_read(rel);
	pgstat_count_buffer_hit(rel);
	return true;
}

#endif							/* LBT_BUFFERHINT_H */
