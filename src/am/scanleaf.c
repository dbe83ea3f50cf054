/*
 * scanleaf.c - read a probe's first leaf, step to siblings, mark dead entries
 * (src/README, "Several probes on one leaf", "Races").
 */
#include "am/am.h"

#include "am/scan.h"
#include "executor/instrument.h"
#include "optimizer/optimizer.h"
#include "train/demand.h"
#include "storage/predicate.h"

/* Hops right to find the left sibling, before asking the page itself again. */
#define LEFT_SIBLING_HOPS 4

/* Probes that one visit to a leaf may serve: do not hold its lock for long. */
#define MAX_PROBES_A_VISIT 2048

/* Items to allocate at first; later, as many as a leaf can have. */
#define FEW_ITEMS 64

/*
 * Of a leaf that a scan by groups may leave at once, copy one entry, and of a
 * posting list that the scan begins with, this many heap TIDs.
 */
#define CUT_TIDS 4

void
lbt_leafcopy_release(LbtLeafCopy *copy)
{
	if (BufferIsValid(copy->buf))
		ReleaseBuffer(copy->buf);
	copy->buf = InvalidBuffer;
	copy->valid = false;
	for (int i = 0; i < 2; i++)
	{
		if (unlikely(copy->beyond[i] != NULL))
			pfree(copy->beyond[i]);
		copy->beyond[i] = NULL;
	}
}

/* ---- mark entries that point to dead heap tuples, for later scans ---- */

/* Does the index tuple hold exactly the heap TIDs of these n items? */
static bool
same_entry(LbtItem *items, int n, IndexTuple itup)
{
	bool		posting = BTreeTupleIsPosting(itup);
	ItemPointer tids = posting ? BTreeTupleGetPosting(itup) : &itup->t_tid;

	if (n != (posting ? BTreeTupleGetNPosting(itup) : 1))
		return false;
	for (int i = 0; i < n; i++)
		if (!ItemPointerEquals(&tids[i], &items[i].tid))
			return false;
	return true;
}

/*
 * Mark the entries all of whose items are dead; true if any was not before.
 * On an unchanged page an entry is where it was; on another, inserts can only
 * have moved it right.  The page is share-locked.
 */
static bool
mark_entries(const LbtLeafCopy *copy, Buffer buf, bool unchanged)
{
	Page		page = BufferGetPage(buf);
	OffsetNumber last = PageGetMaxOffsetNumber(page);
	OffsetNumber next = P_FIRSTDATAKEY(BTPageGetOpaque(page));
	bool		any = false;
	int			n;

	for (int i = 0; i < copy->nitems; i += n)
	{
		LbtItem    *items = &copy->items[i];
		OffsetNumber offset = Max(items->offset, next);
		bool		dead = true;

		/* more than one item at an offset are a posting list */
		for (n = 0; i + n < copy->nitems && items[n].offset == items->offset; n++)
			dead &= items[n].dead;
		if (!dead)
			continue;
		while (offset <= last && !same_entry(items, n, lbt_page_tuple(page, offset)))
			offset = unchanged ? last + 1 : offset + 1;
		if (offset > last)
			continue;
		next = offset + 1;
		if (!ItemIdIsDead(PageGetItemId(page, offset)))
		{
			if (!any && !lbt_hints_begin(buf))
				return false;
			ItemIdMarkDead(PageGetItemId(page, offset));
			any = true;
		}
	}
	return any;
}

/*
 * Set LP_DEAD on the entries of so->cur whose items are dead, if still safe:
 * if the pin was held, or the page has the LSN that we read (src/README,
 * "Marking entries dead").
 */
static void
kill_items(IndexScanDesc scan, LbtScan *so)
{
	Relation	rel = scan->indexRelation;
	bool		pinned = BufferIsValid(so->cur.buf);
	Buffer		buf = so->cur.buf;
	bool		unchanged;

	so->any_dead = false;
	if (pinned)
		_bt_lockbuf(rel, buf, BT_READ);
	else
		buf = _bt_getbuf(rel, so->cur.block, BT_READ);

	/* Before 19, unlogged relations have no LSN, and are always pinned. */
	unchanged = !pinned && BufferGetLSNAtomic(buf) == so->cur.lsn;
	if ((pinned || unchanged) && mark_entries(&so->cur, buf, unchanged))
	{
		BTPageGetOpaque(BufferGetPage(buf))->btpo_flags |= BTP_HAS_GARBAGE;
		lbt_hints_finish(buf);
	}
	if (pinned)
		_bt_unlockbuf(rel, buf);
	else
		_bt_relbuf(rel, buf);
}

