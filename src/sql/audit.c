/*
 * audit.c - the model by itself, and its predictions against the descent; see audit.h.
 *
 * A wrong landing, a prediction that was proven on a leaf which does not hold the bound, would be a wrong answer
 * to users.  Two ways to say the same position are none: "behind the last item of a leaf" is "in front of the
 * first item of the next one", and prediction and descent may differ in that.  So both are brought to the second
 * form before they are compared.
 */
#include "sql/audit.h"

#include "train/leafwalk.h"
#include "search/locate.h"
#include "miscadmin.h"
#include "utils/memutils.h"

/* A place between two items. */
typedef struct Position
{
	BlockNumber block;
	OffsetNumber offset;		/* of the item right of it; behind the last one only on the rightmost leaf */
} Position;

static void
broken_model(Relation rel, const char *detail)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("the model of index \"%s\" is damaged", RelationGetRelationName(rel)),
			 errdetail_internal("%s", detail),
			 errhint("Lookups do not rely on it; learnedbtree_train() makes a new one.")));
}

static void
audit_leaves(Relation rel, const LbtModel *model, double max_error)
{
	BlockNumber nblocks = RelationGetNumberOfBlocks(rel);

	if (model->leaves[0].min_code != 0)
		broken_model(rel, "The leaf cache does not begin with the smallest code.");
	for (uint32 i = 0; i < model->nleaves; i++)
	{
		const LbtLeaf *leaf = &model->leaves[i];

		CHECK_FOR_INTERRUPTS();
		if (i > 0 && leaf->min_code < leaf[-1].min_code)
			broken_model(rel, psprintf("The leaf cache is not in order at slot %u.", i));
		if (leaf->block == BTREE_METAPAGE || leaf->block >= nblocks)
			broken_model(rel, psprintf("Slot %u of the leaf cache names block %u of %u.", i, leaf->block, nblocks));
		if (!lbt_leaf_tied(model->leaves, i) &&
			lbt_spline_error(model->knots, model->nknots, model->leaves, model->nleaves, i) > max_error)
			broken_model(rel, psprintf("The spline's error at slot %u is above its largest error.", i));
	}
}

static void
audit_knots(Relation rel, const LbtModel *model)
{
	for (uint32 i = 0; i < model->nknots; i++)
	{
		const LbtKnot *knot = &model->knots[i];

		if (knot->slot >= model->nleaves || knot->code != model->leaves[knot->slot].min_code)
			broken_model(rel, psprintf("Knot %u of the spline is no leaf's.", i));
		if (i > 0 && (knot->code <= knot[-1].code || knot->slot <= knot[-1].slot))
			broken_model(rel, psprintf("The spline's knots are not in order at knot %u.", i));
	}
}

void
lbt_audit_model(Relation rel, void *copy, Size bytes)
{
	const LbtModelHeader *header = copy;
	LbtModel	model;

	if (!lbt_model_open(copy, bytes, &model))
		broken_model(rel, "Its sizes are impossible.");
	audit_leaves(rel, &model, header->max_error);
	audit_knots(rel, &model);
	if (lbt_leaf_ties(model.leaves, model.nleaves) != header->ties)
		broken_model(rel, "The number of ties is not that of the leaf cache.");
}

/* The bound in front of what is equal to the separator.  room: LBT_KEY_ROOM for each column; points into the pivot. */
static void
separator_bound(const LbtKeySpec *spec, TupleDesc tupdesc, IndexTuple pivot, uint8 *room, LbtBound *bound)
{
	bound->past = false;
	bound->ncolumns = lbt_tuple_columns(spec, pivot);
	for (int i = 0; i < bound->ncolumns; i++)
	{
		const LbtKeyColumn *column = &spec->column[i];
		LbtKeyValue *value = &bound->value[i];
		Datum		datum;

		if (!column->bytes)
		{
			*value = lbt_tuple_value(spec, i, pivot, tupdesc);
			continue;
		}
		*value = (LbtKeyValue) {.isnull = true};
		datum = lbt_tuple_datum(spec, i, pivot, tupdesc, &value->isnull);
		if (value->isnull)
			continue;
		if (lbt_stored_compressed(column, DatumGetPointer(datum)))
			datum = PointerGetDatum(pg_detoast_datum((struct varlena *) DatumGetPointer(datum)));
		(void) lbt_keyspec_argument(column, InvalidOid, datum, value, room + i * LBT_KEY_ROOM);
	}
}

