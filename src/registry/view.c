/*
 * view.c - this backend's views of indexes; see view.h, and registry.c for why a view's model may be read without a lock.
 */
#include "registry/view.h"

#include "access/genam.h"
#include "access/table.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "registry/registry.h"
#include "server/guard.h"
#include "utils/fmgroids.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

/* Views that a backend keeps beyond the end of a transaction. */
#define MAX_VIEWS 4096

/* Views from which on those of files that are gone are looked for, each time that their number has doubled. */
#define SWEEP_VIEWS 256

/* A view whose model could not be mapped, or did not fit, is not looked up again before. */
#define UNREACHABLE_MS 10000

static HTAB *views = NULL;
static long sweep_at = SWEEP_VIEWS;
dlist_head	lbt_dirty_indexes = DLIST_STATIC_INIT(lbt_dirty_indexes);

pg_atomic_uint64 *lbt_registry_generation = NULL;

static void
view_init(LbtIndex *index, Relation rel)
{
	LbtFile		file = index->file;

	memset(index, 0, sizeof(LbtIndex));
	index->file = file;
	index->leaf_items = 1;
	index->last.block = InvalidBlockNumber;
	lbt_keyspec_init(&index->keyspec, rel);
	index->oid = RelationGetRelid(rel); /* last: what an error leaves is not a
										 * view of this index */
}

/*
 * Options change seldom, and the setting behind them at any time.  The file's size is asked for again, too: TRUNCATE
 * makes the file of a table of this transaction anew in place, and invalidates the index's relcache entry.
 */
static inline void
update_options(LbtIndex *index, Relation rel)
{
	if (unlikely(index->options_at != lbt_index_options_generation))
	{
		uint64		generation = lbt_index_options_generation;

		index->options_at = lbt_index_options(rel, &index->options, &index->why_not) ? generation : 0;
		index->learned = index->why_not == NULL;
		index->nblocks = 0;
	}
	index->retrain_splits = index->options.retrain_splits > 0 ? index->options.retrain_splits :
		lbt_retrain_splits;
}

void
lbt_mark_dirty(LbtIndex *index)
{
	index->dirty = true;
	dlist_push_head(&lbt_dirty_indexes, &index->dirty_node);
}

/* Drop what a view has not flushed; the view itself goes, or is made anew. */
static void
forget_events(LbtIndex *index)
{
	if (index->dirty)
		dlist_delete(&index->dirty_node);
}

/* The file that a row of pg_class names; false when it is no index whose model may be shared. */
static bool
class_file(HeapTuple row, LbtFile *file)
{
	Form_pg_class class = (Form_pg_class) GETSTRUCT(row);

	*file = (LbtFile)
	{
		.database = class->relisshared ? InvalidOid : MyDatabaseId,
			.tablespace = OidIsValid(class->reltablespace) ? class->reltablespace : MyDatabaseTableSpace,
			.number = class->relfilenode
	};
	return class->relkind == RELKIND_INDEX && class->relpersistence != RELPERSISTENCE_TEMP &&
		OidIsValid(class->relfilenode);
}

bool
lbt_index_file(Oid relid, LbtFile *file)
{
	HeapTuple	row = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	bool		found;

	if (!HeapTupleIsValid(row))
		return false;
	found = class_file(row, file);
	ReleaseSysCache(row);
	return found;
}

/* Does pg_class have the view's file?  Not by the system cache, which keeps a note of each OID that it did not find. */
static bool
file_exists(Relation class, const LbtIndex *index)
{
	LbtFile		now;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	row;
	bool		exists;

	ScanKeyInit(&key, Anum_pg_class_oid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(index->oid));
	scan = systable_beginscan(class, ClassOidIndexId, true, NULL, 1, &key);
	row = systable_getnext(scan);
	exists = HeapTupleIsValid(row) && class_file(row, &now) && memcmp(&now, &index->file, sizeof(LbtFile)) == 0;
	systable_endscan(scan);
	return exists;
}

/* Nobody holds a view of a file that is gone: who uses an index keeps it from being dropped or made anew. */
static void
sweep(void)
{
	Relation	class = table_open(RelationRelationId, AccessShareLock);
	HASH_SEQ_STATUS status;
	LbtIndex   *index;

	hash_seq_init(&status, views);
	while ((index = hash_seq_search(&status)) != NULL)
		if (!file_exists(class, index))
		{
			forget_events(index);
			(void) hash_search(views, &index->file, HASH_REMOVE, NULL);
		}
	table_close(class, AccessShareLock);
	sweep_at = Max(SWEEP_VIEWS, 2 * hash_get_num_entries(views));
}

