/*
 * rowbatch.c - outer rows that are looked up ahead together; see rowbatch.h.
 */
#include "join/rowbatch.h"

#include "am/am.h"
#include "executor/executor.h"
#include "join/join.h"
#include "server/guard.h"
#include "server/bufferhint.h"
#include "utils/datum.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#define NO_PREDICTION (-1)

/* ---- the inner side ---- */

/*
 * Prepare the keys, which come behind the predicate; false if the index, as it
 * is now, takes none of them.
 */
static bool
open_keys(LbtInner *inner, CustomScanState *node, const List *exprs, const List *facts)
{
	const LbtKeySpec *spec = &inner->index->keyspec;

	for (int i = 1; i < list_length(exprs) && inner->nkeys < spec->ncolumns; i++)
	{
		int			column = inner->nkeys;
		Oid			type = list_nth_oid(facts, LBT_LOOKAHEAD_TYPES + column);

		if (!lbt_keyspec_takes(&spec->column[column], type))
			break;
		inner->type[column] = type;
		inner->key[column] = ExecInitExpr(list_nth(exprs, i), &node->ss.ps);
		inner->nkeys++;
	}
	if (linitial(exprs) != NULL)
		inner->predicate = ExecInitExpr(linitial(exprs), &node->ss.ps);
	inner->values = palloc(sizeof(LbtKeyValue) * inner->nkeys * LBT_LOOKAHEAD_LIMIT);
	if (spec->encoded)
		inner->scratch = palloc((Size) inner->nkeys * LBT_LOOKAHEAD_LIMIT * LBT_SCRATCH_BYTES);
	return inner->nkeys > 0;
}

static void
close_inner(LbtInner *inner)
{
	if (inner->table != NULL)
		table_close(inner->table, AccessShareLock);
	index_close(inner->rel, AccessShareLock);
}

/* False if it is no longer served, or there is nothing to look up by. */
static bool
open_inner(LbtInner *inner, CustomScanState *node, const List *exprs, const List *facts)
{
	memset(inner, 0, sizeof(*inner));
	inner->rel = index_open(list_nth_oid(facts, LBT_LOOKAHEAD_INDEX), AccessShareLock);
	inner->index = lbt_learned_view(inner->rel);
	if (inner->index == NULL || !open_keys(inner, node, exprs, facts))
	{
		close_inner(inner);
		return false;
	}
	if (list_nth_oid(facts, LBT_LOOKAHEAD_ROWS) && lbt_block_hints != NULL)
	{
		Relation	table = table_open(inner->rel->rd_index->indrelid, AccessShareLock);

		if (lbt_is_heap(table))
			inner->table = table;
		else
			table_close(table, AccessShareLock);
	}
	return true;
}

void
lbt_inners_open(LbtInners *inners, CustomScanState *node)
{
	const CustomScan *plan = (const CustomScan *) node->ss.ps.plan;
	const List *facts = linitial(plan->custom_private);
	ListCell   *exprs;
	ListCell   *lc;

	memset(inners, 0, sizeof(*inners));
	inners->econtext = node->ss.ps.ps_ExprContext;
	inners->tupdesc = node->ss.ss_ScanTupleSlot->tts_tupleDescriptor;
	inners->used = lsecond(plan->custom_private);
	inners->inner = palloc(list_length(facts) * sizeof(LbtInner));
	forboth(exprs, plan->custom_exprs, lc, facts)
	{
		LbtInner   *inner = &inners->inner[inners->n];

		if (!open_inner(inner, node, lfirst(exprs), lfirst(lc)))
			continue;
		inners->n++;
		inners->pages += RelationGetNumberOfBlocks(inner->rel);
		if (inner->table == NULL)
			continue;
		inners->rows = true;
		inners->pages += RelationGetNumberOfBlocks(inner->table);
	}
}

void
lbt_inners_close(LbtInners *inners)
{
	for (int i = 0; i < inners->n; i++)
		close_inner(&inners->inner[i]);
}

bool
lbt_inners_ready(LbtInners *inners)
{
	bool		any = false;

	for (int i = 0; i < inners->n; i++)
	{
		lbt_index_update(inners->inner[i].index);
		any |= inners->inner[i].index->state == LBT_READY;
	}
	return any;
}

/* ---- rows ---- */

