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

/* A view whose model could not be mapped, or did not fit, is not looked up again before. */
#define UNREACHABLE_MS 10000

/* Room for the hash tables before the first DSM segment is needed. */
#define PLACE_BYTES (256 * 1024)

pg_atomic_uint64 *lbt_registry_generation = NULL;

LbtControl *lbt_control = NULL;
dsa_area   *lbt_area = NULL;
dshash_table *lbt_entries = NULL;

static LbtDoomed *doomed = NULL;

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
	pg_atomic_init_u64(&c->unreachable_told, 0);
	pg_atomic_init_u64(&c->idle_looked_at, 0);
	pg_atomic_init_u32(&c->launcher, 0);
	pg_atomic_init_u32(&c->launcher_proc, 0);
	pg_atomic_init_u64(&c->launch_tried, 0);
	pg_atomic_init_u32(&c->told_no_worker, 0);
	pg_atomic_init_u32(&c->workers_connected, 0);
	pg_atomic_init_u32(&c->databases_wait, 0);
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

/*
 * At exit, while DSM segments are still mapped (the place may be in one; they are gone before on_shmem_exit).  An error
 * here ends the process, and what comes next in its exit needs the locks.
 */
static void
leave(int code, Datum arg)
{
	LWLockReleaseAll();
	dsa_on_shmem_exit_release_in_place(code, PointerGetDatum(place_of(lbt_control)));
}

/* Who could not reach all of it before would not now either, and nothing is caught any more. */
static void
forget_at_exit(int code, Datum arg)
{
	LWLockReleaseAll();
	if (!lbt_guard_has_failed())
	{
		(void) lbt_registry_attach();
		lbt_workercounts_forget_all();
		lbt_counters_flush();
	}
	lbt_statfile_leave(!lbt_guard_has_failed());
}

/* What can fail comes first, and may come again: only the end makes this process one that has attached. */
static void
attach(void)
{
	LbtControl *c = lbt_shared_block();
	dshash_parameters params;
	MemoryContext old;

	if (c == NULL)
		return;
	old = MemoryContextSwitchTo(TopMemoryContext);
	if (lbt_area == NULL)
	{
		LWLockRegisterTranche(c->tranche, "LearnedBtree");
		lbt_area = dsa_attach_in_place(place_of(c), NULL);
		dsa_pin_mapping(lbt_area);
	}
	params = entry_parameters(c->tranche);
	lbt_entries = dshash_attach(lbt_area, &params, c->entries, NULL);
	lbt_stats_attach(lbt_area, c->tranche, c->stats);
	lbt_workercounts_attach(lbt_area, c->tranche, c->workercounts);
	MemoryContextSwitchTo(old);
	before_shmem_exit(leave, (Datum) 0);
	before_shmem_exit(forget_at_exit, (Datum) 0);	/* runs first */
	lbt_registry_generation = &c->generation;
	lbt_control = c;
	lbt_guard_report_together(&c->unreachable_told);
	lbt_statfile_enter();
}

/* Each once: what cannot be reached now goes when memory is short, or is found by a worker. */
static void
forget_doomed(void)
{
	while (doomed != NULL)
	{
		LbtDoomed  *d = doomed;

		doomed = d->next;
		if (d->wanted_since != 0)
			lbt_demand_renew(&d->file, d->oid, d->wanted_since);
		else if (OidIsValid(d->file.number))
			lbt_registry_drop_file(&d->file);
		if (d->counts)
		{
			LBT_GUARD_BEGIN();
			{
				lbt_stats_forget(d->file.database, d->oid);
			}
			LBT_GUARD_END((void) 0);
		}
		pfree(d);
	}
}

void
lbt_registry_doom(LbtDoomed *d)
{
	d->next = doomed;
	doomed = d;
}

bool
lbt_registry_attach(void)
{
	static TimestampTz next_try = 0;

	if (likely(lbt_control != NULL))
	{
		if (unlikely(doomed != NULL))
			forget_doomed();
		return true;
	}
	if (lbt_shared_possible() && GetCurrentTimestamp() >= next_try)
	{
		LBT_GUARD_BEGIN();
		{
			attach();
		}
		LBT_GUARD_END(next_try = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), ATTACH_INTERVAL_MS));
	}
	return lbt_control != NULL;
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
	index->image_lsn = entry->image_lsn;
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

