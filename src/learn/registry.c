/*
 * registry.c - published models in shared memory; see registry.h.
 *
 * Shared: one control block with a dsa area inside it (it grows by DSM segments), in the area a hash
 * table from file to entry, and the models.
 *
 * Locking.  An entry is read and changed under its hash partition's lock.  control->generation is
 * raised after every change and before the memory of a superseded model is freed, so a backend whose
 * view carries the current generation holds pointers to live models.
 *
 * Readers take no lock and write nothing: a lookup compares the generation, then reads the model.  A
 * model may be freed and its memory reused between the two.  What the lookup then reads is garbage,
 * but harmless: it stays mapped (this process unmaps segments only inside dsa calls, and none happens
 * in between), every index is bounded by numbers copied when the view was made (LbtModel), and a wrong
 * prediction is caught by the leaf.  Writers of buffer hints cannot be so careless: they hold
 * control->reclaim shared while they check the generation and write; freeing holds it exclusively.
 *
 * Lock order: hash partition, then dsa's own locks; reclaim, then dsa's own locks.  A partition lock
 * and reclaim are never held together.
 */
#include "learn/registry.h"

#include "learn/settings.h"
#include "miscadmin.h"
#include "server/shared.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/procarray.h"
#include "utils/dsa.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "learn/counters.h"

/* Room for the hash tables before the first DSM segment is needed. */
#define PLACE_BYTES (256 * 1024)

typedef struct LbtControl
{
	int			tranche;
	LWLock		reclaim;
	pg_atomic_uint64 generation;	/* starts at 1 */
	pg_atomic_uint64 model_bytes;
	dshash_table_handle entries;
	dshash_table_handle stats;
} LbtControl;

typedef struct LbtEntry
{
	LbtFile		file;			/* hash key */
	Oid			oid;
	LbtState	state;
	BlockNumber trained_blocks;
	int			trainer;		/* pid of the backend training it now, or 0 */
	dsa_pointer memory;			/* the model, when LBT_READY */
	Size		bytes;
	TimestampTz changed_at;
	pg_atomic_uint64 used_at;	/* TimestampTz; written under the shared partition lock */
} LbtEntry;

pg_atomic_uint64 *lbt_registry_generation = NULL;

static LbtControl *control = NULL;
static dsa_area *area = NULL;
static dshash_table *entries = NULL;
static HTAB *views = NULL;

static dshash_parameters
entry_parameters(int tranche)
{
	return lbt_dshash_parameters(sizeof(LbtFile), sizeof(LbtEntry), tranche);
}

static void *
place_of(LbtControl *c)
{
	return (char *) c + MAXALIGN(sizeof(LbtControl));
}

/* Runs once for the cluster, perhaps in the postmaster, where no DSM segment can be made. */
static void
init_control(void *block)
{
	LbtControl *c = block;
	dsa_area   *a;
	dshash_parameters params;
	dshash_table *table;

	c->tranche = LWLockNewTrancheId();
	LWLockRegisterTranche(c->tranche, "learnedbtree");
	LWLockInitialize(&c->reclaim, c->tranche);
	pg_atomic_init_u64(&c->generation, 1);
	pg_atomic_init_u64(&c->model_bytes, 0);

	a = dsa_create_in_place(place_of(c), PLACE_BYTES, c->tranche, NULL);
	dsa_pin(a);
	dsa_set_size_limit(a, PLACE_BYTES);
	params = entry_parameters(c->tranche);
	table = dshash_create(a, &params, NULL);
	c->entries = dshash_get_hash_table_handle(table);
	dshash_detach(table);
	c->stats = lbt_stats_create(a, c->tranche);
	dsa_set_size_limit(a, (size_t) -1);
	dsa_detach(a);
}

void
lbt_registry_declare(void)
{
	lbt_shared_declare(MAXALIGN(sizeof(LbtControl)) + PLACE_BYTES, init_control);
}