LbtIndex *
lbt_index_get(Relation rel)
{
	LbtFile		file = {LbtRelDatabase(rel), LbtRelTablespace(rel), LbtRelNumber(rel)};
	LbtIndex   *index;
	bool		found;

	if (RelationUsesLocalBuffers(rel))
	{
		/*
		 * Never shared, never counted: temporary indexes may come by the
		 * million.
		 */
		index = palloc(sizeof(LbtIndex));
		index->file = file;
		view_init(index, rel);
		update_options(index, rel);
		return index;
	}
	if (views == NULL)
	{
		HASHCTL		ctl = {.keysize = sizeof(LbtFile),.entrysize = sizeof(LbtIndex),
		.hcxt = TopMemoryContext};

		views = hash_create("learnedbtree indexes", 64, &ctl,
							HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	}
	if (unlikely(hash_get_num_entries(views) >= sweep_at))
		sweep();
	index = hash_search(views, &file, HASH_ENTER, &found);
	if (!found)
		index->oid = InvalidOid;
	if (index->oid != RelationGetRelid(rel))
	{
		/* New, or the number of a file long gone has come round again. */
		if (found)
			forget_events(index);
		view_init(index, rel);
	}
	update_options(index, rel);
	index->shareable = lbt_registry_attach();
	return index;
}

/* Can the registered model be used by this view? */
static bool
open_model(LbtIndex *index, const LbtEntry *entry)
{
	LbtColumnOrder order[LBT_CODE_COLUMNS];

	if (!lbt_model_open(dsa_get_address(lbt_area, entry->memory), entry->bytes, &index->model) ||
		!lbt_keyspec_fits(&index->keyspec, &index->model.code))
		return false;
	lbt_keyspec_order(&index->keyspec, order);
	lbt_codetree_set_columns(&index->model.tree, order, index->keyspec.ncolumns);
	return true;
}

static TimestampTz
unreachable_until(void)
{
	return TimestampTzPlusMilliseconds(GetCurrentTimestamp(), UNREACHABLE_MS);
}

/* The state comes last: what raises an error must leave a view without a model. */
static void
look_up(LbtIndex *index, TimestampTz failed_until)
{
	LbtEntry   *entry = dshash_find(lbt_entries, &index->file, false);
	LbtState	state;

	if (entry == NULL)
		return;
	state = entry->state;
	index->trained_blocks = entry->trained_blocks;
	index->model_bytes = entry->bytes;
	if (index->changed_at != entry->changed_at)
		index->misses = index->splits = 0;
	index->changed_at = entry->changed_at;
	if (state == LBT_FAILED || state == LBT_NO_MEMORY)
		index->again_at = entry->not_before;

	/* Mapped under the lock: afterwards the segment may be gone. */
	if (state == LBT_READY && !open_model(index, entry))
	{
		state = LBT_FAILED;
		index->again_at = failed_until != 0 ? failed_until : unreachable_until();
	}
	dshash_release_lock(lbt_entries, entry);
	index->state = state;
}

void
lbt_index_refresh(LbtIndex *index)
{
	uint64		generation = pg_atomic_read_u64(&lbt_control->generation);
	TimestampTz failed_until = index->state == LBT_FAILED ? index->again_at : 0;

	/* Before the lookup: a change after it must be noticed. */
	pg_read_barrier();
	index->state = LBT_UNTRAINED;
	index->trained_blocks = 0;
	index->nblocks = 0;
	index->again_at = 0;
	LBT_GUARDED(look_up(index, failed_until),
				(index->state = LBT_NO_MEMORY, index->again_at = unreachable_until()));
	index->generation = generation;
}

void *
lbt_index_copy_model(const LbtIndex *index, Size *bytes)
{
	return index->shareable ? lbt_registry_copy_model(&index->file, bytes) : NULL;
}

void
lbt_index_set_hint(LbtIndex *index, uint32 slot, int32 buffer)
{
	if (slot >= index->model.nleaves ||
		!LWLockConditionalAcquire(&lbt_control->reclaim, LW_SHARED))
		return;
	if (index->generation == pg_atomic_read_u64(&lbt_control->generation) &&
		index->state == LBT_READY)
		index->model.leaves[slot].recent_buffer = buffer;
	LWLockRelease(&lbt_control->reclaim);
}

void
lbt_views_trim(void)
{
	if (views == NULL || hash_get_num_entries(views) <= MAX_VIEWS)
		return;
	dlist_init(&lbt_dirty_indexes);
	hash_destroy(views);
	views = NULL;
	sweep_at = SWEEP_VIEWS;
}
