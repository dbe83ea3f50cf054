/*
 * models.c - published models, and entries of indexes, in shared memory; see
 * shmem.h for the protocol.
 */
#include "registry/models.h"

#include "server/guard.h"
#include "storage/procarray.h"

/* A model unused for so long may make room for another that is wanted. */
#define IDLE_MS 60000

/* Look for idle models no sooner again: at all entries. */
#define LOOK_MS 1000

/* The first pause after a training that brought nothing, doubled with each. */
#define PAUSE_MS 1000

/* Models to find in one look at all entries. */
#define LEAST_USED 64

typedef struct Used
{
	uint64		at;
	LbtFile		file;
} Used;

/*
 * Raise the generation, and free a model, if any, that no entry names now.
 * Where this process cannot, its memory is lost, and still counts.
 */
static void
free_model(dsa_pointer memory, Size bytes)
{
	pg_atomic_fetch_add_u64(&lbt_control->generation, 1);
	if (!DsaPointerIsValid(memory))
		return;
	LBT_GUARD_BEGIN();
	{
		lbt_area_lock();
		dsa_free(lbt_area, memory);
		lbt_area_unlock();
		pg_atomic_fetch_sub_u64(&lbt_control->model_bytes, bytes);
	}
	LBT_GUARD_END((void) 0);
}

void
lbt_entry_replace_model(LbtEntry *entry, LbtState state, dsa_pointer memory, Size bytes)
{
	dsa_pointer old = entry->memory;
	Size		old_bytes = entry->bytes;

	entry->state = state;
	entry->memory = memory;
	entry->bytes = bytes;
	entry->changed_at = GetCurrentTimestamp();
	dshash_release_lock(lbt_entries, entry);
	free_model(old, old_bytes);
}

/* Take a file's model away; its entry stays, to say why. */
static void
evict(const LbtFile *file)
{
	LbtEntry   *entry = dshash_find(lbt_entries, file, true);

	if (entry == NULL)
		return;
	entry->wanted = false;		/* else it might push out others in turn */
	if (entry->state == LBT_READY)
	{
		pg_atomic_fetch_sub_u32(&lbt_control->idle, 1);
		lbt_entry_replace_model(entry, LBT_EVICTED, InvalidDsaPointer, entry->bytes);
	}
	else
		dshash_release_lock(lbt_entries, entry);
}

/* Find the least recently used models, in this order; returns how many. */
static int
find_least_used(Used least[LEAST_USED])
{
	dshash_seq_status status;
	LbtEntry   *entry;
	int			found = 0;
	uint64		latest = (uint64) TimestampTzPlusMilliseconds(GetCurrentTimestamp(), IDLE_MS);

	dshash_seq_init(&status, lbt_entries, false);
	while ((entry = dshash_seq_next(&status)) != NULL)
	{
		uint64		at = pg_atomic_read_u64(&entry->used_at);
		int			i;

		if (at > latest)
			at = 0;				/* not since the clock was set back */
		if (entry->state != LBT_READY || (found == LEAST_USED && at >= least[found - 1].at))
			continue;
		for (i = found < LEAST_USED ? found++ : found - 1; i > 0 && at < least[i - 1].at; i--)
			least[i] = least[i - 1];
		least[i] = (Used) {at, entry->file};
	}
	dshash_seq_term(&status);
	return found;
}

/* Reserve room within the limit before allocating; others may concurrently. */
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

/*
 * Make shared memory for a model, evicting others if necessary; invalid, with
 * the reason in *state, without room.
 */
