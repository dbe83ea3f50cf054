/*
 * verify.h - what a locked page proves about a position in the index: the core of why answers are right (src/README,
 * "Why an answer is right").  locate.c and place.c each say when a position is on a page; the way from the page that was
 * landed on to its right neighbours is theirs together.
 *
 *                          low                       high
 *     ... left neighbour ]  |  item  item  item  item  |  [ right neighbour ...
 *                              ^ some item before       ^ some item, or the high key, not before
 *
 * Race: a leaf may have split since the model was made.  Then the position lies beyond its high key, and the right link,
 * read under the lock, leads on; the low side is known from there on.  The next page cannot have been recycled before it
 * is locked, only deleted (the caller's snapshot holds recycling back, as for nbtree's own scans), and a deleted page's
 * key space went to its right.
 */
#ifndef LBT_VERIFY_H
#define LBT_VERIFY_H

#include "key/bound.h"
#include "registry/view.h"
#include "server/btree.h"

/* Right links followed from the predicted leaf before the descent is the better way. */
#define MAX_HOPS 3

typedef enum LbtVerdict
{
	LBT_PROVEN,					/* the position is on this page, at
								 * search->offset */
	LBT_PROVEN_EQUAL,			/* so it is, but equal keys are here and it
								 * has to be unique */
	LBT_PROVEN_POSTING,			/* so it is, within a posting list */
	LBT_BEYOND,					/* it lies right of this page */
	LBT_BEFORE,					/* it may lie left of this page */
	LBT_NO_LEAF					/* not a live leaf with data */
} LbtVerdict;

/* A position that is looked for, and what was found. */
typedef struct LbtSearch
{
	Relation	rel;
	LbtIndex   *index;
	const LbtBound *bound;
	Snapshot	snapshot;		/* a scan's; NULL: an insert's search, which
								 * an unfinished split ends */
	IndexTuple	itup;			/* an insert's */
	bool		unique;
	double		fraction;		/* where in the leaf, from 0 to 1: looked at
								 * first */
	OffsetNumber offset;		/* the first item not before the position; the
								 * last offset + 1: none */
	int			hops;			/* to the right of where we landed */
} LbtSearch;

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

/*
 * The first item on a locked leaf that is not before the bound, from where it should be on.  Notes how full
 * the leaf is: the next one is likely to be alike.
 */
static inline OffsetNumber
search_leaf(const LbtSearch *search, Page page)
{
	OffsetNumber first = P_FIRSTDATAKEY(BTPageGetOpaque(page));
	OffsetNumber last = PageGetMaxOffsetNumber(page);
	LbtIndex   *index = search->index;

	index->leaf_items = last;
	index->leaf_bytes = ((PageHeader) page)->pd_special - ((PageHeader) page)->pd_upper;
	return lbt_page_search(&index->keyspec, RelationGetDescr(search->rel), search->bound, page, first, last,
						   first + (OffsetNumber) (search->fraction * (last + 1 - first)));
}

/* Is the position on this locked leaf?  low_known: it is known not to lie left of it. */
typedef LbtVerdict (*LbtExamine) (LbtSearch *search, Buffer buf, bool low_known);

/*
 * Prove the position on the locked page, or on a right neighbour.  The buffer returned, *buf, is locked as the first one
 * was, whatever the verdict.
 */
static pg_attribute_always_inline LbtVerdict
verify(LbtSearch *search, Buffer *buf, int lockmode, LbtExamine examine)
{
	bool		inserting = lockmode == BT_WRITE;

	for (search->hops = 0;; search->hops++)
	{
		Page		page = BufferGetPage(*buf);
		BTPageOpaque opaque;
		LbtVerdict	verdict = LBT_BEYOND;

		if (!is_btree_page(page))
			return LBT_NO_LEAF;
		opaque = BTPageGetOpaque(page);
		if (!inserting)
			lbt_test_for_old_snapshot(search->snapshot, search->rel, page);
		if (!P_ISLEAF(opaque) || P_ISMETA(opaque) || (inserting && P_INCOMPLETE_SPLIT(opaque)))
			return LBT_NO_LEAF;
		if (P_IGNORE(opaque))
		{
			/*
			 * Landed on: it tells nothing.  Come upon: its key space went to
			 * its right.
			 */
			if (search->hops == 0)
				return LBT_NO_LEAF;
		}
		else
		{
			if ((search->hops == 0 || inserting) && PageGetMaxOffsetNumber(page) < P_FIRSTDATAKEY(opaque))
				return LBT_NO_LEAF;
			verdict = examine(search, *buf, search->hops > 0);
		}
		if (verdict != LBT_BEYOND || search->hops == MAX_HOPS || P_RIGHTMOST(opaque))
			return verdict;
		search->fraction = 0;
		*buf = _bt_relandgetbuf(search->rel, *buf, opaque->btpo_next, lockmode);
	}
}

#endif							/* LBT_VERIFY_H */