static void
give_up(LbtIndex *index)
{
	index->state = LBT_NO_MEMORY;
	index->again_at = unreachable_until();
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
	index->image_lsn = InvalidXLogRecPtr;
	index->nblocks = 0;
	index->again_at = 0;
	LBT_GUARD_BEGIN();
	{
		look_up(index, failed_until);
	}
	LBT_GUARD_END(give_up(index));
	index->generation = generation;
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

LbtEntry *
lbt_entry_lock(LbtIndex *index)
{
	return lbt_entry_lock_file(&index->file, index->oid);
}

LbtEntry *
lbt_entry_lock_file(const LbtFile *file, Oid oid)
{
	bool		found;
	LbtEntry   *entry = dshash_find_or_insert(lbt_entries, file, &found);

	if (!found)
	{
		memset((char *) entry + sizeof(LbtFile), 0, sizeof(LbtEntry) - sizeof(LbtFile));
		entry->memory = InvalidDsaPointer;
		entry->changed_at = GetCurrentTimestamp();
		pg_atomic_init_u64(&entry->used_at, (uint64) entry->changed_at);
	}
	entry->oid = oid;
	return entry;
}

/* Put what was trained into the file's entry, and free what was there; memory and bytes are the new model's. */
static void
register_training(LbtIndex *index, const LbtTrained *trained, LbtState state, dsa_pointer memory, Size bytes,
				  volatile bool *registered)
{
	LbtEntry   *entry = lbt_entry_lock(index);
	dsa_pointer superseded = lbt_model_of(entry);
	Size		superseded_bytes = entry->bytes;
	TimestampTz now = GetCurrentTimestamp();

	entry->state = state;
	entry->trained_blocks = trained->blocks;
	entry->memory = memory;
	entry->bytes = bytes;
	entry->changed_at = now;
	entry->image_lsn = trained->image_lsn;
	lbt_demand_settle(entry, &trained->header, trained->fingerprint);
	pg_atomic_write_u64(&entry->used_at, (uint64) now);
	dshash_release_lock(lbt_entries, entry);
	*registered = true;
	lbt_model_free(superseded, superseded_bytes);
}

LbtState
lbt_registry_publish(LbtIndex *index, const LbtTrained *trained, bool new_file)
{
	const LbtModelHeader *header = &trained->header;
	LbtState	state = trained->state;
	volatile dsa_pointer memory = InvalidDsaPointer;
	volatile bool registered = false;
	const Size	bytes = state == LBT_READY ? lbt_model_bytes(header->nleaves, header->nknots, header->tree_bytes) : 0;

	if (!index->shareable)
		return state;
	LBT_GUARD_BEGIN();
	{
		if (state == LBT_READY)
		{
			/* The old model goes first when both do not fit together. */
			if (!lbt_registry_has_room(bytes))
				lbt_model_evict(&index->file);
			memory = lbt_model_store(&index->file, trained, bytes, &state);
		}
		register_training(index, trained, state, memory, bytes, &registered);
	}
	LBT_GUARD_END((void) 0);
	if (!registered && DsaPointerIsValid(memory))
	{
		LBT_GUARD_BEGIN();
		{
			lbt_model_free(memory, bytes);
		}
		LBT_GUARD_END((void) 0);
	}
	if (!new_file)
		lbt_registry_drop_matching(index->file.database, index->oid, &index->file);
	lbt_index_refresh(index);
	return registered ? index->state : LBT_NO_MEMORY;
}

static bool
claim(LbtIndex *index)
{
	LbtEntry   *entry = lbt_entry_lock(index);
	bool		mine = entry->trainer == 0 || entry->trainer == MyProcPid ||
		BackendPidGetProc(entry->trainer) == NULL;

	if (mine)
		entry->trainer = MyProcPid;
	dshash_release_lock(lbt_entries, entry);
	return mine;
}

bool
lbt_registry_claim(LbtIndex *index)
{
	volatile bool mine = false;

	if (!index->shareable)
		return false;
	LBT_GUARD_BEGIN();
	{
		mine = claim(index);
	}
	LBT_GUARD_END(mine = false);
	return mine;
}

void
lbt_registry_unclaim_after_error(LbtIndex *index, LbtEnding ending)
{
	LbtEntry   *entry;

	if (!index->shareable)
		return;
	entry = dshash_find(lbt_entries, &index->file, true);
	if (entry == NULL)
		return;
	if (entry->trainer == MyProcPid)
		entry->trainer = 0;
	if (ending != LBT_ENDED)
		lbt_demand_pause(entry);
	if (ending != LBT_ENDED && entry->state != LBT_READY)
	{
		entry->state = ending == LBT_ENDED_BY_DAMAGE ? LBT_DAMAGED : LBT_FAILED;
		entry->trained_blocks = NO_GROWTH_BLOCKS;
		entry->changed_at = GetCurrentTimestamp();
	}
	dshash_release_lock(lbt_entries, entry);
	if (ending != LBT_ENDED)
		pg_atomic_fetch_add_u64(&lbt_control->generation, 1);
}

void
lbt_registry_unclaim(LbtIndex *index)
{
	LBT_GUARD_BEGIN();
	{
		lbt_registry_unclaim_after_error(index, LBT_ENDED);
	}
	LBT_GUARD_END((void) 0);
}

void
lbt_registry_postpone(LbtIndex *index)
{
	if (!index->shareable)
		return;
	LBT_GUARD_BEGIN();
	{
		LbtEntry   *entry = lbt_entry_lock(index);

		lbt_demand_pause(entry);
		dshash_release_lock(lbt_entries, entry);
	}
	LBT_GUARD_END((void) 0);
}

static bool
knows(const LbtFile *file, Oid oid)
{
	LbtEntry   *entry = dshash_find(lbt_entries, file, false);

	if (entry == NULL)
		return lbt_stats_any(file->database, oid);
	dshash_release_lock(lbt_entries, entry);
	return true;
}

bool
lbt_registry_knows(const LbtFile *file, Oid oid)
{
	volatile bool known = false;

	if (!lbt_registry_attach())
		return false;
	LBT_GUARD_BEGIN();
	{
		known = knows(file, oid);
	}
	LBT_GUARD_END(known = true);
	return known;
}

static bool
describe(const LbtFile *file, LbtRegistered *out)
{
	LbtEntry   *entry = dshash_find(lbt_entries, file, false);

	if (entry == NULL)
		return false;
	out->changed_at = entry->changed_at;
	out->since = entry->since;
	if (entry->state == LBT_READY)
		memcpy(&out->header, dsa_get_address(lbt_area, entry->memory), sizeof(LbtModelHeader));
	out->state = entry->state;
	dshash_release_lock(lbt_entries, entry);
	return true;
}

bool
lbt_registry_describe(LbtIndex *index, LbtRegistered *out)
{
	volatile bool found = false;

	if (!index->shareable)
		return false;
	LBT_GUARD_BEGIN();
	{
		found = describe(&index->file, out);
	}
	LBT_GUARD_END(out->state = LBT_NO_MEMORY);
	return found;
}

static void *
copy_model(const LbtFile *file, Size *bytes)
{
	LbtEntry   *entry = dshash_find(lbt_entries, file, false);
	void	   *copy = NULL;

	if (entry == NULL)
		return NULL;
	if (entry->state == LBT_READY)
	{
		const void *model = dsa_get_address(lbt_area, entry->memory);

		*bytes = entry->bytes;
		copy = MemoryContextAllocExtended(CurrentMemoryContext, *bytes,
										  MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);
		if (copy)
			memcpy(copy, model, *bytes);
	}
	dshash_release_lock(lbt_entries, entry);
	return copy;
}

void *
lbt_registry_copy_model(LbtIndex *index, Size *bytes)
{
	void	   *volatile copy = NULL;

	if (!index->shareable)
		return NULL;
	LBT_GUARD_BEGIN();
	{
		copy = copy_model(&index->file, bytes);
	}
	LBT_GUARD_END((void) 0);
	return copy;
}

static void
drop_file(const LbtFile *file)
{
	LbtEntry   *entry = dshash_find(lbt_entries, file, true);
	dsa_pointer memory;
	Size		bytes;

	if (entry == NULL)
		return;
	memory = lbt_model_of(entry);
	bytes = entry->bytes;
	dshash_delete_entry(lbt_entries, entry);
	lbt_model_free(memory, bytes);
}

void
lbt_registry_drop_file(const LbtFile *file)
{
	if (lbt_control == NULL)
		return;
	LBT_GUARD_BEGIN();
	{
		drop_file(file);
	}
	LBT_GUARD_END((void) 0);
}

static int
list(Oid database, LbtListed **listed, int max)
{
	int			capacity = 64;
	int			n = 0;
	dshash_seq_status status;
	LbtEntry   *entry;

	*listed = palloc(capacity * sizeof(LbtListed));
	dshash_seq_init(&status, lbt_entries, false);
	while (n < max && (entry = dshash_seq_next(&status)) != NULL)
	{
		if (entry->file.database != database)
			continue;
		if (n == capacity)
			*listed = repalloc(*listed, (capacity *= 2) * sizeof(LbtListed));
		(*listed)[n++] = (LbtListed) {.file = entry->file,.oid = entry->oid,
		.changed_at = entry->changed_at};
	}
	dshash_seq_term(&status);
	return n;
}

void
lbt_registry_drop_matching(Oid database, Oid oid, const LbtFile *except)
{
	if (lbt_control == NULL)
		return;
	LBT_GUARD_BEGIN();
	{
		LbtListed  *listed;
		int			n = list(database, &listed, PG_INT32_MAX);

		for (int i = 0; i < n; i++)
			if ((!OidIsValid(oid) || listed[i].oid == oid) &&
				(except == NULL || memcmp(&listed[i].file, except, sizeof(LbtFile)) != 0))
				drop_file(&listed[i].file);
		pfree(listed);
	}
	LBT_GUARD_END((void) 0);
}

int
lbt_registry_list(Oid database, LbtListed **listed, int max)
{
	volatile int n = 0;

	*listed = NULL;
	LBT_GUARD_BEGIN();
	{
		n = list(database, listed, max);
	}
	LBT_GUARD_END(n = 0);
	if (*listed == NULL)
		*listed = palloc(sizeof(LbtListed));
	return n;
}
