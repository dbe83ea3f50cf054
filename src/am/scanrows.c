/*
 * scanrows.c - read the table blocks of a scan's next rows ahead of need: a
 * walk names them to a stream (src/README, "Rows ahead of need").
 *
 *     entries   ... a1 a2 b1 c1 a3 | d1 d2 ...    block, line; | ends a leaf
 *                   |     |        |
 *                   |     |        the walk: has named b, c, a (not a twice)
 *                   |     the stream's next block
 *                   the scan
 */
#include "am/scan.h"

#include "access/visibilitymap.h"
#include "executor/instrument.h"
#include "server/executor.h"

/*
 * Give up after this many entries without a block.  A leaf without matches is
 * many: one that a probe of a list leads to, as others may have some; more so
 * a sibling, which may have to be read.
 */
#define MAX_SAME_BLOCK 4096
#define EMPTY_LEAF 64
#define EMPTY_SIBLING 1024

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
	bool		merged;			/* other scans' rows may come instead */
	LimitState *limit;			/* above the scan, as long as it; or NULL */

	/* the walk */
	LbtWalk		walk;
	LbtLeafCopy leaf;
	int64		left;			/* entries that the scan will want, at most */
	BlockNumber last;			/* named last */
} LbtRows;

void
lbt_rows_stop(LbtScan *so)
{
	lbt_stream_end(&so->rows->stream);
	if (so->rows->leaf.items)
		pfree(so->rows->leaf.items);
	so->rows->leaf.items = NULL;
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
 * The leaf that the walk comes to next; InvalidBlockNumber if it cannot go on.
 * It may have to be read, as the scan will have to.
 */
static BlockNumber
next_rows_block(LbtRows *rows, bool stepping)
{
	Relation	rel = rows->scan->indexRelation;
	LbtScan    *so = rows->so;
	BlockNumber block = rows->leaf.sibling[rows->forward];
	int64		number = rows->leaf.probe[rows->forward] + (rows->forward ? 1 : -1);
	LbtTarget	target;
	bool		asked;

	if (stepping && block == P_NONE)
		return InvalidBlockNumber;
	if (stepping)
	{
		lbt_ahead_sibling(rows->scan, so, &rows->walk, block, rows->forward);
		return block;
	}
	if (number < 0 || number >= so->nprobes)
		return InvalidBlockNumber;
	asked = lbt_ahead_predict(rows->scan, so, &rows->walk, number, rows->forward, &target);
	if (target.generation == 0)
		return InvalidBlockNumber;
	lbt_probe_go(so, &rows->walk.probe, number);
	rows->walk.slot = target.slot;
	rows->walk.searched = target.generation;
	if (!lbt_slot_cached(rel, so->index, target.slot) &&
		(!asked || target.block >= so->index->nblocks))
		return InvalidBlockNumber;
	return target.block;
}

/*
 * Read the walk's next leaf.  Drop errors of reading: the scan may never come
 * there.  Its items are compared as the scan compares them.
 */
static bool
next_rows_leaf(LbtRows *rows, bool stepping)
{
	BlockNumber block;
	Buffer		buf;

	/* Of rows that need no block of the table, many leaves may come. */
	CHECK_FOR_INTERRUPTS();
	lbt_probe_go(rows->so, &rows->walk.probe, rows->leaf.probe[rows->forward]);
	block = next_rows_block(rows, stepping);
	if (block == InvalidBlockNumber)
		return false;
	buf = lbt_bt_try_read(rows->scan->indexRelation, block);
	rows->failed = !BufferIsValid(buf);
	return !rows->failed &&
		lbt_scan_look_at_leaf(rows->scan, rows->so, &rows->walk.probe, &rows->leaf, buf, stepping,
							  rows->forward);
}

/* For the stream: the next row's block, if not that of the row before it. */
static bool
next_block(void *state, BlockNumber *block)
{
	LbtRows    *rows = state;
	LbtLeafCopy *leaf = &rows->leaf;

	for (int tries = 0; rows->left > 0 && tries < MAX_SAME_BLOCK; tries++)
	{
		if (leaf->at < 0 || leaf->at >= leaf->nitems)
		{
			bool		stepping = leaf->more[rows->forward];

			if (!next_rows_leaf(rows, stepping))
				return false;
			if (leaf->nitems == 0)
				tries += stepping ? EMPTY_SIBLING : EMPTY_LEAF;
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
		return true;
	}
	return false;
}

/* The most rows that are still wanted, with the current one. */
static int64
rows_left(const LbtRows *rows)
{
	int64		all = lbt_limit_rows(rows->limit);

	return all == LBT_NO_LIMIT ? all : all - rows->limit->position;
}

/* ---- the scan's side ---- */

/* Is a block of the next rows missing?  Look no further than rows of them. */
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
		if (!is_left_out(scan, block) && !lbt_block_is_there(scan->heapRelation, block))
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
	LbtItem    *items = MemoryContextAlloc(GetMemoryChunkContext(so),
										   cur->capacity * sizeof(LbtItem));

	memcpy(items, cur->items, cur->nitems * sizeof(LbtItem));
	lbt_rows_stop(so);
	*leaf = *cur;
	leaf->items = items;
	leaf->tuples = NULL;
	leaf->buf = InvalidBuffer;
	rows->walk = so->walk;
	rows->last = rows->current = InvalidBlockNumber;
	rows->forward = forward;
	rows->stream = lbt_stream_begin(GetMemoryChunkContext(so), scan->heapRelation,
									rows->left < LBT_NO_LIMIT && !rows->merged,
									next_block, rows, &so->rows_ahead);
}

void
lbt_rows_ahead(IndexScanDesc scan, LbtScan *so, bool forward)
{
	LbtRows    *rows = so->rows;
	BlockNumber block;

	if (!lbt_enable_row_prefetch || !lbt_is_heap(scan->heapRelation))
		return;
	if (rows == NULL)
	{
		rows = so->rows = MemoryContextAllocZero(GetMemoryChunkContext(so), sizeof(LbtRows));
		rows->scan = scan;
		rows->so = so;
		rows->limit = lbt_limit_above(scan, true, &rows->merged);
	}
	if (rows->forward != forward)
		lbt_rows_stop(so);
	if (rows->stream == NULL && !rows->failed && !lbt_tally_wasted(&so->rows_ahead) &&
		lbt_read_distance(scan->heapRelation) > 0)
	{
		rows->left = rows_left(rows);
		if (rows->left > 1 && will_miss_rows(scan, &so->cur, forward, rows->left))
			begin_rows(scan, so, rows, forward);
	}
	block = ItemPointerGetBlockNumber(&so->cur.items[so->cur.at].tid);
	if (rows->stream && block != rows->current)
		(void) lbt_stream_reach(&rows->stream, block);
	rows->current = block;
	so->reads_seen = rows->stream ? LBT_ROWS_ACTIVE : pgBufferUsage.shared_blks_read;
}
