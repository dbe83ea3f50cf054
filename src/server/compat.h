/*
 * compat.h - one name each for what differs between PostgreSQL 15 to 19.
 *
 * Only the files of src/server/ look at PG_VERSION_NUM.
 */
#ifndef LBT_COMPAT_H
#define LBT_COMPAT_H

#include "postgres.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/relscan.h"
#include "catalog/pg_class.h"
#include "catalog/pg_collation.h"
#include "lib/dshash.h"
#include "miscadmin.h"
#include "nodes/plannodes.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/pg_locale.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"
#if PG_VERSION_NUM >= 160000
#include "varatt.h"				/* part of postgres.h before */
#endif
/* From here on EXPLAIN takes options of extensions. */
#if PG_VERSION_NUM >= 180000
#define LBT_EXPLAIN_OPTIONS
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#endif
#if PG_VERSION_NUM >= 170000
#include "storage/dsm_registry.h"
#endif
#if PG_VERSION_NUM >= 190000
#include "nodes/miscnodes.h"
#endif

#if PG_VERSION_NUM < 150000 || PG_VERSION_NUM >= 200000
#error "learnedbtree supports PostgreSQL 15 to 19"
#endif

/* The library's version: META.json's. */
#define LBT_VERSION "1.0.0"

/* Does btree skip what keys that leave out leading columns exclude? */
#define LBT_BTREE_SKIPS (PG_VERSION_NUM >= 180000)

/* Does the function make a random UUID, of which nobody can tell when? */
static inline bool
lbt_draws_uuid(Oid function)
{
#if PG_VERSION_NUM >= 180000
	if (function == F_UUIDV4)
		return true;
#endif
	return function == F_GEN_RANDOM_UUID;
}

/* From here on pg_get_loaded_modules() tells it. */
#if PG_VERSION_NUM >= 180000
#define LBT_MODULE_MAGIC PG_MODULE_MAGIC_EXT(.name = "learnedbtree", .version = LBT_VERSION)
#else
#define LBT_MODULE_MAGIC PG_MODULE_MAGIC
#endif

/* The file of a relation's data, and some functions: 15 has other names. */
#if PG_VERSION_NUM < 160000
#define RelFileLocator RelFileNode
#define rd_locator rd_node
#define dbOid dbNode
#define spcOid spcNode
#define relNumber relNode
#define rd_firstRelfilelocatorSubid rd_firstRelfilenodeSubid
#define BufTagMatchesRelFileLocator(tag, locator) RelFileNodeEquals((tag)->rnode, *(locator))
#define InitBufferTag(tag, locator, fork, block) INIT_BUFFERTAG(*(tag), *(locator), fork, block)
#define object_ownercheck(class, oid, role) pg_class_ownercheck(oid, role)
#define guc_malloc(elevel, size) malloc(size)
#endif

/* Was the file made in this transaction, so that a rollback removes it? */
static inline bool
lbt_relation_is_new_file(Relation rel)
{
	return rel->rd_createSubid != InvalidSubTransactionId ||
		rel->rd_firstRelfilelocatorSubid != InvalidSubTransactionId;
}

/*
 * Does the collation, which is valid, compare text by its bytes?  Do not open
 * it for that: one that cannot be opened fails only what compares by it.
 */
static inline bool
lbt_collation_is_c(Oid collation)
{
#if PG_VERSION_NUM >= 180000
	HeapTuple	row;
	char		provider;
	bool		is_c;

	if (collation == DEFAULT_COLLATION_OID)
		return pg_newlocale_from_collation(collation)->collate_is_c;
	row = SearchSysCache1(COLLOID, ObjectIdGetDatum(collation));
	if (!HeapTupleIsValid(row))
		elog(ERROR, "cache lookup failed for collation %u", collation);
	provider = ((Form_pg_collation) GETSTRUCT(row))->collprovider;
	is_c = provider == COLLPROVIDER_BUILTIN;
	if (provider == COLLPROVIDER_LIBC)
	{
		Datum		value = SysCacheGetAttrNotNull(COLLOID, row, Anum_pg_collation_collcollate);
		char	   *name = TextDatumGetCString(value);

		is_c = strcmp(name, "C") == 0 || strcmp(name, "POSIX") == 0;
	}
	ReleaseSysCache(row);
	return is_c;
#else
	return lc_collate_is_c(collation);
#endif
}

/*
 * strxfrm() for any collation: writes as much of a text's sort key as there is
 * space for, and returns its length.
 */
