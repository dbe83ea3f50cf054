/*
 * serve.c - giving btree indexes' relcache entries our routine (see serve.h),
 * before each use that we are shown:
 *
 *   planning         all indexes of the relation, and of a target to which
 *                    many rows are written
 *   execution        in ExecutorStart, all indexes of the plan's tables
 *   foreign keys     from 19 on, with the table that has them
 *   COPY FROM        in ProcessUtility
 *   partitions       that a statement routes tuples to: before, if a node of
 *                    ours looks ahead in them; else at its end, for the next
 *                    one
 *   logical          when an apply worker commits, for its next changes:
 *   replication      the tables that it has written to
 *
 * A use that we miss costs speed, never an answer.
 */
#include "serve/serve.h"

#include "access/parallel.h"
#include "access/transam.h"
#include "access/xlog.h"
#include "am/am.h"
#include "am/keysahead.h"
#include "catalog/catalog.h"
#include "catalog/namespace.h"
#include "catalog/partition.h"
#include "catalog/pg_database.h"
#include "catalog/pg_namespace.h"
#include "commands/dbcommands.h"
#include "common/hashfn.h"
#include "executor/executor.h"
#include "join/join.h"
#include "replication/logicalworker.h"
#include "server/guard.h"
#include "tcop/utility.h"
#include "train/demand.h"
#include "train/train.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/pgstat_internal.h"

/* ---- one index ---- */

static IndexAmRoutine routine;	/* ours; zero before the first exchange */

/* Does the entry have exactly the routine that the server gave it? */
static bool
has_btrees_routine(Relation index)
{
	return memcmp(index->rd_indam, lbt_bt_routine(), sizeof(IndexAmRoutine)) == 0;
}

const char *
lbt_index_unfit(Relation index, bool looking_into)
{
	Form_pg_class class = index->rd_rel;

	if (class->relkind != RELKIND_INDEX && class->relkind != RELKIND_PARTITIONED_INDEX)
		return "it is not an index; a constraint's index has the constraint's name";
	if (!lbt_is_btree(index) && !(looking_into && class->relam == lbt_am_oid()))
		return looking_into ? "it is not a btree or learnedbtree index" :
			"it is not a btree index";
	if (class->relkind == RELKIND_PARTITIONED_INDEX)
		return "it is a partitioned index, which has no pages; pg_partition_tree() lists its partitions";
	if (RelationGetRelid(index) < FirstNormalObjectId || class->relisshared ||
		IsCatalogRelation(index) || class->relnamespace == PG_CATALOG_NAMESPACE)
		return "it is an index of a system catalog";
	if (IsToastRelation(index))
		return "it is the index of a TOAST table";
	if (looking_into ? RELATION_IS_OTHER_TEMP(index) : class->relpersistence == RELPERSISTENCE_TEMP)
		return "temporary indexes have no model";
	if (class->relpersistence == RELPERSISTENCE_UNLOGGED && RecoveryInProgress())
		return "it is unlogged, and this is a standby";
	if (!index->rd_index->indisvalid || !index->rd_index->indisready || !index->rd_index->indislive)
		return "it is not valid: REINDEX it, or drop it";
	return NULL;
}

const char *
lbt_serve_refusal(Relation index)
{
	const char *reason = lbt_index_unfit(index, false);

	if (reason)
		return reason;
	if (index->rd_indam != &routine && !has_btrees_routine(index))
		return "another extension has taken it over in this session";

	/* The statement may not need this index: do not report its damage. */
	reason = lbt_bt_unreadable(index, false);
	if (reason)
		return reason;

	/* Without a view, which is kept for long: most indexes need none. */
	(void) lbt_index_served(index, &reason);
	if (reason == NULL)
		reason = lbt_untrainable(index, lbt_index_get(index));
	return reason ? reason : lbt_bt_unreadable(index, true);
}

/*
 * Exchange the routine of a btree index that is to be served, unless its entry
 * is in use, or nothing can be looked at: then returns false, as it is worth
 * asking again at the next statement.  The caller has locked the index or its
 * table against drops.
 */
static bool
exchange_index(Oid oid)
{
	Relation	index = RelationIdGetRelation(oid);
	bool		in_use = false;

	if (!RelationIsValid(index))
		return true;

	/* Here a comparison may run a query, under a page's lock. */
	if (!lbt_guard_may_enter())
		in_use = true;
	else if (index->rd_indam != &routine && lbt_serve_refusal(index) == NULL)
	{
		/* Ask this last: looking may have received an invalidation. */
		in_use = index->rd_refcnt > 1 || !has_btrees_routine(index);
		if (routine.type != T_IndexAmRoutine)
		{
			memcpy(&routine, lbt_bt_routine(), sizeof(routine));
			lbt_take_scans(&routine);
			routine.aminsert = lbt_insert;
		}
		if (!in_use)
			index->rd_indam = &routine;
	}
	RelationClose(index);
	return !in_use;
}

