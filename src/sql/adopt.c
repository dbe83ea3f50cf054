/*
 * adopt.c - learnedbtree_adopt(), learnedbtree_release(): marks of btree indexes (serve/marks.h), one by one or all of
 * the tables that a pattern names.
 *
 * Table and index are locked as a reader of them does, until the end of the transaction, so that the index is not dropped
 * meanwhile.  Nobody waits for that but who wants to drop or rebuild it; and what this waits for are only those.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/xact.h"
#include "am/am.h"
#include "catalog/catalog.h"
#include "catalog/dependency.h"
#include "catalog/index.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "catalog/pg_inherits.h"
#include "commands/defrem.h"
#include "commands/extension.h"
#include "fmgr.h"
#include "funcapi.h"
#include "registry/xact.h"
#include "serve/marks.h"
#include "train/train.h"
#include "miscadmin.h"
#include "serve/serve.h"
#include "server/compat.h"
#include "sql/index_arg.h"
#include "sql/pattern.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

PG_FUNCTION_INFO_V1(learnedbtree_adopt);
PG_FUNCTION_INFO_V1(learnedbtree_release);
PG_FUNCTION_INFO_V1(learnedbtree_adopt_all);
PG_FUNCTION_INFO_V1(learnedbtree_release_all);

/* Why something is not done: the reason goes on from "cannot adopt index ...: ". */
typedef struct Refusal
{
	int			sqlstate;
	const char *reason;			/* NULL: it may be done */
	const char *hint;
} Refusal;

/* ---- what may be marked ---- */

static Refusal
refuse(int sqlstate, const char *reason, const char *hint)
{
	return (Refusal) {.sqlstate = sqlstate,.reason = reason,.hint = hint};
}

/* Is there anything about the index that forbids a mark?  The caller's rights first. */
static Refusal
check_markable(Relation index)
{
	const char *reason = lbt_serve_unfit(index);
	bool		partitioned = index->rd_rel->relkind == RELKIND_PARTITIONED_INDEX;
	LbtKeySpec	spec;

	if (!lbt_relation_ownercheck(RelationGetRelid(index), GetUserId()))
		return refuse(ERRCODE_INSUFFICIENT_PRIVILEGE, "it belongs to another user",
					  "Only the owner of its table may do this.");
	if (index->rd_rel->relam == lbt_am_oid())
		return refuse(ERRCODE_WRONG_OBJECT_TYPE, "it is a learnedbtree index, which needs no mark",
					  "Its options are set by ALTER INDEX: SET (learned = off), for one.");
	if (!lbt_is_btree(index))
		return refuse(ERRCODE_WRONG_OBJECT_TYPE, reason, "Only btree indexes can be served.");
	if (!index->rd_index->indisvalid)
		return refuse(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, "it is not valid",
					  partitioned ? "Attach an index of each partition to it first." :
					  "Its build did not finish; REINDEX it or drop it.");
	if (reason)
		return refuse(ERRCODE_FEATURE_NOT_SUPPORTED, reason, NULL);
	lbt_keyspec_init(&spec, index);
	if (spec.ncolumns == 0)
		return refuse(ERRCODE_FEATURE_NOT_SUPPORTED, "the type of the first key column has no key code", NULL);
	if (!partitioned && lbt_has_old_format(index))
		return refuse(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, "it has the format of PostgreSQL 11 or older",
					  "REINDEX it first.");
	return refuse(0, NULL, NULL);
}

/* Open an index, its table locked before it, as everybody else does; NULL when there is no such relation (any more). */
static Relation
open_after_table(Oid relid)
{
	Oid			table = IndexGetRelation(relid, true);
	Relation	rel;

	if (OidIsValid(table))
		LockRelationOid(table, AccessShareLock);
	rel = try_relation_open(relid, AccessShareLock);
	if (rel != NULL && OidIsValid(table) && IndexGetRelation(relid, true) != table)
	{
		relation_close(rel, NoLock);
		return NULL;			/* dropped, and its OID another's */
	}
	return rel;
}

