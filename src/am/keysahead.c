/*
 * keysahead.c - foreign keys that are checked next; see keysahead.h.
 */
#include "am/keysahead.h"

#include "am/am.h"
#include "am/newrows.h"
#include "catalog/pg_constraint.h"
#include "commands/trigger.h"
#include "lib/ilist.h"
#include "server/compat.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

/* Foreign keys to follow: one to a partitioned table has many. */
#define MAX_KEYS 8

/* Checks in a row for rows that we do not know, before giving up. */
#define MAX_UNKNOWN 64

/* A foreign key of the table. */
typedef struct Key
{
	const ForeignKeyCacheInfo *info;
	Oid			index;			/* that checks look up */
	int			unknown;
	LbtNewRows	rows;
} Key;

struct LbtKeysAhead
{
	MemoryContext context;		/* in which this is */
	dlist_node	node;			/* if noted */
	MemoryContextCallback unlink;
	const EState *estate;
	Oid			table;
	ItemPointerData start;		/* where its new rows may begin */
	CommandId	command;
	int			nkeys;
	Key		   *key;			/* NULL before the first lookup */
};

LbtKeysAhead *lbt_keys_ahead = NULL;

/* Of queries that run; each is in the query's memory. */
static dlist_head noted = DLIST_STATIC_INIT(noted);

LbtKeysAhead *
lbt_keys_make(Relation table, CommandId command, MemoryContext context)
{
	LbtKeysAhead *ahead;
	BlockNumber nblocks;

	if (!lbt_enable || !lbt_is_heap(table) || RelationUsesLocalBuffers(table) ||
		SessionReplicationRole == SESSION_REPLICATION_ROLE_REPLICA ||
		RelationGetFKeyList(table) == NIL)
		return NULL;
	nblocks = RelationGetNumberOfBlocks(table);
	context = AllocSetContextCreate(context, "learnedbtree foreign keys", ALLOCSET_SMALL_SIZES);
	ahead = MemoryContextAllocZero(context, sizeof(LbtKeysAhead));
	ahead->context = context;
	ahead->table = RelationGetRelid(table);
	ItemPointerSet(&ahead->start, Max(nblocks, 1) - 1, FirstOffsetNumber);
	ahead->command = command;
	return ahead;
}

void
lbt_keys_end(LbtKeysAhead *ahead)
{
	if (ahead != NULL)
		MemoryContextDelete(ahead->context);
}

static void
unlink_noted(void *ahead)
{
	dlist_delete(&((LbtKeysAhead *) ahead)->node);
}

void
lbt_keys_note(EState *estate, Relation table)
{
	LbtKeysAhead *ahead = lbt_keys_make(table, estate->es_output_cid, estate->es_query_cxt);

	if (ahead == NULL)
		return;
	ahead->estate = estate;
	ahead->unlink.func = unlink_noted;
	ahead->unlink.arg = ahead;
	dlist_push_head(&noted, &ahead->node);
	MemoryContextRegisterResetCallback(ahead->context, &ahead->unlink);
}

LbtKeysAhead *
lbt_keys_noted(const EState *estate)
{
	dlist_iter	iter;

	dlist_foreach(iter, &noted)
	{
		LbtKeysAhead *ahead = dlist_container(LbtKeysAhead, node, iter.cur);

		if (ahead->estate == estate)
			return ahead;
	}
	return NULL;
}

/* Open the table, if the statement has it open; else NULL. */
static Relation
open_table(const LbtKeysAhead *ahead)
{
	Relation	table;

	if (!lbt_holds_lock(ahead->table, RowExclusiveLock))
		return NULL;
	table = RelationIdGetRelation(ahead->table);
	if (!RelationIsValid(table) || table->rd_refcnt > 1)
		return table;
	RelationClose(table);
	return NULL;
}

/* At the first lookup: find the foreign keys. */
static void
find_keys(LbtKeysAhead *ahead)
{
	Relation	table = open_table(ahead);
	MemoryContext old = MemoryContextSwitchTo(ahead->context);
	List	   *keys;
	ListCell   *lc;

	ahead->key = palloc0(MAX_KEYS * sizeof(Key));
	/* Looking up may free it.  (The macro wants newer compilers on 19.) */
	keys = RelationIsValid(table) ? copyObjectImpl(RelationGetFKeyList(table)) : NIL;
	foreach(lc, keys)
	{
		const ForeignKeyCacheInfo *info = lfirst(lc);
		HeapTuple	row;

		if (ahead->nkeys == MAX_KEYS)
			break;
		row = SearchSysCache1(CONSTROID, ObjectIdGetDatum(info->conoid));
		if (!HeapTupleIsValid(row))
			continue;
		ahead->key[ahead->nkeys].info = info;
		ahead->key[ahead->nkeys].rows.command = ahead->command;
		ahead->key[ahead->nkeys].rows.skip_nulls = true;
		ahead->key[ahead->nkeys].rows.end = ahead->start;
		ahead->key[ahead->nkeys++].index = ((Form_pg_constraint) GETSTRUCT(row))->conindid;
		ReleaseSysCache(row);
	}
	MemoryContextSwitchTo(old);
	if (RelationIsValid(table))
		RelationClose(table);
}

/* ---- a check ---- */

typedef struct Check
{
	Key		   *key;			/* that it may be one of */
	Relation	table;			/* with the new rows, open during this check */
	IndexScanDesc scan;
	LbtIndex   *index;
	const LbtBound *bound;
} Check;

