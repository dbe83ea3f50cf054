/*
 * node.c - the executor's node of loose scans; see loose.h.
 *
 * The probe gets the keys of one range of groups after the other (inputs.h).
 * While it is in a range, its next rows are those of the next groups, too: so
 * small groups are passed row by row.
 *
 * A condition on a column behind the range's would make the probe read all
 * rows of the range until one satisfies it.  So it is left out until all
 * columns before it are equal to something:
 *
 *     b = 5, groups by a    a > 1             found: a = 3
 *                           a = 3, b = 5      nothing
 *                           a > 3             ...
 */
#include "loose/loose.h"

#include "access/relscan.h"
#include "access/xact.h"
#include "am/am.h"
#include "commands/explain.h"
#include "executor/executor.h"
#include "loose/inputs.h"
#include "miscadmin.h"
#include "utils/datum.h"
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

/* A row's columns, by the index's columns. */
typedef struct Values
{
	NullableDatum value[INDEX_MAX_KEYS];
	MemoryContext context;
} Values;

typedef struct LooseScan
{
	CustomScanState css;
	PlanState  *probe;
	PlanState  *whole;
	LbtSeekKeys keys;			/* the probe's */
	LbtGroupLeaves *leaves;		/* of groups to come */
	const List *first;			/* places of extremes: LBT_LOOSE_FIRST */
	const List *last;
	MemoryContext row_context;	/* of a row with extremes */
	double		limit;			/* see should_switch() */

	/* since the last rescan */
	bool		started;
	bool		open;			/* the probe's next row is the range's */
	bool		ended;
	bool		switched;
	bool		any;			/* a group has been returned */
	LbtRange	range;
	const NullableDatum *at;	/* where the range begins */
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

/* Copy a row's columns up to this one; ranges begin there. */
static void
take_values(LooseScan *node, Values *values, TupleTableSlot *row, int up_to)
{
	MemoryContext old;

	MemoryContextReset(values->context);
	old = MemoryContextSwitchTo(values->context);
	lbt_seek_take(&node->keys, values->value, row, up_to);
	MemoryContextSwitchTo(old);
	node->at = values->value;
}

/* Where is a row's group, as the probe goes: before the last one (< 0) ...? */
static int
compare_group(const LooseScan *node, TupleTableSlot *row)
{
	ExprContext *econtext = node->css.ss.ps.ps_ExprContext;
	MemoryContext old = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);
	int			order = 0;

	for (int i = 0; i <= node->keys.last_free && order == 0; i++)
	{
		LbtSeekColumn *column = &node->keys.column[i];
		const NullableDatum *last = &node->group.value[i];
		bool		isnull;
		Datum		value;

		if (column->place == 0)
			continue;
		value = slot_getattr(row, column->place, &isnull);
		if (isnull || last->isnull)
			order = (isnull - last->isnull) * (column->nulls_first ? -1 : 1);
		else
		{
			order = DatumGetInt32(FunctionCall2Coll(&column->compare, column->collation, value,
													last->value));
			if (column->descends)
				order = order < 0 ? 1 : -(order > 0);
		}
	}
	MemoryContextSwitchTo(old);
	return order;
}

/* ---- the probe ---- */

