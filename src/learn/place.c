/*
 * place.c - the predicted leaf of an insert, and the proof; see place.h and src/README, "Inserts".
 *
 * As in locate.c, the items around the tuple's place prove that it belongs on the page: one strictly
 * before it (or the page is leftmost, or we came from the left), and one strictly after it or a high key
 * that is.  "Strictly" by the covered columns alone, so heap TIDs and further columns need no look; where
 * they matter, because equal keys are on the page, nbtree's own comparison decides.
 */
#include "learn/place.h"

#include "learn/counters.h"
#include "learn/target.h"

/* What a page says about the tuple. */
typedef enum Finding
{
	FOUND,						/* it goes on this page, at the offset */
	FOUND_EQUAL,				/* so it does, but equal keys are here and it has to be unique */
	FOUND_POSTING,				/* so it does, into a posting list */
	GO_RIGHT,					/* it lies right of this page */
	NO_PROOF
} Finding;

/*
 * Equal keys, or a high key equal in the covered columns: further columns and the heap TID decide, by
 * nbtree's comparison.
 */
static Finding
find_among_equals(Relation rel, IndexTuple itup, Buffer buf, bool low_known, OffsetNumber *offset)
{
	Page		page = BufferGetPage(buf);
	BTPageOpaque opaque = BTPageGetOpaque(page);
	BTScanInsert scankey = _bt_mkscankey(rel, itup);
	BTInsertStateData state = {.itup = itup,.itemsz = MAXALIGN(IndexTupleSize(itup)),
	.itup_key = scankey,.buf = buf};
	Finding		finding = FOUND;

	if (!scankey->heapkeyspace)
	{
		pfree(scankey);
		return NO_PROOF;		/* a file from before PostgreSQL 12 orders equal keys otherwise */
	}
	scankey->scantid = &itup->t_tid;
	if (!P_RIGHTMOST(opaque) && _bt_compare(rel, scankey, page, P_HIKEY) > 0)
		finding = GO_RIGHT;
	else
	{
		*offset = _bt_binsrch_insert(rel, &state);
		if (*offset == P_FIRSTDATAKEY(opaque) && !low_known && !P_LEFTMOST(opaque))
			finding = NO_PROOF;
		else if (state.postingoff != 0)
			finding = FOUND_POSTING;
	}
	pfree(scankey);
	return finding;
}

/* Look for the tuple's place on a locked page.  low_known: it is known not to lie left of the page. */
static Finding
examine(Relation rel, LbtIndex *index, const LbtBound *key, IndexTuple itup, bool unique, Buffer buf,
		double fraction, bool low_known, OffsetNumber *offset)
{
	const LbtKeySpec *spec = &index->keyspec;
	TupleDesc	tupdesc = RelationGetDescr(rel);
	Page		page = BufferGetPage(buf);
	BTPageOpaque opaque = BTPageGetOpaque(page);
	OffsetNumber off = search_leaf(index, tupdesc, key, page, fraction);
	int			cmp = -1;		/* the key with what comes right of its place */

	*offset = off;
	if (off <= PageGetMaxOffsetNumber(page))
		cmp = lbt_compare_key(spec, tupdesc, key, lbt_page_tuple(page, off), false);
	else if (!P_RIGHTMOST(opaque))
		cmp = lbt_compare_key(spec, tupdesc, key, lbt_page_tuple(page, P_HIKEY), true);
	if (cmp > 0)
		return GO_RIGHT;
	if (cmp == 0)
		return unique ? FOUND_EQUAL :
			find_among_equals(rel, itup, buf, low_known, offset);
	if (off == P_FIRSTDATAKEY(opaque) && !low_known && !P_LEFTMOST(opaque))
		return NO_PROOF;
	return FOUND;
}

/*
 * Find the tuple's page from the locked one on, to the right.  The buffer is exchanged for that of the
 * page found; it is locked whatever the finding.  Stepping right is safe for the same reasons as in
 * locate.c; an unfinished split on the way is left to nbtree, which finishes it first.
 */
