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
#include "sql/index_arg.h"
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
	return (Refusal)
	{
		.sqlstate = sqlstate,.reason = reason,.hint = hint
	};
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

static bool
lock(Oid relid, bool wait)
{
	if (wait)
		LockRelationOid(relid, AccessShareLock);
	return wait || ConditionalLockRelationOid(relid, AccessShareLock);
}

/* Lock and open an index whose table (InvalidOid: it had none) is locked; NULL if that cannot be, and nothing is locked. */
static Relation
open_locked(Oid relid, Oid table, bool wait)
{
	Relation	rel;

	if (!lock(relid, wait))
		return NULL;
	rel = try_relation_open(relid, NoLock);
	if (rel != NULL && IndexGetRelation(relid, true) == table)
		return rel;
	if (rel != NULL)
		relation_close(rel, NoLock);	/* dropped, and its OID another's */
	UnlockRelationOid(relid, AccessShareLock);
	return NULL;
}

/* Open an index for its mark to be changed, its table locked before it, as everybody else does; an error when it is none. */
static Relation
open_index(Oid relid)
{
	Oid			table = IndexGetRelation(relid, true);
	Relation	rel;

	if (OidIsValid(table))
		(void) lock(table, true);
	rel = open_locked(relid, table, true);
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
mark(Relation index, const LbtIndexOptions *options, bool many)
{
	LbtMarkChange change = lbt_mark_write(index, options, many);
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
	if (!many)
		CommandCounterIncrement();	/* the same statement may mark it once
									 * more */
	return change;
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
	return (LbtIndexOptions)
	{
		.learned = PG_ARGISNULL(1) || PG_GETARG_BOOL(1),
			.max_error = option(fcinfo, 2, "max_error", LBT_MAX_ERROR_LIMIT),
			.retrain_splits = option(fcinfo, 3, "retrain_splits", INT_MAX)
	};
}

Datum
learnedbtree_adopt(PG_FUNCTION_ARGS)
{
	Oid			relid = lbt_index_argument(fcinfo);
	LbtIndexOptions options = options_of(fcinfo);
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
	if (mark(index, &options, false) == LBT_MARK_AS_BEFORE)
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
	if (mark(index, NULL, false) == LBT_MARK_AS_BEFORE)
	{
		LbtIndexOptions options;

		(void) lbt_mark_find(index, &options);
		if (options.learned >= 0)
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

/* ---- one of many ---- */

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
mark_one_of_many(Oid relid, const LbtIndexOptions *options)
{
	Oid			table = IndexGetRelation(relid, true);
	const char *reason = "it is locked by another session, or gone";
	Relation	index;

	if (!OidIsValid(table) || !lock(table, false))
		return reason;
	index = open_locked(relid, table, false);
	if (index != NULL)
	{
		LbtMarkChange change;

		reason = options ? why_skip(index) : NULL;
		change = reason ? LBT_MARK_CHANGED : mark(index, options, true);
		if (change == LBT_MARK_BUSY)
			reason = "its mark is being changed by another session";
		else if (change == LBT_MARK_AS_BEFORE)
			reason = options ? "it is adopted already, with the same options" : "it is not adopted";
		relation_close(index, AccessShareLock);
	}
	UnlockRelationOid(table, AccessShareLock);
	return reason;
}

/* For the functions for many: adopt an index, or (learned is NULL) release it.  Gives the reason why not, or NULL. */
Datum
learnedbtree_write_mark(PG_FUNCTION_ARGS)
{
	Oid			relid = lbt_index_argument(fcinfo);
	bool		release = PG_ARGISNULL(1);
	LbtIndexOptions options = options_of(fcinfo);
	const char *reason = "it belongs to another user";

	lbt_forbid_readonly(release ? "learnedbtree_release_all()" : "learnedbtree_adopt_all()");
	CHECK_FOR_INTERRUPTS();
	if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(relid)))
		reason = "it is locked by another session, or gone";
	else if (lbt_relation_ownercheck(relid, GetUserId()))
	{
		lbt_marks_lock_all();	/* not for those who may change nothing */
		reason = mark_one_of_many(relid, release ? NULL : &options);
	}
	if (!release)
		lbt_tell_not_loaded();
	if (reason == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(reason));
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

/* For the event triggers: forget dropped indexes, whose OIDs, schemas and names these are. */
Datum
learnedbtree_forget_dropped(PG_FUNCTION_ARGS)
{
	int			n[3];
	const Oid  *oids = elements(fcinfo, 0, &n[0]);
	const NameData *schemas = elements(fcinfo, 1, &n[1]);
	const NameData *names = elements(fcinfo, 2, &n[2]);

	if (n[1] != n[2])
		elog(ERROR, "arrays of different lengths");
	lbt_xact_dropped(oids, n[0]);
	lbt_marks_forget(oids, n[0], schemas, names, n[1]);
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
