/*
 * marks.c - the table learnedbtree.marks: this backend's copy, and writing; see marks.h.
 *
 * The table is read and written as the server does with its catalogs, without asking for permission on it.  SnapshotSelf
 * takes no predicate locks; a row that changes while it is read is read again, as the writer's commit invalidates the copy.
 * src/README, "Serving btree indexes", says why these locks.
 */
#include "serve/marks.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/partition.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "server/compat.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

/* The table's columns, from 0. */
enum
{
	SCHEMANAME, TABLENAME, INDEXNAME, LEARNED, MAX_ERROR, RETRAIN_SPLITS, INDEXID, COLUMNS
};

typedef struct Mark
{
	NameData	names[INDEXNAME + 1];
	Oid			id;				/* as the row has it; InvalidOid: none */
	LbtIndexOptions options;
	ItemPointerData row;
} Mark;

/* A mark is found by its OID, the names being empty, and by its names, the OID being InvalidOid. */
typedef struct MarkKey
{
	Oid			id;
	NameData	schema;
	NameData	index;
} MarkKey;

typedef struct MarkEntry
{
	MarkKey		key;
	List	   *marks;			/* one, unless SQL has made more */
} MarkEntry;

/* This backend's copy, in a context of its own. */
static MemoryContext copy_context = NULL;
static List *marks = NIL;		/* of Mark */
static HTAB *by_key = NULL;		/* of MarkEntry */
static bool copy_valid = false;
static Oid	copied_table = InvalidOid;	/* InvalidOid: there was none */

/* Made by a transaction that may have written rows, which an abort takes back. */
static bool copy_by_writer = false;

/* Raised by invalidations, to notice one that comes while the copy is being made. */
static uint64 invalidations = 0;

/* ---- what changes ---- */

bool
lbt_marks_invalidated(Oid relid)
{
	if (OidIsValid(relid) && relid != copied_table)
		return false;
	copy_valid = false;
	invalidations++;
	return true;
}

bool
lbt_marks_aborted(void)
{
	return copy_by_writer && lbt_marks_invalidated(InvalidOid);
}

/* ---- the copy ---- */

/*
 * The OID of what has the table's name; InvalidOid when there is none, or no extension.  The extension is known by its access
 * method, as pg_extension and pg_depend are catalogs that few sessions have open.
 */
static Oid
marks_table(void)
{
	Oid			schema = OidIsValid(lbt_am_oid()) ? get_namespace_oid("learnedbtree", true) : InvalidOid;

	return OidIsValid(schema) ? get_relname_relid("marks", schema) : InvalidOid;
}

/*
 * Can it be read and written as the extension's table?  Who may put another one in its place changes what is served, and no
 * answer.
 */
static bool
has_columns(Relation table)
{
	static const Oid types[COLUMNS] = {NAMEOID, NAMEOID, NAMEOID, BOOLOID, INT4OID, INT4OID, OIDOID};
	bool		has = table->rd_rel->relkind == RELKIND_RELATION && table->rd_rel->relam == HEAP_TABLE_AM_OID &&
		RelationGetNumberOfAttributes(table) >= COLUMNS;

	for (int i = 0; has && i < COLUMNS; i++)
		has = TupleDescAttr(RelationGetDescr(table), i)->atttypid == types[i];
	return has;
}

static bool
exists(Oid relid)
{
	return OidIsValid(relid) && SearchSysCacheExists1(RELOID, ObjectIdGetDatum(relid));
}

/* An index's names as rows have them.  False when it, its table or schema is gone. */
static bool
names_of(Oid index, NameData *names)
{
	const char *current[] = {
		[SCHEMANAME] = get_namespace_name(get_rel_namespace(index)),
		[TABLENAME] = get_rel_name(IndexGetRelation(index, true)),
		[INDEXNAME] = get_rel_name(index)
	};

	for (int i = 0; i <= INDEXNAME; i++)
	{
		if (current[i] == NULL)
			return false;
		namestrcpy(&names[i], current[i]);
	}
	return true;
}

