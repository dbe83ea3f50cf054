/*
 * shmem.c - making shared memory, attaching to it, leaving it; see shmem.h.
 */
#include "registry/shmem.h"

#include "server/guard.h"
#include "server/bufferhint.h"
#include "storage/ipc.h"
#include "storage/shmem.h"
#include "utils/memutils.h"

/* A backend that could not attach waits so long before it tries again. */
#define ATTACH_INTERVAL_MS 10000

/* Each version has a block of its own, as the layout may differ. */
#define BLOCK_NAME "learnedbtree " LBT_VERSION

/* What wait events call our LWLocks. */
#define LWLOCK_NAME "LearnedBtree"

/* What dsa says of a segment that is not there. */
#define NO_SEGMENT "dsa_area could not attach to a segment that has been freed"

/* Room for the hash table before the first DSM segment is needed. */
#define PLACE_BYTES (256 * 1024)

LbtControl *lbt_control = NULL;
dsa_area   *lbt_area = NULL;
dshash_table *lbt_entries = NULL;

/* The control block, and what follows it; NULL until it is found. */
static LbtControl *block = NULL;

static shmem_request_hook_type next_request = NULL;
static shmem_startup_hook_type next_startup = NULL;

static Size
block_bytes(void)
{
	return MAXALIGN(sizeof(LbtControl)) + PLACE_BYTES + lbt_hints_bytes();
}

static void *
place_of(LbtControl *c)
{
	return (char *) c + MAXALIGN(sizeof(LbtControl));
}

static dshash_parameters
entries_parameters(const LbtControl *c)
{
	return (dshash_parameters)
	{
		LBT_FILE_KEY_BYTES, sizeof(LbtEntry), LBT_DSHASH_BYTES, c->tranche
	};
}

/* Runs once per cluster, perhaps in the postmaster, which can make no DSM. */
static void
init_control(LbtControl *c)
{
	dshash_parameters params;
	dshash_table *entries;
	dsa_area   *a;

	memset(c, 0, block_bytes());
	c->tranche = lbt_new_tranche(LWLOCK_NAME);
	lbt_name_tranche(c->tranche, LWLOCK_NAME);
	LWLockInitialize(&c->reclaim, c->tranche);
	LWLockInitialize(&c->workers_lock, c->tranche);
	c->segments = 1;			/* the first is in place */
	pg_atomic_init_u64(&c->generation, 1);
	pg_atomic_init_u64(&c->model_bytes, 0);
	pg_atomic_init_u64(&c->unreachable_told, 0);
	pg_atomic_init_u64(&c->no_slot_told, 0);
	pg_atomic_init_u64(&c->looked_at, 0);
	pg_atomic_init_u32(&c->idle, 0);
	pg_atomic_init_u32(&c->unswept, 0);
	pg_atomic_init_u32(&c->unswept_database, InvalidOid);

	a = dsa_create_in_place(place_of(c), PLACE_BYTES, c->tranche, NULL);
	dsa_pin(a);
	dsa_set_size_limit(a, PLACE_BYTES);
	params = entries_parameters(c);
	entries = dshash_create(a, &params, NULL);
	c->entries = dshash_get_hash_table_handle(entries);
	dshash_detach(entries);
	dsa_set_size_limit(a, (size_t) -1);
	dsa_detach(a);
}

static void
init_segment(LBT_SEGMENT_INIT_PARAMETERS)
{
	init_control(memory);
}

static void
request_block(void)
{
	if (next_request)
		next_request();
	RequestAddinShmemSpace(MAXALIGN(block_bytes()));
}

static void
make_block(void)
{
	bool		found;

	if (next_startup)
		next_startup();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	block = ShmemInitStruct(BLOCK_NAME, block_bytes(), &found);
	if (!found)
		init_control(block);
	LWLockRelease(AddinShmemInitLock);
}

void
lbt_shmem_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;
	next_request = shmem_request_hook;
	shmem_request_hook = request_block;
	next_startup = shmem_startup_hook;
	shmem_startup_hook = make_block;
}

bool
lbt_shmem_possible(void)
{
	return LBT_NAMED_SEGMENTS || block != NULL;
}

/* ---- changing the area ---- */

/*
 * Map a segment of the area; false if there is none with this number, which
 * dsa tells by an error alone.
 */
static bool
map_segment(int number)
{
	const uint32 holdoff = InterruptHoldoffCount;
	const uint32 cancel_holdoff = QueryCancelHoldoffCount;
	MemoryContext context = CurrentMemoryContext;
	volatile bool there = true;

	PG_TRY();
	{
		error_context_stack = NULL;
		(void) dsa_get_address(lbt_area, (dsa_pointer) number << DSA_OFFSET_WIDTH);
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		if (strcmp(error->message, NO_SEGMENT) != 0)
			PG_RE_THROW();

		/* Raising an error has set them to 0. */
		InterruptHoldoffCount = holdoff;
		QueryCancelHoldoffCount = cancel_holdoff;
		FreeErrorData(error);
		FlushErrorState();
		there = false;
	}
	PG_END_TRY();
	return there;
}

/*
 * A new segment takes the first number that is free.  So those made since the
 * last look, if any, follow each other from control->segments on.
 */
void
lbt_area_lock(void)
{
	Assert(!proc_exit_inprogress);
	LWLockAcquire(&lbt_control->reclaim, LW_EXCLUSIVE);
	for (int i = 1; i < LBT_DSA_SEGMENTS; i++)
	{
		if (map_segment(i))
			lbt_control->segments = Max(lbt_control->segments, i + 1);
		else if (i >= lbt_control->segments)
			break;
	}
}

void
lbt_area_unlock(void)
{
	LWLockRelease(&lbt_control->reclaim);
}

/* ---- attaching and leaving ---- */

void
lbt_registry_leave(int code, Datum arg)
{
	if (lbt_control == NULL)
		return;
	LWLockReleaseAll();
	dsa_on_shmem_exit_release_in_place(code, PointerGetDatum(place_of(lbt_control)));
}

/* What can fail comes first, and may be repeated: attached only at the end. */
static void
attach(void)
{
	LbtControl *c = block ? block : lbt_named_segment(BLOCK_NAME, block_bytes(), init_segment);
	dshash_parameters params;
	MemoryContext old;

	block = c;
	old = MemoryContextSwitchTo(TopMemoryContext);
	if (lbt_area == NULL)
	{
		lbt_name_tranche(c->tranche, LWLOCK_NAME);
		lbt_area = dsa_attach_in_place(place_of(c), NULL);
		dsa_pin_mapping(lbt_area);
	}
	params = entries_parameters(c);
	lbt_entries = dshash_attach(lbt_area, &params, c->entries, NULL);
	MemoryContextSwitchTo(old);
	lbt_control = c;
	lbt_hints_are_at((char *) place_of(c) + PLACE_BYTES);
	lbt_guard_reported_at = &c->unreachable_told;
}

bool
lbt_registry_attach(void)
{
	static TimestampTz failed_at = 0;

	if (likely(lbt_control != NULL))
		return true;
	/* A single-user server attaches no segment. */
	if (IsUnderPostmaster && lbt_shmem_possible() && lbt_guard_may_enter() &&
		lbt_is_over(failed_at, GetCurrentTimestamp(), ATTACH_INTERVAL_MS))
		LBT_GUARDED(attach(), failed_at = GetCurrentTimestamp());
	return lbt_control != NULL;
}
