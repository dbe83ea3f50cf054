/*
 * takeover.c - turning indexes: locks, what speaks against it, and the order of things; see takeover.h.
 *
 * Locks.  The table first, then the index, as DROP INDEX does.  A statement that has planned with the index holds
 * a lock on its table from the check of its plan on, so with an exclusive one nobody is between planning for
 * one access method and opening the index of the other.  All tables of a partition tree are locked before the
 * first index, in the order in which the server locks them.
 *
 * A backend's relcache entry keeps the routine of the access method it was made with while the index is open.
 * In other backends it is closed, as they hold no lock on it.  In this one it must be, too (check_use()), and the
 * command counter is incremented when ours is closed.
 */
#include "sql/takeover.h"

#include "access/genam.h"
#include "access/table.h"
#include "access/xact.h"
#include "am/am.h"
#include "catalog/catalog.h"
#include "catalog/index.h"
#include "catalog/namespace.h"
#include "catalog/partition.h"
#include "catalog/pg_am.h"
#include "catalog/pg_index.h"
#include "catalog/pg_inherits.h"
#include "commands/defrem.h"
#include "commands/trigger.h"
#include "learn/counters.h"
#include "learn/kept.h"
#include "learn/lifecycle.h"
#include "learn/metapage.h"
#include "miscadmin.h"
#include "sql/alter.h"
#include "storage/lmgr.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

/* One index to be turned, of a partition tree the root or a part. */
typedef struct Candidate
{
	Oid			oid;
	LbtTurn		turn;
	bool		force;
	bool		part;
	LbtVerdict *verdict;
} Candidate;

/* Refuse, with a reason that begins with the index: false, for the caller to return. */
static pg_attribute_printf(4, 5) bool
refuse(const Candidate *c, int sqlstate, const char *hint, const char *format, ...)
{
	StringInfoData reason;
	va_list		args;

	initStringInfo(&reason);
	if (c->part)
		appendStringInfo(&reason, "index \"%s\" of a partition ", get_rel_name(c->oid));
	else
		appendStringInfoString(&reason, "it ");
	for (;;)
	{
		int			needed;

		va_start(args, format);
		needed = appendStringInfoVA(&reason, format, args);
		va_end(args);
		if (needed == 0)
			break;
		enlargeStringInfo(&reason, needed);
	}
	*c->verdict = (LbtVerdict) {.sqlstate = sqlstate,.reason = reason.data,.hint = hint};
	return false;
}

/* The partitioned index that an index is part of; it may just be gone. */
static const char *
root_name(Oid index)
{
	List	   *ancestors = get_partition_ancestors(index);
	char	   *name = ancestors ? get_rel_name(llast_oid(ancestors)) : NULL;

	return name ? name : "?";
}

/* Is this relation, whatever it is, an index that can be turned at all? */
static bool
check_kind(const Candidate *c, Form_pg_class class)
{
	Oid			from = c->turn == LBT_ADOPT ? BTREE_AM_OID : lbt_am_oid();

	if (class->relkind != RELKIND_INDEX && class->relkind != RELKIND_PARTITIONED_INDEX)
		return refuse(c, ERRCODE_WRONG_OBJECT_TYPE,
					  "Name an index: that of a primary key or unique constraint has the constraint's name.",
					  "is not an index");
	if (class->relam != from)
		return refuse(c, ERRCODE_WRONG_OBJECT_TYPE,
					  c->turn == LBT_ADOPT ? "Only btree indexes can be adopted." : NULL,
					  "is a %s index", get_am_name(class->relam));
	if (IsCatalogRelationOid(c->oid) || class->relisshared)
		return refuse(c, ERRCODE_FEATURE_NOT_SUPPORTED, NULL, "is an index of a system catalog");
	if (IsToastNamespace(class->relnamespace))
		return refuse(c, ERRCODE_FEATURE_NOT_SUPPORTED, NULL, "is the index of a TOAST table");
	if (class->relpersistence == RELPERSISTENCE_TEMP && isOtherTempNamespace(class->relnamespace))
		return refuse(c, ERRCODE_FEATURE_NOT_SUPPORTED, NULL, "is a temporary index of another session");
	if (!lbt_relation_ownercheck(c->oid, GetUserId()))
		return refuse(c, ERRCODE_INSUFFICIENT_PRIVILEGE, "Only the owner of its table may do this.",
					  "belongs to another user");
	if (class->relispartition && !c->part)
		return refuse(c, ERRCODE_WRONG_OBJECT_TYPE,
					  "Name that index; those of its partitions go along.",
					  "is part of the partitioned index \"%s\"", root_name(c->oid));
	return true;
}

