/*
 * rowbatch.c - outer rows that are looked up ahead together; see rowbatch.h.
 */
#include "join/rowbatch.h"

#include "am/am.h"
#include "executor/executor.h"
#include "join/join.h"
#include "server/bufferhint.h"
#include "utils/datum.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#define NO_PREDICTION (-1)

/*
 * A batch of so many rows shows whether it pays; its lookups come to few
 * places if to fewer than one for PLACE_ROWS of them.
 */
#define JUDGED_MIN 16
#define PLACE_ROWS 4

/* ---- the inner side ---- */

/* Prepare the keys; false if the index, as it is now, takes none of them. */
static bool
open_keys(LbtInner *inner, CustomScanState *node, const List *exprs, const List *facts)
{
	const LbtKeySpec *spec = &inner->index->keyspec;

	while (inner->nkeys < Min(list_length(exprs), spec->ncolumns))
	{
		int			column = inner->nkeys;
		Oid			type = list_nth_oid(facts, LBT_LOOKAHEAD_TYPES + column);

		if (!lbt_keyspec_takes(&spec->column[column], type))
			break;
		inner->type[column] = type;
		inner->key[column] = ExecInitExpr(list_nth(exprs, column), &node->ss.ps);
		inner->nkeys++;
	}
	inner->nequal = Min((int) list_nth_oid(facts, LBT_LOOKAHEAD_EQUAL), inner->nkeys);
	inner->backward = list_nth_oid(facts, LBT_LOOKAHEAD_BACKWARD) != 0;
	inner->past = inner->nkeys == list_length(exprs) ?
		list_nth_oid(facts, LBT_LOOKAHEAD_PAST) != 0 : inner->backward;
	inner->null_bound = inner->nkeys > inner->nequal && IsA(llast(exprs), Const) &&
		((const Const *) llast(exprs))->constisnull;
	if (spec->encoded)
		inner->scratch = palloc((Size) inner->nkeys * LBT_LOOKAHEAD_LIMIT * LBT_SCRATCH_BYTES);
	return inner->nequal > 0;
}

static void
close_inner(LbtInner *inner)
{
	if (inner->table != NULL)
		table_close(inner->table, AccessShareLock);
	index_close(inner->rel, AccessShareLock);
}

/*
 * Open an index that may be gone since the plan was made (a trigger of the
 * statement may drop it); NULL if it is, or if it cannot be scanned.
 */
static Relation
open_index(Oid oid, Oid table)
{
	Relation	rel = try_relation_open(oid, AccessShareLock);

	if (rel == NULL || (rel->rd_rel->relkind == RELKIND_INDEX && rel->rd_index->indisvalid &&
						rel->rd_index->indrelid == table))
		return rel;
	relation_close(rel, AccessShareLock);
	return NULL;
}

/*
 * False if it is gone or no longer served, or there is nothing to look up by.
 */