static dsa_pointer
store(const LbtFile *file, const LbtTrained *trained, Size bytes, LbtState *state)
{
	volatile dsa_pointer memory = InvalidDsaPointer;
	Used		least[LEAST_USED];
	int			found = 0;
	int			next = 0;

	if (bytes > (Size) lbt_max_model_memory * 1024)
	{
		*state = LBT_TOO_LARGE;
		return InvalidDsaPointer;
	}

	/* Evict nothing if this process could not free its memory. */
	lbt_area_lock();
	lbt_area_unlock();

	/* The old model goes first when both do not fit together. */
	if (!lbt_registry_has_room(bytes))
		evict(file);
	while (!reserve(bytes))
	{
		lbt_guard_check_interrupts();
		if (next == found)
		{
			found = lbt_may_evict_others(trained->blocks) ? find_least_used(least) : 0;
			next = 0;
		}
		if (found == 0)
		{
			*state = LBT_EVICTED;
			return InvalidDsaPointer;
		}
		evict(&least[next++].file);
	}

	/* NO_OOM is not enough: making a DSM segment raises errors of its own. */
	LBT_GUARD_BEGIN();
	{
		lbt_area_lock();
		memory = dsa_allocate_extended(lbt_area, bytes, DSA_ALLOC_NO_OOM | DSA_ALLOC_HUGE);
		lbt_area_unlock();
		if (DsaPointerIsValid(memory))
			lbt_model_assemble(dsa_get_address(lbt_area, memory), &trained->header, trained->knots,
							   trained->leaves, trained->separators);
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
	volatile int idle = 0;
	TimestampTz now = GetCurrentTimestamp();
	TimestampTz since = TimestampTzPlusMilliseconds(now, -IDLE_MS);
	Used		least[LEAST_USED];

	if (lbt_is_over((TimestampTz) pg_atomic_read_u64(&lbt_control->looked_at), now, LOOK_MS))
	{
		pg_atomic_write_u64(&lbt_control->looked_at, (uint64) now);
		LBT_GUARDED(idle = find_least_used(least), idle = 0);
		while (idle > 0 && least[idle - 1].at >= (uint64) since)
			idle--;
		pg_atomic_write_u32(&lbt_control->idle, idle);
	}
	return (int32) pg_atomic_read_u32(&lbt_control->idle) > 0;
}

LbtEntry *
lbt_entry_lock(const LbtFile *file)
{
	LbtEntry   *entry = dshash_find(lbt_entries, file, true);
	bool		found = true;

	if (entry == NULL)
	{
		lbt_area_lock();
		entry = dshash_find_or_insert(lbt_entries, file, &found);
		lbt_area_unlock();
	}
	if (!found)
	{
		pg_atomic_fetch_add_u32(&lbt_control->unswept, 1);
		pg_atomic_write_u32(&lbt_control->unswept_database, file->database);
	}
	else if (lbt_same_file(&entry->file, file))
		return entry;
	else if (DsaPointerIsValid(entry->memory))
	{
		/* The area must not be locked while a partition is. */
		lbt_entry_replace_model(entry, LBT_UNTRAINED, InvalidDsaPointer, 0);
		return lbt_entry_lock(file);
	}
	memset(entry, 0, found ? offsetof(LbtEntry, totals) : sizeof(LbtEntry));
	entry->file = *file;
	entry->changed_at = GetCurrentTimestamp();
	pg_atomic_init_u64(&entry->used_at, (uint64) entry->changed_at);
	return entry;
}

/* ---- trainings ---- */

bool
lbt_training_begin(const LbtFile *file)
{
	volatile bool mine = false;

	LBT_GUARD_BEGIN();
	{
		LbtEntry   *entry = lbt_entry_lock(file);

		mine = entry->trainer == 0 || entry->trainer == MyProcPid ||
			BackendPidGetProc(entry->trainer) == NULL;
		if (mine)
			entry->trainer = MyProcPid;
		dshash_release_lock(lbt_entries, entry);
	}
	LBT_GUARD_END(mine = false);
	return mine;
}

void
lbt_entry_pause(LbtEntry *entry, int longest)
{
	int			pause = Min(PAUSE_MS << Min(entry->wasted, 16), longest);

	if (entry->wasted < PG_UINT8_MAX)
		entry->wasted++;
	entry->not_before = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), pause);
}

void
lbt_training_failed(const LbtFile *file, LbtState ending, bool demand_stays)
{
	LbtEntry   *entry = dshash_find(lbt_entries, file, true);

	if (entry == NULL)
		return;
	if (entry->trainer == MyProcPid)
		entry->trainer = 0;
	entry->wanted = entry->wanted && demand_stays;
	if (ending != LBT_UNTRAINED)
		lbt_entry_pause(entry, LBT_PAUSE_MAX_MS);
	if (ending == LBT_UNTRAINED || entry->state == LBT_READY)
		dshash_release_lock(lbt_entries, entry);
	else
	{
		/* There is no model to be freed, which a guard would do. */
		entry->trained_blocks = NO_GROWTH_BLOCKS;
		lbt_entry_replace_model(entry, ending, InvalidDsaPointer, entry->bytes);
	}
}

/*
 * Put the outcome into a locked entry, and unlock it.  A training on demand
 * that has found as many leaves as were known has brought nothing: the model's
 * age is not why its predictions fail.  Another, that replaces a model in use,
 * has.
 */
static void
settle(LbtEntry *entry, LbtState state, const LbtTrained *trained, dsa_pointer memory, Size bytes)
{
	const LbtModelHeader *header = &trained->header;
	bool		saved = state == LBT_READY && header->saved;
	bool		demanded = entry->wanted;

	memset(&entry->since, 0, sizeof(entry->since));
	entry->trainer = 0;
	/* Not again if the worker, asked before, has met damage meanwhile. */
	entry->wanted = saved && lbt_autotrain && entry->state != LBT_DAMAGED;
	entry->trained_blocks = trained->blocks;
	pg_atomic_write_u64(&entry->used_at, (uint64) GetCurrentTimestamp());
	if (state == LBT_READY)
	{
		if (!saved && demanded && header->nleaves == entry->nleaves)
			lbt_entry_pause(entry, LBT_PAUSE_WASTED_MS);
		else if (entry->state == LBT_READY)
			entry->wasted = 0;
		if (!saved)
			entry->attempted_at = GetCurrentTimestamp();
		entry->nleaves = header->nleaves;
		entry->height = Max(header->height, 2);
	}
	else if (state == LBT_NO_MEMORY)
		lbt_entry_pause(entry, LBT_PAUSE_MAX_MS);
	lbt_entry_replace_model(entry, state, memory, bytes);
}

