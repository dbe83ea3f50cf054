/*
 * lookahead.c - the node that looks ahead; see join.h.
 *
 *     rows         slot[0] ... slot[at - 1]   slot[at]   slot[at + 1] ... slot[n - 1]
 *                  joined already             at hand    predicted, their cache lines fetched
 *
 * A batch is made before its first row is handed on: outer rows, then the values of the keys, then the stages of
 * search/predict.h.  Rows are copied, as the outer side's slot is good for one row only; copies hold no pin.
 *
 * Blocks that are missing come while rows are handed on, each when a row waits for it.  Where some are, there is a next
 * batch beside the one at hand, each of half as many rows:
 *
 *     rows handed on      0 ......................... half ........................ all of them
 *     this one's rows     being read                  the later half being read
 *     next one's leaves   asked for                   have come
 *     next one's rows                                 asked for, being read
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

typedef struct RowBatch
{
	int			n;				/* rows of this one */
	int			at;				/* the next one to hand on */
	int			room;			/* slots there are */
	bool		looked;			/* predict_rows() has been called */
	bool		missed;			/* blocks had to be read */
	TupleTableSlot *slot[LBT_LOOKAHEAD_LIMIT];
	int8		prediction[LBT_LOOKAHEAD_LIMIT];	/* in batch */
	LbtBatch	batch;
	LbtReads   *leaves;			/* that are not at hand; or NULL */
	LbtReads   *rows;
} RowBatch;

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
	bool		missing;		/* the batch before missed blocks */
	RowBatch   *now;
	RowBatch   *next;			/* NULL: never needed */
	LbtKeyValue *values;		/* of each row's keys */
	uint64		batches;		/* of two rows or more */
	uint64		predicted;		/* rows */
} Lookahead;

/* ---- a batch ---- */

static void
empty(Lookahead *node, RowBatch *rows)
{
	for (int i = 0; i < rows->n; i++)
		ExecClearTuple(rows->slot[i]);
	rows->n = rows->at = rows->batch.n = 0;
	rows->looked = rows->missed = false;
	if (rows->leaves != NULL)
		lbt_count_many(node->index, LBT_EV_PREFETCHED, lbt_reads_end(&rows->leaves));
	if (rows->rows != NULL)
		lbt_count_many(node->index, LBT_EV_ROWS_PREFETCHED, lbt_reads_end(&rows->rows));
}

static void
add_slot(Lookahead *node, RowBatch *rows)
{
	EState	   *estate = node->css.ss.ps.state;
	MemoryContext old = MemoryContextSwitchTo(estate->es_query_cxt);

	rows->slot[rows->room++] = ExecInitExtraTupleSlot(estate, node->css.ss.ss_ScanTupleSlot->tts_tupleDescriptor,
													  &TTSOpsVirtual);
	MemoryContextSwitchTo(old);
}

/* Read rows into slots: up to so many, or what a half of work_mem has room for. */
static void
read_rows(Lookahead *node, RowBatch *rows, int size)
{
	Size		bytes = 0;

	while (rows->n < size && bytes < (Size) work_mem * (1024 / 2))
	{
		TupleTableSlot *row = ExecProcNode(node->outer);
		TupleTableSlot *copy;

		if (TupIsNull(row))
		{
			node->ended = true;
			return;
		}
		if (rows->n == rows->room)
			add_slot(node, rows);
		copy = ExecCopySlot(rows->slot[rows->n++], row);
		if (TTS_SHOULDFREE(copy))
			bytes += GetMemoryChunkSpace(((VirtualTupleTableSlot *) copy)->data);
	}
}

