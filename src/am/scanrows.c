/*
 * scanrows.c - read the table blocks of a scan's next rows ahead of need.
 *
 * Nothing here decides what a scan returns.  A walk of its own runs over the
 * entries in front of the scan, leaf by leaf, as the scan will, and names the
 * blocks of their rows to a stream.  What it finds may be wrong by the time
 * the scan comes there; then a block was read in vain, and no more.
 *
 *     entries   ... a1 a2 b1 c1 a3 | d1 d2 ...    block, line; | ends a leaf
 *                   |     |        |
 *                   |     |        the walk: has named b, c, a (not a twice)
 *                   |     the stream's next block
 *                   the scan
 *
 * Scan and stream keep step by the blocks: for each row in another block than
 * the row before, pass by the named ones up to that block.  A block that has
 * not been named (the entry is new, its page was all-visible) changes nothing.
 *
 * A scan whose rows are in shared buffers pays one comparison a row.  Reading
 * ahead starts if anybody but our engine reads between two rows
 * (pgBufferUsage), and one of the next rows' blocks is missing, too.  The
 * stream ends when it has had nothing to read for a while, or has named as
 * many entries as a LIMIT leaves to the scan.
 */
#include "am/scan.h"

#include "access/visibilitymap.h"
#include "executor/instrument.h"
#include "registry/settings.h"
#include "server/guard.h"
#include "server/stream.h"
#include "server/tableblock.h"
#include "utils/memutils.h"

/* Give the stream up after so many blocks in a row that were there anyway. */
#define MAX_IDLE 64

/* Give it up after so many rows in a row whose blocks were not named. */
#define MAX_UNNAMED 256

/* Blocks named and not passed by yet; a power of two. */
#define MAX_NAMED 1024

/* Give it up after so many entries without a block; an empty leaf is many. */
#define MAX_SAME_BLOCK 4096
#define EMPTY_LEAF 64

/* Blocks of the next rows to look for before reading ahead. */
#define MAX_ASKED 3

typedef struct LbtRows
{
	IndexScanDesc scan;
	LbtScan    *so;
	bool		failed;			/* the walk has met an error: no more walks */
	LbtStream  *stream;			/* or NULL */
	bool		forward;
	BlockNumber current;		/* of the row handed out last */
	int			unnamed;
	LbtLimit	limit;

	/* the walk */
	LbtWalk		walk;
	LbtProbe	probe;
	LbtLeafCopy leaf;
	int64		left;			/* entries that the scan will want, at most */
	BlockNumber last;			/* named last */
	uint32		nnamed;			/* by this stream */
	uint32		npassed;		/* of these passed by, at least */
	BlockNumber named[MAX_NAMED];	/* a ring */
} LbtRows;

void
lbt_rows_stop(LbtScan *so)
{
	lbt_stream_end(&so->rows->stream);
}

void
lbt_rows_free(LbtScan *so)
{
	lbt_rows_stop(so);
	if (so->rows->leaf.items)
		pfree(so->rows->leaf.items);
	pfree(so->rows);
	so->rows = NULL;
}

/* Does the executor read rows of the table, and from blocks of a file? */
static inline bool
reads_heap(IndexScanDesc scan)
{
	return scan->heapRelation != NULL && lbt_is_heap(scan->heapRelation);
}

/* May the executor skip the block, by the visibility map?  A hint. */
static bool
is_left_out(IndexScanDesc scan, BlockNumber block)
{
	Buffer		map = InvalidBuffer;
	bool		visible;

	if (!scan->xs_want_itup)
		return false;
	visible = VM_ALL_VISIBLE(scan->heapRelation, block, &map);
	if (BufferIsValid(map))
		ReleaseBuffer(map);
	return visible;
}

/* ---- the walk ---- */

/*
 * Pin, but do not lock, the leaf that the walk comes to next; InvalidBuffer if
 * it cannot go on.  Wait for the leaf to be read, as the scan will have to.
 */