void
lbt_scan_leave(IndexScanDesc scan, LbtScan *so)
{
	if (so->any_dead)
		kill_items(scan, so);
	if (so->mark_at >= 0)
	{
		/* The mark is on this leaf: it keeps the copy and the pin. */
		Assert(!so->mark.valid);
		lbt_scan_swap_mark(so);
		so->mark.at = so->mark_at;
		so->mark_at = -1;
	}
	lbt_leafcopy_release(&so->cur);
}

/* ---- reading a leaf ---- */

/* Copy a tuple; of a posting list, a plain one with the first heap TID. */
static inline Size
copy_tuple(IndexTuple to, IndexTuple itup)
{
	bool		posting = BTreeTupleIsPosting(itup);
	Size		size = posting ? BTreeTupleGetPostingOffset(itup) : IndexTupleSize(itup);

	memcpy(to, itup, size);
	if (posting)
	{
		to->t_info = (itup->t_info & ~(INDEX_SIZE_MASK | INDEX_ALT_TID_MASK)) | size;
		to->t_tid = *BTreeTupleGetPosting(itup);
	}
	return MAXALIGN(size);
}

/* Add a copied entry's heap TIDs; there is memory for them. */
static inline void
add_items(LbtLeafCopy *copy, const ItemPointerData *tids, int n, OffsetNumber offset, uint16 tuple)
{
	LbtItem    *item = &copy->items[copy->nitems];

	copy->nitems += n;
	for (int i = 0; i < n; i++, item++)
	{
		item->tid = tids[i];
		item->offset = offset;
		item->tuple = tuple;
		item->dead = false;
		item->buffer = InvalidBuffer;
	}
}

/* Make room for as many items as a leaf can have, if n more do not fit. */
static inline void
reserve_items(LbtLeafCopy *copy, int n)
{
	if (likely(copy->nitems + n <= copy->capacity))
		return;
	copy->capacity = MaxTIDsPerBTreePage;
	copy->items = repalloc(copy->items, copy->capacity * sizeof(LbtItem));
}

/*
 * Append the items of a run on the locked page to the copy; tuples, too, if it
 * has memory for them, after *used bytes.  most: of each posting list's TIDs.
 * rows: are there row comparisons?
 */
static pg_attribute_always_inline void
copy_items(IndexScanDesc scan, const LbtScan *so, LbtLeafCopy *copy, Page page, const LbtRun *run,
		   Size *used, int most, bool rows)
{
	bool		skip_dead = scan->ignore_killed_tuples;
	bool		want_tuples = copy->tuples != NULL;

	reserve_items(copy, run->to - run->from);
	for (OffsetNumber off = run->from; off < run->to; off++)
	{
		ItemId		iid = PageGetItemId(page, off);
		IndexTuple	itup = (IndexTuple) PageGetItem(page, iid);
		uint16		tuple = 0;

		if (skip_dead && ItemIdIsDead(iid))
			continue;
		if (rows && IndexTupleHasNulls(itup) &&
			!lbt_row_matches(so, RelationGetDescr(scan->indexRelation), itup))
			continue;
		if (want_tuples)
		{
			tuple = (uint16) *used;
			*used += copy_tuple((IndexTuple) (copy->tuples + tuple), itup);
		}
		if (likely(!BTreeTupleIsPosting(itup)))
			add_items(copy, &itup->t_tid, 1, off, tuple);
		else
		{
			int			n = Min(BTreeTupleGetNPosting(itup), most);

			reserve_items(copy, n + run->to - off);
			add_items(copy, BTreeTupleGetPosting(itup), n, off, tuple);
		}
	}
}

/*
 * Find the matches of a probe, and of those after it in the scan's direction,
 * on a locked leaf, as runs; returns how many.  at: the offset of the bound
 * that the probe begins with; InvalidOffsetNumber if we have stepped here.
 *
 * Each probe's items lie between near and far, offsets of the first items not
 * before its bounds: forward, near <= far; backward, far <= near.  Look for
 * the far end from the near one on, as few items match; after a step, or with
 * filters, from the leaf's end, as most often all do.
 */
