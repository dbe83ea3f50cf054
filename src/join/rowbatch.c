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

/* Prepare the keys; false if the index, as it is now, takes none of them. */
static bool
open_keys(LbtInner *inner, CustomScanState *node, const List *facts)
{
	const LbtKeySpec *spec = &inner->index->keyspec;
	ListCell   *lc;

	foreach(lc, ((CustomScan *) node->ss.ps.plan)->custom_exprs)
	{
		int			column = inner->nkeys;
		Oid			type = list_nth_oid(facts, LBT_LOOKAHEAD_TYPES + column);

		if (column >= spec->ncolumns || !lbt_keyspec_takes(&spec->column[column], type))
			break;
		inner->type[column] = type;
		inner->key[column] = ExecInitExpr(lfirst(lc), &node->ss.ps);
		inner->nkeys++;
	}
	inner->values = palloc(sizeof(LbtKeyValue) * inner->nkeys * LBT_LOOKAHEAD_LIMIT);
	if (spec->encoded)
		inner->scratch = palloc((Size) inner->nkeys * LBT_LOOKAHEAD_LIMIT * LBT_SCRATCH_BYTES);
	return inner->nkeys > 0;
}

bool
lbt_inner_open(LbtInner *inner, CustomScanState *node)
{
	const CustomScan *plan = (const CustomScan *) node->ss.ps.plan;
	const List *facts = linitial(plan->custom_private);

	memset(inner, 0, sizeof(*inner));
	inner->econtext = node->ss.ps.ps_ExprContext;
	inner->tupdesc = node->ss.ss_ScanTupleSlot->tts_tupleDescriptor;
	inner->used = lsecond(plan->custom_private);
	inner->rel = index_open(list_nth_oid(facts, LBT_LOOKAHEAD_INDEX), AccessShareLock);
	if (!lbt_scans(inner->rel))
		return false;
	inner->index = lbt_index_get(inner->rel);
	if (!inner->index->serving.learned || !open_keys(inner, node, facts))
		return false;
	inner->pages = RelationGetNumberOfBlocks(inner->rel);
	if (list_nth_oid(facts, LBT_LOOKAHEAD_ROWS) && lbt_block_hints != NULL)
	{
		Relation	table = table_open(inner->rel->rd_index->indrelid, AccessShareLock);

		if (lbt_is_heap(table))
		{
			inner->table = table;
			inner->pages += RelationGetNumberOfBlocks(table);
		}
		else
			table_close(table, AccessShareLock);
	}
	return true;
}

void
lbt_inner_close(LbtInner *inner)
{
	if (inner->table != NULL)
		table_close(inner->table, AccessShareLock);
	if (inner->rel != NULL)
		index_close(inner->rel, AccessShareLock);
}

/* ---- rows ---- */

LbtRowBatch *
lbt_rowbatch_make(EState *estate)
{
	LbtRowBatch *rows = MemoryContextAllocZero(estate->es_query_cxt, sizeof(LbtRowBatch));

	rows->context = AllocSetContextCreate(estate->es_query_cxt, "learnedbtree outer rows",
										  ALLOCSET_SMALL_SIZES);
	return rows;
}

static void
add_slot(const LbtInner *inner, LbtRowBatch *rows, EState *estate)
{
	MemoryContext old = MemoryContextSwitchTo(estate->es_query_cxt);
	TupleTableSlot *slot = ExecInitExtraTupleSlot(estate, inner->tupdesc, &TTSOpsVirtual);

	memset(slot->tts_isnull, true, inner->tupdesc->natts * sizeof(bool));
	rows->slot[rows->room++] = slot;
	MemoryContextSwitchTo(old);
}

Size
lbt_rowbatch_add(const LbtInner *inner, LbtRowBatch *rows, EState *estate, TupleTableSlot *row)
{
	MemoryContext old;
	TupleTableSlot *copy;
	ListCell   *lc;

	if (rows->n == rows->room)
		add_slot(inner, rows, estate);
	copy = rows->slot[rows->n++];
	if (inner->used != NIL)
		slot_getsomeattrs(row, llast_int(inner->used));
	old = MemoryContextSwitchTo(rows->context);
	foreach(lc, inner->used)
	{
		int			i = lfirst_int(lc) - 1;
		Form_pg_attribute column = TupleDescAttr(inner->tupdesc, i);

		copy->tts_isnull[i] = row->tts_isnull[i];
		copy->tts_values[i] = row->tts_isnull[i] || column->attbyval ? row->tts_values[i] :
			datumCopy(row->tts_values[i], false, column->attlen);
	}
	MemoryContextSwitchTo(old);
	ExecStoreVirtualTuple(copy);
	return MemoryContextMemAllocated(rows->context, false);
}

