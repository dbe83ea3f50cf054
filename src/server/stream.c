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
#include "storage/read_stream.h"
#define HAVE_READ_STREAM
#endif
#if PG_VERSION_NUM >= 180000
#include "storage/aio.h"
#include "storage/fd.h"
#define HAVE_ASYNC_READS
#endif

/* A block that the caller has named, and whether it was in shared buffers then. */
typedef struct Asked
{
	BlockNumber block;
	uint32		tag;
	bool		cached;
#ifdef HAVE_ASYNC_READS
	Buffer		buf;			/* pinned; being read, unless cached */
	ReadBuffersOperation read;
#endif
} Asked;

/* Ascending blocks, one after the other, from which on the operating system reads ahead by itself. */
#define LONG_RUN 3

/*
 * The distance grows with the blocks that were missing, so that a scan that ends early has read few in vain: by two with
 * each that was advised of, and by one with every second that the server reads, which costs more and is waited for.
 */
#define ADVICE_GROWTH 2
#define READS_FOR_ONE 2

/* Scattered blocks that were asked for: of the operating system (advice), or of the server. */
typedef struct Window
{
	bool		advice;
	bool		ended;
	int			distance;		/* blocks to ask for beyond the one handed out */
	int			max_distance;
	int			missed;			/* of those handed out */
	BlockNumber last;			/* named last */
	int			run;			/* of ascending blocks that end there */
	int			first;			/* of asked, which is a ring */
	int			nasked;
	Asked		asked[FLEXIBLE_ARRAY_MEMBER];	/* max_distance + 1 */
} Window;

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
	Window	   *window;			/* or NULL: */
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

/* ---- scattered blocks, by a window ---- */

/* Are they asked of the operating system? */
static bool
reads_by_advice(void)
{
#ifdef HAVE_ASYNC_READS
#ifdef USE_PREFETCH
	return (io_direct_flags & IO_DIRECT_DATA) == 0;
#else
	return false;
#endif
#else
	return true;
#endif
}

static void
begin_window(LbtStream *stream, bool all, int max_distance)
{
	Window	   *window = palloc(offsetof(Window, asked) + (max_distance + 1) * sizeof(Asked));

	window->advice = reads_by_advice();
	window->ended = false;
	window->distance = all ? max_distance : 1;
	window->max_distance = max_distance;
	window->missed = 0;
	window->last = InvalidBlockNumber;
	window->run = 0;
	window->first = 0;
	window->nasked = 0;
	stream->window = window;
}

/* Asks the operating system. */
static void
advise(LbtStream *stream, Asked *asked)
{
	Window	   *window = stream->window;

	window->run = asked->block == window->last + 1 ? window->run + 1 : 0;
	window->last = asked->block;
	asked->cached = window->run >= LONG_RUN || lbt_block_cached(stream->rel, asked->block);
}

#ifdef HAVE_ASYNC_READS

/* Asks the server, which pins the block's buffer. */
static void
start_read(LbtStream *stream, Asked *asked, int flags)
{
	ReadBuffersOperation *read = &asked->read;

	read->rel = stream->rel;
	read->smgr = RelationGetSmgr(stream->rel);
	read->persistence = stream->rel->rd_rel->relpersistence;
	read->forknum = MAIN_FORKNUM;
	read->strategy = NULL;
	asked->cached = !StartReadBuffer(read, &asked->buf, asked->block, flags);
}

#endif

/* How many blocks to ask for now.  Reads of the server's cost less together: it is asked when half of them are done. */
static int
room_in_window(LbtStream *stream)
{
	Window	   *window = stream->window;
	int			room = window->distance + 1 - window->nasked;

#ifdef HAVE_ASYNC_READS
	if (!window->advice)
	{
		uint32		pins = RelationUsesLocalBuffers(stream->rel) ? GetAdditionalLocalPinLimit() : GetAdditionalPinLimit();

		if (window->nasked > window->distance / 2)
			return 0;
		room = Min(room, (int) Max(pins, window->nasked == 0));
	}
#endif
	return room;
}

/*
 * Asks for blocks until there are enough: the caller names them all first, which may take reads of its own.  wait: the
 * first will be waited for at once.
 */
