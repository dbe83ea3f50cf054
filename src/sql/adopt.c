/*
 * adopt.c - marks of btree indexes (serve/marks.h): learnedbtree_adopt(), learnedbtree_release(), what the functions for many
 * indexes do with each (these are SQL), and what the extension's triggers call.
 *
 * Table and index are locked as a reader of them does, so that the index is not dropped meanwhile: for one index until the
 * end of the transaction; of many, without waiting, and only for the moment.  Nobody waits for that but who wants to drop
 * or rebuild the index; and what this waits for are only those.
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/xact.h"
#include "am/am.h"
#include "catalog/dependency.h"
#include "catalog/index.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "commands/extension.h"
#include "commands/trigger.h"
#include "fmgr.h"
#include "registry/registry.h"
#include "serve/marks.h"
#include "serve/serve.h"
#include "server/compat.h"
#include "sql/functions.h"
#include "storage/lmgr.h"
#include "train/train.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"

PG_FUNCTION_INFO_V1(learnedbtree_adopt);
PG_FUNCTION_INFO_V1(learnedbtree_release);
PG_FUNCTION_INFO_V1(learnedbtree_write_mark);
PG_FUNCTION_INFO_V1(learnedbtree_marks_changed);
PG_FUNCTION_INFO_V1(learnedbtree_follow_marks);
PG_FUNCTION_INFO_V1(learnedbtree_forget_dropped);

/* ---- one index ---- */

/* May the current user adopt (or release) the index, and can it have a mark?  The caller's rights first. */
static LbtRefusal
check(Relation index, bool adopt, bool many)
{
	Oid			extension;
	LbtRefusal	refusal;
	LbtKeySpec	spec;

	if (!lbt_relation_ownercheck(RelationGetRelid(index), GetUserId()))
		return lbt_refuse(ERRCODE_INSUFFICIENT_PRIVILEGE, "it belongs to another user",
						  "Only the owner of its table may do this.");
	if (!adopt)
		return lbt_refuse(0, NULL, NULL);
	if (index->rd_rel->relam == lbt_am_oid())
		return lbt_refuse(ERRCODE_WRONG_OBJECT_TYPE, "it is a learnedbtree index, which needs no mark",
						  "Its options are set by ALTER INDEX: SET (learned = off), for one.");
	refusal = lbt_index_unfit(index, LBT_TO_MARK);
	if (refusal.reason)
		return refusal;
	lbt_keyspec_init(&spec, index);
	if (spec.ncolumns == 0)
		return lbt_refuse(ERRCODE_FEATURE_NOT_SUPPORTED, "the type of the first key column has no key code", NULL);
	if (index->rd_rel->relkind == RELKIND_INDEX && lbt_has_old_format(index))
		return lbt_refuse(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, "it has the format of PostgreSQL 11 or older",
						  "REINDEX it first.");

	/* The scripts of extensions may not expect it. */
	extension = many ? getExtensionOfObject(RelationRelationId, index->rd_index->indrelid) : InvalidOid;
	if (OidIsValid(extension))
		refusal.reason = psprintf("its table belongs to the extension \"%s\"", get_extension_name(extension));
	return refusal;
}

/* Write the mark, or (options are NULL) delete it; for the index, and all that are part of it, see to its model. */
static LbtRefusal
write_mark(Relation index, const LbtIndexOptions *options, bool many)
{
	LbtMarkChange change = lbt_mark_write(index, options, many);
	LbtIndexOptions found;
	ListCell   *lc;

	if (change == LBT_MARK_BUSY)
		return lbt_refuse(0, "its mark is being changed by another session", NULL);
	if (change == LBT_MARK_AS_BEFORE && options)
		return lbt_refuse(0, "it is adopted already, with the same options", NULL);
	if (change == LBT_MARK_AS_BEFORE)
	{
		(void) lbt_mark_find(index, &found);
		return found.learned < 0 ? lbt_refuse(0, "it is not adopted", NULL) :
			lbt_refuse(0, "it has no mark of its own, but that of a partitioned index which it is part of",
					   "Release that one, or exclude this one: learnedbtree_adopt(..., learned => false).");
	}
	foreach(lc, find_all_inheritors(RelationGetRelid(index), NoLock, NULL))
	{
		if (options && options->learned)
			lbt_xact_want(lfirst_oid(lc));
		else
			lbt_xact_forget(lfirst_oid(lc));
	}

	/* Of one, the same statement may mark it once more. */
	if (!many)
		CommandCounterIncrement();
	return lbt_refuse(0, NULL, NULL);
}

static bool
lock(Oid relid, bool wait)
{
	if (wait)
		LockRelationOid(relid, AccessShareLock);
	return wait || ConditionalLockRelationOid(relid, AccessShareLock);
}

/*
 * Adopt an index with these options, or (NULL) release it.  Its table is locked before it, as everybody else does.  Of
 * many, locks are not waited for, and given back: an index that is dropped before we commit leaves its mark, which nobody
 * minds.
 */
static LbtRefusal
mark(Oid relid, const LbtIndexOptions *options, bool many)
{
	Oid			table = IndexGetRelation(relid, true);
	LbtRefusal	refusal = lbt_refuse(ERRCODE_UNDEFINED_OBJECT, many ? "it is locked by another session, or gone" :
									 "it does not exist", NULL);
	Relation	index;

	if (OidIsValid(table) && !lock(table, !many))
		return refusal;
	if (lock(relid, !many))
	{
		index = try_relation_open(relid, NoLock);

		/* Otherwise it has been dropped, and its OID is another's. */
		if (index != NULL && IndexGetRelation(relid, true) == table)
		{
			refusal = check(index, options != NULL, many);
			if (refusal.reason == NULL)
				refusal = write_mark(index, options, many);
		}
		if (index != NULL)
			relation_close(index, NoLock);
		if (many)
			UnlockRelationOid(relid, AccessShareLock);
	}
	if (many && OidIsValid(table))
		UnlockRelationOid(table, AccessShareLock);
	return refusal;
}

