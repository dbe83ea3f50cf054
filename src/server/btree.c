/*
 * btree.c - nbtree across server versions, and passing for btree; see btree.h.
 */
#include "server/btree.h"

#include "access/nbtxlog.h"
#include "access/xloginsert.h"
#include "catalog/pg_am.h"
#include "server/guard.h"
#include "server/stream.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"

Buffer
lbt_bt_search(Relation rel, BTScanInsert key, bool backward, Snapshot snapshot)
{
	Buffer		buf;

#if PG_VERSION_NUM >= 170000
	key->backward = backward;
#endif
#if PG_VERSION_NUM >= 190000
	(void) _bt_search(rel, NULL, key, &buf, BT_READ, false);
#elif PG_VERSION_NUM >= 170000
	_bt_freestack(_bt_search(rel, NULL, key, &buf, BT_READ));
#elif PG_VERSION_NUM >= 160000
	_bt_freestack(_bt_search(rel, NULL, key, &buf, BT_READ, snapshot));
#else
	_bt_freestack(_bt_search(rel, key, &buf, BT_READ, snapshot));
#endif
	return buf;
}

Buffer
lbt_bt_try_read(Relation rel, BlockNumber block)
{
	volatile Buffer buf = InvalidBuffer;
	ResourceOwner caller = CurrentResourceOwner;

	LBT_GUARD_BEGIN_SILENTLY();
	{
		Buffer		read = _bt_getbuf(rel, block, BT_READ);
		ResourceOwner owner = CurrentResourceOwner;

		/* This pin stays after the guard. */
		CurrentResourceOwner = caller;
		IncrBufferRefCount(read);
		CurrentResourceOwner = owner;
		_bt_relbuf(rel, read);
		buf = read;
	}
	LBT_GUARD_END(buf = InvalidBuffer);
	return buf;
}

BlockNumber
lbt_bt_right_link(Relation rel, BlockNumber block)
{
	BlockNumber link;
	Buffer		buf;

	if (!lbt_block_is_there(rel, block))
		return InvalidBlockNumber;
	buf = ReadBuffer(rel, block);
	link = *(volatile BlockNumber *) (BufferGetPage(buf) + BLCKSZ -
									  MAXALIGN(sizeof(BTPageOpaqueData)) +
									  offsetof(BTPageOpaqueData, btpo_next));
	ReleaseBuffer(buf);
	return link;
}

Buffer
lbt_bt_get_endpoint(Relation rel, uint32 level, bool rightmost, Snapshot snapshot)
{
#if PG_VERSION_NUM >= 170000
	return _bt_get_endpoint(rel, level, rightmost);
#else
	return _bt_get_endpoint(rel, level, rightmost, snapshot);
#endif
}

const char *
lbt_bt_unreadable(Relation rel, bool metapage)
{
	volatile bool readable = false;
	bool		heapkeyspace = !metapage;
	bool		allequalimage;

	LBT_GUARD_BEGIN_SILENTLY();
	{
		(void) RelationGetNumberOfBlocks(rel);
		if (metapage)
			_bt_metaversion(rel, &heapkeyspace, &allequalimage);
		readable = true;
	}
	LBT_GUARD_END(readable = false);
	return !readable ? "its metapage cannot be read" :
		heapkeyspace ? NULL : "it has the format of PostgreSQL 11 or older";
}

void
lbt_bt_fill_meta_spare(Relation rel, Buffer metabuf, const void *data)
{
	START_CRIT_SECTION();
	memcpy(lbt_bt_meta_spare(BufferGetPage(metabuf)), data, LBT_BT_META_SPARE);
	MarkBufferDirty(metabuf);
	if (RelationNeedsWAL(rel))
		log_newpage_buffer(metabuf, false);
	END_CRIT_SECTION();
}

void
lbt_bt_add_to_leaf(Relation rel, Buffer buf, OffsetNumber offset, IndexTuple itup)
{
	Page		page = BufferGetPage(buf);
	Size		size = MAXALIGN(IndexTupleSize(itup));
	XLogRecPtr	lsn = InvalidXLogRecPtr;

	START_CRIT_SECTION();
	if (PageAddItem(page, (char *) itup, size, offset, false, false) == InvalidOffsetNumber)
		elog(PANIC, "could not add a tuple to block %u of index \"%s\"",
			 BufferGetBlockNumber(buf), RelationGetRelationName(rel));
	MarkBufferDirty(buf);
	if (RelationNeedsWAL(rel))
	{
		xl_btree_insert record = {.offnum = offset};

		XLogBeginInsert();
		XLogRegisterData((char *) &record, SizeOfBtreeInsert);
		XLogRegisterBuffer(0, buf, REGBUF_STANDARD);
		XLogRegisterBufData(0, (char *) itup, IndexTupleSize(itup));
		lsn = XLogInsert(RM_BTREE_ID, XLOG_BTREE_INSERT_LEAF);
	}
#if PG_VERSION_NUM >= 190000
	else
		lsn = XLogGetFakeLSN(rel);	/* scans without a pin rely on it */
#endif
	if (lsn != InvalidXLogRecPtr)
		PageSetLSN(page, lsn);	/* a macro in 15, which evaluates it twice */
	END_CRIT_SECTION();
}

/*
 * Look at each callback that a new server version adds before serving btree
 * indexes there: one that shares the state of scans or inserts meets ours.
 */
#define ROUTINE_BYTES \
	(PG_VERSION_NUM >= 180000 ? 248 : PG_VERSION_NUM >= 170000 ? 216 : 208)

StaticAssertDecl(sizeof(void *) != 8 || sizeof(IndexAmRoutine) == ROUTINE_BYTES,
				 "IndexAmRoutine has changed: look at serve/serve.c");

const IndexAmRoutine *
lbt_bt_routine(void)
{
	static void *routine = NULL;

	if (routine == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);

		routine = DatumGetPointer(OidFunctionCall1(F_BTHANDLER, PointerGetDatum(NULL)));
		MemoryContextSwitchTo(old);
	}
	return routine;
}

IndexAmRoutine *
lbt_bt_routine_for_our_method(void)
{
#if PG_VERSION_NUM >= 190000
	static IndexAmRoutine ours; /* relcache entries point to it */
	IndexAmRoutine *routine = &ours;
#else
	/* They copy and free it. */
	IndexAmRoutine *routine = palloc(sizeof(IndexAmRoutine));
#endif

	memcpy(routine, lbt_bt_routine(), sizeof(IndexAmRoutine));
#if PG_VERSION_NUM >= 170000 && PG_VERSION_NUM < 180000
	/* Workers' relcache entries would fail btree's check of the method. */
	routine->amcanbuildparallel = false;
#endif
	return routine;
}

/* ---- passing for a btree index ---- */

static LbtMask *open_masks = NULL;

/* A pinned entry is never freed, but its rd_rel may be another now. */
void
lbt_mask_again(Oid relid)
{
	for (LbtMask *m = open_masks; m != NULL; m = m->outer)
		if (!OidIsValid(relid) || RelationGetRelid(m->rel) == relid)
			m->rel->rd_rel->relam = BTREE_AM_OID;
}

void
lbt_mask_push(LbtMask *mask, Relation rel)
{
	mask->rel = rel;
	mask->relam = rel->rd_rel->relam;
	mask->outer = open_masks;
	open_masks = mask;
	rel->rd_rel->relam = BTREE_AM_OID;
}

void
lbt_mask_pop(LbtMask *mask)
{
	Assert(open_masks == mask);
	open_masks = mask->outer;
	mask->rel->rd_rel->relam = mask->relam;
}
