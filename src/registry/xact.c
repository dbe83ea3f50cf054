/*
 * xact.c - models of files that transactions make and remove.
 *
 * Before a commit, while an error may still be had, models go that the commit makes useless: if the transaction fails
 * after all, they are trained again.  After a commit or abort shared memory is not touched, for to look at it may map a
 * segment, and an error would be the server's end.  What can go only then (models of files that were made in vain, and
 * counts, which nobody could bring back) is put on a list that the process sees to later (lbt_forget_now()).
 *
 * Nothing here can be wrong in a way that matters for answers: a model that stays too long is never found again and
 * goes when memory is short, one that goes too early is trained again.
 *
 * Drops are seen by the server's hook for changes of catalog objects, in sessions that have loaded the library, and by an
 * event trigger in others.  What both miss is found by a worker before it ends (train/worker.c).
 */
#include "registry/registry.h"

#include "access/xact.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_class.h"
#include "catalog/pg_database.h"
#include "miscadmin.h"
#include "registry/counters.h"
#include "storage/ipc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

/* A training that is asked for before a commit waits so long, to see what the transaction has changed. */
#define COMMIT_MS 1000

typedef enum PendingKind
{
	NOTHING,
	CREATED,					/* a file made by this transaction */
	DROPPED,					/* an index, or (no oid) a database */
	FORGOTTEN,					/* an index whose model goes */
	WANTED						/* an index to be trained */
} PendingKind;

typedef struct Pending
{
	LbtFile		file;			/* its model; of a dropped database, or one of
								 * which there is no model, the database alone */
	Oid			oid;			/* the index; InvalidOid: all of the
								 * database's */
	PendingKind kind;
	SubTransactionId subxact;
	struct Pending *next;
} Pending;

/* Both in TopMemoryContext: what this transaction does, the newest first, and what is left of ended ones. */
static Pending *pending = NULL;
static Pending *later = NULL;
bool		lbt_something_to_forget = false;
static object_access_hook_type next_hook = NULL;
static TimestampTz loaded_in = 0;	/* the statement's start in which the
									 * library was loaded: it may have dropped
									 * something before */

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
			lbt_something_to_forget = true;
		}
		else
			pfree(p);
	}
}

/* Each once: what cannot be reached now goes when memory is short, or is found by a worker. */
void
lbt_forget_now(void)
{
	lbt_something_to_forget = false;
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

/* A process that exits within a transaction aborts it, but only after shared memory has been let go. */
static void
abort_at_exit(int code, Datum arg)
{
	finish(TopSubTransactionId, CREATED);
}

/* Shared memory has been attached: what is registered now runs before that is let go. */
static void
remember(PendingKind kind, const LbtFile *file, Oid oid)
{
	static bool registered = false;
	Pending    *p = MemoryContextAllocZero(TopMemoryContext, sizeof(Pending));

	if (!registered)
		before_shmem_exit(abort_at_exit, (Datum) 0);
	registered = true;
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
remember_index(PendingKind kind, Oid index)
{
	LbtFile		file;

	if (lbt_index_file(index, &file) && lbt_registry_attach())
		remember(kind, &file, index);
}

void
lbt_xact_forget(Oid index)
{
	remember_index(FORGOTTEN, index);
}

void
lbt_xact_want(Oid index)
{
	remember_index(WANTED, index);
}

void
lbt_xact_dropped(const Oid *oids, int n)
{
	LbtFile		none = {.database = MyDatabaseId};
	LbtListed  *listed;
	int			nlisted;

	if (GetCurrentStatementStartTimestamp() != loaded_in || !lbt_registry_attach())
		return;
	nlisted = lbt_registry_list(MyDatabaseId, &listed);
	for (int i = 0; i < n; i++)
	{
		remember(DROPPED, &none, oids[i]);
		for (int j = 0; j < nlisted; j++)
			if (listed[j].oid == oids[i])
				remember(DROPPED, &listed[j].file, oids[i]);
	}
}

static void
note_change(ObjectAccessType access, Oid class, Oid object, int sub, void *arg)
{
	LbtFile		database = {.database = object};

	if (next_hook)
		next_hook(access, class, object, sub, arg);
	if (access != OAT_DROP || sub != 0)
		return;
	if (class == RelationRelationId)
		remember_index(DROPPED, object);
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
	int			nlisted = lbt_registry_list(MyDatabaseId, &listed);

	for (int i = 0; i < nlisted; i++)
		for (const Pending *p = pending; p != NULL; p = p->next)
			if (p->kind == CREATED && p->oid == listed[i].oid)
			{
				if (!lbt_same_file(&p->file, &listed[i].file))
					lbt_registry_drop_file(&listed[i].file);
				break;			/* the list begins with the newest */
			}
}

/* Ask for trainings, and let go of what the commit is going to make useless. */
static void
before_commit(void)
{
	bool		created = false;

	for (const Pending *p = pending; p != NULL; p = p->next)
	{
		const LbtFile *file = &p->file;

		if (p->kind == CREATED)
			created = true;
		else if (p->kind == WANTED)
			lbt_demand_raise(file, p->oid, COMMIT_MS);
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
	next_hook = object_access_hook;
	object_access_hook = note_change;
}
