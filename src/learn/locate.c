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
#include "learn/locate.h"

#include "learn/counters.h"
#include "learn/settings.h"
#include "learn/target.h"
#include "learn/train.h"

/* Leaves to the left that are tried when the leaf cache is off, or only approximate. */
#define MAX_RETREATS 8

typedef enum Verdict
{
	VERDICT_PROVEN,
	VERDICT_NOT_LEAF,
	VERDICT_LOW,				/* the bound may lie left of the page */
	VERDICT_HIGH				/* it lies right of the page */
} Verdict;

/* Look for the bound on a locked page.  low_known: it is known not to lie left of the page. */
static inline Verdict
examine(LbtIndex *index, TupleDesc tupdesc, const LbtBound *bound, Page page, double fraction,
		bool low_known, OffsetNumber *offset)
{
	BTPageOpaque opaque = BTPageGetOpaque(page);
	OffsetNumber off = search_leaf(index, tupdesc, bound, page, fraction);

	*offset = off;
	if (off > PageGetMaxOffsetNumber(page) &&
		lbt_bound_beyond_page(&index->keyspec, tupdesc, bound, page))
		return VERDICT_HIGH;
	if (off == P_FIRSTDATAKEY(opaque) && !low_known && !P_LEFTMOST(opaque))
		return VERDICT_LOW;
	return VERDICT_PROVEN;
}

/*
 * Prove the bound on the locked page, or on a right neighbour.  The buffer returned is locked whatever
 * the verdict.  Race: the leaf may have split since the model was made; then the bound lies beyond its
 * high key, and the right link, read under the lock, leads on.  The next page cannot have been recycled
 * before we lock it, only deleted (our snapshot holds recycling back, as for nbtree's own scans), and a
 * deleted page's key space went to its right.
 */
static Buffer
prove(Relation rel, LbtIndex *index, const LbtBound *bound, Buffer buf, double fraction,
	  Snapshot snapshot, OffsetNumber *offset, Verdict *verdict, int *hops)
{
	TupleDesc	tupdesc = RelationGetDescr(rel);

	*hops = 0;
	for (;;)
	{
		Page		page = BufferGetPage(buf);
		BTPageOpaque opaque;

		*verdict = VERDICT_NOT_LEAF;
		if (!is_btree_page(page))
			return buf;
		opaque = BTPageGetOpaque(page);
		lbt_test_for_old_snapshot(snapshot, rel, page);
		if (*hops == 0)
		{
			if (!P_ISLEAF(opaque) || P_IGNORE(opaque) || P_ISMETA(opaque) ||
				PageGetMaxOffsetNumber(page) < P_FIRSTDATAKEY(opaque))
				return buf;
		}
		else if (!P_ISLEAF(opaque))
			return buf;

		*verdict = P_IGNORE(opaque) ? VERDICT_HIGH :
			examine(index, tupdesc, bound, page, fraction, *hops > 0, offset);
		if (*verdict != VERDICT_HIGH || *hops == MAX_HOPS || P_RIGHTMOST(opaque))
			return buf;
		(*hops)++;
		fraction = 0;
		buf = _bt_relandgetbuf(rel, buf, opaque->btpo_next, BT_READ);
	}
}

static void
count_verdict(LbtIndex *index, Verdict verdict, int hops)
{
	switch (verdict)
	{
		case VERDICT_PROVEN:
			lbt_count(index, LBT_EV_VERIFIED);
			if (hops == 0)
				return;
			lbt_count(index, LBT_EV_MOVED_RIGHT);
			break;
		case VERDICT_NOT_LEAF:
			lbt_count(index, LBT_EV_BAD_PAGE);
			break;
		case VERDICT_LOW:
			lbt_count(index, LBT_EV_LOW);
			break;
		case VERDICT_HIGH:
			lbt_count(index, LBT_EV_HIGH);
			break;
	}
	index->misses++;
}

static inline uint64
bound_code(const LbtIndex *index, const LbtBound *bound)
{
	return lbt_model_code(&index->model, bound->value, bound->ncolumns,
						  bound->past ? LBT_MISSING_HIGH : LBT_MISSING_LOW);
}

