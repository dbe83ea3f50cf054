/*
 * inputs.c - inputs of loose and skip scans; see inputs.h.
 */
#include "loose/inputs.h"

#include "executor/executor.h"
#include "executor/nodeIndexscan.h"
#include "server/btree.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* ---- all inputs ---- */

void
lbt_inputs_begin(CustomScanState *css, EState *estate, int eflags)
{
	ListCell   *lc;

	eflags &= ~(EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK);
	foreach(lc, ((CustomScan *) css->ss.ps.plan)->custom_plans)
		css->custom_ps = lappend(css->custom_ps, ExecInitNode(lfirst(lc), estate, eflags));
	css->ss.ps.resultops = &TTSOpsVirtual;	/* or an input's */
	css->ss.ps.resultopsset = true;
	css->ss.ps.resultopsfixed = false;
}

void
lbt_inputs_changed(CustomScanState *css)
{
	ListCell   *lc;

	if (css->ss.ps.chgParam == NULL)
		return;
	foreach(lc, css->custom_ps)
		UpdateChangedParamSet(lfirst(lc), css->ss.ps.chgParam);
}

void
lbt_inputs_end(CustomScanState *css)
{
	ListCell   *lc;

	foreach(lc, css->custom_ps)
		ExecEndNode(lfirst(lc));
}

/* ---- an index scan's keys ---- */

static void
operator_key(ScanKey key, const LbtSeekKeys *seek, int column, int strategy)
{
	Oid			type = seek->index->rd_opcintype[column];
	Oid			opno = get_opfamily_member(seek->index->rd_opfamily[column], type, type, strategy);

	ScanKeyEntryInitialize(key, 0, column + 1, strategy, type, seek->index->rd_indcollation[column],
						   get_opcode(opno), (Datum) 0);
}

static void
null_key(ScanKey key, int column, bool is_null)
{
	ScanKeyEntryInitialize(key, SK_ISNULL | (is_null ? SK_SEARCHNULL : SK_SEARCHNOTNULL),
						   column + 1, InvalidStrategy, InvalidOid, InvalidOid, InvalidOid,
						   (Datum) 0);
}

/* Prepare the keys of a column of the groups', or of an extreme's. */
static void
open_column(LbtSeekKeys *seek, int at, int place, TupleDesc rows)
{
	LbtSeekColumn *column = &seek->column[at];
	int			options = seek->index->rd_indoption[at];
	Form_pg_attribute att;

	column->place = place;
	column->descends = ((options & INDOPTION_DESC) != 0) != seek->backward;
	column->nulls_first = ((options & INDOPTION_NULLS_FIRST) != 0) != seek->backward;
	if (place == 0)
		return;
	att = TupleDescAttr(rows, place - 1);
	column->byval = att->attbyval;
	column->length = att->attlen;
	column->collation = seek->index->rd_indcollation[at];
	fmgr_info_copy(&column->compare, index_getprocinfo(seek->index, at + 1, BTORDER_PROC),
				   CurrentMemoryContext);
	operator_key(&column->equal, seek, at, BTEqualStrategyNumber);
	operator_key(&column->beyond, seek, at,
				 column->descends ? BTLessStrategyNumber : BTGreaterStrategyNumber);
	seek->last_free = at;
}

/*
 * Take a scan's keys over.  What their values are computed from is ours to
 * evaluate, once for all seeks.
 */
#define TAKE_OVER(seek, state, prefix, more) \
	do { \
		(seek)->index = (state)->prefix##_RelationDesc; \
		(seek)->scan = &(state)->prefix##_ScanDesc; \
		(seek)->nconditions = (state)->prefix##_NumScanKeys; \
		(seek)->conditions = (state)->prefix##_ScanKeys; \
		(seek)->nruntime = (state)->prefix##_NumRuntimeKeys; \
		(seek)->runtime = (state)->prefix##_RuntimeKeys; \
		(seek)->runtime_context = (state)->prefix##_RuntimeContext; \
		(seek)->nkeys = (seek)->nconditions + (more); \
		(seek)->keys = palloc0(sizeof(ScanKeyData) * (seek)->nkeys); \
		(state)->prefix##_ScanKeys = (seek)->keys; \
		(state)->prefix##_NumScanKeys = (seek)->nkeys; \
		(state)->prefix##_NumRuntimeKeys = 0; \
		(state)->prefix##_RuntimeKeysReady = true; \
	} while (0)

