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
#include "utils/memutils.h"
#include "utils/rel.h"

StaticAssertDecl(LBT_LOOKAHEAD_LIMIT <= LBT_BATCH, "a batch is too small");

/* ---- rows ---- */

static void
free_old_row(HeapTuple *old)
{
	if (*old != NULL)
		heap_freetuple(*old);
	*old = NULL;
}

/*
 * The last row that was passed on is done with: free what is large.  Its slot
 * is no other row's, as not all slots are used at a time.
 */
void
lbt_outer_passed(LbtOuterRows *rows)
{
	TupleTableSlot **place = lbt_outer_slot(rows, rows->at - 1);

	if (rows->by_reference && *place != NULL)
		ExecClearTuple(*place);
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
	slot->tts_mcxt = rows->copies;
	MemoryContextSwitchTo(old);
	return slot;
}

/* Copy the old row that this one is to update, if its block is there. */
static void
copy_old_row(LbtOuterRows *rows, TupleTableSlot *row, HeapTuple *old)
{
	bool		isnull;
	ItemPointer tid = (ItemPointer) DatumGetPointer(slot_getattr(row, rows->row_id, &isnull));
	MemoryContext outer = MemoryContextSwitchTo(rows->copies);

	free_old_row(old);
	if (!isnull && lbt_block_cached(rows->target, ItemPointerGetBlockNumber(tid)))
		*old = lbt_copy_row(rows->target, tid);
	MemoryContextSwitchTo(outer);
}

/* Find the partition of a row that is being read. */
static void
route_row(LbtOuterRows *rows, TupleTableSlot *row)
{
	LbtRouted  *routed = lbt_outer_routed(rows, rows->end);
	ExprContext *econtext = rows->node->ss.ps.ps_ExprContext;

	econtext->ecxt_scantuple = row;
	routed->part = lbt_route(rows->route, econtext);
	if (routed->part != NULL)
		routed->item = rows->plain + routed->part->nrows++;
}

bool
lbt_outer_read(LbtOuterRows *rows)
{
	TupleTableSlot **place;
	TupleTableSlot *row;
	ListCell   *lc;

	if (rows->end == rows->at)
		rows->base = rows->end; /* the first slots are in the caches */
	else if (rows->end - rows->at == rows->nslots ||
			 (rows->by_reference &&
			  MemoryContextMemAllocated(rows->copies, false) > (Size) work_mem * (1024 / 2)))
		return false;
	place = lbt_outer_slot(rows, rows->end);
	row = lbt_outer_next(rows);
	if (row == NULL)
		return false;
	if (*place == NULL)
		*place = make_slot(rows);
	ExecClearTuple(*place);
	if (rows->used != NIL)
		slot_getsomeattrs(row, llast_int(rows->used));
	foreach(lc, rows->used)
	{
		int			i = lfirst_int(lc) - 1;

		(*place)->tts_isnull[i] = row->tts_isnull[i];
		(*place)->tts_values[i] = row->tts_values[i];
	}
	if (rows->target != NULL)
		copy_old_row(rows, row, &rows->old[place - rows->slot]);
	ExecStoreVirtualTuple(*place);

	/* A copy.  ModifyTable may want it, too: then that changes nothing. */
	if (rows->by_reference)
		ExecMaterializeSlot(*place);
	if (rows->route != NULL)
		route_row(rows, *place);
	rows->end++;
	return true;
}

void
lbt_outer_restart(LbtOuterRows *rows)
{
	for (uint32 i = 0; i < rows->nslots && rows->slot[i] != NULL; i++)
		ExecClearTuple(rows->slot[i]);
	if (rows->copies != NULL)
		MemoryContextReset(rows->copies);
	if (rows->old != NULL)
		memset(rows->old, 0, rows->nslots * sizeof(HeapTuple));
	rows->at = rows->origin = rows->end;
	for (int i = 0; i < rows->nindexes; i++)
		lbt_feed_restart(&rows->index[i].feed, lbt_outer_item(rows, &rows->index[i]));
	rows->ended = false;
}

/* ---- keys ---- */

/*
 * Find a partition's row by its item, among those that come next.  Read so
 * many that there are enough for a batch of each partition, but no more than
 * have come before.  In memory a few keys of each are enough, and what is
 * fetched for them stays in the processor's caches until they come.
 */
