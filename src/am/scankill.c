/*
 * scankill.c - telling later scans which index entries point to dead heap tuples.
 */
#include "am/scan.h"

/* Does the index tuple hold just the heap TIDs of these n items? */
static bool
same_entry(LbtItem *items, int n, IndexTuple itup)
{
	int			ntids;
	ItemPointer tids = lbt_heap_tids(itup, &ntids);

	if (ntids != n)
		return false;
	for (int i = 0; i < n; i++)
		if (!ItemPointerEquals(&tids[i], &items[i].tid))
			return false;
	return true;
}

/*
 * Mark the entries all of whose items are dead; true if any was not before.  On an unchanged page an entry is where
 * it was; on another, inserts can only have moved it right.
 */
static bool
mark_entries(const LbtLeafCopy *copy, Page page, bool unchanged)
{
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
	if ((pinned || unchanged) && mark_entries(&so->cur, BufferGetPage(buf), unchanged))
	{
		BTPageGetOpaque(BufferGetPage(buf))->btpo_flags |= BTP_HAS_GARBAGE;
		MarkBufferDirtyHint(buf, true);
	}
	if (pinned)
		_bt_unlockbuf(rel, buf);
	else
		_bt_relbuf(rel, buf);
}