/* ---- tables ---- */

/*
 * Statements until a settled table is looked at again: it may have grown.  (Of
 * a plan's executions, those since the last plan was made count at the 256th.)
 */
#define TABLE_STATEMENTS 256

/* A relation of which a change raises the epoch. */
typedef struct Known
{
	Oid			relid;			/* hash key */
	uint64		settled;		/* the epoch of the last look; 0: look again */
	uint64		keys_settled;	/* of a table: the same for its foreign keys */
	uint32		statements;		/* of a table, since then */
	bool		temporary;		/* a table of which nothing is served */
} Known;

/* The hooks before ours, or the server's own functions. */
static ExecutorStart_hook_type next_start;
static ExecutorFinish_hook_type next_finish;
static ExecutorEnd_hook_type next_end;
static ProcessUtility_hook_type next_utility;

static HTAB *all_known = NULL;	/* of Known */

static Known *
find_known(Oid relid)
{
	return all_known ? hash_search(all_known, &relid, HASH_FIND, NULL) : NULL;
}

static Known *
note(Oid relid)
{
	Known	   *entry;
	bool		found;

	if (all_known == NULL)
	{
		HASHCTL		ctl = {.keysize = sizeof(Oid),.entrysize = sizeof(Known)};

		all_known = hash_create("relations that learnedbtree has looked at", 256, &ctl,
								HASH_ELEM | HASH_BLOBS);
	}
	entry = hash_search(all_known, &relid, HASH_ENTER, &found);
	if (!found)
	{
		entry->settled = entry->keys_settled = 0;
		entry->temporary = false;
	}
	return entry;
}

/* Has the table or index been looked at, and nothing changed since? */
static bool
is_settled(const Known *known)
{
	return known != NULL && known->settled == lbt_serving_epoch;
}

/* Note an index and, where names count, the partitioned ones it is part of. */
static void
note_index(Oid index)
{
	List	   *ancestors = NIL;
	ListCell   *lc;

	(void) note(index);
	if (lbt_btree_indexes == LBT_BTREE_LIST && get_rel_relispartition(index))
		ancestors = get_partition_ancestors(index);
	foreach(lc, ancestors)
		(void) note(lfirst_oid(lc));
	list_free(ancestors);
}

/* ---- what changes ---- */

/* For all of the library: the server has few places for such callbacks. */
static void
at_relcache_invalidation(Datum arg, Oid relid)
{
	const Known *known = find_known(relid);

	lbt_mask_again(relid);
	lbt_keys_invalidate(relid);
	lbt_serving_generation++;
	if (OidIsValid(relid) && known == NULL)
		return;
	if (known == NULL || !known->temporary)
		lbt_serving_epoch++;
	if (OidIsValid(relid))
		(void) hash_search(all_known, &relid, HASH_REMOVE, NULL);
	else if (all_known != NULL)
	{
		/* Of anything: nobody will tell which relations were dropped. */
		hash_destroy(all_known);
		all_known = NULL;
	}
}

static void
at_schema_change(Datum arg, int cache, uint32 hash)
{
	if (lbt_btree_indexes == LBT_BTREE_LIST)
		lbt_serving_changed();
}

/* Is anything to be served, and can catalogs be read? */
static inline bool
is_looking(void)
{
	return unlikely(lbt_btree_indexes != LBT_BTREE_NONE) && !IsBinaryUpgrade &&
		IsTransactionState() && !HistoricSnapshotActive();
}

/*
 * Note an index, and exchange its routine; false if it is worth asking again.
 * Do not wait for locks: a session that holds a conflicting one is about to
 * drop the index or make it anew.
 */
static bool
prepare_index(Oid index)
{
	const uint64 epoch = lbt_serving_epoch;
	bool		exchanged = false;

	note_index(index);
	if (ConditionalLockRelationOid(index, AccessShareLock))
	{
		exchanged = exchange_index(index);
		UnlockRelationOid(index, AccessShareLock);
	}
	note(index)->settled = exchanged ? epoch : 0;
	return exchanged;
}

/*
 * The same for a table and all of its indexes, without waiting, too.  keys:
 * NULL, or gets the tables that foreign keys refer to.
 */