/* What a row says; false when it lacks a name, as only a superuser's hand can make it. */
static bool
read_row(HeapTuple row, TupleDesc desc, Mark *mark)
{
	/* A superuser may have added columns. */
	Datum		values[MaxHeapAttributeNumber];
	bool		nulls[MaxHeapAttributeNumber];

	/* heap_getattr() calls what only later minors have. */
	heap_deform_tuple(row, desc, values, nulls);
	memset(mark, 0, sizeof(*mark));
	for (int i = 0; i <= INDEXNAME; i++)
	{
		if (nulls[i])
			return false;
		namestrcpy(&mark->names[i], NameStr(*DatumGetName(values[i])));
	}
	mark->id = nulls[INDEXID] ? InvalidOid : DatumGetObjectId(values[INDEXID]);
	mark->options.learned = nulls[LEARNED] || DatumGetBool(values[LEARNED]);
	mark->options.max_error = nulls[MAX_ERROR] ? -1 : DatumGetInt32(values[MAX_ERROR]);
	mark->options.retrain_splits = nulls[RETRAIN_SPLITS] ? -1 : DatumGetInt32(values[RETRAIN_SPLITS]);
	mark->row = row->t_self;
	return true;
}

static MarkEntry *
look_up(Oid id, const NameData *schema, const NameData *index, HASHACTION action)
{
	MarkKey		key = {.id = id};
	MarkEntry  *entry;
	bool		found;

	if (schema)
	{
		key.schema = *schema;
		key.index = *index;
	}
	entry = hash_search(by_key, &key, action, &found);
	if (entry && !found)
		entry->marks = NIL;
	return entry;
}

/* An index's rows in the copy.  Of its name another index's may be, too, which has been renamed since. */
static List *
rows_of(Oid index)
{
	const MarkEntry *entry = look_up(index, NULL, NULL, HASH_FIND);
	List	   *rows = entry ? list_copy(entry->marks) : NIL;
	NameData	names[INDEXNAME + 1];
	ListCell   *lc;

	if (names_of(index, names) &&
		(entry = look_up(InvalidOid, &names[SCHEMANAME], &names[INDEXNAME], HASH_FIND)) != NULL)
		foreach(lc, entry->marks)
			if (!exists(((const Mark *) lfirst(lc))->id))
			rows = lappend(rows, lfirst(lc));
	return rows;
}

static void
copy_rows(Relation table)
{
	SysScanDesc scan = systable_beginscan(table, InvalidOid, false, SnapshotSelf, 0, NULL);
	HeapTuple	row;
	Mark		mark;

	while (HeapTupleIsValid(row = systable_getnext(scan)))
		if (read_row(row, RelationGetDescr(table), &mark))
		{
			MemoryContext old = MemoryContextSwitchTo(copy_context);
			Mark	   *copy = palloc(sizeof(Mark));
			MarkEntry  *entry = look_up(InvalidOid, &mark.names[SCHEMANAME], &mark.names[INDEXNAME], HASH_ENTER);

			/* Padding, too: delete_row() compares. */
			memcpy(copy, &mark, sizeof(Mark));
			marks = lappend(marks, copy);
			entry->marks = lappend(entry->marks, copy);
			if (OidIsValid(mark.id))
			{
				entry = look_up(mark.id, NULL, NULL, HASH_ENTER);
				entry->marks = lappend(entry->marks, copy);
			}
			MemoryContextSwitchTo(old);
		}
	systable_endscan(scan);
}

