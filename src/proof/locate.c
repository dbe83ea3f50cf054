/*
 * locate.c - predict, land, and prove: all trust is granted here.  See
 * src/README, "Why an answer is right" and "Why an insert goes to the right
 * place".
 *
 *                       low                      high
 *     left neighbour ]  |  item  item  item  item  |  [ right neighbour
 *                          ^ an item before     ^ an item, or the high key,
 *                                                 that is not before
 *
 * The proof, on a locked page that is a live leaf: the bound lies in the
 * leaf's key space if
 *   low   some data item on the page is before the bound, or the page is
 *         leftmost, or we came from its left sibling, whose high key is before
 *         the bound; and
 *   high  some data item is not before the bound (it is <= the high key), or
 *         the high key itself is not, or the page is rightmost.
 *
 *   link  the leaf is among its siblings: a failed split may have left behind
 *         one that is not, see is_linked().
 *
 * For the place of a new tuple both sides must be strict by the covered
 * columns alone, or nbtree's own comparison decides.  If a leaf has split
 * since the model was made, its right link leads on ("Races").
 */
#include "proof/locate.h"

/* Right links to follow from the predicted leaf before descending instead. */
#define MAX_HOPS 3

typedef enum Verdict
{
	PROVEN,						/* it is on this page, at search->offset */
	PROVEN_EQUAL,				/* the same, but has to be unique and is not */
	PROVEN_POSTING,				/* the same, within a posting list */
	BEYOND,						/* it lies right of this page */
	BEFORE,						/* it may lie left of this page */
	NO_LEAF						/* not a live leaf with data */
} Verdict;

/* A position to look for, and what was found. */
typedef struct Search
{
	Relation	rel;
	LbtIndex   *index;
	const LbtBound *bound;
	Snapshot	snapshot;		/* a scan's */
	IndexTuple	itup;			/* an insert's */
	bool		unique;
	uint32		slot;			/* of the leaf where we land; or of none */
	BlockNumber left;			/* its left sibling, once; or invalid */
	double		fraction;		/* of the leaf, where to look first */
	OffsetNumber offset;		/* first item not before it, or last + 1 */
	int			hops;			/* to the right of where we landed */
} Search;

/* ---- landing ---- */

/*
 * Pin and lock a block, which perhaps nobody needs: InvalidBuffer if it cannot
 * be read.  A descent that comes to it raises the error.
 */
static Buffer
lock_block(Relation rel, BlockNumber block, bool at_hand, int lockmode)
{
	Buffer		buf = at_hand || lbt_block_is_there(rel, block) ?
		ReadBuffer(rel, block) : lbt_bt_try_read(rel, block);

	if (BufferIsValid(buf))
		_bt_lockbuf(rel, buf, lockmode);
	return buf;
}

/* Pin and lock the target; InvalidBuffer if its block cannot be read. */
static pg_attribute_always_inline Buffer
lock_target(const Search *search, const LbtTarget *t, int lockmode)
{
	Relation	rel = search->rel;
	LbtIndex   *index = search->index;
	Buffer		buf;

	if (lbt_pin_by_hint(rel, t->block, t->recent))
	{
		_bt_lockbuf(rel, t->recent, lockmode);
		return t->recent;
	}
	if (t->block == BTREE_METAPAGE || !lbt_in_file(rel, index, t->block))
		return InvalidBuffer;
	buf = lock_block(rel, t->block, lbt_buffer_holds(t->recent, rel, t->block), lockmode);
	if (lbt_enable_buffer_hint && BufferIsValid(buf) && buf != t->recent)
		lbt_index_set_hint(index, t->slot, t->block, buf);
	return buf;
}

/*
 * The bound may lie left of the target, whose smallest code it has: the code
 * stands for lesser keys, too, or the leaf has changed or gone since.  Set
 * *target to the leaf before it.
 */
static bool
target_before(LbtIndex *index, uint64 code, LbtTarget *target)
{
	uint32		slot = target->slot;
	const LbtLeaf *leaf = &index->model.leaves[slot];

	if (slot == 0 || leaf->min_code != code || leaf->block != target->block)
		return false;
	if (leaf->cut != 0)
		lbt_index_forget_cut(index, slot, target->block);
	target_slot(index, slot - 1, code, target);
	return true;
}

/* ---- the proof ---- */

/*
 * Find the first item on a locked leaf that is not before the bound, starting
 * where it should be.  Note how full the leaf is for later prefetches.
 */
