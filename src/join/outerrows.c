/*
 * outerrows.c - outer rows and the feeds of their keys; see outerrows.h.
 */
#include "join/outerrows.h"

#include "access/table.h"
#include "am/am.h"
#include "am/newrows.h"
#include "join/join.h"
#include "nodes/makefuncs.h"
#include "partitioning/partbounds.h"
#include "partitioning/partdesc.h"
#include "utils/partcache.h"

StaticAssertDecl(LBT_LOOKAHEAD_LIMIT <= LBT_BATCH, "a batch is too small");

/* Of those passed on, as many may be read ahead while a Limit has none. */
#define FIRST_SHARE 0.25

/* A partitioned table.  What its relcache entry has stays while it is open. */
typedef struct LbtRoute
{
	Relation	rel;			/* NULL: rows have their partition's OID */
	PartitionKey key;
	PartitionBoundInfo bounds;	/* NULL: it has no partitions */
	bool		nulls;			/* rows with NULLs have a partition, too */
	int			last;			/* the partition found last */
	int			nvalues;
	ExprState  *value[PARTITION_MAX_KEYS];
	FmgrInfo	support[PARTITION_MAX_KEYS];
} LbtRoute;

/* ---- partitions, found as the server finds them; only hints ---- */

/*
 * Of no plan node, or each would be a module for the JIT compiler.  A
 * parameter that may be an error to ask for (the field of a record that is not
 * assigned, or has another type than when the plan was made) is NULL: perhaps
 * no row asks.
 */
static ExprState *
init_key(const LbtOuterRows *rows, Node *key)
{
	ParamListInfo params = rows->node->ss.ps.state->es_param_list_info;
	const Param *param = (const Param *) key;
	ParamExternData workspace;

	if (IsA(key, Param) && param->paramkind == PARAM_EXTERN && params != NULL &&
		params->paramFetch != NULL &&
		params->paramFetch(params, param->paramid, true, &workspace)->ptype != param->paramtype)
		key = (Node *) makeNullConst(param->paramtype, param->paramtypmod, param->paramcollid);
	return ExecInitExprWithParams((Expr *) key, params);
}

/* The table's partition for these values of its key; -1 if it has none. */
static int
partition_of(LbtRoute *route, Datum *values, bool *isnull)
{
	PartitionKey key = route->key;
	const PartitionBoundInfoData *bounds = route->bounds;
	int			partition = -1;
	bool		equal = false;
	int			at = 0;

	if (key->strategy == PARTITION_STRATEGY_HASH)
		return bounds->indexes[compute_partition_hash_value(key->partnatts, route->support,
															key->partcollation, values, isnull) %
							   bounds->nindexes];
	while (at < key->partnatts && !isnull[at])
		at++;
	if (at < key->partnatts)
		partition = bounds->null_index;
	else if (key->strategy == PARTITION_STRATEGY_RANGE)
	{
		at = partition_range_datum_bsearch(route->support, key->partcollation, route->bounds,
										   key->partnatts, values, &equal);
		partition = bounds->indexes[at + 1];
	}
	else if ((at = partition_list_bsearch(route->support, key->partcollation, route->bounds,
										  values[0], &equal)) >= 0 && equal)
		partition = bounds->indexes[at];
	return partition >= 0 ? partition : bounds->default_index;
}

