/*
 * stream.c - advice to the operating system, block by block; see stream.h.
 */
#include "server/stream.h"

#include "server/bufferhint.h"
#include "storage/bufmgr.h"
#include "storage/fd.h"
#include "utils/rel.h"
#include "utils/spccache.h"

/*
 * After so many consecutive blocks the operating system reads ahead itself,
 * unless it is asked for the next ones: then it reads each alone.  Cold, joins
 * by ascending keys took 1.6 to 2 times btree's time with advice for all.
 */
#define LONG_RUN 3

/* By how much the distance grows with each block that was missing. */
#define GROWTH 2

/*
 * End after this many blocks in a row that were there anyway, or not named.
 * That costs as many lookups in the buffer table; one read costs more.
 */
#define MAX_IDLE 64

/* A block that the caller has named, and whether shared buffers had it. */
typedef struct Asked
{
	BlockNumber block;
	bool		cached;
} Asked;

struct LbtStream
{
	Relation	rel;
	BlockNumber nblocks;		/* in the file, at least */
	LbtNextBlock next;
	void	   *state;
	LbtTally   *tally;
	BlockNumber current;		/* reached last, if it was missing */
	bool		ended;			/* no further block has been named */
	int			idle;			/* passed by, or not named, since one missed */
	int			distance;		/* blocks to ask for beyond the next one */
	int			max_distance;
	int			nasked;
	Asked		asked[FLEXIBLE_ARRAY_MEMBER];	/* max_distance + 1 */
};

/* Does the operating system read ahead when it is told to? */
#ifndef USE_PREFETCH
#define TAKES_ADVICE false
#elif PG_VERSION_NUM >= 160000
#define TAKES_ADVICE ((io_direct_flags & IO_DIRECT_DATA) == 0)
#else
#define TAKES_ADVICE true
#endif

int
lbt_read_distance(Relation rel)
{
	return TAKES_ADVICE ? get_tablespace_io_concurrency(rel->rd_rel->reltablespace) : 0;
}

LbtStream *
lbt_stream_begin(MemoryContext context, Relation rel, bool all, LbtNextBlock next, void *state,
				 LbtTally *tally)
{
	int			max_distance = lbt_read_distance(rel);
	LbtStream  *stream;

	if (max_distance == 0 || lbt_tally_wasted(tally))
		return NULL;
	stream = MemoryContextAllocZero(context, offsetof(LbtStream, asked) +
									(max_distance + 1) * sizeof(Asked));
	stream->rel = rel;
	stream->nblocks = RelationGetNumberOfBlocks(rel);
	stream->next = next;
	stream->state = state;
	stream->tally = tally;
	tally->last = 0;
	tally->run = 0;
	stream->current = InvalidBlockNumber;
	stream->distance = all ? max_distance : 1;
	stream->max_distance = max_distance;
	return stream;
}

bool
lbt_ask_for(Relation rel, BlockNumber block, LbtTally *tally)
{
	bool		asked;

	/* A long run survives a short gap, as it does for the system. */
	if (block == tally->last + 1)
		tally->run = Min(tally->run + 1, 2 * LONG_RUN);
	else if (block != tally->last)
		tally->run = block - tally->last <= LONG_RUN ? Max(tally->run - LONG_RUN, 0) : 0;
	tally->last = block;
	asked = tally->run < LONG_RUN &&
		!BufferIsValid(PrefetchBuffer(rel, MAIN_FORKNUM, block).recent_buffer);
	tally->asked += asked;
	return asked;
}

static void
ask(LbtStream *stream, BlockNumber block)
{
	Asked	   *asked = &stream->asked[stream->nasked++];

	asked->block = block;
	asked->cached = true;		/* in case of an error */
	asked->cached = !lbt_ask_for(stream->rel, block, stream->tally);
}

bool
lbt_block_is_there(Relation rel, BlockNumber block)
{
	BufferTag	tag;
	uint32		hash;
	LWLock	   *lock;
	int			id;
	bool		there;

	InitBufferTag(&tag, &rel->rd_locator, MAIN_FORKNUM, block);
	hash = BufTableHashCode(&tag);
	lock = BufMappingPartitionLock(hash);
	LWLockAcquire(lock, LW_SHARED);
	id = BufTableLookup(&tag, hash);

	/* One that could not be read stays in the table. */
	there = id >= 0 && (lbt_buffer_state(GetBufferDescriptor(id)) & BM_VALID) != 0;
	LWLockRelease(lock);
	return there;
}

/* The caller is beyond a block that was missing: has anybody read it? */
static void
judge(LbtStream *stream, BlockNumber block)
{
	if (block == InvalidBlockNumber)
		return;
	stream->tally->judged++;
	stream->tally->used += lbt_block_is_there(stream->rel, block);
}

static void
name_blocks(LbtStream *stream)
{
	BlockNumber block;

	while (!stream->ended && stream->nasked <= stream->distance)
	{
		if (!stream->next(stream->state, &block))
			stream->ended = true;
		else if (block < stream->nblocks ||
				 block < (stream->nblocks = RelationGetNumberOfBlocks(stream->rel)))
			ask(stream, block);
		else
			stream->ended = true;	/* a damaged page has named it */
	}
}

/* Pass by the next n blocks, of which the caller has reached the last. */
static void
pass(LbtStream *stream, int n)
{
	for (int i = 0; i < n; i++)
	{
		const Asked *asked = &stream->asked[i];

		judge(stream, stream->current);
		stream->current = asked->cached ? InvalidBlockNumber : asked->block;
		if (asked->cached)
			stream->idle++;
		else
		{
			stream->idle = 0;
			stream->distance = Min(stream->distance + GROWTH, stream->max_distance);
		}
	}
	stream->nasked -= n;
	memmove(stream->asked, &stream->asked[n], stream->nasked * sizeof(Asked));
}

bool
lbt_stream_reach(LbtStream **stream, BlockNumber block)
{
	LbtStream  *s = *stream;
	bool		named;
	int			i = 0;

	if (s->ended && s->nasked == 0)
	{
		lbt_stream_end(stream);
		return false;
	}
	name_blocks(s);
	while (i < s->nasked && s->asked[i].block != block)
		i++;
	named = i < s->nasked;
	if (named)
		pass(s, i + 1);
	else
		s->idle++;
	if (s->idle >= MAX_IDLE || lbt_tally_wasted(s->tally))
	{
		s->current = InvalidBlockNumber;	/* not read yet, so not judged */
		lbt_stream_end(stream);
	}
	return named;
}

void
lbt_stream_skip(LbtStream *stream)
{
	judge(stream, stream->current);
	for (int i = 0; i < stream->nasked; i++)
		if (!stream->asked[i].cached)
			judge(stream, stream->asked[i].block);
	stream->current = InvalidBlockNumber;
	stream->nasked = 0;
}

void
lbt_stream_end(LbtStream **stream)
{
	if (*stream == NULL)
		return;
	lbt_stream_skip(*stream);
	pfree(*stream);
	*stream = NULL;
}