static bool
open_inner(LbtInner *inner, CustomScanState *node, const List *exprs, const List *facts)
{
	Oid			table = list_nth_oid(facts, LBT_LOOKAHEAD_TABLE);

	memset(inner, 0, sizeof(*inner));
	inner->rel = open_index(list_nth_oid(facts, LBT_LOOKAHEAD_INDEX), table);
	if (inner->rel == NULL)
		return false;
	inner->index = lbt_learned_view(inner->rel);
	if (inner->index == NULL || !open_keys(inner, node, exprs, facts))
	{
		close_inner(inner);
		return false;
	}
	if (list_nth_oid(facts, LBT_LOOKAHEAD_ROWS) && lbt_block_hints != NULL)
	{
		inner->table = table_open(table, AccessShareLock);
		if (!lbt_is_heap(inner->table))
		{
			table_close(inner->table, AccessShareLock);
			inner->table = NULL;
		}
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
	for (int i = 0; i < inners->n; i++)
		rows->of[i].posted = NO_PREDICTION;
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

/* The lookup after the last posted prediction is over: has it taken that? */
static inline void
judge_posted(LbtRowBatch *rows, const LbtInner *inner, LbtInnerBatch *of)
{
	bool		used;

	if (of->posted == NO_PREDICTION)
		return;
	used = lbt_prediction_taken(inner->index, of->number);
	rows->judged++;
	rows->used += used;
	if (unlikely(of->leaves != NULL))
		lbt_reads_judge(of->leaves, of->posted, used);
	of->posted = NO_PREDICTION;
}

bool
lbt_rowbatch_paid(LbtInners *inners, LbtRowBatch *rows, bool *unused)
{
	int			places = 0;

	for (int i = 0; i < inners->n; i++)
		judge_posted(rows, &inners->inner[i], &rows->of[i]);
	*unused = rows->judged >= JUDGED_MIN && rows->used * 2 < rows->judged;
	if (*unused || rows->judged < JUDGED_MIN || rows->reads)
		return !*unused;
	for (int i = 0; i < inners->n; i++)
	{
		const LbtBatch *batch = &rows->of[i].batch;

		for (int j = 1; j < batch->n; j++)
			places += batch->target[j].slot != batch->target[j - 1].slot;
		if (inners->inner[i].table != NULL)
			places = Max(places, batch->nblocks);
	}
	return places * PLACE_ROWS >= rows->judged;
}

void
lbt_rowbatch_empty(LbtInners *inners, LbtRowBatch *rows)
{
	for (int i = 0; i < rows->n; i++)
		ExecClearTuple(rows->slot[i]);
	MemoryContextReset(rows->context);
	for (int i = 0; i < inners->n; i++)
	{
		LbtInner   *inner = &inners->inner[i];
		LbtInnerBatch *of = &rows->of[i];

		judge_posted(rows, inner, of);
		of->batch.n = 0;
		lbt_reads_end(&of->leaves);
		lbt_reads_end(&of->rows);
		lbt_count_tally(inner->index, LBT_EV_PREFETCHED, &inner->leaves, NULL);
		lbt_count_tally(inner->index, LBT_EV_ROWS_PREFETCHED, &inner->rows, NULL);
	}
	rows->n = rows->at = rows->judged = rows->used = 0;
	rows->looked = rows->reads = rows->missed = false;
}

/* ---- looking ahead ---- */

/* A row's keys; false if nothing matches, or we cannot predict it. */
static bool
find_keys(const LbtInner *inner, ExprContext *econtext, int row, LbtKeyValue *values)
{
	for (int column = 0; column < inner->nkeys; column++)
	{
		const LbtKeyColumn *c = &inner->index->keyspec.column[column];
		uint8	   *scratch = inner->scratch ?
			inner->scratch + (Size) (row * inner->nkeys + column) * LBT_SCRATCH_BYTES : NULL;
		bool		isnull;
		Datum		value = ExecEvalExprSwitchContext(inner->key[column], econtext, &isnull);

		values[column].isnull = isnull;
		values[column].ordered = 0;
		if (isnull && inner->null_bound && column == inner->nequal)
			continue;
		if (isnull || !lbt_keyspec_plain(c, value) ||
			lbt_keyspec_argument(c, inner->type[column], value, &values[column], scratch) != 0)
			return false;
	}
	return true;
}

static void
predict_rows(LbtInner *inner, ExprContext *econtext, const LbtRowBatch *rows, LbtInnerBatch *of)
{
	LbtIndex   *index = inner->index;
	LbtBatch   *batch = &of->batch;
	LbtKeyValue values[LBT_CODE_COLUMNS];

	ResetExprContext(econtext);
	lbt_batch_begin(batch, inner->nequal, inner->backward);
	memset(of->prediction, NO_PREDICTION, rows->n);
	lbt_index_update(index);
	if (index->state != LBT_READY)
		return;
	for (int row = 0; row < rows->n; row++)
	{
		econtext->ecxt_scantuple = rows->slot[row];
		if (!find_keys(inner, econtext, row, values))
			continue;
		of->prediction[row] = (int8) batch->n;
		lbt_batch_add(index, batch, values, inner->nkeys, inner->past);
	}
	lbt_batch_finish(index, batch);
	if (lbt_enable_prefetch)
		of->leaves = lbt_batch_read(inner->rel, index, batch, &inner->leaves);
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

	batch->nblocks = 0;
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
								  lbt_enable_row_prefetch ? &inner->rows : NULL);
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

static inline void
post_prediction(LbtInner *inner, LbtRowBatch *rows, LbtInnerBatch *of)
{
	LbtIndex   *index = inner->index;
	int			prediction = of->prediction[rows->at];

	judge_posted(rows, inner, of);
	if (prediction == NO_PREDICTION)
		return;
	if (unlikely(of->leaves != NULL))
	{
		lbt_index_update(index);
		rows->missed |= lbt_reads_come(of->leaves, prediction);
	}
	if (unlikely(of->rows != NULL))
		rows->missed |= lbt_reads_come(of->rows, prediction);
	lbt_post_prediction(index, &of->batch, prediction);
	of->posted = prediction;
	of->number = index->mailbox.number;
}

TupleTableSlot *
lbt_rowbatch_next(LbtInners *inners, LbtRowBatch *rows)
{
	for (int i = 0; i < inners->n; i++)
		post_prediction(&inners->inner[i], rows, &rows->of[i]);
	return rows->slot[rows->at++];
}
