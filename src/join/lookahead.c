/*
 * lookahead.c - the node that looks ahead; see join.h.
 *
 *     rows         slot[0] ... slot[at - 1]   slot[at]   slot[at + 1] ... slot[n - 1]
 *                  joined already             at hand    predicted, their cache lines fetched
 *
 * A batch is read whole before its first row is handed on: outer rows, then the values of the keys, then the stages of
 * search/predict.h.  Rows are copied, as the outer side's slot is good for one row only; copies hold no pin.
 */
#include "join/join.h"

#include "am/am.h"
#include "commands/explain.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "registry/counters.h"
#include "registry/settings.h"
#include "search/predict.h"
#include "server/compat.h"
#include "server/tableblock.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#define NO_PREDICTION (-1)

/* Rows to hand on before looking ahead again, where it was of no use. */
#define ROWS_AT_REST 1000

typedef struct Lookahead
{
	CustomScanState css;
	PlanState  *outer;
	List	   *keys;			/* ExprStates; NIL: only hand rows on */
	Oid			type[LBT_CODE_COLUMNS];
	Relation	rel;			/* the inner index; NULL without keys */
	Relation	table;			/* the inner table, where the scan fetches
								 * rows */
	LbtIndex   *index;
	uint8	   *scratch;		/* for keys' encoded values; or NULL */
	bool		ended;			/* the outer side has no more rows */
	int			size;			/* of the next batch */
	int			rest;			/* rows to hand on before it */
	int			n;				/* rows of this one */
	int			at;				/* the next one to hand on */
	int			room;			/* slots there are */
	TupleTableSlot *slot[LBT_LOOKAHEAD_LIMIT];
	int8		prediction[LBT_LOOKAHEAD_LIMIT];	/* in batch */
	LbtBatch	batch;
	LbtKeyValue *values;		/* of each row's keys */
	uint64		batches;		/* of two rows or more */
	uint64		predicted;		/* rows */
} Lookahead;

/* ---- a batch ---- */

static void
add_slot(Lookahead *node)
{
	EState	   *estate = node->css.ss.ps.state;
	MemoryContext old = MemoryContextSwitchTo(estate->es_query_cxt);

	node->slot[node->room++] = ExecInitExtraTupleSlot(estate, node->css.ss.ss_ScanTupleSlot->tts_tupleDescriptor,
													  &TTSOpsVirtual);
	MemoryContextSwitchTo(old);
}

/* Read rows into slots: up to so many, or what work_mem has room for. */
static void
read_rows(Lookahead *node, int size)
{
	Size		bytes = 0;

	node->n = node->at = 0;
	while (node->n < size && bytes < (Size) work_mem * 1024)
	{
		TupleTableSlot *row = ExecProcNode(node->outer);
		TupleTableSlot *copy;

		if (TupIsNull(row))
		{
			node->ended = true;
			return;
		}
		if (node->n == node->room)
			add_slot(node);
		copy = ExecCopySlot(node->slot[node->n++], row);
		if (TTS_SHOULDFREE(copy))
			bytes += GetMemoryChunkSpace(((VirtualTupleTableSlot *) copy)->data);
	}
}

/* The values of a row's keys; false when no entry of the index can be equal to them, or they cannot be predicted. */
static bool
evaluate_keys(Lookahead *node, int row)
{
	ExprContext *econtext = node->css.ss.ps.ps_ExprContext;
	LbtKeyValue *values = &node->values[row * list_length(node->keys)];
	int			column = 0;
	ListCell   *lc;

	econtext->ecxt_scantuple = node->slot[row];
	foreach(lc, node->keys)
	{
		const LbtKeyColumn *c = &node->index->keyspec.column[column];
		bool		isnull;
		Datum		value = ExecEvalExprSwitchContext(lfirst(lc), econtext, &isnull);
		uint8	   *scratch = node->scratch ?
			node->scratch + (Size) (row * list_length(node->keys) + column) * LBT_SCRATCH_BYTES : NULL;

		if (isnull || !lbt_keyspec_plain(c, value) ||
			lbt_keyspec_argument(c, node->type[column], value, &values[column], scratch) != 0)
			return false;
		column++;
	}
	return true;
}

