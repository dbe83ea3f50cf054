/*
 * scanleaf.c - reading leaves: the first one of a probe's interval, and stepping to the siblings.
 *
 * A leaf that has been locked for one probe also serves those that follow in the scan's direction, as long as
 * the bound they begin with lies on it.  See src/README, "Several probes on one leaf".
 *
 * Every leaf that is read gets a predicate lock while its lock is held; so do leaves without matches,
 * as their key space is what a serializable scan has seen to be empty.
 */
#include "am/scan.h"

#include "registry/counters.h"
#include "search/locate.h"
#include "train/train.h"
#include "miscadmin.h"
#include "storage/predicate.h"
#include "utils/memutils.h"

/* How far right to look for the true left sibling before asking the page itself again. */
#define LEFT_SIBLING_HOPS 4

/* Probes that one visit to a leaf may serve: its lock must not be held for long. */
#define MAX_PROBES_A_VISIT 2048

/*
 * Probes without a match, one after the other on a leaf, after which the next item is asked where to go on: lists
 * may have far more combinations than the index has tuples.
 */
#define MISSES_BEFORE_SEEK 4

/* Where the matches are on a locked leaf: runs of items, in the order in which they were found. */
typedef struct Run
{
	OffsetNumber from;
	OffsetNumber to;			/* the first item behind */
} Run;

typedef struct Runs
{
	int			n;
	Run			run[MaxIndexTuplesPerPage];
} Runs;

void
lbt_leafcopy_release(LbtLeafCopy *copy)
{
	if (BufferIsValid(copy->buf))
		ReleaseBuffer(copy->buf);
	copy->buf = InvalidBuffer;
	copy->valid = false;
}

void
lbt_scan_leave(IndexScanDesc scan, LbtScan *so)
{
	if (so->any_dead)
		lbt_scan_kill(scan, so);
	if (so->mark_at >= 0)
	{
		/* The mark is on this leaf: it keeps the copy and the pin. */
		LbtLeafCopy spare = so->mark;

		Assert(!spare.valid);
		so->mark = so->cur;
		so->mark.at = so->mark_at;
		so->mark_at = -1;
		so->cur = spare;
	}
	lbt_leafcopy_release(&so->cur);
}

static inline LbtItem *
new_item(LbtLeafCopy *copy)
{
	if (unlikely(copy->nitems == copy->capacity))
	{
		copy->capacity *= 2;
		copy->items = repalloc(copy->items, copy->capacity * sizeof(LbtItem));
	}
	return &copy->items[copy->nitems++];
}

/*
 * Copy an index tuple for an index-only scan; of a posting list tuple only the key, as a plain tuple
 * with the first heap TID.  Returns its offset; *used grows.
 */
static inline uint16
copy_tuple(LbtLeafCopy *copy, IndexTuple itup, Size *used)
{
	uint16		offset = (uint16) *used;
	IndexTuple	to = (IndexTuple) (copy->tuples + *used);
	Size		size;

	if (BTreeTupleIsPosting(itup))
	{
		size = MAXALIGN(BTreeTupleGetPostingOffset(itup));
		memcpy(to, itup, size);
		to->t_info = (itup->t_info & ~(INDEX_SIZE_MASK | INDEX_ALT_TID_MASK)) | size;
		to->t_tid = *BTreeTupleGetPosting(itup);
	}
	else
	{
		size = IndexTupleSize(itup);
		memcpy(to, itup, size);
	}
	*used += MAXALIGN(size);
	return offset;
}