static bool
exchange_indexes(Oid table, List **keys)
{
	Relation	rel;
	List	   *indexes = NIL;
	bool		settled = true;
	ListCell   *lc;

	(void) note(table);
	if (!ConditionalLockRelationOid(table, AccessShareLock))
		return false;
	rel = RelationIdGetRelation(table);
	if (RelationIsValid(rel))
	{
		note(table)->temporary = RelationUsesLocalBuffers(rel);
		if (rel->rd_rel->relhasindex && !RelationUsesLocalBuffers(rel) &&
			RELKIND_HAS_TABLE_AM(rel->rd_rel->relkind))
			indexes = RelationGetIndexList(rel);
		foreach(lc, keys != NULL ? RelationGetFKeyList(rel) : NIL)
		{
			const ForeignKeyCacheInfo *key = lfirst(lc);

			*keys = list_append_unique_oid(*keys, key->confrelid);
		}
		RelationClose(rel);
	}
	foreach(lc, indexes)
		settled &= prepare_index(lfirst_oid(lc));
	list_free(indexes);
	UnlockRelationOid(table, AccessShareLock);
	return settled;
}

/*
 * The same for a table that so many statements are about to open, if not
 * settled.  written: rows may be written to it, and foreign keys be checked.
 */
static bool
prepare_table(Oid table, bool written, uint32 statements)
{
	const uint64 epoch = lbt_serving_epoch;
	Known	   *known = find_known(table);
	bool		known_settled = is_settled(known);
	List	   *keys = NIL;
	bool		settled;
	ListCell   *lc;

	if (known_settled)
	{
		known->statements = Min(known->statements + statements, TABLE_STATEMENTS);
		if (known->statements < TABLE_STATEMENTS && (!written || known->keys_settled == epoch))
			return true;
	}

	/*
	 * Thousands of partitions may refer to the same few tables.  The other way
	 * round, catalogs have a key for each partition: checks that refer to
	 * partitioned tables are queries.
	 */
	statements = known_settled ? known->statements : 1;
	settled = exchange_indexes(table, written && LBT_CHECKS_WITHOUT_QUERY ? &keys : NULL);
	foreach(lc, keys)
		settled &= lfirst_oid(lc) == table || get_rel_relispartition(lfirst_oid(lc)) ||
			prepare_table(lfirst_oid(lc), false, statements);
	list_free(keys);

	/* Looking may have received an invalidation: then the epoch is another. */
	known = note(table);
	known->settled = settled ? epoch : 0;
	known->keys_settled = written ? known->settled : 0;
	known->statements = 0;
	return settled;
}

/*
 * The same for a statement's tables; written: those that a plan writes to.
 * True if all are settled.
 */
static bool
prepare_tables(const List *rtable, bool written, uint32 statements)
{
	bool		settled = true;
	ListCell   *lc;

	foreach(lc, is_looking() ? rtable : NIL)
	{
		const RangeTblEntry *rte = lfirst(lc);
		bool		writes = rte->rellockmode == RowExclusiveLock;

		/* Catalogs' indexes are never served. */
		if (rte->rtekind == RTE_RELATION && rte->relid >= FirstNormalObjectId &&
			(!written || writes))
			settled &= prepare_table(rte->relid, writes, statements);
	}
	return settled;
}

/*
 * Plans of which all tables were settled at an epoch, so that the next
 * executions of one that names a thousand partitions look at none of them.  A
 * plan that is made may have the address of one that is gone, so that all are
 * forgotten then.
 */
typedef struct SettledPlan
{
	const PlannedStmt *plan;
	uint64		epoch;
	uint64		made;			/* plans_made */
	uint32		executions;		/* since then */
} SettledPlan;

static SettledPlan settled_plans[16];
static uint64 plans_made = 0;

static void
prepare_plan(const PlannedStmt *plan)
{
	const uint64 epoch = lbt_serving_epoch;
	SettledPlan *known;
	bool		again;
	bool		settled;

	if (!is_looking())
		return;
	known = &settled_plans[murmurhash32((uint32) ((uintptr_t) plan >> 3)) %
						   lengthof(settled_plans)];
	again = known->plan == plan && known->epoch == epoch && known->made == plans_made;
	if (again && ++known->executions < TABLE_STATEMENTS)
		return;
	settled = prepare_tables(plan->rtable, false, again ? known->executions : 1);
	*known = (SettledPlan) {.plan = settled ? plan : NULL,.epoch = epoch,.made = plans_made};
}