bool
lbt_training_end(const LbtFile *file, const LbtTrained *trained)
{
	const LbtModelHeader *header = &trained->header;
	LbtState	state = trained->state;
	volatile dsa_pointer memory = InvalidDsaPointer;
	volatile bool registered = false;
	const Size	bytes = state == LBT_READY ?
		lbt_model_bytes(header->nleaves, header->nknots, header->separator_bytes) : 0;

	LBT_GUARD_BEGIN();
	{
		LbtEntry   *entry;

		if (state == LBT_READY)
			memory = store(file, trained, bytes, &state);
		entry = lbt_entry_lock(file);
		registered = true;		/* an error can only come after that now */
		if ((state == LBT_TOO_LARGE || state != trained->state) && entry->state == LBT_READY)
		{
			/* An old model is better than none. */
			entry->trainer = 0;
			entry->wanted = false;
			lbt_entry_pause(entry, LBT_PAUSE_MAX_MS);
			dshash_release_lock(lbt_entries, entry);
		}
		else
			settle(entry, state, trained, memory, bytes);
	}
	LBT_GUARD_END((void) 0);
	if (registered)
		return true;
	if (DsaPointerIsValid(memory))
		free_model(memory, bytes);
	LBT_GUARDED(lbt_training_failed(file, LBT_NO_MEMORY, true), (void) 0);
	return false;
}

void
lbt_registry_describe(const LbtFile *file, LbtRegistered *out)
{
	LBT_GUARD_BEGIN();
	{
		LbtEntry   *entry = dshash_find(lbt_entries, file, false);

		if (entry != NULL)
		{
			out->totals = entry->totals;
			if (lbt_same_file(&entry->file, file))
			{
				if (entry->state == LBT_READY)
					memcpy(&out->header, dsa_get_address(lbt_area, entry->memory),
						   sizeof(LbtModelHeader));
				out->since = entry->since;
				out->state = entry->state;
			}
			dshash_release_lock(lbt_entries, entry);
		}
	}
	LBT_GUARD_END(out->state = LBT_NO_MEMORY);
}

void
lbt_registry_forget(const LbtFile *file)
{
	LBT_GUARD_BEGIN();
	{
		LbtEntry   *entry = dshash_find(lbt_entries, file, false);
		dsa_pointer memory = InvalidDsaPointer;
		Size		bytes = 0;

		/* Most indexes have none: wait for nobody. */
		if (entry != NULL)
		{
			dshash_release_lock(lbt_entries, entry);
			lbt_area_lock();
			entry = dshash_find(lbt_entries, file, true);
			if (entry != NULL)
			{
				memory = entry->memory;
				bytes = entry->bytes;
				dshash_delete_entry(lbt_entries, entry);
			}
			lbt_area_unlock();
			if (entry != NULL)
				free_model(memory, bytes);
		}
	}
	LBT_GUARD_END((void) 0);
}

void
lbt_registry_reset(const LbtFile *file)
{
	LBT_GUARD_BEGIN();
	{
		LbtEntry   *entry = dshash_find(lbt_entries, file, true);

		if (entry != NULL)
			lbt_entry_replace_model(entry, LBT_UNTRAINED, InvalidDsaPointer, 0);
	}
	LBT_GUARD_END((void) 0);
}

List *
lbt_registry_list(void)
{
	List	   *volatile files = NIL;

	LBT_GUARD_BEGIN();
	{
		dshash_seq_status status;
		LbtEntry   *entry;

		dshash_seq_init(&status, lbt_entries, false);
		while ((entry = dshash_seq_next(&status)) != NULL)
		{
			LbtFile    *file = palloc(sizeof(LbtFile));

			*file = entry->file;
			files = lappend(files, file);
		}
		dshash_seq_term(&status);
	}
	LBT_GUARD_END(files = NIL);
	return files;
}

/* ---- totals ---- */

void
lbt_totals_reset(Oid index)
{
	TimestampTz now = GetCurrentTimestamp();
	dshash_seq_status status;
	LbtEntry   *entry;

	if (lbt_control == NULL)
		return;
	dshash_seq_init(&status, lbt_entries, true);
	while ((entry = dshash_seq_next(&status)) != NULL)
	{
		if (entry->file.database != MyDatabaseId ||
			(OidIsValid(index) && entry->file.index != index))
			continue;
		memset(&entry->totals, 0, sizeof(LbtTotals));
		entry->totals.reset_at = now;
	}
	dshash_seq_term(&status);
}
