/*
 * alter.c - learnedbtree_set(), and what ALTER INDEX may not do to the indexes that it is for.
 *
 * These are the indexes of primary keys and unique constraints (learn/kept.h says why).  To alter one of them
 * the server has opened it, which has loaded this library; so the hook (changes.c) sees every change.
 */
#include "sql/alter.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/reloptions.h"
#include "access/table.h"
#include "access/xact.h"
#include "am/am.h"
#include "catalog/index.h"
#include "catalog/indexing.h"
#include "fmgr.h"
#include "learn/settings.h"
#include "lib/stringinfo.h"
#include "nodes/makefuncs.h"
#include "sql/index_arg.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

PG_FUNCTION_INFO_V1(learnedbtree_set);

/* ---- ALTER INDEX ---- */

/* The pg_class tuple that the current command has written, a copy. */
static HeapTuple
get_new_class(Oid relid)
{
	Relation	catalog = table_open(RelationRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, Anum_pg_class_oid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(relid));
	scan = systable_beginscan(catalog, ClassOidIndexId, true, SnapshotSelf, 1, &key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
		tuple = heap_copytuple(tuple);
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	return tuple;
}

/* An index's name as an argument in SQL. */
static char *
as_literal(Oid index)
{
	return quote_literal_cstr(DatumGetCString(DirectFunctionCall1(regclassout, ObjectIdGetDatum(index))));
}

static void
refuse_own_options(HeapTuple class)
{
	Oid			index = ((Form_pg_class) GETSTRUCT(class))->oid;
	bool		none;
	Datum		options = SysCacheGetAttr(RELOID, class, Anum_pg_class_reloptions, &none);
	ListCell   *lc;

	foreach(lc, none ? NIL : untransformRelOptions(options))
	{
		DefElem    *option = lfirst_node(DefElem, lc);

		if (lbt_is_own_option(option->defname))
			ereport(ERROR,
					(errcode(ERRCODE_WRONG_OBJECT_TYPE),
					 errmsg("cannot set \"%s\" as an option of index \"%s\", which belongs to a constraint",
							option->defname, get_rel_name(index)),
					 errdetail("It would become part of the constraint's definition, and btree would refuse it when a dump is restored."),
					 errhint("Use learnedbtree_set(%s, '%s', ...).", as_literal(index), option->defname)));
	}
}

/*
 * REINDEX CONCURRENTLY makes a copy of an adopted index, of btree's operator classes and our access method, and
 * leaves it, invalid, when it fails.  Nothing else but this would have DROP EXTENSION see it.
 */
void
lbt_note_create(Oid relid)
{
	HeapTuple	tuple;
	Form_pg_class class;

	if (!OidIsValid(lbt_am_oid()))
		return;
	tuple = get_new_class(relid);
	if (!HeapTupleIsValid(tuple))
		return;
	class = (Form_pg_class) GETSTRUCT(tuple);
	if ((class->relkind == RELKIND_INDEX || class->relkind == RELKIND_PARTITIONED_INDEX) &&
		class->relam == lbt_am_oid())
		lbt_depend_on_am(relid);
	heap_freetuple(tuple);
}

void
lbt_note_alter(Oid relid)
{
	const char *name;
	HeapTuple	tuple;

	if (!lbt_is_our_index(relid) || !lbt_is_constraint_index(relid))
		return;
	tuple = get_new_class(relid);
	if (!HeapTupleIsValid(tuple))
		return;
	refuse_own_options(tuple);
	name = get_rel_name(relid);	/* still the old one */
	if (strcmp(name, NameStr(((Form_pg_class) GETSTRUCT(tuple))->relname)) != 0)
		lbt_kept_rename(IndexGetRelation(relid, false), name,
						NameStr(((Form_pg_class) GETSTRUCT(tuple))->relname));
	heap_freetuple(tuple);
}

/* ---- learnedbtree_set() ---- */

static char *
text_argument(FunctionCallInfo fcinfo, int n)
{
	return PG_ARGISNULL(n) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(n));
}

