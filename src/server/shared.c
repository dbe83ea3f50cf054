/*
 * shared.c - where the shared block comes from; see shared.h.
 */
#include "server/shared.h"

#include "miscadmin.h"
#if PG_VERSION_NUM >= 170000
#include "storage/dsm_registry.h"
#endif
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"

/* Change it with the layout: a new library must not find an old block. */
#define BLOCK_NAME "learnedbtree 7"

static Size block_size;
static LbtSharedInit block_init;
static void *block = NULL;

static shmem_request_hook_type previous_request_hook = NULL;
static shmem_startup_hook_type previous_startup_hook = NULL;

static void
zero_and_init(void *mem)
{
	memset(mem, 0, block_size);
	block_init(mem);
}

static void
request_block(void)
{
	if (previous_request_hook)
		previous_request_hook();
	RequestAddinShmemSpace(MAXALIGN(block_size));
}

static void
make_block(void)
{
	bool		found;

	if (previous_startup_hook)
		previous_startup_hook();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	block = ShmemInitStruct(BLOCK_NAME, block_size, &found);
	if (!found)
		zero_and_init(block);
	LWLockRelease(AddinShmemInitLock);
}

void
lbt_shared_declare(Size size, LbtSharedInit init)
{
	block_size = size;
	block_init = init;
	if (!process_shared_preload_libraries_in_progress)
		return;
	previous_request_hook = shmem_request_hook;
	shmem_request_hook = request_block;
	previous_startup_hook = shmem_startup_hook;
	shmem_startup_hook = make_block;
}

#if PG_VERSION_NUM >= 190000
static void
init_segment(void *mem, void *arg)
{
	zero_and_init(mem);
}
#endif

void *
lbt_shared_block(void)
{
	bool		found pg_attribute_unused();

#if PG_VERSION_NUM >= 190000
	if (block == NULL)
		block = GetNamedDSMSegment(BLOCK_NAME, block_size, init_segment, &found, NULL);
#elif PG_VERSION_NUM >= 170000
	if (block == NULL)
		block = GetNamedDSMSegment(BLOCK_NAME, block_size, zero_and_init, &found);
#endif
	return block;
}

bool
lbt_shared_possible(void)
{
	return PG_VERSION_NUM >= 170000 || block != NULL;
}