static inline void
search_leaf(Search *search, Page page)
{
	OffsetNumber first = P_FIRSTDATAKEY(BTPageGetOpaque(page));
	OffsetNumber last = PageGetMaxOffsetNumber(page);
	LbtIndex   *index = search->index;

	index->seen.leaf_items = last;
	index->seen.leaf_bytes = ((PageHeader) page)->pd_special - ((PageHeader) page)->pd_upper;
	search->offset = lbt_page_search(&index->keyspec, RelationGetDescr(search->rel), search->bound,
									 page, first, last, first +
									 (OffsetNumber) (search->fraction * (last + 1 - first)));
}

/*
 * Is the locked leaf as a training saw it, in this slot?  Then *cut, if not
 * NULL, becomes its LbtLeaf.cut.
 */
static pg_noinline bool
is_as_trained(const LbtIndex *index, uint32 slot, Buffer buf, int *cut)
{
	const LbtModel *model = &index->model;
	bool		trained;

	if (slot >= model->nleaves)
		return false;
	trained = model->leaves[slot].block == BufferGetBlockNumber(buf) &&
		BufferGetLSNAtomic(buf) - 1 < model->lsn;	/* and is not 0 */
	if (cut != NULL)
		*cut = model->leaves[slot].cut;
	pg_read_barrier();
	return trained && lbt_same_model(index, index->generation);
}

/*
 * Is all that begins as the first item does, in some columns that the bound
 * agrees with, on this leaf or right of it?  By the separator that a training
 * saw, if this had no further columns: it is not after the first item.
 */
static pg_noinline bool
is_cut_before(Relation rel, const LbtIndex *index, uint32 slot, const LbtBound *bound, Buffer buf)
{
	Page		page = BufferGetPage(buf);
	IndexTuple	item = lbt_page_tuple(page, P_FIRSTDATAKEY(BTPageGetOpaque(page)));
	int			cut;

	if (!is_as_trained(index, slot, buf, &cut) || cut == 0 || cut > bound->ncolumns)
		return false;
	for (int i = 0; i < cut; i++)
		if (lbt_compare_column(&index->keyspec, RelationGetDescr(rel), i, &bound->value[i],
							   item) != 0)
			return false;
	return true;
}

/*
 * Is the low side unproven, as no item on the page is before the position?  A
 * page without items has not come here.
 */
static inline bool
low_unknown(const Search *search, Buffer buf, BTPageOpaque opaque)
{
	return search->offset == P_FIRSTDATAKEY(opaque) && search->hops == 0 &&
		!P_LEFTMOST(opaque) &&
		!is_cut_before(search->rel, search->index, search->slot, search->bound, buf);
}

/* Is the bound on this leaf? */
static inline Verdict
examine_bound(Search *search, Buffer buf, Page page, BTPageOpaque opaque)
{
	search_leaf(search, page);
	if (search->offset > PageGetMaxOffsetNumber(page) &&
		lbt_bound_beyond_page(&search->index->keyspec, RelationGetDescr(search->rel), search->bound,
							  page))
		return BEYOND;
	return low_unknown(search, buf, opaque) ? BEFORE : PROVEN;
}

/*
 * Is the tuple's place on this leaf, where covered columns are equal?  Here
 * nbtree's comparison decides, by further columns and the heap TID.
 */
static Verdict
examine_equals(Search *search, Buffer buf)
{
	Page		page = BufferGetPage(buf);
	BTPageOpaque opaque = BTPageGetOpaque(page);
	BTScanInsert key = _bt_mkscankey(search->rel, search->itup);
	BTInsertStateData state = {.itup = search->itup,
	.itemsz = MAXALIGN(IndexTupleSize(search->itup)),.itup_key = key,.buf = buf};
	Verdict		verdict = PROVEN;

	key->scantid = &search->itup->t_tid;
	/* Files from before PostgreSQL 12 order equal keys differently. */
	if (!key->heapkeyspace)
		verdict = NO_LEAF;
	else if (!P_RIGHTMOST(opaque) && _bt_compare(search->rel, key, page, P_HIKEY) > 0)
		verdict = BEYOND;
	else
	{
		search->offset = _bt_binsrch_insert(search->rel, &state);
		if (low_unknown(search, buf, opaque))
			verdict = BEFORE;
		else if (state.postingoff != 0)
			verdict = PROVEN_POSTING;
	}
	pfree(key);
	return verdict;
}

