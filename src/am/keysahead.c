/*
 * keysahead.c - foreign keys that are looked up next; see keysahead.h.
 */
#include "am/keysahead.h"

#include "am/newrows.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_trigger.h"
#include "commands/trigger.h"
#include "executor/executor.h"
#include "tcop/pquery.h"
#include "utils/lsyscache.h"

/* Foreign keys to follow: one to a partitioned table has many. */
#define MAX_KEYS 8

/* Lookups for rows that we do not know, before giving up: triggers' own. */
#define MAX_UNKNOWN 64

/* Tables whose deferred checks may be the next to come. */
#define MAX_WAITING 4

/* Keys of deleted rows to begin with: many rows may refer to each. */
#define FIRST_KEYS 8

/* TIDs that are kept of deleted rows: 6 MB. */
#define MAX_DELETED (1 << 20)

/* A foreign key of the table, or one that refers to it. */
typedef struct Key
{
	Oid			other;			/* the table that is looked up */
	int			ncolumns;
	AttrNumber	own[INDEX_MAX_KEYS];	/* columns of the table */
	AttrNumber	others[INDEX_MAX_KEYS]; /* ... that equal these */
	int			unknown;		/* lookups since one for a known row */
	LbtNewRows	rows;
} Key;

struct LbtKeysAhead
{
	MemoryContext context;		/* in which this is */
	dlist_node	node;			/* if noted */
	MemoryContextCallback unlink;
	const EState *estate;
	Oid			table;
	bool		stale;			/* what is known of the table is old */
	int			passed;			/* lookups that were none of its checks, while
								 * none has come */
	BlockNumber start;			/* where its new rows may begin */
	CommandId	command;
	bool		deferred;		/* keys that may be, rows since the command */
	bool		deletes;		/* rows, to which keys refer: */
	ExecProcNodeMtd next_row;	/* of its source ... */
	AttrNumber	row_id;			/* ... whose column is the TID */
	ItemPointerData *deleted;	/* rows, in their order */
	int			ndeleted;
	int			nkeys;
	Key		   *key;			/* NULL before the first lookup */
};

LbtKeysAhead *lbt_keys_ahead = NULL;

/* Of queries that run; each is in the query's memory. */
static dlist_head noted = DLIST_STATIC_INIT(noted);

/* Each is in memory of the subtransaction that wrote to its table first. */
dlist_head	lbt_keys_deferred = DLIST_STATIC_INIT(lbt_keys_deferred);

/* OIDs of the table's foreign keys, or of those that refer to it. */
static List *
list_keys(Relation table, bool referring)
{
	const TriggerDesc *triggers = referring ? table->trigdesc : NULL;
	List	   *keys = NIL;
	ListCell   *lc;

	for (int i = 0; triggers != NULL && i < triggers->numtriggers; i++)
	{
		const Trigger *trigger = &triggers->triggers[i];

		if (TRIGGER_FOR_DELETE(trigger->tgtype) &&
			RI_FKey_trigger_type(trigger->tgfoid) == RI_TRIGGER_PK)
			keys = lappend_oid(keys, trigger->tgconstraint);
	}
	foreach(lc, referring ? NIL : RelationGetFKeyList(table))
		keys = lappend_oid(keys, ((ForeignKeyCacheInfo *) lfirst(lc))->conoid);
	return keys;
}

static LbtKeysAhead *
make(Relation table, CommandId command, bool deletes, MemoryContext context)
{
	LbtKeysAhead *ahead;
	BlockNumber nblocks;
	List	   *keys;

	if (!lbt_enable || !lbt_is_heap(table) ||
		SessionReplicationRole == SESSION_REPLICATION_ROLE_REPLICA ||
		(keys = list_keys(table, deletes)) == NIL)
		return NULL;
	list_free(keys);			/* functions run many writes in one context */
	nblocks = RelationGetNumberOfBlocks(table);
	context = AllocSetContextCreate(context, "learnedbtree foreign keys", ALLOCSET_SMALL_SIZES);
	ahead = MemoryContextAllocZero(context, sizeof(LbtKeysAhead));
	ahead->context = context;
	ahead->table = RelationGetRelid(table);
	ahead->start = Max(nblocks, 1) - 1;
	ahead->command = command;
	ahead->deletes = deletes;
	return ahead;
}

