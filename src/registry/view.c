/*
 * view.c - this backend's views of indexes; see view.h, and shmem.h for why a
 * view's model may be read without a lock.
 */
#include "registry/view.h"

#include <sys/stat.h>

#include "common/hashfn.h"
#include "miscadmin.h"
#include "server/guard.h"
#include "utils/hsearch.h"

/* Views kept beyond a transaction's end; the files of some may be gone. */
#define MAX_VIEWS 8192

/* Pause before training again where a model did not map or fit. */
#define UNREACHABLE_MS 10000

typedef struct View
{
	LbtFile		file;			/* hash key */
	LbtIndex   *index;			/* or NULL */
} View;

/* Views are allocated singly, and small: sessions and indexes may be many. */
static MemoryContext views_context = NULL;
static HTAB *views = NULL;		/* of View */
static LbtIndex *recent = NULL; /* asked for last */
dlist_head	lbt_dirty_indexes = DLIST_STATIC_INIT(lbt_dirty_indexes);

static LbtIndex *
make_view(Relation rel, const LbtFile *file, MemoryContext context)
{
	LbtKeySpec	spec;
	LbtIndex   *index;

	lbt_keyspec_init(&spec, rel);
	index = MemoryContextAllocZero(context, offsetof(LbtIndex, keyspec) + lbt_keyspec_bytes(&spec));
	index->file = *file;
	index->seen.leaf_items = 1;
	index->inserting.last.block = InvalidBlockNumber;
	index->seen.rightmost = InvalidBlockNumber;
	memcpy(&index->keyspec, &spec, lbt_keyspec_bytes(&spec));
	return index;
}

void
lbt_update_serving(LbtIndex *index, Relation rel)
{
	const uint64 generation = lbt_serving_generation;
	const char *why_not;

	index->serving.again = !lbt_index_served(rel, &why_not);
	index->serving.learned = why_not == NULL;
	index->serving.at = generation;
	index->nblocks = 0;
}

void
lbt_mark_dirty(LbtIndex *index)
{
	index->counts.dirty = true;
	dlist_push_head(&lbt_dirty_indexes, &index->counts.node);
}

/*
 * For LbtFile.made: a hash of when the server wrote PG_VERSION into the
 * database's folder, which it does once.
 */
static uint32
database_made(void)
{
	static uint32 made = 0;

	if (unlikely(made == 0))
	{
		char		path[MAXPGPATH];
		struct stat file;

		snprintf(path, sizeof(path), "%s/PG_VERSION", DatabasePath);
		if (stat(path, &file) == 0)
		{
			uint64		time = file.st_mtim.tv_sec * UINT64CONST(1000000000) + file.st_mtim.tv_nsec;

			made = (uint32) hash_bytes_extended((const unsigned char *) &time, sizeof(time), 0);
		}
		made = Max(made, 1);
	}
	return made;
}

bool
lbt_index_file(Oid relid, LbtFile *file)
{
	HeapTuple	row = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	Form_pg_class class;
	bool		shareable;

	if (!HeapTupleIsValid(row))
		return false;
	class = (Form_pg_class) GETSTRUCT(row);
	file->database = class->relisshared ? InvalidOid : MyDatabaseId;
	file->index = relid;
	file->tablespace = OidIsValid(class->reltablespace) ? class->reltablespace :
		MyDatabaseTableSpace;
	file->number = class->relfilenode;
	file->made = database_made();
	shareable = class->relkind == RELKIND_INDEX && class->relpersistence != RELPERSISTENCE_TEMP &&
		OidIsValid(class->relfilenode);
	ReleaseSysCache(row);
	return shareable;
}

