/*
 * scankill.c - telling later scans which index entries point to dead heap tuples.
 */
#include "am/scan.h"

/* Is this heap TID among the killed items? */
static bool
is_killed(const LbtScan *so, ItemPointer tid)
{
	for (int k = 0; k < so->nkilled; k++)
		if (ItemPointerEquals(&so->cur.items[so->killed[k]].tid, tid))
			return true;
	return false;
}

/* May this entry, which holds a killed heap TID, be marked: are all its heap TIDs killed? */
static bool
all_killed(const LbtScan *so, IndexTuple itup)
{
	if (BTreeTupleIsPosting(itup))
		for (int i = 0; i < BTreeTupleGetNPosting(itup); i++)
			if (!is_killed(so, BTreeTupleGetPostingN(itup, i)))
				return false;
	return true;
}

/* The entry with this heap TID, at or right of the offset where it was: inserts move entries right. */
static OffsetNumber
find_again(Page page, OffsetNumber offset, ItemPointer tid)
{
	OffsetNumber last = PageGetMaxOffsetNumber(page);

	for (; offset <= last; offset++)
	{
		IndexTuple	itup = (IndexTuple) PageGetItem(page, PageGetItemId(page, offset));

		if (BTreeTupleIsPosting(itup))
		{
			for (int i = 0; i < BTreeTupleGetNPosting(itup); i++)
				if (ItemPointerEquals(BTreeTupleGetPostingN(itup, i), tid))
					return offset;
		}
		else if (ItemPointerEquals(&itup->t_tid, tid))
			return offset;
	}
	return InvalidOffsetNumber;
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
	bool		any = false;
	Page		page;
	BTPageOpaque opaque;

	if (pinned)
		_bt_lockbuf(rel, buf, BT_READ);
	else
		buf = _bt_getbuf(rel, so->cur.block, BT_READ);
	page = BufferGetPage(buf);
	opaque = BTPageGetOpaque(page);

	if (pinned || BufferGetLSNAtomic(buf) == so->cur.lsn)
	{
		for (int k = 0; k < so->nkilled; k++)
		{
			LbtItem    *item = &so->cur.items[so->killed[k]];
			OffsetNumber offset = find_again(page, Max(item->offset, P_FIRSTDATAKEY(opaque)),
											 &item->tid);
			ItemId		iid;

			if (offset == InvalidOffsetNumber)
				continue;
			iid = PageGetItemId(page, offset);
			if (ItemIdIsDead(iid) || !all_killed(so, (IndexTuple) PageGetItem(page, iid)))
				continue;
			ItemIdMarkDead(iid);
			any = true;
		}
		if (any)
		{
			opaque->btpo_flags |= BTP_HAS_GARBAGE;
			MarkBufferDirtyHint(buf, true);
		}
	}
	if (pinned)
		_bt_unlockbuf(rel, buf);
	else
		_bt_relbuf(rel, buf);
	so->nkilled = 0;
}
