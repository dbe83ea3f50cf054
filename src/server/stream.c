/*
 * stream.c - the server's read stream, or what stands in for it before 17; see stream.h.
 */
#include "server/stream.h"

#include "executor/instrument.h"
#include "server/guard.h"
#include "utils/resowner.h"
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
	ResourceOwner owner;		/* of pins and reads; NULL after an error */
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

/* ---- the server's ---- */

#if PG_VERSION_NUM >= 170000

static BlockNumber
next_for_reads(ReadStream *reads, void *state, void *tag)
{
	BlockNumber block;

	return next_in_file(state, &block, tag) ? block : InvalidBlockNumber;
}

static LbtStream *
begin(Relation rel, bool all)
{
	LbtStream  *stream = palloc(sizeof(LbtStream));

	stream->reads = read_stream_begin_relation(all ? READ_STREAM_FULL : READ_STREAM_DEFAULT, NULL, rel,
											   MAIN_FORKNUM, next_for_reads, stream, sizeof(uint32));
	return stream;
}

static Buffer
next_buffer(LbtStream *stream, uint32 *tag)
{
	int64		before = pgBufferUsage.shared_blks_read;
	void	   *read_tag;
	Buffer		buf = read_stream_next_buffer(stream->reads, &read_tag);

	if (BufferIsValid(buf))
		*tag = *(uint32 *) read_tag;
	stream->idle = pgBufferUsage.shared_blks_read == before ? stream->idle + 1 : 0;
	return buf;
}

#else

/* ---- or by advice to the operating system ---- */

static LbtStream *
begin(Relation rel, bool all)
{
	int			max_distance = get_tablespace_io_concurrency(rel->rd_rel->reltablespace);
	LbtStream  *stream;

	if (max_distance == 0)
		return NULL;
	stream = palloc(offsetof(LbtStream, asked) + (max_distance + 1) * sizeof(Asked));
	stream->ended = false;
	stream->distance = all ? max_distance : 1;
	stream->max_distance = max_distance;
	stream->first = 0;
	stream->nasked = 0;
	return stream;
}

/* Asks for blocks until there are enough, and hands out the first. */
static Buffer
next_buffer(LbtStream *stream, uint32 *tag)
{
	int			size = stream->max_distance + 1;
	Asked		asked;

	while (!stream->ended && stream->nasked <= stream->distance)
	{
		Asked	   *last = &stream->asked[(stream->first + stream->nasked) % size];

		stream->ended = !next_in_file(stream, &last->block, &last->tag);
		if (!stream->ended)
		{
			last->cached = lbt_block_cached(stream->rel, last->block);
			stream->nasked++;
		}
	}
	if (stream->nasked == 0)
		return InvalidBuffer;
	asked = stream->asked[stream->first];
	stream->first = (stream->first + 1) % size;
	stream->nasked--;
	stream->idle = asked.cached ? stream->idle + 1 : 0;
	if (!asked.cached)
		stream->distance = Min(stream->distance * 2, stream->max_distance);
	*tag = asked.tag;
	return ReadBuffer(stream->rel, asked.block);
}

#endif

/* ---- around them: errors of blocks that may not be needed ---- */

LbtStream *
lbt_stream_begin(Relation rel, bool all, LbtNextBlock next, void *state)
{
	ResourceOwner caller = CurrentResourceOwner;
	ResourceOwner owner = ResourceOwnerCreate(caller, "learnedbtree read-ahead");
	LbtStream  *stream;

	CurrentResourceOwner = owner;
	stream = begin(rel, all);
	CurrentResourceOwner = caller;
	if (stream == NULL)
	{
		ResourceOwnerDelete(owner);
		return NULL;
	}
	stream->rel = rel;
	stream->nblocks = RelationGetNumberOfBlocks(rel);
	stream->next = next;
	stream->state = state;
	stream->idle = 0;
	stream->owner = owner;
	return stream;
}

/* What the stream had in the server goes with its owner, reads under way included. */
static void
release_owner(LbtStream *stream, bool good)
{
	ResourceOwner owner = stream->owner;

	stream->owner = NULL;
	lbt_release_owner(owner, good);
}

Buffer
lbt_stream_next(LbtStream *stream, uint32 *tag)
{
	ResourceOwner caller = CurrentResourceOwner;
	volatile Buffer buf = InvalidBuffer;

	if (stream->owner == NULL)
		return InvalidBuffer;
	LBT_GUARD_BEGIN_AS(stream->owner);
	{
		buf = next_buffer(stream, tag);
	}
	LBT_GUARD_END(release_owner(stream, false));
	if (BufferIsValid(buf))
	{
		/* The pin passes to the caller. */
		IncrBufferRefCount(buf);
		CurrentResourceOwner = stream->owner;
		ReleaseBuffer(buf);
		CurrentResourceOwner = caller;
	}
	return buf;
}

bool
lbt_stream_failed(const LbtStream *stream)
{
	return stream->owner == NULL;
}

void
lbt_stream_end(LbtStream *stream)
{
	if (stream->owner != NULL)
	{
		LBT_GUARD_BEGIN_AS(stream->owner);
		{
			/* Waits for reads under way, and raises their errors. */
#if PG_VERSION_NUM >= 170000
			read_stream_end(stream->reads);
#endif
		}
		LBT_GUARD_END(release_owner(stream, false));
	}
	if (stream->owner != NULL)
		release_owner(stream, true);
	pfree(stream);
}