/* One of our options, by its name. */
static int *
option_of(LbtIndexOptions *options, const char *name)
{
	return strcmp(name, "learned") == 0 ? &options->learned :
		strcmp(name, "max_error") == 0 ? &options->max_error : &options->retrain_splits;
}

/* An option's value as a storage parameter would take it; an error when it would not. */
static int
parse_value(const char *name, const char *value)
{
	DefElem    *option = makeDefElem(pstrdup(name), (Node *) makeString(pstrdup(value)), -1);
	Datum		reloptions = transformRelOptions((Datum) 0, list_make1(option), NULL, NULL, false, false);
	LbtIndexOptions parsed = lbt_own_options((LbtOptions *) lbt_options(reloptions, true));

	return *option_of(&parsed, name);
}

static void
set_option(const char *name, const char *value, LbtIndexOptions *options)
{
	if (name == NULL || !lbt_is_own_option(name))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("unrecognized option \"%s\"", name ? name : "NULL"),
				 errhint("Options are learned, max_error and retrain_splits; those of btree are set by ALTER INDEX.")));
	*option_of(options, name) = value ? parse_value(name, value) : -1;
}

static void
check_settable(Relation index, const char *option)
{
	const char *name = RelationGetRelationName(index);

	if (!lbt_is_constraint_index(RelationGetRelid(index)))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("index \"%s\" does not belong to a primary key or unique constraint", name),
				 errhint("Use ALTER INDEX %s SET (%s = ...).", quote_identifier(name), option)));
	if (RelationUsesLocalBuffers(index))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("temporary indexes have no model"),
				 errhint("There is nothing to set.")));
}

Datum
learnedbtree_set(PG_FUNCTION_ARGS)
{
	Relation	index = lbt_open_index(lbt_index_argument(fcinfo), AccessShareLock, LBT_MAY_CHANGE);
	Oid			table = index->rd_index->indrelid;
	char	   *option = text_argument(fcinfo, 1);
	char	   *value = text_argument(fcinfo, 2);
	LbtIndexOptions options;

	lbt_forbid_readonly("learnedbtree_set()");
	LockRelation(index, ShareUpdateExclusiveLock);
	if (!lbt_kept_lock())
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("the extension's table learnedbtree_settings does not exist"),
				 errhint("ALTER EXTENSION learnedbtree UPDATE, or drop the extension and create it again.")));
	lbt_kept_read_locked(table, RelationGetRelationName(index), &options);
	set_option(option, value, &options);
	check_settable(index, option);
	lbt_kept_write(table, RelationGetRelationName(index), &options);
	CacheInvalidateRelcache(index);
	index_close(index, NoLock);
	CommandCounterIncrement();	/* the same statement may set another */
	PG_RETURN_VOID();
}

/* ---- release ---- */

static void
append_option(StringInfo s, const char *name, int value)
{
	if (value >= 0)
		appendStringInfo(s, "%s%s=%d", s->len > 0 ? ", " : "", name, value);
}

char *
lbt_forget_settings(Relation index)
{
	Oid			table = index->rd_index->indrelid;
	LbtIndexOptions options;
	LbtIndexOptions none = LBT_NO_INDEX_OPTIONS;
	StringInfoData s;

	if (!lbt_kept_lock())
		return NULL;
	lbt_kept_read_locked(table, RelationGetRelationName(index), &options);
	if (!lbt_any_index_option(&options))
		return NULL;
	lbt_kept_write(table, RelationGetRelationName(index), &none);
	initStringInfo(&s);
	if (options.learned >= 0)
		appendStringInfo(&s, "learned=%s", options.learned ? "on" : "off");
	append_option(&s, "max_error", options.max_error);
	append_option(&s, "retrain_splits", options.retrain_splits);
	return s.data;
}
