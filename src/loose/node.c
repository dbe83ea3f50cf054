/*
 * node.c - the executor's node of loose scans; see loose.h.
 */
#include "loose/loose.h"

#include "am/am.h"
#include "am/scan.h"
#include "commands/explain.h"
#include "executor/executor.h"
#include "utils/datum.h"
#include "utils/sortsupport.h"
#include "utils/spccache.h"

/*
 * Switch over at this many times the cost that was expected, and this share of
 * the other plan's.
 */
#define SWITCH_TIMES 2.0
#define SWITCH_SHARE 0.03

/* Page visits that any row may take, whatever is left until then. */
#define SEEKS_AT_LEAST 16

typedef struct LooseScan
{
	CustomScanState css;
	PlanState  *probe;
	PlanState  *whole;
	IndexScanDesc *scan;		/* the probe's */
	Relation	index;
	ScanDirection direction;	/* of the probe, through the index */
	int			ncolumns;		/* of the index, that make the groups */
	SortSupport order;			/* of each, as the probe goes; ssup_attno: its
								 * place in rows, 0: a condition fixes it */
	const List *first;			/* places of extremes that come first */
	const List *last;
	int			extreme;		/* one of these; 0: none */
	bool		nulls_first;	/* in its column */
	TupleTableSlot *group;		/* a copy of the row returned last; or empty */
	double		limit;			/* of spent */
	double		page_cost;		/* of one read at random */

	/* since the last rescan */
	bool		started;
	bool		ended;
	bool		switched;
	TupleTableSlot *next;		/* the next group's first row, if there is one */
	double		spent;			/* on pages, in the planner's units */

	/* of all executions */
	uint64		seeks;
	uint64		switches;
} LooseScan;

/* ---- groups ---- */

/* Where is a row's group, as the probe goes: before another's (< 0) ...? */
static int
compare_groups(LooseScan *node, TupleTableSlot *a, TupleTableSlot *b)
{
	ExprContext *econtext = node->css.ss.ps.ps_ExprContext;
	MemoryContext old = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);
	int			order = 0;

	for (int i = 0; i < node->ncolumns && order == 0; i++)
	{
		SortSupport column = &node->order[i];
		NullableDatum x;
		NullableDatum y;

		if (column->ssup_attno == 0)
			continue;
		x.value = slot_getattr(a, column->ssup_attno, &x.isnull);
		y.value = slot_getattr(b, column->ssup_attno, &y.isnull);
		order = ApplySortComparator(x.value, x.isnull, y.value, y.isnull, column);
	}
	MemoryContextSwitchTo(old);
	return order;
}

/* Is a row of a group after that of the row returned last? */
static inline bool
is_next(LooseScan *node, TupleTableSlot *row)
{
	return TupIsNull(node->group) || compare_groups(node, row, node->group) > 0;
}

/* ---- the probe ---- */

/*
 * The probe's next row, in this direction through the index; or NULL, also if
 * it gave up: many entries are dead, or no match of conditions is near.
 */
static TupleTableSlot *
read_row(LooseScan *node, ScanDirection direction)
{
	EState	   *estate = node->css.ss.ps.state;
	ScanDirection before = estate->es_direction;
	LbtScan    *so = (LbtScan *) (*node->scan)->opaque;
	TupleTableSlot *row;

	CHECK_FOR_INTERRUPTS();
	so->budget = (LbtBudget)
	{
		.cost = Max(node->limit - node->spent, SEEKS_AT_LEAST * LBT_SEEK_COST),
		.page_cost = node->page_cost,
		.hits = pgBufferUsage.shared_blks_hit,
		.reads = pgBufferUsage.shared_blks_read
	};
	estate->es_direction = direction == node->direction ? ForwardScanDirection :
		BackwardScanDirection;
	row = ExecProcNode(node->probe);
	estate->es_direction = before;
	node->spent += lbt_scan_spent(so);
	return TupIsNull(row) ? NULL : row;
}

/* Has the probe given up, looking for its last row? */
static inline bool
gave_up(const LooseScan *node)
{
	return ((const LbtScan *) (*node->scan)->opaque)->budget.exceeded;
}

/* ... after all that equals its last one in this many columns. */
static TupleTableSlot *
skip_and_read(LooseScan *node, int ncolumns, ScanDirection past, ScanDirection next)
{
	node->seeks += lbt_scan_skip(*node->scan, ncolumns, past, next);
	return read_row(node, next);
}

static TupleTableSlot *
next_group(LooseScan *node)
{
	if (!TupIsNull(node->group))
		return skip_and_read(node, node->ncolumns, node->direction, node->direction);
	node->seeks++;
	return read_row(node, node->direction);
}

