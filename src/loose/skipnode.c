/*
 * skipnode.c - the executor's node of skip scans; see skip.c.
 */
#include "loose/loose.h"

#include "access/itup.h"
#include "access/relscan.h"
#include "access/stratnum.h"
#include "access/xact.h"
#include "commands/explain.h"
#include "executor/executor.h"
#include "executor/nodeIndexscan.h"
#include "miscadmin.h"
#include "server/compat.h"
#include "utils/lsyscache.h"
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
	int			ncolumns;		/* of the index's, that are left out */
	int		   *place;			/* in the values' rows, from 1 on; or 0 */
	ScanKey		equal;			/* of each column */
	Relation	index;
	int			nconditions;
	ScanKey		conditions;		/* the plan's */
	int			nruntime;
	IndexRuntimeKeyInfo *runtime;
	ExprContext *runtime_context;
	int			nkeys;
	ScanKey		keys;			/* the rows' */
	MemoryContext context[2];	/* of the values, and of those before */
	int			turn;

	/* since the last rescan */
	List	   *found;			/* arrays of NullableDatum, of each value's */
	int			at;				/* the next of them */
	bool		started;
	bool		open;			/* rows are left of the value before */
	bool		ended;
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

/* Copy a row of values. */
static NullableDatum *
copy_row(TupleTableSlot *row)
{
	TupleDesc	desc = row->tts_tupleDescriptor;
	NullableDatum *copy = palloc(sizeof(NullableDatum) * desc->natts);

	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		copy[i].value = slot_getattr(row, i + 1, &copy[i].isnull);
		if (!copy[i].isnull)
			copy[i].value = lbt_loose_copy(copy[i].value, att->attbyval, att->attlen);
	}
	return copy;
}

/* Take all values; false if there are too many. */
static bool
take_values(SkipScan *node)
{
	MemoryContext context;
	TupleTableSlot *row;

	node->turn = !node->turn;
	context = node->context[node->turn];
	MemoryContextReset(context);
	node->found = NIL;
	node->at = 0;
	lbt_loose_set_limit(node->values, LBT_SKIP_VALUES_SHARE * node->whole->plan->total_cost);
	while (row = ExecProcNode(node->values), !TupIsNull(row))
	{
		MemoryContext old = MemoryContextSwitchTo(context);

		node->found = lappend(node->found, copy_row(row));
		MemoryContextSwitchTo(old);
		node->all_values++;
		if (list_length(node->found) == MAX_VALUES ||
			MemoryContextMemAllocated(context, false) / 1024 > work_mem)
			lbt_loose_set_limit(node->values, -1.0);	/* it gives up */
	}
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
	else if (node->nruntime > 0)
	{
		ResetExprContext(node->runtime_context);
		ExecIndexEvalRuntimeKeys(node->runtime_context, node->runtime, node->nruntime);
	}
}

/* Set the rows' keys to this value, in the order of the index's columns. */
static void
set_keys(SkipScan *node, const NullableDatum *value)
{
	int			n = 0;
	int			at = 0;

	for (int i = 0; i < node->index->rd_index->indnkeyatts; i++)
	{
		for (; at < node->nconditions && node->conditions[at].sk_attno == i + 1; at++)
			node->keys[n++] = node->conditions[at];
		if (i < node->ncolumns && node->place[i] > 0)
		{
			const NullableDatum *column = &value[node->place[i] - 1];
			ScanKey		key = &node->keys[n++];

			*key = node->equal[i];
			if (column->isnull)
				ScanKeyEntryInitialize(key, SK_ISNULL | SK_SEARCHNULL, i + 1, InvalidStrategy,
									   InvalidOid, InvalidOid, InvalidOid, (Datum) 0);
			else
				key->sk_argument = column->value;
		}
	}
	Assert(n == node->nkeys);
}

static TupleTableSlot *
exec(CustomScanState *css)
{
	SkipScan   *node = (SkipScan *) css;
	TupleTableSlot *row = NULL;

	if (node->ended)
		return NULL;
	if (!node->started)
		start(node);
	if (node->switched)
		row = ExecProcNode(node->whole);
	else
	{
		while (node->open || node->at < list_length(node->found))
		{
			if (!node->open)
			{
				set_keys(node, list_nth(node->found, node->at++));
				ExecReScan(node->rows);
			}
			row = ExecProcNode(node->rows);
			node->open = !TupIsNull(row);
			if (node->open)
				return row;
		}
	}
	node->ended = TupIsNull(row);
	return node->ended ? NULL : row;
}

