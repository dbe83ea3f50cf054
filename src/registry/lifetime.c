/*
 * lifetime.c - making shared memory, attaching to it, leaving it; models of files that transactions make and remove.
 *
 * Before a commit, while an error may still be had, models go that the commit makes useless: if the transaction fails
 * after all, they are trained again.  After a commit or abort shared memory is not touched, for to look at it may map a
 * segment, and an error would be the server's end.  What can go only then (models of files that were made in vain, and
 * counts, which nobody could bring back) is put on a list that the process sees to when it attaches next, or exits.
 *
 * Nothing here can be wrong in a way that matters for answers: a model that stays too long is never found again and
 * goes when memory is short, one that goes too early is trained again.
 *
 * Drops are seen by the server's hook for changes of catalog objects, in sessions that have loaded the library.  What others
 * drop is found by a worker before it ends (train/worker.c).
 */
#include "registry/registry.h"

#include "access/xact.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_class.h"
#include "catalog/pg_database.h"
#include "miscadmin.h"
#include "registry/counters.h"
#include "server/compat.h"
#include "server/executor.h"
#include "server/guard.h"
#include "server/shared.h"
#include "server/tableblock.h"
#include "storage/ipc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

/* A backend that could not attach tries again only so much later. */
#define ATTACH_INTERVAL_MS 10000

/* What wait events call our LWLocks. */
#define LWLOCK_NAME "LearnedBtree"

/* Room for the hash tables before the first DSM segment is needed. */
#define PLACE_BYTES (256 * 1024)

typedef enum PendingKind
{
	NOTHING,
	CREATED,					/* a file made by this transaction */
	DROPPED						/* an index, or (no oid) a database */
} PendingKind;

typedef struct Pending
{
	LbtFile		file;			/* its model; without one the database alone */
	Oid			oid;			/* the index; InvalidOid: all of a database */
	PendingKind kind;
	SubTransactionId subxact;
	struct Pending *next;
} Pending;

/* Both in TopMemoryContext: what this transaction does, the newest first, and what is left of ended ones. */
static Pending *pending = NULL;
static Pending *later = NULL;
static object_access_hook_type next_hook = NULL;

/* Start of the statement that loaded the library: it may have dropped something before. */
static TimestampTz loaded_in = 0;

LbtControl *lbt_control = NULL;
dsa_area   *lbt_area = NULL;
dshash_table *lbt_entries = NULL;
dshash_table *lbt_totals = NULL;

/* ---- what ends leave behind ---- */

/*
 * The subtransactions from this one on have ended: what they have done of one kind is forgotten later.  That is what
 * an abort has made in vain; and at a commit what was dropped, once more: between the first time and the commit somebody
 * may have trained the index, if only its last lock was not ours alone (DROP INDEX CONCURRENTLY).  Allocates and maps
 * nothing: mostly an error would be the server's end.
 */
static void
finish(SubTransactionId first, PendingKind kind)
{
	while (pending != NULL && pending->subxact >= first)
	{
		Pending    *p = pending;

		pending = p->next;
		if (p->kind == kind)
		{
			p->next = later;
			later = p;
		}
		else
			pfree(p);
	}
}

/* Each once: what cannot be reached now goes when memory is short, or is found by a worker. */
static void
forget_now(void)
{
	while (later != NULL)
	{
		Pending    *p = later;

		later = p->next;
		if (OidIsValid(p->file.number))
			lbt_registry_drop_file(&p->file);
		if (p->kind == DROPPED)
			lbt_stats_forget(p->file.database, p->oid);
		pfree(p);
	}
}

/* ---- shared memory ---- */

static void *
place_of(LbtControl *c)
{
	return (char *) c + MAXALIGN(sizeof(LbtControl));
}

static dshash_table_handle
create_table(dsa_area *area, Size key_size, Size entry_size, int tranche)
{
	dshash_parameters params = lbt_dshash_parameters(key_size, entry_size, tranche);
	dshash_table *table = dshash_create(area, &params, NULL);
	dshash_table_handle handle = dshash_get_hash_table_handle(table);

	dshash_detach(table);
	return handle;
}

static dshash_table *
attach_table(dshash_table_handle handle, Size key_size, Size entry_size, int tranche)
{
	dshash_parameters params = lbt_dshash_parameters(key_size, entry_size, tranche);

	return dshash_attach(lbt_area, &params, handle, NULL);
}

