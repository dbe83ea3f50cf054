/*
 * check.c - learnedbtree_check(): the model's predictions against the tree
 * (src/README, "The check of a model").
 */
#include "postgres.h"

#include "proof/locate.h"
#include "sql/functions.h"
#include "train/leafwalk.h"
#include "train/train.h"

PG_FUNCTION_INFO_V1(learnedbtree_check);

/*
 * The position on a locked leaf, or further right, by the item right of it:
 * prediction and descent may name one position in two ways.  That item need
 * not exist on the rightmost leaf.  Gives up lock and pin.
 */
static ItemPointerData
position_of(Relation rel, Buffer buf, OffsetNumber offset)
{
	ItemPointerData position;

	for (;;)
	{
		Page		page = BufferGetPage(buf);
		BTPageOpaque opaque = BTPageGetOpaque(page);

		if (P_RIGHTMOST(opaque) || (!P_IGNORE(opaque) && offset <= PageGetMaxOffsetNumber(page)))
			break;
		buf = _bt_relandgetbuf(rel, buf, opaque->btpo_next, BT_READ);
		opaque = BTPageGetOpaque(BufferGetPage(buf));
		offset = P_FIRSTDATAKEY(opaque);
	}
	ItemPointerSet(&position, BufferGetBlockNumber(buf), offset);
	_bt_relbuf(rel, buf);
	return position;
}

/*
 * Look a bound up, the separator of this leaf; an error if what is proven is
 * not where the descent leads.  The index's statistics do not count it.
 */
static void
try_bound(Relation rel, LbtIndex *index, const LbtBound *bound, BlockNumber leaf, uint64 *counts)
{
	Snapshot	snapshot = GetActiveSnapshot();
	LbtTarget	target = {.generation = 0};
	OffsetNumber offset;
	LbtOutcome	outcome;
	Buffer		buf = lbt_locate(rel, index, bound, false, snapshot, &offset, &target, &outcome);
	BlockNumber proven;
	ItemPointerData landed;
	ItemPointerData descended;

	counts[LBT_EV_LOOKUP]++;
	counts[outcome.event]++;
	counts[LBT_EV_MOVED_RIGHT] += outcome.event == LBT_EV_VERIFIED && outcome.moved > 0;
	if (!BufferIsValid(buf))
		return;
	proven = BufferGetBlockNumber(buf);
	landed = position_of(rel, buf, offset);
	buf = lbt_descend(rel, index, bound, false, snapshot, &offset);
	ItemPointerSetInvalid(&descended);
	if (BufferIsValid(buf))
		descended = position_of(rel, buf, offset);
	if (!ItemPointerEquals(&landed, &descended))
		ereport(ERROR,
				(errcode(ERRCODE_INDEX_CORRUPTED),
				 errmsg("a lookup in index \"%s\" that was proven is not where the descent leads",
						RelationGetRelationName(rel)),
				 errdetail("%s the separator of block %u: block %u was predicted and block %u proven, which is item %u of "
						   "block %u; the descent leads to item %u of block %u.",
						   bound->past ? "Behind" : "At", leaf, target.block, proven,
						   landed.ip_posid, ItemPointerGetBlockNumber(&landed),
						   descended.ip_posid, ItemPointerGetBlockNumberNoCheck(&descended)),
				 errhint("Set learnedbtree.enable to off, and REINDEX; if the file has come to no harm, report it as an "
						 "error of learnedbtree.")));
}

/*
 * Look every separator up: as the lower bound of a scan, which is counted,
 * and as an upper one.  False, with worthless counts, when there is no model,
 * or it went away.  The caller has locked out writers and VACUUM: both ways
 * have to see the same tree.
 */
static bool
check_lookups(Relation rel, LbtIndex *index, uint64 *counts)
{
	uint8	   *scratch = palloc(index->keyspec.ncolumns * LBT_SCRATCH_BYTES);
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "learnedbtree check",
												  ALLOCSET_DEFAULT_SIZES);
	uint64		of_upper[LBT_NEVENTS] = {0};	/* of the same leaves */
	LbtLeafWalk walk;
	bool		ready;

	lbt_index_update(index);
	ready = index->state == LBT_READY;
	lbt_leafwalk_begin(&walk, rel);
	while (ready && lbt_leafwalk_next(&walk))
	{
		MemoryContext caller;
		LbtBound	bound;

		CHECK_FOR_INTERRUPTS();
		if (walk.separator == NULL)
			continue;			/* nothing is left of this leaf */
		caller = MemoryContextSwitchTo(context);
		lbt_bound_of_tuple(&index->keyspec, RelationGetDescr(rel), walk.separator, scratch, &bound);
		for (int past = 0; past <= 1 && ready; past++)
		{
			bound.past = past;
			lbt_index_update(index);
			ready = index->state == LBT_READY;
			if (ready)
				try_bound(rel, index, &bound, walk.block, past ? of_upper : counts);
		}
		MemoryContextSwitchTo(caller);
		MemoryContextReset(context);
	}
	if (ready && walk.damaged)
		ereport(ERROR,
				(errcode(ERRCODE_INDEX_CORRUPTED),
				 errmsg("index \"%s\" has a damaged page on level 1", RelationGetRelationName(rel)),
				 errhint("Please REINDEX it.")));
	lbt_index_update(index);
	return ready && index->state == LBT_READY;
}

Datum
learnedbtree_check(PG_FUNCTION_ARGS)
{
	/* Writers and VACUUM are locked out until the end of the transaction. */
	Relation	rel = lbt_open_with_table(fcinfo, ShareLock);
	LbtIndex   *index = lbt_index_get(rel);
	LbtRegistered model;
	LbtTrained	saved;
	uint64		counts[LBT_NEVENTS] = {0};
	const char *reason;
	bool		counted;
	LbtRow		row = {0};

	counted = lbt_untrainable(rel, index) == NULL && check_lookups(rel, index, counts);

	/* Ask this last, so that it tells why there are no counts. */
	lbt_row_add_text(&row, lbt_model_state(rel, index, &model, &reason));
	lbt_row_add_text(&row, lbt_is_btree(rel) ? "none" :
					 lbt_metapage_read(rel, index, lbt_max_leaves(), &saved));
	if (counted)
	{
		lbt_row_add(&row, Int64GetDatum(counts[LBT_EV_LOOKUP]));
		lbt_row_add(&row, Int64GetDatum(counts[LBT_EV_VERIFIED] - counts[LBT_EV_MOVED_RIGHT]));
		lbt_row_add(&row, Int64GetDatum(counts[LBT_EV_MOVED_RIGHT]));
		lbt_row_add(&row, Int64GetDatum(counts[LBT_EV_LOOKUP] - counts[LBT_EV_VERIFIED]));
		for (int i = LBT_EV_BAD_BLOCK; i <= LBT_EV_HIGH; i++)
			lbt_row_add(&row, Int64GetDatum(counts[i]));
	}
	index_close(rel, NoLock);
	PG_RETURN_DATUM(lbt_row_result(fcinfo, &row));
}