static void
set_up(SkipScan *node, const List *places)
{
	int			nfree = node->values->ps_ResultTupleDesc->natts;
	ListCell   *lc;

	if (IsA(node->rows, IndexScanState))
		LBT_TAKE_OVER(node, (IndexScanState *) node->rows, iss, nfree);
	else
		LBT_TAKE_OVER(node, castNode(IndexOnlyScanState, node->rows), ioss, nfree);
	node->ncolumns = list_length(places);
	node->place = palloc(sizeof(int) * node->ncolumns);
	node->equal = palloc0(sizeof(ScanKeyData) * node->ncolumns);
	foreach(lc, places)
	{
		int			i = foreach_current_index(lc);
		Oid			family = node->index->rd_opfamily[i];
		Oid			type = node->index->rd_opcintype[i];

		node->place[i] = lfirst_int(lc);
		if (node->place[i] > 0)
			ScanKeyEntryInitialize(&node->equal[i], 0, i + 1, BTEqualStrategyNumber, type,
								   node->index->rd_indcollation[i],
								   get_opcode(get_opfamily_member(family, type, type,
																  BTEqualStrategyNumber)),
								   (Datum) 0);
	}
	for (int i = 0; i < 2; i++)
		node->context[i] = AllocSetContextCreate(CurrentMemoryContext, "skip scan's values",
												 ALLOCSET_DEFAULT_SIZES);
}

static void
begin(CustomScanState *css, EState *estate, int eflags)
{
	SkipScan   *node = (SkipScan *) css;
	CustomScan *plan = (CustomScan *) css->ss.ps.plan;

	eflags &= ~(EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK);
	node->values = ExecInitNode(list_nth(plan->custom_plans, LBT_SKIP_VALUES), estate, eflags);
	node->rows = ExecInitNode(list_nth(plan->custom_plans, LBT_SKIP_ROWS), estate, eflags);
	node->whole = ExecInitNode(list_nth(plan->custom_plans, LBT_SKIP_WHOLE), estate, eflags);
	ExecSetExecProcNode(linitial(castNode(CustomScanState, node->values)->custom_ps), next_entry);
	css->custom_ps = list_make3(node->values, node->rows, node->whole);
	css->ss.ps.resultops = &TTSOpsVirtual;	/* or an input's */
	css->ss.ps.resultopsset = true;
	css->ss.ps.resultopsfixed = false;
	if ((eflags & EXEC_FLAG_EXPLAIN_ONLY) == 0)
		set_up(node, linitial(plan->custom_private));
}

static void
rescan(CustomScanState *css)
{
	SkipScan   *node = (SkipScan *) css;
	ListCell   *lc;

	/* The rows are rescanned before they are read again. */
	if (css->ss.ps.chgParam != NULL)
		foreach(lc, css->custom_ps)
			UpdateChangedParamSet(lfirst(lc), css->ss.ps.chgParam);
	if (node->started)
		ExecReScan(node->values);
	if (node->switched)
		ExecReScan(node->whole);
	node->started = node->open = node->ended = node->switched = false;
}

static void
end(CustomScanState *css)
{
	ListCell   *lc;

	foreach(lc, css->custom_ps)
		ExecEndNode(lfirst(lc));
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

static const CustomExecMethods exec_methods = {
	.CustomName = LBT_SKIP_NAME,
	.BeginCustomScan = begin,
	.ExecCustomScan = exec,
	.EndCustomScan = end,
	.ReScanCustomScan = rescan,
	.ExplainCustomScan = explain
};

static Node *
create_state(CustomScan *plan)
{
	SkipScan   *node = (SkipScan *) newNode(sizeof(SkipScan), T_CustomScanState);

	node->css.methods = &exec_methods;
	return (Node *) node;
}

const CustomScanMethods lbt_skip_methods = {
	.CustomName = LBT_SKIP_NAME,
	.CreateCustomScanState = create_state
};
