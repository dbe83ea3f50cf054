/*
 * stream.c - the server's read stream, or advice to the operating system; see stream.h.
 */
#include "server/stream.h"

#include "executor/instrument.h"
#include "lib/ilist.h"
#include "server/guard.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/spccache.h"

#if PG_VERSION_NUM >= 170000
#include "storage/fd.h"
#include "storage/read_stream.h"
#define HAVE_READ_STREAM
#endif

/* A block that the caller has named, and whether it was in shared buffers then. */
typedef struct Asked
{
	BlockNumber block;
	uint32		tag;
	bool		cached;
} Asked;

/* Ascending blocks, one after the other, from which on the operating system reads ahead by itself. */
#define LONG_RUN 3

/* Blocks by which the distance grows with each that was missing: a scan that ends early has read few in vain. */
#define GROWTH 2

/* Blocks that the operating system was asked for. */
typedef struct Advice
{
	bool		ended;
	int			distance;		/* blocks to ask for beyond the one handed out */
	int			max_distance;
	BlockNumber last;			/* named last */
	int			run;			/* of ascending blocks that end there */
	int			first;			/* of asked, which is a ring */
	int			nasked;
	Asked		asked[FLEXIBLE_ARRAY_MEMBER];	/* max_distance + 1 */
} Advice;

struct LbtStream
{
	dlist_node	node;			/* in streams */
	LbtStream **handle;			/* the caller's; NULL: it is forgotten */
	MemoryContext context;		/* where all of this is */
	MemoryContextCallback forget;
	ResourceOwner caller;
	Relation	rel;
	BlockNumber nblocks;		/* the file's size at the start */
	LbtNextBlock next;
	void	   *state;
	int			idle;
	Buffer		waiting;		/* the next one, pinned; or invalid */
	uint32		waiting_tag;
	ResourceOwner owner;		/* of pins and reads; NULL after an error */
	Advice	   *advice;			/* or NULL: */
#ifdef HAVE_READ_STREAM
	ReadStream *reads;
#endif
};

/* This backend's. */
static dlist_head streams = DLIST_STATIC_INIT(streams);

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

/* ---- advice to the operating system ---- */

static void
begin_advice(LbtStream *stream, bool all, int max_distance)
{
	Advice	   *advice = palloc(offsetof(Advice, asked) + (max_distance + 1) * sizeof(Asked));

	advice->ended = false;
	advice->distance = all ? max_distance : 1;
	advice->max_distance = max_distance;
	advice->last = InvalidBlockNumber;
	advice->run = 0;
	advice->first = 0;
	advice->nasked = 0;
	stream->advice = advice;
}

/* Asks for blocks until there are enough, and hands out the first. */
static Buffer
next_advised(LbtStream *stream, uint32 *tag)
{
	Advice	   *advice = stream->advice;
	int			size = advice->max_distance + 1;
	Asked		asked;

	while (!advice->ended && advice->nasked <= advice->distance)
	{
		Asked	   *last = &advice->asked[(advice->first + advice->nasked) % size];

		advice->ended = !next_in_file(stream, &last->block, &last->tag);
		if (!advice->ended)
		{
			advice->run = last->block == advice->last + 1 ? advice->run + 1 : 0;
			advice->last = last->block;
			last->cached = advice->run >= LONG_RUN || lbt_block_cached(stream->rel, last->block);
			advice->nasked++;
		}
	}
	if (advice->nasked == 0)
		return InvalidBuffer;
	asked = advice->asked[advice->first];
	advice->first = (advice->first + 1) % size;
	advice->nasked--;
	stream->idle = asked.cached ? stream->idle + 1 : 0;
	if (!asked.cached)
		advice->distance = Min(advice->distance + GROWTH, advice->max_distance);
	*tag = asked.tag;
	return ReadBuffer(stream->rel, asked.block);
}

/* ---- the server's ---- */

#ifdef HAVE_READ_STREAM

static BlockNumber
next_for_reads(ReadStream *reads, void *state, void *tag)
{
	BlockNumber block;

	return next_in_file(state, &block, tag) ? block : InvalidBlockNumber;
}

static Buffer
next_read(LbtStream *stream, uint32 *tag)
{
	int64		before = pgBufferUsage.shared_blks_read;
	void	   *read_tag;
	Buffer		buf = read_stream_next_buffer(stream->reads, &read_tag);

	if (BufferIsValid(buf))
		*tag = *(uint32 *) read_tag;
	stream->idle = pgBufferUsage.shared_blks_read == before ? stream->idle + 1 : 0;
	return buf;
}

#endif

/* ---- either of them ---- */

#ifdef HAVE_READ_STREAM
/* Advice has more reads under way than a few I/O workers have, and pins nothing.  Direct I/O knows none. */
static bool
advice_works(void)
{
#ifdef USE_PREFETCH
	return (io_direct_flags & IO_DIRECT_DATA) == 0;
#else
	return false;
#endif
}
#endif

/* False when the server is set up for no advice. */
static bool
begin(LbtStream *stream, bool all, bool scattered)
{
	int			max_distance;

#ifdef HAVE_READ_STREAM
	if (!scattered || !advice_works())
	{
		stream->reads = read_stream_begin_relation(all ? READ_STREAM_FULL : READ_STREAM_DEFAULT, NULL, stream->rel,
												   MAIN_FORKNUM, next_for_reads, stream, sizeof(uint32));
		return true;
	}
#endif
	max_distance = get_tablespace_io_concurrency(stream->rel->rd_rel->reltablespace);
	if (max_distance > 0)
		begin_advice(stream, all, max_distance);
	return max_distance > 0;
}

