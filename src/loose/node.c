/*
 * node.c - the executor's node of loose scans; see loose.h.
 *
 * The node gives the probe its keys.  A key's range is that of one column of
 * the groups', those before it being equal to the last group's:
 *
 *     groups by a, b; the last one is (1, 7); NULLs last
 *
 *     a = 1, b > 7          the next groups with a = 1
 *     a = 1, b IS NULL      the last group with a = 1
 *     a > 1                 all groups with a greater a
 *     a IS NULL             all groups without a
 *
 * A range that has no more rows is followed by the next one of these.  While
 * the probe is in a range, its next rows are those of the next groups, too: so
 * small groups are passed row by row.
 *
 * The plan's own conditions are keys as well.  A condition on a column behind
 * the range's would make the probe read all rows of the range until one
 * satisfies it.  So it is left out until all columns before it are equal to
 * something:
 *
 *     b = 5, groups by a    a > 1             found: a = 3
 *                           a = 3, b = 5      nothing
 *                           a > 3             ...
 */
#include "loose/loose.h"

#include "access/genam.h"
#include "access/relscan.h"
#include "access/stratnum.h"
#include "access/xact.h"
#include "commands/explain.h"
#include "executor/executor.h"
#include "executor/nodeIndexscan.h"
#include "am/am.h"
#include "miscadmin.h"
#include "registry/settings.h"
#include "server/btree.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

/*
 * Rows of a group to pass one by one before a seek, and the mean length of
 * groups from which it is better to seek at once: about twice what a seek
 * costs.  Rows of the table cost more.
 */
#define STEPS_ONLY 64
#define STEPS_ROWS 16
#define LONG_SHARE 2

/* Pages after which a group counts as long: it may have many dead rows. */
#define MANY_BUFFERS 32

/* Groups to find before measuring the length of one. */
#define FIRST_SAMPLE 16

/*
 * Switch over at so many times the cost that was thought, and such a share of
 * the other plan's.
 */
#define SWITCH_TIMES 2.0
#define SWITCH_SHARE 0.03

/* A column of the groups', as the probe goes through the index. */
typedef struct Column
{
	int			place;			/* in rows, from 1 on; 0: a condition fixes it */
	bool		nulls_first;
	bool		descends;
	bool		byval;
	int16		length;
	Oid			collation;
	FmgrInfo	compare;
	ScanKeyData equal;
	ScanKeyData beyond;
} Column;

typedef struct Values
{
	Datum		value[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	MemoryContext context;
} Values;

typedef enum Test
{
	EQUAL,						/* to the last group's */
	BEYOND,						/* after it, and not NULL */
	NO_NULL,
	ONLY_NULL
} Test;

typedef struct Range
{
	int			column;			/* from 0 on; -1: there are no more groups */
	Test		test;
} Range;

typedef struct LooseScan
{
	CustomScanState css;
	PlanState  *probe;
	PlanState  *whole;
	int			ncolumns;
	int			last_free;		/* the last column that is not fixed */
	Column	   *column;
	Relation	index;
	const List *first;			/* places of extremes: LBT_LOOSE_FIRST */
	const List *last;
	int			nconditions;
	ScanKey		conditions;		/* the plan's */
	int			nruntime;
	IndexRuntimeKeyInfo *runtime;
	ExprContext *runtime_context;
	int			nkeys;
	ScanKey		keys;			/* the probe's */
	MemoryContext key_context[2];	/* of the keys, and of those before */
	int			turn;
	MemoryContext row_context;	/* of a row with extremes */
	double		limit;			/* see should_switch() */

	/* since the last rescan */
	bool		started;
	bool		open;			/* the probe's next row is the range's */
	bool		ended;
	bool		switched;
	bool		any;			/* a group has been returned */
	Range		range;
	Values	   *at;				/* where the range begins */
	Values		group;			/* returned last */
	Values		tried;			/* found, but perhaps not to be returned */
	double		values;			/* groups found */
	double		seeks;
	double		steps;
	double		reads;			/* blocks */

	/* of all executions */
	double		length;			/* of groups, about; at most steps_limit */
	double		interval;		/* between samples */
	double		sample_at;		/* values */
	int			steps_limit;
	uint64		all_seeks;
	uint64		switches;
} LooseScan;

/* ---- values ---- */

static Datum
copy_value(const Column *column, Datum value)
{
	return lbt_loose_copy(value, column->byval, column->length);
}

/* Copy a row's columns up to this one. */
static void
take_values(const LooseScan *node, Values *values, TupleTableSlot *row, int up_to)
{
	MemoryContext old = MemoryContextSwitchTo(values->context);

	MemoryContextReset(values->context);
	for (int i = 0; i <= up_to; i++)
	{
		const Column *column = &node->column[i];

		if (column->place == 0)
			continue;
		values->value[i] = slot_getattr(row, column->place, &values->isnull[i]);
		if (!values->isnull[i])
			values->value[i] = copy_value(column, values->value[i]);
	}
	MemoryContextSwitchTo(old);
}

/* Where is a row's group, as the probe goes: before the last one (< 0) ...? */
static int
compare_group(const LooseScan *node, TupleTableSlot *row)
{
	ExprContext *econtext = node->css.ss.ps.ps_ExprContext;
	MemoryContext old = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);
	int			order = 0;

	for (int i = 0; i <= node->last_free && order == 0; i++)
	{
		Column	   *column = &node->column[i];
		bool		isnull;
		Datum		value;

		if (column->place == 0)
			continue;
		value = slot_getattr(row, column->place, &isnull);
		if (isnull || node->group.isnull[i])
			order = (isnull - node->group.isnull[i]) * (column->nulls_first ? -1 : 1);
		else
		{
			order = DatumGetInt32(FunctionCall2Coll(&column->compare, column->collation, value,
													node->group.value[i]));
			if (column->descends)
				order = order < 0 ? 1 : -(order > 0);
		}
	}
	MemoryContextSwitchTo(old);
	return order;
}