/* Bring the copy up to date; false when it cannot be just now. */
static bool
refresh(void)
{
	HASHCTL		ctl = {.keysize = sizeof(MarkKey),.entrysize = sizeof(MarkEntry)};
	uint64		before;
	Oid			oid;
	Relation	table = NULL;

	if (likely(copy_valid))
		return true;
	if (!IsTransactionState() || HistoricSnapshotActive())
		return false;
	before = invalidations;
	oid = marks_table();

	/* First, for the callback to know it. */
	copied_table = oid;
	if (OidIsValid(oid))
	{
		if (!ConditionalLockRelationOid(oid, AccessShareLock))
			return false;
		table = try_relation_open(oid, NoLock);
		if (table == NULL || !has_columns(table))
		{
			if (table)
				relation_close(table, NoLock);
			UnlockRelationOid(oid, AccessShareLock);
			return false;
		}
	}
	if (copy_context == NULL)
		copy_context = AllocSetContextCreate(TopMemoryContext, "learnedbtree marks", ALLOCSET_DEFAULT_SIZES);
	marks = NIL;
	MemoryContextReset(copy_context);
	ctl.hcxt = copy_context;
	by_key = hash_create("learnedbtree marks", 64, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	copy_by_writer = TransactionIdIsValid(GetTopTransactionIdIfAny());
	if (table != NULL)
	{
		copy_rows(table);
		table_close(table, AccessShareLock);
	}

	/*
	 * Without a table there is the middle of CREATE EXTENSION: nothing will
	 * tell when the table has come.
	 */
	copy_valid = before == invalidations && (OidIsValid(oid) || !OidIsValid(get_am_oid("learnedbtree", true)));
	return true;
}

bool
lbt_marks_any(bool *exist, bool *sure)
{
	*sure = refresh() && copy_valid;
	*exist = OidIsValid(copied_table);
	return marks != NIL;
}

bool
lbt_mark_find(Relation index, LbtIndexOptions *options)
{
	List	   *rows;
	ListCell   *lc;
	uint64		before;
	bool		sure;

	*options = LBT_NO_INDEX_OPTIONS;
	if (!refresh())
		return false;
	sure = copy_valid;
	if (marks == NIL)
		return sure;

	/* The copy stays what it is, even if what follows receives invalidations. */
	before = invalidations;
	rows = rows_of(RelationGetRelid(index));
	if (rows == NIL && index->rd_rel->relispartition)
		foreach(lc, get_partition_ancestors(RelationGetRelid(index)))
			if ((rows = rows_of(lfirst_oid(lc))) != NIL)
			break;
	if (rows != NIL)
		*options = ((const Mark *) linitial(rows))->options;
	list_free(rows);
	return sure && before == invalidations;
}

bool
lbt_mark_options(Relation rel, LbtIndexOptions *options, const char **why_not)
{
	bool		sure = lbt_mark_find(rel, options);
	bool		marked = options->learned >= 0;

	if (!sure)
		*why_not = "its marks cannot be read just now";
	else if (!OidIsValid(copied_table))
		*why_not = "the extension does not exist in this database";
	else if (lbt_btree_indexes == LBT_BTREE_NONE)
		*why_not = "learnedbtree.btree_indexes is none";
	else if (marked && !options->learned)
		*why_not = "its mark excludes it (learned is off)";
	else if (!marked && lbt_btree_indexes == LBT_BTREE_ADOPTED)
		*why_not = "it is not adopted";
	else if (!marked && !lbt_is_large(RelationGetNumberOfBlocks(rel)))
		*why_not = "it has fewer leaves than learnedbtree.min_leaves";
	return sure;
}

/* ---- writing ---- */

/* Open the table. */
static Relation
open_marks(LOCKMODE mode)
{
	Oid			oid = copy_valid ? copied_table : marks_table();
	Relation	table = OidIsValid(oid) ? try_relation_open(oid, mode) : NULL;

	if (table == NULL || !has_columns(table))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("the extension's table learnedbtree.marks does not exist"),
				 errhint("Drop the extension and create it again.")));
	return table;
}

/* Bring the copy up to date, the table being open. */
static void
need_copy(void)
{
	if (!refresh())
		elog(ERROR, "could not read learnedbtree.marks");
}