/* Copy the items of a run out of the locked page, behind those copied before; *used as for copy_tuple(). */
static void
copy_items(IndexScanDesc scan, LbtLeafCopy *copy, Page page, const Run *run, Size *used)
{
	for (OffsetNumber off = run->from; off < run->to; off++)
	{
		ItemId		iid = PageGetItemId(page, off);
		IndexTuple	itup = (IndexTuple) PageGetItem(page, iid);
		uint16		tuple;
		LbtItem    *item;

		if (scan->ignore_killed_tuples && ItemIdIsDead(iid))
			continue;
		tuple = scan->xs_want_itup ? copy_tuple(copy, itup, used) : 0;
		if (!BTreeTupleIsPosting(itup))
		{
			item = new_item(copy);
			item->tid = itup->t_tid;
			item->offset = off;
			item->tuple = tuple;
			item->dead = false;
			continue;
		}
		for (int i = 0; i < BTreeTupleGetNPosting(itup); i++)
		{
			item = new_item(copy);
			item->tid = *BTreeTupleGetPostingN(itup, i);
			item->offset = off;
			item->tuple = tuple;
			item->dead = false;
		}
	}
}

static inline void
add_run(Runs *runs, OffsetNumber from, OffsetNumber to)
{
	if (from < to)
		runs->run[runs->n++] = (Run) {.from = from,.to = to};
}

/*
 * Find the matches of so->probe and of the probes after it on a locked leaf.  at: the offset of the probe's
 * start bound, or, having stepped here from the left, InvalidOffsetNumber.
 */
static void
find_forward(LbtScan *so, TupleDesc tupdesc, Page page, OffsetNumber at, Runs *runs)
{
	const LbtKeySpec *spec = &so->index->keyspec;
	BTPageOpaque opaque = BTPageGetOpaque(page);
	OffsetNumber last = PageGetMaxOffsetNumber(page);
	LbtLeafCopy *copy = &so->cur;
	LbtProbe   *probe = &so->probe;
	bool		stepped = at == InvalidOffsetNumber;
	OffsetNumber from = stepped ? P_FIRSTDATAKEY(opaque) : at;
	OffsetNumber guess = stepped ? last : from; /* the end is likely near a start, but not when all is in */
	int			misses = 0;

	copy->first_probe = probe->number;
	copy->more_left = stepped && !P_LEFTMOST(opaque);
	for (int served = 1;; served++)
	{
		OffsetNumber to = lbt_page_search(spec, tupdesc, &probe->end, page, from, last, guess);
		int64		next = probe->number + 1;

		misses = from < to ? 0 : misses + 1;
		add_run(runs, from, to);
		copy->last_probe = probe->number;
		copy->more_right = to > last && lbt_bound_beyond_page(spec, tupdesc, &probe->end, page);
		if (copy->more_right || probe->number + 1 == so->nprobes || served == MAX_PROBES_A_VISIT)
			return;
		if (to > last && P_RIGHTMOST(opaque))
		{
			copy->last_probe = so->nprobes - 1; /* nothing lies behind this page's items */
			return;
		}
		if (misses > MISSES_BEFORE_SEEK)
			next = Max(next, lbt_probe_seek(so, tupdesc, lbt_page_tuple(page, to > last ? P_HIKEY : to),
											to > last, true));
		copy->last_probe = next - 1;
		if (next == so->nprobes)
			return;
		lbt_probe_go(so, probe, next);
		from = lbt_page_search(spec, tupdesc, &probe->start, page, to, last, to);
		if (from > last && lbt_bound_beyond_page(spec, tupdesc, &probe->start, page))
			return;
		guess = from;
	}
}

/*
 * The same for the probes before it.  at: the offset of the probe's end bound, or, having stepped here from the
 * right, InvalidOffsetNumber.
 */
