/*
 * outerrows.c - outer rows and the feeds of their keys; see outerrows.h.
 */
#include "join/outerrows.h"

#include "access/table.h"
#include "am/am.h"
#include "am/newrows.h"
#include "join/join.h"
#include "miscadmin.h"
#include "server/bufferhint.h"
#include "utils/datum.h"
#include "utils/memutils.h"
#include "utils/rel.h"

StaticAssertDecl(LBT_LOOKAHEAD_LIMIT <= LBT_BATCH, "a batch is too small");

/* ---- rows ---- */

/* Free the copies of values of a row that has been passed on. */
static void
free_row(const LbtOuterRows *rows, TupleTableSlot *slot)
{
	ListCell   *lc;

	foreach(lc, rows->by_reference && !TTS_EMPTY(slot) ? rows->used : NIL)
	{
		int			i = lfirst_int(lc) - 1;

		if (!slot->tts_isnull[i] && !TupleDescAttr(slot->tts_tupleDescriptor, i)->attbyval)
			pfree(DatumGetPointer(slot->tts_values[i]));
	}
	ExecClearTuple(slot);
}

static void
free_old_row(HeapTuple *old)
{
	if (*old != NULL)
		heap_freetuple(*old);
	*old = NULL;
}

/*
 * The last row that was passed on is done with: free what is large.  Its slot
 * is no other row's, as fewer than LBT_OUTER_ROWS are there.
 */
void
lbt_outer_passed(LbtOuterRows *rows)
{
	TupleTableSlot **place = lbt_outer_slot(rows, rows->at - 1);

	if (rows->by_reference && *place != NULL)
		free_row(rows, *place);
	if (rows->target != NULL)
		free_old_row(&rows->old[place - rows->slot]);
}

static TupleTableSlot *
make_slot(const LbtOuterRows *rows)
{
	EState	   *estate = rows->node->ss.ps.state;
	TupleDesc	desc = rows->node->ss.ss_ScanTupleSlot->tts_tupleDescriptor;
	MemoryContext old = MemoryContextSwitchTo(estate->es_query_cxt);
	TupleTableSlot *slot = ExecInitExtraTupleSlot(estate, desc, &TTSOpsVirtual);

	memset(slot->tts_isnull, true, desc->natts * sizeof(bool));
	MemoryContextSwitchTo(old);
	return slot;
}

/* Copy the old row that this one is to update, if its block is there. */
static void
copy_old_row(LbtOuterRows *rows, TupleTableSlot *row, HeapTuple *old)
{
	bool		isnull;
	ItemPointer tid = (ItemPointer) DatumGetPointer(slot_getattr(row, rows->row_id, &isnull));

	free_old_row(old);
	if (!isnull && lbt_block_cached(rows->target, ItemPointerGetBlockNumber(tid)))
		*old = lbt_copy_row(rows->target, tid);
}

bool
lbt_outer_read(LbtOuterRows *rows)
{
	TupleTableSlot **place;
	TupleTableSlot *row;
	MemoryContext old;
	ListCell   *lc;

	if (rows->end == rows->at)
		rows->base = rows->end; /* the first slots are in the caches */
	else if (rows->end - rows->at == LBT_OUTER_ROWS ||
			 (rows->by_reference &&
			  MemoryContextMemAllocated(rows->copies, false) > (Size) work_mem * (1024 / 2)))
		return false;
	place = lbt_outer_slot(rows, rows->end);
	row = lbt_outer_next(rows);
	if (row == NULL)
		return false;
	if (*place == NULL)
		*place = make_slot(rows);
	free_row(rows, *place);
	if (rows->used != NIL)
		slot_getsomeattrs(row, llast_int(rows->used));
	old = MemoryContextSwitchTo(rows->copies);
	foreach(lc, rows->used)
	{
		int			i = lfirst_int(lc) - 1;
		Form_pg_attribute column = TupleDescAttr((*place)->tts_tupleDescriptor, i);
		Datum		value = row->tts_values[i];
		bool		isnull = row->tts_isnull[i];

		(*place)->tts_isnull[i] = isnull;
		(*place)->tts_values[i] = isnull || column->attbyval ? value :
			datumCopy(value, false, column->attlen);
	}
	if (rows->target != NULL)
		copy_old_row(rows, row, &rows->old[place - rows->slot]);
	MemoryContextSwitchTo(old);
	ExecStoreVirtualTuple(*place);
	rows->end++;
	return true;
}