static inline Size
lbt_strnxfrm(Oid collation, const char *text, Size length, char *key, Size size)
{
	pg_locale_t locale = pg_newlocale_from_collation(collation);

#if PG_VERSION_NUM >= 180000
	return pg_strnxfrm(key, size, text, length, locale);
#else
	/* The server's refuses libc.  A NULL locale is the database's own. */
	char	   *copy;

#if PG_VERSION_NUM >= 160000
	/* Not ICU's own functions: their names tell its version. */
	if (locale && locale->provider == COLLPROVIDER_ICU)
		return pg_strnxfrm(key, size, text, length, locale);
#elif defined(USE_ICU)
	if (locale && locale->provider == COLLPROVIDER_ICU)
	{
		UChar	   *wide;
		int32_t		n = icu_to_uchar(&wide, text, length);

		size = ucol_getSortKey(locale->info.icu.ucol, wide, n, (uint8_t *) key, (int32_t) size);
		pfree(wide);
		return Max(size, 1) - 1;	/* without the zero at its end */
	}
#endif
	copy = pnstrdup(text, length);
	size = locale ? strxfrm_l(key, copy, size, locale->info.lt) : strxfrm(key, copy, size);
	pfree(copy);
	return size;
#endif
}

/* Does an expression make JSON of values, or values of JSON?  From 16 on. */
#if PG_VERSION_NUM >= 170000
#define LBT_IS_JSON(node) (IsA(node, JsonConstructorExpr) || IsA(node, JsonExpr))
#elif PG_VERSION_NUM >= 160000
#define LBT_IS_JSON(node) IsA(node, JsonConstructorExpr)
#else
#define LBT_IS_JSON(node) false
#endif

/* "snapshot too old" went away in 17. */
#if PG_VERSION_NUM >= 170000
#define lbt_test_for_old_snapshot(snapshot, rel, page) ((void) 0)
#else
#define lbt_test_for_old_snapshot(snapshot, rel, page) TestForOldSnapshot(snapshot, rel, page)
#endif

/* Count a search of the index, as access methods do for each descent. */
static inline void
lbt_count_index_search(IndexScanDesc scan)
{
	pgstat_count_index_scan(scan->indexRelation);
#if PG_VERSION_NUM >= 180000
	if (scan->instrument)
		scan->instrument->nsearches++;
#endif
}

/*
 * May the scan drop a leaf's pin as soon as it has copied the matches?  Else
 * the pin must stay until the last of them was used, to keep VACUUM from
 * recycling their heap TIDs (nbtree's README, "Making concurrent TID recycling
 * safe").  18 also keeps it for bitmap scans.  Before 19, relations without
 * WAL keep it: no LSN tells whether their pages have changed.
 */
static inline bool
lbt_scan_drops_pin(IndexScanDesc scan)
{
#if PG_VERSION_NUM >= 190000
	return !scan->xs_want_itup && IsMVCCLikeSnapshot(scan->xs_snapshot) &&
		scan->heapRelation != NULL;
#else
	return !scan->xs_want_itup && IsMVCCSnapshot(scan->xs_snapshot) &&
		RelationNeedsWAL(scan->indexRelation) &&
		(PG_VERSION_NUM < 180000 || scan->heapRelation != NULL);
#endif
}

/*
 * Around setting hints (LP_DEAD, and page flags that say so) on a page under a
 * share lock.  From 19 on, a page that is being written out may not change:
 * beginning makes the lock share-exclusive, or is denied if another process
 * writes the page or sets hints.
 */
#if PG_VERSION_NUM >= 190000
#define lbt_hints_begin(buf) BufferBeginSetHintBits(buf)
#define lbt_hints_finish(buf) BufferFinishSetHintBits(buf, true, true)
#else
#define lbt_hints_begin(buf) true
#define lbt_hints_finish(buf) MarkBufferDirtyHint(buf, true)
#endif

/*
 * A named segment of shared memory, from 17 on; init fills it in for the first
 * backend that asks.  Finding and mapping it costs a session some 80
 * microseconds and 41 kB.
 */
#define LBT_NAMED_SEGMENTS (PG_VERSION_NUM >= 170000)
#if PG_VERSION_NUM >= 190000
#define LBT_SEGMENT_INIT_PARAMETERS void *memory, void *arg
#define lbt_named_segment(name, size, init) \
	GetNamedDSMSegment(name, size, init, &(bool) {false}, NULL)
#else
#define LBT_SEGMENT_INIT_PARAMETERS void *memory
#if PG_VERSION_NUM >= 170000
#define lbt_named_segment(name, size, init) \
	GetNamedDSMSegment(name, size, init, &(bool) {false})
#else
#define lbt_named_segment(name, size, init) ((void) (init), NULL)
#endif
#endif

/* How a dsa_pointer names a segment; dsa.h says it from 17 on. */
#ifndef DSA_OFFSET_WIDTH
#define DSA_OFFSET_WIDTH (SIZEOF_DSA_POINTER == 4 ? 27 : 40)
#endif
#define LBT_DSA_SEGMENTS Min(1024, 1 << (SIZEOF_DSA_POINTER * 8 - DSA_OFFSET_WIDTH))