static void
find_backward(LbtScan *so, TupleDesc tupdesc, Page page, OffsetNumber at, Runs *runs)
{
	const LbtKeySpec *spec = &so->index->keyspec;
	BTPageOpaque opaque = BTPageGetOpaque(page);
	OffsetNumber first = P_FIRSTDATAKEY(opaque);
	LbtLeafCopy *copy = &so->cur;
	LbtProbe   *probe = &so->probe;
	bool		stepped = at == InvalidOffsetNumber;
	OffsetNumber to = stepped ? PageGetMaxOffsetNumber(page) + 1 : at;
	OffsetNumber guess = stepped ? first : to;
	int			misses = 0;

	copy->last_probe = probe->number;
	copy->more_right = stepped;
	for (int served = 1;; served++)
	{
		OffsetNumber from = lbt_page_search(spec, tupdesc, &probe->start, page, first, to - 1, guess);
		int64		next = probe->number - 1;

		misses = from < to ? 0 : misses + 1;
		add_run(runs, from, to);
		copy->first_probe = probe->number;
		copy->more_left = from == first && !P_LEFTMOST(opaque);
		if (copy->more_left || probe->number == 0 || served == MAX_PROBES_A_VISIT)
			return;
		if (from == first)
		{
			copy->first_probe = 0;	/* nothing lies before the leftmost page's items */
			return;
		}

		if (misses > MISSES_BEFORE_SEEK)
			next = Min(next, lbt_probe_seek(so, tupdesc, lbt_page_tuple(page, from - 1), false, false));
		copy->first_probe = next + 1;
		if (next < 0)
			return;

		/* Where the page begins is not known: its first item must be before the bound. */
		lbt_probe_go(so, probe, next);
		to = lbt_page_search(spec, tupdesc, &probe->end, page, first, from - 1, from - 1);
		if (to == first && !P_LEFTMOST(opaque))
			return;
		guess = to;
	}
}

/*
 * Read a locked leaf's part of the scan, from this probe on, into so->cur and unlock it; the pin stays or goes
 * as so->drop_pin says, and goes when there is nothing to hand out.  at is the offset of the bound that the
 * probe begins with in this direction, or InvalidOffsetNumber when the scan has stepped here.
 */
static void
read_leaf(IndexScanDesc scan, LbtScan *so, Buffer buf, int64 probe, OffsetNumber at, ScanDirection dir)
{
	Relation	rel = scan->indexRelation;
	Page		page = BufferGetPage(buf);
	BTPageOpaque opaque = BTPageGetOpaque(page);
	LbtLeafCopy *copy = &so->cur;
	bool		forward = ScanDirectionIsForward(dir);
	Size		used = 0;
	Runs		runs;

	PredicateLockPage(rel, BufferGetBlockNumber(buf), scan->xs_snapshot);
	lbt_probe_go(so, &so->probe, probe);
	runs.n = 0;
	if (forward)
		find_forward(so, RelationGetDescr(rel), page, at, &runs);
	else
		find_backward(so, RelationGetDescr(rel), page, at, &runs);

	copy->nitems = 0;
	for (int i = 0; i < runs.n; i++)
		copy_items(scan, copy, page, &runs.run[forward ? i : runs.n - 1 - i], &used);
	copy->valid = true;
	copy->buf = buf;
	copy->block = BufferGetBlockNumber(buf);
	copy->left = opaque->btpo_prev;
	copy->right = opaque->btpo_next;
	copy->at = forward ? 0 : copy->nitems - 1;
	if (so->drop_pin || copy->nitems == 0)
	{
		copy->lsn = so->drop_pin ? BufferGetLSNAtomic(buf) : InvalidXLogRecPtr;
		_bt_relbuf(scan->indexRelation, buf);
		copy->buf = InvalidBuffer;
	}
	else
		_bt_unlockbuf(scan->indexRelation, buf);
}

/*
 * A leaf that the scan has to visit next, pinned and share-locked: through the pin of one brought in ahead, or
 * read now.
 */
static Buffer
lock_leaf(IndexScanDesc scan, LbtScan *so, BlockNumber block, ScanDirection dir)
{
	Relation	rel = scan->indexRelation;
	Buffer		buf = lbt_ahead_sibling(scan, so, block, dir);

	if (!BufferIsValid(buf))
		buf = _bt_getbuf(rel, block, BT_READ);
	else
	{
		_bt_lockbuf(rel, buf, BT_READ);
		_bt_checkpage(rel, buf);
	}
	lbt_ahead_note(scan, so, block, buf);
	return buf;
}