static pg_attribute_always_inline int
find_matches(const LbtScan *so, LbtProbe *probe, LbtLeafCopy *copy, TupleDesc tupdesc,
			 Page page, OffsetNumber at, LbtRun *run, bool forward)
{
	const LbtKeySpec *spec = &so->index->keyspec;
	BTPageOpaque opaque = BTPageGetOpaque(page);
	OffsetNumber first = P_FIRSTDATAKEY(opaque);
	OffsetNumber last = PageGetMaxOffsetNumber(page);
	const LbtBound *near_bound = forward ? &probe->start : &probe->end;
	const LbtBound *far_bound = forward ? &probe->end : &probe->start;
	int64		last_probe = forward ? so->nprobes - 1 : 0;
	bool		stepped = at == InvalidOffsetNumber;
	OffsetNumber near = !stepped ? at : forward ? first : last + 1;
	OffsetNumber guess = !stepped && so->nfilters == 0 ? at : forward ? last : first;
	int			n = 0;

	copy->probe[!forward] = probe->number;
	copy->more[!forward] = stepped && (forward ? !P_LEFTMOST(opaque) : true);
	for (int served = 1;; served++)
	{
		OffsetNumber far = lbt_page_search(spec, tupdesc, far_bound, page, forward ? near : first,
										   forward ? last : near - 1, guess);
		bool		at_edge = forward ? far > last : far == first;
		int64		next = probe->number + (forward ? 1 : -1);

		if (near != far)
		{
			run[n].from = Min(near, far);
			run[n++].to = Max(near, far);
		}
		copy->probe[forward] = probe->number;
		copy->more[forward] = at_edge &&
			(forward ? lbt_bound_beyond_page(spec, tupdesc, far_bound, page) : !P_LEFTMOST(opaque));
		if (copy->more[forward] || probe->number == last_probe || served == MAX_PROBES_A_VISIT)
			return n;
		if (near == far || (at_edge && (!forward || P_RIGHTMOST(opaque))))
			next = lbt_probe_seek(so, probe, tupdesc, page, far, forward);
		copy->probe[forward] = forward ? next - 1 : next + 1;
		if (next < 0 || next == so->nprobes)
			return n;

		/* Is the next bound on the page?  Its ends tell; mostly it is not. */
		lbt_probe_go(so, probe, next);
		if (forward ? lbt_bound_beyond_page(spec, tupdesc, near_bound, page) :
			!P_LEFTMOST(opaque) && !lbt_before_bound(spec, tupdesc, near_bound,
													 lbt_page_tuple(page, first), false))
			return n;
		near = lbt_page_search(spec, tupdesc, near_bound, page, forward ? far : first,
							   forward ? last : far - 1, forward ? far : far - 1);
		guess = near;
	}
}

/* Leave one entry of a run, the first in this direction that is not dead. */
static void
cut_run(IndexScanDesc scan, Page page, LbtRun *run, bool forward)
{
	while (run->to - run->from > 1 && scan->ignore_killed_tuples &&
		   ItemIdIsDead(PageGetItemId(page, forward ? run->from : run->to - 1)))
	{
		if (forward)
			run->from++;
		else
			run->to--;
	}
	if (forward)
		run->to = run->from + 1;
	else
		run->from = run->to - 1;
}

/* Copy these matches, and what leads on from there, out of a locked leaf. */
static void
copy_matches(IndexScanDesc scan, const LbtScan *so, LbtProbe *probe, LbtLeafCopy *copy, Buffer buf,
			 OffsetNumber at, bool forward)
{
	TupleDesc	tupdesc = RelationGetDescr(scan->indexRelation);
	Page		page = BufferGetPage(buf);
	BTPageOpaque opaque = BTPageGetOpaque(page);
	Size		used = 0;
	LbtRun		run[MaxIndexTuplesPerPage];
	int			most = MaxTIDsPerBTreePage;
	int			n;

	copy->beyond[0] = copy->beyond[1] = NULL;
	if (forward)
		n = find_matches(so, probe, copy, tupdesc, page, at, run, true);
	else
		n = find_matches(so, probe, copy, tupdesc, page, at, run, false);
	if (unlikely(so->nfilters > 0))
		n = lbt_filter_runs(so, copy, tupdesc, page, run, n, forward);

	copy->cut = so->few && n > 0;
	if (unlikely(copy->cut))
	{
		n = 1;
		cut_run(scan, page, &run[0], forward);
		if (forward)
			most = CUT_TIDS;
	}
	if (copy->items == NULL)
	{
		copy->capacity = FEW_ITEMS;
		copy->items = MemoryContextAlloc(GetMemoryChunkContext((void *) so),
										 FEW_ITEMS * sizeof(LbtItem));
	}
	copy->nitems = 0;
	for (int i = 0; i < n; i++)
		if (likely(so->row_column < 0))
			copy_items(scan, so, copy, page, &run[forward ? i : n - 1 - i], &used, most, false);
		else
			copy_items(scan, so, copy, page, &run[forward ? i : n - 1 - i], &used, most, true);
	copy->valid = true;
	copy->block = BufferGetBlockNumber(buf);
	copy->sibling[0] = opaque->btpo_prev;
	copy->sibling[1] = opaque->btpo_next;
	copy->at = forward ? 0 : copy->nitems - 1;
}