/* The partition of a row, NULL if there is none. */
static LbtPart *
route_row(LbtOuterRows *rows, TupleTableSlot *row)
{
	LbtRoute   *route = rows->route;
	ExprContext *econtext = rows->node->ss.ps.ps_ExprContext;
	MemoryContext old = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);
	Datum		values[PARTITION_MAX_KEYS];
	bool		isnull[PARTITION_MAX_KEYS];
	int			partition = -1;
	bool		known = true;

	econtext->ecxt_scantuple = row;
	for (int i = 0; i < route->nvalues; i++)
	{
		values[i] = ExecEvalExpr(route->value[i], econtext, &isnull[i]);
		if (isnull[i])
			known &= route->nulls;
		else if (route->key != NULL && route->key->parttyplen[i] == -1)
			known &= !VARATT_IS_EXTERNAL(DatumGetPointer(values[i])) &&
				!VARATT_IS_COMPRESSED(DatumGetPointer(values[i]));
	}
	if (!known)
		;						/* nothing is equal, or it would be fetched */
	else if (route->bounds != NULL)
		partition = partition_of(route, values, isnull);
	else if (route->rel == NULL)
	{
		/* Those of one mostly come together. */
		partition = route->last;
		if (rows->part[partition].table != DatumGetObjectId(values[0]))
			for (partition = rows->nparts - 1;
				 partition >= 0 && rows->part[partition].table != DatumGetObjectId(values[0]);)
				partition--;
		route->last = Max(partition, 0);
	}
	MemoryContextSwitchTo(old);
	ResetExprContext(econtext);
	return partition >= 0 ? &rows->part[partition] : NULL;
}

/* A partitioned table by what a plan node has of it, and its partitions. */
static void
open_route(LbtOuterRows *rows, const List *facts, const List *key)
{
	LbtRoute   *route = rows->route = palloc0(sizeof(LbtRoute));
	PartitionDesc desc = NULL;

	rows->nparts = list_length(facts) - 1;
	if (OidIsValid(linitial_oid(facts)))
	{
		route->rel = table_open(linitial_oid(facts), NoLock);	/* is locked */
		route->key = RelationGetPartitionKey(route->rel);
		desc = RelationGetPartitionDesc(route->rel, true);
		route->bounds = desc->boundinfo;
		rows->nparts = desc->nparts;
	}
	rows->part = palloc0(rows->nparts * sizeof(LbtPart));
	for (int i = 0; i < rows->nparts; i++)
		rows->part[i].table = desc ? desc->oids[i] : list_nth_oid(facts, i + 1);
	route->nvalues = list_length(key);
	route->nulls = list_length(facts) > route->nvalues + 1; /* of an INSERT */
	for (int i = 0; i < route->nvalues; i++)
	{
		route->value[i] = init_key(rows, list_nth(key, i));
		if (desc != NULL)
			fmgr_info(list_nth_oid(facts, i + 1), &route->support[i]);
	}
}

/* ---- rows ---- */

/* Where a row's copy is. */
static inline LbtOuterRow *
row_of(const LbtOuterRows *rows, uint64 number)
{
	return &rows->row[(number - rows->base) & (rows->nrows - 1)];
}

