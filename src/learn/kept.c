/*
 * kept.c - the table learnedbtree_settings; see kept.h.
 *
 * Rows are found by the table's OID, which pg_dump writes as a name, and the index's name: when data is restored
 * tables are there, but no indexes yet.  So a row may wait for its index, and for its being adopted again.
 *
 * The table is read and written as the server does with its catalogs, without asking for permission on it.
 */
#include "learn/kept.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/index.h"
#include "catalog/indexing.h"
#include "catalog/pg_am.h"
#include "commands/defrem.h"
#include "commands/extension.h"
#include "server/compat.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

enum
{
	COLUMN_RELID = 1,
	COLUMN_INDEXNAME,
	COLUMN_LEARNED,
	COLUMN_MAX_ERROR,
	COLUMN_RETRAIN_SPLITS,
	NCOLUMNS = COLUMN_RETRAIN_SPLITS
};

/* It is in the schema of the access method's handler; a table of that name that is not ours does not count. */
Oid
lbt_kept_table(void)
{
	Oid			am = get_am_oid("learnedbtree", true);
	HeapTuple	tuple = SearchSysCache1(AMOID, ObjectIdGetDatum(am));
	Oid			table;
	Oid			extension;

	if (!HeapTupleIsValid(tuple))
		return InvalidOid;
	table = get_relname_relid("learnedbtree_settings",
							  get_func_namespace(((Form_pg_am) GETSTRUCT(tuple))->amhandler));
	ReleaseSysCache(tuple);
	extension = get_extension_oid("learnedbtree", true);
	if (!OidIsValid(table) || !OidIsValid(extension) ||
		getExtensionOfObject(RelationRelationId, table) != extension ||
		get_rel_relkind(table) != RELKIND_RELATION)
		return InvalidOid;
	return table;
}

