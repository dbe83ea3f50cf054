/*
 * xact.c - forgetting models at transaction end; see xact.h.
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
#include "registry/xact.h"

#include "access/xact.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_class.h"
#include "catalog/pg_database.h"
#include "miscadmin.h"
#include "registry/counters.h"
#include "registry/demand.h"
#include "registry/registry.h"
#include "storage/ipc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

/* Models of a database that one transaction's end looks through; what is beyond waits for the worker. */
#define LISTED_MAX 10000

typedef enum PendingKind
{
	CREATED,					/* a file made by this transaction */
	DROPPED,					/* an index, or (no oid) a database */
	FORGOTTEN,					/* an index whose model goes, though the index
								 * stays */
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
	TimestampTz ended_at;		/* of what was wanted: the commit */
	struct Pending *next;
} Pending;

/* Both in TopMemoryContext: what this transaction does, and what is left of ended ones. */
static Pending *pending = NULL;
static Pending *later = NULL;
bool		lbt_something_to_forget = false;
static object_access_hook_type next_hook = NULL;
static TimestampTz loaded_in = 0;	/* the statement's start in which the
									 * library was loaded: it may have dropped
									 * something before */

/* The transaction or subtransaction of this has ended.  Allocates and maps nothing. */
static void
finish(Pending *p, bool committed)
{
	/*
	 * A drop once more: between the first time and the commit somebody may
	 * have trained the index, if only its last lock was not ours alone (DROP
	 * INDEX CONCURRENTLY).  And a training that was asked for, if a worker
	 * was so quick that it has not seen what this transaction has changed.
	 */
	if (committed ? p->kind == DROPPED || p->kind == WANTED : p->kind == CREATED)
	{
		p->ended_at = GetCurrentTimestamp();
		p->next = later;
		later = p;
		lbt_something_to_forget = true;
	}
	else
		pfree(p);
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
		if (p->kind == WANTED)
			lbt_demand_renew(&p->file, p->oid, p->ended_at);
		else if (OidIsValid(p->file.number))
			lbt_registry_drop_file(&p->file);
		if (p->kind == DROPPED)
			lbt_stats_forget(p->file.database, p->oid);
		pfree(p);
	}
}

/* From here on an error would be the server's end. */
static void
finish_all(XactEvent event)
{
	while (pending != NULL)
	{
		Pending    *p = pending;

		pending = p->next;
		if (event == XACT_EVENT_PREPARE)
			pfree(p);
		else
			finish(p, event == XACT_EVENT_COMMIT || event == XACT_EVENT_PARALLEL_COMMIT);
	}
}

/* A process that exits within a transaction aborts it, but only after shared memory has been let go. */
static void
abort_at_exit(int code, Datum arg)
{
	finish_all(XACT_EVENT_ABORT);
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
lbt_xact_created(const LbtIndex *index)
{
	if (index->shareable)
		remember(CREATED, &index->file, index->oid);
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

/* Is there anything in shared memory about this file, or counts of the index of this OID?  True when that cannot be told. */
static bool
knows(const LbtFile *file, Oid oid)
{
	LbtRegistered known = {0};

	return lbt_registry_attach() && (lbt_registry_describe(file, &known) || known.state == LBT_NO_MEMORY ||
									 lbt_stats_any(file->database, oid));
}

void
lbt_xact_dropped(const Oid *oids, int n)
{
	LbtFile		none = {.database = MyDatabaseId};
	LbtListed  *listed;
	int			nlisted;

	if (GetCurrentStatementStartTimestamp() != loaded_in || !lbt_registry_attach())
		return;
	nlisted = lbt_registry_list(MyDatabaseId, &listed, LISTED_MAX);
	for (int i = 0; i < n; i++)
	{
		if (lbt_stats_any(MyDatabaseId, oids[i]))
			remember(DROPPED, &none, oids[i]);
		for (int j = 0; j < nlisted; j++)
			if (listed[j].oid == oids[i])
				remember(DROPPED, &listed[j].file, oids[i]);
	}
}

/* Most dropped indexes have never had a model here: one look into shared memory tells. */
static void
note_change(ObjectAccessType access, Oid class, Oid object, int sub, void *arg)
{
	LbtFile		file = {.database = object};

	if (next_hook)
		next_hook(access, class, object, sub, arg);
	if (access != OAT_DROP || sub != 0)
		return;
	if (class == RelationRelationId && lbt_index_file(object, &file) && knows(&file, object))
		remember(DROPPED, &file, object);
	else if (class == DatabaseRelationId && lbt_registry_attach())
		remember(DROPPED, &file, InvalidOid);
}

/*
 * Models of files that this transaction has replaced, its own ones among them: of each index that it has made a file of,
 * only the last one's stays.
 */
static void
forget_replaced(void)
{
	LbtListed  *listed;
	int			nlisted = lbt_registry_list(MyDatabaseId, &listed, LISTED_MAX);

	for (int i = 0; i < nlisted; i++)
		for (const Pending *p = pending; p != NULL; p = p->next)
			if (p->kind == CREATED && p->oid == listed[i].oid)
			{
				if (memcmp(&p->file, &listed[i].file, sizeof(LbtFile)) != 0)
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
			lbt_demand_raise(file, p->oid, true);
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
	finish_all(event);
	lbt_views_trim();
}

static void
at_subxact_end(SubXactEvent event, SubTransactionId subxact, SubTransactionId parent, void *arg)
{
	Pending   **link = &pending;

	if (event != SUBXACT_EVENT_COMMIT_SUB && event != SUBXACT_EVENT_ABORT_SUB)
		return;
	while (*link != NULL)
	{
		Pending    *p = *link;

		if (p->subxact != subxact)
			link = &p->next;
		else if (event == SUBXACT_EVENT_COMMIT_SUB)
		{
			p->subxact = parent;
			link = &p->next;
		}
		else
		{
			*link = p->next;
			finish(p, false);
		}
	}
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
