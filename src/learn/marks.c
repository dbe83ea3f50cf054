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

/* The row of an index, a copy; NULL when it has none. */
static HeapTuple
find_row(Relation table, Relation index, Mark *mark)
{
	SysScanDesc scan = systable_beginscan(table, InvalidOid, false, SnapshotSelf, 0, NULL);
	const char *schema = get_namespace_name(RelationGetNamespace(index));
	HeapTuple	row;
	HeapTuple	found = NULL;

	while (found == NULL && HeapTupleIsValid(row = systable_getnext(scan)))
	{
		if (!read_row(row, RelationGetDescr(table), mark))
			continue;
		if (mark->index == RelationGetRelid(index) ||
			(strcmp(NameStr(mark->name.index), RelationGetRelationName(index)) == 0 &&
			 strcmp(NameStr(mark->name.schema), schema) == 0 &&
			 !(OidIsValid(mark->index) && SearchSysCacheExists1(RELOID, ObjectIdGetDatum(mark->index)))))
			found = heap_copytuple(row);
	}
	systable_endscan(scan);
	return found;
}

static HeapTuple
form_row(Relation table, Relation index, const LbtIndexOptions *o)
{
	Oid			relid = index->rd_index->indrelid;
	NameData	schema;
	NameData	tablename;
	Datum		values[NCOLUMNS] = {NameGetDatum(&schema), NameGetDatum(&tablename),
		NameGetDatum(&index->rd_rel->relname), BoolGetDatum(o->learned != 0), Int32GetDatum(o->max_error),
	Int32GetDatum(o->retrain_splits), ObjectIdGetDatum(RelationGetRelid(index))};
	bool		nulls[NCOLUMNS] = {[COLUMN_MAX_ERROR - 1] = o->max_error < 0,
	[COLUMN_RETRAIN_SPLITS - 1] = o->retrain_splits < 0};
	char	   *name = get_rel_name(relid);

	namestrcpy(&schema, get_namespace_name(RelationGetNamespace(index)));
	namestrcpy(&tablename, name ? name : "");
	return heap_form_tuple(RelationGetDescr(table), values, nulls);
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

/* The table, locked for writing, and against others who write the same index's mark. */
static Relation
open_for_writing(Relation index)
{
	Oid			oid = marks_table();

	if (!OidIsValid(oid))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("the extension's table learnedbtree.marks does not exist"),
				 errhint("Drop the extension and create it again.")));
	LockDatabaseObject(RelationRelationId, RelationGetRelid(index), 0, ExclusiveLock);
	return table_open(oid, RowExclusiveLock);
}

static bool
same_options(const LbtIndexOptions *a, const LbtIndexOptions *b)
{
	return (a->learned != 0) == (b->learned != 0) && a->max_error == b->max_error &&
		a->retrain_splits == b->retrain_splits;
}

bool
lbt_mark_write(Relation index, const LbtIndexOptions *options)
{
	Relation	table = open_for_writing(index);
	Mark		mark;
	HeapTuple	old = find_row(table, index, &mark);
	bool		changed = old == NULL || !same_options(&mark.options, options) ||
		mark.index != RelationGetRelid(index);

	if (changed)
	{
		if (old)
			CatalogTupleUpdate(table, &old->t_self, form_row(table, index, options));
		else
			CatalogTupleInsert(table, form_row(table, index, options));
		announce(table, index);
	}
	table_close(table, NoLock);
	return changed;
}

bool
lbt_mark_delete(Relation index)
{
	Relation	table = open_for_writing(index);
	Mark		mark;
	HeapTuple	old = find_row(table, index, &mark);

	if (old)
	{
		CatalogTupleDelete(table, &old->t_self);
		announce(table, index);
	}
	table_close(table, NoLock);
	return old != NULL;
}

List *
lbt_marks_lost(void)
{
	HASH_SEQ_STATUS status;
	const Mark *mark;
	List	   *candidates = NIL;
	List	   *lost = NIL;
	ListCell   *lc;

	if (!refresh())
		return NIL;

	/* Names first: looking them up may receive invalidations. */
	hash_seq_init(&status, by_name);
	while ((mark = hash_seq_search(&status)) != NULL)
	{
		Mark	   *kept = palloc(sizeof(Mark));

		*kept = *mark;
		candidates = lappend(candidates, kept);
	}
	foreach(lc, candidates)
	{
		mark = lfirst(lc);
		if (OidIsValid(mark->index) && SearchSysCacheExists1(RELOID, ObjectIdGetDatum(mark->index)))
			continue;
		if (OidIsValid(get_relname_relid(NameStr(mark->name.index),
										 get_namespace_oid(NameStr(mark->name.schema), true))))
			continue;
		lost = lappend(lost, quote_qualified_identifier(NameStr(mark->name.schema), NameStr(mark->name.index)));
	}
	return lost;
}