static bool
find_row(LbtLookedUp *index, uint64 item, uint64 *number)
{
	LbtOuterRows *rows = index->rows;
	int			share = index->feed.missed ? lbt_lookahead_rows : Max(lbt_lookahead_rows / 8, 2);
	uint64		most = Min(rows->nopened * share, rows->nslots);
	uint64		until = rows->at + Min(Max(rows->at - rows->origin, 2), most);
	uint64		row = index->row;

	while (rows->end < until && lbt_outer_read(rows))
		;
	if (row < rows->at || lbt_outer_routed(rows, row)->item > item)
		row = rows->at;
	for (; row < rows->end; row++)
	{
		const LbtRouted *routed = lbt_outer_routed(rows, row);

		if (routed->part != index->part || routed->item != item)
			continue;
		*number = index->row = row;
		return true;
	}
	return false;
}

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

	if (index->part != NULL)
	{
		if (!find_row(index, number, &number))
			return LBT_NO_MORE;
	}
	else if (rows->end <= number)
	{
		/* All at once: two loops are faster than one of both. */
		while (rows->end < index->feed.until && lbt_outer_read(rows))
			;
		if (rows->end <= number)
			return LBT_NO_MORE;
	}
	econtext->ecxt_scantuple = *lbt_outer_slot(rows, number);
	old = rows->old ? rows->old[lbt_outer_slot(rows, number) - rows->slot] : NULL;
	for (int i = 0; i < index->feed.ncolumns; i++)
	{
		if (index->key[i] != NULL)
			values[i] = ExecEvalExprSwitchContext(index->key[i], econtext, &isnull[i]);
		else if (old == NULL || !lbt_row_values(old, RelationGetDescr(rows->target), 1,
												&index->old[i], &values[i], &isnull[i]))
			return LBT_NO_KEY;
	}
	return lbt_key_of(&index->feed.index->keyspec, index->feed.ncolumns, index->type,
					  false, values, isnull, scratch, key) ? LBT_KEY : LBT_NO_KEY;
}

/* For keys of old rows, open the target, as ModifyTable has. */
static void
open_target(LbtOuterRows *rows, Oid table)
{
	if (rows->target != NULL)
		return;
	rows->target = table_open(table, NoLock);
	rows->row_id = ExecFindJunkAttributeInTlist(outerPlan(rows->node->ss.ps.plan)->targetlist,
												"ctid");
	rows->old = palloc0(rows->nslots * sizeof(HeapTuple));
}