static Finding
search_from(Relation rel, LbtIndex *index, const LbtBound *key, IndexTuple itup, bool unique,
			Buffer *buf, double fraction, OffsetNumber *offset, int *hops)
{
	for (*hops = 0;; (*hops)++)
	{
		Page		page = BufferGetPage(*buf);
		BTPageOpaque opaque;
		Finding		finding;

		if (!is_btree_page(page))
			return NO_PROOF;
		opaque = BTPageGetOpaque(page);
		if (!P_ISLEAF(opaque) || P_ISMETA(opaque) || P_INCOMPLETE_SPLIT(opaque))
			return NO_PROOF;
		if (P_IGNORE(opaque))
		{
			/* Landed on: it tells nothing.  Come upon: its key space went to its right. */
			if (*hops == 0)
				return NO_PROOF;
			finding = GO_RIGHT;
		}
		else
		{
			if (PageGetMaxOffsetNumber(page) < P_FIRSTDATAKEY(opaque))
				return NO_PROOF;
			finding = examine(rel, index, key, itup, unique, *buf, fraction, *hops > 0, offset);
		}
		if (finding != GO_RIGHT)
			return finding;
		if (*hops == MAX_HOPS || P_RIGHTMOST(opaque))
			return NO_PROOF;
		fraction = 0;
		*buf = _bt_relandgetbuf(rel, *buf, opaque->btpo_next, BT_WRITE);
	}
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
		last->lo = code;		/* what lies further left may be the left neighbour's */
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
try_target(Relation rel, LbtIndex *index, const LbtBound *key, uint64 code, IndexTuple itup,
		   bool unique, const LbtTarget *target, LbtPlace *place)
{
	Buffer		buf;
	Finding		finding;
	Page		page;
	bool		room;
	int			hops;

	buf = land(rel, index, target, BT_WRITE);
	if (!BufferIsValid(buf))
		return LBT_PLACE_UNKNOWN;
	finding = search_from(rel, index, key, itup, unique, &buf, target->fraction, &place->offset,
						  &hops);
	if (finding == NO_PROOF)
	{
		/* Too far right of what the model knows: nbtree finds it now, and the next one starts here. */
		if (hops == MAX_HOPS && is_btree_page(BufferGetPage(buf)))
			remember_leaf(index, buf, target->slot, code, hops);
		else
			index->last.block = InvalidBlockNumber;
		_bt_relbuf(rel, buf);
		return LBT_PLACE_UNKNOWN;
	}
	page = BufferGetPage(buf);
	room = PageGetFreeSpace(page) >= MAXALIGN(IndexTupleSize(itup));
	remember_leaf(index, buf, target->slot, code, hops);
	if (hops > 0)
	{
		lbt_count(index, LBT_EV_INSERT_MOVED);
		index->misses++;
	}
	if (finding == FOUND && room)
	{
		place->buf = buf;
		return LBT_PLACED;
	}
	if (!room)
	{
		place->block = BufferGetBlockNumber(buf);
		place->next = BTPageGetOpaque(page)->btpo_next;
	}
	_bt_relbuf(rel, buf);
	return finding == FOUND_EQUAL ? LBT_PLACE_EQUAL : LBT_PLACE_FULL;
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
	uint64		code = code_of(index, key);
	LbtPlacement placement = LBT_PLACE_UNKNOWN;
	LbtTarget	target;

	place->block = InvalidBlockNumber;
	lbt_count(index, LBT_EV_INSERT);
	if (target_last(index, code, &target))
		placement = try_target(rel, index, key, code, itup, unique, &target, place);
	if (placement == LBT_PLACE_UNKNOWN)
	{
		target_slot(index, predict_slot(&index->model, code, false), code, &target);
		prefetch_target(index, &target);
		prefetch_free_space(index, &target);
		placement = try_target(rel, index, key, code, itup, unique, &target, place);
	}
	switch (placement)
	{
		case LBT_PLACED:
			lbt_count(index, LBT_EV_INSERT_PLACED);
			break;
		case LBT_PLACE_FULL:
			lbt_count(index, LBT_EV_INSERT_FULL);
			break;
		case LBT_PLACE_EQUAL:
			lbt_count(index, LBT_EV_INSERT_EQUAL);
			break;
		case LBT_PLACE_UNKNOWN:
			lbt_count(index, LBT_EV_INSERT_FALLBACK);
			index->misses++;
			break;
	}
	return placement;
}

/* Tuples of this code and above have outgrown the model: they go to this leaf, the rightmost. */
static void
remember_rightmost(LbtIndex *index, BlockNumber block, const LbtBound *key)
{
	if (index->state == LBT_READY)
		index->last = (LbtLastLeaf) {.block = block,.lo = code_of(index, key),.hi = PG_UINT64_MAX};
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
	lbt_count(index, LBT_EV_SPLIT);
	if (place->next == P_NONE && index->last.block == place->block)
		remember_rightmost(index, next, key);
	return true;
}