/* ---- ranges ---- */

/* The range of groups behind the values, by this column or one before it. */
static void
go_beyond(LooseScan *node, int column)
{
	Range	   *range = &node->range;

	for (; column >= 0; column--)
	{
		if (node->column[column].place == 0)
			continue;
		range->test = node->at->isnull[column] ? NO_NULL : BEYOND;
		if (range->test == BEYOND || node->column[column].nulls_first)
			break;
	}
	range->column = column;
}

/* The first range by this column or one behind it, of all its groups. */
static void
go_into(LooseScan *node, int column)
{
	while (node->column[column].place == 0)
		column++;
	node->range.column = column;
	node->range.test = node->column[column].nulls_first ? ONLY_NULL : NO_NULL;
}

/* The range after one that has no more rows. */
static void
go_on(LooseScan *node)
{
	Range	   *range = &node->range;
	bool		nulls_first = node->column[range->column].nulls_first;

	if (range->test == ONLY_NULL && nulls_first)
		range->test = NO_NULL;
	else if (range->test != ONLY_NULL && !nulls_first)
		range->test = ONLY_NULL;
	else
		go_beyond(node, range->column - 1);
}

/* ---- the probe ---- */

static void
null_key(ScanKey key, int column, bool is_null)
{
	ScanKeyEntryInitialize(key, SK_ISNULL | (is_null ? SK_SEARCHNULL : SK_SEARCHNOTNULL),
						   column + 1, InvalidStrategy, InvalidOid, InvalidOid, InvalidOid,
						   (Datum) 0);
}

/* Make a column's key for a range. */
static void
column_key(const LooseScan *node, ScanKey key, int at, Test test)
{
	const Column *column = &node->column[at];

	if (test == NO_NULL || test == ONLY_NULL || node->at->isnull[at])
		null_key(key, at, test != NO_NULL);
	else
	{
		*key = test == EQUAL ? column->equal : column->beyond;
		key->sk_argument = copy_value(column, node->at->value[at]);
	}
}

/*
 * Set the probe's keys: the range, and all conditions on columns up to this
 * one; an extreme must not be NULL.  Their number is always the same, as the
 * scan was made for it: the last one is repeated.
 */
