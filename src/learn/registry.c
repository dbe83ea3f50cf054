/*
 * registry.c - published models in shared memory; see registry.h.
 *
 * Shared: one control block with a dsa area inside it (it grows by DSM segments), in the area a hash
 * table from file to entry, and the models.
 *
 * Locking.  An entry is read and changed under its hash partition's lock.  lbt_control->generation is
 * raised after every change and before the memory of a superseded model is freed, so a backend whose
 * view carries the current generation holds pointers to live models.
 *
 * Readers take no lock and write nothing: a lookup compares the generation, then reads the model.  A
 * model may be freed and its memory reused between the two.  What the lookup then reads is garbage,
 * but harmless: it stays mapped (this process unmaps segments only inside dsa calls, and none happens
 * between the lbt_index_update() of lbt_locate() or lbt_place() and the end of the prediction), every
 * index is bounded by numbers copied when the view was made (LbtModel), and a wrong prediction is
 * caught by the leaf.  Writers of buffer hints cannot be so careless: they hold
 * lbt_control->reclaim shared while they check the generation and write; freeing holds it exclusively.
 *
 * Lock order: stat_file (statfile.c's), hash partition, dsa's own locks; reclaim, then dsa's own locks.  A
 * partition lock and reclaim are never held together.
 */
#include "learn/registry_internal.h"

#include "learn/counters.h"
#include "learn/settings.h"
#include "learn/statfile.h"
#include "learn/workercounts.h"
#include "miscadmin.h"
#include "server/guard.h"
#include "server/shared.h"
#include "storage/ipc.h"
#include "storage/procarray.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

/* A backend that could not attach tries again only so much later. */
#define ATTACH_INTERVAL_MS 10000

/* Room for the hash tables before the first DSM segment is needed. */
#define PLACE_BYTES (256 * 1024)

pg_atomic_uint64 *lbt_registry_generation = NULL;

LbtControl *lbt_control = NULL;
dsa_area   *lbt_area = NULL;
dshash_table *lbt_entries = NULL;

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
	LWLockRegisterTranche(c->tranche, "LearnedBtree");
	LWLockInitialize(&c->reclaim, c->tranche);
	pg_atomic_init_u64(&c->generation, 1);
	pg_atomic_init_u64(&c->model_bytes, 0);
	pg_atomic_init_u32(&c->launcher, 0);
	pg_atomic_init_u32(&c->launcher_proc, 0);
	pg_atomic_init_u64(&c->launch_tried, 0);
	pg_atomic_init_u32(&c->told_no_worker, 0);
	pg_atomic_init_u32(&c->workers_connected, 0);
	lbt_statfile_init(c);

	a = dsa_create_in_place(place_of(c), PLACE_BYTES, c->tranche, NULL);
	dsa_pin(a);
	dsa_set_size_limit(a, PLACE_BYTES);
	params = entry_parameters(c->tranche);
	table = dshash_create(a, &params, NULL);
	c->entries = dshash_get_hash_table_handle(table);
	dshash_detach(table);
	c->stats = lbt_stats_create(a, c->tranche);
	c->workercounts = lbt_workercounts_create(a, c->tranche);
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
	LWLockRegisterTranche(c->tranche, "LearnedBtree");
	old = MemoryContextSwitchTo(TopMemoryContext);
	lbt_area = dsa_attach_in_place(place_of(c), NULL);
	/* Not later: the place may be in a DSM segment, and these are gone before on_shmem_exit. */
	before_shmem_exit(dsa_on_shmem_exit_release_in_place, PointerGetDatum(place_of(c)));
	dsa_pin_mapping(lbt_area);
	params = entry_parameters(c->tranche);
	lbt_entries = dshash_attach(lbt_area, &params, c->entries, NULL);
	lbt_stats_attach(lbt_area, c->tranche, c->stats);
	lbt_workercounts_attach(lbt_area, c->tranche, c->workercounts);
	MemoryContextSwitchTo(old);
	lbt_registry_generation = &c->generation;
	lbt_control = c;
	lbt_statfile_enter();
}

bool
lbt_registry_attach(void)
{
	static TimestampTz next_try = 0;

	if (lbt_control == NULL && lbt_shared_possible() && GetCurrentTimestamp() >= next_try &&
		!lbt_guarded(attach, NULL))
		next_try = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), ATTACH_INTERVAL_MS);
	return lbt_control != NULL;
}

void
lbt_index_refresh(LbtIndex *index)
{
	LbtColumnOrder order[LBT_CODE_COLUMNS];
	LbtEntry   *entry;

	/* Before the lookup: a change after it must be noticed. */
	index->generation = pg_atomic_read_u64(&lbt_control->generation);
	pg_read_barrier();
	index->state = LBT_UNTRAINED;
	index->trained_blocks = 0;
	index->image_lsn = InvalidXLogRecPtr;
	index->nblocks = 0;
	entry = dshash_find(lbt_entries, &index->file, false);
	if (entry == NULL)
		return;
	index->state = entry->state;
	index->trained_blocks = entry->trained_blocks;
	index->model_bytes = entry->bytes;
	index->image_lsn = entry->image_lsn;
	if (index->changed_at != entry->changed_at)
		index->misses = index->splits = 0;
	index->changed_at = entry->changed_at;

	/* Mapped under the lock: afterwards the segment may be gone. */
	if (index->state == LBT_READY &&
		(!lbt_model_open(dsa_get_address(lbt_area, entry->memory), entry->bytes, &index->model) ||
		 !lbt_keyspec_fits(&index->keyspec, &index->model.code)))
		index->state = LBT_FAILED;
	dshash_release_lock(lbt_entries, entry);
	lbt_keyspec_order(&index->keyspec, order);
	lbt_codetree_set_columns(&index->model.tree, order, index->keyspec.ncolumns);
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

	i->entry = dshash_find_or_insert(lbt_entries, i->file, &i->found);
}

