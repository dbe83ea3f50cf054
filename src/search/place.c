/*
 * place.c - the predicted leaf of an insert, and the proof; see place.h and src/README, "Inserts".
 *
 * As in locate.c, the items around the tuple's place prove that it belongs on the page: one strictly
 * before it (or the page is leftmost, or we came from the left), and one strictly after it or a high key
 * that is.  "Strictly" by the covered columns alone, so heap TIDs and further columns need no look; where
 * they matter, because equal keys are on the page, nbtree's own comparison decides.
 */
#include "search/place.h"

#include "search/predict.h"
#include "search/verify.h"

/*
 * Equal keys, or a high key equal in the covered columns: further columns and the heap TID decide, by
 * nbtree's comparison.
 */
static LbtVerdict
find_among_equals(LbtSearch *search, Buffer buf, bool low_known)
{
	Page		page = BufferGetPage(buf);
	BTPageOpaque opaque = BTPageGetOpaque(page);
	IndexTuple	itup = search->itup;
	BTScanInsert scankey = _bt_mkscankey(search->rel, itup);
	BTInsertStateData state = {.itup = itup,.itemsz = MAXALIGN(IndexTupleSize(itup)),
	.itup_key = scankey,.buf = buf};
	LbtVerdict	verdict = LBT_PROVEN;

	if (!scankey->heapkeyspace)
	{
		pfree(scankey);
		return LBT_NO_LEAF;		/* a file from before PostgreSQL 12 orders
								 * equal keys otherwise */
	}
	scankey->scantid = &itup->t_tid;
	if (!P_RIGHTMOST(opaque) && _bt_compare(search->rel, scankey, page, P_HIKEY) > 0)
		verdict = LBT_BEYOND;
	else
	{
		search->offset = _bt_binsrch_insert(search->rel, &state);
		if (search->offset == P_FIRSTDATAKEY(opaque) && !low_known && !P_LEFTMOST(opaque))
			verdict = LBT_BEFORE;
		else if (state.postingoff != 0)
			verdict = LBT_PROVEN_POSTING;
	}
	pfree(scankey);
	return verdict;
}

static inline LbtVerdict
examine(LbtSearch *search, Buffer buf, bool low_known)
{
	const LbtKeySpec *spec = &search->index->keyspec;
	TupleDesc	tupdesc = RelationGetDescr(search->rel);
	Page		page = BufferGetPage(buf);
	BTPageOpaque opaque = BTPageGetOpaque(page);
	OffsetNumber off = search_leaf(search, page);
	int			cmp = -1;		/* the key with what comes right of its place */

	search->offset = off;
	if (off <= PageGetMaxOffsetNumber(page))
		cmp = lbt_compare_key(spec, tupdesc, search->bound, lbt_page_tuple(page, off), false);
	else if (!P_RIGHTMOST(opaque))
		cmp = lbt_compare_key(spec, tupdesc, search->bound, lbt_page_tuple(page, P_HIKEY), true);
	if (cmp > 0)
		return LBT_BEYOND;
	if (cmp == 0)
		return search->unique ? LBT_PROVEN_EQUAL : find_among_equals(search, buf, low_known);
	if (off == P_FIRSTDATAKEY(opaque) && !low_known && !P_LEFTMOST(opaque))
		return LBT_BEFORE;
	return LBT_PROVEN;
}

/* Remember the leaf for the next insert.  slot: as predicted, or PG_UINT32_MAX. */
static void
remember_leaf(LbtIndex *index, Buffer buf, uint32 slot, uint64 code, int hops)
{
	LbtLastLeaf *last = &index->last;
	const LbtModel *model = &index->model;
	bool		rightmost = P_RIGHTMOST(BTPageGetOpaque(BufferGetPage(buf)));

	last->block = BufferGetBlockNumber(buf);
	last->buffer = buf;
	if (slot < model->nleaves)
	{
		last->lo = model->leaves[slot].min_code;
		last->hi = slot + 1 < model->nleaves ? model->leaves[slot + 1].min_code : PG_UINT64_MAX;
	}
	if (hops > 0)
		last->lo = code;		/* what lies further left may be the left
								 * neighbour's */
	if (rightmost)
		last->hi = PG_UINT64_MAX;
}

/* The last leaf once more, if the code is likely to belong there. */
static inline bool
target_last(const LbtIndex *index, uint64 code, LbtTarget *t)
{
	const LbtLastLeaf *last = &index->last;

	if (last->block == InvalidBlockNumber || code < last->lo || code > last->hi)
		return false;
	t->generation = index->generation;
	t->pinned = InvalidBuffer;
	t->slot = PG_UINT32_MAX;
	t->block = last->block;
	t->recent = lbt_enable_buffer_hint && last->buffer <= NBuffers ? last->buffer : InvalidBuffer;
	t->fraction = last->hi == PG_UINT64_MAX ? 1.0 :
		(double) (code - last->lo) / ((double) (last->hi - last->lo) + 1.0);
	return true;
}