/* Is the tuple's place on this leaf? */
static inline Verdict
examine_place(Search *search, Buffer buf, Page page, BTPageOpaque opaque)
{
	const LbtKeySpec *spec = &search->index->keyspec;
	TupleDesc	tupdesc = RelationGetDescr(search->rel);
	int			cmp = -1;		/* of the key with what follows it */

	search_leaf(search, page);
	if (search->offset <= PageGetMaxOffsetNumber(page))
		cmp = lbt_compare_key(spec, tupdesc, search->bound, lbt_page_tuple(page, search->offset),
							  false);
	else if (!P_RIGHTMOST(opaque))
		cmp = lbt_compare_key(spec, tupdesc, search->bound, lbt_page_tuple(page, P_HIKEY), true);
	if (cmp > 0)
		return BEYOND;
	if (cmp == 0)
		return search->unique ? PROVEN_EQUAL : examine_equals(search, buf);
	return low_unknown(search, buf, opaque) ? BEFORE : PROVEN;
}

/* Set what the target says of the leaf, if its model cannot be garbage. */
static inline void
know_leaf(Search *search, const LbtTarget *t)
{
	search->fraction = t->fraction;
	search->slot = t->slot;
	pg_read_barrier();
	search->left = likely(lbt_same_model(search->index, t->generation)) ? t->left :
		InvalidBlockNumber;
}

/*
 * Is the locked leaf where we landed among its siblings?  A page that a failed
 * split has left behind is neither leftmost nor rightmost, has no LSN, hardly
 * has the left sibling that it once had, and its left sibling's right link
 * does not name it.  Neither of these links can change while we hold this
 * lock.
 */
static inline bool
is_linked(const Search *search, Buffer buf, BTPageOpaque opaque)
{
	return (opaque->btpo_prev == search->left &&
			(PageGetLSN(BufferGetPage(buf)) != 0 || search->index->model.without_lsn)) ||
		P_LEFTMOST(opaque) || P_RIGHTMOST(opaque) ||
		is_as_trained(search->index, search->slot, buf, NULL) ||
		lbt_bt_right_link(search->rel, opaque->btpo_prev) == BufferGetBlockNumber(buf);
}

/*
 * Prove the position on *buf or right of it; returns *buf locked as it was, or
 * InvalidBuffer, with NO_LEAF.
 */
static pg_attribute_always_inline Verdict
verify(Search *search, Buffer *buf, int lockmode)
{
	bool		inserting = lockmode == BT_WRITE;
	BlockNumber from = InvalidBlockNumber;
	BlockNumber next;

	for (search->hops = 0;; search->hops++)
	{
		Page		page = BufferGetPage(*buf);
		BTPageOpaque opaque;
		Verdict		verdict = BEYOND;

		/* If the header does not look like nbtree's, a descent reports it. */
		if (PageIsNew(page) || PageGetSpecialSize(page) != MAXALIGN(sizeof(BTPageOpaqueData)))
			return NO_LEAF;
		opaque = BTPageGetOpaque(page);
		if (!P_ISLEAF(opaque) || P_ISMETA(opaque) || (inserting && P_INCOMPLETE_SPLIT(opaque)))
			return NO_LEAF;

		/* Leaves that name each other are linked; else the other has split. */
		if (search->hops > 0 && opaque->btpo_prev != from)
			return NO_LEAF;
		if (P_IGNORE(opaque))
		{
			/* Half-dead, if we came from its left: go on to the right. */
			if (search->hops == 0)
				return NO_LEAF;
		}
		else if ((search->hops == 0 || inserting) &&
				 PageGetMaxOffsetNumber(page) < P_FIRSTDATAKEY(opaque))
			return NO_LEAF;
		else
			verdict = inserting ? examine_place(search, *buf, page, opaque) :
				examine_bound(search, *buf, page, opaque);
		if (verdict <= PROVEN_POSTING && search->hops == 0 && !is_linked(search, *buf, opaque))
			return NO_LEAF;
		if (verdict != BEYOND || search->hops == MAX_HOPS || P_RIGHTMOST(opaque))
			return verdict;
		search->fraction = 0;
		from = BufferGetBlockNumber(*buf);
		next = opaque->btpo_next;
		_bt_relbuf(search->rel, *buf);
		*buf = lock_block(search->rel, next, false, lockmode);
		if (!BufferIsValid(*buf))
			return NO_LEAF;
	}
}

/* ---- lookups ---- */

/* Is this the position after all values of the first column? */
static inline bool
is_right_end(const LbtIndex *index, const LbtBound *bound)
{
	return bound->ncolumns == 0 ? bound->past :
		bound->value[0].isnull && !index->keyspec.column[0].nulls_first;
}