/*
 * Read a locked leaf's part of the scan into so->cur and unlock it.  Keep the
 * pin if nbtree would and there is something to hand out.
 */
static void
read_leaf(IndexScanDesc scan, LbtScan *so, Buffer buf, OffsetNumber at, bool forward)
{
	Relation	rel = scan->indexRelation;
	LbtLeafCopy *copy = &so->cur;
	bool		drop_pin = lbt_scan_drops_pin(scan);

	PredicateLockPage(rel, BufferGetBlockNumber(buf), scan->xs_snapshot);
	if ((scan->xs_want_itup || so->group_columns > 0) && copy->tuples == NULL)
		copy->tuples = MemoryContextAlloc(GetMemoryChunkContext(so), BLCKSZ);
	copy_matches(scan, so, &so->walk.probe, copy, buf, at, forward);
	copy->buf = buf;
	if (drop_pin || copy->nitems == 0)
	{
		copy->lsn = drop_pin ? BufferGetLSNAtomic(buf) : InvalidXLogRecPtr;
		_bt_relbuf(rel, buf);
		copy->buf = InvalidBuffer;
	}
	else
		_bt_unlockbuf(rel, buf);
}

bool
lbt_scan_look_at_leaf(IndexScanDesc scan, const LbtScan *so, LbtProbe *probe, LbtLeafCopy *copy,
					  Buffer buf, bool stepped, bool forward)
{
	Relation	rel = scan->indexRelation;
	Page		page = BufferGetPage(buf);
	BTPageOpaque opaque;
	OffsetNumber first;
	OffsetNumber last;
	bool		good;

	_bt_lockbuf(rel, buf, BT_READ);
	_bt_checkpage(rel, buf);
	opaque = BTPageGetOpaque(page);
	first = P_FIRSTDATAKEY(opaque);
	last = PageGetMaxOffsetNumber(page);
	good = P_ISLEAF(opaque) && !P_IGNORE(opaque) && last >= first;
	if (good)
		copy_matches(scan, so, probe, copy, buf, stepped ? InvalidOffsetNumber :
					 lbt_page_search(&so->index->keyspec, RelationGetDescr(rel),
									 forward ? &probe->start : &probe->end, page, first, last,
									 first), forward);
	_bt_relbuf(rel, buf);
	return good;
}

/* ---- from leaf to leaf ---- */

/* Pin and share-lock a leaf that the scan has to visit next. */
static Buffer
lock_leaf(IndexScanDesc scan, LbtScan *so, BlockNumber block, bool forward)
{
	lbt_ahead_sibling(scan, so, &so->walk, block, forward);
	return _bt_getbuf(scan->indexRelation, block, BT_READ);
}

