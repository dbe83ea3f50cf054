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
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

/* Statements after which a settled target is looked at again: it may have grown into learnedbtree.min_leaves. */
#define TARGET_STATEMENTS 256

/* An index that has been looked at, or a table that rows are put into. */
typedef struct Settled
{
	Oid			relid;			/* hash key */
	uint64		epoch;			/* 0: not settled */
	uint32		statements;		/* of a target, since it was looked at */
	bool		served;			/* of an index: its entry has our routine */
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
note(Oid relid, bool settled, bool served)
{
	Settled    *entry;

	if (all_settled == NULL)
	{
		HASHCTL		ctl = {.keysize = sizeof(Oid),.entrysize = sizeof(Settled)};

		all_settled = hash_create("relations that learnedbtree has looked at", 256, &ctl, HASH_ELEM | HASH_BLOBS);
	}
	entry = hash_search(all_settled, &relid, HASH_ENTER, NULL);
	*entry = (Settled)
	{
		.relid = relid,.epoch = settled ? epoch : 0,.served = served
	};
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
	const Settled *known = find_settled(relid);

	lbt_mask_again(relid);
	lbt_index_options_generation++;
	if (lbt_marks_invalidated(relid))
		lbt_serve_changed();	/* so always, when any entry may be gone */
	else if (known && known->served)
		epoch++;
	if (known)
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

/* As lbt_exchange(), and note what has come of it. */
static bool
exchange(Oid index)
{
	bool		settled = true;
	uint64		before = epoch;
	bool		served = lbt_exchange(index, &settled);

	note(index, settled && before == epoch, served);
	return served;
}

/*
 * The same of an index that a statement is about to open: its table is locked by the statement, or will be.  A lock on
 * it is not waited for: whoever holds one in the way is about to drop it or make it anew.
 */
static void
exchange_unlocked(Oid index)
{
	if (!ConditionalLockRelationOid(index, AccessShareLock))
		return;
	(void) exchange(index);
	UnlockRelationOid(index, AccessShareLock);
}

/* All indexes of a table that rows are going to be put into.  Those looked at before are again: they may have grown. */
static void
prepare_target(Oid table)
{
	Settled    *known = find_settled(table);
	Relation	rel;
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
		bool		settled = true;
		ListCell   *lc;

		RelationClose(rel);
		foreach(lc, indexes)
		{
			exchange_unlocked(lfirst_oid(lc));
			settled = settled && is_settled(find_settled(lfirst_oid(lc)));
		}
		list_free(indexes);
		note(table, settled && before == epoch, false);
	}
	UnlockRelationOid(table, AccessShareLock);
}

/* ---- plans ---- */

static void
prepare_scan(Oid index)
{
	if (!is_settled(find_settled(index)))
		exchange_unlocked(index);
}

/* Exchange what a plan's nodes scan. */
static void
prepare_plan(const Plan *plan)
{
	const List *children = NIL;
	ListCell   *lc;

	if (plan == NULL)
		return;
	check_stack_depth();
	switch (nodeTag(plan))
	{
		case T_IndexScan:
			prepare_scan(((const IndexScan *) plan)->indexid);
			break;
		case T_IndexOnlyScan:
			prepare_scan(((const IndexOnlyScan *) plan)->indexid);
			break;
		case T_BitmapIndexScan:
			prepare_scan(((const BitmapIndexScan *) plan)->indexid);
			break;
		case T_Append:
			children = ((const Append *) plan)->appendplans;
			break;
		case T_MergeAppend:
			children = ((const MergeAppend *) plan)->mergeplans;
			break;
		case T_BitmapAnd:
			children = ((const BitmapAnd *) plan)->bitmapplans;
			break;
		case T_BitmapOr:
			children = ((const BitmapOr *) plan)->bitmapplans;
			break;
		case T_CustomScan:
			children = ((const CustomScan *) plan)->custom_plans;
			break;
		case T_SubqueryScan:
			prepare_plan(((const SubqueryScan *) plan)->subplan);
			break;
		default:
			break;
	}
	foreach(lc, children)
		prepare_plan(lfirst(lc));
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
	foreach(lc, plan->subplans)
		prepare_plan(lfirst(lc));
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
			bool		sure;

			/* The planner has locked it, and asked for its size. */
			if (looking && !info->hypothetical && is_looking() &&
				(lbt_is_large(info->pages) || lbt_btree_indexes == LBT_BTREE_ADOPTED || lbt_marks_any(&sure)) &&
				exchange(info->indexoid))
				info->amcostestimate = (void *) lbt_costestimate;
		}

		/*
		 * On 18 row comparisons become index conditions, and column extremes
		 * are probed, when the index claims to be btree's; the executor there
		 * takes any ordered access method.
		 */
		else if (LBT_PLANNER_ASKS_RELAM && OidIsValid(info->relam) && info->relam == lbt_am_oid())
			info->relam = BTREE_AM_OID;
	}
}

/* ---- COPY ---- */

/*
 * Before COPY FROM locks its table: only what the caller may write to is looked at.  And once more when it has ended:
 * partitions that it has found, for the next one.
 */
static void
prepare_copy(const CopyStmt *copy)
{
	Oid			table;
	ListCell   *lc;

	if (!copy->is_from || copy->relation == NULL || !is_looking())
		return;
	table = RangeVarGetRelid(copy->relation, NoLock, true);
	if (!OidIsValid(table) || pg_class_aclcheck(table, GetUserId(), ACL_INSERT) != ACLCHECK_OK)
		return;
	foreach(lc, find_all_inheritors(table, NoLock, NULL))
		if (lfirst_oid(lc) == table || lbt_holds_lock(lfirst_oid(lc), RowExclusiveLock))
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
	List	   *all = NIL;
	ListCell   *lc;
	MemoryContext old;

	subscribed_known = true;	/* first: an invalidation meanwhile makes it
								 * false */
	foreach(lc, lbt_subscription_relations(MySubscription->oid))
		all = list_concat(all, find_all_inheritors(((SubscriptionRelState *) lfirst(lc))->relid, NoLock, NULL));

	/*
	 * Only the result is kept: what is made on the way goes with the
	 * transaction.
	 */
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
	CacheRegisterSyscacheCallback(SUBSCRIPTIONRELMAP, at_subscription_change, (Datum) 0);
	next_info_hook = get_relation_info_hook;
	get_relation_info_hook = describe_indexes;
	lbt_statement.looking = &looking;
	lbt_statement.starts = prepare_statement;
	lbt_statement.routed = prepare_partitions;
	lbt_statement.around_copy = prepare_copy;
}
