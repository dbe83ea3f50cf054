/*
 * hooks.c - exchanging btree indexes before each use that we are shown.
 *
 *   planning         all indexes of the relation
 *   execution        in ExecutorStart, all indexes of the plan's tables: kept
 *                    plans are not planned again, and planning does not look
 *                    at the target of an INSERT
 *   foreign keys     with the table that has them, if it will be changed: from
 *                    19 on the rows referred to are looked up without a query
 *   COPY FROM        in ProcessUtility
 *   partitions       that a statement routed tuples to: at its end, for the
 *                    next one
 *   logical          before an apply worker's commit: the tables of its
 *   replication      subscription
 *
 * A use that we miss costs speed, never an answer.
 *
 * A table whose indexes have been looked at is settled until the relcache
 * callback is called for it or one of these indexes, or the epoch is raised,
 * which unsettles all tables.  src/README, "Serving btree indexes", has what
 * leads to which.
 */
#include "serve/serve.h"

#include "access/xact.h"
#include "am/am.h"
#include "catalog/namespace.h"
#include "catalog/partition.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_subscription_rel.h"
#include "registry/settings.h"
#include "miscadmin.h"
#include "replication/logicalworker.h"
#include "replication/worker_internal.h"
#include "server/compat.h"
#include "server/executor.h"
#include "storage/lmgr.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

/* Statements until a settled table is looked at again: it may have grown. */
#define TABLE_STATEMENTS 256

/* A table or index that we looked at, or its partitioned index. */
typedef struct Known
{
	Oid			relid;			/* hash key */
	Oid			table;			/* of an index; of a table InvalidOid; of a
								 * partitioned index its own OID */
	uint64		settled;		/* of a table: the epoch; 0: not settled */
	uint32		statements;		/* of a table, since it was looked at */
	List	   *referred;		/* of a table: OIDs of those that its foreign
								 * keys refer to */
} Known;

static bool looking = false;	/* something is to be served */
static uint64 epoch = 1;
static MemoryContext known_context = NULL;
static HTAB *all_known = NULL;	/* of Known; with its lists in known_context */

/* All tables of this apply worker's subscription are settled. */
static bool subscribed_settled = false;

static Known *
find_known(Oid relid)
{
	return all_known ? hash_search(all_known, &relid, HASH_FIND, NULL) : NULL;
}

