/*
 * indexes.c - the function behind the view learnedbtree_indexes: is an index served in this session, and why not?
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/xlog.h"
#include "am/am.h"
#include "fmgr.h"
#include "funcapi.h"
#include "serve/marks.h"
#include "train/train.h"
#include "serve/serve.h"
#include "sql/inspect.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"

PG_FUNCTION_INFO_V1(learnedbtree_index_status);

#define STATUS_COLUMNS 6

static const char *
mark_word(Relation index, bool *known)
{
	LbtIndexOptions options;
	bool		marked;

	*known = lbt_mark_find(index, &options, &marked);
	return !marked ? NULL : options.learned ? "adopted" : "excluded";
}

/* mark, served, reason, model, height, leaves.  No row for what is not a btree or learnedbtree index with a file. */
static void
describe(Relation index, Datum *values, bool *nulls)
{
	bool		known = true;
	const char *mark = lbt_is_btree(index) ? mark_word(index, &known) : NULL;
	const char *reason = NULL;
	const char *model_reason;
	LbtIndex   *view;
	LbtRegistered model;

	if (mark)
		values[0] = CStringGetTextDatum(mark);
	nulls[0] = mark == NULL;
	values[1] = BoolGetDatum(false);
	nulls[3] = nulls[4] = nulls[5] = true;

	/* Nothing about one index may fail the view, which is of many. */
	if (lbt_is_btree(index))
		reason = lbt_serve_unfit(index);
	else if (index->rd_rel->relpersistence == RELPERSISTENCE_UNLOGGED && RecoveryInProgress())
		reason = "it is unlogged, and this is a standby";
	if (reason == NULL && RelationGetNumberOfBlocks(index) > 0 && !lbt_bt_meta_is_good(index))
		reason = "its metapage is damaged";
	if (reason)
	{
		values[2] = CStringGetTextDatum(reason);
		return;
	}
	if (lbt_is_btree(index))
		reason = lbt_serve_refusal(index, NULL);
	view = lbt_index_get(index);
	if (!lbt_is_btree(index))
		(void) lbt_trainable(index, view, &reason);
	if (reason == NULL && !lbt_enable)
		reason = "learnedbtree.enable is off";
	values[1] = BoolGetDatum(reason == NULL);
	if (reason)
		values[2] = CStringGetTextDatum(reason);
	nulls[2] = reason == NULL;
	values[3] = CStringGetTextDatum(lbt_model_state(index, view, &model, &model_reason));
	nulls[3] = nulls[5] = false;
	if (RelationGetNumberOfBlocks(index) > 0)
	{
		values[4] = Int32GetDatum(_bt_getrootheight(index) + 1);
		nulls[4] = false;
	}
	values[5] = Int64GetDatum(Max(RelationGetNumberOfBlocks(index), 1) - 1);
}

Datum
learnedbtree_index_status(PG_FUNCTION_ARGS)
{
	Oid			oid = PG_GETARG_OID(0);
	TupleDesc	tupdesc;
	Datum		values[STATUS_COLUMNS] = {0};
	bool		nulls[STATUS_COLUMNS] = {false};
	Relation	index = NULL;

	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");

	/* The view is of many indexes, and should not wait for any. */
	if (ConditionalLockRelationOid(oid, AccessShareLock))
	{
		index = try_relation_open(oid, NoLock);
		if (index == NULL)
			UnlockRelationOid(oid, AccessShareLock);
	}
	if (index == NULL)
	{
		memset(nulls, true, sizeof(nulls));
		values[2] = CStringGetTextDatum("it is locked by another session, or gone");
		nulls[2] = false;
	}
	else if (index->rd_rel->relkind != RELKIND_INDEX || RELATION_IS_OTHER_TEMP(index) ||
			 (!lbt_is_btree(index) && index->rd_rel->relam != lbt_am_oid()))
	{
		memset(nulls, true, sizeof(nulls));
		relation_close(index, AccessShareLock);
	}
	else
	{
		describe(index, values, nulls);
		relation_close(index, AccessShareLock);
	}
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(tupdesc, values, nulls)));
}
