/*
 * leafwalk.c - the walk along level 1; see leafwalk.h.
 */
#include "learn/leafwalk.h"

#include "miscadmin.h"

/* The root's block and level, from the metapage. */
static BlockNumber
read_root(Relation rel, uint32 *level)
{
	Buffer		buf = _bt_getbuf(rel, BTREE_METAPAGE, BT_READ);
	BTMetaPageData *meta = BTPageGetMeta(BufferGetPage(buf));
	BlockNumber root = meta->btm_root;

	*level = meta->btm_level;
	_bt_relbuf(rel, buf);
	return root;
}

void
lbt_leafwalk_begin(LbtLeafWalk *walk, Relation rel)
{
	uint32		level;
	BlockNumber root = read_root(rel, &level);

	*walk = (LbtLeafWalk) {.rel = rel,.height = level + 1,.empty = root == P_NONE,.next_page = root};
	if (level == 0)
		return;
	walk->page = palloc(sizeof(PGAlignedBlock));
	walk->high_key = palloc(sizeof(PGAlignedBlock));
	walk->strategy = GetAccessStrategy(BAS_BULKREAD);
}

/* Remember the high key of the page that is done with: it is left of the next page's first child. */
static void
keep_high_key(LbtLeafWalk *walk)
{
	Page		page = walk->page->data;
	IndexTuple	high_key;

	if (walk->last == InvalidOffsetNumber || P_RIGHTMOST(BTPageGetOpaque(page)))
		return;
	high_key = (IndexTuple) PageGetItem(page, PageGetItemId(page, P_HIKEY));
	memcpy(walk->high_key->data, high_key, IndexTupleSize(high_key));
	walk->separator = (IndexTuple) walk->high_key->data;
}

/* Copy the next page of level 1; false at the end. */
static bool
copy_page(LbtLeafWalk *walk)
{
	bool		first = walk->next == InvalidOffsetNumber;
	Buffer		buf;
	BTPageOpaque opaque;

	if (walk->next_page == P_NONE)
		return false;
	keep_high_key(walk);
	buf = first ? lbt_bt_get_endpoint(walk->rel, 1, false, NULL) :
		lbt_bt_read_page(walk->rel, walk->next_page, walk->strategy);
	if (!BufferIsValid(buf))
		return false;
	memcpy(walk->page->data, BufferGetPage(buf), BLCKSZ);
	_bt_relbuf(walk->rel, buf);
	CHECK_FOR_INTERRUPTS();

	opaque = BTPageGetOpaque(walk->page->data);
	walk->next_page = opaque->btpo_next;
	walk->next = P_FIRSTDATAKEY(opaque);
	walk->damaged = P_ISLEAF(opaque) || opaque->btpo_level != 1;

	/* The children of a page that is being deleted are its right neighbour's by now. */
	walk->last = walk->damaged || P_IGNORE(opaque) ? InvalidOffsetNumber :
		PageGetMaxOffsetNumber(walk->page->data);
	return !walk->damaged;
}

bool
lbt_leafwalk_next(LbtLeafWalk *walk)
{
	Page		page;
	IndexTuple	downlink;

	if (walk->height == 1)
	{
		/* The root is the only leaf. */
		walk->block = walk->next_page;
		walk->next_page = P_NONE;
		return walk->block != P_NONE;
	}
	if (walk->damaged)
		return false;
	while (walk->next == InvalidOffsetNumber || walk->next > walk->last)
		if (!copy_page(walk))
			return false;
	page = walk->page->data;
	downlink = (IndexTuple) PageGetItem(page, PageGetItemId(page, walk->next));
	if (walk->next > P_FIRSTDATAKEY(BTPageGetOpaque(page)))
		walk->separator = downlink;
	walk->block = BTreeTupleGetDownLink(downlink);
	walk->next++;
	return true;
}