LbtEntry *
lbt_entry_lock(LbtIndex *index)
{
	return lbt_entry_lock_file(&index->file, index->oid);
}

LbtEntry *
lbt_entry_lock_file(const LbtFile *file, Oid oid)
{
	Insertion	i = {.file = file};

	if (!lbt_guarded(insert_entry, &i))
		return NULL;
	if (!i.found)
	{
		memset((char *) i.entry + sizeof(LbtFile), 0, sizeof(LbtEntry) - sizeof(LbtFile));
		i.entry->memory = InvalidDsaPointer;
		i.entry->changed_at = GetCurrentTimestamp();
		pg_atomic_init_u64(&i.entry->used_at, (uint64) i.entry->changed_at);
	}
	i.entry->oid = oid;
	return i.entry;
}

LbtState
lbt_registry_publish(LbtIndex *index, const LbtTrained *trained, bool new_file)
{
	const LbtModelHeader *header = &trained->header;
	LbtState	state = trained->state;
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
		bytes = lbt_model_bytes(header->nleaves, header->nknots, header->tree_bytes);
		if (!lbt_registry_has_room(bytes))
			lbt_model_evict(&index->file);
		memory = lbt_model_store(&index->file, trained, bytes, &state);
	}

	entry = lbt_entry_lock(index);
	if (entry == NULL)
	{
		lbt_model_free(memory, bytes);
		return LBT_NO_MEMORY;
	}
	superseded = entry->memory;
	superseded_bytes = entry->bytes;
	entry->state = state;
	entry->trained_blocks = trained->blocks;
	entry->memory = memory;
	entry->bytes = bytes;
	entry->changed_at = now;
	entry->image_lsn = trained->image_lsn;
	lbt_demand_settle(entry, header, trained->fingerprint);
	pg_atomic_write_u64(&entry->used_at, (uint64) now);
	dshash_release_lock(lbt_entries, entry);
	lbt_model_free(superseded, superseded_bytes);

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
	entry = lbt_entry_lock(index);
	if (entry == NULL)
		return false;
	mine = entry->trainer == 0 || entry->trainer == MyProcPid ||
		BackendPidGetProc(entry->trainer) == NULL;
	if (mine)
		entry->trainer = MyProcPid;
	dshash_release_lock(lbt_entries, entry);
	return mine;
}

void
lbt_registry_unclaim(LbtIndex *index, bool failed)
{
	LbtEntry   *entry;

	if (!index->shareable)
		return;
	entry = dshash_find(lbt_entries, &index->file, true);
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
	dshash_release_lock(lbt_entries, entry);
	if (failed)
		pg_atomic_fetch_add_u64(&lbt_control->generation, 1);
}

bool
lbt_registry_knows(const LbtFile *file, Oid oid)
{
	LbtEntry   *entry;

	if (!lbt_registry_attach())
		return false;
	entry = dshash_find(lbt_entries, file, false);
	if (entry == NULL)
		return lbt_stats_any(file->database, oid);
	dshash_release_lock(lbt_entries, entry);
	return true;
}

bool
lbt_registry_describe(LbtIndex *index, LbtRegistered *out)
{
	LbtEntry   *entry;

	if (!index->shareable)
		return false;
	entry = dshash_find(lbt_entries, &index->file, false);
	if (entry == NULL)
		return false;
	out->state = entry->state;
	out->changed_at = entry->changed_at;
	out->since = entry->since;
	if (entry->state == LBT_READY)
		memcpy(&out->header, dsa_get_address(lbt_area, entry->memory), sizeof(LbtModelHeader));
	dshash_release_lock(lbt_entries, entry);
	return true;
}

void *
lbt_registry_copy_model(LbtIndex *index, Size *bytes)
{
	LbtEntry   *entry;
	void	   *copy = NULL;

	if (!index->shareable)
		return NULL;
	entry = dshash_find(lbt_entries, &index->file, false);
	if (entry == NULL)
		return NULL;
	if (entry->state == LBT_READY)
	{
		*bytes = entry->bytes;
		copy = MemoryContextAllocExtended(CurrentMemoryContext, *bytes,
										  MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);
		if (copy)
			memcpy(copy, dsa_get_address(lbt_area, entry->memory), *bytes);
	}
	dshash_release_lock(lbt_entries, entry);
	return copy;
}

void
lbt_registry_drop_file(const LbtFile *file)
{
	LbtEntry   *entry;
	dsa_pointer memory;
	Size		bytes;

	if (lbt_control == NULL)
		return;
	entry = dshash_find(lbt_entries, file, true);
	if (entry == NULL)
		return;
	memory = entry->memory;
	bytes = entry->bytes;
	dshash_delete_entry(lbt_entries, entry);
	lbt_model_free(memory, bytes);
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

		if (lbt_control == NULL)
			return;
		dshash_seq_init(&status, lbt_entries, false);
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

int
lbt_registry_list(Oid database, LbtListed **listed, int max)
{
	dshash_seq_status status;
	LbtEntry   *entry;
	int			n = 0;

	*listed = palloc(max * sizeof(LbtListed));
	dshash_seq_init(&status, lbt_entries, false);
	while ((entry = dshash_seq_next(&status)) != NULL)
	{
		if (entry->file.database != database)
			continue;
		if (n == max)
			break;
		(*listed)[n++] = (LbtListed) {.file = entry->file,.oid = entry->oid,
		.changed_at = entry->changed_at};
	}
	dshash_seq_term(&status);
	return n;
}
