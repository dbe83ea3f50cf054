/*
 * scankill.c - telling later scans which index entries point to dead heap tuples.
 */
#include "am/scan.h"

/* The items of one index entry: [from, to) of the copy.  More than one make a posting list. */
typedef struct Entry
{
	int			from;
	int			to;
	bool		dead;			/* all its heap tuples are */
} Entry;

/* The entry that starts at this item. */
static Entry
entry_at(const LbtLeafCopy *copy, int from)
{
	Entry		e = {.from = from,.to = from,.dead = true};

	while (e.to < copy->nitems && copy->items[e.to].offset == copy->items[from].offset)
		e.dead &= copy->items[e.to++].dead;
	return e;
}

/* Does the index tuple hold just the heap TIDs that the entry had? */
static bool
same_entry(const LbtLeafCopy *copy, const Entry *e, IndexTuple itup)
{
	if (!BTreeTupleIsPosting(itup))
		return e->to - e->from == 1 && ItemPointerEquals(&itup->t_tid, &copy->items[e->from].tid);
	if (BTreeTupleGetNPosting(itup) != e->to - e->from)
		return false;
	for (int i = e->from; i < e->to; i++)
		if (!ItemPointerEquals(BTreeTupleGetPostingN(itup, i - e->from), &copy->items[i].tid))
			return false;
	return true;
}

/*
 * Where the entry is now, from the given offset on; InvalidOffsetNumber when it is no longer there as it
 * was.  On an unchanged page it is where it was; inserts can only have moved it right.
 */
static OffsetNumber
find_entry(const LbtLeafCopy *copy, const Entry *e, Page page, bool unchanged, OffsetNumber from)
{
	OffsetNumber last = PageGetMaxOffsetNumber(page);
	OffsetNumber offset = Max(copy->items[e->from].offset, from);

	for (; offset <= last; offset++)
	{
		if (same_entry(copy, e, (IndexTuple) PageGetItem(page, PageGetItemId(page, offset))))
			return offset;
		if (unchanged)
			break;
	}
	return InvalidOffsetNumber;
}

static bool
mark_entries(const LbtLeafCopy *copy, Page page, bool unchanged)
{
	OffsetNumber next = P_FIRSTDATAKEY(BTPageGetOpaque(page));
	bool		any = false;
	Entry		e;

	for (int i = 0; i < copy->nitems; i = e.to)
	{
		OffsetNumber offset;

		e = entry_at(copy, i);
		if (!e.dead)
			continue;
		offset = find_entry(copy, &e, page, unchanged, next);
		if (offset == InvalidOffsetNumber)
			continue;
		next = offset + 1;
		if (!ItemIdIsDead(PageGetItemId(page, offset)))
		{
			ItemIdMarkDead(PageGetItemId(page, offset));
			any = true;
		}
	}
	return any;
}

/*
 * While the pin was held VACUUM could not remove the entries, so a heap TID found again is the same
 * row's.  When the pin was dropped it may have been recycled: only a page whose LSN is still the one we
 * read is known to be unchanged (that is why inserts must set it).
 */
void
lbt_scan_kill(IndexScanDesc scan, LbtScan *so)
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

	/* Unlogged relations have no LSN to tell, but are always pinned. */
	unchanged = !pinned && BufferGetLSNAtomic(buf) == so->cur.lsn;
	if (pinned || unchanged)
	{
		Page		page = BufferGetPage(buf);

		if (mark_entries(&so->cur, page, unchanged))
		{
			BTPageGetOpaque(page)->btpo_flags |= BTP_HAS_GARBAGE;
			MarkBufferDirtyHint(buf, true);
		}
	}
	if (pinned)
		_bt_unlockbuf(rel, buf);
	else
		_bt_relbuf(rel, buf);
}
