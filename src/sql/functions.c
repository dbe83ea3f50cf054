/*
 * functions.c - what functions and views tell of indexes and their models.
 */
#include "sql/functions.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "catalog/pg_authid.h"
#include "funcapi.h"
#include "serve/serve.h"
#include "storage/lmgr.h"
#include "train/demand.h"
#include "train/train.h"
#include "utils/array.h"
#include "utils/tuplestore.h"

PG_FUNCTION_INFO_V1(learnedbtree_train);
PG_FUNCTION_INFO_V1(learnedbtree_model);
PG_FUNCTION_INFO_V1(learnedbtree_model_memory);
PG_FUNCTION_INFO_V1(learnedbtree_stat_get);
PG_FUNCTION_INFO_V1(learnedbtree_stat_reset);
PG_FUNCTION_INFO_V1(learnedbtree_index_status);
PG_FUNCTION_INFO_V1(learnedbtree_pattern_items);

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
	[LBT_NO_MEMORY] = {"no memory", "its memory, or that of its training, could not be had; it will be tried again"},
	[LBT_DAMAGED] = {"damaged", "level 1 of the tree cannot be read, or is not in order; check the index with amcheck, or rebuild it"},
	[LBT_NOT_PAYING] = {"not paying", "too many predictions since the training failed or were a neighbour's: descents cost less; the next training tries again"},
	[LBT_DEAR_KEYS] = {"not paying", "many of its texts have characters whose sort keys the collation's provider has to make, which costs more than it saves, as the texts are long or the leaves few; it will be tried again when the index has grown by a quarter"},
	[LBT_FAILED] = {"failed", "training ended in an error, and will be tried again; learnedbtree_train() shows it"},
};

/* ---- arguments and results ---- */

Relation
lbt_open_argument(FunctionCallInfo fcinfo, bool only_look)
{
	Relation	rel = try_relation_open(PG_GETARG_OID(0), AccessShareLock);
	const char *reason;

	if (rel == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("relation with OID %u does not exist", PG_GETARG_OID(0))));
	reason = lbt_index_unfit(rel, true);
	if (reason)
		ereport(ERROR,
				(errcode(rel->rd_rel->relkind == RELKIND_INDEX ?
						 ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE : ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" has no model: %s", RelationGetRelationName(rel), reason)));
	if (!object_ownercheck(RelationRelationId, RelationGetRelid(rel), GetUserId()) &&
		!(only_look && has_privs_of_role(GetUserId(), ROLE_PG_MONITOR)))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for index \"%s\"", RelationGetRelationName(rel)),
				 errhint("Only its owner%s may do this.", only_look ? " or a member of pg_monitor" : "")));
	return rel;
}

Relation
lbt_open_with_table(FunctionCallInfo fcinfo, LOCKMODE mode)
{
	Relation	rel = lbt_open_argument(fcinfo, false);
	Oid			table = rel->rd_index->indrelid;

	index_close(rel, AccessShareLock);
	LockRelationOid(table, mode);
	return lbt_open_argument(fcinfo, false);
}

Datum
lbt_row_result(FunctionCallInfo fcinfo, LbtRow *row)
{
	TupleDesc	tupdesc;
	bool		nulls[lengthof(row->given)];

	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");

	/* SQL of another version has fewer or more columns: they are appended. */
	if (tupdesc->natts > lengthof(nulls))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("the library of learnedbtree in this session is older than the extension"),
				 errhint("Install the library of the extension's version, and reconnect.")));
	for (int i = 0; i < tupdesc->natts; i++)
		nulls[i] = !row->given[i];
	return HeapTupleGetDatum(heap_form_tuple(tupdesc, row->values, nulls));
}

/* ---- one index's model ---- */

const char *
lbt_model_state(Relation rel, LbtIndex *index, LbtRegistered *model, const char **reason)
{
	const char *refusal = NULL;

	memset(model, 0, sizeof(*model));
	*reason = lbt_untrainable(rel, index);
	if (*reason)
		return index->keyspec.ncolumns == 0 ? "unsupported" : "off";
	if (index->shareable)
		lbt_registry_describe(&index->file, model);
	if (lbt_is_btree(rel))
		refusal = lbt_serve_refusal(rel);
	*reason = refusal ? psprintf("not served in this session: %s", refusal) :
		!lbt_enable && model->state == LBT_READY ? "not used: learnedbtree.enable is off" :
		state_words[model->state].reason;
	return state_words[model->state].name;
}

Datum
learnedbtree_model(PG_FUNCTION_ARGS)
{
	Relation	rel = lbt_open_argument(fcinfo, true);
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
		lbt_row_add(&row, Int64GetDatum(header->bytes));
		lbt_row_add(&row, Int64GetDatum(header->separator_bytes));
		lbt_row_add_if(&row, !header->saved, TimestampTzGetDatum(header->trained_at));
		lbt_row_add_if(&row, !header->saved, Float8GetDatum(header->training_ms));
		lbt_row_add_text(&row, header->saved ? "metapage" : "training");
	}
	if (model.state == LBT_READY || model.state == LBT_NOT_PAYING)
	{
		row.n = 9;				/* the columns above */
		lbt_row_add(&row, Int64GetDatum(since->splits));
		lbt_row_add(&row, Int64GetDatum(since->predictions));
		lbt_row_add(&row, Int64GetDatum(since->moved));
		lbt_row_add(&row, Int64GetDatum(since->fallbacks));
	}
	index_close(rel, AccessShareLock);
	PG_RETURN_DATUM(lbt_row_result(fcinfo, &row));
}

Datum
learnedbtree_model_memory(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64((int64) lbt_registry_bytes());
}