/* Tell the scan, if it has begun, that few of its rows will be read. */
static void
expect_few(const LooseScan *node)
{
	IndexScanDesc scan = *node->keys.scan;

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
seek(LooseScan *node, LbtRange range, int up_to, bool extreme, bool backward)
{
	EState	   *estate = node->css.ss.ps.state;
	ScanDirection direction = estate->es_direction;
	TupleTableSlot *row;

	lbt_seek_set(&node->keys, range, node->at, up_to, extreme);
	ExecReScan(node->probe);
	if (up_to < INDEX_MAX_KEYS || extreme || groups_are_long(node))
		expect_few(node);
	node->seeks++;
	node->all_seeks++;
	if (backward)
		estate->es_direction = -direction;
	row = ExecProcNode(node->probe);
	estate->es_direction = direction;
	return TupIsNull(row) ? NULL : row;
}

/* The same for the range, with its leaf asked for if it is not the first. */
static TupleTableSlot *
seek_range(LooseScan *node, int up_to)
{
	int64		reads = pgBufferUsage.shared_blks_read;
	TupleTableSlot *row;

	if (node->any)
		lbt_leaves_before(node->leaves);
	row = seek(node, node->range, up_to, false, false);
	lbt_leaves_after(node->leaves, pgBufferUsage.shared_blks_read != reads);
	return row;
}

/* Is there a condition on a column behind this one? */
static inline bool
is_condition_behind(const LooseScan *node, int column)
{
	const LbtSeekKeys *keys = &node->keys;

	return keys->nconditions > 0 && keys->conditions[keys->nconditions - 1].sk_attno - 1 > column;
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
		node->open = !TupIsNull(row);

		/* The scan may return rows again: see lbt_scan_few(). */
		if (!node->open || compare_group(node, row) > 0)
		{
			note_length(node, many ? node->steps_limit : i);
			node->values += node->open;
			return node->open ? row : NULL;
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
		LbtRange	found = {column, LBT_EQUAL};
		bool		behind = is_condition_behind(node, column);

		CHECK_FOR_INTERRUPTS();
		row = seek_range(node, behind ? column : INDEX_MAX_KEYS);
		if (row == NULL)
		{
			node->range = lbt_range_after(&node->keys, node->range, node->at);
			continue;
		}
		node->values++;
		node->open = !behind;
		if (!behind)
			return row;

		/* Are the conditions that were left out satisfied there? */
		take_values(node, &node->tried, row, column);
		if (column < node->keys.last_free)
			node->range = lbt_range_into(&node->keys, column + 1);
		else if ((row = seek(node, found, INDEX_MAX_KEYS, false, false)) != NULL)
			return row;
		else
			node->range = lbt_range_beyond(&node->keys, node->at, column);
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
		node->range = lbt_range_into(&node->keys, 0);
	else if (open && (row = step(node)) != NULL)
		return row;
	else if (open && !node->open)
		node->range = lbt_range_after(&node->keys, node->range, node->at);
	else
		node->range = lbt_range_beyond(&node->keys, node->at, node->keys.last_free);
	node->started = true;
	return search(node);
}

/* ---- extremes ---- */

/* Fill these columns in: an extreme that is not NULL, or NULL if all are. */
static void
seek_extreme(LooseScan *node, const List *places, bool backward)
{
	LbtRange	group = {node->keys.last_free, LBT_EQUAL};
	TupleTableSlot *row = seek(node, group, INDEX_MAX_KEYS, true, backward);
	TupleTableSlot *out = node->css.ss.ss_ScanTupleSlot;
	MemoryContext old = MemoryContextSwitchTo(node->row_context);
	ListCell   *lc;

	foreach(lc, places)
	{
		int			i = lfirst_int(lc) - 1;
		Form_pg_attribute att = TupleDescAttr(out->tts_tupleDescriptor, i);
		bool		isnull = true;
		Datum		value = row ? slot_getattr(row, i + 1, &isnull) : (Datum) 0;

		out->tts_isnull[i] = isnull;
		out->tts_values[i] = isnull ? (Datum) 0 : datumCopy(value, att->attbyval, att->attlen);
	}
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
	TupleTableSlot *out = ExecCopySlot(node->css.ss.ss_ScanTupleSlot, row);

	MemoryContextReset(node->row_context);
	if (node->first != NIL && out->tts_isnull[linitial_int(node->first) - 1] &&
		node->keys.column[node->keys.ncolumns].nulls_first)
		seek_extreme(node, node->first, false);
	if (node->last != NIL)
		seek_extreme(node, node->last, true);
	return out;
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
			lbt_seek_evaluate(&node->keys);
		row = next_group(node);
		if (row != NULL)
		{
			take_values(node, &node->group, row, node->keys.last_free);
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

/* ---- the executor's methods ---- */

static MemoryContext
make_context(void)
{
	return AllocSetContextCreate(CurrentMemoryContext, "loose scan's row", ALLOCSET_SMALL_SIZES);
}

static void
begin(CustomScanState *css, EState *estate, int eflags)
{
	LooseScan  *node = (LooseScan *) css;
	CustomScan *plan = (CustomScan *) css->ss.ps.plan;

	lbt_inputs_begin(css, estate, eflags);
	node->probe = list_nth(css->custom_ps, LBT_LOOSE_PROBE);
	node->first = list_nth(plan->custom_private, LBT_LOOSE_FIRST);
	node->last = list_nth(plan->custom_private, LBT_LOOSE_LAST);
	if (list_length(css->custom_ps) > LBT_LOOSE_WHOLE)
	{
		node->whole = list_nth(css->custom_ps, LBT_LOOSE_WHOLE);
		node->limit = Max(SWITCH_TIMES * plan->scan.plan.total_cost,
						  SWITCH_SHARE * node->whole->plan->total_cost);
	}
	if ((eflags & EXEC_FLAG_EXPLAIN_ONLY) == 0)
	{
		lbt_seek_open(&node->keys, node->probe, list_nth(plan->custom_private, LBT_LOOSE_COLUMNS),
					  node->probe->ps_ResultTupleDesc, node->first != NIL || node->last != NIL);
		node->leaves = lbt_leaves_open(node->keys.index, node->keys.ncolumns, !node->keys.backward);
	}
	node->row_context = make_context();
	node->group.context = make_context();
	node->tried.context = make_context();
	node->steps_limit = IsA(node->probe, IndexScanState) ? STEPS_ROWS : STEPS_ONLY;
	node->length = Min(node->probe->plan->plan_rows / Max(plan->scan.plan.plan_rows, 1.0),
					   node->steps_limit);
	node->sample_at = node->interval = FIRST_SAMPLE;
}

static void
end_loose(CustomScanState *css)
{
	LooseScan  *node = (LooseScan *) css;

	if (node->leaves != NULL)
		lbt_leaves_reset(node->leaves);
	lbt_inputs_end(css);
}

static void
rescan(CustomScanState *css)
{
	LooseScan  *node = (LooseScan *) css;

	/* The probe is rescanned before it is read again. */
	lbt_inputs_changed(css);
	if (node->started)
		lbt_leaves_reset(node->leaves);
	if (node->switched && node->whole != NULL)
		ExecReScan(node->whole);
	node->started = node->open = node->ended = node->switched = node->any = false;
	node->values = node->seeks = node->steps = node->reads = 0;
	node->sample_at = node->interval;
}

static void
explain(CustomScanState *css, List *ancestors, ExplainState *es)
{
	LooseScan  *node = (LooseScan *) css;

	if (!es->analyze)
		return;
	ExplainPropertyInteger("Seeks", NULL, (int64) node->all_seeks, es);
	if (node->leaves != NULL)
		lbt_leaves_explain(node->leaves, es);
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

const LbtNodeKind lbt_loose_node =
LBT_NODE_KIND("Learned Loose Scan", LooseScan,
			  .BeginCustomScan = begin,
			  .ExecCustomScan = exec,
			  .EndCustomScan = end_loose,
			  .ReScanCustomScan = rescan,
			  .ExplainCustomScan = explain);
