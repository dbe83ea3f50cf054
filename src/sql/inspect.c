/*
 * inspect.c - one index's model: what was learned, and training it anew.
 */
#include "postgres.h"

#include "access/genam.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "registry/settings.h"
#include "serve/serve.h"
#include "sql/functions.h"
#include "train/demand.h"
#include "train/train.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

PG_FUNCTION_INFO_V1(learnedbtree_train);
PG_FUNCTION_INFO_V1(learnedbtree_model);
PG_FUNCTION_INFO_V1(learnedbtree_leaves);
PG_FUNCTION_INFO_V1(learnedbtree_model_memory);

static const struct
{
	const char *name;
	const char *reason;
}			state_words[] = {
	[LBT_UNTRAINED] = {"untrained", "the first lookup will train it"},
	[LBT_READY] = {"ready", NULL},
	[LBT_EMPTY] = {"empty", "there was no leaf to learn from; the first lookup after it has grown will train it"},
	[LBT_TOO_LARGE] = {"too large", "the model does not fit into learnedbtree.max_model_memory, or its training into maintenance_work_mem"},
	[LBT_EVICTED] = {"evicted", "dropped to make room for other models; raise learnedbtree.max_model_memory, or call learnedbtree_train()"},
	[LBT_NO_MEMORY] = {"no memory", "shared memory could not be had; it will be tried again"},
	[LBT_DAMAGED] = {"damaged", "level 1 of the tree cannot be read, or is not in order; check the index with amcheck, or rebuild it"},
	[LBT_NOT_PAYING] = {"not paying", NULL},
	[LBT_DEAR_KEYS] = {"not paying", "many of its texts have characters whose sort keys the collation's provider has to make, which costs more than it saves, as the texts are long or the leaves few; it will be tried again when the index has grown by a quarter"},
	[LBT_FAILED] = {"failed", "training ended in an error, and will be tried again; learnedbtree_train() shows it"},
};

/* ---- the model ---- */

const char *
lbt_model_state(Relation rel, LbtIndex *index, LbtRegistered *model, const char **reason)
{
	const char *refusal = NULL;

	memset(model, 0, sizeof(*model));
	if (!lbt_trainable(rel, index, reason))
		return index->keyspec.ncolumns == 0 && index->serving.options.learned != 0 ?
			"unsupported" : "off";
	if (index->shareable)
		lbt_registry_describe(&index->file, model, NULL);
	if (lbt_is_btree(rel))
		refusal = lbt_serve_refusal(rel, NULL);
	*reason = refusal ? psprintf("not served in this session: %s", refusal) :
		!lbt_enable && model->state == LBT_READY ? "not used: learnedbtree.enable is off" :
		model->state == LBT_NOT_PAYING ?
		psprintf("of " UINT64_FORMAT " predictions since the training " UINT64_FORMAT " failed and " UINT64_FORMAT
				 " were a neighbour's: descents cost less; the next training tries again",
				 model->since.predictions, model->since.fallbacks, model->since.moved) :
		state_words[model->state].reason;
	return state_words[model->state].name;
}

Datum
learnedbtree_model(PG_FUNCTION_ARGS)
{
	Relation	rel = lbt_open_index(lbt_index_argument(fcinfo), AccessShareLock, LBT_MAY_SEE);
	LbtIndex   *index = lbt_index_get(rel);
	LbtRow		row = {0};
	LbtRegistered model;
	const LbtModelHeader *header = &model.header;
	const LbtSince *since = &model.since;
	const char *reason;

	lbt_report_all();
	lbt_row_add_text(&row, lbt_model_state(rel, index, &model, &reason));
	lbt_row_add_text(&row, reason);
	if (model.state == LBT_READY)
	{
		lbt_row_add(&row, Int64GetDatum(header->nleaves));
		lbt_row_add(&row, Int32GetDatum(header->nknots));
		lbt_row_add(&row, Float8GetDatum(header->max_error));
		lbt_row_add(&row, Float8GetDatum(header->mean_error));
		lbt_row_add(&row, Int64GetDatum(header->bytes));
		lbt_row_add(&row, Int64GetDatum(header->separator_bytes));
		lbt_row_add(&row, Int64GetDatum(header->ties));
		lbt_row_add(&row, TimestampTzGetDatum(header->trained_at));
		if (header->source == LBT_FROM_SAVED)
			lbt_row_add_nulls(&row, 1);
		else
			lbt_row_add(&row, Float8GetDatum(header->training_ms));
		lbt_row_add_text(&row, header->source == LBT_FROM_SAVED ? "metapage" : "training");
	}
	else
		lbt_row_add_nulls(&row, 10);
	if (model.state == LBT_READY || model.state == LBT_NOT_PAYING)
	{
		lbt_row_add(&row, Int64GetDatum(since->splits));
		lbt_row_add(&row, Int64GetDatum(since->deleted));
		lbt_row_add(&row, Int64GetDatum(since->predictions));
		lbt_row_add(&row, Int64GetDatum(since->moved));
		lbt_row_add(&row, Int64GetDatum(since->fallbacks));
	}
	index_close(rel, AccessShareLock);
	PG_RETURN_DATUM(lbt_row_result(fcinfo, &row));
}