static void
unlink_from_list(void *arg)
{
	dlist_delete(&((LbtKeysAhead *) arg)->node);
}

/* Put it at the end of a list, as long as its memory is there. */
static void
link_to_list(LbtKeysAhead *ahead, dlist_head *list)
{
	ahead->unlink.func = unlink_from_list;
	ahead->unlink.arg = ahead;
	dlist_push_tail(list, &ahead->node);
	MemoryContextRegisterResetCallback(ahead->context, &ahead->unlink);
}

/* The same for the transaction, if the table has keys that may be deferred. */
static void
note_deferred(Relation table, CommandId command)
{
	const TriggerDesc *triggers = table->trigdesc;
	LbtKeysAhead *before = NULL;
	LbtKeysAhead *ahead;
	bool		any = false;
	dlist_iter	iter;

	for (int i = 0; triggers != NULL && i < triggers->numtriggers; i++)
		any |= triggers->triggers[i].tgdeferrable &&
			RI_FKey_trigger_type(triggers->triggers[i].tgfoid) == RI_TRIGGER_FK;
	dlist_foreach(iter, &lbt_keys_deferred)
	{
		ahead = dlist_container(LbtKeysAhead, node, iter.cur);
		if (ahead->table == RelationGetRelid(table))
			before = ahead;
	}
	if (!any || (before != NULL && !before->stale) ||
		(ahead = make(table, command, false, CurTransactionContext)) == NULL)
		return;
	ahead->deferred = true;
	if (before != NULL)
	{
		/* Its rows are checked first. */
		ahead->start = Min(ahead->start, before->start);
		ahead->command = before->command;
		MemoryContextDelete(before->context);
	}
	link_to_list(ahead, &lbt_keys_deferred);
}

void
lbt_keys_invalidate(Oid relid)
{
	dlist_iter	iter;

	/* A lookup may be in the middle of it: then it does not open the table. */
	dlist_foreach(iter, &lbt_keys_deferred)
	{
		LbtKeysAhead *ahead = dlist_container(LbtKeysAhead, node, iter.cur);

		if (ahead->table == relid || !OidIsValid(relid))
			ahead->stale = true;
	}
}

LbtKeysAhead *
lbt_keys_make(Relation table, CommandId command, MemoryContext context)
{
	note_deferred(table, command);
	return make(table, command, false, context);
}

void
lbt_keys_end(LbtKeysAhead *ahead)
{
	if (ahead != NULL)
		MemoryContextDelete(ahead->context);
}

/* In place of a DELETE's source: remember the rows' TIDs. */
static TupleTableSlot *
next_deleted(PlanState *source)
{
	LbtKeysAhead *ahead = lbt_keys_noted(source->state);
	TupleTableSlot *row = ahead->next_row(source);
	int			n = ahead->ndeleted;
	bool		isnull = true;
	Datum		tid = 0;

	if (!TupIsNull(row) && n < MAX_DELETED)
		tid = slot_getattr(row, ahead->row_id, &isnull);
	if (isnull)
		return row;
	if (n > 0 && (n & (n - 1)) == 0)
		ahead->deleted = repalloc(ahead->deleted, 2 * n * sizeof(ItemPointerData));
	ahead->deleted[ahead->ndeleted++] = *(ItemPointer) DatumGetPointer(tid);
	return row;
}