void
lbt_seek_open(LbtSeekKeys *seek, PlanState *scan, const List *places, TupleDesc rows, bool extreme)
{
	int			more = extreme;
	ScanDirection direction;
	ListCell   *lc;

	foreach(lc, places)
		more += lfirst_int(lc) > 0;
	if (IsA(scan, IndexScanState))
	{
		direction = ((IndexScan *) scan->plan)->indexorderdir;
		TAKE_OVER(seek, (IndexScanState *) scan, iss, more);
	}
	else
	{
		direction = castNode(IndexOnlyScan, scan->plan)->indexorderdir;
		TAKE_OVER(seek, (IndexOnlyScanState *) scan, ioss, more);
	}
	seek->backward = ScanDirectionIsBackward(direction);
	seek->ncolumns = list_length(places);
	seek->column = palloc0(sizeof(LbtSeekColumn) * (seek->ncolumns + 1));
	foreach(lc, places)
		open_column(seek, foreach_current_index(lc), lfirst_int(lc), rows);
	if (seek->ncolumns < seek->index->rd_index->indnkeyatts)
		open_column(seek, seek->ncolumns, 0, rows);
	for (int i = 0; i < 2; i++)
		seek->context[i] = AllocSetContextCreate(CurrentMemoryContext, "learnedbtree seek keys",
												 ALLOCSET_SMALL_SIZES);
}

void
lbt_seek_evaluate(LbtSeekKeys *seek)
{
	if (seek->nruntime == 0)
		return;
	ResetExprContext(seek->runtime_context);
	ExecIndexEvalRuntimeKeys(seek->runtime_context, seek->runtime, seek->nruntime);
}

/* One of variable length is copied in full. */
static Datum
copy_value(const LbtSeekColumn *column, Datum value)
{
	return column->length == -1 ? PointerGetDatum(PG_DETOAST_DATUM_COPY(value)) :
		datumCopy(value, column->byval, column->length);
}

void
lbt_seek_take(const LbtSeekKeys *seek, NullableDatum *values, TupleTableSlot *row, int up_to)
{
	for (int i = 0; i <= up_to; i++)
	{
		const LbtSeekColumn *column = &seek->column[i];

		if (column->place == 0)
			continue;
		values[i].value = slot_getattr(row, column->place, &values[i].isnull);
		if (!values[i].isnull)
			values[i].value = copy_value(column, values[i].value);
	}
}

/* Make a column's key for a range. */
static void
range_key(const LbtSeekKeys *seek, ScanKey key, int at, LbtRangeTest test,
		  const NullableDatum *values)
{
	const LbtSeekColumn *column = &seek->column[at];

	if (test == LBT_NO_NULL || test == LBT_ONLY_NULL || values[at].isnull)
		null_key(key, at, test != LBT_NO_NULL);
	else
	{
		*key = test == LBT_EQUAL ? column->equal : column->beyond;
		key->sk_argument = copy_value(column, values[at].value);
	}
}

/* The scan was made for a number of keys, so repeat the last one. */
void
lbt_seek_set(LbtSeekKeys *seek, LbtRange range, const NullableDatum *values, int up_to,
			 bool extreme)
{
	MemoryContext old;
	int			n = 0;
	int			at = 0;

	seek->turn = !seek->turn;
	MemoryContextReset(seek->context[seek->turn]);
	old = MemoryContextSwitchTo(seek->context[seek->turn]);
	for (int i = 0; i < seek->index->rd_index->indnkeyatts; i++)
	{
		for (; at < seek->nconditions && seek->conditions[at].sk_attno == i + 1; at++)
			if (i <= up_to)
				seek->keys[n++] = seek->conditions[at];
		if (i <= range.column && seek->column[i].place > 0)
			range_key(seek, &seek->keys[n++], i, i < range.column ? LBT_EQUAL : range.test, values);
		if (i == seek->ncolumns && extreme)
			null_key(&seek->keys[n++], i, false);
	}
	Assert(n > 0 && n <= seek->nkeys);
	for (; n < seek->nkeys; n++)
		seek->keys[n] = seek->keys[n - 1];
	MemoryContextSwitchTo(old);
}

/* ---- ranges ---- */

static inline LbtRange
range_of(int column, LbtRangeTest test)
{
	LbtRange	range = {column, test};

	return range;
}

LbtRange
lbt_range_beyond(const LbtSeekKeys *seek, const NullableDatum *values, int column)
{
	for (; column >= 0; column--)
	{
		if (seek->column[column].place == 0)
			continue;
		if (!values[column].isnull)
			return range_of(column, LBT_BEYOND);
		if (seek->column[column].nulls_first)
			return range_of(column, LBT_NO_NULL);
	}
	return range_of(-1, LBT_EQUAL);
}

LbtRange
lbt_range_into(const LbtSeekKeys *seek, int column)
{
	while (seek->column[column].place == 0)
		column++;
	return range_of(column, seek->column[column].nulls_first ? LBT_ONLY_NULL : LBT_NO_NULL);
}

LbtRange
lbt_range_after(const LbtSeekKeys *seek, LbtRange range, const NullableDatum *values)
{
	bool		nulls_first = seek->column[range.column].nulls_first;

	if (range.test == LBT_ONLY_NULL && nulls_first)
		return range_of(range.column, LBT_NO_NULL);
	if (range.test != LBT_ONLY_NULL && !nulls_first)
		return range_of(range.column, LBT_ONLY_NULL);
	return lbt_range_beyond(seek, values, range.column - 1);
}
