/*
 * leafwalk.c - the walk along level 1; see leafwalk.h.
 */
#include "train/leafwalk.h"

#include "key/keyspec.h"
#include "server/guard.h"

/* Level 1 may grow by so many pages during a walk. */
#define NEW_PAGES 1024

/* The tuple of an item, or NULL if it is not within the page's items. */
static IndexTuple
item_tuple(Page page, OffsetNumber offset)
{
	const ItemIdData *id = PageGetItemId(page, offset);
	const PageHeaderData *header = (PageHeader) page;
	uint32		start = ItemIdGetOffset(id);
	IndexTuple	itup = (IndexTuple) (page + start);

	if (start != MAXALIGN(start) || start < header->pd_upper ||
		start + sizeof(IndexTupleData) > header->pd_special ||
		IndexTupleSize(itup) < sizeof(IndexTupleData) ||
		start + IndexTupleSize(itup) > header->pd_special)
		return NULL;
	return itup;
}

/* Do a separator's keys end within it? */
static bool
keys_fit(Relation rel, IndexTuple itup)
{
	TupleDesc	tupdesc = RelationGetDescr(rel);
	const char *data = (char *) itup + IndexInfoFindDataOffset(itup->t_info);
	uint32		start = data - (char *) itup;
	uint32		room = IndexTupleSize(itup) - start;
	uint32		at = 0;
	int			natts = BTreeTupleGetNAtts(itup, rel);

	if (start > IndexTupleSize(itup) || natts > tupdesc->natts)
		return false;
	for (int i = 0; i < natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(tupdesc, i);
		uint32		bytes = att->attlen;

		if (IndexTupleHasNulls(itup) && att_isnull(i, (uint8 *) (itup + 1)))
			continue;
		/* Else the server would look for what follows in places of its own. */
		if (att->attlen < 0 && !IndexTupleHasVarwidths(itup))
			return false;
		/* The first byte of a varlena says whether it is aligned. */
		if (att->attlen != -1 || (at < room && data[at] == 0))
			at = att_align_nominal(at, att->attalign);
		if (at > room)
			return false;
		if (att->attlen == -1 && (bytes = lbt_varlena_bytes(data + at, room - at)) == 0)
			return false;
		if (att->attlen == -2)
			bytes = strnlen(data + at, room - at) + 1;
		if (bytes > room - at)
			return false;
		at += bytes;
	}
	return true;
}

/*
 * Can all keys of a page be used?  Its header and its end are known to be.
 * The first downlink has no keys.
 */
static bool
is_sound(Relation rel, Page page)
{
	OffsetNumber first = P_FIRSTDATAKEY(BTPageGetOpaque(page));

	for (OffsetNumber i = P_HIKEY; i <= PageGetMaxOffsetNumber(page); i++)
	{
		IndexTuple	itup = item_tuple(page, i);

		if (itup == NULL || (i != first && !keys_fit(rel, itup)))
			return false;
	}
	return true;
}

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
		{
			IndexTuple	downlink = item_tuple(page, i);

			if (downlink == NULL)
				break;
			children[n++] = BTreeTupleGetDownLink(downlink);
		}
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
	walk->pages_left = RelationGetNumberOfBlocks(rel) + NEW_PAGES;
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
	walk->without_lsn |= PageGetLSN(walk->page.data) == InvalidXLogRecPtr;
	lbt_guard_check_interrupts();
	if (block == walk->last_child && walk->next_parent != P_NONE)
		read_ahead(walk, _bt_getbuf(walk->rel, walk->next_parent, BT_READ));

	opaque = BTPageGetOpaque(walk->page.data);
	walk->next_page = opaque->btpo_next;
	walk->next = P_FIRSTDATAKEY(opaque);
	walk->damaged = P_ISLEAF(opaque) || opaque->btpo_level != 1 || walk->pages_left-- == 0 ||
		(!P_IGNORE(opaque) && !is_sound(walk->rel, walk->page.data));

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