static Buffer
next_rows_buffer(LbtRows *rows, bool stepping)
{
	Relation	rel = rows->scan->indexRelation;
	LbtScan    *so = rows->so;
	LbtTarget	target;
	BlockNumber block;

	if (stepping)
	{
		block = rows->leaf.sibling[rows->forward];
		if (block == P_NONE)
			return InvalidBuffer;
		lbt_ahead_sibling(rows->scan, so, &rows->walk, block, rows->forward);
	}
	else
	{
		int64		number = rows->leaf.probe[rows->forward] + (rows->forward ? 1 : -1);
		bool		asked;

		if (number < 0 || number >= so->nprobes)
			return InvalidBuffer;
		asked = lbt_ahead_predict(rows->scan, so, &rows->walk, number, rows->forward, &target);
		if (target.generation == 0)
			return InvalidBuffer;
		lbt_probe_go(so, &rows->probe, number);
		rows->walk.slot = target.slot;
		rows->walk.searched = target.generation;
		block = target.block;
		if (!lbt_slot_cached(rel, so->index, target.slot, true) &&
			(!asked || block >= so->index->nblocks))
			return InvalidBuffer;
	}
	return ReadBuffer(rel, block);
}

/* Read the walk's next leaf.  Drop errors: the scan may never come there. */
static bool
next_rows_leaf(LbtRows *rows)
{
	volatile bool found = false;

	LBT_GUARD_BEGIN_SILENTLY();
	{
		bool		stepping = rows->leaf.more[rows->forward];
		Buffer		buf;

		lbt_probe_go(rows->so, &rows->probe, rows->leaf.probe[rows->forward]);
		buf = next_rows_buffer(rows, stepping);
		found = BufferIsValid(buf) &&
			lbt_scan_look_at_leaf(rows->scan, rows->so, &rows->probe, &rows->leaf,
								  buf, stepping, rows->forward);
	}
	LBT_GUARD_END(rows->failed = true);
	return found && !rows->failed;
}

/* For the stream: the next row's block, if not that of the row before it. */
static bool
next_block(void *state, BlockNumber *block, uint32 *tag)
{
	LbtRows    *rows = state;
	LbtLeafCopy *leaf = &rows->leaf;

	for (int tries = 0; rows->left > 0 && tries < MAX_SAME_BLOCK &&
		 rows->nnamed - rows->npassed < MAX_NAMED; tries++)
	{
		if (leaf->at < 0 || leaf->at >= leaf->nitems)
		{
			if (!next_rows_leaf(rows))
				return false;
			tries += leaf->nitems > 0 ? 0 : EMPTY_LEAF;
			continue;
		}
		*block = ItemPointerGetBlockNumber(&leaf->items[leaf->at].tid);
		leaf->at += rows->forward ? 1 : -1;
		rows->left--;
		if (*block == rows->last)
			continue;
		rows->last = *block;
		if (is_left_out(rows->scan, *block))
			continue;
		*tag = rows->nnamed++;
		rows->named[*tag % MAX_NAMED] = *block;
		lbt_count(rows->so->index, LBT_EV_ROWS_PREFETCHED);
		rows->so->counts[LBT_EV_ROWS_PREFETCHED]++;
		return true;
	}
	return false;
}

/* ---- the scan's side ---- */

/* Is a block of the next rows missing?  Look at most at so many rows. */
static bool
will_miss_rows(IndexScanDesc scan, const LbtLeafCopy *cur, bool forward, int64 rows)
{
	BlockNumber last = InvalidBlockNumber;
	int			asked = 0;

	for (int at = cur->at; at >= 0 && at < cur->nitems && asked < MAX_ASKED && rows > 0;
		 at += forward ? 1 : -1, rows--)
	{
		BlockNumber block = ItemPointerGetBlockNumber(&cur->items[at].tid);

		if (block == last)
			continue;
		last = block;
		asked++;
		if (!is_left_out(scan, block) && !lbt_block_cached(scan->heapRelation, block))
			return true;
	}
	return false;
}

