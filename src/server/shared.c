/*
 * shared.c - where the shared block comes from; see shared.h.
 */
#include "server/shared.h"

#include "miscadmin.h"
#include "server/compat.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"

#if !LBT_SHARED_NEEDS_PRELOAD
#include "storage/dsm_registry.h"
#include "utils/resowner.h"
#endif

/* Names the layout too: a new library must not find an old one's block in a running server. */
#define BLOCK_NAME "learnedbtree 3"

static Size block_size;
static LbtSharedInit block_init;
static void *block = NULL;

#if LBT_SHARED_NEEDS_PRELOAD

static shmem_request_hook_type previous_request_hook = NULL;
static shmem_startup_hook_type previous_startup_hook = NULL;

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
	{
		memset(block, 0, block_size);
		block_init(block);
	}
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

void *
lbt_shared_block(void)
{
	return block;
}

bool
lbt_shared_possible(void)
{
	return block != NULL;
}

#else

static void
zero_and_init(void *mem)
{
	memset(mem, 0, block_size);
	block_init(mem);
}

void
lbt_shared_declare(Size size, LbtSharedInit init)
{
	block_size = size;
	block_init = init;
}

static void
release_owner(ResourceOwner owner, bool good)
{
	/* There are no locks to release, and perhaps no owner around it to pass them on to. */
	ResourceOwnerRelease(owner, RESOURCE_RELEASE_BEFORE_LOCKS, good, false);
	ResourceOwnerRelease(owner, RESOURCE_RELEASE_AFTER_LOCKS, good, false);
	ResourceOwnerDelete(owner);
}

/*
 * What the server has mapped when it fails half way is given back at once, by a resource owner of its own: the caller is
 * going to swallow the error, and the transaction goes on.
 */
void *
lbt_shared_block(void)
{
	ResourceOwner caller = CurrentResourceOwner;
	ResourceOwner owner;
	bool		found;

	if (block != NULL)
		return block;
	owner = ResourceOwnerCreate(caller, "learnedbtree shared memory");
	PG_TRY();
	{
		CurrentResourceOwner = owner;
		block = GetNamedDSMSegment(BLOCK_NAME, block_size, zero_and_init, &found);
	}
	PG_CATCH();
	{
		CurrentResourceOwner = caller;
		LWLockReleaseAll();
		release_owner(owner, false);
		PG_RE_THROW();
	}
	PG_END_TRY();
	CurrentResourceOwner = caller;
	release_owner(owner, true);
	return block;
}

bool
lbt_shared_possible(void)
{
	return true;
}

#endif