void
lbt_outer_restart(LbtOuterRows *rows)
{
	for (int i = 0; i < LBT_OUTER_ROWS && rows->slot[i] != NULL; i++)
		ExecClearTuple(rows->slot[i]);
	if (rows->copies != NULL)
		MemoryContextReset(rows->copies);
	memset(rows->old, 0, sizeof(rows->old));
	for (int i = 0; i < rows->nindexes; i++)
		lbt_feed_restart(&rows->index[i].feed, rows->end);
	rows->at = rows->origin = rows->end;
	rows->ended = false;
}

/* ---- keys ---- */

/* For a feed: a row's key; none if nothing matches it, or nobody can tell. */
static LbtNext
next_key(void *producer, uint64 number, LbtKeyValue *key, uint8 *scratch)
{
	LbtLookedUp *index = producer;
	LbtOuterRows *rows = index->rows;
	ExprContext *econtext = rows->node->ss.ps.ps_ExprContext;
	Datum		values[LBT_CODE_COLUMNS];
	bool		isnull[LBT_CODE_COLUMNS];
	HeapTuple	old;

	if (rows->end <= number)
	{
		/* All at once: two loops are faster than one of both. */
		while (rows->end < index->feed.until && lbt_outer_read(rows))
			;
		if (rows->end <= number)
			return LBT_NO_MORE;
	}
	econtext->ecxt_scantuple = *lbt_outer_slot(rows, number);
	old = rows->old[lbt_outer_slot(rows, number) - rows->slot];
	for (int i = 0; i < index->feed.ncolumns; i++)
	{
		if (index->key[i] != NULL)
			values[i] = ExecEvalExprSwitchContext(index->key[i], econtext, &isnull[i]);
		else if (old == NULL || !lbt_row_values(old, RelationGetDescr(rows->target), 1,
												&index->old[i], &values[i], &isnull[i]))
			return LBT_NO_KEY;
	}
	return lbt_key_of(&index->feed.index->keyspec, index->feed.ncolumns, index->type,
					  index->nulls, values, isnull, scratch, key) ? LBT_KEY : LBT_NO_KEY;
}

static inline bool
is_of_old_row(const Node *key)
{
	return IsA(key, Var) && ((const Var *) key)->varno != INDEX_VAR;
}

/* Prepare the keys; false if the index, as it is now, takes none of them. */
static bool
open_keys(LbtLookedUp *index, CustomScanState *node, const List *exprs, const List *facts)
{
	LbtFeed    *feed = &index->feed;
	const LbtKeySpec *spec = &feed->index->keyspec;

	while (feed->ncolumns < Min(list_length(exprs), spec->ncolumns))
	{
		int			column = feed->ncolumns;
		Oid			type = list_nth_oid(facts, LBT_LOOKAHEAD_TYPES + column);

		if (!lbt_keyspec_takes(&spec->column[column], type))
			break;
		index->type[column] = type;
		if (is_of_old_row(list_nth(exprs, column)))
			index->old[column] = list_nth_node(Var, exprs, column)->varattno;
		else
			index->key[column] = ExecInitExpr(list_nth(exprs, column), &node->ss.ps);
		feed->ncolumns++;
	}
	feed->nequal = Min((int) list_nth_oid(facts, LBT_LOOKAHEAD_EQUAL), feed->ncolumns);
	feed->backward = list_nth_oid(facts, LBT_LOOKAHEAD_BACKWARD) != 0;
	feed->past = feed->ncolumns == list_length(exprs) ?
		list_nth_oid(facts, LBT_LOOKAHEAD_PAST) != 0 : feed->backward;
	if (feed->ncolumns > feed->nequal && IsA(llast(exprs), Const) &&
		((const Const *) llast(exprs))->constisnull)
		index->nulls = 1 << feed->nequal;
	return feed->nequal > 0;
}

/* ---- indexes ---- */

static void
close_index(LbtLookedUp *index)
{
	if (index->feed.table != NULL)
		table_close(index->feed.table, AccessShareLock);
	index_close(index->feed.rel, AccessShareLock);
}

