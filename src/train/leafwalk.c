/*
 * leafwalk.c - the walk along level 1; see leafwalk.h.
 */
#include "train/leafwalk.h"

#include "miscadmin.h"

/* Pages in a row that the stream does not have, after which it is given up. */
#define MAX_PASSED 8

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

/* ---- pages of level 1 ahead of need ---- */

/* A copy of the next page of level 2; false at the end. */
static bool
copy_parent(LbtLeafWalk *walk)
{
	bool		first = walk->next_child == InvalidOffsetNumber;
	Buffer		buf;
	BTPageOpaque opaque;

	if (!first && walk->next_parent == P_NONE)
		return false;
	buf = first ? lbt_bt_get_endpoint(walk->rel, 2, false, NULL) : _bt_getbuf(walk->rel, walk->next_parent, BT_READ);
	if (!BufferIsValid(buf))
		return false;
	memcpy(walk->parent->data, BufferGetPage(buf), BLCKSZ);
	_bt_relbuf(walk->rel, buf);
	opaque = BTPageGetOpaque(walk->parent->data);
	walk->next_parent = opaque->btpo_next;
	walk->next_child = P_FIRSTDATAKEY(opaque);
	walk->last_child = opaque->btpo_level != 2 || P_IGNORE(opaque) ? InvalidOffsetNumber :
		PageGetMaxOffsetNumber(walk->parent->data);
	return true;
}

/* For the stream: the next page of level 1 that level 2 names. */
static bool
next_child(void *state, BlockNumber *block, uint32 *tag)
{
	LbtLeafWalk *walk = state;
	Page		page;

	while (walk->next_child == InvalidOffsetNumber || walk->next_child > walk->last_child)
		if (!copy_parent(walk))
			return false;
	page = walk->parent->data;
	*block = BTreeTupleGetDownLink((IndexTuple) PageGetItem(page, PageGetItemId(page, walk->next_child)));
	*tag = *block;
	walk->next_child++;
	return true;
}

static void
fetch_ahead(LbtLeafWalk *walk)
{
	walk->ahead = lbt_stream_next(walk->stream, &walk->ahead_block);
	walk->passed = 0;
	if (!BufferIsValid(walk->ahead))
		lbt_leafwalk_end(walk);
}

void
lbt_leafwalk_end(LbtLeafWalk *walk)
{
	if (BufferIsValid(walk->ahead))
		ReleaseBuffer(walk->ahead);
	walk->ahead = InvalidBuffer;
	if (walk->stream)
		lbt_stream_end(walk->stream);
	walk->stream = NULL;
}

/* ---- the walk ---- */

void
lbt_leafwalk_begin(LbtLeafWalk *walk, Relation rel)
{
	uint32		level;
	BlockNumber root = read_root(rel, &level);

	*walk = (LbtLeafWalk)
	{
		.rel = rel,.height = level + 1,.empty = root == P_NONE,.next_page = root
	};
	if (level == 0)
		return;
	walk->page = palloc(sizeof(PGAlignedBlock));
	walk->high_key = palloc(sizeof(PGAlignedBlock));
	if (level == 1)
		return;
	walk->parent = palloc(sizeof(PGAlignedBlock));
	walk->stream = lbt_stream_begin(rel, true, next_child, walk);
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

/* The next page of level 1, pinned and read-locked; InvalidBuffer when the tree has none. */
static Buffer
read_page(LbtLeafWalk *walk)
{
	Buffer		buf = walk->ahead;

	if (walk->next == InvalidOffsetNumber)
		return lbt_bt_get_endpoint(walk->rel, 1, false, NULL);
	if (!BufferIsValid(buf) || walk->ahead_block != walk->next_page)
		return _bt_getbuf(walk->rel, walk->next_page, BT_READ);
	walk->ahead = InvalidBuffer;
	_bt_lockbuf(walk->rel, buf, BT_READ);
	_bt_checkpage(walk->rel, buf);
	return buf;
}

/* Copy the next page of level 1; false at the end. */
static bool
copy_page(LbtLeafWalk *walk)
{
	BlockNumber block;
	Buffer		buf;
	BTPageOpaque opaque;

	if (walk->next_page == P_NONE)
		return false;
	keep_high_key(walk);
	buf = read_page(walk);
	if (!BufferIsValid(buf))
		return false;
	block = BufferGetBlockNumber(buf);
	memcpy(walk->page->data, BufferGetPage(buf), BLCKSZ);
	_bt_relbuf(walk->rel, buf);
	CHECK_FOR_INTERRUPTS();

	/* The stream begins with the page that the walk begins with. */
	if (walk->stream && !BufferIsValid(walk->ahead))
		fetch_ahead(walk);
	if (walk->stream && walk->ahead_block == block)
	{
		ReleaseBuffer(walk->ahead);
		fetch_ahead(walk);
	}
	else if (walk->stream && ++walk->passed > MAX_PASSED)
		lbt_leafwalk_end(walk);

	opaque = BTPageGetOpaque(walk->page->data);
	walk->next_page = opaque->btpo_next;
	walk->next = P_FIRSTDATAKEY(opaque);
	walk->damaged = P_ISLEAF(opaque) || opaque->btpo_level != 1;

	/*
	 * The children of a page that is being deleted are its right neighbour's
	 * by now.
	 */
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
