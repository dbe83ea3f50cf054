/*
 * markwrite.c - writing the table learnedbtree.marks, for its functions and for DDL; see marks.h.
 *
 * As the server does with its catalogs, without asking for permission on it, and so that logical decoding does not see it.
 * src/README, "Serving btree indexes", says why these locks.
 */
#include "serve/marks.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "server/compat.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"

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
index_of(const LbtMark *mark)
{
	if (OidIsValid(mark->index) && SearchSysCacheExists1(RELOID, ObjectIdGetDatum(mark->index)))
		return mark->index;
	return get_relname_relid(NameStr(mark->name.index), get_namespace_oid(NameStr(mark->name.schema), true));
}

/* The table; an error where there is none. */
static Relation
open_marks(LOCKMODE mode)
{
	Oid			oid = lbt_marks_table();

	if (!OidIsValid(oid))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("the extension's table learnedbtree.marks does not exist"),
				 errhint("Drop the extension and create it again.")));
	return table_open(oid, mode);
}

LbtMarkWriter *
lbt_marks_open(bool many)
{
	LbtMarkWriter *writer = palloc(sizeof(LbtMarkWriter));
	HASHCTL		ctl = {.keysize = sizeof(Oid),.entrysize = sizeof(WriterRow),.hcxt = CurrentMemoryContext};
	SysScanDesc scan;
	HeapTuple	row;
	LbtMark		mark;

	writer->table = open_marks(RowExclusiveLock);
	writer->rows = NULL;

	/* No lock of the table's: DDL takes those. */
	LockDatabaseObject(RelationRelationId, RelationGetRelid(writer->table), 0, many ? ExclusiveLock : ShareLock);
	if (!many)
		return writer;
	writer->rows = hash_create("learnedbtree marks to write", 256, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	scan = systable_beginscan(writer->table, InvalidOid, false, SnapshotSelf, 0, NULL);
	while (HeapTupleIsValid(row = systable_getnext(scan)))
	{
		Oid			index = lbt_mark_read(row, RelationGetDescr(writer->table), &mark) ? index_of(&mark) : InvalidOid;
		WriterRow  *entry = OidIsValid(index) ? hash_search(writer->rows, &index, HASH_ENTER, NULL) : NULL;

		if (entry)
			*entry = (WriterRow) {.index = index,.found = true,.tid = row->t_self,.written = mark.index,
			.options = mark.options};
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
	LbtMark		mark;

	if (writer->rows)
	{
		entry = hash_search(writer->rows, &index, HASH_FIND, NULL);
		return entry ? *entry : found;
	}
	LockDatabaseObject(RelationRelationId, index, 0, ExclusiveLock);
	scan = systable_beginscan(writer->table, InvalidOid, false, SnapshotSelf, 0, NULL);
	while (!found.found && HeapTupleIsValid(row = systable_getnext(scan)))
		if (lbt_mark_read(row, RelationGetDescr(writer->table), &mark) && index_of(&mark) == index)
			found = (WriterRow) {.index = index,.found = true,.tid = row->t_self,.written = mark.index,
			.options = mark.options};
	systable_endscan(scan);
	return found;
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
	bool	   *nulls = palloc(desc->natts * sizeof(bool));
	char	   *names[3] = {get_namespace_name(get_rel_namespace(index)), get_rel_name(IndexGetRelation(index, true)),
	get_rel_name(index)};
	NameData	name[3];
	HeapTuple	row;

	memset(nulls, true, desc->natts * sizeof(bool));
	for (int i = 0; i < 3; i++)
	{
		namestrcpy(&name[i], names[i] ? names[i] : "");
		values[COLUMN_SCHEMANAME - 1 + i] = NameGetDatum(&name[i]);
		nulls[COLUMN_SCHEMANAME - 1 + i] = false;
	}
	values[COLUMN_LEARNED - 1] = BoolGetDatum(o->learned != 0);
	values[COLUMN_MAX_ERROR - 1] = Int32GetDatum(o->max_error);
	values[COLUMN_RETRAIN_SPLITS - 1] = Int32GetDatum(o->retrain_splits);
	values[COLUMN_INDEXID - 1] = ObjectIdGetDatum(index);
	nulls[COLUMN_LEARNED - 1] = nulls[COLUMN_INDEXID - 1] = false;
	nulls[COLUMN_MAX_ERROR - 1] = o->max_error < 0;
	nulls[COLUMN_RETRAIN_SPLITS - 1] = o->retrain_splits < 0;
	row = heap_form_tuple(desc, values, nulls);
	if (table->rd_rel->relhasindex)
		CatalogTupleInsert(table, row);
	else
		heap_insert(table, row, GetCurrentCommandId(true), HEAP_INSERT_NO_LOGICAL, NULL);
}

/*
 * Delete a row that was seen by SnapshotSelf since our caller's snapshot was taken, so that it cannot have been pruned.
 * Not TM_Ok: another transaction is at it, or (with wait) has changed it.
 */
static TM_Result
delete_row(Relation table, ItemPointer row, bool wait)
{
	TM_FailureData ignored;

	return heap_delete(table, row, GetCurrentCommandId(true), InvalidSnapshot, wait, &ignored, false);
}

/* Send an invalidation of a relation's relcache entries; nothing happens when it is gone. */
static void
invalidate(Oid relid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));

	if (!HeapTupleIsValid(tuple))
		return;
	CacheInvalidateRelcacheByTuple(tuple);
	ReleaseSysCache(tuple);
}