/* Open an index for its mark to be changed; an error when it is none. */
static Relation
open_index(Oid relid)
{
	Relation	rel = open_after_table(relid);

	if (rel == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("relation with OID %u does not exist", relid)));
	if (rel->rd_rel->relkind != RELKIND_INDEX && rel->rd_rel->relkind != RELKIND_PARTITIONED_INDEX)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not an index", RelationGetRelationName(rel)),
				 errhint("Name an index: that of a primary key or unique constraint has the constraint's name.")));
	return rel;
}

/* ---- marking ---- */

/* Adopt with these options, or (NULL) release; for the index, and all that are part of it, see to its model. */
static LbtMarkChange
mark(LbtMarkWriter *writer, Relation index, const LbtIndexOptions *options)
{
	LbtMarkChange change = lbt_mark_write(writer, index, options);
	ListCell   *lc;

	if (change != LBT_MARK_CHANGED)
		return change;
	foreach(lc, find_all_inheritors(RelationGetRelid(index), NoLock, NULL))
	{
		if (options && options->learned)
			lbt_xact_want(lfirst_oid(lc));
		else
			lbt_xact_forget(lfirst_oid(lc));
	}
	return change;
}

/* The same, of one index; false when it is as before. */
static bool
mark_one(Relation index, const LbtIndexOptions *options)
{
	LbtMarkWriter *writer = lbt_marks_open(false);
	LbtMarkChange change = mark(writer, index, options);

	lbt_marks_close(writer);
	CommandCounterIncrement();	/* the same statement may mark it once more */
	return change == LBT_MARK_CHANGED;
}

/* The options that a function's arguments give, from this one on. */
static LbtIndexOptions
options_of(FunctionCallInfo fcinfo, int first)
{
	LbtIndexOptions options = {.learned = PG_ARGISNULL(first) || PG_GETARG_BOOL(first),
		.max_error = PG_ARGISNULL(first + 1) ? -1 : PG_GETARG_INT32(first + 1),
	.retrain_splits = PG_ARGISNULL(first + 2) ? -1 : PG_GETARG_INT32(first + 2)};

	if (!PG_ARGISNULL(first + 1) && (options.max_error < 1 || options.max_error > LBT_MAX_ERROR_LIMIT))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("value %d out of bounds for option \"max_error\"", options.max_error),
				 errdetail("Valid values are between \"1\" and \"%d\".", LBT_MAX_ERROR_LIMIT)));
	if (!PG_ARGISNULL(first + 2) && options.retrain_splits < 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("value %d out of bounds for option \"retrain_splits\"", options.retrain_splits),
				 errdetail("Valid values are between \"1\" and \"%d\".", INT_MAX)));
	return options;
}

Datum
learnedbtree_adopt(PG_FUNCTION_ARGS)
{
	Oid			relid = lbt_index_argument(fcinfo);
	LbtIndexOptions options = options_of(fcinfo, 1);
	Relation	index;
	Refusal		refusal;

	lbt_forbid_readonly("learnedbtree_adopt()");
	index = open_index(relid);
	refusal = check_markable(index);
	if (refusal.reason)
		ereport(ERROR,
				(errcode(refusal.sqlstate),
				 errmsg("cannot adopt index \"%s\": %s", RelationGetRelationName(index), refusal.reason),
				 refusal.hint ? errhint("%s", refusal.hint) : 0));
	if (!mark_one(index, &options))
		ereport(NOTICE,
				(errmsg("index \"%s\" is adopted already, with the same options", RelationGetRelationName(index))));
	relation_close(index, NoLock);
	lbt_tell_not_loaded();
	PG_RETURN_VOID();
}

