/*
 * modelmem.c - the memory of models: allocation within learnedbtree.max_model_memory, eviction, freeing.
 *
 * See registry.c for why memory may be freed under a reader.
 */
#include "registry/modelmem.h"

#include "registry/settings.h"
#include "server/guard.h"
#include "utils/timestamp.h"

/* A model not used for so long may make room for another that is wanted. */
#define IDLE_MS 60000

/* How often to look for one. */
#define IDLE_LOOK_MS 1000

void
lbt_model_free(dsa_pointer memory, Size bytes)
{
	pg_atomic_fetch_add_u64(&lbt_control->generation, 1);
	if (!DsaPointerIsValid(memory))
		return;
	LWLockAcquire(&lbt_control->reclaim, LW_EXCLUSIVE);
	dsa_free(lbt_area, memory);
	LWLockRelease(&lbt_control->reclaim);
	pg_atomic_fetch_sub_u64(&lbt_control->model_bytes, bytes);
}

dsa_pointer
lbt_model_of(const LbtEntry *entry)
{
	if (DsaPointerIsValid(entry->memory))
		(void) dsa_get_address(lbt_area, entry->memory);
	return entry->memory;
}

void
lbt_model_evict(const LbtFile *file)
{
	LbtEntry   *entry = dshash_find(lbt_entries, file, true);
	dsa_pointer memory;
	Size		bytes;

	if (entry == NULL)
		return;
	memory = lbt_model_of(entry);
	bytes = entry->bytes;
	entry->memory = InvalidDsaPointer;
	entry->wanted = false;		/* it must not push out others in its turn */
	if (entry->state == LBT_READY)
		entry->state = LBT_EVICTED;
	dshash_release_lock(lbt_entries, entry);
	lbt_model_free(memory, bytes);
}

/* When the least recently used model but the given file's was used, and whose; MAX: there is none. */
static uint64
find_least_used(const LbtFile *keep, LbtFile *file)
{
	dshash_seq_status status;
	LbtEntry   *entry;
	uint64		oldest = PG_UINT64_MAX;

	dshash_seq_init(&status, lbt_entries, false);
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
	lbt_model_evict(&victim);
	return true;
}

/* Reserve room for a model within the limit, before there is any memory: others are at it, too. */
static bool
reserve(Size bytes)
{
	uint64		limit = (uint64) lbt_max_model_memory * 1024;
	uint64		taken = pg_atomic_read_u64(&lbt_control->model_bytes);

	do
	{
		if (taken + bytes > limit)
			return false;
	} while (!pg_atomic_compare_exchange_u64(&lbt_control->model_bytes, &taken, taken + bytes));
	return true;
}

dsa_pointer
lbt_model_store(const LbtFile *file, const LbtTrained *trained, Size bytes, LbtState *state)
{
	volatile dsa_pointer memory = InvalidDsaPointer;

	if (bytes > (Size) lbt_max_model_memory * 1024)
	{
		*state = LBT_TOO_LARGE;
		return InvalidDsaPointer;
	}
	while (!reserve(bytes))
	{
		if (evict_one(file))
			continue;
		*state = LBT_EVICTED;	/* others have just reserved what there is */
		return InvalidDsaPointer;
	}

	/* NO_OOM is not enough: making a DSM segment raises errors of its own. */
	LBT_GUARD_BEGIN();
	{
		memory = dsa_allocate_extended(lbt_area, bytes, DSA_ALLOC_NO_OOM | DSA_ALLOC_HUGE);
		if (DsaPointerIsValid(memory))
			lbt_model_assemble(dsa_get_address(lbt_area, memory), &trained->header, trained->knots, trained->tree,
							   trained->leaves);
	}
	LBT_GUARD_END(memory = InvalidDsaPointer);
	if (!DsaPointerIsValid(memory))
	{
		pg_atomic_fetch_sub_u64(&lbt_control->model_bytes, bytes);
		*state = LBT_NO_MEMORY;
	}
	return memory;
}

uint64
lbt_registry_bytes(void)
{
	return lbt_registry_attach() ? pg_atomic_read_u64(&lbt_control->model_bytes) : 0;
}

bool
lbt_registry_has_room(Size bytes)
{
	return lbt_registry_bytes() + bytes <= (Size) lbt_max_model_memory * 1024;
}

bool
lbt_registry_has_idle(void)
{
	uint64		now = (uint64) GetCurrentTimestamp();
	uint64		looked;
	volatile uint64 used = PG_UINT64_MAX;
	LbtFile		file;

	if (!lbt_registry_attach())
		return false;
	looked = pg_atomic_read_u64(&lbt_control->idle_looked_at);
	if (now - looked < IDLE_LOOK_MS * 1000 ||
		!pg_atomic_compare_exchange_u64(&lbt_control->idle_looked_at, &looked, now))
		return false;
	LBT_GUARD_BEGIN();
	{
		used = find_least_used(NULL, &file);
	}
	LBT_GUARD_END(used = PG_UINT64_MAX);
	return used != PG_UINT64_MAX && TimestampDifferenceExceeds((TimestampTz) used, (TimestampTz) now, IDLE_MS);
}