/*
 * Tell all backends: of the table, for their copies; of the index, or those that are part of it; and of their tables,
 * as the server keeps plans until these change.
 */
static void
announce(Relation table, Relation index)
{
	ListCell   *lc;

	CacheInvalidateRelcache(table);
	foreach(lc, find_all_inheritors(RelationGetRelid(index), NoLock, NULL))
	{
		invalidate(lfirst_oid(lc));
		invalidate(IndexGetRelation(lfirst_oid(lc), true));
	}
}

static bool
same_options(const LbtIndexOptions *a, const LbtIndexOptions *b)
{
	return (a->learned != 0) == (b->learned != 0) && a->max_error == b->max_error &&
		a->retrain_splits == b->retrain_splits;
}

LbtMarkChange
lbt_mark_write(LbtMarkWriter *writer, Relation index, const LbtIndexOptions *options)
{
	Oid			oid = RelationGetRelid(index);
	WriterRow	row = find_row(writer, oid);

	if (options ? row.found && row.written == oid && same_options(&row.options, options) : !row.found)
		return LBT_MARK_AS_BEFORE;

	/* More than one: SQL has made them, or DDL has replaced the one that we waited for. */
	for (; row.found; row = find_row(writer, oid))
	{
		if (delete_row(writer->table, &row.tid, writer->rows == NULL) != TM_Ok && writer->rows)
			return LBT_MARK_BUSY;
		if (writer->rows)
			(void) hash_search(writer->rows, &oid, HASH_REMOVE, NULL);
	}
	if (options)
		insert_row(writer->table, oid, options);
	announce(writer->table, index);
	return LBT_MARK_CHANGED;
}

/* ---- following DDL ---- */

/* Indexes that a command may have renamed or moved; and schemas of which it may have been all. */
typedef struct Changed
{
	HTAB	   *by_id;			/* of Oid */
	HTAB	   *by_name;		/* of LbtMarkName */
	const Oid  *objects;
	int			nobjects;
} Changed;

static LbtMarkName
mark_name(const char *schema, const char *index)
{
	LbtMarkName	name = {0};

	namestrcpy(&name.schema, schema);
	namestrcpy(&name.index, index);
	return name;
}

static void
add_changed(Changed *c, Oid index)
{
	char	   *name = get_rel_name(index);
	char	   *schema = name ? get_namespace_name(get_rel_namespace(index)) : NULL;

	(void) hash_search(c->by_id, &index, HASH_ENTER, NULL);
	if (schema)
	{
		LbtMarkName	key = mark_name(schema, name);

		(void) hash_search(c->by_name, &key, HASH_ENTER, NULL);
	}
}