/* An option that is an argument of a function; -1 for NULL. */
static int
option(FunctionCallInfo fcinfo, int argument, const char *name, int max)
{
	int			value = PG_ARGISNULL(argument) ? -1 : PG_GETARG_INT32(argument);

	if (!PG_ARGISNULL(argument) && (value < 1 || value > max))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("value %d out of bounds for option \"%s\"", value, name),
				 errdetail("Valid values are between \"1\" and \"%d\".", max)));
	return value;
}

/* The options that arguments 1 to 3 give. */
static LbtIndexOptions
options_of(FunctionCallInfo fcinfo)
{
	LbtIndexOptions options;

	options.learned = PG_ARGISNULL(1) || PG_GETARG_BOOL(1);
	options.max_error = option(fcinfo, 2, "max_error", LBT_MAX_ERROR_LIMIT);
	options.retrain_splits = option(fcinfo, 3, "retrain_splits", INT_MAX);
	return options;
}

/* An error on standbys and in read-only transactions. */
static void
forbid_readonly(const char *function)
{
	PreventCommandDuringRecovery(function);
	PreventCommandIfReadOnly(function);
	PreventCommandIfParallelMode(function);
}

/* Mark the index that the first argument names, or tell why not. */
static void
mark_named(FunctionCallInfo fcinfo, const char *verb, const LbtIndexOptions *options)
{
	Oid			relid = lbt_index_argument(fcinfo);
	char	   *name = get_rel_name(relid);
	LbtRefusal	refusal;

	forbid_readonly(psprintf("learnedbtree_%s()", verb));
	refusal = mark(relid, options, false);
	if (refusal.reason)
		ereport(refusal.sqlstate ? ERROR : NOTICE,
				(errcode(refusal.sqlstate),
				 refusal.sqlstate ?
				 errmsg("cannot %s index \"%s\": %s", verb, name ? name : psprintf("%u", relid), refusal.reason) :
				 errmsg("no need to %s index \"%s\": %s", verb, name, refusal.reason),
				 refusal.hint ? errhint("%s", refusal.hint) : 0));
}

Datum
learnedbtree_adopt(PG_FUNCTION_ARGS)
{
	LbtIndexOptions options = options_of(fcinfo);

	mark_named(fcinfo, "adopt", &options);
	lbt_tell_not_loaded();
	PG_RETURN_VOID();
}

Datum
learnedbtree_release(PG_FUNCTION_ARGS)
{
	mark_named(fcinfo, "release", NULL);
	PG_RETURN_VOID();
}

/* For the functions for many: adopt an index, or (learned is NULL) release it.  Gives the reason why not, or NULL. */
Datum
learnedbtree_write_mark(PG_FUNCTION_ARGS)
{
	Oid			relid = lbt_index_argument(fcinfo);
	bool		release = PG_ARGISNULL(1);
	LbtIndexOptions options = options_of(fcinfo);
	LbtRefusal	refusal = lbt_refuse(0, "it belongs to another user, or is gone", NULL);

	forbid_readonly(release ? "learnedbtree_release_all()" : "learnedbtree_adopt_all()");
	CHECK_FOR_INTERRUPTS();
	if (SearchSysCacheExists1(RELOID, ObjectIdGetDatum(relid)) && lbt_relation_ownercheck(relid, GetUserId()))
	{
		lbt_marks_lock_all();	/* not for those who may change nothing */
		refusal = mark(relid, release ? NULL : &options, true);
	}
	if (!release)
		lbt_tell_not_loaded();
	if (refusal.reason == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(refusal.reason));
}

/* ---- what triggers call ---- */

/* An array argument's elements, of fixed length and without NULLs. */
static void *
elements(FunctionCallInfo fcinfo, int argument, int *n)
{
	ArrayType  *array = PG_GETARG_ARRAYTYPE_P(argument);

	if (ARR_HASNULL(array))
		elog(ERROR, "array with NULLs");
	*n = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));
	return ARR_DATA_PTR(array);
}

/* For the event triggers: bring rows up to date with their indexes, those of objects that a command has changed above all. */
Datum
learnedbtree_follow_marks(PG_FUNCTION_ARGS)
{
	int			n;
	const Oid  *changed = elements(fcinfo, 0, &n);

	lbt_marks_follow(changed, n);
	PG_RETURN_VOID();
}

/* For the event triggers: forget dropped indexes of these OIDs, and marks of none of these names. */
Datum
learnedbtree_forget_dropped(PG_FUNCTION_ARGS)
{
	int			n;
	const Oid  *oids = elements(fcinfo, 0, &n);
	Datum	   *texts;
	int			ntexts;
	List	   *names = NIL;

	deconstruct_array(PG_GETARG_ARRAYTYPE_P(1), TEXTOID, -1, false, TYPALIGN_INT, &texts, NULL, &ntexts);
	for (int i = 0; i < ntexts; i++)
		names = lappend(names, TextDatumGetCString(texts[i]));
	lbt_xact_dropped(oids, n);
	lbt_marks_forget(oids, n, names);
	PG_RETURN_VOID();
}

/* After each statement that has changed rows: backends copy the table anew. */
Datum
learnedbtree_marks_changed(PG_FUNCTION_ARGS)
{
	TriggerData *data = (TriggerData *) fcinfo->context;

	if (!CALLED_AS_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("learnedbtree_marks_changed() can only be called as a trigger")));
	CacheInvalidateRelcache(data->tg_relation);
	return PointerGetDatum(NULL);
}