/* Begin the walk at the scan's current item. */
static void
begin_rows(IndexScanDesc scan, LbtScan *so, LbtRows *rows, bool forward)
{
	const LbtLeafCopy *cur = &so->cur;
	LbtLeafCopy *leaf = &rows->leaf;
	LbtItem    *items = leaf->items;
	int			capacity = leaf->capacity;
	int			from = forward ? cur->at : 0;
	int			n = forward ? cur->nitems - cur->at : cur->at + 1;

	if (capacity < n)
	{
		if (items)
			pfree(items);
		capacity = cur->capacity;
		items = MemoryContextAlloc(GetMemoryChunkContext(so), capacity * sizeof(LbtItem));
	}
	memcpy(items, cur->items + from, n * sizeof(LbtItem));
	*leaf = *cur;
	leaf->items = items;
	leaf->capacity = capacity;
	leaf->nitems = n;
	leaf->at = forward ? 0 : n - 1;
	leaf->tuples = NULL;
	leaf->buf = InvalidBuffer;
	rows->probe = so->probe;
	rows->walk = so->walk;
	rows->walk.for_rows = true;
	rows->walk.probe = &rows->probe;
	rows->last = rows->current = InvalidBlockNumber;
	rows->nnamed = rows->npassed = 0;
	rows->unnamed = 0;
	rows->forward = forward;
	rows->stream = lbt_stream_begin(GetMemoryChunkContext(so), scan->heapRelation,
									rows->left < LBT_NO_LIMIT && !rows->limit.merged,
									next_block, rows);
}

/* Has the block been named, with this number or a later one? */
static bool
is_named(const LbtRows *rows, uint32 number, BlockNumber block)
{
	for (; number != rows->nnamed; number++)
		if (rows->named[number % MAX_NAMED] == block)
			return true;
	return false;
}

/* Pass by the row's block in the stream, and what is in front of it. */
static void
keep_step(LbtRows *rows, BlockNumber block)
{
	uint32		number;

	if (block == rows->current)
		return;
	rows->current = block;
	while (lbt_stream_look(rows->stream, &number))
	{
		rows->npassed = number;
		if (rows->named[number % MAX_NAMED] != block && !is_named(rows, number, block))
		{
			if (++rows->unnamed > MAX_UNNAMED)
				break;
			return;
		}
		rows->unnamed = 0;
		lbt_stream_pass(rows->stream);
		if (rows->named[number % MAX_NAMED] == block)
			return;
	}
	lbt_rows_stop(rows->so);
}

void
lbt_rows_ahead(IndexScanDesc scan, LbtScan *so, bool forward)
{
	LbtRows    *rows = so->rows;

	if (!lbt_enable_row_prefetch || !reads_heap(scan))
	{
		if (rows)
			lbt_rows_stop(so);
		return;
	}
	if (rows == NULL)
	{
		rows = so->rows = MemoryContextAllocZero(GetMemoryChunkContext(so), sizeof(LbtRows));
		rows->scan = scan;
		rows->so = so;
	}
	if (rows->stream && (rows->forward != forward || lbt_stream_idle(rows->stream) >= MAX_IDLE))
		lbt_rows_stop(so);
	if (rows->stream == NULL && !rows->failed)
	{
		rows->left = lbt_limit_left(&rows->limit, scan);
		if (rows->left > 1 && will_miss_rows(scan, &so->cur, forward, rows->left))
			begin_rows(scan, so, rows, forward);
	}
	if (rows->stream)
		keep_step(rows, ItemPointerGetBlockNumber(&so->cur.items[so->cur.at].tid));
	if (rows->stream)
		so->reads_seen = LBT_ROWS_ACTIVE;
	else
		so->reads_seen = pgBufferUsage.shared_blks_read;
}