Buffer
lbt_predict_leaf(Relation rel, LbtIndex *index, const LbtBound *bound, Snapshot snapshot,
				 OffsetNumber *offset, LbtTarget *target, int *hops)
{
	const LbtModel *model = &index->model;
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
		Verdict		verdict;
		Buffer		buf;

		buf = land(rel, index, &at, BT_READ);
		if (!BufferIsValid(buf))
		{
			lbt_count(index, LBT_EV_BAD_BLOCK);
			index->misses++;
			return InvalidBuffer;
		}
		buf = prove(rel, index, bound, buf, at.fraction, snapshot, offset, &verdict, hops);
		if (verdict == VERDICT_PROVEN)
		{
			count_verdict(index, verdict, *hops + retreats);
			return buf;
		}
		_bt_relbuf(rel, buf);

		/* The spline alone, or an approximate leaf cache, may have gone too far right. */
		if ((lbt_enable_leaf_cache && !model->approximate) || verdict != VERDICT_LOW || at.slot == 0 ||
			retreats == MAX_RETREATS)
		{
			count_verdict(index, verdict, 0);
			return InvalidBuffer;
		}
		target_slot(index, at.slot - 1, bound_code(index, bound), &at);
		prefetch_target(index, &at);
	}
}

void
lbt_batch_add(const LbtIndex *index, LbtBatch *batch, const LbtBound *bound)
{
	const LbtModel *model = &index->model;
	int			i = batch->n++;
	uint64		code = bound_code(index, bound);
	uint32		guess = i > 0 ? batch->guess[i - 1] : index->last_slot;

	/* Bounds come in order: the guess for the one before is as good, and fetched already, if this is there. */
	if (!lbt_enable_leaf_cache || guess >= model->nleaves || code <= model->leaves[guess].min_code ||
		guess + 1 == model->nleaves || code >= model->leaves[guess + 1].min_code)
	{
		guess = lbt_spline_predict(model->knots, model->nknots, model->nleaves, code);
		__builtin_prefetch(&model->leaves[guess]);
	}
	batch->code[i] = code;
	batch->past[i] = bound->past;
	batch->guess[i] = guess;
}

void
lbt_batch_finish(const LbtIndex *index, LbtBatch *batch)
{
	const LbtModel *model = &index->model;

	for (int i = 0; i < batch->n; i++)
	{
		LbtTarget  *target = &batch->target[i];
		uint32		slot = batch->guess[i];

		if (lbt_enable_leaf_cache)
			slot = lbt_leaf_search(model->leaves, model->nleaves, slot, batch->code[i], batch->past[i]);
		target_slot(index, slot, batch->code[i], target);
		if (i == 0 || slot != target[-1].slot)
			prefetch_target(index, target);
	}
}

void
lbt_slot_target(const LbtIndex *index, uint32 slot, LbtTarget *target)
{
	target_slot(index, slot, index->model.leaves[slot].min_code, target);
}

bool
lbt_target_cached(Relation rel, LbtIndex *index, const LbtTarget *target, bool ask)
{
	if (hint_valid(rel, target))
		return true;
	if (!ask)
		return false;
	if (target->block >= index->nblocks)
		index->nblocks = RelationGetNumberOfBlocks(rel);
	return target->block < index->nblocks && lbt_block_cached(rel, target->block);
}

uint32
lbt_predict_slot(const LbtIndex *index, const LbtBound *bound, uint32 near)
{
	return predict_slot_near(&index->model, bound_code(index, bound), bound->past, near);
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

		/* nbtree has moved right already as far as needed; an endpoint may still have split. */
		if (*offset <= last || !lbt_bound_beyond_page(&index->keyspec, tupdesc, bound, page))
			break;
		buf = _bt_relandgetbuf(rel, buf, opaque->btpo_next, BT_READ);
	}
	return buf;
}

Buffer
lbt_locate(Relation rel, LbtIndex *index, const LbtBound *bound, bool backward, Snapshot snapshot,
		   OffsetNumber *offset, LbtTarget *target)
{
	/*
	 * Here, not where the scan began: since then this backend may have made a dsa call for another index
	 * and so unmapped a segment that an outdated view still points into.
	 */
	lbt_look_at_misses(rel, index);
	lbt_index_update(index);
	lbt_count(index, LBT_EV_LOOKUP);
	if (index->state == LBT_READY)
	{
		int			hops;
		Buffer		buf = lbt_predict_leaf(rel, index, bound, snapshot, offset, target, &hops);

		if (BufferIsValid(buf))
			return buf;
	}
	else
	{
		if (BufferIsValid(target->pinned))
			ReleaseBuffer(target->pinned);
		*target = (LbtTarget) {0};
		lbt_count(index, LBT_EV_NO_MODEL);
	}
	return lbt_descend(rel, index, bound, backward, snapshot, offset);
}
