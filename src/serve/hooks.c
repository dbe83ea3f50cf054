/*
 * hooks.c - where btree indexes are exchanged: before each use of theirs that the server lets us see.
 *
 *   planning            get_relation_info_hook: all indexes of the relation; their cost function, too
 *   execution           ExecutorStart: what a kept plan scans, and indexes of the targets of inserts, which planning does
 *                       not look at
 *   COPY FROM           ProcessUtility
 *   partitions found    when the statement has ended that routed tuples to them: from the next one on
 *   logical replication before an apply worker's commit: tables of its subscription that it has changed
 *
 * A use that is missed costs speed, never an answer.
 *
 * What is settled need not be looked at again until something changes: epoch is raised by the relcache callback (there is
 * one, for the whole library) when an entry with our routine may be gone or marks have changed, and by settings.
 * Indexes and targets are remembered with the epoch at which they were settled.  While nothing can be served (the
 * setting is none, or it is adopted and there are no marks), looking is false, and each hook is one test.
 */
#include "serve/serve.h"

#include "access/table.h"
#include "access/xact.h"
#include "am/am.h"
#include "catalog/namespace.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_subscription_rel.h"
#include "serve/marks.h"
#include "registry/settings.h"
#include "miscadmin.h"
#include "nodes/plannodes.h"
#include "optimizer/plancat.h"
#include "parser/parsetree.h"
#include "replication/logicalworker.h"
#include "replication/worker_internal.h"
#include "server/btree.h"
#include "server/compat.h"
#include "server/executor.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/fmgroids.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

/* Statements after which a settled target is looked at again: it may have grown into learnedbtree.min_leaves. */
#define TARGET_STATEMENTS 256

/* An index that a plan scans, or a table that rows are put into. */
typedef struct Settled
{
	Oid			relid;			/* hash key */
	uint64		epoch;			/* 0: not settled */
	uint32		statements;		/* of a target, since it was looked at */
} Settled;

static bool looking = true;		/* something may have to be served */
static bool looking_known = false;	/* ... and looking says whether */
static uint64 epoch = 1;
static HTAB *all_settled = NULL;

static Settled *
find_settled(Oid relid)
{
	return all_settled ? hash_search(all_settled, &relid, HASH_FIND, NULL) : NULL;
}

static bool
is_settled(const Settled *settled)
{
	return settled != NULL && settled->epoch == epoch;
}