LbtRowBatch *
lbt_rowbatch_make(const LbtInners *inners, EState *estate)
{
	LbtRowBatch *rows = MemoryContextAllocZero(estate->es_query_cxt, sizeof(LbtRowBatch));

	rows->of = MemoryContextAllocZero(estate->es_query_cxt, inners->n * sizeof(LbtInnerBatch));
	rows->context = AllocSetContextCreate(estate->es_query_cxt, "learnedbtree outer rows",
										  ALLOCSET_SMALL_SIZES);
	return rows;
}

static void
add_slot(const LbtInners *inners, LbtRowBatch *rows, EState *estate)
{
	MemoryContext old = MemoryContextSwitchTo(estate->es_query_cxt);
	TupleTableSlot *slot = ExecInitExtraTupleSlot(estate, inners->tupdesc, &TTSOpsVirtual);

	memset(slot->tts_isnull, true, inners->tupdesc->natts * sizeof(bool));
	rows->slot[rows->room++] = slot;
	MemoryContextSwitchTo(old);
}

Size
lbt_rowbatch_add(const LbtInners *inners, LbtRowBatch *rows, EState *estate, TupleTableSlot *row)
{
	MemoryContext old;
	TupleTableSlot *copy;
	ListCell   *lc;

	if (rows->n == rows->room)
		add_slot(inners, rows, estate);
	copy = rows->slot[rows->n++];
	if (inners->used != NIL)
		slot_getsomeattrs(row, llast_int(inners->used));
	old = MemoryContextSwitchTo(rows->context);
	foreach(lc, inners->used)
	{
		int			i = lfirst_int(lc) - 1;
		Form_pg_attribute column = TupleDescAttr(inners->tupdesc, i);

		copy->tts_isnull[i] = row->tts_isnull[i];
		copy->tts_values[i] = row->tts_isnull[i] || column->attbyval ? row->tts_values[i] :
			datumCopy(row->tts_values[i], false, column->attlen);
	}
	MemoryContextSwitchTo(old);
	ExecStoreVirtualTuple(copy);
	return MemoryContextMemAllocated(rows->context, false);
}

void
lbt_rowbatch_empty(const LbtInners *inners, LbtRowBatch *rows)
{
	for (int i = 0; i < rows->n; i++)
		ExecClearTuple(rows->slot[i]);
	MemoryContextReset(rows->context);
	rows->n = rows->at = rows->unused = 0;
	rows->looked = rows->reads = rows->missed = false;
	for (int i = 0; i < inners->n; i++)
	{
		LbtInnerBatch *of = &rows->of[i];
		LbtIndex   *index = inners->inner[i].index;

		of->batch.n = 0;
		lbt_count_many(index, LBT_EV_PREFETCHED, lbt_reads_end(&of->leaves));
		lbt_count_many(index, LBT_EV_ROWS_PREFETCHED, lbt_reads_end(&of->rows));
	}
}

/* ---- looking ahead ---- */

/* Evaluate a row's keys; false if none matches, or we cannot predict it. */
static bool
evaluate_keys(const LbtInner *inner, ExprContext *econtext, int row)
{
	bool		isnull;

	if (inner->predicate != NULL &&
		(!DatumGetBool(ExecEvalExprSwitchContext(inner->predicate, econtext, &isnull)) || isnull))
		return false;
	for (int column = 0; column < inner->nkeys; column++)
	{
		const LbtKeyColumn *c = &inner->index->keyspec.column[column];
		int			at = row * inner->nkeys + column;
		Datum		value = ExecEvalExprSwitchContext(inner->key[column], econtext, &isnull);
		uint8	   *scratch = inner->scratch ?
			inner->scratch + (Size) at * LBT_SCRATCH_BYTES : NULL;

		if (isnull || !lbt_keyspec_plain(c, value) ||
			lbt_keyspec_argument(c, inner->type[column], value, &inner->values[at], scratch) != 0)
			return false;
	}
	return true;
}

/*
 * The same for all rows.  A key that fails (1 / x) is not known: the inner
 * scan will raise the error, if it comes to that row.  Nor are those of the
 * last rows, if the others take much memory: of md5(x), the whole of x.
 */
