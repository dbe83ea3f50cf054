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
#include "learn/train.h"
#include "storage/buf_internals.h"

/* Right links followed from the predicted leaf before the descent is the better way. */
#define MAX_HOPS 3

/* Leaves to the left that are tried when the leaf cache is off and the spline went too far. */
#define MAX_RETREATS 8

/* Fallbacks after which it is time to look whether the file has outgrown its model. */
#define MISSES_BEFORE_LOOK 64

/* A buffer used less often (of BM_MAX_USAGE_COUNT) is not pinned through its hint. */
#define HINT_MIN_USAGE 3

/* A prediction. */
typedef struct Target
{
	uint32		slot;
	BlockNumber block;
	Buffer		recent;			/* a buffer of this server's, or invalid */
	double		fraction;		/* where in the leaf, from 0 to 1 */
} Target;

typedef enum Verdict
{
	VERDICT_PROVEN,
	VERDICT_NOT_LEAF,
	VERDICT_LOW,				/* the bound may lie left of the page */
	VERDICT_HIGH				/* it lies right of the page */
} Verdict;

/* Leaf cache entries may be garbage (registry.c): nothing read here is more than a hint. */
static inline void
target_slot(const LbtIndex *index, uint32 slot, uint64 code, Target *t)
{
	const LbtLeaf *leaf = &index->model.leaves[slot];

	t->slot = slot;
	t->block = leaf->block;
	t->recent = lbt_enable_buffer_hint ? (Buffer) leaf->recent_buffer : InvalidBuffer;
	if (t->recent < 1 || t->recent > NBuffers)
		t->recent = InvalidBuffer;
	t->fraction = lbt_enable_leaf_cache ?
		lbt_leaf_fraction(index->model.leaves, index->model.nleaves, slot, code) : 0.5;
}

/*
 * Ask for the cache lines that the visit will need, all at once: the buffer's header, the page's
 * header, line pointers and special space, and the place where the key should be.  Items of a page
 * fresh from a build or split lie in key order, from the special space downwards.
 */
static inline void
prefetch_target(const LbtIndex *index, const Target *t)
{
	char	   *page;
	char	   *item;

	if (t->recent == InvalidBuffer)
		return;
	page = (char *) BufferGetBlock(t->recent);
	__builtin_prefetch(GetBufferDescriptor(t->recent - 1), 1);
	__builtin_prefetch(page);
	item = page + BLCKSZ - sizeof(BTPageOpaqueData);
	__builtin_prefetch(item);
	item -= (int) (t->fraction * index->leaf_bytes);
	__builtin_prefetch(item);
	__builtin_prefetch(item - PG_CACHE_LINE_SIZE / 2);
	__builtin_prefetch(page + SizeOfPageHeaderData +
					   (int) (t->fraction * index->leaf_items) * sizeof(ItemIdData));
}

/*
 * May the buffer be pinned through the hint?  That leaves its usage count alone, so one that the clock
 * sweep has worn down goes through the buffer table, which counts the use: leaves that are looked up
 * often must not look idle to the buffer manager.
 */
static inline bool
hint_usable(const Target *t)
{
	uint32		state;

	if (t->recent == InvalidBuffer)
		return false;
	state = pg_atomic_read_u32(&GetBufferDescriptor(t->recent - 1)->state);
	return BUF_STATE_GET_USAGECOUNT(state) >= HINT_MIN_USAGE;
}

/* Pin and share-lock the target; InvalidBuffer when the block cannot be in the file. */
static Buffer
land(Relation rel, LbtIndex *index, const Target *t)
{
	Buffer		buf;

	if (hint_usable(t) && lbt_read_recent_buffer(rel, t->block, t->recent))
	{
		pgstat_count_buffer_read(rel);
		pgstat_count_buffer_hit(rel);
		buf = t->recent;
	}
	else
	{
		if (t->block == BTREE_METAPAGE)
			return InvalidBuffer;
		if (t->block >= index->nblocks)
			index->nblocks = RelationGetNumberOfBlocks(rel);
		if (t->block >= index->nblocks)
			return InvalidBuffer;
		buf = ReadBuffer(rel, t->block);
		if (lbt_enable_buffer_hint && buf != t->recent)
			lbt_index_set_hint(index, t->slot, buf);
	}
	LockBuffer(buf, BUFFER_LOCK_SHARE);
	return buf;
}

