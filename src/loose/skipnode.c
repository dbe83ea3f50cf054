/*
 * skipnode.c - the executor's node of skip scans; see skip.c.
 */
#include "loose/loose.h"

#include "access/itup.h"
#include "access/relscan.h"
#include "access/xact.h"
#include "commands/explain.h"
#include "executor/executor.h"
#include "loose/inputs.h"
#include "miscadmin.h"
#include "server/compat.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* However much memory may be used. */
#define MAX_VALUES (1 << 20)

typedef struct SkipScan
{
	CustomScanState css;
	PlanState  *values;
	PlanState  *rows;
	PlanState  *whole;
	LbtSeekKeys keys;			/* the rows' */
	MemoryContext context;		/* of the values */

	/* since the last rescan */
	List	   *found;			/* arrays of NullableDatum, by columns */
	int			at;				/* one of them, or next to the first or last */
	bool		started;
	bool		open;			/* a row of that value was returned last */
	bool		switched;

	/* of all executions */
	uint64		all_values;
	uint64		switches;
} SkipScan;

/*
 * In place of the index-only scan's own function: the next entry, whether or
 * not its row is visible, as a value without rows does no harm.  To find one
 * that is visible may need many dead ones to be looked up in the table.
 */
static TupleTableSlot *
next_entry(PlanState *ps)
{
	IndexOnlyScanState *node = castNode(IndexOnlyScanState, ps);
	TupleTableSlot *slot = node->ss.ss_ScanTupleSlot;
	IndexScanDesc scan = node->ioss_ScanDesc;

	if (scan == NULL)
	{
		scan = lbt_index_beginscan(node->ss.ss_currentRelation, node->ioss_RelationDesc,
								   ps->state->es_snapshot, node->ioss_NumScanKeys);
		scan->xs_want_itup = true;
		node->ioss_ScanDesc = scan;
		index_rescan(scan, node->ioss_ScanKeys, node->ioss_NumScanKeys, NULL, 0);
	}
	ExecClearTuple(slot);
	if (index_getnext_tid(scan, ForwardScanDirection) == NULL)
		return NULL;
	index_deform_tuple(scan->xs_itup, scan->xs_itupdesc, slot->tts_values, slot->tts_isnull);
	ExecStoreVirtualTuple(slot);
	if (ps->ps_ProjInfo == NULL)
		return slot;
	ResetExprContext(ps->ps_ExprContext);
	ps->ps_ExprContext->ecxt_scantuple = slot;
	return ExecProject(ps->ps_ProjInfo);
}

/* Take all values; false if there are too many. */
static bool
take_values(SkipScan *node)
{
	EState	   *estate = node->css.ss.ps.state;
	ScanDirection direction = estate->es_direction;
	TupleTableSlot *row;

	MemoryContextReset(node->context);
	node->found = NIL;
	node->at = -1;
	estate->es_direction = ForwardScanDirection;
	lbt_loose_set_limit(node->values, LBT_SKIP_VALUES_SHARE * node->whole->plan->total_cost);
	while (row = ExecProcNode(node->values), !TupIsNull(row))
	{
		MemoryContext old = MemoryContextSwitchTo(node->context);
		NullableDatum *values = palloc(sizeof(NullableDatum) * node->keys.ncolumns);

		lbt_seek_take(&node->keys, values, row, node->keys.last_free);
		node->found = lappend(node->found, values);
		MemoryContextSwitchTo(old);
		node->all_values++;
		if (list_length(node->found) == MAX_VALUES ||
			MemoryContextMemAllocated(node->context, false) / 1024 > work_mem)
			lbt_loose_set_limit(node->values, -1.0);	/* it gives up */
	}
	estate->es_direction = direction;
	return !lbt_loose_gave_up(node->values);
}

static void
start(SkipScan *node)
{
	node->started = true;
	if (IsolationIsSerializable() || !take_values(node))
	{
		node->switched = true;
		node->switches++;
	}
	else
		lbt_seek_evaluate(&node->keys);
}