static void
set_keys(LooseScan *node, Range range, int up_to, bool extreme)
{
	MemoryContext old;
	int			n = 0;
	int			at = 0;

	node->turn = !node->turn;
	MemoryContextReset(node->key_context[node->turn]);
	old = MemoryContextSwitchTo(node->key_context[node->turn]);
	for (int i = 0; i < node->index->rd_index->indnkeyatts; i++)
	{
		for (; at < node->nconditions && node->conditions[at].sk_attno == i + 1; at++)
			if (i <= up_to)
				node->keys[n++] = node->conditions[at];
		if (i <= range.column && node->column[i].place > 0)
			column_key(node, &node->keys[n++], i, i < range.column ? EQUAL : range.test);
		if (i == node->ncolumns && extreme)
			null_key(&node->keys[n++], i, false);
	}
	Assert(n > 0 && n <= node->nkeys);
	for (; n < node->nkeys; n++)
		node->keys[n] = node->keys[n - 1];
	MemoryContextSwitchTo(old);
}

/* Tell its scan, if it has begun, that few of its rows will be read. */
static void
expect_few(PlanState *probe)
{
	IndexScanDesc scan = IsA(probe, IndexScanState) ? ((IndexScanState *) probe)->iss_ScanDesc :
		((IndexOnlyScanState *) probe)->ioss_ScanDesc;

	if (scan != NULL && lbt_scans(scan->indexRelation))
		lbt_scan_few(scan);
}

/* Is it better to seek the next group than to pass this one's rows? */
static inline bool
groups_are_long(const LooseScan *node)
{
	return node->length * LONG_SHARE > node->steps_limit;
}

/* The probe's first row with these keys; NULL if there is none. */
static TupleTableSlot *
seek(LooseScan *node, Range range, int up_to, bool extreme, bool backward)
{
	EState	   *estate = node->css.ss.ps.state;
	ScanDirection direction = estate->es_direction;
	TupleTableSlot *row;

	set_keys(node, range, up_to, extreme);
	ExecReScan(node->probe);
	if (up_to < INDEX_MAX_KEYS || extreme || groups_are_long(node))
		expect_few(node->probe);
	node->seeks++;
	node->all_seeks++;
	if (backward)
		estate->es_direction = -direction;
	row = ExecProcNode(node->probe);
	estate->es_direction = direction;
	return TupIsNull(row) ? NULL : row;
}

/* Is there a condition on a column behind this one? */
static inline bool
is_condition_behind(const LooseScan *node, int column)
{
	return node->nconditions > 0 &&
		node->conditions[node->nconditions - 1].sk_attno - 1 > column;
}

/*
 * Should the other plan give the rest?  If much more was spent than thought,
 * in the planner's units: there are many more groups.
 */
static inline bool
should_switch(const LooseScan *node)
{
	double		spent = node->seeks * LBT_LOOSE_SEEK_COST +
		node->steps * (cpu_index_tuple_cost + cpu_tuple_cost) +
		node->reads * random_page_cost;

	return unlikely(spent > node->limit);
}

/*
 * A group of the sample, or one passed row by row, has ended after so many
 * rows, or has not.  Where groups are long sample fewer and fewer of them.
 */
static void
note_length(LooseScan *node, int rows)
{
	bool		were_long = groups_are_long(node);

	node->length += (rows - node->length) / (were_long ? 2 : 4);
	if (!groups_are_long(node) || rows < node->steps_limit)
		node->interval = FIRST_SAMPLE;
	else if (were_long)
		node->interval *= 2;
	node->sample_at = node->values + (rows < node->steps_limit ? 1 : node->interval);
}

static inline int64
buffers_used(void)
{
	return pgBufferUsage.shared_blks_hit + pgBufferUsage.shared_blks_read;
}

/*
 * Pass the group's rows: the first one of the next group, if it comes soon in
 * the same range.  Else NULL, and the probe is still open if rows are left.
 */
static TupleTableSlot *
step(LooseScan *node)
{
	int64		limit = buffers_used() + MANY_BUFFERS;
	bool		many = false;

	if (groups_are_long(node) && node->values < node->sample_at)
		return NULL;
	for (int i = 1; i <= node->steps_limit && !many; i++)
	{
		TupleTableSlot *row = ExecProcNode(node->probe);

		node->steps++;
		many = buffers_used() > limit;
		if (many)
			node->length = node->steps_limit;
		if (TupIsNull(row))
		{
			note_length(node, many ? node->steps_limit : i);
			node->open = false;
			return NULL;
		}

		/* The scan may return rows again: see lbt_scan_few(). */
		if (compare_group(node, row) > 0)
		{
			note_length(node, many ? node->steps_limit : i);
			node->values++;
			return row;
		}
	}
	note_length(node, node->steps_limit);
	return NULL;
}

