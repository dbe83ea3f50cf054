/*
 * marks.c - the table learnedbtree.marks; see marks.h.
 *
 * The table is read and written as the server does with its catalogs, without asking for permission on it.  It is read
 * by SnapshotSelf, which takes no predicate locks; a row that changes while it is read is read again, as the writer
 * invalidates the copy when it commits.
 */
#include "learn/marks.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/index.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/partition.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "commands/defrem.h"
#include "commands/extension.h"
#include "server/compat.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

enum
{
	COLUMN_SCHEMANAME = 1,
	COLUMN_TABLENAME,
	COLUMN_INDEXNAME,
	COLUMN_LEARNED,
	COLUMN_MAX_ERROR,
	COLUMN_RETRAIN_SPLITS,
	COLUMN_INDEXID,
	NCOLUMNS = COLUMN_INDEXID
};

typedef struct MarkName
{
	NameData	schema;
	NameData	index;
} MarkName;

typedef struct Mark
{
	MarkName	name;			/* key of by_name */
	Oid			index;			/* as the row has it; InvalidOid: none */
	LbtIndexOptions options;
} Mark;

typedef struct MarkById
{
	Oid			index;			/* hash key */
	LbtIndexOptions options;
} MarkById;

/* This backend's copy, in a context of its own. */
static MemoryContext copy_context = NULL;
static HTAB *by_id = NULL;
static HTAB *by_name = NULL;
static bool copy_valid = false;
static Oid	copied_table = InvalidOid;	/* InvalidOid: there was none */

/* Raised by invalidations, to notice one that comes while the copy is being made. */
static uint64 invalidations = 0;

static bool extension_known = false;
static bool extension_exists = false;

bool
lbt_marks_invalidated(Oid relid)
{
	if (OidIsValid(relid) && relid != copied_table)
		return false;
	copy_valid = false;
	invalidations++;
	return true;
}

void
lbt_marks_extension_changed(void)
{
	extension_known = false;
	copy_valid = false;
	invalidations++;
}

bool
lbt_extension_exists(void)
{
	if (unlikely(!extension_known))
	{
		uint64		before = invalidations;
		bool		exists = OidIsValid(get_am_oid("learnedbtree", true));

		extension_exists = exists;
		extension_known = before == invalidations;
		return exists;
	}
	return extension_exists;
}

/* The table's OID; InvalidOid when there is none, or it is not the extension's. */
static Oid
marks_table(void)
{
	Oid			schema = get_namespace_oid("learnedbtree", true);
	Oid			extension = get_extension_oid("learnedbtree", true);
	Oid			table = OidIsValid(schema) && OidIsValid(extension) ? get_relname_relid("marks", schema) : InvalidOid;

	return OidIsValid(table) && getExtensionOfObject(RelationRelationId, table) == extension &&
		get_rel_relkind(table) == RELKIND_RELATION ? table : InvalidOid;
}

static int
get_int(HeapTuple row, int column, TupleDesc desc)
{
	bool		isnull;
	Datum		value = heap_getattr(row, column, desc, &isnull);

	if (isnull)
		return -1;
	return column == COLUMN_LEARNED ? DatumGetBool(value) : DatumGetInt32(value);
}

/* What a row says; false when it lacks a name, as only a superuser's hand can make it. */
static bool
read_row(HeapTuple row, TupleDesc desc, Mark *mark)
{
	bool		isnull[3];
	Datum		schema = heap_getattr(row, COLUMN_SCHEMANAME, desc, &isnull[0]);
	Datum		index = heap_getattr(row, COLUMN_INDEXNAME, desc, &isnull[1]);
	Datum		id = heap_getattr(row, COLUMN_INDEXID, desc, &isnull[2]);

	if (isnull[0] || isnull[1])
		return false;
	memset(mark, 0, sizeof(*mark));
	namestrcpy(&mark->name.schema, NameStr(*DatumGetName(schema)));
	namestrcpy(&mark->name.index, NameStr(*DatumGetName(index)));
	mark->index = isnull[2] ? InvalidOid : DatumGetObjectId(id);
	mark->options = (LbtIndexOptions) {.learned = get_int(row, COLUMN_LEARNED, desc) != 0,
		.max_error = get_int(row, COLUMN_MAX_ERROR, desc),
	.retrain_splits = get_int(row, COLUMN_RETRAIN_SPLITS, desc)};
	return true;
}