static void
note(Oid relid, Oid table, uint64 settled)
{
	Known	   *entry;
	bool		found;

	if (all_known == NULL)
	{
		HASHCTL		ctl = {.keysize = sizeof(Oid),.entrysize = sizeof(Known),.hcxt = known_context};

		all_known = hash_create("relations that learnedbtree has looked at", 256, &ctl,
								HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	}
	entry = hash_search(all_known, &relid, HASH_ENTER, &found);
	if (found)
		list_free(entry->referred);
	entry->table = table;
	entry->settled = settled;
	entry->statements = 0;
	entry->referred = NIL;
}

/* ---- what changes ---- */

void
lbt_serve_changed(void)
{
	lbt_index_options_generation++;
	epoch++;
	subscribed_settled = false;
	looking = lbt_btree_indexes != LBT_BTREE_NONE && !IsBinaryUpgrade;
}

/* For all of the library: the server has few places for such callbacks. */
static void
at_relcache_invalidation(Datum arg, Oid relid)
{
	Known	   *known = find_known(relid);
	Known	   *table;

	lbt_mask_again(relid);
	lbt_index_options_generation++;
	if (!OidIsValid(relid))
	{
		/* Of anything: nobody will tell which relations were dropped. */
		lbt_serve_changed();
		MemoryContextReset(known_context);
		all_known = NULL;
	}
	if (known == NULL)
		return;
	if (known->table == relid)
		lbt_serve_changed();
	subscribed_settled = false;
	table = find_known(known->table);
	if (table)
		table->settled = 0;
	list_free(known->referred);
	(void) hash_search(all_known, &relid, HASH_REMOVE, NULL);
}

/* A schema, or a subscription's tables. */
static void
at_catalog_change(Datum arg, int cache, uint32 hash)
{
	subscribed_settled = false;
	if (cache == NAMESPACEOID && lbt_btree_indexes == LBT_BTREE_LIST)
		lbt_serve_changed();
}

/* Is anything to be served, and can catalogs be read? */
static inline bool
is_looking(void)
{
	return looking && IsTransactionState() && !HistoricSnapshotActive();
}

/* ---- exchanging ---- */

/* Remember the tables that foreign keys of this one refer to. */
static void
note_referred(Relation rel)
{
	List	   *keys = RelationGetFKeyList(rel);
	Known	   *known = find_known(RelationGetRelid(rel));
	MemoryContext old = MemoryContextSwitchTo(known_context);
	ListCell   *lc;

	foreach(lc, known != NULL ? keys : NIL)
	{
		const ForeignKeyCacheInfo *key = lfirst(lc);

		known->referred = list_append_unique_oid(known->referred, key->confrelid);
	}
	MemoryContextSwitchTo(old);
}

/* Note an index and, where names matter, its partitioned ancestors. */
static void
note_index(Oid index, Oid table)
{
	List	   *ancestors = NIL;
	ListCell   *lc;

	note(index, table, 0);
	if (lbt_btree_indexes == LBT_BTREE_LIST && get_rel_relispartition(index))
		ancestors = get_partition_ancestors(index);
	foreach(lc, ancestors)
		note(lfirst_oid(lc), lfirst_oid(lc), 0);
	list_free(ancestors);
}

/*
 * Exchange all indexes of a table that a statement is about to open.  Returns
 * the table when it is settled then, else NULL.  Do not wait for locks: a
 * session that holds a conflicting one is about to drop the index or make it
 * anew.
 */
static const Known *
prepare_table(Oid table)
{
	Known	   *known = find_known(table);
	Relation	rel;
	uint64		before = epoch;
	List	   *indexes = NIL;
	bool		settled = true;
	ListCell   *lc;

	if (known && known->settled == epoch && ++known->statements < TABLE_STATEMENTS)
		return known;
	if (!ConditionalLockRelationOid(table, AccessShareLock))
		return NULL;
	rel = RelationIdGetRelation(table);
	if (RelationIsValid(rel))
	{
		/* Note it first, for the callback to know it. */
		note(table, InvalidOid, before);
		if (rel->rd_rel->relhasindex && !RelationUsesLocalBuffers(rel) &&
			RELKIND_HAS_TABLE_AM(rel->rd_rel->relkind))
			indexes = RelationGetIndexList(rel);
		if (LBT_FOREIGN_KEYS_USE_INDEXES)
			note_referred(rel);
		RelationClose(rel);
	}
	foreach(lc, indexes)
	{
		Oid			index = lfirst_oid(lc);

		note_index(index, table);
		if (ConditionalLockRelationOid(index, AccessShareLock))
		{
			lbt_exchange(index, &settled);
			UnlockRelationOid(index, AccessShareLock);
		}
		else
			settled = false;
	}
	list_free(indexes);
	UnlockRelationOid(table, AccessShareLock);
	known = find_known(table);
	if (known && !settled)
		known->settled = 0;
	return known && known->settled == epoch ? known : NULL;
}

/* The same for a table that a statement may add rows to. */
static void
prepare_target(Oid table)
{
	const Known *known = prepare_table(table);

	if (!LBT_FOREIGN_KEYS_USE_INDEXES)
		return;

	/* Looking may receive an invalidation: find the list anew each time. */
	for (int i = 0; known != NULL && i < list_length(known->referred); i++)
	{
		(void) prepare_table(list_nth_oid(known->referred, i));
		known = find_known(table);
	}
}

/* ---- statements ---- */

/* Before a statement opens its relations.  Catalogs' are never served. */
static void
prepare_statement(const PlannedStmt *plan)
{
	bool		changes = plan->commandType != CMD_SELECT || plan->hasModifyingCTE;
	ListCell   *lc;

	if (!is_looking())
		return;
	foreach(lc, plan->rtable)
	{
		const RangeTblEntry *rte = lfirst(lc);

		if (rte->rtekind != RTE_RELATION || rte->relid < FirstNormalObjectId)
			continue;
		if (changes)
			prepare_target(rte->relid);
		else
			(void) prepare_table(rte->relid);
	}
}

/* ---- planning ---- */

static void
describe_indexes(RelOptInfo *rel)
{
	ListCell   *lc;

	foreach(lc, rel->indexlist)
	{
		IndexOptInfo *info = lfirst(lc);

		if (info->relam == BTREE_AM_OID)
		{
			bool		ignored;

			/* The planner has locked it, and asked for its size. */
			if (is_looking() && !info->hypothetical &&
				(lbt_is_large(info->pages) || lbt_btree_indexes == LBT_BTREE_LIST))
				lbt_exchange(info->indexoid, &ignored);
		}

		/*
		 * From 18 on row comparisons become index conditions, and column
		 * extremes are probed, when the index claims to be btree's; the
		 * executor there takes any ordered access method.
		 */
		else if (LBT_PLANNER_ASKS_RELAM && OidIsValid(info->relam) && info->relam == lbt_am_oid())
			info->relam = BTREE_AM_OID;
	}
}

/* ---- COPY ---- */

/*
 * Before COPY FROM locks its table.  And again when it has ended, for the next
 * one: partitions that it found.  Like the server's parser, this locks a table
 * for a moment before anybody checks the user's rights.
 */
static void
prepare_copy(const CopyStmt *copy)
{
	Oid			table;
	ListCell   *lc;

	if (!copy->is_from || copy->relation == NULL || !is_looking())
		return;
	table = RangeVarGetRelid(copy->relation, NoLock, true);
	if (!OidIsValid(table))
		return;
	foreach(lc, find_all_inheritors(table, NoLock, NULL))
		if (lfirst_oid(lc) == table || lbt_holds_lock(lfirst_oid(lc), RowExclusiveLock))
		prepare_target(lfirst_oid(lc));
}

/* ---- logical replication ---- */

/* An apply worker changes tables without a plan. */
static void
prepare_before_commit(XactEvent event, void *arg)
{
	ListCell   *lc;

	if (event != XACT_EVENT_PRE_COMMIT || MySubscription == NULL || subscribed_settled ||
		!IsLogicalWorker() || !is_looking())
		return;

	/* First, as an invalidation meanwhile sets it to false. */
	subscribed_settled = true;
	foreach(lc, lbt_subscription_relations(MySubscription->oid))
	{
		Oid			table = ((SubscriptionRelState *) lfirst(lc))->relid;
		ListCell   *member;

		foreach(member, find_all_inheritors(table, NoLock, NULL))
			subscribed_settled &= prepare_table(lfirst_oid(member)) != NULL;
	}
}

void
lbt_serve_init(void)
{
	known_context = AllocSetContextCreate(TopMemoryContext, "learnedbtree relations",
										  ALLOCSET_SMALL_SIZES);
	RegisterXactCallback(prepare_before_commit, NULL);
	CacheRegisterRelcacheCallback(at_relcache_invalidation, (Datum) 0);
	CacheRegisterSyscacheCallback(NAMESPACEOID, at_catalog_change, (Datum) 0);
	CacheRegisterSyscacheCallback(SUBSCRIPTIONRELMAP, at_catalog_change, (Datum) 0);
	lbt_statement.described = describe_indexes;
	lbt_statement.looking = &looking;
	lbt_statement.starts = prepare_statement;
	lbt_statement.routed = prepare_target;
	lbt_statement.around_copy = prepare_copy;
}