void
lbt_keys_note(ModifyTableState *write)
{
	Relation	table = write->resultRelInfo->ri_RelationDesc;
	PlanState  *source = outerPlanState(write);
	EState	   *estate = source->state;
	LbtKeysAhead *ahead = write->operation == CMD_DELETE ?
		make(table, estate->es_output_cid, true, estate->es_query_cxt) :
		lbt_keys_make(table, estate->es_output_cid, estate->es_query_cxt);

	if (ahead == NULL)
		return;
	ahead->estate = estate;
	link_to_list(ahead, &noted);
	if (ahead->deletes)
	{
		ahead->deleted = MemoryContextAlloc(ahead->context, sizeof(ItemPointerData));
		ahead->row_id = write->resultRelInfo->ri_RowIdAttNo;
		ahead->next_row = source->ExecProcNodeReal;
		ExecSetExecProcNode(source, next_deleted);
	}
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

/* Open the table, if the statement has it open: no DDL then; else NULL. */
static Relation
open_table(const LbtKeysAhead *ahead)
{
	Relation	table;

	if (ahead->stale || !lbt_holds_lock(ahead->table, RowExclusiveLock))
		return NULL;
	table = RelationIdGetRelation(ahead->table);
	if (!RelationIsValid(table) || table->rd_refcnt > 1)
		return table;
	RelationClose(table);
	return NULL;
}

/*
 * Which columns of the table make up a key of the index?  False if they do
 * not.  Asked anew for each batch, so no number or type is remembered.
 */
static bool
find_columns(Key *key)
{
	const int16 *indexed = key->rows.feed.rel->rd_index->indkey.values;
	LbtNewRows *rows = &key->rows;
	TupleDesc	desc = RelationGetDescr(rows->table);

	for (int column = 0; column < rows->feed.ncolumns; column++)
	{
		AttrNumber	attribute;
		int			i = 0;

		while (i < key->ncolumns && key->others[i] != indexed[column])
			i++;
		attribute = i < key->ncolumns ? key->own[i] : 0;
		if (attribute < 1 || attribute > desc->natts ||
			TupleDescAttr(desc, attribute - 1)->attisdropped)
			return false;
		rows->attribute[column] = attribute;
		rows->type[column] = getBaseType(TupleDescAttr(desc, attribute - 1)->atttypid);
		if (!lbt_keyspec_takes(&rows->feed.index->keyspec.column[column], rows->type[column]))
			return false;
	}
	return true;
}

/*
 * For the feed: the next row's key.  One with a NULL is not checked.  A batch
 * begins on a page that is there: the check has just read that of its row, the
 * table's last one before the command, or the next.
 */
static LbtNext
next_key(void *producer, uint64 number, LbtKeyValue *values, uint8 *scratch)
{
	LbtNewRows *rows = &((Key *) producer)->rows;

	if (number == rows->feed.first &&
		(!find_columns(producer) ||
		 (rows->deleted == NULL && !lbt_block_is_there(rows->table, rows->block) &&
		  !lbt_newrows_next_page(rows))))
		return LBT_NO_MORE;
	return lbt_newrows_next(rows, number, values, scratch);
}

static void
add_key(LbtKeysAhead *ahead, HeapTuple row)
{
	Form_pg_constraint form = (Form_pg_constraint) GETSTRUCT(row);
	Key		   *key = &ahead->key[ahead->nkeys++];
	LbtFeed    *feed = &key->rows.feed;

	key->other = ahead->deletes ? form->conrelid : form->confrelid;
	DeconstructFkConstraintRow(row, &key->ncolumns, ahead->deletes ? key->others : key->own,
							   ahead->deletes ? key->own : key->others, NULL, NULL, NULL, NULL,
							   NULL);
	key->rows.command = ahead->command;
	key->rows.since = ahead->deferred;
	key->rows.deleted = ahead->deleted;
	key->rows.ndeleted = ahead->ndeleted;
	lbt_newrows_go(&key->rows, ahead->start, FirstOffsetNumber);
	feed->next_key = next_key;
	feed->producer = key;
	feed->context = ahead->context;
	feed->all = feed->steady = true;
	feed->every = ahead->deletes;
	feed->most = ahead->deletes ? FIRST_KEYS : 0;
}

/* At the first lookup while the table is open: find the foreign keys. */
static void
find_keys(LbtKeysAhead *ahead)
{
	Relation	table = open_table(ahead);
	MemoryContext old;
	List	   *keys;
	ListCell   *lc;

	if (!RelationIsValid(table))
		return;
	old = MemoryContextSwitchTo(ahead->context);
	ahead->key = palloc0(MAX_KEYS * sizeof(Key));
	keys = list_keys(table, ahead->deletes);
	foreach(lc, keys)
	{
		HeapTuple	row;

		if (ahead->nkeys == MAX_KEYS)
			break;
		row = SearchSysCache1(CONSTROID, ObjectIdGetDatum(lfirst_oid(lc)));
		if (!HeapTupleIsValid(row))
			continue;
		if ((!ahead->deferred || ((Form_pg_constraint) GETSTRUCT(row))->condeferrable))
			add_key(ahead, row);
		ReleaseSysCache(row);
	}
	MemoryContextSwitchTo(old);
	RelationClose(table);
}

/* Post the prediction for this lookup, if it checks a row that we know. */
static bool
check_is_next(Key *key, IndexScanDesc scan, LbtIndex *index, const LbtBound *bound)
{
	LbtFeed    *feed = &key->rows.feed;
	Relation	other;
	bool		found;

	if (bound->ncolumns != key->ncolumns)
		return false;
	feed->rel = scan->indexRelation;
	if (feed->index == NULL)
	{
		feed->index = index;
		feed->ncolumns = feed->nequal = bound->ncolumns;
		if (!find_columns(key))
			feed->index = NULL;
	}
	if (feed->index != index)
		return false;
	other = RelationIdGetRelation(key->other);
	feed->table = lbt_is_heap(other) && lbt_block_hints != NULL ? other : NULL;
	found = lbt_feed_find(feed, bound_code(index, bound), &key->rows.number);
	if (found)
		lbt_feed_post(feed, key->rows.number++);
	RelationClose(other);
	return found;
}

/* Is it a check of one table's rows? */
static bool
find_check(LbtKeysAhead *ahead, IndexScanDesc scan, LbtIndex *index, const LbtBound *bound)
{
	Relation	table = NULL;
	bool		found = false;

	if (ahead->key == NULL)
		find_keys(ahead);
	for (int i = 0; i < ahead->nkeys && !found; i++)
	{
		Key		   *key = &ahead->key[i];

		if (key->other != scan->indexRelation->rd_index->indrelid || key->unknown > MAX_UNKNOWN)
			continue;
		if (key->rows.number < key->rows.feed.pause.resume)
		{
			key->rows.number++;
			continue;
		}
		lbt_index_update(index);
		if (index->state != LBT_READY ||
			(table == NULL && (table = open_table(ahead)) == NULL))
			break;
		key->rows.table = table;
		found = check_is_next(key, scan, index, bound);
		key->unknown = found ? 0 : key->unknown + 1;
		if (key->unknown > MAX_UNKNOWN)
		{
			key->rows.feed.table = NULL;	/* closed; count no more */
			lbt_feed_restart(&key->rows.feed, 0);
			lbt_feed_free(&key->rows.feed);
		}
	}
	if (table != NULL)
		RelationClose(table);
	return found;
}

/*
 * Deferred checks run where SET CONSTRAINTS says so, and at the transaction's
 * end, where no portal is active; mostly one table's after the other's, in the
 * order in which they were written to.
 */
void
lbt_check_comes(IndexScanDesc scan, LbtIndex *index, const LbtBound *bound)
{
	int			waiting = 0;	/* tables of which no check has come yet */
	dlist_iter	iter;

	if (bound->past)
		return;
	if (lbt_keys_ahead != NULL)
		(void) find_check(lbt_keys_ahead, scan, index, bound);
	else if (ActivePortal == NULL || ActivePortal->commandTag == CMDTAG_SET_CONSTRAINTS)
		dlist_foreach(iter, &lbt_keys_deferred)
		{
			LbtKeysAhead *ahead = dlist_container(LbtKeysAhead, node, iter.cur);

			if (ahead->key == NULL && ++waiting > MAX_WAITING)
				return;
			if (find_check(ahead, scan, index, bound))
			{
				/* The next one's is found at once. */
				dlist_move_head(&lbt_keys_deferred, &ahead->node);
				return;
			}
			if (ahead->key == NULL && ++ahead->passed > MAX_UNKNOWN)
			{
				/* Its checks may not come at all: it makes room for others. */
				ahead->passed = 0;
				dlist_move_tail(&lbt_keys_deferred, &ahead->node);
				return;
			}
		}
}
