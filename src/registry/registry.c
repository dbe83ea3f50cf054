/*
 * registry.c - published models in shared memory; see registry.h.
 *
 * Locking.  An entry is read and changed under its hash partition's lock.  lbt_control->generation is
 * raised after every change and before the memory of a superseded model is freed, so a backend whose
 * view carries the current generation holds pointers to live models.
 *
 * Readers take no lock and write nothing: a lookup compares the generation, then reads the model.  A
 * model may be freed and its memory reused between the two.  What the lookup then reads is garbage,
 * but harmless: it stays mapped (this process unmaps segments only inside dsa calls, and none happens
 * between the lbt_index_update() of a lookup or insert and the end of the prediction), every
 * index is bounded by numbers copied when the view was made (LbtModel), and a wrong prediction is
 * caught by the leaf.  Writers of buffer hints cannot be so careless: they hold
 * lbt_control->reclaim shared while they check the generation and write; freeing holds it exclusively.
 *
 * Lock order: hash partition, then dsa's own locks; reclaim, then dsa's own locks.  A partition lock and reclaim are
 * never held together.
 */
#include "registry/registry.h"

#include "miscadmin.h"
#include "registry/policy.h"
#include "server/compat.h"
#include "server/guard.h"
#include "storage/procarray.h"
#include "utils/timestamp.h"

dshash_table_handle
lbt_entries_create(dsa_area *area, int tranche)
{
	dshash_parameters params = lbt_dshash_parameters(sizeof(LbtFile), sizeof(LbtEntry), tranche);
	dshash_table *table = dshash_create(area, &params, NULL);
	dshash_table_handle handle = dshash_get_hash_table_handle(table);

	dshash_detach(table);
	return handle;
}

dshash_table *
lbt_entries_attach(dsa_area *area, int tranche, dshash_table_handle handle)
{
	dshash_parameters params = lbt_dshash_parameters(sizeof(LbtFile), sizeof(LbtEntry), tranche);

	return dshash_attach(area, &params, handle, NULL);
}

LbtEntry *
lbt_entry_lock(const LbtFile *file, Oid oid)
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
register_training(const LbtFile *file, Oid oid, const LbtTrained *trained, LbtState state, dsa_pointer memory,
				  Size bytes, volatile bool *registered)
{
	LbtEntry   *entry = lbt_entry_lock(file, oid);
	dsa_pointer superseded = lbt_model_of(entry);
	Size		superseded_bytes = entry->bytes;
	TimestampTz now = GetCurrentTimestamp();

	entry->state = state;
	entry->trained_blocks = trained->blocks;
	entry->memory = memory;
	entry->bytes = bytes;
	entry->changed_at = now;
	entry->image_lsn = trained->image_lsn;
	lbt_policy_settle(entry, &trained->header, trained->fingerprint);
	pg_atomic_write_u64(&entry->used_at, (uint64) now);
	dshash_release_lock(lbt_entries, entry);
	*registered = true;
	lbt_model_free(superseded, superseded_bytes);
}

bool
lbt_registry_publish(const LbtFile *file, Oid oid, const LbtTrained *trained, bool new_file)
{
	const LbtModelHeader *header = &trained->header;
	LbtState	state = trained->state;
	volatile dsa_pointer memory = InvalidDsaPointer;
	volatile bool registered = false;
	const Size	bytes = state == LBT_READY ? lbt_model_bytes(header->nleaves, header->nknots, header->tree_bytes) : 0;

	LBT_GUARD_BEGIN();
	{
		if (state == LBT_READY)
		{
			/* The old model goes first when both do not fit together. */
			if (!lbt_registry_has_room(bytes))
				lbt_model_evict(file);
			memory = lbt_model_store(file, trained, bytes, &state);
		}
		register_training(file, oid, trained, state, memory, bytes, &registered);
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
		lbt_registry_drop_matching(file->database, oid, file);
	return registered;
}

static bool
claim(const LbtFile *file, Oid oid)
{
	LbtEntry   *entry = lbt_entry_lock(file, oid);
	bool		mine = entry->trainer == 0 || entry->trainer == MyProcPid ||
		BackendPidGetProc(entry->trainer) == NULL;

	if (mine)
		entry->trainer = MyProcPid;
	dshash_release_lock(lbt_entries, entry);
	return mine;
}

bool
lbt_registry_claim(const LbtFile *file, Oid oid)
{
	volatile bool mine = false;

	LBT_GUARD_BEGIN();
	{
		mine = claim(file, oid);
	}
	LBT_GUARD_END(mine = false);
	return mine;
}

void
lbt_registry_unclaim_after_error(const LbtFile *file, LbtEnding ending)
{
	LbtEntry   *entry;

	entry = dshash_find(lbt_entries, file, true);
	if (entry == NULL)
		return;
	if (entry->trainer == MyProcPid)
		entry->trainer = 0;
	if (ending != LBT_ENDED)
		lbt_policy_pause(entry);
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
lbt_registry_unclaim(const LbtFile *file)
{
	LBT_GUARD_BEGIN();
	{
		lbt_registry_unclaim_after_error(file, LBT_ENDED);
	}
	LBT_GUARD_END((void) 0);
}

void
lbt_registry_postpone(const LbtFile *file, Oid oid)
{
	LBT_GUARD_BEGIN();
	{
		LbtEntry   *entry = lbt_entry_lock(file, oid);

		lbt_policy_pause(entry);
		dshash_release_lock(lbt_entries, entry);
	}
	LBT_GUARD_END((void) 0);
}

static bool
knows(const LbtFile *file)
{
	LbtEntry   *entry = dshash_find(lbt_entries, file, false);

	if (entry == NULL)
		return false;
	dshash_release_lock(lbt_entries, entry);
	return true;
}

bool
lbt_registry_knows(const LbtFile *file)
{
	volatile bool known = false;

	LBT_GUARD_BEGIN();
	{
		known = knows(file);
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
lbt_registry_describe(const LbtFile *file, LbtRegistered *out)
{
	volatile bool found = false;

	LBT_GUARD_BEGIN();
	{
		found = describe(file, out);
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
lbt_registry_copy_model(const LbtFile *file, Size *bytes)
{
	void	   *volatile copy = NULL;

	LBT_GUARD_BEGIN();
	{
		copy = copy_model(file, bytes);
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