static void
free_old(LbtOuterRow *row)
{
	if (row->old != NULL)
		heap_freetuple(row->old);
	row->old = NULL;
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
copy_old(LbtOuterRows *rows, LbtOuterRow *row, TupleTableSlot *source)
{
	bool		isnull;
	ItemPointer tid = (ItemPointer) DatumGetPointer(slot_getattr(source, rows->row_id, &isnull));
	MemoryContext outer = MemoryContextSwitchTo(rows->copies);

	free_old(row);
	if (!isnull && lbt_block_is_there(rows->target, ItemPointerGetBlockNumber(tid)))
		row->old = lbt_copy_row(rows->target, tid);
	else if (!isnull)
		lbt_ask_for_row(rows->target, ItemPointerGetBlockNumber(tid), &rows->old_pages);
	MemoryContextSwitchTo(outer);
}

/*
 * Are the rows that are there enough for the Limit above?  At first take it
 * that each becomes one row there, unless more have come; later, that what has
 * been so far goes on.
 */
static bool
are_enough(const LbtOuterRows *rows)
{
	double		passed = (double) (rows->at - rows->origin);
	double		all;
	double		come;
	double		needed;

	if (rows->limit == NULL)
		return false;
	all = (double) lbt_limit_rows(rows->limit);
	come = (double) rows->limit->position;
	if (come <= passed && passed < all)
		needed = all - passed;
	else
		needed = passed * (come > 0 ? (all - come) / come : FIRST_SHARE);
	return (double) (rows->end - rows->at) >= needed;
}

/*
 * Read and copy a row; false if there is none, or those that are there are
 * enough, or no memory is left for it.
 */
static bool
read_row(LbtOuterRows *rows)
{
	LbtOuterRow *row;
	TupleTableSlot *source;
	TupleTableSlot *copy;
	ListCell   *lc;

	if (rows->end == rows->at)
		rows->base = rows->end; /* the first slots are in the caches */
	else if (rows->end - rows->at == rows->nrows || are_enough(rows) ||
			 (rows->by_reference &&
			  MemoryContextMemAllocated(rows->copies, false) > (Size) work_mem * (1024 / 2)))
		return false;
	row = row_of(rows, rows->end);
	source = lbt_outer_next(rows);
	if (source == NULL)
		return false;
	if (row->slot == NULL)
		row->slot = make_slot(rows);
	rows->nfilled = Max(rows->nfilled, (uint32) (row - rows->row) + 1);
	copy = ExecClearTuple(row->slot);
	if (rows->used != NIL)
		slot_getsomeattrs(source, llast_int(rows->used));
	foreach(lc, rows->used)
	{
		int			i = lfirst_int(lc) - 1;

		copy->tts_isnull[i] = source->tts_isnull[i];
		copy->tts_values[i] = source->tts_values[i];
	}
	ExecStoreVirtualTuple(copy);

	/* A copy.  ModifyTable may want it, too: then that changes nothing. */
	if (rows->by_reference)
		ExecMaterializeSlot(copy);
	if (rows->target != NULL)
		copy_old(rows, row, source);
	row->part = rows->route != NULL ? route_row(rows, copy) : rows->part;
	if (row->part != NULL)
	{
		row->item = lbt_outer_item(rows, row->part);
		row->part->nrows++;
	}
	rows->end++;
	return true;
}

void
lbt_outer_restart(LbtOuterRows *rows)
{
	for (; rows->nfilled > 0; rows->nfilled--)
	{
		ExecClearTuple(rows->row[rows->nfilled - 1].slot);
		rows->row[rows->nfilled - 1].old = NULL;
	}
	if (rows->copies != NULL)
		MemoryContextReset(rows->copies);
	rows->at = rows->origin = rows->end;
	for (int i = 0; i < rows->nindexes; i++)
		lbt_feed_restart(&rows->index[i].feed, lbt_outer_item(rows, rows->index[i].part));
}

void
lbt_outer_end(LbtOuterRows *rows)
{
	/* One that is executed again and again keeps it. */
	if (rows->origin > 0 || rows->copies == NULL)
		return;
	lbt_outer_restart(rows);
	for (int i = 0; i < rows->nindexes; i++)
		lbt_feed_free(&rows->index[i].feed);
}

/* ---- keys ---- */

/*
 * Read the rows that come next, up to this many, but no more than have come
 * before.
 */
static void
read_rows(LbtOuterRows *rows, uint64 from, uint64 most)
{
	uint64		until = from + Min(Max(rows->at - rows->origin, 2), most);

	while (rows->end < until && read_row(rows))
		;
}

/*
 * Find a row by its part and item, among those that come next.  If these go to
 * one part, the row's number is its item, and those of a batch are read at
 * once: two loops are faster than one of both.  Else read as many for each
 * part as src/README says ("One feed for each index").
 */
static LbtOuterRow *
find_row(LbtLookedUp *index, uint64 item)
{
	LbtOuterRows *rows = index->rows;
	uint64		at = item;

	if (rows->route == NULL)
		while (rows->end < index->feed.until && read_row(rows))
			;
	else
	{
		read_rows(rows, rows->at, rows->nopened * Max(lbt_lookahead_rows / 8, 2));
		at = index->row;
		if (at < rows->at || row_of(rows, at)->item > item)
			at = rows->at;
	}
	for (; at < rows->end; at++)
	{
		LbtOuterRow *row = row_of(rows, at);

		if (row->part != index->part || row->item != item)
			continue;
		index->row = at;
		return row;
	}
	return NULL;
}

/* For a feed: a row's key; none if nothing matches it, or nobody can tell. */
static LbtNext
next_key(void *producer, uint64 number, LbtKeyValue *key, uint8 *scratch)
{
	LbtLookedUp *index = producer;
	LbtOuterRows *rows = index->rows;
	LbtOuterRow *row = find_row(index, number);
	ExprContext *econtext = rows->node->ss.ps.ps_ExprContext;
	const LbtKeySpec *spec = &index->feed.index->keyspec;
	int			n = index->feed.ncolumns;
	Datum		values[LBT_CODE_COLUMNS];
	bool		isnull[LBT_CODE_COLUMNS];

	if (row == NULL)
		return LBT_NO_MORE;
	econtext->ecxt_scantuple = row->slot;
	for (int i = 0; i < n; i++)
	{
		if (index->key[i] != NULL)
			values[i] = ExecEvalExprSwitchContext(index->key[i], econtext, &isnull[i]);
		else if (row->old == NULL ||
				 !lbt_row_values(row->old, RelationGetDescr(rows->target), 1, &index->old[i],
								 &values[i], &isnull[i]))
			return LBT_NO_KEY;
	}
	if (!lbt_key_of(spec, n, index->type, false, values, isnull, scratch, key))
		return LBT_NO_KEY;
	if (index->feed.ends)
	{
		const LbtKeyColumn *column = &spec->column[index->feed.nequal];
		Datum		end = ExecEvalExprSwitchContext(index->key[n], econtext, &isnull[0]);

		if (isnull[0])
			return LBT_NO_KEY;
		key[n].isnull = !lbt_keyspec_plain(column, end);	/* then it is not known */
		if (!key[n].isnull)
			(void) lbt_keyspec_argument(column, index->type[n], end, &key[n], NULL);
	}
	return LBT_KEY;
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
}

/* Prepare the keys; false if the index, as it is now, takes none of them. */
static bool
open_keys(LbtLookedUp *index, const List *exprs, const List *facts)
{
	LbtFeed    *feed = &index->feed;
	const LbtKeySpec *spec = &feed->index->keyspec;
	int			end = list_nth_oid(facts, LBT_LOOKAHEAD_END);
	int			nkeys = list_length(exprs) - (end != 0);

	while (feed->ncolumns < Min(nkeys, spec->ncolumns))
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
			index->key[column] = init_key(index->rows, key);
		feed->ncolumns++;
	}
	feed->nequal = Min((int) list_nth_oid(facts, LBT_LOOKAHEAD_EQUAL), feed->ncolumns);
	feed->backward = list_nth_oid(facts, LBT_LOOKAHEAD_BACKWARD) != 0;
	feed->past = feed->ncolumns == nkeys ? list_nth_oid(facts, LBT_LOOKAHEAD_PAST) != 0 :
		feed->backward;
	feed->ends = end != 0 && feed->ncolumns == nkeys && feed->nequal < spec->nplaces &&
		!spec->column[feed->nequal].encoded &&
		lbt_keyspec_takes(&spec->column[feed->nequal], llast_oid(facts));
	feed->end_past = end == 2;
	if (feed->ends)
	{
		index->key[nkeys] = init_key(index->rows, llast(exprs));
		index->type[nkeys] = llast_oid(facts);
	}
	return feed->nequal > 0;
}