/*
 * The first row of the next group in the range, or in one that follows; NULL
 * if there is none, or the other plan should give the rest.
 */
static TupleTableSlot *
search(LooseScan *node)
{
	TupleTableSlot *row;

	node->open = false;
	while (node->range.column >= 0 && !should_switch(node))
	{
		int			column = node->range.column;
		Range		found = {.column = column,.test = EQUAL};
		bool		behind = is_condition_behind(node, column);

		CHECK_FOR_INTERRUPTS();
		row = seek(node, node->range, behind ? column : INDEX_MAX_KEYS, false, false);
		if (row == NULL)
		{
			go_on(node);
			continue;
		}
		node->values++;
		node->open = !behind;
		if (!behind)
			return row;

		/* Are the conditions that were left out satisfied there? */
		take_values(node, &node->tried, row, column);
		node->at = &node->tried;
		if (column < node->last_free)
			go_into(node, column + 1);
		else if ((row = seek(node, found, INDEX_MAX_KEYS, false, false)) != NULL)
			return row;
		else
			go_beyond(node, column);
	}
	return NULL;
}

/* The next group's first row; NULL as above. */
static TupleTableSlot *
next_group(LooseScan *node)
{
	bool		open = node->open;
	TupleTableSlot *row;

	if (!node->started)
		go_into(node, 0);
	else if (open && (row = step(node)) != NULL)
		return row;
	else if (open && !node->open)
		go_on(node);
	else
		go_beyond(node, node->last_free);
	node->started = true;
	return search(node);
}

/* ---- extremes ---- */

/* Fill a column in, from the row that has an extreme, or is NULL. */
static void
put_column(TupleTableSlot *out, int i, TupleTableSlot *row)
{
	Form_pg_attribute att = TupleDescAttr(out->tts_tupleDescriptor, i);
	Datum		value = (Datum) 0;
	bool		isnull = true;

	if (row != NULL)
		value = slot_getattr(row, i + 1, &isnull);
	out->tts_isnull[i] = isnull;
	out->tts_values[i] = isnull ? (Datum) 0 : datumCopy(value, att->attbyval, att->attlen);
}

/* Seek an extreme that is not NULL of the last group, for these columns. */
static void
seek_extreme(LooseScan *node, const List *places, bool backward)
{
	Range		group = {.column = node->last_free,.test = EQUAL};
	TupleTableSlot *row = seek(node, group, INDEX_MAX_KEYS, true, backward);
	MemoryContext old = MemoryContextSwitchTo(node->row_context);
	ListCell   *lc;

	foreach(lc, places)
		put_column(node->css.ss.ss_ScanTupleSlot, lfirst_int(lc) - 1, row);
	MemoryContextSwitchTo(old);
	node->open = false;
}

/*
 * The node's row for the group that begins with this one of the probe's.  Of
 * each seek read one row only: see lbt_scan_few().
 */
static TupleTableSlot *
with_extremes(LooseScan *node, TupleTableSlot *row)
{
	TupleTableSlot *out = node->css.ss.ss_ScanTupleSlot;
	bool		null_first = false;
	MemoryContext old;

	ExecClearTuple(out);
	MemoryContextReset(node->row_context);
	old = MemoryContextSwitchTo(node->row_context);
	for (int i = 0; i < out->tts_tupleDescriptor->natts; i++)
		put_column(out, i, row);
	MemoryContextSwitchTo(old);
	if (node->first != NIL)
		null_first = out->tts_isnull[linitial_int(node->first) - 1];
	if (null_first && node->column[node->ncolumns].nulls_first)
		seek_extreme(node, node->first, false);
	if (node->last != NIL)
		seek_extreme(node, node->last, true);
	return ExecStoreVirtualTuple(out);
}

/* ---- the node ---- */

/* The rest of the groups, from the other plan. */
static TupleTableSlot *
whole_row(LooseScan *node)
{
	TupleTableSlot *row;

	if (!node->switched)
	{
		node->switched = true;
		node->switches++;
		if (node->started)
			ExecReScan(node->probe);	/* drop pins */
	}
	if (node->whole == NULL)
		return NULL;
	do
	{
		ResetExprContext(node->css.ss.ps.ps_ExprContext);
		row = ExecProcNode(node->whole);
	} while (!TupIsNull(row) && node->any && compare_group(node, row) <= 0);
	return TupIsNull(row) ? NULL : row;
}