/* Land on one target and draw the conclusion. */
static LbtPlacement
try_target(LbtSearch *search, uint64 code, const LbtTarget *target, LbtPlace *place)
{
	Relation	rel = search->rel;
	LbtIndex   *index = search->index;
	Buffer		buf = land(rel, index, target, BT_WRITE);
	LbtVerdict	verdict;
	Page		page;
	bool		fits;

	if (!BufferIsValid(buf))
		return LBT_PLACE_UNKNOWN;
	search->fraction = target->fraction;
	verdict = verify(search, &buf, BT_WRITE, examine);
	page = BufferGetPage(buf);
	if (verdict > LBT_PROVEN_POSTING)
	{
		/*
		 * Too far right of what the model knows: nbtree finds it now, and the
		 * next one starts here.
		 */
		if (search->hops == MAX_HOPS && is_btree_page(page))
			remember_leaf(index, buf, target->slot, code, search->hops);
		else
			index->last.block = InvalidBlockNumber;
		_bt_relbuf(rel, buf);
		return LBT_PLACE_UNKNOWN;
	}
	fits = PageGetFreeSpace(page) >= MAXALIGN(IndexTupleSize(search->itup));
	remember_leaf(index, buf, target->slot, code, search->hops);
	place->moved = search->hops > 0;
	if (verdict == LBT_PROVEN && fits)
	{
		place->buf = buf;
		place->offset = search->offset;
		return LBT_PLACED;
	}
	if (!fits)
	{
		place->block = BufferGetBlockNumber(buf);
		place->next = BTPageGetOpaque(page)->btpo_next;
	}
	_bt_relbuf(rel, buf);
	return verdict == LBT_PROVEN_EQUAL ? LBT_PLACE_EQUAL : LBT_PLACE_FULL;
}

/* What an insert needs beyond a lookup: the ends of the line pointers and of the items. */
static inline void
prefetch_free_space(const LbtIndex *index, const LbtTarget *t)
{
	char	   *page;

	if (t->recent == InvalidBuffer)
		return;
	page = (char *) BufferGetBlock(t->recent);
	__builtin_prefetch(page + SizeOfPageHeaderData + index->leaf_items * sizeof(ItemIdData), 1);
	__builtin_prefetch(page + BLCKSZ - MAXALIGN(sizeof(BTPageOpaqueData)) - index->leaf_bytes - 1, 1);
	LBT_KEEP_PREFETCHES();
}

static uint64
code_of(const LbtIndex *index, const LbtBound *key)
{
	return lbt_model_code(&index->model, key->value, key->ncolumns, LBT_MISSING_LOW);
}

LbtPlacement
lbt_place(Relation rel, LbtIndex *index, const LbtBound *key, IndexTuple itup, bool unique,
		  LbtPlace *place)
{
	LbtSearch	search = {.rel = rel,.index = index,.bound = key,.itup = itup,.unique = unique};
	uint64		code = code_of(index, key);
	LbtPlacement placement = LBT_PLACE_UNKNOWN;
	LbtTarget	target;

	place->block = InvalidBlockNumber;
	place->moved = false;
	if (target_last(index, code, &target))
		placement = try_target(&search, code, &target, place);
	if (placement == LBT_PLACE_UNKNOWN)
	{
		target_slot(index, predict_slot(&index->model, code, false), code, &target);
		prefetch_target(index, &target);
		prefetch_free_space(index, &target);
		placement = try_target(&search, code, &target, place);
	}
	return placement;
}

/* Tuples of this code and above have outgrown the model: they go to this leaf, the rightmost. */
static void
remember_rightmost(LbtIndex *index, BlockNumber block, const LbtBound *key)
{
	if (index->state == LBT_READY)
		index->last = (LbtLastLeaf)
	{
		.block = block,.lo = code_of(index, key),.hi = PG_UINT64_MAX
	};
}

bool
lbt_place_after_btree(Relation rel, LbtIndex *index, const LbtBound *key, const LbtPlace *place)
{
	BlockNumber next = place->next;
	Buffer		buf;

	if (place->block == InvalidBlockNumber)
	{
		/* nbtree remembers the rightmost leaf, too. */
		if (index->last.block == InvalidBlockNumber &&
			RelationGetTargetBlock(rel) != InvalidBlockNumber)
			remember_rightmost(index, RelationGetTargetBlock(rel), key);
		return false;
	}
	buf = ReadBuffer(rel, place->block);
	_bt_lockbuf(rel, buf, BT_READ);
	if (is_btree_page(BufferGetPage(buf)))
		next = BTPageGetOpaque(BufferGetPage(buf))->btpo_next;
	_bt_relbuf(rel, buf);
	if (next == place->next)
		return false;
	if (place->next == P_NONE && index->last.block == place->block)
		remember_rightmost(index, next, key);
	return true;
}