/* ---- indexes ---- */

static void
close_index(LbtLookedUp *index)
{
	if (index->feed.table != NULL)
		table_close(index->feed.table, AccessShareLock);
	relation_close(index->feed.rel, AccessShareLock);
}

/*
 * Open an index.  False if it is gone since the plan was made (a trigger of
 * the statement may drop it), or not valid, or not served, or there is nothing
 * to look up by.  Do not wait for its lock, and do not keep it open, if the
 * executor has pruned its partition: pruned says that it may.
 */
static bool
open_index(LbtLookedUp *index, LbtOuterRows *rows, const List *exprs, const List *facts,
		   bool pruned)
{
	Oid			table = list_nth_oid(facts, LBT_LOOKAHEAD_TABLE);
	LbtFeed    *feed = &index->feed;

	memset(index, 0, sizeof(*index));
	index->rows = rows;
	feed->rel = lbt_try_open(list_nth_oid(facts, LBT_LOOKAHEAD_INDEX));
	if (feed->rel == NULL)
		return false;
	if (feed->rel->rd_rel->relkind == RELKIND_INDEX && feed->rel->rd_index->indisvalid &&
		feed->rel->rd_index->indrelid == table && !(pruned && feed->rel->rd_refcnt == 1))
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

/* Open those that a part's rows are looked up in. */
static void
open_part(LbtOuterRows *rows, LbtPart *part)
{
	const CustomScan *plan = (const CustomScan *) rows->node->ss.ps.plan;
	MemoryContext old = MemoryContextSwitchTo(rows->node->ss.ps.state->es_query_cxt);
	const List *facts = linitial(plan->custom_private);
	const List *keys = plan->custom_exprs;
	int			first = 1;		/* after the partition's key */

	part->opened = true;
	part->first = rows->nindexes;
	if (facts == NIL)
	{
		LbtLookups	writes = lbt_find_writes(part->table, lthird(plan->custom_private),
											 lsecond(keys));

		facts = writes.facts;
		keys = writes.keys;
		first = 0;
	}
	for (int i = 0; i < list_length(facts); i++)
	{
		LbtLookedUp *index = &rows->index[rows->nindexes];
		const List *fact = list_nth(facts, i);

		if (rows->route != NULL && rows->nindexes == LBT_ROUTED_INDEXES)
			break;
		if (rows->route != NULL && list_nth_oid(fact, LBT_LOOKAHEAD_TABLE) != part->table)
			continue;
		if (!open_index(index, rows, list_nth(keys, first + i), fact,
						first > 0 && rows->route != NULL && rows->route->key != NULL))
			continue;
		index->part = part;
		rows->nindexes++;
		if (rows->route == NULL)
			continue;

		/* The rows that are read bound its batches; and there are others. */
		index->feed.all = true;
		index->feed.most = lbt_lookahead_rows / 2;
		index->feed.npages *= rows->nparts;
	}
	part->nindexes = rows->nindexes - part->first;
	rows->nopened += part->nindexes > 0;

	/* Of too many partitions, few of the rows that are read are of one. */
	for (int i = 0; rows->nindexes == LBT_ROUTED_INDEXES && i < rows->nindexes; i++)
	{
		lbt_feed_restart(&rows->index[i].feed, rows->origin);
		rows->index[i].feed.pause.resume = PG_UINT64_MAX;
		rows->index[i].feed.unused = true;	/* missing blocks do not wake it */
	}
	MemoryContextSwitchTo(old);
}

/*
 * Where blocks are missing, rows come in windows, of which each has a batch of
 * all feeds (src/README, "One feed for each index"):
 *
 *     passed on | window: at ... turn - 1 | next one: turn ... end - 1
 */
static void
move_window_on(LbtOuterRows *rows)
{
	if (rows->at >= rows->turn)
	{
		rows->turn = rows->end;
		rows->middle = (rows->at + rows->turn) / 2;
		read_rows(rows, rows->turn, Min(rows->nopened * lbt_lookahead_rows, rows->nrows) / 2);
		for (int i = 0; i < rows->nindexes; i++)
			lbt_feed_follow(&rows->index[i].feed, rows->index[i].part->coming);
	}
	else if (rows->at >= rows->middle)
	{
		rows->middle = rows->turn;
		for (int i = 0; i < rows->nindexes; i++)
			lbt_feed_look(&rows->index[i].feed);
	}
}

/* A row comes now.  False if nobody looks it up, for now or at all. */
static bool
post(LbtOuterRows *rows, const LbtOuterRow *row)
{
	LbtPart    *part = row->part;
	bool		looked_up = false;

	if (unlikely(part != NULL && !part->opened))
		open_part(rows, part);
	if (unlikely(part == NULL || part->nindexes == 0))
		return false;
	part->coming = row->item;
	if (rows->route != NULL && lbt_feed_misses(&rows->index[part->first].feed))
		move_window_on(rows);
	for (int i = part->first; i < part->first + part->nindexes; i++)
	{
		LbtFeed    *feed = &rows->index[i].feed;

		lbt_feed_post(feed, row->item);
		looked_up |= row->item >= feed->pause.resume;
	}
	part->coming++;
	return looked_up;
}

TupleTableSlot *
lbt_outer_row(LbtOuterRows *rows, bool *pauses)
{
	LbtOuterRow *row;
	bool		looked_up;

	/* The last row's slot is no other's, as not all are used at a time. */
	if (rows->by_reference)
	{
		row = row_of(rows, rows->at - 1);
		if (row->slot != NULL)
			ExecClearTuple(row->slot);
		free_old(row);
	}
	*pauses = false;
	if (rows->at == rows->end && !read_row(rows))
		return NULL;
	row = row_of(rows, rows->at);
	looked_up = post(rows, row);
	rows->at++;
	*pauses = !looked_up && rows->at == rows->end;

	/* Feeds that do not pause may be those of partitions that are done. */
	if (rows->route != NULL && looked_up)
	{
		rows->posted = rows->at;
		rows->nowhere.length = 0;
	}
	else if (*pauses && rows->route != NULL && rows->at - rows->posted >= LBT_BATCH)
		lbt_pause_begin(&rows->nowhere, rows->at);
	return row->slot;
}

void
lbt_outer_open(LbtOuterRows *rows, CustomScanState *node)
{
	EState	   *estate = node->ss.ps.state;
	const CustomScan *plan = (const CustomScan *) node->ss.ps.plan;
	const List *route = lthird(plan->custom_private);
	MemoryContext old = MemoryContextSwitchTo(estate->es_query_cxt);
	TupleDesc	desc = node->ss.ss_ScanTupleSlot->tts_tupleDescriptor;
	bool		merged;
	ListCell   *lc;

	rows->used = lsecond(plan->custom_private);
	rows->limit = lbt_limit_above(node, false, &merged);
	foreach(lc, rows->used)
		rows->by_reference |= !TupleDescAttr(desc, lfirst_int(lc) - 1)->attbyval;
	rows->copies = GenerationContextCreate(estate->es_query_cxt, "learnedbtree outer rows",
										   ALLOCSET_SMALL_SIZES);
	rows->nrows = route != NIL ? LBT_ROUTED_ROWS : LBT_OUTER_ROWS;
	rows->row = palloc0(rows->nrows * sizeof(LbtOuterRow));
	rows->index = palloc(sizeof(LbtLookedUp) * (route != NIL ? LBT_ROUTED_INDEXES :
												list_length(linitial(plan->custom_private))));
	if (route != NIL)
		open_route(rows, route, linitial(plan->custom_exprs));
	else
	{
		rows->part = palloc0(sizeof(LbtPart));
		open_part(rows, rows->part);
	}
	MemoryContextSwitchTo(old);
}

void
lbt_outer_close(LbtOuterRows *rows)
{
	lbt_outer_restart(rows);
	for (int i = 0; i < rows->nindexes; i++)
		close_index(&rows->index[i]);
	if (rows->target != NULL)
		table_close(rows->target, NoLock);
	if (rows->route != NULL && rows->route->rel != NULL)
		table_close(rows->route->rel, NoLock);
}