/* The values of a row's keys; false when no entry of the index can be equal to them, or they cannot be predicted. */
static bool
evaluate_keys(Lookahead *node, const RowBatch *rows, int row)
{
	ExprContext *econtext = node->css.ss.ps.ps_ExprContext;
	LbtKeyValue *values = &node->values[row * list_length(node->keys)];
	int			column = 0;
	ListCell   *lc;

	econtext->ecxt_scantuple = rows->slot[row];
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

/* Predict where the rows' keys are, and find out which leaves are missing. */
static void
predict_leaves(Lookahead *node, RowBatch *rows)
{
	LbtIndex   *index = node->index;
	LbtBatch   *batch = &rows->batch;
	int			nkeys = list_length(node->keys);
	bool		known[LBT_LOOKAHEAD_LIMIT];

	ResetExprContext(node->css.ss.ps.ps_ExprContext);
	for (int row = 0; row < rows->n; row++)
		known[row] = evaluate_keys(node, rows, row);
	lbt_index_update(index);
	if (index->state != LBT_READY)
		return;
	for (int row = 0; row < rows->n; row++)
		if (known[row])
		{
			rows->prediction[row] = (int8) batch->n;
			lbt_batch_add(index, batch, &node->values[row * nkeys], nkeys, false);
		}
	lbt_batch_finish(index, batch);
	if (lbt_enable_prefetch)
		rows->leaves = lbt_batch_read(node->rel, batch);
	if (rows->leaves == NULL && node->table == NULL && in_order(batch))
		node->rest = ROWS_AT_REST;
	node->batches++;
	node->predicted += batch->n;
}

/* Fetch what the inner scan will look at, as far as it is there, and find out which blocks of the table are missing. */
static void
predict_rows(Lookahead *node, RowBatch *rows)
{
	LbtIndex   *index = node->index;
	LbtBatch   *batch = &rows->batch;

	rows->looked = true;
	if (batch->n == 0 || node->rest > 0 || !lbt_batch_looks(index))
		return;
	lbt_index_update(index);
	if (!lbt_batch_current(index, batch))
		return;
	if (rows->leaves != NULL && node->table != NULL)
		rows->missed |= lbt_batch_leaves_come(index, batch, rows->leaves, batch->n - 1);
	lbt_batch_near(node->rel, index, batch, false);
	if (node->table != NULL)
		rows->rows = lbt_batch_rows(node->rel, index, node->table, batch, lbt_enable_row_prefetch);
}

/* Begin a batch of so many rows. */
static void
begin_batch(Lookahead *node, RowBatch *rows, int size)
{
	empty(node, rows);
	read_rows(node, rows, size);
	memset(rows->prediction, NO_PREDICTION, sizeof(rows->prediction));
	if (size > 1 && rows->n > 0)
		predict_leaves(node, rows);
}

/* Has the next batch been begun? */
static inline bool
is_begun(const Lookahead *node)
{
	return node->next != NULL && node->next->n > 0;
}

/* Make the next batch the one at hand: begun already or, of twice as many rows as the one before, now. */
static void
next_batch(Lookahead *node)
{
	if (is_begun(node))
	{
		RowBatch   *done = node->now;

		node->missing = done->missed;
		empty(node, done);
		node->now = node->next;
		node->next = done;
	}
	else
	{
		node->missing = node->now->missed;
		begin_batch(node, node->now, Min(node->size, lbt_lookahead_rows));
		node->size = Min(node->size * 2, LBT_LOOKAHEAD_LIMIT);
	}
	if (!node->now->looked)
		predict_rows(node, node->now);
}

/* Before the batch at hand hands on a row: have the next one in the state that it should be in. */
static void
advance_next(Lookahead *node)
{
	RowBatch   *now = node->now;
	int			half = lbt_lookahead_rows / 2;

	if (now->at == 0 && (node->missing || now->missed) && now->n >= half && half > 1 && !node->ended && lbt_enable)
	{
		if (node->next == NULL)
			node->next = MemoryContextAllocZero(node->css.ss.ps.state->es_query_cxt, sizeof(RowBatch));
		begin_batch(node, node->next, half);
		lbt_reads_start(node->next->leaves);
	}
	else if (now->at == now->n / 2 && is_begun(node) && node->table != NULL)
	{
		predict_rows(node, node->next);
		lbt_reads_start(node->next->rows);
	}
}

/* Wait for what the row at hand needs. */
static void
wait_for_row(Lookahead *node)
{
	RowBatch   *rows = node->now;
	int			prediction = rows->prediction[rows->at];

	advance_next(node);
	if (prediction == NO_PREDICTION)
		return;
	if (rows->leaves != NULL)
	{
		lbt_index_update(node->index);
		rows->missed |= lbt_batch_leaves_come(node->index, &rows->batch, rows->leaves, prediction);
	}
	if (rows->rows != NULL)
		rows->missed |= lbt_batch_rows_come(rows->rows, prediction);
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
	RowBatch   *rows = node->now;
	int			prediction;

	if (rows->at == rows->n)
	{
		if (node->ended && !is_begun(node))
			return NULL;
		if (!is_begun(node) &&
			(node->keys == NIL || node->rest > 0 || node->size < 2 || lbt_lookahead_rows < 2 || !lbt_enable))
		{
			node->rest -= node->rest > 0;
			node->size = 2;
			return hand_on(node);
		}
		next_batch(node);
		rows = node->now;
		if (rows->n == 0)
			return NULL;
	}
	if (unlikely(rows->leaves != NULL || rows->rows != NULL))
		wait_for_row(node);
	prediction = rows->prediction[rows->at];
	if (prediction != NO_PREDICTION)
	{
		node->index->handed = rows->batch.target[prediction];
		node->index->handed_code = rows->batch.code[prediction];
	}
	return rows->slot[rows->at++];
}

/* ---- the node ---- */

static void
start_over(Lookahead *node)
{
	empty(node, node->now);
	if (node->next != NULL)
		empty(node, node->next);
	node->missing = false;
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
	node->now = palloc0(sizeof(RowBatch));
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