/*
 * The left sibling of so->cur's leaf, pinned and locked; InvalidBuffer when there is none any more.
 *
 * Race: since the leaf was read, its left sibling may have split (then the sibling is some hops right
 * of where it was), been deleted (then the leaf's own left link has changed), or the leaf itself may
 * have been deleted (then its key space is part of the first live page to its right, whose left sibling
 * is the one wanted).  A page is the left sibling only if its right link says so.  None of the pages
 * can have been recycled while our snapshot lives.
 */
static Buffer
lock_left_sibling(IndexScanDesc scan, LbtScan *so, BlockNumber self, BlockNumber left)
{
	Relation	rel = scan->indexRelation;

	while (left != P_NONE)
	{
		Buffer		buf;
		BTPageOpaque opaque;
		BlockNumber tried = left;

		CHECK_FOR_INTERRUPTS();
		buf = lock_leaf(scan, so, left, BackwardScanDirection);
		for (int hops = 0;; hops++)
		{
			opaque = BTPageGetOpaque(BufferGetPage(buf));
			if (!P_ISDELETED(opaque) && opaque->btpo_next == self)
				return buf;
			if (P_RIGHTMOST(opaque) || hops == LEFT_SIBLING_HOPS)
				break;
			buf = _bt_relandgetbuf(rel, buf, opaque->btpo_next, BT_READ);
		}

		/* Ask the leaf itself, or whoever took its key space. */
		buf = _bt_relandgetbuf(rel, buf, self, BT_READ);
		opaque = BTPageGetOpaque(BufferGetPage(buf));
		if (!P_ISDELETED(opaque) && opaque->btpo_prev == tried)
			ereport(ERROR,
					(errcode(ERRCODE_INDEX_CORRUPTED),
					 errmsg("could not find left sibling of block %u in index \"%s\"",
							self, RelationGetRelationName(rel)),
					 errhint("Please REINDEX it.")));
		while (P_ISDELETED(opaque))
		{
			if (P_RIGHTMOST(opaque))
				ereport(ERROR,
						(errcode(ERRCODE_INDEX_CORRUPTED),
						 errmsg("fell off the end of index \"%s\"", RelationGetRelationName(rel)),
						 errhint("Please REINDEX it.")));
			self = opaque->btpo_next;
			buf = _bt_relandgetbuf(rel, buf, self, BT_READ);
			opaque = BTPageGetOpaque(BufferGetPage(buf));
		}
		left = opaque->btpo_prev;
		_bt_relbuf(rel, buf);
	}
	return InvalidBuffer;
}

/* The next live leaf at or right of a block, pinned and locked; InvalidBuffer when there is none. */
static Buffer
lock_live_leaf(IndexScanDesc scan, LbtScan *so, BlockNumber block)
{
	while (block != P_NONE)
	{
		Buffer		buf;
		BTPageOpaque opaque;

		CHECK_FOR_INTERRUPTS();
		buf = lock_leaf(scan, so, block, ForwardScanDirection);
		opaque = BTPageGetOpaque(BufferGetPage(buf));
		if (!P_IGNORE(opaque))
			return buf;
		block = opaque->btpo_next;
		_bt_relbuf(scan->indexRelation, buf);
	}
	return InvalidBuffer;
}

/*
 * The sibling on which so->cur's first or last probe goes on, pinned and locked; InvalidBuffer when there is none
 * any more.  Leaves so->cur.
 */
static Buffer
lock_sibling(IndexScanDesc scan, LbtScan *so, ScanDirection dir)
{
	Relation	rel = scan->indexRelation;
	BlockNumber self = so->cur.block;
	BlockNumber left = so->cur.left;
	BlockNumber right = so->cur.right;

	lbt_probe_go(so, &so->probe, ScanDirectionIsForward(dir) ? so->cur.last_probe : so->cur.first_probe);
	lbt_scan_leave(scan, so);
	if (ScanDirectionIsForward(dir))
		return lock_live_leaf(scan, so, right);

	for (;;)
	{
		Buffer		buf = lock_left_sibling(scan, so, self, left);
		BTPageOpaque opaque;

		if (!BufferIsValid(buf))
			return InvalidBuffer;
		opaque = BTPageGetOpaque(BufferGetPage(buf));
		if (!P_IGNORE(opaque))
			return buf;
		self = BufferGetBlockNumber(buf);	/* half-dead: it has no items, go on */
		left = opaque->btpo_prev;
		_bt_relbuf(rel, buf);
	}
}