Datum
learnedbtree_release(PG_FUNCTION_ARGS)
{
	Oid			relid = lbt_index_argument(fcinfo);
	Relation	index;

	lbt_forbid_readonly("learnedbtree_release()");
	index = open_index(relid);
	if (!lbt_relation_ownercheck(relid, GetUserId()))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("cannot release index \"%s\": it belongs to another user", RelationGetRelationName(index)),
				 errhint("Only the owner of its table may do this.")));
	if (!mark_one(index, NULL))
	{
		LbtIndexOptions options;
		bool		marked;

		(void) lbt_mark_find(index, &options, &marked);
		if (marked)
			ereport(NOTICE,
					(errmsg("index \"%s\" has no mark of its own, but that of a partitioned index which it is part of",
							RelationGetRelationName(index)),
					 errhint("Release that one, or exclude this one: learnedbtree_adopt(..., learned => false).")));
		else
			ereport(NOTICE,
					(errmsg("index \"%s\" is not adopted", RelationGetRelationName(index))));
	}
	relation_close(index, NoLock);
	PG_RETURN_VOID();
}

/* ---- all of a pattern ---- */

typedef struct Listed
{
	Oid			table;
	Oid			index;
} Listed;

static int
compare_listed(const ListCell *a, const ListCell *b)
{
	const Listed *x = lfirst(a);
	const Listed *y = lfirst(b);

	if (x->table != y->table)
		return x->table < y->table ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

static bool
names_match(void *pattern, const char *schema, const char *table)
{
	const LbtTablePattern *p = pattern;

	return lbt_glob_matches(&p->table, table) && (!p->has_schema || lbt_glob_matches(&p->schema, schema));
}

/* Is it a user's table that the pattern names? */
static bool
table_matches(Oid table, LbtTablePattern *pattern)
{
	Oid			namespace = get_rel_namespace(table);
	char	   *name = get_rel_name(table);
	char	   *schema = get_namespace_name(namespace);

	if (name == NULL || schema == NULL || IsCatalogRelationOid(table) || IsCatalogNamespace(namespace) ||
		IsToastNamespace(namespace) || strcmp(schema, "information_schema") == 0)
		return false;
	return names_match(pattern, schema, name);
}

/* Those of partitioned indexes' parts are left to the mark of the whole. */
static List *
list_indexes(LbtTablePattern *pattern)
{
	List	   *list = NIL;
	Relation	catalog = table_open(IndexRelationId, AccessShareLock);
	SysScanDesc scan = systable_beginscan(catalog, InvalidOid, false, NULL, 0, NULL);
	HeapTuple	tuple;

	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_index form = (Form_pg_index) GETSTRUCT(tuple);
		Listed	   *listed;

		if (get_rel_relispartition(form->indexrelid) || !table_matches(form->indrelid, pattern))
			continue;
		listed = palloc(sizeof(Listed));
		*listed = (Listed) {.table = form->indrelid,.index = form->indexrelid};
		list = lappend(list, listed);
	}
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	list_sort(list, compare_listed);
	return list;
}

/* Why one of many should not be adopted, or NULL.  Tables of extensions are left out: their scripts may not expect it. */
static const char *
why_skip(Relation index)
{
	Refusal		refusal = check_markable(index);
	Oid			extension = getExtensionOfObject(RelationRelationId, index->rd_index->indrelid);

	if (refusal.reason)
		return refusal.reason;
	if (OidIsValid(extension))
		return psprintf("its table belongs to the extension \"%s\"", get_extension_name(extension));
	return NULL;
}

/*
 * Adopt one of many, or (options are NULL) release it; the reason when it is skipped.  Locks are not waited for, and given
 * back: an index that is dropped before we commit leaves its mark, which nobody minds.
 */
static const char *
mark_listed(LbtMarkWriter *writer, Oid oid, const LbtIndexOptions *options)
{
	Oid			table = IndexGetRelation(oid, true);
	const char *reason;
	Relation	index;

	if (!OidIsValid(table) || !ConditionalLockRelationOid(table, AccessShareLock))
		return "it is locked by another session, or gone";
	if (!ConditionalLockRelationOid(oid, AccessShareLock))
		reason = "it is locked by another session";
	else if (IndexGetRelation(oid, true) != table || (index = try_relation_open(oid, NoLock)) == NULL)
	{
		reason = "it has been dropped meanwhile";
		UnlockRelationOid(oid, AccessShareLock);
	}
	else
	{
		reason = options ? why_skip(index) : NULL;
		if (reason == NULL)
			switch (mark(writer, index, options))
			{
				case LBT_MARK_CHANGED:
					break;
				case LBT_MARK_AS_BEFORE:
					reason = options ? "it is adopted already, with the same options" : "it is not adopted";
					break;
				case LBT_MARK_BUSY:
					reason = "its mark is being changed by another session";
					break;
			}
		relation_close(index, AccessShareLock);
	}
	UnlockRelationOid(table, AccessShareLock);
	return reason;
}

