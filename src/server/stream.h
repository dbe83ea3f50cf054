/*
 * stream.h - blocks of a relation, brought into shared buffers ahead of need.
 *
 * From 17 on this is the server's read stream, which also reads neighbouring blocks together, and on 18
 * asynchronously; before, and for scattered blocks, advice to the operating system.  Direct I/O knows no advice: on 18
 * scattered blocks are read asynchronously then.  How far ahead grows while blocks are found missing, up to
 * effective_io_concurrency (of the tablespace).
 *
 * A stream pins the blocks that it has brought in (by advice: none), as many as the server allows, until they are taken
 * or passed by.
 *
 * A block that is only read ahead may not be needed in the end.  So an error in reading one ends
 * the stream, and nothing else: who needs the block reads it himself, and has the error.
 */
#ifndef LBT_STREAM_H
#define LBT_STREAM_H

#include "postgres.h"

#include "server/compat.h"
#include "storage/buf_internals.h"

typedef struct LbtStream LbtStream;

/* A buffer used less often (of BM_MAX_USAGE_COUNT) is not pinned through a hint. */
#define LBT_HINT_MIN_USAGE 3

/*
 * Names the next block, and something for the caller to know it by; false when there is none.  It may be called at any
 * time within lbt_stream_start() and lbt_stream_look(), and holds no lock on return.  It may read pages and use other
 * streams, but makes no dsa call.
 */
typedef bool (*LbtNextBlock) (void *state, BlockNumber *block, uint32 *tag);

/*
 * Begin a stream in a memory context of its own below this one.  all: the caller will want all blocks, so that there is
 * no need to begin with few.  scattered: few blocks are neighbours.  *stream is NULL when the server is set up for no
 * reading ahead; it becomes NULL when the stream ends, by lbt_stream_end() or lbt_streams_end(), or with the memory or
 * the resource owner.
 */
extern void lbt_stream_begin(LbtStream **stream, MemoryContext context, Relation rel, bool all, bool scattered,
							 LbtNextBlock next, void *state);

/* Ask for the first blocks already; for a stream of scattered ones. */
extern void lbt_stream_start(LbtStream *stream);

/*
 * What the next block is known by; it has been brought in, and the stream keeps it pinned.  False at the end, and after
 * an error.  Blocks that are not in the file are left out.  The caller holds no LWLock, no page lock either.
 */
extern bool lbt_stream_look(LbtStream *stream, uint32 *tag);

/* The block that lbt_stream_look() has told of: its buffer, pinned (the pin is now the caller's) and not locked. */
extern Buffer lbt_stream_take(LbtStream *stream);

/* Pass that block by. */
extern void lbt_stream_skip(LbtStream *stream);

/* The number of blocks handed out since one had to be read. */
extern int	lbt_stream_idle(const LbtStream *stream);

/* End it: gives back the pins of blocks that were not handed out.  True unless an error has ended it before. */
extern bool lbt_stream_end(LbtStream *stream);

/* End all streams of this backend: their pins must not be kept while nothing is done. */
extern void lbt_streams_end(void);

/* In _PG_init. */
extern void lbt_streams_init(void);

/*
 * Is the block in shared buffers?  One lookup in the buffer table; a block that is not there may be asked of the
 * operating system.  The block must be in the file.
 */
extern bool lbt_block_cached(Relation rel, BlockNumber block);

/* Does the buffer hold this block of the relation just now?  Read without a pin or lock: a hint. */
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

/* How often it was used lately, as the clock sweep counts it, up to BM_MAX_USAGE_COUNT.  A hint, too. */
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
 * Pin the block through a hint of where it is, and count that as the server would; false when it is not there.  This leaves
 * the buffer's usage count alone, so one that the clock sweep has worn down goes through the buffer table, which counts the
 * use: what is used often must not look idle to the buffer manager.
 */
static inline bool
lbt_pin_by_hint(Relation rel, BlockNumber block, Buffer recent)
{
	if (recent < 1 || recent > NBuffers || lbt_buffer_usage(GetBufferDescriptor(recent - 1)) < LBT_HINT_MIN_USAGE ||
		!lbt_read_recent_buffer(rel, block, recent))
		return false;
	pgstat_count_buffer_read(rel);
	pgstat_count_buffer_hit(rel);
	return true;
}

#endif							/* LBT_STREAM_H */