/* Note the rightmost leaf, if a lookup of the right end has led there. */
static inline void
note_rightmost(LbtIndex *index, const LbtBound *bound, Buffer buf)
{
	if (P_RIGHTMOST(BTPageGetOpaque(BufferGetPage(buf))) && is_right_end(index, bound))
	{
		index->seen.rightmost = BufferGetBlockNumber(buf);
		index->seen.rightmost_buffer = buf;
	}
}

/*
 * An index that grows at its right end has leaves there that the model does
 * not know: predict the one that was rightmost last.  Keep the slot.
 */
static pg_noinline void
target_rightmost(const LbtIndex *index, const LbtBound *bound, LbtTarget *t)
{
	if (index->seen.rightmost == InvalidBlockNumber || !is_right_end(index, bound))
		return;
	t->block = index->seen.rightmost;
	t->left = InvalidBlockNumber;
	t->recent = lbt_enable_buffer_hint && index->seen.rightmost_buffer <= NBuffers ?
		index->seen.rightmost_buffer : InvalidBuffer;
	t->fraction = 1.0;
}

static inline bool
is_last_leaf(const LbtIndex *index, const LbtTarget *t)
{
	return unlikely(t->slot + 1 == index->model.nleaves) &&
		t->block == index->model.leaves[t->slot].block;
}

/*
 * Other lookups descend at once: what led beyond the leaves that can be
 * reached from the model's last one would do so again, until the next
 * training.
 */
static inline bool
is_beyond(const LbtIndex *index, uint64 code, const LbtTarget *t)
{
	return is_last_leaf(index, t) && index->seen.beyond > 0 && code >= index->seen.beyond;
}

/* Land on a target.  Returns its buffer, or one right of it, if proven. */
static pg_attribute_always_inline Buffer
land(Search *search, const LbtTarget *target, LbtOutcome *outcome)
{
	static const LbtEvent events[] = {
		[PROVEN] = LBT_EV_VERIFIED,[BEYOND] = LBT_EV_HIGH,[BEFORE] = LBT_EV_LOW,
		[NO_LEAF] = LBT_EV_BAD_PAGE
	};
	Buffer		buf = lock_target(search, target, BT_READ);
	Verdict		verdict;

	outcome->event = LBT_EV_BAD_BLOCK;
	if (!BufferIsValid(buf))
		return InvalidBuffer;
	know_leaf(search, target);
	verdict = verify(search, &buf, BT_READ);
	outcome->event = events[verdict];
	outcome->moved = search->hops;
	if (verdict == PROVEN)
	{
		lbt_test_for_old_snapshot(search->snapshot, search->rel, BufferGetPage(buf));
		return buf;
	}
	if (BufferIsValid(buf))
		_bt_relbuf(search->rel, buf);
	return InvalidBuffer;
}

/* The same, once more, left of one that the bound may lie left of. */
static pg_noinline Buffer
land_before(Search search, uint64 code, LbtTarget *target, OffsetNumber *offset,
			LbtOutcome *outcome)
{
	Buffer		buf;

	if (outcome->event == LBT_EV_HIGH || !target_before(search.index, code, target))
		return InvalidBuffer;
	buf = land(&search, target, outcome);
	*offset = search.offset;
	return buf;
}

Buffer
lbt_locate(Relation rel, LbtIndex *index, const LbtBound *bound, bool backward, Snapshot snapshot,
		   OffsetNumber *offset, LbtTarget *target, LbtOutcome *outcome)
{
	Search		search = {.rel = rel,.index = index,.bound = bound,.snapshot = snapshot};
	uint64		code;
	Buffer		buf;

	/*
	 * Not where the scan began: since then a dsa call for another index may
	 * have unmapped a segment that an outdated view still points into.
	 */
	lbt_index_update(index);
	outcome->moved = 0;
	outcome->event = LBT_EV_NO_MODEL;
	if (index->state != LBT_READY)
	{
		target->generation = 0;
		return InvalidBuffer;
	}
	code = bound_code(index, bound);
	if (!lbt_of_model(index, target->generation) && !lbt_take_prediction(index, code, target))
	{
		predict_target(index, bound, code, !backward, index->seen.slot, target);
		if (unlikely(target->slot + 1 == index->model.nleaves))
			target_rightmost(index, bound, target);
		prefetch_target(index, target, false);
	}
	index->seen.slot = target->slot;
	if (is_beyond(index, code, target))
	{
		outcome->event = LBT_EV_HIGH;
		return InvalidBuffer;
	}
	buf = land(&search, target, outcome);
	*offset = search.offset;
	if (unlikely(!BufferIsValid(buf)))
	{
		if (outcome->event == LBT_EV_HIGH && is_last_leaf(index, target))
			index->seen.beyond = code;
		buf = land_before(search, code, target, offset, outcome);
	}
	if (BufferIsValid(buf))
		note_rightmost(index, bound, buf);
	return buf;
}