/* Begin the probe's scan; false if our engine does not serve it. */
static bool
start(LooseScan *node)
{
	LbtScan    *so;

	node->started = true;
	if (!lbt_scans(node->index))
		return false;
	if (*node->scan == NULL)
		(void) lbt_begin_index_scan(node->probe);
	so = (LbtScan *) (*node->scan)->opaque;
	so->group_columns = node->ncolumns;
	ExecReScan(node->probe);
	return so->predicts &&
		node->ncolumns + (node->extreme > 0) <= so->index->keyspec.ncolumns;
}

/* ---- extremes ---- */

/* Fill these columns in from a row. */
static void
fill_in(LooseScan *node, const List *places, TupleTableSlot *row)
{
	TupleTableSlot *out = node->css.ss.ss_ScanTupleSlot;
	ExprContext *econtext = node->css.ss.ps.ps_ExprContext;
	MemoryContext old = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);
	ListCell   *lc;

	foreach(lc, places)
	{
		int			i = lfirst_int(lc) - 1;
		Form_pg_attribute att = TupleDescAttr(out->tts_tupleDescriptor, i);
		Datum		value = slot_getattr(row, i + 1, &out->tts_isnull[i]);

		out->tts_values[i] = out->tts_isnull[i] ? value :
			datumCopy(value, att->attbyval, att->attlen);
	}
	MemoryContextSwitchTo(old);
}

/*
 * The node's row for the group that begins with this one of the probe's.  The
 * first row that is not NULL in the extremes' column has those that come
 * first.  The last one is read backward from the group's end, or from its
 * NULLs.  If all are NULL, so are the extremes, as in the row.
 */
static TupleTableSlot *
with_extremes(LooseScan *node, TupleTableSlot *row)
{
	ScanDirection direction = node->direction;
	TupleTableSlot *out = ExecCopySlot(node->css.ss.ss_ScanTupleSlot, row);

	if (slot_attisnull(row, node->extreme))
	{
		if (!node->nulls_first)
			return out;
		row = skip_and_read(node, node->ncolumns + 1, direction, direction);
		if (row == NULL || compare_groups(node, out, row) != 0)
		{
			node->next = row;
			node->ended = row == NULL;
			return out;
		}
		fill_in(node, node->first, row);
	}
	if (node->last != NIL)
	{
		row = skip_and_read(node, node->ncolumns, direction, -direction);
		if (row != NULL && slot_attisnull(row, node->extreme))
			row = skip_and_read(node, node->ncolumns + 1, -direction, -direction);
		if (gave_up(node))
			return NULL;
		if (row == NULL || compare_groups(node, out, row) != 0)
			ereport(ERROR,
					(errcode(ERRCODE_INDEX_CORRUPTED),
					 errmsg("index \"%s\" has lost a row that was found in it",
							RelationGetRelationName(node->index)),
					 errhint("Please REINDEX it.")));
		fill_in(node, node->last, row);
	}
	return out;
}

/* ---- the node ---- */

/* The rest is the other plan's. */
static void
switch_over(LooseScan *node)
{
	node->switched = true;
	node->switches++;
	node->next = NULL;
	node->ended = false;
	if (*node->scan != NULL)
		ExecReScan(node->probe);	/* drop pins */
}

/* One of its rows that is of no group returned before. */
static TupleTableSlot *
whole_row(LooseScan *node)
{
	TupleTableSlot *row;

	do
	{
		ResetExprContext(node->css.ss.ps.ps_ExprContext);
		row = ExecProcNode(node->whole);
	} while (!TupIsNull(row) && !is_next(node, row));
	return TupIsNull(row) ? NULL : row;
}

static TupleTableSlot *
exec(CustomScanState *css)
{
	LooseScan  *node = (LooseScan *) css;
	TupleTableSlot *row;

	ResetExprContext(css->ss.ps.ps_ExprContext);
	if (node->ended)
		return NULL;
	if (!node->switched && ((!node->started && !start(node)) || node->spent > node->limit))
		switch_over(node);
	if (!node->switched)
	{
		row = node->next ? node->next : next_group(node);
		node->next = NULL;
		if (row != NULL && !is_next(node, row))
			ereport(ERROR,
					(errcode(ERRCODE_INDEX_CORRUPTED),
					 errmsg("index \"%s\" is not in the order of its columns",
							RelationGetRelationName(node->index)),
					 errhint("Please REINDEX it.")));
		if (row != NULL && node->extreme > 0)
			row = with_extremes(node, row);
		if (gave_up(node))
			switch_over(node);
		else if (row != NULL)
			ExecCopySlot(node->group, row); /* a caller may change the slot */
	}
	if (node->switched)
		row = whole_row(node);
	node->ended |= row == NULL;
	return row;
}

/* ---- the executor's methods ---- */