/* Exchange only the indexes that the plan's scans name. */
static void
prepare_scans(const PlannedStmt *plan)
{
	List	   *indexes = is_looking() ? lbt_scanned_indexes(plan) : NIL;
	ListCell   *lc;

	foreach(lc, indexes)
		if (!is_settled(find_known(lfirst_oid(lc))))
			(void) prepare_index(lfirst_oid(lc));
	list_free(indexes);
}

/* ---- when ---- */

/* The node of a query that writes many rows to one table, or NULL. */
static ModifyTableState *
large_write(const QueryDesc *query)
{
	const ModifyTable *modify = (const ModifyTable *) query->plannedstmt->planTree;

	return IsA(modify, ModifyTable) && lbt_write_is_large(modify) &&
		list_length(modify->resultRelations) == 1 && query->planstate != NULL ?
		castNode(ModifyTableState, query->planstate) : NULL;
}

/* Before a statement opens its relations. */
static void
executor_start(QueryDesc *query, int eflags)
{
	ModifyTableState *write;

	/* A worker begins with empty caches: leave out what no scan needs. */
	if (IsParallelWorker())
		prepare_scans(query->plannedstmt);
	else
		prepare_plan(query->plannedstmt);
	next_start(query, eflags);
	if ((eflags & EXEC_FLAG_EXPLAIN_ONLY) == 0 && is_looking() &&
		(write = large_write(query)) != NULL)
		lbt_keys_note(write);
}

/*
 * Foreign keys of the rows that a query has written are checked here.  Within
 * it, other statements that write know nothing of these rows.
 */
static void
executor_finish(QueryDesc *query)
{
	LbtKeysAhead *outer = lbt_keys_ahead;
	LbtKeysAhead *ahead = lbt_keys_noted(query->estate);

	if (ahead == outer || query->operation == CMD_SELECT)
	{
		next_finish(query);
		return;
	}
	PG_TRY();
	{
		lbt_keys_ahead = ahead;
		next_finish(query);
	}
	PG_FINALLY();
	{
		lbt_keys_ahead = outer;
		lbt_keys_end(ahead);
	}
	PG_END_TRY();
}

/* Tables that a plan writes to: their indexes have not been described. */
static void
planned(PlannedStmt *plan, bool for_cursor)
{
	plans_made++;
	if (plan->commandType != CMD_SELECT || plan->hasModifyingCTE)
		(void) prepare_tables(plan->rtable, true, 1);
	lbt_look_ahead(plan, for_cursor);
}

/* When its relations are closed: partitions that it has routed tuples to. */
static void
executor_end(QueryDesc *query)
{
	List	   *routed = NIL;
	ListCell   *lc;

	if (unlikely(lbt_btree_indexes != LBT_BTREE_NONE) && query->estate != NULL)
		foreach(lc, query->estate->es_tuple_routing_result_relations)
			routed = lappend_oid(routed,
								 RelationGetRelid(((ResultRelInfo *) lfirst(lc))->ri_RelationDesc));
	next_end(query);
	foreach(lc, routed)
		(void) prepare_table(lfirst_oid(lc), true, 1);
	list_free(routed);			/* functions end many queries in one context */
	if (IsTransactionBlock())
		lbt_report_if_due();
}

/* Before a statement opens a partition, where we are told. */
static void
prepare_routed(Oid table)
{
	if (is_looking())
		(void) prepare_table(table, true, 1);
}

static void
describe_indexes(RelOptInfo *rel)
{
	ListCell   *lc;

	foreach(lc, rel->indexlist)
	{
		IndexOptInfo *info = lfirst(lc);

		if (info->relam == BTREE_AM_OID)
		{
			if (!is_looking() || info->hypothetical ||
				(lbt_btree_indexes == LBT_BTREE_ALL && !lbt_is_large(info->pages)))
				continue;

			/* The planner has locked it, and asked for its size. */
			if (!is_settled(find_known(info->indexoid)))
				(void) exchange_index(info->indexoid);
			if (!LBT_BTREE_SKIPS)
				info->amcostestimate = lbt_skip_cost;
		}

		/*
		 * From 18 on row comparisons become index conditions, and column
		 * extremes are probed, only if the index claims to be btree's.
		 */
		else if (LBT_PLANNER_ASKS_RELAM && OidIsValid(info->relam) && info->relam == lbt_am_oid())
			info->relam = BTREE_AM_OID;
	}
}

/*
 * The tables to which this transaction (or subtransaction) has written rows,
 * as the server's statistics count them: partitions, too.
 */