static void
fill_window(LbtStream *stream, bool wait)
{
	Window	   *window = stream->window;
	int			size = window->max_distance + 1;
	int			room = window->ended ? 0 : room_in_window(stream);
	int			end = window->first + window->nasked;
	int			named;

	for (named = 0; named < room && !window->ended; named++)
	{
		Asked	   *last = &window->asked[(end + named) % size];

		window->ended = !next_in_file(stream, &last->block, &last->tag);
		if (window->ended)
			break;
		if (window->advice)
			advise(stream, last);
	}
#ifdef HAVE_ASYNC_READS
	if (!window->advice && named > 0)
	{
		/*
		 * One that is waited for is faster read by ourselves, while others
		 * are at those behind it.
		 */
		bool		waiting = wait && window->nasked == 0;

		pgaio_enter_batchmode();
		for (int i = waiting; i < named; i++)
			start_read(stream, &window->asked[(end + i) % size], 0);
		pgaio_exit_batchmode();
		if (waiting)
			start_read(stream, &window->asked[end % size], READ_BUFFERS_SYNCHRONOUSLY);
	}
#endif
	window->nasked += named;
}

/* The first block asked for, read. */
static Buffer
take_first(LbtStream *stream)
{
	Window	   *window = stream->window;
	Asked	   *asked = &window->asked[window->first];
	Buffer		buf;

#ifdef HAVE_ASYNC_READS
	if (!window->advice)
	{
		if (!asked->cached)
			WaitReadBuffers(&asked->read);
		buf = asked->buf;
	}
	else
#endif
		buf = ReadBuffer(stream->rel, asked->block);
	window->first = (window->first + 1) % (window->max_distance + 1);
	window->nasked--;
	return buf;
}

static Buffer
next_in_window(LbtStream *stream, uint32 *tag)
{
	Window	   *window = stream->window;
	const Asked *asked;

	fill_window(stream, true);
	if (window->nasked == 0)
		return InvalidBuffer;
	asked = &window->asked[window->first];
	stream->idle = asked->cached ? stream->idle + 1 : 0;
	if (!asked->cached)
	{
		int			growth = window->advice ? ADVICE_GROWTH : ++window->missed % READS_FOR_ONE == 0;

		window->distance = Min(window->distance + growth, window->max_distance);
	}
	*tag = asked->tag;
	return take_first(stream);
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

/* False when the server is set up for no reading ahead. */
static bool
begin(LbtStream *stream, bool all, bool scattered)
{
	int			max_distance;

#ifdef HAVE_READ_STREAM
	if (!scattered)
	{
		stream->reads = read_stream_begin_relation(all ? READ_STREAM_FULL : READ_STREAM_DEFAULT, NULL, stream->rel,
												   MAIN_FORKNUM, next_for_reads, stream, sizeof(uint32));
		return true;
	}
#endif
	max_distance = get_tablespace_io_concurrency(stream->rel->rd_rel->reltablespace);
	if (max_distance > 0)
		begin_window(stream, all, max_distance);
	return max_distance > 0;
}

static Buffer
next_buffer(LbtStream *stream, uint32 *tag)
{
#ifdef HAVE_READ_STREAM
	if (stream->window == NULL)
		return next_read(stream, tag);
#endif
	return next_in_window(stream, tag);
}

/* Waits for reads under way, and raises their errors. */
static void
end(LbtStream *stream)
{
	if (BufferIsValid(stream->waiting))
		ReleaseBuffer(stream->waiting);
#ifdef HAVE_READ_STREAM
	if (stream->window == NULL)
		read_stream_end(stream->reads);
#endif
#ifdef HAVE_ASYNC_READS
	if (stream->window != NULL && !stream->window->advice)
		while (stream->window->nasked > 0)
			ReleaseBuffer(take_first(stream));
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

void
lbt_stream_start(LbtStream *stream)
{
	if (stream->window == NULL || stream->owner == NULL)
		return;
	LBT_GUARD_BEGIN_AS(stream->owner);
	{
		fill_window(stream, false);
	}
	LBT_GUARD_END(release_owner(stream, false));
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
