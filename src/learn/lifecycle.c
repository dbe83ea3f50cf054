/*
 * lifecycle.c - forgetting models at transaction end; see lifecycle.h.
 *
 * Nothing here can be wrong in a way that matters for answers: a model that stays too long is never
 * found again and goes when memory is short, one that goes too early is trained again.
 *
 * Drops are seen by the server's hook for changes of catalog objects, in sessions that have loaded the library, and by an
 * event trigger in others.  What both miss is found by a worker before it ends (sql/worker.c).
 */
#include "learn/lifecycle.h"

#include "access/xact.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_class.h"
#include "catalog/pg_database.h"
#include "learn/counters.h"
#include "learn/demand.h"
#include "learn/workercounts.h"
#include "miscadmin.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

/* Models of a database that a DROP looks through; what is beyond waits for the worker. */
#define DROPPED_MAX 10000

typedef enum PendingKind
{
	CREATED,					/* a file made by this transaction */
	DROPPED,					/* an index, or (no oid) a database */
	FORGOTTEN,					/* an index whose model goes, though the index stays */
	WANTED						/* an index to be trained */
} PendingKind;

typedef struct Pending
{
	SubTransactionId subxact;
	PendingKind kind;
	bool		superseded;		/* created, and again later in this transaction */
	LbtFile		file;			/* but for a database */
	Oid			oid;
	struct Pending *next;
} Pending;

static Pending *pending = NULL; /* in TopMemoryContext */
static object_access_hook_type next_hook = NULL;

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
lbt_lifecycle_created(const LbtIndex *index)
{
	if (index->shareable)
		remember(CREATED, &index->file, index->oid);
}

/* Attached now, while an error is still allowed: at the commit and after it nothing may be any more. */
static void
remember_index(PendingKind kind, Oid index)
{
	LbtFile		file;

	if (lbt_index_file(index, &file) && lbt_registry_attach())
		remember(kind, &file, index);
}

void
lbt_lifecycle_forget(Oid index)
{
	remember_index(FORGOTTEN, index);
}

void
lbt_lifecycle_want(Oid index)
{
	remember_index(WANTED, index);
}

bool
lbt_index_file(Oid relid, LbtFile *file)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	Form_pg_class class;
	bool		found;

	if (!HeapTupleIsValid(tuple))
		return false;
	class = (Form_pg_class) GETSTRUCT(tuple);
	found = class->relkind == RELKIND_INDEX && class->relpersistence != RELPERSISTENCE_TEMP &&
		OidIsValid(class->relfilenode);
	*file = (LbtFile) {.database = class->relisshared ? InvalidOid : MyDatabaseId,
		.tablespace = OidIsValid(class->reltablespace) ? class->reltablespace : MyDatabaseTableSpace,
	.number = class->relfilenode};
	ReleaseSysCache(tuple);
	return found;
}

void
lbt_lifecycle_dropped(const Oid *oids, int n)
{
	HASHCTL		ctl = {.keysize = sizeof(Oid),.entrysize = sizeof(Oid),.hcxt = CurrentMemoryContext};
	LbtFile		none = {.database = MyDatabaseId};
	LbtListed  *listed;
	HTAB	   *set;
	int			nlisted;

	if (!lbt_registry_attach())
		return;
	set = hash_create("learnedbtree dropped indexes", 64, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	for (int i = 0; i < n; i++)
	{
		(void) hash_search(set, &oids[i], HASH_ENTER, NULL);
		if (lbt_stats_any(MyDatabaseId, oids[i]))
			remember(DROPPED, &none, oids[i]);
	}
	nlisted = lbt_registry_list(MyDatabaseId, &listed, DROPPED_MAX);
	for (int i = 0; i < nlisted; i++)
		if (hash_search(set, &listed[i].oid, HASH_FIND, NULL) != NULL)
			remember(DROPPED, &listed[i].file, listed[i].oid);
	pfree(listed);
	hash_destroy(set);
}

/* Most dropped indexes have never had a model here: one look into shared memory tells. */
static void
note_drop(Oid class, Oid object)
{
	LbtFile		file = {.database = object};

	if (class == RelationRelationId ? lbt_index_file(object, &file) && lbt_registry_knows(&file, object) :
		lbt_registry_attach())
		remember(DROPPED, &file, class == RelationRelationId ? object : InvalidOid);
}

static void
note_change(ObjectAccessType access, Oid class, Oid object, int sub, void *arg)
{
	if (next_hook)
		next_hook(access, class, object, sub, arg);
	if (access == OAT_DROP && sub == 0 && (class == RelationRelationId || class == DatabaseRelationId))
		note_drop(class, object);
}

static void
finish(const Pending *p, bool committed)
{
	switch (p->kind)
	{
		case CREATED:
			if (committed && !p->superseded)
				lbt_registry_drop_matching(p->file.database, p->oid, &p->file);
			else
				lbt_registry_drop_file(&p->file);
			break;
		case DROPPED:
			if (!committed)
				break;
			if (OidIsValid(p->oid))
				lbt_registry_drop_file(&p->file);
			else
				lbt_registry_drop_matching(p->file.database, InvalidOid, NULL);
			lbt_stats_forget(p->file.database, p->oid);
			break;
		case FORGOTTEN:
			if (committed)
				lbt_registry_drop_file(&p->file);
			break;
		case WANTED:
			break;				/* seen to before the commit */
	}
}

/* Ask for trainings while an error, and memory for it, may still be had. */
static void
raise_demands(void)
{
	for (const Pending *p = pending; p != NULL; p = p->next)
		if (p->kind == WANTED)
			lbt_demand_raise(&p->file, p->oid);
}

static void
at_xact_end(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
		case XACT_EVENT_PARALLEL_PRE_COMMIT:
		case XACT_EVENT_PRE_PREPARE:
			if (event == XACT_EVENT_PRE_COMMIT)
				raise_demands();
			lbt_counters_before_commit();
			return;
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PREPARE:
		case XACT_EVENT_PARALLEL_COMMIT:
		case XACT_EVENT_PARALLEL_ABORT:
			break;
	}

	/* From here on an error would be the server's end: nothing below allocates. */
	while (pending != NULL)
	{
		Pending    *p = pending;

		pending = p->next;
		for (Pending *older = pending; p->kind == CREATED && older != NULL; older = older->next)
			if (older->kind == CREATED && older->oid == p->oid &&
				memcmp(&older->file, &p->file, sizeof(LbtFile)) != 0)
				older->superseded = true;
		if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT)
			finish(p, event == XACT_EVENT_COMMIT);
		pfree(p);
	}
	lbt_workercounts_forget_all();
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
			pfree(p);
		}
	}
}

void
lbt_lifecycle_init(void)
{
	RegisterXactCallback(at_xact_end, NULL);
	RegisterSubXactCallback(at_subxact_end, NULL);
	next_hook = object_access_hook;
	object_access_hook = note_change;
}