/* Are most rows' keys on the leaf of the row before?  Then they are found in the cache anyway. */
static bool
in_order(const LbtBatch *batch)
{
	int			same = 0;

	for (int i = 1; i < batch->n; i++)
		same += batch->target[i].slot == batch->target[i - 1].slot;
	return 2 * same > batch->n;
}

/* Predict where the rows' keys are, and fetch what the inner scan will look at. */
static void
predict_rows(Lookahead *node)
{
	LbtIndex   *index = node->index;
	LbtBatch   *batch = &node->batch;
	int			nkeys = list_length(node->keys);
	bool		known[LBT_LOOKAHEAD_LIMIT];

	ResetExprContext(node->css.ss.ps.ps_ExprContext);
	for (int row = 0; row < node->n; row++)
		known[row] = evaluate_keys(node, row);
	batch->n = 0;
	lbt_index_update(index);
	if (index->state != LBT_READY)
		return;
	for (int row = 0; row < node->n; row++)
		if (known[row])
		{
			node->prediction[row] = (int8) batch->n;
			lbt_batch_add(index, batch, &node->values[row * nkeys], nkeys, false);
		}
	lbt_batch_finish(index, batch);
	if (lbt_enable_prefetch)
		lbt_count_many(index, LBT_EV_PREFETCHED, lbt_batch_read(node->rel, index, batch));
	if (node->table == NULL && in_order(batch))
		node->rest = ROWS_AT_REST;
	else if (lbt_batch_looks(index))
	{
		lbt_batch_near(node->rel, index, batch, false);
		if (node->table != NULL)
			lbt_count_many(index, LBT_EV_ROWS_PREFETCHED,
						   lbt_batch_rows(node->rel, index, node->table, batch, lbt_enable_row_prefetch));
	}
	node->batches++;
	node->predicted += batch->n;
}

/* The next batch: twice as many rows as the one before, as far as the setting allows. */
static void
next_batch(Lookahead *node)
{
	int			size = Min(node->size, lbt_lookahead_rows);

	read_rows(node, size);
	memset(node->prediction, NO_PREDICTION, sizeof(node->prediction));
	if (size > 1 && node->n > 0)
		predict_rows(node);
	node->size = Min(node->size * 2, LBT_LOOKAHEAD_LIMIT);
}

/* The outer side's next row as it is; what this node's projection works on is a copy. */
static TupleTableSlot *
hand_on(Lookahead *node)
{
	TupleTableSlot *row = ExecProcNode(node->outer);

	if (TupIsNull(row))
		node->ended = true;
	else if (unlikely(node->css.ss.ps.ps_ProjInfo != NULL))
		return ExecCopySlot(node->css.ss.ss_ScanTupleSlot, row);
	return row;
}

/* The next row; without looking ahead, the outer side's own. */
static TupleTableSlot *
take_row(Lookahead *node)
{
	int			prediction;

	if (node->at == node->n)
	{
		if (node->ended)
			return NULL;
		if (node->keys == NIL || node->rest > 0 || node->size < 2 || lbt_lookahead_rows < 2 || !lbt_enable)
		{
			node->rest -= node->rest > 0;
			node->size = 2;
			return hand_on(node);
		}
		next_batch(node);
		if (node->n == 0)
			return NULL;
	}
	prediction = node->prediction[node->at];
	if (prediction != NO_PREDICTION)
	{
		node->index->handed = node->batch.target[prediction];
		node->index->handed_code = node->batch.code[prediction];
	}
	return node->slot[node->at++];
}

/* ---- the node ---- */

static void
start_over(Lookahead *node)
{
	for (int i = 0; i < node->n; i++)
		ExecClearTuple(node->slot[i]);
	node->n = node->at = 0;
	node->size = 1;
	node->rest = 0;
	node->ended = false;
}