bool
lbt_registry_attach(void)
{
	MemoryContext old;
	LbtControl *c;
	dshash_parameters params;

	if (control != NULL)
		return true;
	c = lbt_shared_block();
	if (c == NULL)
		return false;
	LWLockRegisterTranche(c->tranche, "learnedbtree");
	old = MemoryContextSwitchTo(TopMemoryContext);
	area = dsa_attach_in_place(place_of(c), NULL);
	/* Not later: the place may be in a DSM segment, and these are gone before on_shmem_exit. */
	before_shmem_exit(dsa_on_shmem_exit_release_in_place, PointerGetDatum(place_of(c)));
	dsa_pin_mapping(area);
	params = entry_parameters(c->tranche);
	entries = dshash_attach(area, &params, c->entries, NULL);
	lbt_stats_attach(area, c->tranche, c->stats);
	MemoryContextSwitchTo(old);
	lbt_registry_generation = &c->generation;
	control = c;
	return true;
}

LbtIndex *
lbt_index_get(Relation rel)
{
	LbtFile		file = {LbtRelDatabase(rel), LbtRelTablespace(rel), LbtRelNumber(rel)};
	LbtIndex   *index;
	bool		found;

	if (views == NULL)
	{
		HASHCTL		ctl = {.keysize = sizeof(LbtFile),.entrysize = sizeof(LbtIndex),
			.hcxt = TopMemoryContext};

		views = hash_create("learnedbtree indexes", 64, &ctl,
							HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	}
	index = hash_search(views, &file, HASH_ENTER, &found);
	if (!found)
	{
		memset((char *) index + sizeof(LbtFile), 0, sizeof(LbtIndex) - sizeof(LbtFile));
		index->leaf_items = 1;
		lbt_keyspec_init(&index->keyspec, rel);
	}
	index->oid = RelationGetRelid(rel);
	index->shareable = !RelationUsesLocalBuffers(rel) && lbt_registry_attach();
	return index;
}

/* Free the memory of a model that no entry names any more. */
static void
free_model(dsa_pointer memory, Size bytes)
{
	pg_atomic_fetch_add_u64(&control->generation, 1);
	if (!DsaPointerIsValid(memory))
		return;
	LWLockAcquire(&control->reclaim, LW_EXCLUSIVE);
	dsa_free(area, memory);
	LWLockRelease(&control->reclaim);
	pg_atomic_fetch_sub_u64(&control->model_bytes, bytes);
}

void
lbt_index_refresh(LbtIndex *index)
{
	LbtEntry   *entry;

	/* Before the lookup: a change after it must be noticed. */
	index->generation = pg_atomic_read_u64(&control->generation);
	pg_read_barrier();
	index->state = LBT_UNTRAINED;
	index->trained_blocks = 0;
	index->nblocks = 0;
	entry = dshash_find(entries, &index->file, false);
	if (entry == NULL)
		return;
	index->state = entry->state;
	index->trained_blocks = entry->trained_blocks;
	index->model_bytes = entry->bytes;

	/* Mapped under the lock: afterwards the segment may be gone. */
	if (index->state == LBT_READY &&
		!lbt_model_open(dsa_get_address(area, entry->memory), entry->bytes, &index->model))
		index->state = LBT_FAILED;
	dshash_release_lock(entries, entry);
}

void
lbt_index_set_hint(LbtIndex *index, uint32 slot, int32 buffer)
{
	if (!LWLockConditionalAcquire(&control->reclaim, LW_SHARED))
		return;
	if (index->generation == pg_atomic_read_u64(&control->generation) &&
		index->state == LBT_READY && slot < index->model.nleaves)
		index->model.leaves[slot].recent_buffer = buffer;
	LWLockRelease(&control->reclaim);
}

/* Take a file's model away; its entry stays, to say why.  Nothing happens when there is none. */
static void
evict(const LbtFile *file)
{
	LbtEntry   *entry = dshash_find(entries, file, true);
	dsa_pointer memory;
	Size		bytes;

	if (entry == NULL)
		return;
	memory = entry->memory;
	bytes = entry->bytes;
	entry->memory = InvalidDsaPointer;
	if (entry->state == LBT_READY)
		entry->state = LBT_EVICTED;
	dshash_release_lock(entries, entry);
	free_model(memory, bytes);
}

/* Evict the least recently used model but the given file's; false when there is none. */
static bool
evict_one(const LbtFile *keep)
{
	dshash_seq_status status;
	LbtEntry   *entry;
	LbtFile		victim;
	uint64		oldest = PG_UINT64_MAX;

	dshash_seq_init(&status, entries, false);
	while ((entry = dshash_seq_next(&status)) != NULL)
	{
		uint64		used = pg_atomic_read_u64(&entry->used_at);

		if (entry->state == LBT_READY && used < oldest &&
			memcmp(&entry->file, keep, sizeof(LbtFile)) != 0)
		{
			oldest = used;
			victim = entry->file;
		}
	}
	dshash_seq_term(&status);
	if (oldest == PG_UINT64_MAX)
		return false;
	evict(&victim);
	return true;
}

/* Shared memory for a model, filled in; invalid, with the reason in *state, when there is no room. */
static dsa_pointer
store_model(const LbtFile *file, const LbtModelHeader *header, const LbtKnot *knots,
			const LbtLeaf *leaves, Size bytes, LbtState *state)
{
	dsa_pointer memory;

	if (bytes > (Size) lbt_max_model_memory * 1024)
	{
		*state = LBT_TOO_LARGE;
		return InvalidDsaPointer;
	}
	while (!lbt_registry_has_room(bytes) && evict_one(file))
		;
	memory = dsa_allocate_extended(area, bytes, DSA_ALLOC_NO_OOM | DSA_ALLOC_HUGE);
	if (!DsaPointerIsValid(memory))
	{
		*state = LBT_NO_MEMORY;
		return InvalidDsaPointer;
	}
	lbt_model_assemble(dsa_get_address(area, memory), header, knots, leaves);
	pg_atomic_fetch_add_u64(&control->model_bytes, bytes);
	return memory;
}

LbtState
lbt_registry_publish(LbtIndex *index, LbtState state, const LbtModelHeader *header,
					 const LbtKnot *knots, const LbtLeaf *leaves, BlockNumber trained_blocks,
					 bool new_file)
{
	dsa_pointer memory = InvalidDsaPointer;
	dsa_pointer superseded;
	Size		bytes = 0;
	Size		superseded_bytes;
	TimestampTz now = GetCurrentTimestamp();
	LbtEntry   *entry;
	bool		found;

	if (!index->shareable)
		return state;

	/* The old model goes first when both do not fit together. */
	if (state == LBT_READY)
	{
		bytes = lbt_model_bytes(header->nleaves, header->nknots);
		if (!lbt_registry_has_room(bytes))
			evict(&index->file);
		memory = store_model(&index->file, header, knots, leaves, bytes, &state);
	}

	entry = dshash_find_or_insert(entries, &index->file, &found);
	if (!found)
	{
		entry->memory = InvalidDsaPointer;
		entry->trainer = 0;
		pg_atomic_init_u64(&entry->used_at, 0);
	}
	superseded = entry->memory;
	superseded_bytes = entry->bytes;
	entry->oid = index->oid;
	entry->state = state;
	entry->trained_blocks = trained_blocks;
	entry->memory = memory;
	entry->bytes = bytes;
	entry->changed_at = now;
	pg_atomic_write_u64(&entry->used_at, (uint64) now);
	dshash_release_lock(entries, entry);
	free_model(superseded, superseded_bytes);

	if (!new_file)
		lbt_registry_drop_matching(index->file.database, index->oid, &index->file);
	lbt_index_refresh(index);
	return state;
}

bool
lbt_registry_claim(LbtIndex *index)
{
	LbtEntry   *entry;
	bool		found;
	bool		mine;

	if (!index->shareable)
		return false;
	entry = dshash_find_or_insert(entries, &index->file, &found);
	if (!found)
	{
		memset((char *) entry + sizeof(LbtFile), 0, sizeof(LbtEntry) - sizeof(LbtFile));
		entry->oid = index->oid;
		entry->changed_at = GetCurrentTimestamp();
		pg_atomic_init_u64(&entry->used_at, (uint64) entry->changed_at);
	}
	mine = entry->trainer == 0 || entry->trainer == MyProcPid ||
		BackendPidGetProc(entry->trainer) == NULL;
	if (mine)
		entry->trainer = MyProcPid;
	dshash_release_lock(entries, entry);
	return mine;
}

void
lbt_registry_unclaim(LbtIndex *index, bool failed)
{
	LbtEntry   *entry;

	if (!index->shareable)
		return;
	entry = dshash_find(entries, &index->file, true);
	if (entry == NULL)
		return;
	if (entry->trainer == MyProcPid)
		entry->trainer = 0;
	if (failed && entry->state != LBT_READY)
	{
		entry->state = LBT_FAILED;
		entry->trained_blocks = MaxBlockNumber / 2; /* no growth makes up for it */
		entry->changed_at = GetCurrentTimestamp();
	}
	dshash_release_lock(entries, entry);
	if (failed)
		pg_atomic_fetch_add_u64(&control->generation, 1);
}

bool
lbt_registry_describe(LbtIndex *index, LbtRegistered *out)
{
	LbtEntry   *entry;

	if (!index->shareable)
		return false;
	entry = dshash_find(entries, &index->file, false);
	if (entry == NULL)
		return false;
	out->state = entry->state;
	out->changed_at = entry->changed_at;
	if (entry->state == LBT_READY)
		memcpy(&out->header, dsa_get_address(area, entry->memory), sizeof(LbtModelHeader));
	dshash_release_lock(entries, entry);
	return true;
}

void *
lbt_registry_copy_model(LbtIndex *index, Size *bytes)
{
	LbtEntry   *entry;
	void	   *copy = NULL;

	if (!index->shareable)
		return NULL;
	entry = dshash_find(entries, &index->file, false);
	if (entry == NULL)
		return NULL;
	if (entry->state == LBT_READY)
	{
		*bytes = entry->bytes;
		copy = MemoryContextAllocExtended(CurrentMemoryContext, *bytes,
										  MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);
		if (copy)
			memcpy(copy, dsa_get_address(area, entry->memory), *bytes);
	}
	dshash_release_lock(entries, entry);
	return copy;
}

void
lbt_registry_drop_file(const LbtFile *file)
{
	LbtEntry   *entry;
	dsa_pointer memory;
	Size		bytes;

	if (!lbt_registry_attach())
		return;
	entry = dshash_find(entries, file, true);
	if (entry == NULL)
		return;
	memory = entry->memory;
	bytes = entry->bytes;
	dshash_delete_entry(entries, entry);
	free_model(memory, bytes);
}

void
lbt_registry_drop_matching(Oid database, Oid oid, const LbtFile *except)
{
	for (;;)
	{
		dshash_seq_status status;
		LbtEntry   *entry;
		LbtFile		found;
		bool		any = false;

		if (!lbt_registry_attach())
			return;
		dshash_seq_init(&status, entries, false);
		while ((entry = dshash_seq_next(&status)) != NULL)
		{
			if (entry->file.database == database && (!OidIsValid(oid) || entry->oid == oid) &&
				(except == NULL || memcmp(&entry->file, except, sizeof(LbtFile)) != 0))
			{
				found = entry->file;
				any = true;
				break;
			}
		}
		dshash_seq_term(&status);
		if (!any)
			return;
		lbt_registry_drop_file(&found);
	}
}

void
lbt_registry_touch(const LbtFile *file, TimestampTz now)
{
	LbtEntry   *entry;

	if (control == NULL)
		return;
	entry = dshash_find(entries, file, false);
	if (entry == NULL)
		return;
	pg_atomic_write_u64(&entry->used_at, (uint64) now);
	dshash_release_lock(entries, entry);
}

uint64
lbt_registry_bytes(void)
{
	return lbt_registry_attach() ? pg_atomic_read_u64(&control->model_bytes) : 0;
}

bool
lbt_registry_has_room(Size bytes)
{
	return lbt_registry_bytes() + bytes <= (Size) lbt_max_model_memory * 1024;
}