Datum
learnedbtree_train(PG_FUNCTION_ARGS)
{
	/* No writer is blocked: training reads what it needs page by page. */
	Relation	rel = lbt_open_with_table(fcinfo, AccessShareLock);
	LbtIndex   *index = lbt_index_get(rel);
	const char *reason = lbt_untrainable(rel, index);
	LbtState	state;

	if (reason)
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
				 errmsg("index \"%s\" has no model: %s", RelationGetRelationName(rel), state_words[state].reason)));
	index_close(rel, AccessShareLock);
	PG_RETURN_VOID();
}

/* ---- the views ---- */

/* One index's counts, by LbtEvent, then times of last training and reset. */
Datum
learnedbtree_stat_get(PG_FUNCTION_ARGS)
{
	LbtFile		file = {.database = MyDatabaseId,.index = PG_GETARG_OID(0)};
	LbtRegistered known = {0};
	const LbtTotals *totals = &known.totals;
	LbtRow		row = {0};

	lbt_report_all();
	if (lbt_registry_attach())
		lbt_registry_describe(&file, &known);
	for (int i = 0; i < LBT_NEVENTS; i++)
		lbt_row_add(&row, Int64GetDatum(totals->events[i]));
	lbt_row_add_if(&row, totals->last_trained != 0, TimestampTzGetDatum(totals->last_trained));
	lbt_row_add_if(&row, totals->reset_at != 0, TimestampTzGetDatum(totals->reset_at));
	PG_RETURN_DATUM(lbt_row_result(fcinfo, &row));
}

Datum
learnedbtree_stat_reset(PG_FUNCTION_ARGS)
{
	lbt_registry_attach();
	lbt_report_all();
	if (PG_ARGISNULL(0))
		lbt_totals_reset(InvalidOid);
	else if (OidIsValid(PG_GETARG_OID(0)))
		lbt_totals_reset(PG_GETARG_OID(0));
	PG_RETURN_VOID();
}

/* pattern, served, reason, model, height, leaves */
static void
describe_index(Relation index, LbtRow *row)
{
	const char *reason = lbt_index_unfit(index, true);
	const LbtNamesItem *item;
	bool		readable;
	const char *model_reason;
	LbtRegistered model;

	if (reason == NULL)
		reason = lbt_bt_unreadable(index, true);
	readable = reason == NULL;
	if (readable)
		reason = lbt_is_btree(index) ? lbt_serve_refusal(index) :
			lbt_untrainable(index, lbt_index_get(index));
	if (reason == NULL && !lbt_enable)
		reason = "learnedbtree.enable is off";
	item = lbt_is_btree(index) ? lbt_deciding_item(RelationGetRelid(index)) : NULL;
	lbt_row_add_text(row, item ?
					 pnstrdup(lbt_btree_indexes_list + item->text, item->length) : NULL);
	lbt_row_add(row, BoolGetDatum(reason == NULL));
	lbt_row_add_text(row, reason);
	if (!readable)
		return;
	lbt_row_add_text(row, lbt_model_state(index, lbt_index_get(index), &model, &model_reason));
	lbt_row_add(row, Int32GetDatum(_bt_getrootheight(index) + 1));
	lbt_row_add(row, Int64GetDatum(RelationGetNumberOfBlocks(index) - 1));
}

Datum
learnedbtree_index_status(PG_FUNCTION_ARGS)
{
	/* The view is of many indexes: do not wait for one, or fail on it. */
	Relation	index = lbt_try_open(PG_GETARG_OID(0));
	LbtRow		row = {0};

	if (index != NULL)
	{
		describe_index(index, &row);
		relation_close(index, AccessShareLock);
	}
	else
	{
		row.n = 2;				/* pattern and served are not known */
		lbt_row_add_text(&row, "it is locked by another session, or gone");
	}
	PG_RETURN_DATUM(lbt_row_result(fcinfo, &row));
}

/* How many of these indexes does each item match? */
static int64 *
count_matches(const LbtNames *list, ArrayType *indexes)
{
	int64	   *counts = palloc0(list->nitems * sizeof(int64));
	Datum	   *oids;
	bool	   *nulls;
	int			n;

	deconstruct_array(indexes, OIDOID, sizeof(Oid), true, TYPALIGN_INT, &oids, &nulls, &n);
	for (int i = 0; i < n; i++)
	{
		List	   *names = nulls[i] ? NIL : lbt_names_of_index(DatumGetObjectId(oids[i]));

		CHECK_FOR_INTERRUPTS();
		for (uint32 item = 0; item < list->nitems && !nulls[i]; item++)
			counts[item] += lbt_item_matches_names(list, &list->items[item], names);
		list_free_deep(names);
	}
	return counts;
}

/* item, pattern, excludes, matches */
Datum
learnedbtree_pattern_items(PG_FUNCTION_ARGS)
{
	const char *list = text_to_cstring(PG_GETARG_TEXT_PP(0));
	const char *problem;
	const char *where;
	const LbtNames *names = lbt_names_parse(list, false, &problem, &where);
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	const int64 *counts;

	if (names == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_NAME),
				 where ? errmsg("invalid list of index names: \"%s\"", where) :
				 errmsg("invalid list of index names"),
				 errdetail("%s", problem)));
	counts = count_matches(names, PG_GETARG_ARRAYTYPE_P(1));
	InitMaterializedSRF(fcinfo, 0);
	for (uint32 i = 0; i < names->nitems; i++)
	{
		const LbtNamesItem *item = &names->items[i];
		Datum		values[] = {
			Int32GetDatum(i + 1),
			PointerGetDatum(cstring_to_text_with_len(list + item->text, item->length)),
			BoolGetDatum(item->excludes), Int64GetDatum(counts[i])
		};
		bool		nulls[lengthof(values)] = {0};

		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}