/* The row of an index, a copy; NULL when it has none. */
static HeapTuple
find_row(Relation kept, Oid table, const char *index)
{
	ScanKeyData key[2];
	SysScanDesc scan;
	HeapTuple	tuple;
	NameData	name;

	namestrcpy(&name, index);
	ScanKeyInit(&key[0], COLUMN_RELID, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(table));
	ScanKeyInit(&key[1], COLUMN_INDEXNAME, BTEqualStrategyNumber, F_NAMEEQ, NameGetDatum(&name));
	list_free(RelationGetIndexList(kept));	/* fills in rd_pkindex */
	scan = systable_beginscan(kept, kept->rd_pkindex, OidIsValid(kept->rd_pkindex), SnapshotSelf, 2, key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
		tuple = heap_copytuple(tuple);
	systable_endscan(scan);
	return tuple;
}

static int
get_column(Relation kept, HeapTuple tuple, int column)
{
	bool		isnull;
	Datum		value = heap_getattr(tuple, column, RelationGetDescr(kept), &isnull);

	if (isnull)
		return -1;
	return column == COLUMN_LEARNED ? DatumGetBool(value) : DatumGetInt32(value);
}

static void
get_options(Relation kept, HeapTuple tuple, LbtIndexOptions *options)
{
	options->learned = get_column(kept, tuple, COLUMN_LEARNED);
	options->max_error = get_column(kept, tuple, COLUMN_MAX_ERROR);
	options->retrain_splits = get_column(kept, tuple, COLUMN_RETRAIN_SPLITS);
}

/* Leaves the options as they are when there is no row. */
static void
get_row(Relation kept, Oid table, const char *index, LbtIndexOptions *options)
{
	HeapTuple	tuple = find_row(kept, table, index);

	if (HeapTupleIsValid(tuple))
	{
		get_options(kept, tuple, options);
		heap_freetuple(tuple);
	}
}

bool
lbt_kept_read(Oid table, const char *index, LbtIndexOptions *options)
{
	Oid			oid = lbt_kept_table();
	Oid			key;
	Relation	kept;

	*options = LBT_NO_INDEX_OPTIONS;
	if (!OidIsValid(oid) || oid == table)
		return true;
	if (!ConditionalLockRelationOid(oid, AccessShareLock))
		return false;
	kept = try_table_open(oid, NoLock);
	if (kept == NULL)
	{
		UnlockRelationOid(oid, AccessShareLock);
		return true;
	}
	list_free(RelationGetIndexList(kept));	/* fills in rd_pkindex */
	key = kept->rd_pkindex;
	if (OidIsValid(key) && !ConditionalLockRelationOid(key, AccessShareLock))
	{
		table_close(kept, AccessShareLock);
		return false;
	}
	get_row(kept, table, index, options);
	if (OidIsValid(key))
		UnlockRelationOid(key, AccessShareLock);
	table_close(kept, AccessShareLock);
	return true;
}

void
lbt_kept_read_locked(Oid table, const char *index, LbtIndexOptions *options)
{
	Oid			oid = lbt_kept_table();
	Relation	kept;

	*options = LBT_NO_INDEX_OPTIONS;
	if (!OidIsValid(oid))
		return;
	kept = table_open(oid, NoLock);
	get_row(kept, table, index, options);
	table_close(kept, NoLock);
}

static HeapTuple
form_row(Relation kept, Oid table, const char *index, const LbtIndexOptions *o)
{
	NameData	name;
	Datum		values[NCOLUMNS] = {ObjectIdGetDatum(table), NameGetDatum(&name), BoolGetDatum(o->learned > 0),
	Int32GetDatum(o->max_error), Int32GetDatum(o->retrain_splits)};
	bool		nulls[NCOLUMNS] = {false, false, o->learned < 0, o->max_error < 0, o->retrain_splits < 0};

	namestrcpy(&name, index);
	return heap_form_tuple(RelationGetDescr(kept), values, nulls);
}

bool
lbt_kept_lock(void)
{
	Oid			oid = lbt_kept_table();

	if (OidIsValid(oid))
		LockRelationOid(oid, RowExclusiveLock);
	return OidIsValid(oid);
}

void
lbt_kept_write(Oid table, const char *index, const LbtIndexOptions *options)
{
	Oid			oid = lbt_kept_table();
	Relation	kept;
	HeapTuple	old;

	if (!OidIsValid(oid))
		return;
	kept = table_open(oid, RowExclusiveLock);
	old = find_row(kept, table, index);
	if (HeapTupleIsValid(old) && lbt_any_index_option(options))
		CatalogTupleUpdate(kept, &old->t_self, form_row(kept, table, index, options));
	else if (HeapTupleIsValid(old))
		CatalogTupleDelete(kept, &old->t_self);
	else if (lbt_any_index_option(options))
		CatalogTupleInsert(kept, form_row(kept, table, index, options));
	table_close(kept, NoLock);
}

void
lbt_kept_rename(Oid table, const char *index, const char *renamed)
{
	Oid			oid = lbt_kept_table();
	Relation	kept;
	HeapTuple	row;
	HeapTuple	in_the_way;
	LbtIndexOptions options;

	if (!OidIsValid(oid))
		return;
	kept = table_open(oid, RowExclusiveLock);
	row = find_row(kept, table, index);
	if (HeapTupleIsValid(row))
	{
		/* Nobody's any more: of an index that was dropped while event triggers were off. */
		in_the_way = find_row(kept, table, renamed);
		if (HeapTupleIsValid(in_the_way))
			CatalogTupleDelete(kept, &in_the_way->t_self);
		get_options(kept, row, &options);
		CatalogTupleUpdate(kept, &row->t_self, form_row(kept, table, renamed, &options));
	}
	table_close(kept, NoLock);
}

static bool
is_lost(Relation kept, HeapTuple tuple, const List *names)
{
	bool		isnull;
	Oid			table = DatumGetObjectId(heap_getattr(tuple, COLUMN_RELID, RelationGetDescr(kept), &isnull));
	char	   *name = NameStr(*DatumGetName(heap_getattr(tuple, COLUMN_INDEXNAME, RelationGetDescr(kept), &isnull)));
	char	   *schema = get_namespace_name(get_rel_namespace(table));
	ListCell   *lc;
	Oid			index;

	/* Of another schema it is another index: this one's may be yet to be restored. */
	foreach(lc, names)
	{
		const char *const *dropped = lfirst(lc);

		if (strcmp(dropped[1], name) == 0 && (schema == NULL || strcmp(dropped[0], schema) == 0))
			break;
	}
	if (lc == NULL)
		return false;
	index = get_relname_relid(name, get_rel_namespace(table));
	return !OidIsValid(index) || IndexGetRelation(index, true) != table;
}

/* As the drop of an index is not to fail by this, a row that someone else has just deleted is fine. */
void
lbt_kept_forget(const List *names)
{
	Oid			oid = lbt_kept_table();
	Relation	kept;
	SysScanDesc scan;
	HeapTuple	tuple;

	if (names == NIL || !OidIsValid(oid))
		return;
	kept = try_table_open(oid, RowExclusiveLock);
	if (kept == NULL)
		return;					/* DROP EXTENSION was faster */
	scan = systable_beginscan(kept, InvalidOid, false, SnapshotSelf, 0, NULL);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		TM_FailureData ignored;

		if (is_lost(kept, tuple, names))
			(void) heap_delete(kept, &tuple->t_self, GetCurrentCommandId(true), InvalidSnapshot, true,
							   &ignored, false);
	}
	systable_endscan(scan);
	table_close(kept, NoLock);
}