/* The index that a row is about, which may have been made anew under the old name; InvalidOid when there is none. */
static Oid
index_of(const Mark *mark)
{
	if (exists(mark->id))
		return mark->id;
	return get_relname_relid(NameStr(mark->names[INDEXNAME]),
							 get_namespace_oid(NameStr(mark->names[SCHEMANAME]), true));
}

/*
 * Insert an index's row.  Logical decoding is not to see it: a publication FOR ALL TABLES has this table, too.  (Where
 * somebody has given the table an index, it must.)
 */
static void
insert_row(Relation table, Oid index, const LbtIndexOptions *o)
{
	TupleDesc	desc = RelationGetDescr(table);
	Datum	   *values = palloc0(desc->natts * sizeof(Datum));
	bool	   *nulls = palloc0(desc->natts * sizeof(bool));
	NameData	names[INDEXNAME + 1];
	HeapTuple	row;

	if (!names_of(index, names))
		return;
	memset(nulls + COLUMNS, true, (desc->natts - COLUMNS) * sizeof(bool));
	for (int i = 0; i <= INDEXNAME; i++)
		values[i] = NameGetDatum(&names[i]);
	values[LEARNED] = BoolGetDatum(o->learned != 0);
	values[MAX_ERROR] = Int32GetDatum(o->max_error);
	values[RETRAIN_SPLITS] = Int32GetDatum(o->retrain_splits);
	values[INDEXID] = ObjectIdGetDatum(index);
	nulls[MAX_ERROR] = o->max_error < 0;
	nulls[RETRAIN_SPLITS] = o->retrain_splits < 0;
	row = heap_form_tuple(desc, values, nulls);
	if (table->rd_rel->relhasindex)
		CatalogTupleInsert(table, row);
	else
		heap_insert(table, row, GetCurrentCommandId(true), HEAP_INSERT_NO_LOGICAL, NULL);
	CacheInvalidateRelcache(table);
}

/*
 * Delete a row of the copy.  False when it is there no longer, or (without wait) another transaction is changing it.  The
 * copy may be of the past, and the place another row's by now; what SnapshotSelf sees now cannot be pruned before the
 * deletion, as our caller has a snapshot.
 */
static bool
delete_row(Relation table, const Mark *mark, bool wait)
{
	HeapTupleData row = {.t_self = mark->row};
	TM_FailureData ignored;
	Buffer		buffer;
	Mark		now;
	bool		same;

	if (!heap_fetch(table, SnapshotSelf, &row, &buffer, false))
		return false;
	same = read_row(&row, RelationGetDescr(table), &now) && memcmp(&now, mark, sizeof(Mark)) == 0;
	ReleaseBuffer(buffer);
	if (!same || lbt_heap_delete(table, &row.t_self, wait, &ignored) != TM_Ok)
		return false;
	CacheInvalidateRelcache(table);
	return true;
}

/*
 * Tell all backends of the index, or those that are part of it, and of their tables, as the server keeps plans until these
 * change.  Some may be gone meanwhile.
 */
static void
announce(Relation index)
{
	ListCell   *lc;

	foreach(lc, find_all_inheritors(RelationGetRelid(index), NoLock, NULL))
	{
		Oid			told[] = {lfirst_oid(lc), IndexGetRelation(lfirst_oid(lc), true)};

		for (int i = 0; i < lengthof(told); i++)
			if (exists(told[i]))
				CacheInvalidateRelcacheByRelid(told[i]);
	}
}

/*
 * Delete all rows of an index (SQL may have made more than one), unless it has just this mark.  Busy: another transaction is
 * changing one, or (with wait) has changed it, so that its row is to be read anew.
 */