/* Describe the groups' columns, and the one after them, of the extremes. */
static void
begin_columns(LooseScan *node, const List *places)
{
	bool		backward = ScanDirectionIsBackward(node->direction);
	ListCell   *lc;

	node->ncolumns = list_length(places);
	node->order = palloc0(sizeof(SortSupportData) * node->ncolumns);
	foreach(lc, places)
	{
		int			i = foreach_current_index(lc);
		SortSupport column = &node->order[i];
		int			options = node->index->rd_indoption[i];

		column->ssup_cxt = CurrentMemoryContext;
		column->ssup_attno = lfirst_int(lc);
		column->ssup_reverse = ((options & INDOPTION_DESC) != 0) != backward;
		column->ssup_nulls_first = ((options & INDOPTION_NULLS_FIRST) != 0) != backward;
		column->ssup_collation = node->index->rd_indcollation[i];
		PrepareSortSupportComparisonShim(index_getprocid(node->index, i + 1, BTORDER_PROC),
										 column);
	}
	node->extreme = node->first ? linitial_int(node->first) :
		node->last ? linitial_int(node->last) : 0;
	if (node->extreme > 0)
		node->nulls_first =
			((node->index->rd_indoption[node->ncolumns] & INDOPTION_NULLS_FIRST) != 0) != backward;
}

static void
begin(CustomScanState *css, EState *estate, int eflags)
{
	LooseScan  *node = (LooseScan *) css;
	CustomScan *plan = (CustomScan *) css->ss.ps.plan;
	ListCell   *lc;

	foreach(lc, plan->custom_plans)
		css->custom_ps = lappend(css->custom_ps,
								 ExecInitNode(lfirst(lc), estate,
											  eflags & ~(EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK)));
	css->ss.ps.resultops = &TTSOpsVirtual;	/* or an input's */
	css->ss.ps.resultopsset = true;
	css->ss.ps.resultopsfixed = false;
	node->probe = linitial(css->custom_ps);
	node->whole = lsecond(css->custom_ps);
	node->first = lsecond(plan->custom_private);
	node->last = lthird(plan->custom_private);
	node->limit = Max(SWITCH_TIMES * plan->scan.plan.total_cost,
					  SWITCH_SHARE * node->whole->plan->total_cost);
	if ((eflags & EXEC_FLAG_EXPLAIN_ONLY) != 0)
		return;
	if (IsA(node->probe, IndexScanState))
	{
		node->scan = &((IndexScanState *) node->probe)->iss_ScanDesc;
		node->index = ((IndexScanState *) node->probe)->iss_RelationDesc;
		node->direction = ((IndexScan *) node->probe->plan)->indexorderdir;
	}
	else
	{
		node->scan = &((IndexOnlyScanState *) node->probe)->ioss_ScanDesc;
		node->index = ((IndexOnlyScanState *) node->probe)->ioss_RelationDesc;
		node->direction = castNode(IndexOnlyScan, node->probe->plan)->indexorderdir;
	}
	get_tablespace_page_costs(node->index->rd_rel->reltablespace, &node->page_cost, NULL);
	begin_columns(node, linitial(plan->custom_private));
	node->group = ExecInitExtraTupleSlot(estate, node->probe->ps_ResultTupleDesc, &TTSOpsVirtual);
}

static void
end_loose(CustomScanState *css)
{
	ListCell   *lc;

	foreach(lc, css->custom_ps)
		ExecEndNode(lfirst(lc));
}

static void
rescan(CustomScanState *css)
{
	LooseScan  *node = (LooseScan *) css;
	ListCell   *lc;

	foreach(lc, css->custom_ps)
		if (css->ss.ps.chgParam != NULL)
			UpdateChangedParamSet(lfirst(lc), css->ss.ps.chgParam);
	if (node->switched)
		ExecReScan(node->whole);

	/* The probe is rescanned before it is read again. */
	node->started = node->ended = node->switched = false;
	node->next = NULL;
	ExecClearTuple(node->group);
	node->spent = 0;
}

static void
explain(CustomScanState *css, List *ancestors, ExplainState *es)
{
	LooseScan  *node = (LooseScan *) css;

	if (!es->analyze)
		return;
	ExplainPropertyInteger("Seeks", NULL, (int64) node->seeks, es);
	/* auto_explain asks also for what an EXPLAIN has not begun. */
	if (node->scan != NULL && *node->scan != NULL)
		lbt_explain_tally("Leaves", &((LbtScan *) (*node->scan)->opaque)->leaves_ahead, es);
	ExplainPropertyInteger("Switched Over", NULL, (int64) node->switches, es);
}

const LbtNodeKind lbt_loose_node =
LBT_NODE_KIND("Learned Loose Scan", LooseScan,
			  .BeginCustomScan = begin,
			  .ExecCustomScan = exec,
			  .EndCustomScan = end_loose,
			  .ReScanCustomScan = rescan,
			  .ExplainCustomScan = explain);