/* Is it one to be adopted?  A released index may be in any state. */
static bool
check_index(const Candidate *c, Form_pg_class class, Form_pg_index index)
{
	if (c->turn == LBT_ADOPT && index->indrelid == lbt_kept_table())
		return refuse(c, ERRCODE_FEATURE_NOT_SUPPORTED, NULL, "is learnedbtree's own");
	if (c->turn == LBT_RELEASE || (index->indisvalid && index->indisready && index->indislive))
		return true;
	return refuse(c, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
				  class->relkind == RELKIND_INDEX ? "Its build did not finish; REINDEX it or drop it." :
				  "Attach an index of each partition to it first.",
				  "is not valid");
}

/*
 * What other access methods than btree must do without on this server version: is it wanted nevertheless?  The
 * root speaks for its partitions.
 */
static bool
check_losses(const Candidate *c, Form_pg_index index)
{
	const char *lost = "row comparisons, (a, b) > (1, 2), are no conditions of its scans";

	if (c->part || c->turn == LBT_RELEASE || !LBT_ON_CONFLICT_NEEDS_BTREE)
		return true;
	if (index->indisunique)
		lost = psprintf("INSERT ... ON CONFLICT fails on table \"%s\", and %s", get_rel_name(index->indrelid), lost);
	if (!c->force)
		return refuse(c, ERRCODE_FEATURE_NOT_SUPPORTED,
					  "Adopt it with force => true if you need none of this; PostgreSQL 18 has no such limits.",
					  "would lose what this server version has for btree only: %s", lost);
	c->verdict->losses = lost;
	return true;
}

/* All that the catalogs can tell. */
static LbtOutcome
look_up(const Candidate *c)
{
	Oid			to = c->turn == LBT_ADOPT ? lbt_am_oid() : BTREE_AM_OID;
	HeapTuple	class_tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(c->oid));
	HeapTuple	index_tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(c->oid));
	Form_pg_class class = HeapTupleIsValid(class_tuple) ? (Form_pg_class) GETSTRUCT(class_tuple) : NULL;
	Form_pg_index index = HeapTupleIsValid(index_tuple) ? (Form_pg_index) GETSTRUCT(index_tuple) : NULL;
	LbtOutcome	outcome;

	if (class == NULL)
		outcome = LBT_GONE;
	else if (class->relam == to)
		outcome = LBT_ALREADY;
	else if (!check_kind(c, class))
		outcome = LBT_REFUSED;
	else if (index == NULL)
		outcome = LBT_GONE;
	else
		outcome = check_index(c, class, index) && check_losses(c, index) ? LBT_TURNED : LBT_REFUSED;
	if (class)
		ReleaseSysCache(class_tuple);
	if (index)
		ReleaseSysCache(index_tuple);
	return outcome;
}

/* Nobody here may have it open, or may be about to. */
static bool
check_use(const Candidate *c, Relation table, Relation index)
{
	if (lbt_relation_is_new_file(index))
		return refuse(c, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
					  "Commit the transaction first.",
					  "was created, or given a new file, in this transaction");
	if (index->rd_refcnt != 1 || table->rd_refcnt != 1)
		return refuse(c, ERRCODE_OBJECT_IN_USE, "Close cursors and end queries on the table first.",
					  "is in use by this session");
	if (AfterTriggerPendingOnRel(RelationGetRelid(table)))
		return refuse(c, ERRCODE_OBJECT_IN_USE, "Commit the transaction first, or SET CONSTRAINTS ALL IMMEDIATE.",
					  "is of a table with pending trigger events");
	return true;
}

/* Can models be made of the file? */
static bool
check_file(const Candidate *c, Relation index)
{
	bool		heapkeyspace;
	bool		allequalimage;

	if (c->turn == LBT_RELEASE || index->rd_rel->relkind != RELKIND_INDEX)
		return true;
	_bt_metaversion(index, &heapkeyspace, &allequalimage);
	return heapkeyspace ||
		refuse(c, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, "REINDEX it first.",
			   "has the format of PostgreSQL 11 or older");
}

/* All that has to be true under the locks. */
static LbtOutcome
check_locked(const Candidate *c)
{
	LbtOutcome	outcome = look_up(c);
	Relation	table;
	Relation	index;

	if (outcome != LBT_TURNED)
		return outcome;
	index = index_open(c->oid, NoLock);
	table = table_open(index->rd_index->indrelid, NoLock);
	if (!check_use(c, table, index) || !check_file(c, index))
		outcome = LBT_REFUSED;
	table_close(table, NoLock);
	index_close(index, NoLock);
	return outcome;
}