/* nbtree's search key for a bound that has columns, palloc'd. */
static BTScanInsert
search_key(Relation rel, const LbtIndex *index, const LbtBound *bound)
{
	BTScanInsert key = _bt_mkscankey(rel, NULL);	/* of NULLs */

	key->nextkey = bound->past;
	key->keysz = bound->ncolumns;
	for (int i = 0; i < bound->ncolumns; i++)
	{
		if (bound->value[i].isnull)
			continue;
		key->scankeys[i].sk_flags &= ~SK_ISNULL;
		key->scankeys[i].sk_argument = lbt_keyspec_datum(&index->keyspec.column[i],
														 &bound->value[i]);
	}
	return key;
}

Buffer
lbt_descend(Relation rel, LbtIndex *index, const LbtBound *bound, bool backward,
			Snapshot snapshot, OffsetNumber *offset)
{
	TupleDesc	tupdesc = RelationGetDescr(rel);
	Buffer		buf;

	if (bound->ncolumns == 0)
		buf = lbt_bt_get_endpoint(rel, 0, bound->past, snapshot);
	else
	{
		BTScanInsert key = search_key(rel, index, bound);

		buf = lbt_bt_search(rel, key, backward, snapshot);
		pfree(key);
	}
	if (BufferIsValid(buf))
	{
		Page		page = BufferGetPage(buf);
		BTPageOpaque opaque = BTPageGetOpaque(page);
		OffsetNumber first = P_FIRSTDATAKEY(opaque);
		OffsetNumber last = PageGetMaxOffsetNumber(page);

		*offset = lbt_page_search(&index->keyspec, tupdesc, bound, page, first, last,
								  first + (last - first) / 2);

		/* nbtree has moved right where it had to. */
		Assert(*offset <= last ||
			   !lbt_bound_beyond_page(&index->keyspec, tupdesc, bound, page));
		note_rightmost(index, bound, buf);
	}
	return buf;
}

/* ---- inserts ---- */

/* Remember the leaf for the next insert.  slot: predicted, or PG_UINT32_MAX */
static void
remember_leaf(const Search *search, Buffer buf, uint32 slot, uint64 code)
{
	LbtIndex   *index = search->index;
	LbtLastLeaf *last = &index->inserting.last;
	const LbtModel *model = &index->model;
	BlockNumber left = BTPageGetOpaque(BufferGetPage(buf))->btpo_prev;
	int			hops = search->hops;

	last->block = BufferGetBlockNumber(buf);
	if (left != search->left)
		last->left_end = code;
	else if (slot < model->nleaves)
		last->left_end = model->leaves[slot].min_code;
	last->left = left;
	last->buffer = buf;
	last->moved = hops > 0;
	if (slot < model->nleaves)
	{
		last->lo = model->leaves[slot].min_code;
		last->hi = slot + 1 < model->nleaves ? model->leaves[slot + 1].min_code : PG_UINT64_MAX;
	}
	if (hops > 0)
		last->lo = code;		/* what is less may be the left neighbour's */
	if (P_RIGHTMOST(BTPageGetOpaque(BufferGetPage(buf))))
		last->hi = PG_UINT64_MAX;
}

/* The last leaf once more, if the code is likely to belong there. */
static inline bool
target_last(const LbtIndex *index, uint64 code, LbtTarget *t)
{
	const LbtLastLeaf *last = &index->inserting.last;

	if (last->block == InvalidBlockNumber || code < last->lo || code > last->hi)
		return false;

	/*
	 * In a tie run codes say nothing: ask the separators, unless they led
	 * left of this leaf, as for equal keys.
	 */
	if (index->model.separators.bytes > 0 && !last->moved && last->hi != PG_UINT64_MAX &&
		(code == last->lo || code == last->hi))
		return false;
	t->generation = index->generation;
	t->slot = PG_UINT32_MAX;
	t->block = last->block;
	t->recent = lbt_enable_buffer_hint && last->buffer <= NBuffers ? last->buffer : InvalidBuffer;
	t->left = left_of(index, code, last->left_end, last->left);
	t->fraction = last->hi == PG_UINT64_MAX ? 1.0 :
		(double) (code - last->lo) / ((double) (last->hi - last->lo) + 1.0);
	return true;
}