/* Runs once for the cluster, perhaps in the postmaster, where no DSM segment can be made. */
static void
init_control(void *block)
{
	LbtControl *c = block;
	dsa_area   *a;

	c->tranche = lbt_new_tranche(LWLOCK_NAME);
	lbt_name_tranche(c->tranche, LWLOCK_NAME);
	LWLockInitialize(&c->reclaim, c->tranche);
	LWLockInitialize(&c->workers_lock, c->tranche);
	pg_atomic_init_u64(&c->generation, 1);
	pg_atomic_init_u64(&c->model_bytes, 0);
	pg_atomic_init_u64(&c->unreachable_told, 0);
	pg_atomic_init_u64(&c->no_slot_at, 0);

	a = dsa_create_in_place(place_of(c), PLACE_BYTES, c->tranche, NULL);
	dsa_pin(a);
	dsa_set_size_limit(a, PLACE_BYTES);
	c->entries = create_table(a, sizeof(LbtFile), sizeof(LbtEntry), c->tranche);
	c->totals = create_table(a, LBT_STATS_KEY_BYTES, sizeof(LbtStats), c->tranche);
	dsa_set_size_limit(a, (size_t) -1);
	dsa_detach(a);
}

/*
 * At exit, while DSM segments are still mapped (the place may be in one; they are gone before on_shmem_exit).  An error
 * here ends the process, and what comes next in its exit needs the locks.
 */
static void
leave(int code, Datum arg)
{
	if (lbt_control == NULL)
		return;
	LWLockReleaseAll();
	dsa_on_shmem_exit_release_in_place(code, PointerGetDatum(place_of(lbt_control)));
}

/*
 * A process that exits within a transaction aborts it, but only after shared memory has been let go.  Who could not reach
 * all of that before would not now either, and nothing is caught any more.
 */
static void
finish_at_exit(int code, Datum arg)
{
	if (lbt_control == NULL)
		return;
	LWLockReleaseAll();
	finish(TopSubTransactionId, CREATED);
	if (lbt_guard_has_failed())
		return;
	forget_now();
	lbt_counters_flush();
}

/*
 * Have these called at exit.  Not at just any time: the server wants such callbacks back in reverse order, and one that
 * comes in between, while a command has registered one of its own for as long as it runs (PG_ENSURE_ERROR_CLEANUP; 19's
 * REPACK builds indexes in there), ends the command with an error that it does not survive.
 */
static void
expect_exit(void)
{
	if (lbt_statement.begins == NULL)
		return;					/* they are */
	before_shmem_exit(leave, (Datum) 0);
	before_shmem_exit(finish_at_exit, (Datum) 0);	/* runs first */
	lbt_statement.begins = NULL;
}

/* The statement that has loaded the library may be anywhere by now. */
static void
statement_begins(void)
{
	if (GetCurrentStatementStartTimestamp() != loaded_in)
		expect_exit();
}

/* What can fail comes first, and may come again: only the end makes this process one that has attached. */
static void
attach(void)
{
	LbtControl *c = lbt_shared_block();
	MemoryContext old;

	if (c == NULL)
		return;
	old = MemoryContextSwitchTo(TopMemoryContext);
	if (lbt_area == NULL)
	{
		lbt_name_tranche(c->tranche, LWLOCK_NAME);
		lbt_area = dsa_attach_in_place(place_of(c), NULL);
		dsa_pin_mapping(lbt_area);
	}
	lbt_entries = attach_table(c->entries, sizeof(LbtFile), sizeof(LbtEntry), c->tranche);
	lbt_totals = attach_table(c->totals, LBT_STATS_KEY_BYTES, sizeof(LbtStats), c->tranche);
	MemoryContextSwitchTo(old);
	if (!IsTransactionState())
		expect_exit();
	lbt_control = c;
	lbt_hints_are_at((char *) place_of(c) + PLACE_BYTES);
	lbt_guard_report_together(&c->unreachable_told);
}