static bool
has_invalid_index(Oid table)
{
	Relation	catalog = table_open(IndexRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	bool		found = false;

	ScanKeyInit(&key, Anum_pg_index_indrelid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(table));
	scan = systable_beginscan(catalog, IndexIndrelidIndexId, true, NULL, 1, &key);
	while (!found && HeapTupleIsValid(tuple = systable_getnext(scan)))
		found = !((Form_pg_index) GETSTRUCT(tuple))->indisvalid;
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	return found;
}

/*
 * CREATE INDEX CONCURRENTLY and REINDEX CONCURRENTLY wait in their ends for all who have an older snapshot, as the
 * caller of a function has: if we waited for the table meanwhile, that would be a deadlock, and the build its victim.
 */
static bool
check_builds(const Candidate *c)
{
	Oid			table = IndexGetRelation(c->oid, true);
	ListCell   *lc;

	if (!OidIsValid(table))
		return true;
	foreach(lc, get_rel_relkind(table) == RELKIND_PARTITIONED_TABLE ? find_all_inheritors(table, NoLock, NULL) :
			list_make1_oid(table))
	{
		Oid			oid = lfirst_oid(lc);

		if (get_rel_relkind(oid) == RELKIND_PARTITIONED_TABLE || !has_invalid_index(oid))
			continue;
		if (!ConditionalLockRelationOid(oid, ShareUpdateExclusiveLock))
			return refuse(c, ERRCODE_OBJECT_IN_USE, "Try again later, or drop the index if its build has failed.",
						  "is of table \"%s\", of which an index may be being built concurrently", get_rel_name(oid));
		UnlockRelationOid(oid, ShareUpdateExclusiveLock);
	}
	return true;
}

/* Lock a partition tree, tables first; the indexes, the root first, or NIL when it is gone. */
static List *
lock_tree(Oid index)
{
	Oid			table = IndexGetRelation(index, true);

	if (!OidIsValid(table))
		return NIL;
	LockRelationOid(table, AccessExclusiveLock);
	if (get_rel_relkind(table) == RELKIND_PARTITIONED_TABLE)
		(void) find_all_inheritors(table, AccessExclusiveLock, NULL);
	LockRelationOid(index, AccessExclusiveLock);
	if (IndexGetRelation(index, true) != table)
		return NIL;
	if (get_rel_relkind(index) != RELKIND_PARTITIONED_INDEX)
		return list_make1_oid(index);
	return find_all_inheritors(index, AccessExclusiveLock, NULL);
}

/* A released index has no model, and no options that btree does not know. */
static void
release(Relation index)
{
	char	   *kept = NULL;
	char	   *dropped;

	if (index->rd_rel->relkind == RELKIND_INDEX)
	{
		lbt_metapage_clear(index);
		lbt_counters_flush();	/* not when the counts are gone */
		lbt_lifecycle_dropped(MyDatabaseId, RelationGetRelid(index));
		kept = lbt_forget_settings(index);
	}
	dropped = lbt_switch_to_btree(index);
	if (kept || dropped)
		ereport(NOTICE,
				(errmsg("dropped options of index \"%s\" that btree does not have: %s",
						RelationGetRelationName(index), kept ? kept : dropped)));
}

static void
turn_one(Oid oid, LbtTurn turn)
{
	Relation	index = index_open(oid, NoLock);
	Oid			table = index->rd_index->indrelid;

	if (turn == LBT_ADOPT)
		lbt_switch_to_ours(index);
	else
		release(index);
	index_close(index, NoLock);

	/* The server invalidates plans by their tables. */
	CacheInvalidateRelcacheByRelid(table);
}

/* Those of the tree that are to be turned; NIL, with the outcome, when it cannot be done. */
static List *
check_tree(Candidate c, List *tree, LbtOutcome *outcome)
{
	List	   *pending = NIL;
	Oid			root = c.oid;
	ListCell   *lc;

	foreach(lc, tree)
	{
		c.oid = lfirst_oid(lc);
		c.part = c.oid != root;
		*outcome = check_locked(&c);
		if (*outcome == LBT_TURNED)
			pending = lappend_oid(pending, c.oid);
		else if (!c.part || *outcome != LBT_ALREADY)
			return NIL;
	}
	*outcome = LBT_TURNED;
	return pending;
}

LbtOutcome
lbt_look_at_index(Oid index, LbtTurn turn, bool force, LbtVerdict *verdict)
{
	Candidate	c = {.oid = index,.turn = turn,.force = force,.verdict = verdict};

	*verdict = (LbtVerdict) {0};
	return look_up(&c);
}

LbtOutcome
lbt_turn_index(Oid index, LbtTurn turn, bool force, LbtVerdict *verdict)
{
	Candidate	c = {.oid = index,.turn = turn,.force = force,.verdict = verdict};
	LbtOutcome	outcome = lbt_look_at_index(index, turn, force, verdict);
	List	   *tree;
	ListCell   *lc;

	if (outcome != LBT_TURNED)
		return outcome;
	if (!check_builds(&c))
		return LBT_REFUSED;
	tree = lock_tree(index);
	if (tree == NIL)
		return LBT_GONE;
	foreach(lc, check_tree(c, tree, &outcome))
		turn_one(lfirst_oid(lc), turn);
	if (outcome == LBT_TURNED)
		CommandCounterIncrement();
	return outcome;
}