/*
 * A page of an nbtree file, as far as its header tells.  A zero or foreign page is not ours to report:
 * the descent raises nbtree's own error if it is really part of the tree.
 */
static inline bool
is_btree_page(Page page)
{
	return !PageIsNew(page) &&
		PageGetSpecialSize(page) == MAXALIGN(sizeof(BTPageOpaqueData));
}

/* Look for the bound on a locked page.  low_known: it is known not to lie left of the page. */
static inline Verdict
examine(LbtIndex *index, TupleDesc tupdesc, const LbtBound *bound, Page page, double fraction,
		bool low_known, OffsetNumber *offset)
{
	BTPageOpaque opaque = BTPageGetOpaque(page);
	OffsetNumber first = P_FIRSTDATAKEY(opaque);
	OffsetNumber last = PageGetMaxOffsetNumber(page);
	OffsetNumber off;

	index->leaf_items = last;
	index->leaf_bytes = ((PageHeader) page)->pd_special - ((PageHeader) page)->pd_upper;

	off = lbt_page_search(&index->keyspec, tupdesc, bound, page, first, last,
						  first + (OffsetNumber) (fraction * (last + 1 - first)));
	*offset = off;
	if (off > last && lbt_bound_beyond_page(&index->keyspec, tupdesc, bound, page))
		return VERDICT_HIGH;
	if (off == first && !low_known && !P_LEFTMOST(opaque))
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
			if (hops > 0)
				lbt_count(index, LBT_EV_MOVED_RIGHT);
			return;
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

Buffer
lbt_predict_leaf(Relation rel, LbtIndex *index, const LbtBound *bound, Snapshot snapshot,
				 OffsetNumber *offset, BlockNumber *predicted, int *hops)
{
	const LbtModel *model = &index->model;
	uint64		code = lbt_keycode(&model->code, bound->value, bound->ncolumns,
								   bound->past ? LBT_MISSING_HIGH : LBT_MISSING_LOW);
	uint32		slot = lbt_enable_leaf_cache ? lbt_model_slot(model, code, bound->past) :
		lbt_spline_predict(model->knots, model->nknots, model->nleaves, code);
	Target		target;

	target_slot(index, slot, code, &target);
	*predicted = target.block;
	for (int retreats = 0;; retreats++)
	{
		Verdict		verdict;
		Buffer		buf;

		prefetch_target(index, &target);
		buf = land(rel, index, &target);
		if (!BufferIsValid(buf))
		{
			lbt_count(index, LBT_EV_BAD_BLOCK);
			index->misses++;
			return InvalidBuffer;
		}
		buf = prove(rel, index, bound, buf, target.fraction, snapshot, offset, &verdict, hops);
		if (verdict == VERDICT_PROVEN)
		{
			count_verdict(index, verdict, *hops + retreats);
			return buf;
		}
		UnlockReleaseBuffer(buf);

		/* Without the leaf cache the spline alone may have gone too far right. */
		if (lbt_enable_leaf_cache || verdict != VERDICT_LOW || target.slot == 0 ||
			retreats == MAX_RETREATS)
		{
			count_verdict(index, verdict, 0);
			return InvalidBuffer;
		}
		target_slot(index, target.slot - 1, code, &target);
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
									   lbt_keyspec_datum(column, value->ordered));
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
		   OffsetNumber *offset)
{
	/*
	 * Here, not where the scan began: since then this backend may have made a dsa call for another index
	 * and so unmapped a segment that an outdated view still points into.
	 */
	lbt_index_update(index);
	lbt_count(index, LBT_EV_LOOKUP);
	if (index->state == LBT_READY)
	{
		BlockNumber predicted;
		int			hops;
		Buffer		buf = lbt_predict_leaf(rel, index, bound, snapshot, offset, &predicted, &hops);

		if (BufferIsValid(buf))
			return buf;
		if (index->misses >= MISSES_BEFORE_LOOK)
			lbt_train_on_misses(rel, index);
	}
	else
		lbt_count(index, LBT_EV_NO_MODEL);
	return lbt_descend(rel, index, bound, backward, snapshot, offset);
}