static void
begin(CustomScanState *css, EState *estate, int eflags)
{
	Lookahead  *node = (Lookahead *) css;
	CustomScan *plan = (CustomScan *) css->ss.ps.plan;
	List	   *facts = plan->custom_private;
	Relation	rel;
	ListCell   *lc;
	int			column = 0;

	node->outer = ExecInitNode(linitial(plan->custom_plans), estate, eflags);
	css->custom_ps = list_make1(node->outer);
	css->ss.ps.resultops = &TTSOpsVirtual;	/* or the outer side's */
	css->ss.ps.resultopsset = true;
	css->ss.ps.resultopsfixed = false;
	node->size = 1;

	/* A recheck joins single rows. */
	if ((eflags & EXEC_FLAG_EXPLAIN_ONLY) || estate->es_epq_active != NULL || plan->custom_exprs == NIL)
		return;
	rel = index_open(list_nth_oid(facts, LBT_LOOKAHEAD_INDEX), AccessShareLock);
	if (!lbt_scans(rel))
	{
		index_close(rel, AccessShareLock);
		return;
	}
	node->rel = rel;
	node->index = lbt_index_get(rel);
	if (!node->index->learned)
		return;
	foreach(lc, plan->custom_exprs)
	{
		Oid			type = list_nth_oid(facts, LBT_LOOKAHEAD_TYPES + column);

		if (column >= node->index->keyspec.ncolumns ||
			!lbt_keyspec_takes(&node->index->keyspec.column[column], type))
			break;
		node->type[column++] = type;
		node->keys = lappend(node->keys, ExecInitExpr(lfirst(lc), &css->ss.ps));
	}
	if (node->keys == NIL)
		return;
	node->values = palloc_array(LbtKeyValue, column * LBT_LOOKAHEAD_LIMIT);
	if (node->index->keyspec.encoded)
		node->scratch = palloc((Size) column * LBT_LOOKAHEAD_LIMIT * LBT_SCRATCH_BYTES);
	if (list_nth_oid(facts, LBT_LOOKAHEAD_ROWS) && lbt_block_hints != NULL)
	{
		node->table = table_open(rel->rd_index->indrelid, AccessShareLock);
		if (!lbt_is_heap(node->table))
		{
			table_close(node->table, AccessShareLock);
			node->table = NULL;
		}
	}
}

static TupleTableSlot *
next_row(CustomScanState *css)
{
	ProjectionInfo *projection = css->ss.ps.ps_ProjInfo;
	TupleTableSlot *row = take_row((Lookahead *) css);

	if (likely(projection == NULL) || TupIsNull(row))
		return row;
	ResetExprContext(css->ss.ps.ps_ExprContext);
	css->ss.ps.ps_ExprContext->ecxt_scantuple = row;
	return ExecProject(projection);
}

static void
rescan(CustomScanState *css)
{
	Lookahead  *node = (Lookahead *) css;

	start_over(node);
	if (css->ss.ps.chgParam != NULL)
		UpdateChangedParamSet(node->outer, css->ss.ps.chgParam);
	if (node->outer->chgParam == NULL)
		ExecReScan(node->outer);
}

static void
end(CustomScanState *css)
{
	Lookahead  *node = (Lookahead *) css;

	start_over(node);
	if (node->table)
		table_close(node->table, NoLock);
	if (node->rel)
		index_close(node->rel, NoLock);
	ExecEndNode(node->outer);
}

static void
explain(CustomScanState *css, List *ancestors, ExplainState *es)
{
	Lookahead  *node = (Lookahead *) css;

	if (es->analyze)
	{
		ExplainPropertyInteger("Batches", NULL, (int64) node->batches, es);
		ExplainPropertyInteger("Rows Predicted", NULL, (int64) node->predicted, es);
	}
}

static const CustomExecMethods exec_methods = {
	.CustomName = LBT_LOOKAHEAD_NAME,
	.BeginCustomScan = begin,
	.ExecCustomScan = next_row,
	.EndCustomScan = end,
	.ReScanCustomScan = rescan,
	.ExplainCustomScan = explain
};

static Node *
create_state(CustomScan *plan)
{
	Lookahead  *node = palloc0(sizeof(Lookahead));

	NodeSetTag(node, T_CustomScanState);
	node->css.methods = &exec_methods;
	return (Node *) node;
}

const CustomScanMethods lbt_lookahead_methods = {
	.CustomName = LBT_LOOKAHEAD_NAME,
	.CreateCustomScanState = create_state
};
