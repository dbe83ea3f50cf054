/*
 * locate.c - predict, land, prove, or descend; see locate.h and src/README, "Why an answer is right".
 *
 * The proof, on a locked page that is a live leaf: the bound lies in the leaf's key space if
 *   low   some data item on the page is before the bound, or the page is leftmost; and
 *   high  some data item is not before the bound (it is <= the high key), or the high key itself is
 *         not, or the page is rightmost.
 * The search for the bound within the page has both kinds of item at hand, so in the common case the
 * proof costs no further cache line.
 */
#include "search/locate.h"

#include "search/verify.h"

/* Leaves to the left that are tried when the leaf cache is off. */
#define MAX_RETREATS 8

static inline LbtVerdict
examine(LbtSearch *search, Buffer buf, bool low_known)
{
	Page		page = BufferGetPage(buf);
	BTPageOpaque opaque = BTPageGetOpaque(page);

	search->offset = search_leaf(search, page);
	if (search->offset > PageGetMaxOffsetNumber(page) &&
		lbt_bound_beyond_page(&search->index->keyspec, RelationGetDescr(search->rel), search->bound, page))
		return LBT_BEYOND;
	if (search->offset == P_FIRSTDATAKEY(opaque) && !low_known && !P_LEFTMOST(opaque))
		return LBT_BEFORE;
	return LBT_PROVEN;
}

static LbtEvent
event_of(LbtVerdict verdict)
{
	return verdict == LBT_PROVEN ? LBT_EV_VERIFIED : verdict == LBT_BEFORE ? LBT_EV_LOW :
		verdict == LBT_BEYOND ? LBT_EV_HIGH : LBT_EV_BAD_PAGE;
}

Buffer
lbt_predict_leaf(Relation rel, LbtIndex *index, const LbtBound *bound, Snapshot snapshot,
				 OffsetNumber *offset, LbtTarget *target, LbtOutcome *outcome)
{
	const LbtModel *model = &index->model;
	LbtSearch	search = {.rel = rel,.index = index,.bound = bound,.snapshot = snapshot};
	LbtTarget	at;

	if (target->generation != index->generation)
	{
		uint64		code = bound_code(index, bound);

		if (BufferIsValid(target->pinned))
			ReleaseBuffer(target->pinned);
		target_slot(index, predict_slot_near(model, code, bound->past, index->last_slot), code, target);
		prefetch_target(index, target);
	}
	index->last_slot = target->slot;
	at = *target;
	target->pinned = InvalidBuffer;
	for (int retreats = 0;; retreats++)
	{
		LbtVerdict	verdict;
		Buffer		buf = land(rel, index, &at, BT_READ);

		if (!BufferIsValid(buf))
		{
			outcome->event = LBT_EV_BAD_BLOCK;
			return InvalidBuffer;
		}
		search.fraction = at.fraction;
		verdict = verify(&search, &buf, BT_READ, examine);
		outcome->event = event_of(verdict);
		outcome->moved = search.hops + retreats;
		outcome->left = retreats;
		if (verdict == LBT_PROVEN)
		{
			*offset = search.offset;
			return buf;
		}
		_bt_relbuf(rel, buf);

		/* The spline alone may have gone too far right. */
		if (lbt_enable_leaf_cache || verdict != LBT_BEFORE || at.slot == 0 || retreats == MAX_RETREATS)
			return InvalidBuffer;
		target_slot(index, at.slot - 1, bound_code(index, bound), &at);
		prefetch_target(index, &at);
	}
}

/* nbtree's search key for a bound that has columns. */
static void
search_key(Relation rel, const LbtIndex *index, const LbtBound *bound, bool backward,
		   BTScanInsert key)
{
	lbt_bt_init_search_key(rel, key, bound->past, backward);
	key->keysz = bound->ncolumns;
	for (int i = 0; i < bound->ncolumns; i++)
	{
		const LbtKeyColumn *column = &index->keyspec.column[i];
		const LbtKeyValue *value = &bound->value[i];

		ScanKeyEntryInitializeWithInfo(&key->scankeys[i],
									   (value->isnull ? SK_ISNULL : 0) |
									   (rel->rd_indoption[i] << SK_BT_INDOPTION_SHIFT),
									   i + 1, InvalidStrategy, InvalidOid,
									   rel->rd_indcollation[i],
									   index_getprocinfo(rel, i + 1, BTORDER_PROC),
									   value->isnull ? (Datum) 0 :
									   lbt_keyspec_datum(column, value));
	}
}

Buffer
lbt_descend(Relation rel, const LbtIndex *index, const LbtBound *bound, bool backward,
			Snapshot snapshot, OffsetNumber *offset)
{
	TupleDesc	tupdesc = RelationGetDescr(rel);
	Buffer		buf;

	if (bound->ncolumns == 0)
		buf = lbt_bt_get_endpoint(rel, 0, bound->past, snapshot);
	else
	{
		BTScanInsertData key;

		search_key(rel, index, bound, backward, &key);
		buf = lbt_bt_search(rel, &key, snapshot);
	}
	while (BufferIsValid(buf))
	{
		Page		page = BufferGetPage(buf);
		BTPageOpaque opaque = BTPageGetOpaque(page);
		OffsetNumber first = P_FIRSTDATAKEY(opaque);
		OffsetNumber last = PageGetMaxOffsetNumber(page);

		*offset = lbt_page_search(&index->keyspec, tupdesc, bound, page, first, last,
								  first + (last - first) / 2);

		/*
		 * nbtree has moved right already as far as needed; an endpoint may
		 * still have split.
		 */
		if (*offset <= last || !lbt_bound_beyond_page(&index->keyspec, tupdesc, bound, page))
			break;
		buf = _bt_relandgetbuf(rel, buf, opaque->btpo_next, BT_READ);
	}
	return buf;
}

Buffer
lbt_locate(Relation rel, LbtIndex *index, const LbtBound *bound, Snapshot snapshot, OffsetNumber *offset,
		   LbtTarget *target, LbtOutcome *outcome)
{
	/*
	 * Here, not where the scan began: since then this backend may have made a
	 * dsa call for another index and so unmapped a segment that an outdated
	 * view still points into.
	 */
	lbt_index_update(index);
	if (index->state == LBT_READY)
		return lbt_predict_leaf(rel, index, bound, snapshot, offset, target, outcome);
	if (BufferIsValid(target->pinned))
		ReleaseBuffer(target->pinned);
	*target = (LbtTarget)
	{
		0
	};
	outcome->event = LBT_EV_NO_MODEL;
	return InvalidBuffer;
}
