/*
 * check.c - learnedbtree_check(): the model's predictions against the tree.
 *
 * Look up every separator as a user's lookup would.  A wrong landing, a
 * prediction proven on a leaf that does not hold the bound, would be a wrong
 * answer to users.  Prediction and descent may name one position in two ways:
 * "behind the last item of a leaf" is "in front of the first item of the next
 * one".  So bring both to the second form before comparing them.
 */
#include "postgres.h"

#include "access/genam.h"
#include "catalog/index.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "proof/locate.h"
#include "sql/functions.h"
#include "storage/lmgr.h"
#include "train/leafwalk.h"
#include "train/train.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

PG_FUNCTION_INFO_V1(learnedbtree_check);

/* A place between two items. */
typedef struct Position
{
	BlockNumber block;
	OffsetNumber offset;		/* item right of it; none: rightmost leaf */
} Position;

/* The position on a locked leaf, or further right; gives up lock and pin. */
static Position
position_of(Relation rel, Buffer buf, OffsetNumber offset)
{
	Position	position;

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
	position.block = BufferGetBlockNumber(buf);
	position.offset = offset;
	_bt_relbuf(rel, buf);
	return position;
}

static void
compare_positions(Relation rel, BlockNumber predicted, BlockNumber proven, Position landed,
				  Position descended, const LbtBound *bound, const LbtLeafWalk *walk)
{
	if (landed.block == descended.block && landed.offset == descended.offset)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_INDEX_CORRUPTED),
			 errmsg("a lookup in index \"%s\" that was proven is not where the descent leads",
					RelationGetRelationName(rel)),
			 errdetail("%s the separator of block %u: block %u was predicted and block %u proven, which is item %u of "
					   "block %u; the descent leads to item %u of block %u.",
					   bound->past ? "Behind" : "At", walk->block, predicted, proven,
					   landed.offset, landed.block, descended.offset, descended.block),
			 errhint("Set learnedbtree.enable to off, and REINDEX; if the file has come to no harm, report it as an "
					 "error of learnedbtree.")));
}

/* One lookup, counted here only: the index's statistics are about users'. */
static void
try_bound(Relation rel, LbtIndex *index, const LbtBound *bound, Snapshot snapshot,
		  const LbtLeafWalk *walk, uint64 *counts)
{
	LbtTarget	target = {.generation = 0};
	OffsetNumber offset;
	LbtOutcome	outcome;
	Buffer		buf = lbt_locate(rel, index, bound, snapshot, &offset, &target, &outcome);

	counts[LBT_EV_LOOKUP]++;
	counts[outcome.event]++;
	counts[LBT_EV_MOVED_RIGHT] += outcome.event == LBT_EV_VERIFIED && outcome.moved > 0;
	if (BufferIsValid(buf))
	{
		BlockNumber proven = BufferGetBlockNumber(buf);
		Position	landed = position_of(rel, buf, offset);
		Position	descended = {.block = InvalidBlockNumber};

		buf = lbt_descend(rel, index, bound, false, snapshot, &offset);
		if (BufferIsValid(buf))
			descended = position_of(rel, buf, offset);
		compare_positions(rel, target.block, proven, landed, descended, bound, walk);
	}
}

/*
 * Predict every separator's place in the tree, and see where it lands.  What
 * is proven must be where the descent leads; otherwise raise an error.  False,
 * with worthless counts, when there is no model, or it went away.
 *
 * Lock out writers and VACUUM: both ways have to see the same tree.
 */
static bool
check_lookups(Relation rel, LbtIndex *index, uint64 counts[2][LBT_NEVENTS])
{
	uint8	   *scratch = palloc(index->keyspec.ncolumns * LBT_SCRATCH_BYTES);
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "learnedbtree check",
												  ALLOCSET_DEFAULT_SIZES);
	LbtLeafWalk walk;
	bool		ready = true;

	lbt_leafwalk_begin(&walk, rel);
	while (ready && lbt_leafwalk_next(&walk))
	{
		MemoryContext caller = MemoryContextSwitchTo(context);
		LbtBound	bound;

		CHECK_FOR_INTERRUPTS();
		if (walk.separator)
			lbt_bound_of_tuple(&index->keyspec, RelationGetDescr(rel), walk.separator, scratch,
							   &bound);

		/* As the lower bound of a scan, and as an upper one. */
		for (int past = 0; past <= 1 && ready && walk.separator; past++)
		{
			bound.past = past;
			lbt_index_update(index);
			ready = index->state == LBT_READY;
			if (ready)
				try_bound(rel, index, &bound, GetActiveSnapshot(), &walk, counts[past]);
		}
		MemoryContextSwitchTo(caller);
		MemoryContextReset(context);
	}
	lbt_index_update(index);
	return ready && index->state == LBT_READY;
}

/* Open the argument's index; writers and VACUUM stay out until we commit. */
static Relation
open_index(FunctionCallInfo fcinfo)
{
	Oid			relid = lbt_index_argument(fcinfo);
	Oid			heapid;

	/*
	 * Is it ours, and the caller's?  Ask before we take a lock that others
	 * would wait for.  Lock the table first, as all others do.
	 */
	index_close(lbt_open_index(relid, AccessShareLock, LBT_MAY_CHANGE), AccessShareLock);
	heapid = IndexGetRelation(relid, true);
	if (OidIsValid(heapid))
		LockRelationOid(heapid, ShareLock);
	return lbt_open_index(relid, AccessShareLock, LBT_MAY_CHANGE);
}

Datum
learnedbtree_check(PG_FUNCTION_ARGS)
{
	Relation	rel = open_index(fcinfo);
	LbtIndex   *index = lbt_index_get(rel);
	LbtRegistered model;
	uint64		both[2][LBT_NEVENTS] = {0};
	uint64	   *counts = both[0];	/* those of upper bounds are not reported:
									 * they are about the same leaves */
	const char *reason;
	bool		counted = lbt_trainable(rel, index, &reason) && check_lookups(rel, index, both);
	LbtRow		row = {0};

	/* Ask this last, so that it tells why there are no counts. */
	lbt_row_add_text(&row, lbt_model_state(rel, index, &model, &reason));
	lbt_row_add_text(&row, lbt_is_btree(rel) ? "none" : lbt_metapage_state(rel, index));
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