/* May the caller, if there still is such an index? */
static bool
owns(Oid index)
{
	return SearchSysCacheExists1(RELOID, ObjectIdGetDatum(index)) && lbt_relation_ownercheck(index, GetUserId());
}

/*
 * Marks that restores have brought, of indexes that have not come; or of what was dropped while event triggers were off.
 * Whose they are nobody can tell, so superusers delete them.
 */
static void
tell_lost(LbtTablePattern *pattern, bool release)
{
	bool		forget = release && superuser();
	ListCell   *lc;

	foreach(lc, lbt_marks_lost(names_match, pattern, forget))
	{
		if (forget)
			ereport(NOTICE,
					(errmsg("deleted the mark of index %s, which does not exist", (char *) lfirst(lc))));
		else
			ereport(NOTICE,
					(errmsg("there is no index %s, which learnedbtree.marks has a mark of", (char *) lfirst(lc)),
					 errhint("As superuser: SELECT learnedbtree_release_all(); deletes such marks.")));
	}
}

static void
put_row(ReturnSetInfo *result, Oid index, const char *outcome, const char *reason)
{
	Datum		values[3] = {ObjectIdGetDatum(index), CStringGetTextDatum(outcome),
	reason ? CStringGetTextDatum(reason) : (Datum) 0};
	bool		nulls[3] = {false, false, reason == NULL};

	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

/* Adopt with these options, or (NULL) release. */
static void
mark_all(FunctionCallInfo fcinfo, const LbtIndexOptions *options)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	LbtTablePattern pattern;
	char	   *given;
	LbtMarkWriter *writer = NULL;
	List	   *list;
	ListCell   *lc;
	bool		any = false;

	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("the pattern must not be NULL"),
				 errhint("Leave it out, or give '*', for all tables.")));
	given = text_to_cstring(PG_GETARG_TEXT_PP(0));
	lbt_pattern_parse(given, &pattern);
	InitMaterializedSRF(fcinfo, 0);
	list = list_indexes(&pattern);
	if (list == NIL)
		ereport(NOTICE,
				(errmsg("no table with an index matches \"%s\"", given)));
	foreach(lc, list)
	{
		Oid			oid = ((Listed *) lfirst(lc))->index;
		const char *reason = "it belongs to another user";

		CHECK_FOR_INTERRUPTS();
		if (owns(oid))
		{
			if (writer == NULL)
				writer = lbt_marks_open(true);	/* not for those who may change nothing */
			if (!options && !lbt_mark_exists(writer, oid))
				continue;
			reason = mark_listed(writer, oid, options);
		}
		else if (!options)
			continue;
		put_row(result, oid, reason ? "skipped" : options ? "adopted" : "released", reason);
		any = true;
	}
	if (writer)
		lbt_marks_close(writer);
	CommandCounterIncrement();
	if (list != NIL && !options && !any)
		ereport(NOTICE,
				(errmsg("no index of tables that match \"%s\" is adopted", given)));
	tell_lost(&pattern, options == NULL);
}

Datum
learnedbtree_adopt_all(PG_FUNCTION_ARGS)
{
	LbtIndexOptions options = options_of(fcinfo, 1);

	lbt_forbid_readonly("learnedbtree_adopt_all()");
	mark_all(fcinfo, &options);
	lbt_tell_not_loaded();
	return (Datum) 0;
}

Datum
learnedbtree_release_all(PG_FUNCTION_ARGS)
{
	lbt_forbid_readonly("learnedbtree_release_all()");
	mark_all(fcinfo, NULL);
	return (Datum) 0;
}
