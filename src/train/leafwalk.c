/*
 * leafwalk.c - the walk along level 1; see leafwalk.h.
 */
#include "train/leafwalk.h"

#include "server/guard.h"

/* Tell the OS of a share-locked level-2 page's children; release the page. */
static void
read_ahead(LbtLeafWalk *walk, Buffer buf)
{
	BlockNumber children[MaxIndexTuplesPerPage];
	int			n = 0;
	Page		page;
	BTPageOpaque opaque;

	walk->last_child = walk->next_parent = P_NONE;
	if (!BufferIsValid(buf))
		return;
	page = BufferGetPage(buf);
	opaque = BTPageGetOpaque(page);
	if (opaque->btpo_level == 2 && !P_IGNORE(opaque))
		for (OffsetNumber i = P_FIRSTDATAKEY(opaque); i <= PageGetMaxOffsetNumber(page) &&
			 n < lengthof(children); i++)
			children[n++] = BTreeTupleGetDownLink((IndexTuple) PageGetItem(page,
																		   PageGetItemId(page, i)));
	walk->next_parent = opaque->btpo_next;
	_bt_relbuf(walk->rel, buf);
	for (int i = 0; i < n; i++)
		(void) PrefetchBuffer(walk->rel, MAIN_FORKNUM, children[i]);
	if (n > 0)
		walk->last_child = children[n - 1];
}

void
lbt_leafwalk_begin(LbtLeafWalk *walk, Relation rel)
{
	Buffer		buf = _bt_getbuf(rel, BTREE_METAPAGE, BT_READ);
	BTMetaPageData *meta = BTPageGetMeta(BufferGetPage(buf));

	memset(walk, 0, sizeof(*walk));
	walk->rel = rel;
	walk->next_page = meta->btm_root;
	walk->height = meta->btm_level + 1;
	walk->empty = walk->next_page == P_NONE;
	walk->heap_tids = meta->btm_version > BTREE_NOVAC_VERSION;
	_bt_relbuf(rel, buf);
	if (walk->height > 2)
		read_ahead(walk, lbt_bt_get_endpoint(rel, 2, false, NULL));
}

/* Keep the high key of a page we are done with: the next page starts there. */
static void
keep_high_key(LbtLeafWalk *walk)
{
	Page		page = walk->page.data;
	IndexTuple	high_key;

	if (walk->last == InvalidOffsetNumber || P_RIGHTMOST(BTPageGetOpaque(page)))
		return;
	high_key = (IndexTuple) PageGetItem(page, PageGetItemId(page, P_HIKEY));
	memcpy(walk->high_key.data, high_key, IndexTupleSize(high_key));
	walk->separator = (IndexTuple) walk->high_key.data;
}

/* Copy the next page of level 1; false at the end. */
static bool
copy_page(LbtLeafWalk *walk)
{
	Buffer		buf;
	BlockNumber block;
	BTPageOpaque opaque;

	if (walk->next_page == P_NONE)
		return false;
	keep_high_key(walk);
	buf = walk->next == InvalidOffsetNumber ? lbt_bt_get_endpoint(walk->rel, 1, false, NULL) :
		_bt_getbuf(walk->rel, walk->next_page, BT_READ);
	if (!BufferIsValid(buf))
		return false;
	memcpy(walk->page.data, BufferGetPage(buf), BLCKSZ);
	block = BufferGetBlockNumber(buf);
	_bt_relbuf(walk->rel, buf);
	lbt_guard_check_interrupts();
	if (block == walk->last_child && walk->next_parent != P_NONE)
		read_ahead(walk, _bt_getbuf(walk->rel, walk->next_parent, BT_READ));

	opaque = BTPageGetOpaque(walk->page.data);
	walk->next_page = opaque->btpo_next;
	walk->next = P_FIRSTDATAKEY(opaque);
	walk->damaged = P_ISLEAF(opaque) || opaque->btpo_level != 1;

	/* The children of a page being deleted are its right neighbour's now. */
	walk->last = walk->damaged || P_IGNORE(opaque) ? InvalidOffsetNumber :
		PageGetMaxOffsetNumber(walk->page.data);
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
	page = walk->page.data;
	downlink = (IndexTuple) PageGetItem(page, PageGetItemId(page, walk->next));
	walk->own = walk->next > P_FIRSTDATAKEY(BTPageGetOpaque(page));
	if (walk->own)
		walk->separator = downlink;
	walk->block = BTreeTupleGetDownLink(downlink);
	walk->next++;
	return true;
}
