/*
 * stream.h - blocks of a relation that the operating system is advised to
 * read ahead of need (src/README, "Leaves ahead of need").
 *
 * A stream has the blocks that its caller names one after the other, and asks
 * for some beyond the one that the caller has reached:
 *
 *     named       1   2   3   4   5   6  ...
 *                 |   |   |___|___|
 *                 |   |     asked for: distance of them
 *                 |   reached next
 *                 passed by: lbt_stream_reach()
 *
 * The distance grows while blocks are missing, up to effective_io_concurrency
 * (of the tablespace).  A stream that is of no use ends itself.  It pins,
 * locks and waits for nothing.
 */
#ifndef LBT_STREAM_H
#define LBT_STREAM_H

#include "postgres.h"

#include "storage/block.h"
#include "utils/relcache.h"

typedef struct LbtStream LbtStream;

/*
 * What became of the blocks that were missing and asked for.  Once the caller
 * has gone beyond such a block, it has used it if it is in shared buffers by
 * then: whoever needed it has read it.  A tally outlives its streams: it goes
 * with the scan or plan node that they are for.
 */
typedef struct LbtTally
{
	uint64		asked;
	uint64		judged;			/* of these, gone beyond */
	uint64		used;			/* of these */
	uint64		told[2];		/* asked and used, when last counted */
	BlockNumber last;			/* to be asked for */
	int			run;			/* of consecutive blocks that end there */
} LbtTally;

/* Judge as many blocks, or predictions, before deciding: half a batch. */
#define LBT_JUDGED_MIN 32

static inline void
lbt_tally_add(LbtTally *sum, const LbtTally *tally)
{
	sum->asked += tally->asked;
	sum->used += tally->used;
}

/* Have fewer than half of the blocks been used?  Then ask for no more. */
static inline bool
lbt_tally_wasted(const LbtTally *tally)
{
	return tally->judged >= LBT_JUDGED_MIN && tally->used * 2 < tally->judged;
}

/*
 * Pauses in doing something for items that come one after the other, because
 * fewer than half of those that it was done for made use of it.  Zeroed.
 */
typedef struct LbtPause
{
	uint64		resume;			/* the first item after the last pause */
	uint32		length;			/* ... which was this long */
	LbtTally	tally;			/* judged and used, since the last decision */
} LbtPause;

/*
 * Items that a pause lasts, four times as many each time.  The first one is
 * short: rows of a COPY that fill single holes are followed by others that do
 * not.  After five of them 64 items among 16,384 are tried for nothing: 0.4 %,
 * each at most a third slower.
 */
#define LBT_PAUSE_MIN 16
#define LBT_PAUSE_MAX 16384

static inline void
lbt_pause_begin(LbtPause *pause, uint64 number)
{
	pause->length = pause->length == 0 ? LBT_PAUSE_MIN : Min(pause->length * 4, LBT_PAUSE_MAX);
	pause->resume = number + pause->length;
	pause->tally.judged = pause->tally.used = 0;
}

/*
 * Before the item of this number: does a pause begin, by what was used or for
 * another reason?
 */
static inline bool
lbt_pause_decide(LbtPause *pause, uint64 number, bool other)
{
	if (pause->tally.judged < LBT_JUDGED_MIN && !other)
		return false;
	if (other || lbt_tally_wasted(&pause->tally))
		lbt_pause_begin(pause, number);
	else
		pause->length = pause->tally.judged = pause->tally.used = 0;
	return pause->length > 0;
}

/*
 * Names the next block; false if there is none.  Called within
 * lbt_stream_reach(); holds no lock on return.  May read pages and use other
 * streams.  A block beyond the file ends the stream.
 */
typedef bool (*LbtNextBlock) (void *state, BlockNumber *block);

/*
 * Begin a stream in this memory context, which may free it without notice.
 * all: the caller wants all blocks, so there is no need to begin with few.
 * NULL if the server is set up not to read ahead, or by the tally it is of no
 * use.
 */
extern LbtStream *lbt_stream_begin(MemoryContext context, Relation rel, bool all,
								   LbtNextBlock next, void *state, LbtTally *tally);

/*
 * The caller has reached this block: pass by it and those named before it,
 * and ask for those after them.  A block that has not been named, as one that
 * is new, changes nothing.  True if it was named.  Sets *stream to NULL if the
 * stream ends.
 */
extern bool lbt_stream_reach(LbtStream **stream, BlockNumber block);

/* Forget what is asked for: the caller is beyond all of it. */
extern void lbt_stream_skip(LbtStream *stream);

/* End it, if there is one.  Its caller has read the block reached last. */
extern void lbt_stream_end(LbtStream **stream);

/*
 * Ask for the block, which must be in the file, after those of this tally;
 * false if it is in shared buffers, or if the operating system will read it
 * without being asked.  One lookup in the buffer table, at most.
 */
extern bool lbt_ask_for(Relation rel, BlockNumber block, LbtTally *tally);

/* Is it in shared buffers, and readable?  Asks nobody for it. */
extern bool lbt_block_is_there(Relation rel, BlockNumber block);

/*
 * How many blocks may be asked for beyond the one that is needed: 0 if the
 * server is set up not to read ahead.
 */
extern int	lbt_read_distance(Relation rel);

#endif							/* LBT_STREAM_H */