static void
add_to_copy(const Mark *mark)
{
	Mark	   *named = hash_search(by_name, &mark->name, HASH_ENTER, NULL);

	*named = *mark;
	if (OidIsValid(mark->index))
	{
		MarkById   *found = hash_search(by_id, &mark->index, HASH_ENTER, NULL);

		found->options = mark->options;
	}
}

static void
copy_rows(Relation table)
{
	SysScanDesc scan = systable_beginscan(table, InvalidOid, false, SnapshotSelf, 0, NULL);
	HeapTuple	row;
	Mark		mark;

	while (HeapTupleIsValid(row = systable_getnext(scan)))
		if (read_row(row, RelationGetDescr(table), &mark))
			add_to_copy(&mark);
	systable_endscan(scan);
}

static void
empty_copy(void)
{
	HASHCTL		ctl = {.keysize = sizeof(Oid),.entrysize = sizeof(MarkById)};

	if (copy_context == NULL)
		copy_context = AllocSetContextCreate(TopMemoryContext, "learnedbtree marks", ALLOCSET_DEFAULT_SIZES);
	by_id = by_name = NULL;
	MemoryContextReset(copy_context);
	ctl.hcxt = copy_context;
	by_id = hash_create("learnedbtree marks by index", 64, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	ctl.keysize = sizeof(MarkName);
	ctl.entrysize = sizeof(Mark);
	by_name = hash_create("learnedbtree marks by name", 64, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

/* Bring the copy up to date; false when it cannot be just now. */
static bool
refresh(void)
{
	uint64		before;
	Oid			oid;
	Relation	table = NULL;

	if (likely(copy_valid))
		return true;
	if (!IsTransactionState() || HistoricSnapshotActive())
		return false;
	before = invalidations;
	oid = lbt_extension_exists() ? marks_table() : InvalidOid;
	copied_table = oid;			/* first, for the callback to know it */
	if (OidIsValid(oid))
	{
		if (!ConditionalLockRelationOid(oid, AccessShareLock))
			return false;
		table = try_table_open(oid, NoLock);
		if (table == NULL)
		{
			UnlockRelationOid(oid, AccessShareLock);
			return false;
		}
	}
	empty_copy();
	if (table != NULL)
	{
		copy_rows(table);
		table_close(table, AccessShareLock);
	}
	/* Without a table there is the middle of CREATE EXTENSION: nothing will tell when the table has come. */
	copy_valid = before == invalidations && (OidIsValid(oid) || !lbt_extension_exists());
	return true;
}

bool
lbt_marks_any(bool *sure)
{
	*sure = refresh() && copy_valid;
	return by_name != NULL && hash_get_num_entries(by_name) > 0;
}

/* The mark of an index in the copy. */
static const LbtIndexOptions *
find_in_copy(Oid index)
{
	const MarkById *found = hash_search(by_id, &index, HASH_FIND, NULL);
	const Mark *named;
	MarkName	name = {0};
	char	   *schema;
	char	   *relname;

	if (found)
		return &found->options;
	relname = get_rel_name(index);
	schema = relname ? get_namespace_name(get_rel_namespace(index)) : NULL;
	if (schema == NULL)
		return NULL;
	namestrcpy(&name.schema, schema);
	namestrcpy(&name.index, relname);
	named = by_name ? hash_search(by_name, &name, HASH_FIND, NULL) : NULL;

	/* Of that name once: another index's that has been renamed since. */
	if (named == NULL || (OidIsValid(named->index) && SearchSysCacheExists1(RELOID, ObjectIdGetDatum(named->index))))
		return NULL;
	return &named->options;
}

bool
lbt_mark_find(Relation index, LbtIndexOptions *options, bool *marked)
{
	const LbtIndexOptions *found = NULL;
	LbtIndexOptions copy = LBT_NO_INDEX_OPTIONS;
	uint64		before;
	bool		sure;

	*options = LBT_NO_INDEX_OPTIONS;
	*marked = false;
	if (!refresh())
		return false;
	sure = copy_valid;
	if (hash_get_num_entries(by_name) == 0)
		return sure;

	/* The copy stays what it is, even if what follows receives invalidations. */
	before = invalidations;
	found = find_in_copy(RelationGetRelid(index));
	if (found)
		copy = *found;
	else if (index->rd_rel->relispartition)
	{
		List	   *ancestors = get_partition_ancestors(RelationGetRelid(index));
		ListCell   *lc;

		foreach(lc, ancestors)
			if ((found = find_in_copy(lfirst_oid(lc))) != NULL)
			{
				copy = *found;
				break;
			}
		list_free(ancestors);
	}
	*marked = found != NULL;
	*options = copy;
	return sure && before == invalidations;
}

/* ---- writing ---- */

struct LbtMarkWriter
{
	Relation	table;
	HTAB	   *rows;			/* of WriterRow; NULL: for one index */
};

typedef struct WriterRow
{
	Oid			index;			/* hash key */
	bool		found;
	ItemPointerData tid;
	Oid			written;		/* the index that the row has */
	LbtIndexOptions options;
} WriterRow;

/* The index that a row is about, which may have been made anew under the old name; InvalidOid when there is none. */
static Oid
index_of(const Mark *mark)
{
	if (OidIsValid(mark->index) && SearchSysCacheExists1(RELOID, ObjectIdGetDatum(mark->index)))
		return mark->index;
	return get_relname_relid(NameStr(mark->name.index), get_namespace_oid(NameStr(mark->name.schema), true));
}

LbtMarkWriter *
lbt_marks_open(bool many)
{
	LbtMarkWriter *writer = palloc(sizeof(LbtMarkWriter));
	HASHCTL		ctl = {.keysize = sizeof(Oid),.entrysize = sizeof(WriterRow),.hcxt = CurrentMemoryContext};
	Oid			oid = marks_table();
	SysScanDesc scan;
	HeapTuple	row;
	Mark		mark;

	if (!OidIsValid(oid))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("the extension's table learnedbtree.marks does not exist"),
				 errhint("Drop the extension and create it again.")));
	writer->table = table_open(oid, many ? ShareRowExclusiveLock : RowExclusiveLock);
	writer->rows = NULL;
	if (!many)
		return writer;
	writer->rows = hash_create("learnedbtree marks to write", 256, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	scan = systable_beginscan(writer->table, InvalidOid, false, SnapshotSelf, 0, NULL);
	while (HeapTupleIsValid(row = systable_getnext(scan)))
	{
		Oid			index = read_row(row, RelationGetDescr(writer->table), &mark) ? index_of(&mark) : InvalidOid;
		WriterRow  *entry;
		bool		twice;

		if (!OidIsValid(index))
			continue;
		entry = hash_search(writer->rows, &index, HASH_ENTER, &twice);
		if (twice)
			CatalogTupleDelete(writer->table, &entry->tid);
		entry->found = true;
		entry->tid = row->t_self;
		entry->written = mark.index;
		entry->options = mark.options;
	}
	systable_endscan(scan);
	return writer;
}

void
lbt_marks_close(LbtMarkWriter *writer)
{
	table_close(writer->table, NoLock);
	if (writer->rows)
		hash_destroy(writer->rows);
	pfree(writer);
}

bool
lbt_mark_exists(const LbtMarkWriter *writer, Oid index)
{
	return hash_search(writer->rows, &index, HASH_FIND, NULL) != NULL;
}

/* The index's row; a writer of one scans for it, after having locked out others who write the same mark. */
static WriterRow
find_row(LbtMarkWriter *writer, Oid index)
{
	WriterRow	found = {.found = false};
	const WriterRow *entry;
	SysScanDesc scan;
	HeapTuple	row;
	Mark		mark;

	if (writer->rows)
	{
		entry = hash_search(writer->rows, &index, HASH_FIND, NULL);
		return entry ? *entry : found;
	}
	LockDatabaseObject(RelationRelationId, index, 0, ExclusiveLock);
	scan = systable_beginscan(writer->table, InvalidOid, false, SnapshotSelf, 0, NULL);
	while (!found.found && HeapTupleIsValid(row = systable_getnext(scan)))
		if (read_row(row, RelationGetDescr(writer->table), &mark) && index_of(&mark) == index)
			found = (WriterRow) {.index = index,.found = true,.tid = row->t_self,.written = mark.index,
			.options = mark.options};
	systable_endscan(scan);
	return found;
}

/* Insert an index's row.  Logical decoding is not to see it: a publication FOR ALL TABLES has this table, too. */
static void
insert_row(Relation table, Oid index, const LbtIndexOptions *o)
{
	Oid			relid = IndexGetRelation(index, true);
	char	   *names[3] = {get_namespace_name(get_rel_namespace(index)), get_rel_name(relid), get_rel_name(index)};
	NameData	name[3];
	Datum		values[NCOLUMNS] = {NameGetDatum(&name[0]), NameGetDatum(&name[1]), NameGetDatum(&name[2]),
		BoolGetDatum(o->learned != 0), Int32GetDatum(o->max_error), Int32GetDatum(o->retrain_splits),
	ObjectIdGetDatum(index)};
	bool		nulls[NCOLUMNS] = {[COLUMN_MAX_ERROR - 1] = o->max_error < 0,
	[COLUMN_RETRAIN_SPLITS - 1] = o->retrain_splits < 0};

	for (int i = 0; i < 3; i++)
		namestrcpy(&name[i], names[i] ? names[i] : "");
	heap_insert(table, heap_form_tuple(RelationGetDescr(table), values, nulls), GetCurrentCommandId(true),
				HEAP_INSERT_NO_LOGICAL, NULL);
}

/*
 * Tell all backends: of the table, for their copies; of the index, or those that are part of it; and of their tables,
 * as the server keeps plans until these change.
 */
static void
announce(Relation table, Relation index)
{
	List	   *parts = index->rd_rel->relkind == RELKIND_PARTITIONED_INDEX ?
		find_all_inheritors(RelationGetRelid(index), NoLock, NULL) : list_make1_oid(RelationGetRelid(index));
	ListCell   *lc;

	CacheInvalidateRelcache(table);
	foreach(lc, parts)
	{
		Oid			part = lfirst_oid(lc);
		Oid			heap = IndexGetRelation(part, true);

		if (!OidIsValid(heap))
			continue;			/* dropped meanwhile: nothing of it is locked but the root */
		CacheInvalidateRelcacheByRelid(part);
		CacheInvalidateRelcacheByRelid(heap);
	}
}

/* Delete an index's row; more than one, as only SQL can have made them, of a writer of one. */
static bool
delete_rows(LbtMarkWriter *writer, Oid index)
{
	WriterRow	row;
	bool		any = false;

	while ((row = find_row(writer, index)).found)
	{
		CatalogTupleDelete(writer->table, &row.tid);
		any = true;
		if (writer->rows)
			(void) hash_search(writer->rows, &index, HASH_REMOVE, NULL);
	}
	return any;
}

static bool
same_options(const LbtIndexOptions *a, const LbtIndexOptions *b)
{
	return (a->learned != 0) == (b->learned != 0) && a->max_error == b->max_error &&
		a->retrain_splits == b->retrain_splits;
}

bool
lbt_mark_write(LbtMarkWriter *writer, Relation index, const LbtIndexOptions *options)
{
	WriterRow	row = find_row(writer, RelationGetRelid(index));

	if (row.found && row.written == RelationGetRelid(index) && same_options(&row.options, options))
		return false;
	(void) delete_rows(writer, RelationGetRelid(index));
	insert_row(writer->table, RelationGetRelid(index), options);
	announce(writer->table, index);
	return true;
}

bool
lbt_mark_delete(LbtMarkWriter *writer, Relation index)
{
	if (!delete_rows(writer, RelationGetRelid(index)))
		return false;
	announce(writer->table, index);
	return true;
}

/* Delete a row, if nobody else is at it. */
static bool
delete_free(Relation table, ItemPointer row)
{
	TM_FailureData ignored;

	if (heap_delete(table, row, GetCurrentCommandId(true), InvalidSnapshot, false, &ignored, false) != TM_Ok)
		return false;
	CacheInvalidateRelcache(table);
	return true;
}

void
lbt_mark_forget(ItemPointer row)
{
	Relation	table = table_open(marks_table(), RowExclusiveLock);

	(void) delete_free(table, row);
	table_close(table, NoLock);
}

/* Do a row's names differ from those of its index? */
static bool
has_old_names(const Mark *mark, const char *tablename)
{
	char	   *table = get_rel_name(IndexGetRelation(mark->index, true));
	char	   *name = get_rel_name(mark->index);
	char	   *schema = get_namespace_name(get_rel_namespace(mark->index));

	return table && name && schema &&
		(strcmp(table, tablename) != 0 || strcmp(name, NameStr(mark->name.index)) != 0 ||
		 strcmp(schema, NameStr(mark->name.schema)) != 0);
}

/* Is the mark's index among the objects, or its table or schema? */
static bool
is_changed(Oid index, const Oid *changed, int nchanged)
{
	Oid			table = nchanged > 0 ? IndexGetRelation(index, true) : InvalidOid;
	Oid			schema = nchanged > 0 ? get_rel_namespace(index) : InvalidOid;

	for (int i = 0; i < nchanged; i++)
		if (changed[i] == index || changed[i] == table || changed[i] == schema)
			return true;
	return false;
}

void
lbt_marks_follow(const Oid *changed, int nchanged)
{
	Relation	table = table_open(marks_table(), RowExclusiveLock);
	SysScanDesc scan = systable_beginscan(table, InvalidOid, false, SnapshotSelf, 0, NULL);
	List	   *stale = NIL;
	ListCell   *lc;
	HeapTuple	row;

	/* First all rows, then the writing: SnapshotSelf sees what has been written. */
	while (HeapTupleIsValid(row = systable_getnext(scan)))
	{
		bool		isnull;
		Datum		tablename = heap_getattr(row, COLUMN_TABLENAME, RelationGetDescr(table), &isnull);
		Mark		mark;

		if (!read_row(row, RelationGetDescr(table), &mark) || isnull)
			continue;
		if (!OidIsValid(mark.index) || !SearchSysCacheExists1(RELOID, ObjectIdGetDatum(mark.index)) ?
			OidIsValid(index_of(&mark)) :
			is_changed(mark.index, changed, nchanged) && has_old_names(&mark, NameStr(*DatumGetName(tablename))))
			stale = lappend(stale, heap_copytuple(row));
	}
	systable_endscan(scan);
	foreach(lc, stale)
	{
		HeapTuple	old = lfirst(lc);
		Mark		mark;

		if (read_row(old, RelationGetDescr(table), &mark) && delete_free(table, &old->t_self))
			insert_row(table, index_of(&mark), &mark.options);
	}
	table_close(table, NoLock);
}

List *
lbt_marks_lost(bool (*matches) (void *arg, const char *schema, const char *table), void *arg, bool forget)
{
	Oid			oid = marks_table();
	List	   *lost = NIL;
	Relation	table;
	SysScanDesc scan;
	HeapTuple	row;
	Mark		mark;

	if (!OidIsValid(oid))
		return NIL;
	table = table_open(oid, RowExclusiveLock);
	scan = systable_beginscan(table, InvalidOid, false, SnapshotSelf, 0, NULL);
	while (HeapTupleIsValid(row = systable_getnext(scan)))
	{
		bool		isnull;
		Datum		tablename = heap_getattr(row, COLUMN_TABLENAME, RelationGetDescr(table), &isnull);

		if (!read_row(row, RelationGetDescr(table), &mark) || isnull ||
			!matches(arg, NameStr(mark.name.schema), NameStr(*DatumGetName(tablename))) ||
			OidIsValid(index_of(&mark)))
			continue;
		lost = lappend(lost, quote_qualified_identifier(NameStr(mark.name.schema), NameStr(mark.name.index)));
		if (forget)
			CatalogTupleDelete(table, &row->t_self);
	}
	systable_endscan(scan);
	if (forget && lost != NIL)
		CacheInvalidateRelcache(table);
	table_close(table, NoLock);
	return lost;
}