/* Land on one target and draw the conclusion. */
static LbtEvent
try_target(Search *search, uint64 code, const LbtTarget *target, LbtPlace *place, Verdict *verdict)
{
	LbtIndex   *index = search->index;
	Buffer		buf = lock_target(search, target, BT_WRITE);
	Page		page;
	bool		fits;

	*verdict = NO_LEAF;
	if (!BufferIsValid(buf))
		return LBT_EV_INSERT_FALLBACK;
	know_leaf(search, target);
	*verdict = verify(search, &buf, BT_WRITE);
	if (*verdict > PROVEN_POSTING)
	{
		/* Too far right of what the model knows: start here next time. */
		index->inserting.last.block = InvalidBlockNumber;
		if (!BufferIsValid(buf))
			return LBT_EV_INSERT_FALLBACK;
		if (search->hops == MAX_HOPS && *verdict == BEYOND &&
			!P_IGNORE(BTPageGetOpaque(BufferGetPage(buf))))
			remember_leaf(search, buf, target->slot, code);
		_bt_relbuf(search->rel, buf);
		return LBT_EV_INSERT_FALLBACK;
	}
	page = BufferGetPage(buf);
	fits = PageGetFreeSpace(page) >= MAXALIGN(IndexTupleSize(search->itup));
	remember_leaf(search, buf, target->slot, code);
	place->moved = search->hops > 0;
	if (*verdict == PROVEN && fits)
	{
		place->buf = buf;
		place->offset = search->offset;
		return LBT_EV_INSERT_PLACED;
	}
	if (!fits)
	{
		place->block = BufferGetBlockNumber(buf);
		place->next = BTPageGetOpaque(page)->btpo_next;
	}
	_bt_relbuf(search->rel, buf);
	return *verdict == PROVEN_EQUAL ? LBT_EV_INSERT_EQUAL : LBT_EV_INSERT_FULL;
}

LbtEvent
lbt_place(Relation rel, LbtIndex *index, const LbtBound *key, IndexTuple itup, bool unique,
		  LbtPlace *place)
{
	Search		search = {.rel = rel,.index = index,.bound = key,.itup = itup,.unique = unique};
	uint64		code = bound_code(index, key);
	LbtEvent	event = LBT_EV_INSERT_FALLBACK;
	LbtTarget	target;
	LbtTarget	made_ahead;
	Verdict		verdict;

	place->block = InvalidBlockNumber;
	place->moved = false;
	index->inserting.foreseen = lbt_take_prediction(index, code, &made_ahead);
	if (target_last(index, code, &target))
		event = try_target(&search, code, &target, place, &verdict);
	if (event == LBT_EV_INSERT_FALLBACK)
	{
		if (index->inserting.foreseen)
			target = made_ahead;
		else
			predict_target(index, key, code, true, index->seen.slot, &target);
		prefetch_target(index, &target, true);
		event = try_target(&search, code, &target, place, &verdict);
		if (verdict >= BEFORE && target_before(index, code, &target))
			event = try_target(&search, code, &target, place, &verdict);
	}
	return event;
}

/* Codes from this one on have outgrown the model: send them to this leaf. */
static void
remember_rightmost(LbtIndex *index, BlockNumber block, const LbtBound *key)
{
	if (index->state != LBT_READY)
		return;
	index->inserting.last.block = block;
	index->inserting.last.left = InvalidBlockNumber;
	index->inserting.last.buffer = InvalidBuffer;
	index->inserting.last.lo = bound_code(index, key);
	index->inserting.last.hi = PG_UINT64_MAX;
}

bool
lbt_place_after_btree(Relation rel, LbtIndex *index, const LbtBound *key, const LbtPlace *place)
{
	BlockNumber next;

	if (place->block == InvalidBlockNumber)
	{
		/* nbtree remembers the rightmost leaf, too. */
		if (index->inserting.last.block == InvalidBlockNumber &&
			RelationGetTargetBlock(rel) != InvalidBlockNumber)
			remember_rightmost(index, RelationGetTargetBlock(rel), key);
		return false;
	}
	next = lbt_bt_right_link(rel, place->block);
	if (next == place->next || next == InvalidBlockNumber)
		return false;
	if (place->next == P_NONE && index->inserting.last.block == place->block)
		remember_rightmost(index, next, key);
	return true;
}