/* Make room for a leaf's matches. */
static void
prepare_copy(IndexScanDesc scan, LbtScan *so, LbtLeafCopy *copy)
{
	MemoryContext context = GetMemoryChunkContext(so);

	if (copy->items == NULL)
	{
		copy->capacity = 64;
		copy->items = MemoryContextAlloc(context, copy->capacity * sizeof(LbtItem));
	}
	if (scan->xs_want_itup && copy->tuples == NULL)
		copy->tuples = MemoryContextAlloc(context, BLCKSZ);
}

/*
 * The leaf that a probe begins on in this direction, pinned and locked, with the offset of its first bound;
 * InvalidBuffer when the index is empty.
 */
static Buffer
lock_probe(IndexScanDesc scan, LbtScan *so, int64 number, ScanDirection dir, OffsetNumber *offset)
{
	Relation	rel = scan->indexRelation;
	bool		forward = ScanDirectionIsForward(dir);
	LbtTarget	target;
	LbtOutcome	outcome;
	Buffer		buf;

	CHECK_FOR_INTERRUPTS();
	lbt_ahead_predict(scan, so, number, dir, &target);
	lbt_probe_go(so, &so->probe, number);
	lbt_count_index_search(scan);
	for (int i = 0; i < 2; i++)
	{
		lbt_look_at_misses(rel, so->index);
		buf = lbt_locate(rel, so->index, forward ? &so->probe.start : &so->probe.end, !forward,
						 scan->xs_snapshot, offset, &target, &outcome);
		lbt_count_lookup(so->index, outcome.event, outcome.moved);
		if (BufferIsValid(buf))
			break;
		/* Race: the first insert may come before our lock on the whole (empty) index. */
		PredicateLockRelation(rel, scan->xs_snapshot);
		target.generation = 0;
	}
	so->slot = target.slot;
	so->slot_generation = target.generation;
	so->steps = 0;
	return buf;
}

/* From so->cur, or, when it is not valid, from this probe on: the next leaf with matches. */
static bool
read_on(IndexScanDesc scan, LbtScan *so, int64 probe, ScanDirection dir)
{
	bool		forward = ScanDirectionIsForward(dir);

	for (;;)
	{
		OffsetNumber offset = InvalidOffsetNumber;
		bool		more = false;
		Buffer		buf;

		if (so->cur.valid)
		{
			more = forward ? so->cur.more_right : so->cur.more_left;
			probe = forward ? so->cur.last_probe : so->cur.first_probe;
			if (!more)
			{
				probe += forward ? 1 : -1;
				lbt_scan_leave(scan, so);
			}
		}
		if (more)
			buf = lock_sibling(scan, so, dir);
		else if (probe >= 0 && probe < so->nprobes)
			buf = lock_probe(scan, so, probe, dir, &offset);
		else
			buf = InvalidBuffer;
		if (!BufferIsValid(buf))
		{
			lbt_ahead_stop(so);
			return false;
		}
		if (more)
			lbt_test_for_old_snapshot(scan->xs_snapshot, scan->indexRelation, BufferGetPage(buf));
		prepare_copy(scan, so, &so->cur);
		read_leaf(scan, so, buf, probe, offset, dir);
		if (so->cur.nitems > 0)
			return true;
	}
}

bool
lbt_scan_step(IndexScanDesc scan, LbtScan *so, ScanDirection dir)
{
	return read_on(scan, so, 0, dir);
}

bool
lbt_scan_first(IndexScanDesc scan, LbtScan *so, ScanDirection dir)
{
	if (so->nothing)
		return false;
	return read_on(scan, so, ScanDirectionIsForward(dir) ? 0 : so->nprobes - 1, dir);
}