static void
prepare_written(void)
{
	const PgStat_TableXactStatus *written;

	if (!is_looking())
		return;
	written = pgstat_get_xact_stack_level(GetCurrentTransactionNestLevel())->first;
	for (; written != NULL; written = written->next)
		if (lbt_pgstat_oid(written->parent) >= FirstNormalObjectId)
			(void) prepare_table(lbt_pgstat_oid(written->parent), true, 1);
}

/* A COPY is about to put rows into this table. */
static LbtKeysAhead *
expect_checks(Oid table)
{
	LbtKeysAhead *ahead;
	Relation	rel = lbt_try_open(table);

	if (rel == NULL)
		return NULL;
	ahead = lbt_keys_make(rel, GetCurrentCommandId(false), CurrentMemoryContext);
	relation_close(rel, AccessShareLock);
	return ahead;
}

/* The table that a command copies into; InvalidOid if it does not. */
static Oid
copied_into(const Node *command)
{
	const CopyStmt *copy = (const CopyStmt *) command;

	return IsA(command, CopyStmt) && copy->is_from && copy->relation != NULL && is_looking() ?
		RangeVarGetRelid(copy->relation, NoLock, true) : InvalidOid;
}

/* The database that a command is to drop; InvalidOid if it does not. */
static Oid
dropped_database(const Node *command)
{
	return IsA(command, DropdbStmt) && IsTransactionState() ?
		get_database_oid(((const DropdbStmt *) command)->dbname, true) : InvalidOid;
}

static void
utility(PlannedStmt *plan, const char *text, bool read_only_tree, ProcessUtilityContext context,
		ParamListInfo params, QueryEnvironment *environment, DestReceiver *dest,
		QueryCompletion *completion)
{
	LbtKeysAhead *const outer = lbt_keys_ahead;
	const Oid	table = copied_into(plan->utilityStmt);
	const bool	truncates = IsA(plan->utilityStmt, TruncateStmt);
	List	  **const outer_truncated = lbt_truncated;
	List	   *truncated = NIL;
	const Oid	dropped = dropped_database(plan->utilityStmt);

	if (!OidIsValid(table) && !truncates)
	{
		/* A ROLLBACK may free the plan. */
		next_utility(plan, text, read_only_tree, context, params, environment, dest, completion);
		if (OidIsValid(dropped))
			lbt_forget_database(dropped);
		return;
	}

	/*
	 * Like the server's parser, this locks a table for a moment before anybody
	 * checks the user's rights.
	 */
	if (OidIsValid(table))
		(void) prepare_table(table, true, 1);
	PG_TRY();
	{
		lbt_truncated = &truncated;
		lbt_keys_ahead = truncates ? NULL : expect_checks(table);
		next_utility(plan, text, read_only_tree, context, params, environment, dest, completion);
		lbt_forget_models(truncated);
	}
	PG_FINALLY();
	{
		if (lbt_keys_ahead != outer)
			lbt_keys_end(lbt_keys_ahead);
		lbt_keys_ahead = outer;
		lbt_truncated = outer_truncated;
	}
	PG_END_TRY();
	if (OidIsValid(table) && get_rel_relkind(table) == RELKIND_PARTITIONED_TABLE)
		prepare_written();
}

/* An apply worker changes tables without a plan. */
static void
prepare_for_next(XactEvent event, void *arg)
{
	if ((event == XACT_EVENT_PRE_COMMIT || event == XACT_EVENT_PRE_PREPARE) && IsLogicalWorker())
		prepare_written();
}

void
lbt_serve_init(void)
{
	RegisterXactCallback(prepare_for_next, NULL);
	CacheRegisterRelcacheCallback(at_relcache_invalidation, (Datum) 0);
	CacheRegisterSyscacheCallback(NAMESPACEOID, at_schema_change, (Datum) 0);
	lbt_statement.described = describe_indexes;
	lbt_statement.routed = prepare_routed;
	lbt_statement.planned = planned;
	next_start = ExecutorStart_hook ? ExecutorStart_hook : standard_ExecutorStart;
	ExecutorStart_hook = executor_start;
	next_finish = ExecutorFinish_hook ? ExecutorFinish_hook : standard_ExecutorFinish;
	ExecutorFinish_hook = executor_finish;
	next_end = ExecutorEnd_hook ? ExecutorEnd_hook : standard_ExecutorEnd;
	ExecutorEnd_hook = executor_end;
	next_utility = ProcessUtility_hook ? ProcessUtility_hook : standard_ProcessUtility;
	ProcessUtility_hook = utility;
}
