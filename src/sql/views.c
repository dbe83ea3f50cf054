/*
 * views.c - the functions behind learnedbtree_stat, what lookups and inserts
 * did, and learnedbtree_indexes: is an index served here, and why not?
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/xlog.h"
#include "am/am.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "serve/serve.h"
#include "sql/functions.h"
#include "storage/lmgr.h"
#include "train/demand.h"
#include "train/train.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

PG_FUNCTION_INFO_V1(learnedbtree_stat_get);
PG_FUNCTION_INFO_V1(learnedbtree_stat_reset);
PG_FUNCTION_INFO_V1(learnedbtree_index_status);
PG_FUNCTION_INFO_V1(learnedbtree_pattern_items);
PG_FUNCTION_INFO_V1(learnedbtree_pattern_matches);

/* One index's counts, by LbtEvent, then times of last training and reset. */
Datum
learnedbtree_stat_get(PG_FUNCTION_ARGS)
{
	LbtStats	stats;
	LbtRow		row = {0};
	TimestampTz times[2];

	lbt_registry_attach();
	lbt_report_all();
	lbt_stats_get(PG_GETARG_OID(0), &stats);
	for (int i = 0; i < LBT_NEVENTS; i++)
		lbt_row_add(&row, Int64GetDatum(stats.events[i]));
	times[0] = stats.last_trained;
	times[1] = stats.reset_at;
	for (int i = 0; i < lengthof(times); i++)
		if (times[i] != 0)
			lbt_row_add(&row, TimestampTzGetDatum(times[i]));
		else
			lbt_row_add_nulls(&row, 1);
	PG_RETURN_DATUM(lbt_row_result(fcinfo, &row));
}

Datum
learnedbtree_stat_reset(PG_FUNCTION_ARGS)
{
	LbtFile		file;

	lbt_registry_attach();
	lbt_report_all();
	if (PG_ARGISNULL(0))
		lbt_stats_reset(InvalidOid);
	else if (lbt_index_file(PG_GETARG_OID(0), &file))
		lbt_stats_reset(PG_GETARG_OID(0));
	PG_RETURN_VOID();
}

static const char *
not_served(Relation index)
{
	const char *reason;

	if (lbt_is_btree(index))
		reason = lbt_serve_refusal(index, NULL);
	else
		(void) lbt_trainable(index, lbt_index_get(index), &reason);
	return reason == NULL && !lbt_enable ? "learnedbtree.enable is off" : reason;
}

/* pattern, served, reason, model, height, leaves */
static void
describe_index(Relation index, LbtRow *row)
{
	LbtNamesItem item;
	bool		readable;
	const char *reason = lbt_index_unfit(index, true).reason;
	const char *model_reason;
	LbtRegistered model;
	BlockNumber nblocks;

	/* The view is of many indexes: nothing about one may fail it. */
	if (reason == NULL && RelationGetNumberOfBlocks(index) > 0 && !lbt_bt_meta_is_good(index))
		reason = "its metapage is damaged";
	readable = reason == NULL;
	if (readable)
		reason = not_served(index);
	lbt_row_add_text(row, lbt_is_btree(index) && lbt_deciding_item(index, &item) ?
					 pnstrdup(item.text, item.length) : NULL);
	lbt_row_add(row, BoolGetDatum(reason == NULL));
	lbt_row_add_text(row, reason);
	if (!readable)
		return;
	lbt_row_add_text(row, lbt_model_state(index, lbt_index_get(index), &model, &model_reason));
	nblocks = RelationGetNumberOfBlocks(index);
	if (nblocks > 0)
		lbt_row_add(row, Int32GetDatum(_bt_getrootheight(index) + 1));
	else
		lbt_row_add_nulls(row, 1);
	lbt_row_add(row, Int64GetDatum(Max(nblocks, 1) - 1));
}

/* No row for what is not a btree or learnedbtree index with a file. */
Datum
learnedbtree_index_status(PG_FUNCTION_ARGS)
{
	Oid			oid = PG_GETARG_OID(0);
	Relation	index = NULL;
	LbtRow		row = {0};

	/* The view is of many indexes, and should not wait for any. */
	if (ConditionalLockRelationOid(oid, AccessShareLock))
	{
		index = try_relation_open(oid, NoLock);
		if (index == NULL)
			UnlockRelationOid(oid, AccessShareLock);
	}
	if (index == NULL)
	{
		lbt_row_add_nulls(&row, 2);
		lbt_row_add_text(&row, "it is locked by another session, or gone");
	}
	else
	{
		if (index->rd_rel->relkind == RELKIND_INDEX && !RELATION_IS_OTHER_TEMP(index) &&
			(lbt_is_btree(index) || index->rd_rel->relam == lbt_am_oid()))
			describe_index(index, &row);
		relation_close(index, AccessShareLock);
	}
	PG_RETURN_DATUM(lbt_row_result(fcinfo, &row));
}

/* The next item of a list that a user gave; an error if it is not proper. */
static bool
next_item(const char **at, LbtNamesItem *item)
{
	const char *problem;

	if (lbt_names_next(at, item, &problem))
		return true;
	if (problem)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_NAME),
				 errmsg("invalid list of index names: \"%s\"", item->text),
				 errdetail("%s", problem)));
	return false;
}

/* item, pattern, excludes */
Datum
learnedbtree_pattern_items(PG_FUNCTION_ARGS)
{
	const char *at = text_to_cstring(PG_GETARG_TEXT_PP(0));
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	LbtNamesItem item;

	InitMaterializedSRF(fcinfo, 0);
	for (int n = 1; next_item(&at, &item); n++)
	{
		Datum		values[] = {
			Int32GetDatum(n), PointerGetDatum(cstring_to_text_with_len(item.text, item.length)),
			BoolGetDatum(item.excludes)
		};
		bool		nulls[lengthof(values)] = {0};

		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}

Datum
learnedbtree_pattern_matches(PG_FUNCTION_ARGS)
{
	const char *pattern = text_to_cstring(PG_GETARG_TEXT_PP(0));
	const char *at = pattern;
	LbtNamesItem item;

	if (!next_item(&at, &item) || *at != '\0')
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_NAME),
				 errmsg("not one name or pattern: \"%s\"", pattern)));
	PG_RETURN_BOOL(lbt_item_matches_index(&item, PG_GETARG_OID(1)));
}