/*
 * Which columns of the table make up the bound's key?  False if they do not.
 * Asked anew for each batch, so no number or type is remembered.
 */
static bool
find_columns(const Check *check)
{
	const ForeignKeyCacheInfo *info = check->key->info;
	const int16 *referenced = check->scan->indexRelation->rd_index->indkey.values;
	LbtNewRows *rows = &check->key->rows;
	TupleDesc	desc = RelationGetDescr(check->table);

	for (int column = 0; column < check->bound->ncolumns; column++)
	{
		AttrNumber	attribute;
		int			i = 0;

		while (i < info->nkeys && info->confkey[i] != referenced[column])
			i++;
		attribute = i < info->nkeys ? info->conkey[i] : 0;
		if (attribute < 1 || attribute > desc->natts ||
			TupleDescAttr(desc, attribute - 1)->attisdropped)
			return false;
		rows->attribute[column] = attribute;
		rows->type[column] = getBaseType(TupleDescAttr(desc, attribute - 1)->atttypid);
		if (!lbt_keyspec_takes(&check->index->keyspec.column[column], rows->type[column]))
			return false;
	}
	rows->ncolumns = check->bound->ncolumns;
	return true;
}

/* Make a batch of the rows that come next, if their keys can be told. */
static void
begin_batch(const Check *check, LbtNewBatch *batch)
{
	if (find_columns(check))
		lbt_newrows_begin(&check->key->rows, check->scan->indexRelation, check->index,
						  check->table, batch);
}

/* Find out which blocks of the referenced table a batch will need. */
static void
look_for_rows(const Check *check, LbtNewBatch *batch)
{
	IndexScanDesc scan = check->scan;
	LbtIndex   *index = check->index;
	MemoryContext old;

	if (batch->n == 0 || index->keyspec.nplaces == 0 || scan->heapRelation == NULL ||
		!lbt_is_heap(scan->heapRelation) || lbt_block_hints == NULL ||
		batch->batch.target[0].generation != index->generation)
		return;
	if (batch->leaves != NULL)
	{
		(void) lbt_reads_come(batch->leaves, batch->n - 1);
		lbt_batch_near(scan->indexRelation, index, &batch->batch, false);
	}
	old = MemoryContextSwitchTo(check->key->rows.context);
	batch->rows = lbt_batch_rows(scan->indexRelation, index, scan->heapRelation, &batch->batch,
								 lbt_enable_row_prefetch ? &check->key->rows.rows : NULL);
	lbt_reads_start(batch->rows);
	MemoryContextSwitchTo(old);
}

/* The batch whose row may be the next one; begins one if there is none. */
static LbtNewBatch *
current_batch(const Check *check)
{
	LbtNewRows *rows = &check->key->rows;

	/* Relations are closed between two checks. */
	for (int i = 0; i < 2; i++)
	{
		LbtNewBatch *batch = i == 0 ? rows->now : rows->next;

		lbt_reads_of(batch->leaves, check->scan->indexRelation);
		lbt_reads_of(batch->rows, check->scan->heapRelation);
	}
	if (rows->now->at == rows->now->n)
	{
		lbt_newrows_turn(rows, check->index);
		if (rows->now->n == 0)
		{
			begin_batch(check, rows->now);
			look_for_rows(check, rows->now);
		}
	}
	return rows->now;
}

/* Post the prediction for this check, if it is of a row that we know. */
static bool
check_is_next(const Check *check)
{
	Key		   *key = check->key;
	LbtNewBatch *batch = current_batch(check);
	uint64		code = bound_code(check->index, check->bound);

	for (int at = batch->at; at < batch->n && check->bound->ncolumns == key->rows.ncolumns; at++)
		if (batch->batch.key[at].code == code)
		{
			bool		first = batch->at == 0;
			bool		half = batch->at <= batch->n / 2 && at >= batch->n / 2;

			batch->at = at;
			if (first)
				begin_batch(check, key->rows.next);
			if (half)
				look_for_rows(check, key->rows.next);
			if (batch->rows != NULL)
				(void) lbt_reads_come(batch->rows, at);
			lbt_newrows_post_prediction(check->index, batch);
			batch->at++;
			key->unknown = 0;
			return true;
		}
	key->unknown++;
	return false;
}

void
lbt_check_comes(IndexScanDesc scan, LbtIndex *index, const LbtBound *bound)
{
	LbtKeysAhead *ahead = lbt_keys_ahead;
	Check		check = {.scan = scan,.index = index,.bound = bound};
	bool		found = false;

	/* A check fetches the row; a bitmap's scan, of a trigger, has no table. */
	if (bound->past || scan->heapRelation == NULL)
		return;
	if (ahead->key == NULL)
		find_keys(ahead);
	for (int i = 0; i < ahead->nkeys && !found; i++)
	{
		check.key = &ahead->key[i];
		if (check.key->index != RelationGetRelid(scan->indexRelation) ||
			check.key->unknown > MAX_UNKNOWN)
			continue;
		lbt_index_update(index);
		if (index->state != LBT_READY ||
			(check.table == NULL && (check.table = open_table(ahead)) == NULL))
			break;
		if (check.key->rows.now == NULL)
			lbt_newrows_make(&check.key->rows, index, ahead->context);
		found = check_is_next(&check);
	}
	if (check.table != NULL)
		RelationClose(check.table);
}