static void
init_changed(Changed *c)
{
	HASHCTL		ctl = {.keysize = sizeof(Oid),.entrysize = sizeof(Oid),.hcxt = CurrentMemoryContext};

	c->by_id = hash_create("learnedbtree changed indexes", 64, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	ctl.keysize = ctl.entrysize = sizeof(LbtMarkName);
	c->by_name = hash_create("learnedbtree changed names", 64, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

/* What an object is is not told: one OID may be a relation's and a constraint's, and more indexes do no harm. */
static void
list_changed(Changed *c, const Oid *objects, int n)
{
	init_changed(c);
	c->objects = objects;
	c->nobjects = n;
	for (int i = 0; i < n; i++)
	{
		Oid			constraint_index = get_constraint_index(objects[i]);
		Relation	rel;

		if (OidIsValid(constraint_index))
			add_changed(c, constraint_index);
		switch (get_rel_relkind(objects[i]))
		{
			case RELKIND_INDEX:
			case RELKIND_PARTITIONED_INDEX:
				add_changed(c, objects[i]);
				break;
			case RELKIND_RELATION:
			case RELKIND_PARTITIONED_TABLE:
			case RELKIND_MATVIEW:
				rel = RelationIdGetRelation(objects[i]);	/* the command holds a lock on it */
				if (RelationIsValid(rel))
				{
					ListCell   *lc;

					foreach(lc, RelationGetIndexList(rel))
						add_changed(c, lfirst_oid(lc));
					RelationClose(rel);
				}
				break;
			default:
				break;
		}
	}
}

/* Do a row's names differ from those of its index? */
static bool
has_old_names(const LbtMark *mark, const char *tablename)
{
	char	   *table = get_rel_name(IndexGetRelation(mark->index, true));
	char	   *name = get_rel_name(mark->index);
	char	   *schema = get_namespace_name(get_rel_namespace(mark->index));

	return table && name && schema &&
		(strcmp(table, tablename) != 0 || strcmp(name, NameStr(mark->name.index)) != 0 ||
		 strcmp(schema, NameStr(mark->name.schema)) != 0);
}

/* Is a row to be brought up to date? */
static bool
is_stale(const Changed *c, const LbtMark *mark, const char *tablename)
{
	if (!OidIsValid(mark->index))
		return hash_search(c->by_name, &mark->name, HASH_FIND, NULL) != NULL;
	if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(mark->index)))
		return OidIsValid(index_of(mark));
	if (hash_search(c->by_id, &mark->index, HASH_FIND, NULL) != NULL)
		return has_old_names(mark, tablename);
	for (int i = 0; i < c->nobjects; i++)
		if (get_rel_namespace(mark->index) == c->objects[i])
			return has_old_names(mark, tablename);
	return false;
}

/* Rows, copies of them, that are stale, or (dropped) of indexes that are gone. */
static List *
list_rows(const Changed *c, bool dropped)
{
	Relation	table = open_marks(AccessShareLock);
	SysScanDesc scan = systable_beginscan(table, InvalidOid, false, SnapshotSelf, 0, NULL);
	List	   *list = NIL;
	HeapTuple	row;

	while (HeapTupleIsValid(row = systable_getnext(scan)))
	{
		bool		isnull;
		Datum		tablename = heap_getattr(row, COLUMN_TABLENAME, RelationGetDescr(table), &isnull);
		LbtMark		mark;

		if (!lbt_mark_read(row, RelationGetDescr(table), &mark) || isnull)
			continue;
		if (dropped ? (OidIsValid(mark.index) && hash_search(c->by_id, &mark.index, HASH_FIND, NULL) != NULL) ||
			(hash_search(c->by_name, &mark.name, HASH_FIND, NULL) != NULL &&
			 !(OidIsValid(mark.index) && SearchSysCacheExists1(RELOID, ObjectIdGetDatum(mark.index)))) :
			is_stale(c, &mark, NameStr(*DatumGetName(tablename))))
			list = lappend(list, heap_copytuple(row));
	}
	systable_endscan(scan);
	table_close(table, AccessShareLock);
	return list;
}

/* Delete rows, and unless they are of dropped indexes, insert them anew. */
static void
rewrite_rows(List *rows, bool dropped)
{
	Relation	table;
	ListCell   *lc;

	if (rows == NIL)
		return;
	table = open_marks(RowExclusiveLock);
	foreach(lc, rows)
	{
		HeapTuple	row = lfirst(lc);
		LbtMark		mark;

		if (!lbt_mark_read(row, RelationGetDescr(table), &mark) || delete_row(table, &row->t_self, false) != TM_Ok)
			continue;
		if (!dropped)
			insert_row(table, index_of(&mark), &mark.options);
		CacheInvalidateRelcache(table);
	}
	table_close(table, NoLock);
}

void
lbt_marks_follow(const Oid *changed, int nchanged)
{
	Changed		c;

	list_changed(&c, changed, nchanged);
	rewrite_rows(list_rows(&c, false), false);
}

void
lbt_marks_forget(const Oid *oids, char *const *schemas, char *const *names, int n)
{
	Changed		c = {.nobjects = 0};

	init_changed(&c);
	for (int i = 0; i < n; i++)
	{
		LbtMarkName	key = mark_name(schemas[i], names[i]);

		(void) hash_search(c.by_id, &oids[i], HASH_ENTER, NULL);
		(void) hash_search(c.by_name, &key, HASH_ENTER, NULL);
	}
	rewrite_rows(list_rows(&c, true), true);
}

List *
lbt_marks_lost(bool (*matches) (void *arg, const char *schema, const char *table), void *arg, bool forget)
{
	Oid			oid = lbt_marks_table();
	List	   *lost = NIL;
	Relation	table;
	SysScanDesc scan;
	HeapTuple	row;
	LbtMark		mark;

	if (!OidIsValid(oid))
		return NIL;
	table = table_open(oid, RowExclusiveLock);
	scan = systable_beginscan(table, InvalidOid, false, SnapshotSelf, 0, NULL);
	while (HeapTupleIsValid(row = systable_getnext(scan)))
	{
		bool		isnull;
		Datum		tablename = heap_getattr(row, COLUMN_TABLENAME, RelationGetDescr(table), &isnull);

		if (!lbt_mark_read(row, RelationGetDescr(table), &mark) || isnull ||
			!matches(arg, NameStr(mark.name.schema), NameStr(*DatumGetName(tablename))) ||
			OidIsValid(index_of(&mark)))
			continue;
		if (forget && delete_row(table, &row->t_self, false) != TM_Ok)
			continue;
		lost = lappend(lost, quote_qualified_identifier(NameStr(mark.name.schema), NameStr(mark.name.index)));
	}
	systable_endscan(scan);
	if (forget && lost != NIL)
		CacheInvalidateRelcache(table);
	table_close(table, NoLock);
	return lost;
}