void
lbt_rowbatch_empty(LbtInner *inner, LbtRowBatch *rows)
{
	for (int i = 0; i < rows->n; i++)
		ExecClearTuple(rows->slot[i]);
	MemoryContextReset(rows->context);
	rows->n = rows->at = rows->unused = rows->batch.n = 0;
	rows->looked = rows->missed = false;
	lbt_count_many(inner->index, LBT_EV_PREFETCHED, lbt_reads_end(&rows->leaves));
	lbt_count_many(inner->index, LBT_EV_ROWS_PREFETCHED, lbt_reads_end(&rows->rows));
}

/* ---- looking ahead ---- */

/* Evaluate a row's keys; false if none matches, or we cannot predict it. */
static bool
evaluate_keys(const LbtInner *inner, const LbtRowBatch *rows, int row)
{
	inner->econtext->ecxt_scantuple = rows->slot[row];
	for (int column = 0; column < inner->nkeys; column++)
	{
		const LbtKeyColumn *c = &inner->index->keyspec.column[column];
		int			at = row * inner->nkeys + column;
		bool		isnull;
		Datum		value = ExecEvalExprSwitchContext(inner->key[column], inner->econtext, &isnull);
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
 * scan will raise the error, if it comes to that row.
 */
static void
evaluate_rows(const LbtInner *inner, const LbtRowBatch *rows, bool *known)
{
	volatile int row = 0;

	while (row < rows->n)
	{
		LBT_GUARD_BEGIN_SILENTLY();
		{
			for (; row < rows->n; row++)
				known[row] = evaluate_keys(inner, rows, row);
		}
		LBT_GUARD_END(known[row++] = false);
	}
}

int
lbt_rowbatch_predict(LbtInner *inner, LbtRowBatch *rows)
{
	LbtIndex   *index = inner->index;
	LbtBatch   *batch = &rows->batch;
	bool		known[LBT_LOOKAHEAD_LIMIT];

	ResetExprContext(inner->econtext);
	evaluate_rows(inner, rows, known);
	memset(rows->prediction, NO_PREDICTION, rows->n);
	lbt_index_update(index);
	if (index->state != LBT_READY)
		return 0;
	for (int row = 0; row < rows->n; row++)
		if (known[row])
		{
			rows->prediction[row] = (int8) batch->n;
			lbt_batch_add(index, batch, &inner->values[row * inner->nkeys], inner->nkeys, false);
		}
	lbt_batch_finish(index, batch);
	if (lbt_enable_prefetch)
		rows->leaves = lbt_batch_read(inner->rel, index, batch);
	return batch->n;
}

void
lbt_rowbatch_look(LbtInner *inner, LbtRowBatch *rows)
{
	LbtIndex   *index = inner->index;
	LbtBatch   *batch = &rows->batch;

	if (rows->looked)
		return;
	rows->looked = true;
	if (batch->n == 0 || index->keyspec.nplaces == 0)
		return;
	lbt_index_update(index);
	if (index->state != LBT_READY || batch->target[0].generation != index->generation)
		return;
	if (rows->leaves != NULL && inner->table != NULL)
		rows->missed |= lbt_reads_come(rows->leaves, batch->n - 1);
	lbt_batch_near(inner->rel, index, batch, false);
	if (inner->table != NULL)
		rows->rows = lbt_batch_rows(inner->rel, index, inner->table, batch,
									lbt_enable_row_prefetch);
}

TupleTableSlot *
lbt_rowbatch_next(LbtInner *inner, LbtRowBatch *rows)
{
	LbtIndex   *index = inner->index;
	int			prediction = rows->prediction[rows->at];

	if (prediction != NO_PREDICTION)
	{
		if (unlikely(rows->leaves != NULL))
		{
			lbt_index_update(index);
			rows->missed |= lbt_reads_come(rows->leaves, prediction);
		}
		if (unlikely(rows->rows != NULL))
			rows->missed |= lbt_reads_come(rows->rows, prediction);
		rows->unused += index->mailbox.target.generation != 0;
		index->mailbox.target = rows->batch.target[prediction];
		index->mailbox.code = rows->batch.key[prediction].code;
	}
	return rows->slot[rows->at++];
}