/*
 * Open an index that may be gone since the plan was made (a trigger of the
 * statement may drop it); NULL if it is, or if it cannot be scanned.
 */
static Relation
open_relation(Oid oid, Oid table)
{
	Relation	rel = try_relation_open(oid, AccessShareLock);

	if (rel == NULL || (rel->rd_rel->relkind == RELKIND_INDEX && rel->rd_index->indisvalid &&
						rel->rd_index->indrelid == table))
		return rel;
	relation_close(rel, AccessShareLock);
	return NULL;
}

/* False if it is gone, or not served, or there is nothing to look up by. */
static bool
open_index(LbtLookedUp *index, LbtOuterRows *rows, const List *exprs, const List *facts)
{
	Oid			table = list_nth_oid(facts, LBT_LOOKAHEAD_TABLE);
	LbtFeed    *feed = &index->feed;

	memset(index, 0, sizeof(*index));
	index->rows = rows;
	feed->rel = open_relation(list_nth_oid(facts, LBT_LOOKAHEAD_INDEX), table);
	if (feed->rel == NULL)
		return false;
	feed->index = lbt_learned_view(feed->rel);
	if (feed->index == NULL || !open_keys(index, rows->node, exprs, facts))
	{
		close_index(index);
		return false;
	}
	feed->npages = RelationGetNumberOfBlocks(feed->rel);
	if (list_nth_oid(facts, LBT_LOOKAHEAD_ROWS) && lbt_block_hints != NULL)
	{
		Relation	fetched = table_open(table, AccessShareLock);

		if (lbt_is_heap(fetched))
		{
			feed->table = fetched;
			feed->npages += RelationGetNumberOfBlocks(fetched);
		}
		else
			table_close(fetched, AccessShareLock);
	}
	feed->next_key = next_key;
	feed->producer = index;
	feed->context = CurrentMemoryContext;
	feed->most = lbt_lookahead_rows;
	lbt_feed_restart(feed, rows->origin);
	return true;
}

/* If keys are of old rows, open the target, as ModifyTable has. */
static void
open_target(LbtOuterRows *rows, const CustomScan *plan)
{
	const List *facts = linitial(linitial(plan->custom_private));
	bool		needed = false;
	ListCell   *exprs;
	ListCell   *lc;

	foreach(exprs, plan->custom_exprs)
		foreach(lc, lfirst(exprs))
			needed |= is_of_old_row(lfirst(lc));
	if (!needed)
		return;
	rows->target = table_open(list_nth_oid(facts, LBT_LOOKAHEAD_TABLE), NoLock);
	rows->row_id = ExecFindJunkAttributeInTlist(outerPlan(plan)->targetlist, "ctid");
}

void
lbt_outer_open(LbtOuterRows *rows, CustomScanState *node)
{
	EState	   *estate = node->ss.ps.state;
	const CustomScan *plan = (const CustomScan *) node->ss.ps.plan;
	const List *facts = linitial(plan->custom_private);
	MemoryContext old = MemoryContextSwitchTo(estate->es_query_cxt);
	TupleDesc	desc = node->ss.ss_ScanTupleSlot->tts_tupleDescriptor;
	ListCell   *exprs;
	ListCell   *lc;

	open_target(rows, plan);
	rows->used = lsecond(plan->custom_private);
	foreach(lc, rows->used)
		rows->by_reference |= !TupleDescAttr(desc, lfirst_int(lc) - 1)->attbyval;
	rows->copies = GenerationContextCreate(estate->es_query_cxt, "learnedbtree outer rows",
										   ALLOCSET_SMALL_SIZES);
	rows->index = palloc(list_length(facts) * sizeof(LbtLookedUp));
	forboth(exprs, plan->custom_exprs, lc, facts)
		rows->nindexes += open_index(&rows->index[rows->nindexes], rows, lfirst(exprs), lfirst(lc));
	MemoryContextSwitchTo(old);
}

void
lbt_outer_close(LbtOuterRows *rows)
{
	for (int i = 0; i < rows->nindexes; i++)
		close_index(&rows->index[i]);
	if (rows->target != NULL)
		table_close(rows->target, NoLock);
}