static LbtIndex *
find_view(Relation rel, const LbtFile *file)
{
	View	   *view;
	bool		found;

	if (views == NULL)
	{
		HASHCTL		ctl = {.keysize = sizeof(LbtFile),.entrysize = sizeof(View)};

		if (views_context == NULL)
			views_context = AllocSetContextCreate(TopMemoryContext, "learnedbtree indexes",
												  ALLOCSET_DEFAULT_MINSIZE,
												  ALLOCSET_DEFAULT_INITSIZE,
												  4 * ALLOCSET_DEFAULT_INITSIZE);
		ctl.hcxt = views_context;
		views = hash_create("learnedbtree indexes", 64, &ctl,
							HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	}
	view = hash_search(views, file, HASH_ENTER, &found);
	if (!found)
		view->index = NULL;
	if (view->index == NULL)
		view->index = make_view(rel, file, views_context);
	return view->index;
}

LbtIndex *
lbt_index_get(Relation rel)
{
	const RelFileLocator *locator = &rel->rd_locator;
	LbtFile		file = {locator->dbOid, RelationGetRelid(rel), locator->spcOid, locator->relNumber,
	database_made()};
	LbtIndex   *index;

	if (RelationUsesLocalBuffers(rel))
	{
		/* Never shared or counted: there may be millions of these. */
		index = make_view(rel, &file, CurrentMemoryContext);
		lbt_update_serving(index, rel);
		return index;
	}
	if (recent == NULL || !lbt_same_file(&recent->file, &file))
		recent = find_view(rel, &file);
	index = recent;
	if (unlikely(index->serving.at != lbt_serving_generation || index->serving.again))
		lbt_update_serving(index, rel);
	index->shareable = lbt_registry_attach();
	return index;
}

/*
 * Can the registered model be used by this view?  Mostly it has it already:
 * the generation counts changes of all indexes.
 */
static bool
open_model(LbtIndex *index, const LbtEntry *entry, uint64 since)
{
	bool		had = index->code != NULL && index->model_of == entry->changed_at;
	LbtKeyCode	code;

	index->model_of = 0;
	if (!lbt_model_open(dsa_get_address(lbt_area, entry->memory), entry->bytes, &index->model,
						&code) || !lbt_keyspec_can_use(&index->keyspec, &code))
		return false;
	if (!had)
	{
		index->model_since = since;
		if (index->code)
			pfree(index->code);
		index->code = NULL;
		index->code = MemoryContextAlloc(views_context, lbt_keycode_bytes(&code));
		memcpy(index->code, &code, lbt_keycode_bytes(&code));
		/* Their codes were another model's. */
		index->inserting.last.left = InvalidBlockNumber;
		index->seen.beyond = 0;
	}
	index->model_of = entry->changed_at;
	index->model.code = index->code;
	index->model.separators.ncolumns = index->keyspec.ncolumns;
	index->model.separators.order = index->keyspec.order;
	return true;
}

/* Set the state last: after an error the view must have no model. */
static void
look_up(LbtIndex *index, uint64 since)
{
	LbtEntry   *entry = dshash_find(lbt_entries, &index->file, false);
	LbtState	state;

	if (entry == NULL)
		return;
	state = lbt_same_file(&entry->file, &index->file) ? entry->state : LBT_UNTRAINED;
	index->trained_blocks = entry->trained_blocks;
	index->model_bytes = entry->bytes;
	if (state == LBT_FAILED || state == LBT_NO_MEMORY)
		index->again_at = entry->not_before;

	/* What long statements use is not what was used least. */
	if (state == LBT_READY)
		pg_atomic_write_u64(&entry->used_at, (uint64) GetCurrentTimestamp());

	/* Map it under the lock: afterwards the segment may be gone. */
	if (state == LBT_READY && !open_model(index, entry, since))
	{
		state = LBT_FAILED;
		index->again_at = TimestampTzPlusMilliseconds(entry->changed_at, UNREACHABLE_MS);
	}
	dshash_release_lock(lbt_entries, entry);
	index->state = state;
}

void
lbt_index_refresh(LbtIndex *index)
{
	uint64		generation = pg_atomic_read_u64(&lbt_control->generation);

	/* A model may be there before the generation is raised for it. */
	volatile uint64 since = index->state == LBT_READY && index->generation == generation ?
		generation + 1 : generation;

	/* Before the lookup: we must notice a change after it. */
	pg_read_barrier();
	index->state = LBT_UNTRAINED;
	index->trained_blocks = 0;
	index->nblocks = 0;
	index->again_at = 0;
	if (unlikely(!lbt_guard_may_enter()))
	{
		index->generation = 0;	/* look again */
		return;
	}
	LBT_GUARDED(look_up(index, since),
				(index->state = LBT_NO_MEMORY,
				 index->again_at = TimestampTzPlusMilliseconds(GetCurrentTimestamp(),
															   UNREACHABLE_MS)));
	index->generation = generation;
}

/* The slot's leaf, which may be changed until reclaim is released; or NULL. */
static LbtLeaf *
writable_leaf(const LbtIndex *index, uint32 slot, BlockNumber block)
{
	if (slot >= index->model.nleaves ||
		!LWLockConditionalAcquire(&lbt_control->reclaim, LW_SHARED))
		return NULL;
	if (lbt_same_model(index, index->generation) && index->model.leaves[slot].block == block)
		return &index->model.leaves[slot];
	LWLockRelease(&lbt_control->reclaim);
	return NULL;
}

/*
 * Both share a word, and one of two that are set at a time may be lost: a hint
 * is, and a cut is forgotten only to save time.
 */
void
lbt_index_set_hint(LbtIndex *index, uint32 slot, BlockNumber block, int32 buffer)
{
	LbtLeaf    *leaf = writable_leaf(index, slot, block);

	if (leaf == NULL)
		return;
	leaf->recent_buffer = buffer;
	LWLockRelease(&lbt_control->reclaim);
}

void
lbt_index_forget_cut(LbtIndex *index, uint32 slot, BlockNumber block)
{
	LbtLeaf    *leaf = writable_leaf(index, slot, block);

	if (leaf == NULL)
		return;
	leaf->cut = 0;
	LWLockRelease(&lbt_control->reclaim);
}

void
lbt_views_trim(void)
{
	if (views == NULL || hash_get_num_entries(views) <= MAX_VIEWS)
		return;
	dlist_init(&lbt_dirty_indexes);
	MemoryContextReset(views_context);	/* and the table in it */
	views = NULL;
	recent = NULL;
}
