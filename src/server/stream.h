/*
 * stream.h - blocks of a relation, asked for ahead of need.
 *
 * The operating system is advised to read them.  A stream has the blocks that
 * its caller names one after the other, and asks for so many beyond the one at
 * hand:
 *
 *     named       1   2   3   4   5   6  ...
 *                 |   |   |___|___|
 *                 |   |     asked for: distance of them
 *                 |   the next one: lbt_stream_look()
 *                 passed by: lbt_stream_pass()
 *
 * The distance grows while blocks are found missing, up to
 * effective_io_concurrency (of the tablespace), so that a
 * stream that ends early has had few read in vain.
 *
 * A stream pins nothing, locks nothing, and waits for nothing: a block that has
 * been read ahead is found in the operating system's cache, by the process that reads
 * it.  (The server's read streams pin what they have read until it is asked
 * for, which keeps VACUUM waiting for as long as the scan is not asked for a
 * row; and reading leaves or rows that are scattered, they are slower.)  With
 * direct I/O (debug_io_direct) there is nothing to advise, and nothing is read
 * ahead.
 */
#ifndef LBT_STREAM_H
#define LBT_STREAM_H

#include "postgres.h"

#include "storage/block.h"
#include "utils/relcache.h"

typedef struct LbtStream LbtStream;

/*
 * Names the next block, and something for the caller to know it by; false when
 * there is none.  It may be called at any time within lbt_stream_start() and
 * lbt_stream_look(), and holds no lock on return.  It may read pages and use
 * other streams.
 */
typedef bool (*LbtNextBlock) (void *state, BlockNumber *block, uint32 *tag);

/*
 * Begin a stream, in this memory context; with it, it may go without notice.
 * all: the caller will want all blocks, so that there is no need to begin with
 * few.  NULL when the server is set up for no reading ahead.
 */
extern LbtStream *lbt_stream_begin(MemoryContext context, Relation rel, bool all, LbtNextBlock next, void *state);

/* Ask for the first blocks already. */
extern void lbt_stream_start(LbtStream *stream);

/* What the next block is known by, having asked for those behind it; false at the end.  Blocks that are not in the file are left out. */
extern bool lbt_stream_look(LbtStream *stream, uint32 *tag);

/* Pass that block by. */
extern void lbt_stream_pass(LbtStream *stream);

/* The number of blocks passed by since one was missing when it was asked for. */
extern int	lbt_stream_idle(const LbtStream *stream);

extern void lbt_stream_end(LbtStream **stream);

/*
 * Is the block in shared buffers?  One lookup in the buffer table; a block that is not there may be asked of the
 * operating system.  The block must be in the file.
 */
extern bool lbt_block_cached(Relation rel, BlockNumber block);

#endif							/* LBT_STREAM_H */