/* The position on a locked leaf, or further right; gives up lock and pin. */
static Position
settle(Relation rel, Buffer buf, OffsetNumber offset)
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
	position = (Position) {.block = BufferGetBlockNumber(buf),.offset = offset};
	_bt_relbuf(rel, buf);
	return position;
}

static void
compare_positions(Relation rel, BlockNumber predicted, BlockNumber proven, Position landed, Position descended,
				  const LbtBound *bound, const LbtLeafWalk *walk)
{
	if (landed.block == descended.block && landed.offset == descended.offset)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_INDEX_CORRUPTED),
			 errmsg("a lookup in index \"%s\" that was proven is not where the descent leads",
					RelationGetRelationName(rel)),
			 errdetail("%s the separator of block %u: block %u was predicted and block %u proven, which is item %u of "
					   "block %u; the descent leads to item %u of block %u.", bound->past ? "Behind" : "At",
					   walk->block, predicted, proven, landed.offset, landed.block, descended.offset,
					   descended.block),
			 errhint("Set learnedbtree.enable to off, and REINDEX; if the file has come to no harm, report it as an "
					 "error of learnedbtree.")));
}

/* One lookup, which is not counted: statistics and the retrain policy are about users'. */
static void
try_bound(Relation rel, LbtIndex *index, const LbtBound *bound, Snapshot snapshot, const LbtLeafWalk *walk,
		  LbtAudit *audit)
{
	LbtTarget	target = {.generation = 0};
	OffsetNumber offset;
	LbtOutcome	outcome;
	Buffer		buf = lbt_predict_leaf(rel, index, bound, snapshot, &offset, &target, &outcome);

	audit->landed += outcome.event == LBT_EV_VERIFIED && outcome.moved == 0;
	audit->moved_right += outcome.event == LBT_EV_VERIFIED && outcome.moved > 0;
	audit->fallback_block += outcome.event == LBT_EV_BAD_BLOCK;
	audit->fallback_page += outcome.event == LBT_EV_BAD_PAGE;
	audit->fallback_low += outcome.event == LBT_EV_LOW;
	audit->fallback_high += outcome.event == LBT_EV_HIGH;
	if (BufferIsValid(buf))
	{
		BlockNumber proven = BufferGetBlockNumber(buf);
		Position	landed = settle(rel, buf, offset);
		Position	descended = {.block = InvalidBlockNumber};

		buf = lbt_descend(rel, index, bound, false, snapshot, &offset);
		if (BufferIsValid(buf))
			descended = settle(rel, buf, offset);
		compare_positions(rel, target.block, proven, landed, descended, bound, walk);
	}
}

bool
lbt_audit_lookups(Relation rel, LbtIndex *index, Snapshot snapshot, LbtAudit *audit)
{
	TupleDesc	tupdesc = RelationGetDescr(rel);
	uint8	   *room = palloc(index->keyspec.ncolumns * LBT_KEY_ROOM);
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "learnedbtree check",
												  ALLOCSET_DEFAULT_SIZES);
	LbtAudit	behind = {0};	/* not reported: it is about the same leaves */
	LbtLeafWalk walk;
	bool		ready = true;

	memset(audit, 0, sizeof(*audit));
	lbt_leafwalk_begin(&walk, rel);
	while (ready && lbt_leafwalk_next(&walk))
	{
		MemoryContext caller;
		LbtBound	bound;

		if (walk.separator == NULL)
			continue;
		CHECK_FOR_INTERRUPTS();
		caller = MemoryContextSwitchTo(context);
		audit->separators++;
		separator_bound(&index->keyspec, tupdesc, walk.separator, room, &bound);

		/* As the lower bound of a scan, and as an upper one. */
		for (int past = 0; past <= 1 && ready; past++)
		{
			bound.past = past;
			lbt_index_update(index);
			ready = index->state == LBT_READY;
			if (ready)
				try_bound(rel, index, &bound, snapshot, &walk, past ? &behind : audit);
		}
		MemoryContextSwitchTo(caller);
		MemoryContextReset(context);
	}
	lbt_leafwalk_end(&walk);
	MemoryContextDelete(context);
	pfree(room);
	return ready;
}
