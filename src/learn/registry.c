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
 * between lbt_locate()'s lbt_index_update() and the end of the prediction), every index is bounded by numbers copied when the view was made (LbtModel), and a wrong
 * prediction is caught by the leaf.  Writers of buffer hints cannot be so careless: they hold
 * control->reclaim shared while they check the generation and write; freeing holds it exclusively.
 *
 * Lock order: hash partition, then dsa's own locks; reclaim, then dsa's own locks.  A partition lock
 * and reclaim are never held together.
 */
#include "learn/registry.h"

#include "learn/counters.h"
#include "learn/settings.h"
#include "miscadmin.h"
#include "server/guard.h"
#include "server/shared.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/procarray.h"
#include "utils/dsa.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

/* A backend that could not attach tries again only so much later. */
#define ATTACH_INTERVAL_MS 10000

/* A model not used for so long may make room for another that is wanted. */
#define IDLE_MS 60000

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

static void
attach(void *unused)
{
	MemoryContext old;
	LbtControl *c = lbt_shared_block();
	dshash_parameters params;

	if (c == NULL)
		return;
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
}

bool
lbt_registry_attach(void)
{
	static TimestampTz next_try = 0;

	if (control == NULL && lbt_shared_possible() && GetCurrentTimestamp() >= next_try &&
		!lbt_guarded(attach, NULL))
		next_try = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), ATTACH_INTERVAL_MS);
	return control != NULL;
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
	if (index->changed_at != entry->changed_at)
		index->misses = index->total_misses = 0;
	index->changed_at = entry->changed_at;

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

typedef struct Insertion
{
	const LbtFile *file;
	LbtEntry   *entry;
	bool		found;
} Insertion;

static void
insert_entry(void *arg)
{
	Insertion  *i = arg;

	i->entry = dshash_find_or_insert(entries, i->file, &i->found);
}

/* A file's entry, made if need be, locked; NULL when there is no memory for it. */
static LbtEntry *
lock_entry(LbtIndex *index)
{
	Insertion	i = {.file = &index->file};

	if (!lbt_guarded(insert_entry, &i))
		return NULL;
	if (!i.found)
	{
		memset((char *) i.entry + sizeof(LbtFile), 0, sizeof(LbtEntry) - sizeof(LbtFile));
		i.entry->memory = InvalidDsaPointer;
		i.entry->changed_at = GetCurrentTimestamp();
		pg_atomic_init_u64(&i.entry->used_at, (uint64) i.entry->changed_at);
	}
	i.entry->oid = index->oid;
	return i.entry;
}

typedef struct Allocation
{
	Size		bytes;
	dsa_pointer memory;
} Allocation;

/* NO_OOM is not enough: making a DSM segment raises errors of its own. */
static void
allocate(void *arg)
{
	Allocation *a = arg;

	a->memory = dsa_allocate_extended(area, a->bytes, DSA_ALLOC_NO_OOM | DSA_ALLOC_HUGE);
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

/* When the least recently used model but the given file's was used, and whose; MAX: there is none. */
static uint64
find_least_used(const LbtFile *keep, LbtFile *file)
{
	dshash_seq_status status;
	LbtEntry   *entry;
	uint64		oldest = PG_UINT64_MAX;

	dshash_seq_init(&status, entries, false);
	while ((entry = dshash_seq_next(&status)) != NULL)
	{
		uint64		used = pg_atomic_read_u64(&entry->used_at);

		if (entry->state == LBT_READY && used < oldest &&
			(keep == NULL || memcmp(&entry->file, keep, sizeof(LbtFile)) != 0))
		{
			oldest = used;
			*file = entry->file;
		}
	}
	dshash_seq_term(&status);
	return oldest;
}

/* Evict the least recently used model but the given file's; false when there is none. */
static bool
evict_one(const LbtFile *keep)
{
	LbtFile		victim;

	if (find_least_used(keep, &victim) == PG_UINT64_MAX)
		return false;
	evict(&victim);
	return true;
}

/* Shared memory for a model, filled in; invalid, with the reason in *state, when there is no room. */
static dsa_pointer
store_model(const LbtFile *file, const LbtModelHeader *header, const LbtKnot *knots,
			const LbtLeaf *leaves, Size bytes, LbtState *state)
{
	Allocation	a = {.bytes = bytes,.memory = InvalidDsaPointer};

	if (bytes > (Size) lbt_max_model_memory * 1024)
	{
		*state = LBT_TOO_LARGE;
		return InvalidDsaPointer;
	}
	while (!lbt_registry_has_room(bytes) && evict_one(file))
		;
	if (!lbt_guarded(allocate, &a) || !DsaPointerIsValid(a.memory))
	{
		*state = LBT_NO_MEMORY;
		return InvalidDsaPointer;
	}
	lbt_model_assemble(dsa_get_address(area, a.memory), header, knots, leaves);
	pg_atomic_fetch_add_u64(&control->model_bytes, bytes);
	return a.memory;
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

	entry = lock_entry(index);
	if (entry == NULL)
	{
		free_model(memory, bytes);
		return LBT_NO_MEMORY;
	}
	superseded = entry->memory;
	superseded_bytes = entry->bytes;
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
	bool		mine;

	if (!index->shareable)
		return false;
	entry = lock_entry(index);
	if (entry == NULL)
		return false;
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

	if (control == NULL)
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

		if (control == NULL)
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

bool
lbt_registry_has_idle(void)
{
	LbtFile		file;
	uint64		used;

	if (!lbt_registry_attach())
		return false;
	used = find_least_used(NULL, &file);
	return used != PG_UINT64_MAX &&
		TimestampDifferenceExceeds((TimestampTz) used, GetCurrentTimestamp(), IDLE_MS);
}