/* Prepare the keys; false if the index, as it is now, takes none of them. */
static bool
open_keys(LbtLookedUp *index, const List *exprs, const List *facts)
{
	LbtFeed    *feed = &index->feed;
	const LbtKeySpec *spec = &feed->index->keyspec;

	while (feed->ncolumns < Min(list_length(exprs), spec->ncolumns))
	{
		int			column = feed->ncolumns;
		Node	   *key = list_nth(exprs, column);
		Oid			type = list_nth_oid(facts, LBT_LOOKAHEAD_TYPES + column);

		if (!lbt_keyspec_takes(&spec->column[column], type))
			break;
		index->type[column] = type;
		if (IsA(key, Var) && ((const Var *) key)->varno != INDEX_VAR)
		{
			index->old[column] = ((const Var *) key)->varattno;
			open_target(index->rows, list_nth_oid(facts, LBT_LOOKAHEAD_TABLE));
		}
		else
			index->key[column] = ExecInitExpr((Expr *) key, &index->rows->node->ss.ps);
		feed->ncolumns++;
	}
	feed->nequal = Min((int) list_nth_oid(facts, LBT_LOOKAHEAD_EQUAL), feed->ncolumns);
	feed->backward = list_nth_oid(facts, LBT_LOOKAHEAD_BACKWARD) != 0;
	feed->past = feed->ncolumns == list_length(exprs) ?
		list_nth_oid(facts, LBT_LOOKAHEAD_PAST) != 0 : feed->backward;
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
	if (feed->index == NULL || !open_keys(index, exprs, facts))
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

/* Open those that rows are looked up in: all rows, or those of a partition. */
static void
open_indexes(LbtOuterRows *rows, LbtPart *part)
{
	const CustomScan *plan = (const CustomScan *) rows->node->ss.ps.plan;
	MemoryContext old = MemoryContextSwitchTo(rows->node->ss.ps.state->es_query_cxt);
	LbtLookups	lookups = {
		.keys = list_copy_tail(plan->custom_exprs, 1),
		.facts = linitial(plan->custom_private)
	};
	ListCell   *key;
	ListCell   *lc;

	if (lookups.facts == NIL)
		lookups = lbt_find_writes(part->table, lthird(plan->custom_private),
								  linitial(lookups.keys));
	forboth(key, lookups.keys, lc, lookups.facts)
	{
		LbtLookedUp *index = &rows->index[rows->nindexes];

		if (part != NULL && (list_nth_oid(lfirst(lc), LBT_LOOKAHEAD_TABLE) != part->table ||
							 rows->nindexes == LBT_ROUTED_INDEXES))
			continue;
		if (!open_index(index, rows, lfirst(key), lfirst(lc)))
			continue;
		rows->nindexes++;
		if (part == NULL)
			continue;

		/* The rows that are read bound its batches; and there are others. */
		index->part = part;
		index->feed.all = true;
		index->feed.most = lbt_lookahead_rows / 2;
		index->feed.npages *= rows->nparts;
	}

	/* Of too many partitions, few of the rows that are read are of one. */
	for (int i = 0; rows->nindexes == LBT_ROUTED_INDEXES && i < rows->nindexes; i++)
		rows->index[i].feed.pause.resume = PG_UINT64_MAX;
	MemoryContextSwitchTo(old);
}

bool
lbt_outer_post(LbtOuterRows *rows)
{
	const LbtRouted *routed = lbt_outer_routed(rows, rows->at);
	LbtPart    *part = routed->part;
	bool		looked_up = false;

	if (part != NULL && !part->opened)
	{
		part->opened = true;
		part->first = rows->nindexes;
		open_indexes(rows, part);
		part->nindexes = rows->nindexes - part->first;
		rows->nopened += part->nindexes > 0;
	}
	if (part == NULL || part->nindexes == 0)
	{
		if (rows->at >= rows->nowhere.resume)
			lbt_pause_begin(&rows->nowhere, rows->at);
		return false;
	}
	for (int i = part->first; i < part->first + part->nindexes; i++)
	{
		LbtFeed    *feed = &rows->index[i].feed;

		lbt_feed_post(feed, routed->item);
		looked_up |= routed->item >= feed->pause.resume;
	}
	return looked_up;
}

void
lbt_outer_open(LbtOuterRows *rows, CustomScanState *node)
{
	EState	   *estate = node->ss.ps.state;
	const CustomScan *plan = (const CustomScan *) node->ss.ps.plan;
	const List *facts = linitial(plan->custom_private);
	const List *route = lthird(plan->custom_private);
	MemoryContext old = MemoryContextSwitchTo(estate->es_query_cxt);
	TupleDesc	desc = node->ss.ss_ScanTupleSlot->tts_tupleDescriptor;
	ListCell   *lc;

	rows->used = lsecond(plan->custom_private);
	foreach(lc, rows->used)
		rows->by_reference |= !TupleDescAttr(desc, lfirst_int(lc) - 1)->attbyval;
	rows->copies = GenerationContextCreate(estate->es_query_cxt, "learnedbtree outer rows",
										   ALLOCSET_SMALL_SIZES);
	rows->nslots = route != NIL ? LBT_ROUTED_ROWS : LBT_OUTER_ROWS;
	rows->slot = palloc0(rows->nslots * sizeof(TupleTableSlot *));
	if (route != NIL)
	{
		rows->route = lbt_route_open(&node->ss.ps, route, linitial(plan->custom_exprs),
									 &rows->nparts);
		rows->routed = palloc(rows->nslots * sizeof(LbtRouted));
		rows->index = palloc(LBT_ROUTED_INDEXES * sizeof(LbtLookedUp));
	}
	else
	{
		rows->index = palloc(list_length(facts) * sizeof(LbtLookedUp));
		open_indexes(rows, NULL);
	}
	MemoryContextSwitchTo(old);
}

void
lbt_outer_close(LbtOuterRows *rows)
{
	for (int i = 0; i < rows->nindexes; i++)
		close_index(&rows->index[i]);
	if (rows->target != NULL)
		table_close(rows->target, NoLock);
	if (rows->route != NULL)
		lbt_route_close(rows->route);
}