/* In dshash_parameters: keys are compared, hashed and copied as bytes. */
#if PG_VERSION_NUM >= 170000
#define LBT_DSHASH_BYTES dshash_memcmp, dshash_memhash, dshash_memcpy
#else
#define LBT_DSHASH_BYTES dshash_memcmp, dshash_memhash
#endif

/* A new LWLock tranche, by a lasting name; before 19 each process names it. */
#if PG_VERSION_NUM >= 190000
#define lbt_new_tranche(name) LWLockNewTrancheId(name)
#define lbt_name_tranche(tranche, name) ((void) 0)
#else
#define lbt_new_tranche(name) LWLockNewTrancheId()
#define lbt_name_tranche(tranche, name) LWLockRegisterTranche(tranche, name)
#endif

/* Below 18 only btree may have row comparisons, and arbiters of conflicts. */
#define LBT_ON_CONFLICT_NEEDS_BTREE (PG_VERSION_NUM < 180000)
#define LBT_PLANNER_ASKS_RELAM (PG_VERSION_NUM >= 180000)

/* Has a setting ruled the path of a scan out? */
#if PG_VERSION_NUM >= 180000
#define lbt_is_disabled(scan) ((scan)->path.disabled_nodes > 0)
#else
#define lbt_is_disabled(scan) (!enable_indexscan)
#endif

/*
 * A wait event: from 17 on our own, by a lasting name, which *event, 0 at
 * first, remembers; else Extension.
 */
static inline uint32
lbt_wait_event(uint32 *event, const char *name)
{
#if PG_VERSION_NUM >= 170000
	if (*event == 0)
		*event = WaitEventExtensionNew(name);
	return *event;
#else
	return PG_WAIT_EXTENSION;
#endif
}

/*
 * Open a relation that may be gone, locked with AccessShareLock.  NULL if it
 * is, or if another session's lock would have to be waited for.
 */
static inline Relation
lbt_try_open(Oid oid)
{
	Relation	rel;

	if (!ConditionalLockRelationOid(oid, AccessShareLock))
		return NULL;
	rel = try_relation_open(oid, NoLock);
	if (rel == NULL)
		UnlockRelationOid(oid, AccessShareLock);
	return rel;
}

/* Does this backend hold just this lock mode on a relation of its database? */
static inline bool
lbt_holds_lock(Oid relid, LOCKMODE mode)
{
	LOCKTAG		tag;

	SET_LOCKTAG_RELATION(tag, MyDatabaseId, relid);
#if PG_VERSION_NUM >= 170000
	return LockHeldByMe(&tag, mode, false);
#else
	return LockHeldByMe(&tag, mode);
#endif
}

/*
 * Foreign keys look rows of a plain table up without a query, which would have
 * told of it.
 */
#define LBT_CHECKS_WITHOUT_QUERY (PG_VERSION_NUM >= 190000)

/* The OID of a table, of which there are statistics. */
#if PG_VERSION_NUM >= 160000
#define lbt_pgstat_oid(table) ((table)->id)
#else
#define lbt_pgstat_oid(table) ((table)->t_id)
#endif

/* If the result is out of range, *overflow becomes -1 (too early) or 1. */
static inline TimestampTz
lbt_timestamp2timestamptz(Timestamp time, int *overflow)
{
#if PG_VERSION_NUM >= 190000
	ErrorSaveContext errors = {.type = T_ErrorSaveContext};
	TimestampTz converted = timestamp2timestamptz_safe(time, (Node *) &errors);

	if (errors.error_occurred)
		*overflow = time < 0 ? -1 : 1;
	return converted;
#else
	return timestamp2timestamptz_opt_overflow(time, overflow);
#endif
}

/* An option of EXPLAIN that is on or off. */
#if PG_VERSION_NUM >= 190000
#define lbt_register_explain_option(name, handler) \
	RegisterExtensionExplainOption(name, handler, GUCCheckBooleanExplainOption)
#else
#define lbt_register_explain_option(name, handler) RegisterExtensionExplainOption(name, handler)
#endif

/* How an Append or a MergeAppend leaves out partitions; NULL: it does not. */
static inline struct PartitionPruneInfo *
lbt_prune_info(const PlannedStmt *stmt, const Plan *append)
{
#if PG_VERSION_NUM >= 180000
	int			number = IsA(append, Append) ? ((const Append *) append)->part_prune_index :
		((const MergeAppend *) append)->part_prune_index;

	return number < 0 ? NULL : list_nth(stmt->partPruneInfos, number);
#else
	return IsA(append, Append) ? ((const Append *) append)->part_prune_info :
		((const MergeAppend *) append)->part_prune_info;
#endif
}

/* How many elements an array has, for the planner; about ten if unknown. */
#if PG_VERSION_NUM >= 170000
#define lbt_array_length(root, array) estimate_array_length(root, array)
#else
#define lbt_array_length(root, array) ((double) estimate_array_length(array))
#endif

#endif							/* LBT_COMPAT_H */