/* Evaluate the conditions' values, which stay until the next rescan. */
static void
start(LooseScan *node)
{
	if (node->nruntime > 0)
	{
		ResetExprContext(node->runtime_context);
		ExecIndexEvalRuntimeKeys(node->runtime_context, node->runtime, node->nruntime);
	}
}

static TupleTableSlot *
exec(CustomScanState *css)
{
	LooseScan  *node = (LooseScan *) css;
	int64		reads = pgBufferUsage.shared_blks_read;
	TupleTableSlot *row;

	ResetExprContext(css->ss.ps.ps_ExprContext);
	if (node->ended)
		return NULL;
	if (!node->switched && !IsolationIsSerializable() && !should_switch(node))
	{
		if (!node->started)
			start(node);
		row = next_group(node);
		if (row != NULL)
		{
			take_values(node, &node->group, row, node->last_free);
			node->at = &node->group;
			node->any = true;
			if (node->first != NIL || node->last != NIL)
				row = with_extremes(node, row);
			node->reads += pgBufferUsage.shared_blks_read - reads;
			return row;
		}
		if (!should_switch(node))
		{
			node->ended = true;
			return NULL;
		}
	}
	row = whole_row(node);
	node->ended = row == NULL;
	return row;
}

/* ---- set-up ---- */

/* Make the keys of a column of the groups', and of an extreme behind them. */
static void
make_column(LooseScan *node, int at, int place, ScanDirection direction)
{
	Column	   *column = &node->column[at];
	Relation	index = node->index;
	Oid			family = index->rd_opfamily[at];
	Oid			type = index->rd_opcintype[at];
	Form_pg_attribute att;
	int			strategy;

	column->place = place;
	column->descends = ((index->rd_indoption[at] & INDOPTION_DESC) != 0) !=
		ScanDirectionIsBackward(direction);
	column->nulls_first = ((index->rd_indoption[at] & INDOPTION_NULLS_FIRST) != 0) !=
		ScanDirectionIsBackward(direction);
	if (place == 0)
		return;
	att = TupleDescAttr(node->probe->ps_ResultTupleDesc, place - 1);
	column->byval = att->attbyval;
	column->length = att->attlen;
	column->collation = index->rd_indcollation[at];
	fmgr_info_copy(&column->compare, index_getprocinfo(index, at + 1, BTORDER_PROC),
				   CurrentMemoryContext);
	strategy = BTEqualStrategyNumber;
	ScanKeyEntryInitialize(&column->equal, 0, at + 1, strategy, type, column->collation,
						   get_opcode(get_opfamily_member(family, type, type, strategy)),
						   (Datum) 0);
	strategy = column->descends ? BTLessStrategyNumber : BTGreaterStrategyNumber;
	ScanKeyEntryInitialize(&column->beyond, 0, at + 1, strategy, type, column->collation,
						   get_opcode(get_opfamily_member(family, type, type, strategy)),
						   (Datum) 0);
	node->last_free = at;
}

static void
set_up(LooseScan *node, const List *places)
{
	int			more = node->ncolumns + 1;
	ScanDirection direction;
	ListCell   *lc;

	if (IsA(node->probe, IndexScanState))
	{
		direction = ((IndexScan *) node->probe->plan)->indexorderdir;
		LBT_TAKE_OVER(node, (IndexScanState *) node->probe, iss, more);
		node->steps_limit = STEPS_ROWS;
	}
	else
	{
		direction = castNode(IndexOnlyScan, node->probe->plan)->indexorderdir;
		LBT_TAKE_OVER(node, (IndexOnlyScanState *) node->probe, ioss, more);
		node->steps_limit = STEPS_ONLY;
	}
	node->column = palloc0(sizeof(Column) * more);
	foreach(lc, places)
		make_column(node, foreach_current_index(lc), lfirst_int(lc), direction);
	if (node->ncolumns < node->index->rd_index->indnkeyatts)
		make_column(node, node->ncolumns, 0, direction);
	for (int i = 0; i < 2; i++)
		node->key_context[i] = AllocSetContextCreate(CurrentMemoryContext, "loose scan's keys",
													 ALLOCSET_SMALL_SIZES);
	node->row_context = AllocSetContextCreate(CurrentMemoryContext, "loose scan's row",
											  ALLOCSET_SMALL_SIZES);
	node->group.context = AllocSetContextCreate(CurrentMemoryContext, "loose scan's group",
												ALLOCSET_SMALL_SIZES);
	node->tried.context = AllocSetContextCreate(CurrentMemoryContext, "loose scan's next group",
												ALLOCSET_SMALL_SIZES);
}

