/*
 * stream.c - the server's read stream, or what stands in for it before 17; see stream.h.
 */
#include "server/stream.h"

#include "executor/instrument.h"
#include "utils/spccache.h"

#if PG_VERSION_NUM >= 170000
#include "storage/read_stream.h"
#else
/* A block that the caller has named, and whether it was in shared buffers then. */
typedef struct Asked
{
	BlockNumber block;
	uint32		tag;
	bool		cached;
} Asked;
#endif

struct LbtStream
{
	Relation	rel;
	BlockNumber nblocks;		/* the file's size at the start */
	LbtNextBlock next;
	void	   *state;
	int			idle;
#if PG_VERSION_NUM >= 170000
	ReadStream *reads;
#else
	bool		ended;
	int			distance;		/* blocks to ask for beyond the one handed out */
	int			max_distance;
	int			first;			/* of asked, which is a ring */
	int			nasked;
	Asked		asked[FLEXIBLE_ARRAY_MEMBER];	/* max_distance + 1 */
#endif
};

/* The caller's next block that is in the file. */
static bool
next_in_file(LbtStream *stream, BlockNumber *block, uint32 *tag)
{
	while (stream->next(stream->state, block, tag))
		if (*block < stream->nblocks)
			return true;
	return false;
}

bool
lbt_block_cached(Relation rel, BlockNumber block)
{
	return BufferIsValid(PrefetchBuffer(rel, MAIN_FORKNUM, block).recent_buffer);
}

int
lbt_stream_idle(const LbtStream *stream)
{
	return stream->idle;
}

#if PG_VERSION_NUM >= 170000

static BlockNumber
next_for_reads(ReadStream *reads, void *state, void *tag)
{
	BlockNumber block;

	return next_in_file(state, &block, tag) ? block : InvalidBlockNumber;
}

LbtStream *
lbt_stream_begin(Relation rel, bool all, LbtNextBlock next, void *state)
{
	LbtStream  *stream = palloc(sizeof(LbtStream));

	stream->rel = rel;
	stream->nblocks = RelationGetNumberOfBlocks(rel);
	stream->next = next;
	stream->state = state;
	stream->idle = 0;
	stream->reads = read_stream_begin_relation(all ? READ_STREAM_FULL : READ_STREAM_DEFAULT, NULL, rel,
											   MAIN_FORKNUM, next_for_reads, stream, sizeof(uint32));
	return stream;
}

Buffer
lbt_stream_next(LbtStream *stream, uint32 *tag)
{
	int64		before = pgBufferUsage.shared_blks_read;
	void	   *read_tag;
	Buffer		buf = read_stream_next_buffer(stream->reads, &read_tag);

	if (BufferIsValid(buf))
		*tag = *(uint32 *) read_tag;
	stream->idle = pgBufferUsage.shared_blks_read == before ? stream->idle + 1 : 0;
	return buf;
}

void
lbt_stream_end(LbtStream *stream)
{
	read_stream_end(stream->reads);
	pfree(stream);
}

#else

LbtStream *
lbt_stream_begin(Relation rel, bool all, LbtNextBlock next, void *state)
{
	int			max_distance = get_tablespace_io_concurrency(rel->rd_rel->reltablespace);
	LbtStream  *stream;

	if (max_distance == 0)
		return NULL;
	stream = palloc(offsetof(LbtStream, asked) + (max_distance + 1) * sizeof(Asked));
	stream->rel = rel;
	stream->nblocks = RelationGetNumberOfBlocks(rel);
	stream->next = next;
	stream->state = state;
	stream->idle = 0;
	stream->ended = false;
	stream->distance = all ? max_distance : 1;
	stream->max_distance = max_distance;
	stream->first = 0;
	stream->nasked = 0;
	return stream;
}

/* Ask for blocks until there are enough. */
static void
ask(LbtStream *stream)
{
	while (!stream->ended && stream->nasked <= stream->distance)
	{
		Asked	   *asked = &stream->asked[(stream->first + stream->nasked) % (stream->max_distance + 1)];

		if (!next_in_file(stream, &asked->block, &asked->tag))
			stream->ended = true;
		else
		{
			asked->cached = lbt_block_cached(stream->rel, asked->block);
			stream->nasked++;
		}
	}
}

Buffer
lbt_stream_next(LbtStream *stream, uint32 *tag)
{
	Asked		asked;

	ask(stream);
	if (stream->nasked == 0)
		return InvalidBuffer;
	asked = stream->asked[stream->first];
	stream->first = (stream->first + 1) % (stream->max_distance + 1);
	stream->nasked--;
	if (asked.cached)
	{
		stream->idle++;
		stream->distance = Max(stream->distance - 1, 1);
	}
	else
	{
		stream->idle = 0;
		stream->distance = Min(stream->distance * 2, stream->max_distance);
	}
	*tag = asked.tag;
	return ReadBuffer(stream->rel, asked.block);
}

void
lbt_stream_end(LbtStream *stream)
{
	pfree(stream);
}

#endif