bool
lbt_registry_attach(void)
{
	static TimestampTz next_try = 0;

	if (likely(lbt_control != NULL))
	{
		if (unlikely(later != NULL) && lbt_guard_may_enter())
			forget_now();
		return true;
	}
	if (lbt_shared_possible() && lbt_guard_may_enter() && GetCurrentTimestamp() >= next_try)
		LBT_GUARDED(attach(), next_try = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), ATTACH_INTERVAL_MS));
	return lbt_control != NULL;
}

void
lbt_shmem_init(void)
{
	lbt_shared_declare(MAXALIGN(sizeof(LbtControl)) + PLACE_BYTES + lbt_hints_bytes(), init_control);
}

/* ---- transactions ---- */

static void
remember(PendingKind kind, const LbtFile *file, Oid oid)
{
	Pending    *p = MemoryContextAllocZero(TopMemoryContext, sizeof(Pending));

	p->subxact = GetCurrentSubTransactionId();
	p->kind = kind;
	p->file = *file;
	p->oid = oid;
	p->next = pending;
	pending = p;
}

void
lbt_xact_created(const LbtFile *file, Oid oid)
{
	remember(CREATED, file, oid);
}

static void
note_change(ObjectAccessType access, Oid class, Oid object, int sub, void *arg)
{
	LbtFile		database = {.database = object};
	LbtFile		file;

	if (next_hook)
		next_hook(access, class, object, sub, arg);
	if (access != OAT_DROP || sub != 0)
		return;
	if (class == RelationRelationId)
	{
		if (lbt_index_file(object, &file) && lbt_registry_attach())
			remember(DROPPED, &file, object);
	}
	else if (class == DatabaseRelationId && lbt_registry_attach())
		remember(DROPPED, &database, InvalidOid);
}

/*
 * Models of files that this transaction has replaced, its own ones among them: of each index that it has made a file of,
 * only the last one's stays.
 */
static void
forget_replaced(void)
{
	LbtListed  *listed;
	int			nlisted = lbt_registry_list(MyDatabaseId, InvalidOid, &listed);

	for (int i = 0; i < nlisted; i++)
		for (const Pending *p = pending; p != NULL; p = p->next)
			if (p->kind == CREATED && p->oid == listed[i].oid)
			{
				if (!lbt_same_file(&p->file, &listed[i].file))
					lbt_registry_drop_file(&listed[i].file);
				break;			/* the list begins with the newest */
			}
}

/* Let go of what the commit is going to make useless. */
static void
before_commit(void)
{
	bool		created = false;

	for (const Pending *p = pending; p != NULL; p = p->next)
	{
		const LbtFile *file = &p->file;

		if (p->kind == CREATED)
			created = true;
		else if (OidIsValid(file->number))
			lbt_registry_drop_file(file);
		else if (!OidIsValid(p->oid))
			lbt_registry_drop_matching(file->database, InvalidOid, NULL);
	}
	if (created)
		forget_replaced();
}

static void
at_xact_end(XactEvent event, void *arg)
{
	expect_exit();
	if (event == XACT_EVENT_PRE_COMMIT && pending != NULL)
	{
		(void) lbt_registry_attach();
		before_commit();
	}
	if (event == XACT_EVENT_PRE_COMMIT || event == XACT_EVENT_PARALLEL_PRE_COMMIT || event == XACT_EVENT_PRE_PREPARE)
	{
		lbt_counters_before_commit();
		return;
	}
	if (pending != NULL)
		finish(TopSubTransactionId, event == XACT_EVENT_PREPARE ? NOTHING :
			   event == XACT_EVENT_COMMIT || event == XACT_EVENT_PARALLEL_COMMIT ? DROPPED : CREATED);
	lbt_views_trim();
}

static void
at_subxact_end(SubXactEvent event, SubTransactionId subxact, SubTransactionId parent, void *arg)
{
	if (event == SUBXACT_EVENT_COMMIT_SUB)
		for (Pending *p = pending; p != NULL && p->subxact == subxact; p = p->next)
			p->subxact = parent;
	else if (event == SUBXACT_EVENT_ABORT_SUB)
		finish(subxact, CREATED);
}

void
lbt_xact_init(void)
{
	loaded_in = GetCurrentStatementStartTimestamp();
	RegisterXactCallback(at_xact_end, NULL);
	RegisterSubXactCallback(at_subxact_end, NULL);
	lbt_statement.begins = statement_begins;
	next_hook = object_access_hook;
	object_access_hook = note_change;
}