static void
begin(CustomScanState *css, EState *estate, int eflags)
{
	LooseScan  *node = (LooseScan *) css;
	CustomScan *plan = (CustomScan *) css->ss.ps.plan;
	const List *places = list_nth(plan->custom_private, LBT_LOOSE_COLUMNS);

	eflags &= ~(EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK);
	node->probe = ExecInitNode(list_nth(plan->custom_plans, LBT_LOOSE_PROBE), estate, eflags);
	css->custom_ps = list_make1(node->probe);
	if (list_length(plan->custom_plans) > LBT_LOOSE_WHOLE)
	{
		node->whole = ExecInitNode(list_nth(plan->custom_plans, LBT_LOOSE_WHOLE), estate, eflags);
		css->custom_ps = lappend(css->custom_ps, node->whole);
	}
	css->ss.ps.resultops = &TTSOpsVirtual;	/* or an input's */
	css->ss.ps.resultopsset = true;
	css->ss.ps.resultopsfixed = false;
	node->ncolumns = list_length(places);
	node->first = list_nth(plan->custom_private, LBT_LOOSE_FIRST);
	node->last = list_nth(plan->custom_private, LBT_LOOSE_LAST);
	if (node->whole != NULL)
		node->limit = Max(SWITCH_TIMES * plan->scan.plan.total_cost,
						  SWITCH_SHARE * node->whole->plan->total_cost);
	if ((eflags & EXEC_FLAG_EXPLAIN_ONLY) == 0)
		set_up(node, places);
	node->length = Min(node->probe->plan->plan_rows / Max(plan->scan.plan.plan_rows, 1.0),
					   node->steps_limit);
	node->sample_at = node->interval = FIRST_SAMPLE;
}

static void
rescan(CustomScanState *css)
{
	LooseScan  *node = (LooseScan *) css;

	/* The probe is rescanned before it is read again. */
	if (css->ss.ps.chgParam != NULL)
	{
		UpdateChangedParamSet(node->probe, css->ss.ps.chgParam);
		if (node->whole != NULL)
			UpdateChangedParamSet(node->whole, css->ss.ps.chgParam);
	}
	if (node->switched && node->whole != NULL)
		ExecReScan(node->whole);
	node->started = node->open = node->ended = node->switched = node->any = false;
	node->values = node->seeks = node->steps = node->reads = 0;
	node->sample_at = node->interval;
}

static void
end(CustomScanState *css)
{
	LooseScan  *node = (LooseScan *) css;

	ExecClearTuple(css->ss.ss_ScanTupleSlot);
	ExecEndNode(node->probe);
	if (node->whole != NULL)
		ExecEndNode(node->whole);
}

static void
explain(CustomScanState *css, List *ancestors, ExplainState *es)
{
	LooseScan  *node = (LooseScan *) css;

	if (!es->analyze)
		return;
	ExplainPropertyInteger("Seeks", NULL, (int64) node->all_seeks, es);
	if (node->whole != NULL)
		ExplainPropertyInteger("Switched Over", NULL, (int64) node->switches, es);
}

void
lbt_loose_set_limit(PlanState *node, double limit)
{
	((LooseScan *) castNode(CustomScanState, node))->limit = limit;
}

bool
lbt_loose_gave_up(PlanState *node)
{
	return ((LooseScan *) castNode(CustomScanState, node))->switched;
}

static const CustomExecMethods exec_methods = {
	.CustomName = LBT_LOOSE_NAME,
	.BeginCustomScan = begin,
	.ExecCustomScan = exec,
	.EndCustomScan = end,
	.ReScanCustomScan = rescan,
	.ExplainCustomScan = explain
};

static Node *
create_state(CustomScan *plan)
{
	LooseScan  *node = (LooseScan *) newNode(sizeof(LooseScan), T_CustomScanState);

	node->css.methods = &exec_methods;
	return (Node *) node;
}

const CustomScanMethods lbt_loose_methods = {
	.CustomName = LBT_LOOSE_NAME,
	.CreateCustomScanState = create_state
};