/* Begin the scan of the next value's rows, or of the one before. */
static bool
open_value(SkipScan *node)
{
	const LbtRange value = {node->keys.last_free, LBT_EQUAL};
	int			step = ScanDirectionIsForward(node->css.ss.ps.state->es_direction) ? 1 : -1;
	int			nvalues = list_length(node->found);

	node->at = Max(-1, Min(node->at + step, nvalues));
	if (node->at < 0 || node->at == nvalues)
		return false;
	lbt_seek_set(&node->keys, value, list_nth(node->found, node->at), INDEX_MAX_KEYS, false);
	ExecReScan(node->rows);
	return true;
}

/*
 * Show the place of an input's row: WHERE CURRENT OF looks for the table and
 * the row's place where every scan of a table has them.
 */
static void
show_place(ScanState *own, PlanState *input)
{
	ScanState  *scan = IsA(input, GatherState) ? NULL : (ScanState *) input;

	own->ss_currentRelation = scan ? scan->ss_currentRelation : NULL;
	if (scan == NULL)
		return;
	own->ss_ScanTupleSlot = scan->ss_ScanTupleSlot;
	if (!IsA(scan, IndexOnlyScanState) || TupIsNull(own->ss_ScanTupleSlot))
		return;
	own->ss_ScanTupleSlot->tts_tableOid = RelationGetRelid(own->ss_currentRelation);
	own->ss_ScanTupleSlot->tts_tid = ((IndexOnlyScanState *) scan)->ioss_ScanDesc->xs_heaptid;
}

static TupleTableSlot *
exec(CustomScanState *css)
{
	SkipScan   *node = (SkipScan *) css;
	PlanState  *input;
	TupleTableSlot *row = NULL;

	if (!node->started)
		start(node);
	input = node->switched ? node->whole : node->rows;
	while (node->open || node->switched || open_value(node))
	{
		row = ExecProcNode(input);
		node->open = !TupIsNull(row);
		if (node->open || node->switched)
			break;
	}
	show_place(&css->ss, input);
	return row;
}

static void
begin(CustomScanState *css, EState *estate, int eflags)
{
	SkipScan   *node = (SkipScan *) css;

	lbt_inputs_begin(css, estate, eflags);
	node->values = list_nth(css->custom_ps, LBT_SKIP_VALUES);
	node->rows = list_nth(css->custom_ps, LBT_SKIP_ROWS);
	node->whole = list_nth(css->custom_ps, LBT_SKIP_WHOLE);

	/* For WHERE CURRENT OF before the first row. */
	css->ss.ss_currentRelation = ((ScanState *) node->rows)->ss_currentRelation;
	ExecSetExecProcNode(linitial(castNode(CustomScanState, node->values)->custom_ps), next_entry);
	if ((eflags & EXEC_FLAG_EXPLAIN_ONLY) == 0)
		lbt_seek_open(&node->keys, node->rows,
					  list_nth(((CustomScan *) css->ss.ps.plan)->custom_private,
							   LBT_LOOSE_COLUMNS),
					  node->values->ps_ResultTupleDesc, false);
	node->context = AllocSetContextCreate(CurrentMemoryContext, "skip scan's values",
										  ALLOCSET_DEFAULT_SIZES);
}

static void
rescan(CustomScanState *css)
{
	SkipScan   *node = (SkipScan *) css;

	/* The rows are rescanned before they are read again. */
	lbt_inputs_changed(css);
	if (node->started)
		ExecReScan(node->values);
	if (node->switched)
		ExecReScan(node->whole);
	node->started = node->open = node->switched = false;
}

static void
explain(CustomScanState *css, List *ancestors, ExplainState *es)
{
	SkipScan   *node = (SkipScan *) css;

	if (!es->analyze)
		return;
	ExplainPropertyInteger("Values", NULL, (int64) node->all_values, es);
	ExplainPropertyInteger("Switched Over", NULL, (int64) node->switches, es);
}

const LbtNodeKind lbt_skip_node =
LBT_NODE_KIND("Learned Skip Scan", SkipScan,
			  .BeginCustomScan = begin,
			  .ExecCustomScan = exec,
			  .EndCustomScan = lbt_inputs_end,
			  .ReScanCustomScan = rescan,
			  .ExplainCustomScan = explain);