static void
evaluate_rows(const LbtInner *inner, ExprContext *econtext, const LbtRowBatch *rows, bool *known)
{
	volatile int row = 0;

	memset(known, false, rows->n * sizeof(bool));
	while (row < rows->n && !lbt_keys_are_dear(econtext->ecxt_per_tuple_memory))
	{
		LBT_GUARD_BEGIN_SILENTLY();
		{
			for (; row < rows->n && !lbt_keys_are_dear(econtext->ecxt_per_tuple_memory); row++)
			{
				econtext->ecxt_scantuple = rows->slot[row];
				known[row] = evaluate_keys(inner, econtext, row);
			}
		}
		LBT_GUARD_END(known[row++] = false);
	}
}

static void
predict_rows(LbtInner *inner, ExprContext *econtext, const LbtRowBatch *rows, LbtInnerBatch *of)
{
	LbtIndex   *index = inner->index;
	LbtBatch   *batch = &of->batch;
	bool		known[LBT_LOOKAHEAD_LIMIT];

	ResetExprContext(econtext);
	evaluate_rows(inner, econtext, rows, known);
	memset(of->prediction, NO_PREDICTION, rows->n);
	lbt_index_update(index);
	if (index->state != LBT_READY)
		return;
	for (int row = 0; row < rows->n; row++)
		if (known[row])
		{
			of->prediction[row] = (int8) batch->n;
			lbt_batch_add(index, batch, &inner->values[row * inner->nkeys], inner->nkeys, false);
		}
	lbt_batch_finish(index, batch);
	if (lbt_enable_prefetch)
		of->leaves = lbt_batch_read(inner->rel, index, batch);
}

int
lbt_rowbatch_predict(LbtInners *inners, LbtRowBatch *rows)
{
	int			most = 0;

	for (int i = 0; i < inners->n; i++)
	{
		predict_rows(&inners->inner[i], inners->econtext, rows, &rows->of[i]);
		rows->reads |= rows->of[i].leaves != NULL;
		most = Max(most, rows->of[i].batch.n);
	}
	return most;
}

/* Returns whether blocks had to be read. */
static bool
look_at_rows(LbtInner *inner, LbtInnerBatch *of)
{
	LbtIndex   *index = inner->index;
	LbtBatch   *batch = &of->batch;
	bool		missed = false;

	if (batch->n == 0 || index->keyspec.nplaces == 0)
		return false;
	lbt_index_update(index);
	if (index->state != LBT_READY || batch->target[0].generation != index->generation)
		return false;
	if (of->leaves != NULL && inner->table != NULL)
		missed = lbt_reads_come(of->leaves, batch->n - 1);
	lbt_batch_near(inner->rel, index, batch, false);
	if (inner->table != NULL)
		of->rows = lbt_batch_rows(inner->rel, index, inner->table, batch,
								  lbt_enable_row_prefetch);
	return missed;
}

void
lbt_rowbatch_look(LbtInners *inners, LbtRowBatch *rows)
{
	for (int i = 0; i < inners->n && !rows->looked; i++)
	{
		rows->missed |= look_at_rows(&inners->inner[i], &rows->of[i]);
		rows->reads |= rows->of[i].rows != NULL;
	}
	rows->looked = true;
}

void
lbt_rowbatch_start(const LbtInners *inners, LbtRowBatch *rows)
{
	for (int i = 0; i < inners->n; i++)
	{
		lbt_reads_start(rows->of[i].leaves);
		lbt_reads_start(rows->of[i].rows);
	}
}

/* Put the prediction for the row at hand into the index's mailbox. */
static inline void
hand_on(const LbtInner *inner, LbtRowBatch *rows, LbtInnerBatch *of)
{
	LbtIndex   *index = inner->index;
	int			prediction = of->prediction[rows->at];

	if (prediction == NO_PREDICTION)
		return;
	if (unlikely(of->leaves != NULL))
	{
		lbt_index_update(index);
		rows->missed |= lbt_reads_come(of->leaves, prediction);
	}
	if (unlikely(of->rows != NULL))
		rows->missed |= lbt_reads_come(of->rows, prediction);
	rows->unused += index->mailbox.target.generation != 0;
	index->mailbox.target = of->batch.target[prediction];
	index->mailbox.code = of->batch.key[prediction].code;
}

TupleTableSlot *
lbt_rowbatch_next(const LbtInners *inners, LbtRowBatch *rows)
{
	for (int i = 0; i < inners->n; i++)
		hand_on(&inners->inner[i], rows, &rows->of[i]);
	return rows->slot[rows->at++];
}
