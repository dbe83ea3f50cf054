/*
 * scanleaf.c - reading leaves: the first one of an interval, and stepping to the siblings.
 *
 * Every leaf that is read gets a predicate lock while its lock is held; so do leaves without matches,
 * as their key space is what a serializable scan has seen to be empty.
 */
#include "am/scan.h"

#include "learn/locate.h"
#include "miscadmin.h"
#include "storage/predicate.h"
#include "utils/memutils.h"

/* How far right to look for the true left sibling before asking the page itself again. */
#define LEFT_SIBLING_HOPS 4

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

/* Copy the items at [lo, hi) out of the locked page. */
static void
copy_items(IndexScanDesc scan, LbtLeafCopy *copy, Page page, OffsetNumber lo, OffsetNumber hi)
{
	Size		used = 0;

	copy->nitems = 0;
	for (OffsetNumber off = lo; off < hi; off++)
	{
		ItemId		iid = PageGetItemId(page, off);
		IndexTuple	itup = (IndexTuple) PageGetItem(page, iid);
		uint16		tuple;
		LbtItem    *item;

		if (scan->ignore_killed_tuples && ItemIdIsDead(iid))
			continue;
		tuple = scan->xs_want_itup ? copy_tuple(copy, itup, &used) : 0;
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

/*
 * Read the interval's part of a locked leaf into so->cur and unlock it; the pin stays or goes as
 * so->drop_pin says, and goes when there is nothing to hand out.  from, if valid, is the offset of the
 * interval's start on this leaf, to that of its end; otherwise the whole leaf may be within.
 */
static void
read_leaf(IndexScanDesc scan, LbtScan *so, Buffer buf, OffsetNumber from, OffsetNumber to,
		  ScanDirection dir)
{
	Relation	rel = scan->indexRelation;
	TupleDesc	tupdesc = RelationGetDescr(rel);
	const LbtKeySpec *spec = &so->index->keyspec;
	Page		page = BufferGetPage(buf);
	BTPageOpaque opaque = BTPageGetOpaque(page);
	OffsetNumber first = P_FIRSTDATAKEY(opaque);
	OffsetNumber last = PageGetMaxOffsetNumber(page);
	LbtLeafCopy *copy = &so->cur;
	bool		stepped = from == InvalidOffsetNumber && to == InvalidOffsetNumber;

	PredicateLockPage(rel, BufferGetBlockNumber(buf), scan->xs_snapshot);
	copy->more_left = from == InvalidOffsetNumber && !P_LEFTMOST(opaque);
	copy->more_right = to == InvalidOffsetNumber;
	if (from == InvalidOffsetNumber)
	{
		from = first;
		if (ScanDirectionIsBackward(dir))
		{
			from = lbt_page_search(spec, tupdesc, &so->start, page, first, last,
								   to == InvalidOffsetNumber ? first : to);
			if (from > first)
				copy->more_left = false;
		}
	}
	if (to == InvalidOffsetNumber)
	{
		to = last + 1;
		if (ScanDirectionIsForward(dir))
		{
			/* On a first leaf the end is likely near the start, on a later one the whole leaf is in. */
			to = lbt_page_search(spec, tupdesc, &so->end, page, from, last,
								 stepped ? last : from);
			copy->more_right = to > last &&
				lbt_bound_beyond_page(spec, tupdesc, &so->end, page);
		}
	}
	copy_items(scan, copy, page, from, to);
	copy->valid = true;
	copy->buf = buf;
	copy->block = BufferGetBlockNumber(buf);
	copy->left = opaque->btpo_prev;
	copy->right = opaque->btpo_next;
	copy->at = ScanDirectionIsForward(dir) ? 0 : copy->nitems - 1;
	if (so->drop_pin || copy->nitems == 0)
	{
		copy->lsn = so->drop_pin ? BufferGetLSNAtomic(buf) : InvalidXLogRecPtr;
		UnlockReleaseBuffer(buf);
		copy->buf = InvalidBuffer;
	}
	else
		LockBuffer(buf, BUFFER_LOCK_UNLOCK);
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
lock_left_sibling(Relation rel, BlockNumber self, BlockNumber left)
{
	while (left != P_NONE)
	{
		Buffer		buf;
		BTPageOpaque opaque;
		BlockNumber tried = left;

		CHECK_FOR_INTERRUPTS();
		buf = _bt_getbuf(rel, left, BT_READ);
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
lock_live_leaf(Relation rel, BlockNumber block)
{
	while (block != P_NONE)
	{
		Buffer		buf;
		BTPageOpaque opaque;

		CHECK_FOR_INTERRUPTS();
		buf = _bt_getbuf(rel, block, BT_READ);
		opaque = BTPageGetOpaque(BufferGetPage(buf));
		if (!P_IGNORE(opaque))
			return buf;
		block = opaque->btpo_next;
		_bt_relbuf(rel, buf);
	}
	return InvalidBuffer;
}

/* The leaf that the scan goes on with, pinned and locked; leaves so->cur. */
static Buffer
lock_sibling(IndexScanDesc scan, LbtScan *so, ScanDirection dir)
{
	Relation	rel = scan->indexRelation;
	BlockNumber self = so->cur.block;
	BlockNumber left = so->cur.left;
	BlockNumber right = so->cur.right;
	bool		more = ScanDirectionIsForward(dir) ? so->cur.more_right : so->cur.more_left;

	lbt_scan_leave(scan, so);
	if (!more)
		return InvalidBuffer;
	if (ScanDirectionIsForward(dir))
		return lock_live_leaf(rel, right);

	for (;;)
	{
		Buffer		buf = lock_left_sibling(rel, self, left);
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

bool
lbt_scan_step(IndexScanDesc scan, LbtScan *so, ScanDirection dir)
{
	for (;;)
	{
		Buffer		buf = lock_sibling(scan, so, dir);

		if (!BufferIsValid(buf))
			return false;
		lbt_test_for_old_snapshot(scan->xs_snapshot, scan->indexRelation, BufferGetPage(buf));
		prepare_copy(scan, so, &so->cur);
		read_leaf(scan, so, buf, InvalidOffsetNumber, InvalidOffsetNumber, dir);
		if (so->cur.nitems > 0)
			return true;
	}
}

bool
lbt_scan_first(IndexScanDesc scan, LbtScan *so, ScanDirection dir)
{
	Relation	rel = scan->indexRelation;
	bool		forward = ScanDirectionIsForward(dir);
	const LbtBound *bound = forward ? &so->start : &so->end;
	OffsetNumber offset;
	Buffer		buf;

	if (so->nothing)
		return false;
	lbt_count_index_search(scan);
	buf = lbt_locate(rel, so->index, bound, !forward, scan->xs_snapshot, &offset);
	if (!BufferIsValid(buf))
	{
		/* Race: the first insert may come before our lock on the whole (empty) index. */
		PredicateLockRelation(rel, scan->xs_snapshot);
		buf = lbt_locate(rel, so->index, bound, !forward, scan->xs_snapshot, &offset);
		if (!BufferIsValid(buf))
			return false;
	}
	prepare_copy(scan, so, &so->cur);
	read_leaf(scan, so, buf, forward ? offset : InvalidOffsetNumber,
			  forward ? InvalidOffsetNumber : offset, dir);
	return so->cur.nitems > 0 || lbt_scan_step(scan, so, dir);
}