/*
 * Pin and lock the left sibling of a leaf that was read; InvalidBuffer if
 * there is none any more.
 *
 * Race: since the leaf was read, its left sibling may have split (then the
 * sibling is some hops right of where it was), been deleted (then the leaf's
 * own left link has changed), or the leaf itself may have been deleted (then
 * its key space is part of the first live page to its right, whose left
 * sibling is the one wanted).  A page is the left sibling only if its right
 * link says so.  No page can have been recycled while our snapshot lives.
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
		BlockNumber asked = self;

		CHECK_FOR_INTERRUPTS();
		buf = lock_leaf(scan, so, left, false);
		for (int hops = 0;; hops++)
		{
			opaque = BTPageGetOpaque(BufferGetPage(buf));
			if (!P_ISDELETED(opaque) && opaque->btpo_next == self)
				return buf;
			if (P_RIGHTMOST(opaque) || hops == LEFT_SIBLING_HOPS)
				break;
			buf = _bt_relandgetbuf(rel, buf, opaque->btpo_next, BT_READ);
		}

		/* Ask the leaf itself, or the one that took its key space. */
		for (;;)
		{
			buf = _bt_relandgetbuf(rel, buf, self, BT_READ);
			opaque = BTPageGetOpaque(BufferGetPage(buf));
			if (!P_ISDELETED(opaque) || P_RIGHTMOST(opaque))
				break;
			self = opaque->btpo_next;
		}
		left = opaque->btpo_prev;
		if (P_ISDELETED(opaque) || (self == asked && left == tried))
			ereport(ERROR,
					(errcode(ERRCODE_INDEX_CORRUPTED),
					 errmsg("could not find left sibling of block %u in index \"%s\"",
							self, RelationGetRelationName(rel)),
					 errhint("Please REINDEX it.")));
		_bt_relbuf(rel, buf);
	}
	return InvalidBuffer;
}

/*
 * Pin and lock the live sibling on which so->cur's last probe that way goes
 * on; InvalidBuffer if there is none any more.  Leaves so->cur.
 */
static Buffer
lock_sibling(IndexScanDesc scan, LbtScan *so, bool forward)
{
	BlockNumber self = so->cur.block;
	BlockNumber block = so->cur.sibling[forward];

	lbt_probe_go(so, &so->walk.probe, so->cur.probe[forward]);
	lbt_scan_leave(scan, so);
	while (block != P_NONE)
	{
		Buffer		buf;
		BTPageOpaque opaque;

		CHECK_FOR_INTERRUPTS();
		buf = forward ? lock_leaf(scan, so, block, true) : lock_left_sibling(scan, so, self, block);
		if (!BufferIsValid(buf))
			break;
		opaque = BTPageGetOpaque(BufferGetPage(buf));
		if (!P_IGNORE(opaque))
		{
			lbt_test_for_old_snapshot(scan->xs_snapshot, scan->indexRelation, BufferGetPage(buf));
			return buf;
		}
		self = BufferGetBlockNumber(buf);	/* it has no items, go on */
		block = forward ? opaque->btpo_next : opaque->btpo_prev;
		_bt_relbuf(scan->indexRelation, buf);
	}
	return InvalidBuffer;
}

/*
 * Pin and lock the leaf that a probe begins on in this direction, or that has
 * this bound within it, and set the bound's offset; InvalidBuffer if the index
 * is empty.
 */
static Buffer
lock_probe(IndexScanDesc scan, LbtScan *so, int64 number, bool forward, const LbtBound *within,
		   OffsetNumber *offset)
{
	Relation	rel = scan->indexRelation;
	LbtTarget	target;
	LbtOutcome	outcome;
	const LbtBound *bound;
	Buffer		buf;

	CHECK_FOR_INTERRUPTS();
	if (likely(within == NULL && so->group_columns == 0))
		(void) lbt_ahead_predict(scan, so, &so->walk, number, forward, &target);
	else
		memset(&target, 0, sizeof(target));
	if (unlikely(so->nfilters > 0 || so->group_columns > 0))
		so->group_reads = pgBufferUsage.shared_blks_read;
	lbt_probe_go(so, &so->walk.probe, number);
	bound = within ? within : forward ? &so->walk.probe.start : &so->walk.probe.end;
	lbt_count_index_search(scan);
	for (int i = 0; i < 2; i++)
	{
		lbt_report_misses(so->index);
		buf = lbt_locate(rel, so->index, bound, !forward, scan->xs_snapshot, offset, &target,
						 &outcome);
		lbt_count_lookup(so->index, outcome.event, outcome.moved);
		so->counts[LBT_EV_LOOKUP]++;
		so->counts[outcome.event]++;
		so->counts[LBT_EV_MOVED_RIGHT] += outcome.event == LBT_EV_VERIFIED && outcome.moved > 0;
		if (!BufferIsValid(buf))
			buf = lbt_descend(rel, so->index, bound, !forward, scan->xs_snapshot, offset);
		if (BufferIsValid(buf))
			break;

		/* Race: the first insert may come before our lock on the index. */
		PredicateLockRelation(rel, scan->xs_snapshot);
		target.generation = 0;
	}
	so->walk.slot = target.slot;
	so->walk.searched = target.generation;
	so->walk.steps = 0;
	return buf;
}