static Buffer
next_buffer(LbtStream *stream, uint32 *tag)
{
#ifdef HAVE_READ_STREAM
	if (stream->advice == NULL)
		return next_read(stream, tag);
#endif
	return next_advised(stream, tag);
}

/* Waits for reads under way, and raises their errors. */
static void
end(LbtStream *stream)
{
	if (BufferIsValid(stream->waiting))
		ReleaseBuffer(stream->waiting);
#ifdef HAVE_READ_STREAM
	if (stream->advice == NULL)
		read_stream_end(stream->reads);
#endif
}

/* ---- the life of a stream; errors of blocks that may not be needed ---- */

/* Its pins are nobody's any more, and neither is what it has in the server. */
static void
forget(void *arg)
{
	LbtStream  *stream = arg;

	if (stream->handle == NULL)
		return;
	*stream->handle = NULL;
	stream->handle = NULL;
	dlist_delete(&stream->node);
}

/* After errors nobody ends a stream: its memory and its caller's resource owner go, in either order. */
static void
owner_released(ResourceReleasePhase phase, bool is_commit, bool is_top, void *arg)
{
	dlist_mutable_iter i;

	if (likely(dlist_is_empty(&streams)) || phase != RESOURCE_RELEASE_BEFORE_LOCKS)
		return;
	dlist_foreach_modify(i, &streams)
	{
		LbtStream  *stream = dlist_container(LbtStream, node, i.cur);

		if (stream->caller == CurrentResourceOwner)
			forget(stream);
	}
}

void
lbt_streams_init(void)
{
	RegisterResourceReleaseCallback(owner_released, NULL);
}

/* A stream that another one's caller begins when asked for a block is that caller's, too. */
static ResourceOwner
caller_of(ResourceOwner owner)
{
	dlist_iter	i;

	dlist_foreach(i, &streams)
	{
		const LbtStream *stream = dlist_container(LbtStream, node, i.cur);

		if (stream->owner == owner)
			return stream->caller;
	}
	return owner;
}

void
lbt_stream_begin(LbtStream **handle, MemoryContext context, Relation rel, bool all, bool scattered, LbtNextBlock next,
				 void *state)
{
	ResourceOwner current = CurrentResourceOwner;
	ResourceOwner caller = caller_of(current);
	MemoryContext own = AllocSetContextCreate(context, "learnedbtree read-ahead", ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(own);
	LbtStream  *stream = palloc0(sizeof(LbtStream));
	bool		begun;

	stream->context = own;
	stream->caller = caller;
	stream->rel = rel;
	stream->nblocks = RelationGetNumberOfBlocks(rel);
	stream->next = next;
	stream->state = state;
	stream->owner = ResourceOwnerCreate(caller, "learnedbtree read-ahead");
	CurrentResourceOwner = stream->owner;
	begun = begin(stream, all, scattered);
	CurrentResourceOwner = current;
	MemoryContextSwitchTo(old);
	if (!begun)
	{
		ResourceOwnerDelete(stream->owner);
		MemoryContextDelete(own);
		return;
	}
	stream->forget.func = forget;
	stream->forget.arg = stream;
	MemoryContextRegisterResetCallback(own, &stream->forget);
	dlist_push_head(&streams, &stream->node);
	stream->handle = handle;
	*handle = stream;
}

/* What the stream had in the server goes with its owner, reads under way included. */
static void
release_owner(LbtStream *stream, bool good)
{
	ResourceOwner owner = stream->owner;

	stream->owner = NULL;
	stream->waiting = InvalidBuffer;
	lbt_release_owner(owner, good);
}

bool
lbt_stream_look(LbtStream *stream, uint32 *tag)
{
	if (!BufferIsValid(stream->waiting) && stream->owner != NULL)
	{
		LBT_GUARD_BEGIN_AS(stream->owner);
		{
			stream->waiting = next_buffer(stream, &stream->waiting_tag);
		}
		LBT_GUARD_END(release_owner(stream, false));
	}
	*tag = stream->waiting_tag;
	return BufferIsValid(stream->waiting);
}

void
lbt_stream_skip(LbtStream *stream)
{
	ResourceOwner caller = CurrentResourceOwner;

	CurrentResourceOwner = stream->owner;
	ReleaseBuffer(stream->waiting);
	CurrentResourceOwner = caller;
	stream->waiting = InvalidBuffer;
}

Buffer
lbt_stream_take(LbtStream *stream)
{
	Buffer		buf = stream->waiting;

	IncrBufferRefCount(buf);
	lbt_stream_skip(stream);
	return buf;
}

bool
lbt_stream_end(LbtStream *stream)
{
	bool		good;

	if (stream->owner != NULL)
	{
		LBT_GUARD_BEGIN_AS(stream->owner);
		{
			end(stream);
		}
		LBT_GUARD_END(release_owner(stream, false));
	}
	good = stream->owner != NULL;
	if (good)
		release_owner(stream, true);
	MemoryContextDelete(stream->context);
	return good;
}

void
lbt_streams_end(void)
{
	while (unlikely(!dlist_is_empty(&streams)))
		(void) lbt_stream_end(dlist_head_element(LbtStream, node, &streams));
}