static void
settle(Oid relid)
{
	Settled    *settled;

	if (all_settled == NULL)
	{
		HASHCTL		ctl = {.keysize = sizeof(Oid),.entrysize = sizeof(Settled),.hcxt = TopMemoryContext};

		all_settled = hash_create("relations that learnedbtree has looked at", 256, &ctl,
								  HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	}
	settled = hash_search(all_settled, &relid, HASH_ENTER, NULL);
	settled->epoch = epoch;
	settled->statements = 0;
}

/* ---- what changes ---- */

void
lbt_serve_changed(void)
{
	lbt_index_options_generation++;
	epoch++;
	looking = true;
	looking_known = false;
}

/* For all of the library: the server has few places for such callbacks. */
static void
at_relcache_invalidation(Datum arg, Oid relid)
{
	lbt_mask_again(relid);
	lbt_index_options_generation++;
	if (lbt_marks_invalidated(relid))
		lbt_serve_changed();
	else if (lbt_exchange_invalidated(relid))
		epoch++;
	if (OidIsValid(relid) && all_settled != NULL)
		(void) hash_search(all_settled, &relid, HASH_REMOVE, NULL);
}

static void
at_am_change(Datum arg, int cache, uint32 hash)
{
	lbt_marks_extension_changed();
	lbt_serve_changed();
}

/* May anything have to be served?  Where that cannot be told just now, yes. */
static bool
is_looking(void)
{
	bool		sure = true;

	if (likely(looking_known))
		return looking;
	if (lbt_btree_indexes == LBT_BTREE_NONE || IsBinaryUpgrade)
		looking = false;
	else if (HistoricSnapshotActive() || !IsTransactionState())
		return false;
	else if (!lbt_extension_exists())
		looking = false;
	else
		looking = lbt_marks_any(&sure) || lbt_btree_indexes == LBT_BTREE_ALL;
	looking_known = sure;
	return looking;
}

/* ---- exchanging ---- */

/* As lbt_exchange(), and remember that the index is settled. */
static bool
exchange(Oid index, bool *settled)
{
	bool		this_one = true;
	uint64		before = epoch;
	bool		served = lbt_exchange(index, &this_one);

	if (this_one && before == epoch)
		settle(index);
	else
		*settled = false;
	return served;
}

/*
 * The same of an index that a statement is about to open: its table is locked by the statement, or will be.  A lock on
 * it is not waited for: whoever holds one in the way is about to drop it or make it anew.
 */
static void
exchange_unlocked(Oid index, bool *settled)
{
	if (is_settled(find_settled(index)))
		return;
	if (!ConditionalLockRelationOid(index, AccessShareLock))
	{
		*settled = false;
		return;
	}
	(void) exchange(index, settled);
	UnlockRelationOid(index, AccessShareLock);
}

/* All indexes of a table that rows are going to be put into. */
static void
prepare_target(Oid table)
{
	Settled    *known = find_settled(table);
	Relation	rel;
	bool		settled = true;
	uint64		before = epoch;

	if (is_settled(known) && ++known->statements < TARGET_STATEMENTS)
		return;
	if (!ConditionalLockRelationOid(table, AccessShareLock))
		return;
	rel = RelationIdGetRelation(table);
	if (RelationIsValid(rel))
	{
		List	   *indexes = rel->rd_rel->relhasindex && !RelationUsesLocalBuffers(rel) &&
			RELKIND_HAS_TABLE_AM(rel->rd_rel->relkind) ? RelationGetIndexList(rel) : NIL;
		ListCell   *lc;

		RelationClose(rel);
		foreach(lc, indexes)
		{
			Settled    *index = find_settled(lfirst_oid(lc));

			if (index)
				index->epoch = 0;	/* it may have grown */
			exchange_unlocked(lfirst_oid(lc), &settled);
		}
		list_free(indexes);
		if (settled && before == epoch)
			settle(table);
	}
	UnlockRelationOid(table, AccessShareLock);
}

/* ---- plans ---- */

static void prepare_plan(const Plan *plan);

static void
prepare_plans(const List *plans)
{
	ListCell   *lc;

	foreach(lc, plans)
		prepare_plan(lfirst(lc));
}

/* Exchange what a plan's nodes scan. */
static void
prepare_plan(const Plan *plan)
{
	bool		settled;

	if (plan == NULL)
		return;
	check_stack_depth();
	switch (nodeTag(plan))
	{
		case T_IndexScan:
			exchange_unlocked(((const IndexScan *) plan)->indexid, &settled);
			break;
		case T_IndexOnlyScan:
			exchange_unlocked(((const IndexOnlyScan *) plan)->indexid, &settled);
			break;
		case T_BitmapIndexScan:
			exchange_unlocked(((const BitmapIndexScan *) plan)->indexid, &settled);
			break;
		case T_Append:
			prepare_plans(((const Append *) plan)->appendplans);
			break;
		case T_MergeAppend:
			prepare_plans(((const MergeAppend *) plan)->mergeplans);
			break;
		case T_BitmapAnd:
			prepare_plans(((const BitmapAnd *) plan)->bitmapplans);
			break;
		case T_BitmapOr:
			prepare_plans(((const BitmapOr *) plan)->bitmapplans);
			break;
		case T_SubqueryScan:
			prepare_plan(((const SubqueryScan *) plan)->subplan);
			break;
		case T_CustomScan:
			prepare_plans(((const CustomScan *) plan)->custom_plans);
			break;
		default:
			break;
	}
	prepare_plan(plan->lefttree);
	prepare_plan(plan->righttree);
}

/* Before a statement opens its relations. */
static void
prepare_statement(const PlannedStmt *plan)
{
	ListCell   *lc;

	if (!is_looking())
		return;
	prepare_plan(plan->planTree);
	prepare_plans(plan->subplans);
	foreach(lc, plan->resultRelations)
		prepare_target(rt_fetch(lfirst_int(lc), plan->rtable)->relid);
}

/* After one that has found partitions while it ran: for the next one. */
static void
prepare_partitions(List *partitions)
{
	ListCell   *lc;

	foreach(lc, partitions)
		prepare_target(lfirst_oid(lc));
}

/* ---- planning ---- */

static get_relation_info_hook_type next_info_hook = NULL;

static void
describe_indexes(PlannerInfo *root, Oid relid, bool inhparent, RelOptInfo *rel)
{
	ListCell   *lc;

	if (next_info_hook)
		next_info_hook(root, relid, inhparent, rel);
	foreach(lc, rel->indexlist)
	{
		IndexOptInfo *info = lfirst(lc);

		if (info->relam == BTREE_AM_OID)
		{
			bool		settled;

			/* The planner has locked it, and asked for its size. */
			if (looking && !info->hypothetical && is_looking() &&
				(lbt_is_large(info->pages) || lbt_btree_indexes == LBT_BTREE_ADOPTED || lbt_marks_any(&settled)) &&
				exchange(info->indexoid, &settled))
				info->amcostestimate = (void *) lbt_costestimate;
		}

		/*
		 * On 18 row comparisons become index conditions, and column extremes are probed, when the index claims to be
		 * btree's; the executor there takes any ordered access method.
		 */
		else if (LBT_PLANNER_ASKS_RELAM && OidIsValid(info->relam) && info->relam == lbt_am_oid())
			info->relam = BTREE_AM_OID;
	}
}

/* ---- COPY ---- */

/* Before COPY FROM locks its table: only what the caller may write to is looked at. */
static void
prepare_copy(const CopyStmt *copy)
{
	Oid			table;

	if (!copy->is_from || copy->relation == NULL || !is_looking())
		return;
	table = RangeVarGetRelid(copy->relation, NoLock, true);
	if (OidIsValid(table) && pg_class_aclcheck(table, GetUserId(), ACL_INSERT) == ACLCHECK_OK)
		prepare_target(table);
}

/* Afterwards: partitions that it has found. */
static void
prepare_copied_partitions(const CopyStmt *copy)
{
	Oid			table;
	ListCell   *lc;

	if (!copy->is_from || copy->relation == NULL || !is_looking())
		return;
	table = RangeVarGetRelid(copy->relation, NoLock, true);
	if (!OidIsValid(table) || get_rel_relkind(table) != RELKIND_PARTITIONED_TABLE)
		return;
	foreach(lc, find_all_inheritors(table, NoLock, NULL))
		if (lbt_holds_lock(lfirst_oid(lc), RowExclusiveLock))
			prepare_target(lfirst_oid(lc));
}

/* ---- logical replication ---- */

/* Tables, and their partitions, of this apply worker's subscription. */
static List *subscribed = NIL;
static bool subscribed_known = false;

static void
at_subscription_change(Datum arg, int cache, uint32 hash)
{
	subscribed_known = false;
}

static void
list_subscribed(void)
{
	static bool registered = false;
	List	   *list = NIL;
	List	   *all = NIL;
	ListCell   *lc;
	Relation	catalog;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	MemoryContext old;

	if (!registered)
	{
		CacheRegisterSyscacheCallback(SUBSCRIPTIONRELMAP, at_subscription_change, (Datum) 0);
		registered = true;
	}
	subscribed_known = true;	/* first: an invalidation meanwhile makes it false */
	catalog = table_open(SubscriptionRelRelationId, AccessShareLock);
	ScanKeyInit(&key, Anum_pg_subscription_rel_srsubid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(MySubscription->oid));
	scan = systable_beginscan(catalog, InvalidOid, false, NULL, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
		list = lappend_oid(list, ((Form_pg_subscription_rel) GETSTRUCT(tuple))->srrelid);
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);

	foreach(lc, list)
		all = list_concat(all, find_all_inheritors(lfirst_oid(lc), NoLock, NULL));

	/* Only the result is kept: what is made on the way goes with the transaction. */
	old = MemoryContextSwitchTo(TopMemoryContext);
	list_free(subscribed);
	subscribed = list_copy(all);
	MemoryContextSwitchTo(old);
}

/*
 * An apply worker changes tables without a plan.  Its locks tell which ones.  After an abort, what was read of marks may
 * have been this transaction's own.
 */
static void
at_xact_event(XactEvent event, void *arg)
{
	ListCell   *lc;

	if ((event == XACT_EVENT_ABORT || event == XACT_EVENT_PARALLEL_ABORT) && lbt_marks_aborted())
		lbt_serve_changed();
	if (event != XACT_EVENT_PRE_COMMIT || !looking || !IsLogicalWorker() || MySubscription == NULL || !is_looking())
		return;
	if (!subscribed_known)
		list_subscribed();
	foreach(lc, subscribed)
		if (!is_settled(find_settled(lfirst_oid(lc))) && lbt_holds_lock(lfirst_oid(lc), RowExclusiveLock))
			prepare_target(lfirst_oid(lc));
}

static void
at_subxact_event(SubXactEvent event, SubTransactionId subxact, SubTransactionId parent, void *arg)
{
	if (event == SUBXACT_EVENT_ABORT_SUB && lbt_marks_aborted())
		lbt_serve_changed();
}

void
lbt_serve_init(void)
{
	lbt_served_options = lbt_mark_options;
	RegisterXactCallback(at_xact_event, NULL);
	RegisterSubXactCallback(at_subxact_event, NULL);
	CacheRegisterRelcacheCallback(at_relcache_invalidation, (Datum) 0);
	CacheRegisterSyscacheCallback(AMOID, at_am_change, (Datum) 0);
	next_info_hook = get_relation_info_hook;
	get_relation_info_hook = describe_indexes;
	lbt_statement.looking = &looking;
	lbt_statement.starts = prepare_statement;
	lbt_statement.routed = prepare_partitions;
	lbt_statement.copy_starts = prepare_copy;
	lbt_statement.copy_ends = prepare_copied_partitions;
}