/* A key code for users: numeric, as bigint is too small for codes. */
static Datum
code_datum(uint64 code)
{
	return DirectFunctionCall3(numeric_in, CStringGetDatum(psprintf(UINT64_FORMAT, code)),
							   ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1));
}

/* The rows of learnedbtree_leaves(), from a copy of the model. */
static void
put_leaves(ReturnSetInfo *rsinfo, const LbtModel *model)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "learnedbtree leaf",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	uint32		knot = 0;

	for (uint32 slot = 0; slot < model->nleaves; slot++)
	{
		bool		tied = lbt_leaf_tied(model->leaves, slot);
		bool		bends = knot < model->nknots && model->knots[knot].slot == slot;
		Datum		values[] = {Int64GetDatum(slot), code_datum(model->leaves[slot].min_code),
			BoolGetDatum(bends), tied ? 0 :
			Float8GetDatum(lbt_spline_error(model->knots, model->nknots, model->leaves,
											model->nleaves, slot))};
		bool		nulls[] = {false, false, false, tied};

		CHECK_FOR_INTERRUPTS();
		knot += bends;
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
		MemoryContextReset(context);
	}
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(context);
}

/* Codes tell key values: not all who may look into a model may see them. */
Datum
learnedbtree_leaves(PG_FUNCTION_ARGS)
{
	Relation	rel = lbt_open_index(lbt_index_argument(fcinfo), AccessShareLock, LBT_MAY_CHANGE);
	LbtIndex   *index = lbt_index_get(rel);
	LbtRegistered registered;
	void	   *copy = NULL;
	LbtModel	model;
	LbtKeyCode	code;

	InitMaterializedSRF(fcinfo, 0);
	if (index->shareable)
		lbt_registry_describe(&index->file, &registered, &copy);
	if (copy && lbt_model_open(copy, registered.header.bytes, &model, &code))
		put_leaves((ReturnSetInfo *) fcinfo->resultinfo, &model);
	index_close(rel, AccessShareLock);
	return (Datum) 0;
}

Datum
learnedbtree_model_memory(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64((int64) lbt_registry_bytes());
}

/* ---- training ---- */

Datum
learnedbtree_train(PG_FUNCTION_ARGS)
{
	/* No writer is blocked: training reads what it needs page by page. */
	Relation	rel = lbt_open_index(lbt_index_argument(fcinfo), AccessShareLock, LBT_MAY_CHANGE);
	LbtIndex   *index = lbt_index_get(rel);
	const char *reason;
	LbtState	state;

	if (!lbt_trainable(rel, index, &reason))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("index \"%s\" cannot have a model", RelationGetRelationName(rel)),
				 errdetail_internal("%s.", reason),
				 errhint("It works as a plain btree; see learnedbtree_model().")));
	state = lbt_train(rel, index);
	if (state != LBT_EMPTY && state_words[state].reason)
		ereport(WARNING,
				(errcode(state == LBT_NO_MEMORY ? ERRCODE_OUT_OF_MEMORY :
						 state == LBT_DAMAGED ? ERRCODE_INDEX_CORRUPTED :
						 state == LBT_DEAR_KEYS ? ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE :
						 ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("index \"%s\" has no model: %s", RelationGetRelationName(rel), state_words[state].reason),
				 state == LBT_TOO_LARGE ?
				 errhint("A model takes 16 bytes a leaf and 24 bytes a knot, a training as much; raise the settings and train again.") : 0));
	index_close(rel, AccessShareLock);
	PG_RETURN_VOID();
}