static LbtMarkChange
delete_rows(Relation table, Relation index, const LbtIndexOptions *options, bool wait)
{
	LbtMarkChange change = options ? LBT_MARK_CHANGED : LBT_MARK_AS_BEFORE;
	ListCell   *lc;

	foreach(lc, rows_of(RelationGetRelid(index)))
	{
		const Mark *mark = lfirst(lc);

		if (options && mark->id == RelationGetRelid(index) &&
			memcmp(&mark->options, options, sizeof(LbtIndexOptions)) == 0)
			return LBT_MARK_AS_BEFORE;
		if (!delete_row(table, mark, wait))
			return LBT_MARK_BUSY;
		change = LBT_MARK_CHANGED;
	}
	return change;
}

void
lbt_marks_lock_all(void)
{
	Relation	table = open_marks(RowExclusiveLock);

	LockDatabaseObject(RelationRelationId, RelationGetRelid(table), 0, ExclusiveLock);
	table_close(table, NoLock);
}

LbtMarkChange
lbt_mark_write(Relation index, const LbtIndexOptions *options, bool many)
{
	Relation	table = open_marks(RowExclusiveLock);
	LbtMarkChange change;

	if (!many)
	{
		LockDatabaseObject(RelationRelationId, RelationGetRelid(table), 0, ShareLock);
		LockDatabaseObject(RelationRelationId, RelationGetRelid(index), 0, ExclusiveLock);
	}
	do
	{
		/* For one, it costs little to be sure. */
		copy_valid = copy_valid && many;
		need_copy();
		change = delete_rows(table, index, options, !many);
	} while (change == LBT_MARK_BUSY && !many);
	if (change == LBT_MARK_CHANGED)
	{
		if (options)
			insert_row(table, RelationGetRelid(index), options);
		announce(index);
	}
	table_close(table, NoLock);
	return change;
}

/* ---- following DDL ---- */

static bool
is_member(Oid oid, const Oid *oids, int n)
{
	for (int i = 0; i < n; i++)
		if (oids[i] == oid)
			return true;
	return false;
}

/* Delete a row, and insert it anew as that of an index, if there is one; unless another transaction is at it. */
static void
replace_row(Relation table, const Mark *mark, Oid index)
{
	LockRelationOid(RelationGetRelid(table), RowExclusiveLock);
	if (delete_row(table, mark, false) && OidIsValid(index))
		insert_row(table, index, &mark->options);
}

/*
 * Names are compared only where the command has a lock that keeps them as they are: what another session's command has just
 * changed this one may know but half.
 */
void
lbt_marks_follow(const Oid *changed, int n)
{
	Relation	table = open_marks(AccessShareLock);
	ListCell   *lc;

	need_copy();
	foreach(lc, marks)
	{
		const Mark *mark = lfirst(lc);
		Oid			index = index_of(mark);
		NameData	names[INDEXNAME + 1];

		if (!OidIsValid(index) ||
			(mark->id == index &&
			 (n == 0 || !(is_member(index, changed, n) || is_member(IndexGetRelation(index, true), changed, n) ||
						  is_member(get_rel_namespace(index), changed, n)))))
			continue;
		if (names_of(index, names) && (mark->id != index || memcmp(names, mark->names, sizeof(names)) != 0))
			replace_row(table, mark, index);
	}
	table_close(table, AccessShareLock);
}

void
lbt_marks_forget(const Oid *oids, int n, List *names)
{
	Relation	table = open_marks(AccessShareLock);
	ListCell   *lc;
	ListCell   *name;

	need_copy();
	foreach(lc, marks)
	{
		const Mark *mark = lfirst(lc);
		bool		gone = is_member(mark->id, oids, n);

		if (names != NIL && !gone && !exists(mark->id))
		{
			char	   *marked = quote_qualified_identifier(NameStr(mark->names[SCHEMANAME]), NameStr(mark->names[INDEXNAME]));

			foreach(name, names)
				gone = gone || strcmp(lfirst(name), marked) == 0;
			pfree(marked);
		}
		if (gone)
			replace_row(table, mark, InvalidOid);
	}
	table_close(table, AccessShareLock);
}
