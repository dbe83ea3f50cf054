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
 * effective_io_concurrency (of the tablespace), so that a stream that ends
 * early has had few read in vain.
 *
 * A stream pins nothing, locks nothing, and waits for nothing: the process
 * that reads a block finds it in the operating system's cache.  (The server's
 * read streams pin what they have read until it is asked for, so VACUUM waits
 * until the scan is asked for a row; and they are slower at scattered leaves
 * or rows.)  With direct I/O (debug_io_direct) nothing is read ahead.
 */
#ifndef LBT_STREAM_H
#define LBT_STREAM_H

#include "postgres.h"

#include "storage/block.h"
#include "utils/relcache.h"

typedef struct LbtStream LbtStream;

/*
 * Names the next block, and a tag for the caller to know it by; false if there
 * is none.  Called at any time within lbt_stream_start() and
 * lbt_stream_look(); holds no lock on return.  May read pages and use other
 * streams.
 */
typedef bool (*LbtNextBlock) (void *state, BlockNumber *block, uint32 *tag);

/*
 * Begin a stream in this memory context, which may free it without notice.
 * all: the caller wants all blocks, so there is no need to begin with few.
 * NULL if the server is set up not to read ahead.
 */
extern LbtStream *lbt_stream_begin(MemoryContext context, Relation rel, bool all,
								   LbtNextBlock next, void *state);

/* Ask for the first blocks already. */
extern void lbt_stream_start(LbtStream *stream);

/*
 * What the next block is known by, having asked for those behind it; false at
 * the end.  Leaves out blocks that are not in the file.
 */
extern bool lbt_stream_look(LbtStream *stream, uint32 *tag);

/* Pass that block by. */
extern void lbt_stream_pass(LbtStream *stream);

/* The number of blocks passed by since one was missing when asked for. */
extern int	lbt_stream_idle(const LbtStream *stream);

extern void lbt_stream_end(LbtStream **stream);

/*
 * Is the block, which must be in the file, in shared buffers?  One lookup in
 * the buffer table; may ask the operating system for a missing block.
 */
extern bool lbt_block_cached(Relation rel, BlockNumber block);

#endif							/* LBT_STREAM_H */