/*
 * Pin and lock the leaf on which the scan goes on from so->go, as lock_probe()
 * does; InvalidBuffer if nothing of it is there.  Leaves so->cur.  Sets
 * so->few: a scan by groups mostly wants one row (src/README, "Skipping").
 */
static Buffer
lock_position(IndexScanDesc scan, LbtScan *so, bool forward, OffsetNumber *offset)
{
	LbtProbe   *probe = &so->walk.probe;
	LbtBound	bound;
	bool		cuts;
	Buffer		buf;

	if (so->cur.valid)
		lbt_scan_leave(scan, so);
	lbt_position_bound(scan, so, &bound);
	if (!lbt_probe_after(so, probe, &bound, forward, &cuts))
		return InvalidBuffer;
	if (so->group_columns == 0 && cuts)
		lbt_ahead_group(scan, so, &bound, forward);
	buf = lock_probe(scan, so, probe->number, forward, cuts ? &bound : NULL, offset);
	if (BufferIsValid(buf))
	{
		BlockNumber block = BufferGetBlockNumber(buf);

		so->few = so->group_columns > 0 && !so->short_groups && block != so->landed[forward];
		so->short_groups = false;
		so->landed[forward] = block;
	}
	return buf;
}

double
lbt_scan_spent(const LbtScan *so)
{
	const LbtBudget *budget = &so->budget;

	return (pgBufferUsage.shared_blks_hit - budget->hits) * LBT_SEEK_COST +
		(pgBufferUsage.shared_blks_read - budget->reads) * budget->page_cost;
}

bool
lbt_scan_gives_up(LbtScan *so)
{
	so->budget.exceeded |= lbt_scan_spent(so) > so->budget.cost;
	return so->budget.exceeded;
}

bool
lbt_scan_next_leaf(IndexScanDesc scan, LbtScan *so, ScanDirection dir)
{
	bool		forward = ScanDirectionIsForward(dir);
	int64		number = forward ? 0 : so->nprobes - 1;

	for (;;)
	{
		OffsetNumber offset = InvalidOffsetNumber;
		Buffer		buf = InvalidBuffer;
		LbtPosition *go;

		/* Entry by entry, and leaf by leaf: either may be without end. */
		if (unlikely(so->group_columns > 0) && lbt_scan_gives_up(so))
			return false;
		if (so->cur.valid)
			so->go = lbt_position_beyond(so, forward);

		/* If it leads back, go on as if there were none: more[] is set. */
		if (unlikely(so->go != NULL) && so->group_columns == 0 &&
			!lbt_position_advances(scan, so, forward))
		{
			pfree(so->go);
			so->go = NULL;
		}
		go = so->go;
		so->few &= so->cur.valid && so->cur.nitems == 0;
		if (unlikely(go != NULL))
			buf = lock_position(scan, so, forward, &offset);
		else if (so->cur.valid && so->cur.more[forward])
		{
			/* What has led to a leaf without matches leads to its sibling. */
			if (unlikely(so->few))
			{
				go = so->cur.beyond[!forward];
				Assert(go != NULL);
				so->cur.beyond[!forward] = NULL;
			}
			buf = lock_sibling(scan, so, forward);
		}
		else
		{
			so->few = false;
			if (so->cur.valid)
			{
				number = so->cur.probe[forward] + (forward ? 1 : -1);
				lbt_scan_leave(scan, so);
			}
			if (number >= 0 && number < so->nprobes)
				buf = lock_probe(scan, so, number, forward, NULL, &offset);
		}
		if (BufferIsValid(buf))
		{
			read_leaf(scan, so, buf, offset, forward);
			if (unlikely(so->nfilters > 0))
				so->reads_seen = pgBufferUsage.shared_blks_read;
			Assert(!so->cur.cut || go != NULL);
		}
		so->go = NULL;
		if (unlikely(go != NULL))
		{
			/* From there backward, where the scan goes forward. */
			if (BufferIsValid(buf))
				so->cur.beyond[!forward] = go;
			else
				pfree(go);
		}
		if (!BufferIsValid(buf))
			return false;
		if (so->cur.nitems > 0)
			return true;
	}
}
