/*
 * xact.c - models of files that transactions make and remove; see xact.h.
 *
 * Before a commit, while an error is still possible, drop the models that the
 * commit makes useless: if the transaction fails after all, they are trained
 * again.  After a commit or abort do not touch shared memory: that may map a
 * segment, and an error would be the server's end.  What can go only then
 * (models of files made in vain, and counts, which nobody could bring back)
 * goes on a list for the process's next attach or exit.
 *
 * No mistake here matters for answers: a model that stays too long is never
 * found, and goes if memory is short; one that goes early is trained again.
 *
 * The hook for changes of catalog objects sees drops in sessions that have the
 * library.  A worker finds other drops before it ends (train/worker.c).
 */
#include "registry/xact.h"

#include "access/xact.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_class.h"
#include "catalog/pg_database.h"
#include "miscadmin.h"
#include "registry/counters.h"
#include "registry/models.h"
#include "registry/view.h"
#include "server/guard.h"
#include "utils/memutils.h"

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

/* In TopMemoryContext: this transaction's, newest first; and ended ones'. */
static Pending *pending = NULL;
static Pending *later = NULL;
static object_access_hook_type next_hook = NULL;

/* ---- what ends leave behind ---- */

/* Each once: what is out of reach goes when memory is short or by a worker. */
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

/*
 * The subtransactions from this one on have ended: forget later what they have
 * done of one kind.  That is what an abort made in vain; and at a commit what
 * was dropped, again: since the first time somebody may have trained the
 * index, if its last lock was not ours alone (DROP INDEX CONCURRENTLY).
 * Allocates and maps nothing: mostly an error would be the server's end.
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
			lbt_put_off(forget_now);
		}
		else
			pfree(p);
	}
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

/* Drop models of files that this transaction replaced, even its own ones. */
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

/* Let go of what the commit will make useless. */
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
finish_files(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_PRE_COMMIT && pending != NULL)
	{
		(void) lbt_registry_attach();
		before_commit();
	}
	if (event == XACT_EVENT_PRE_COMMIT || event == XACT_EVENT_PARALLEL_PRE_COMMIT ||
		event == XACT_EVENT_PRE_PREPARE)
		return;
	if (pending != NULL)
		finish(TopSubTransactionId, event == XACT_EVENT_PREPARE ? NOTHING :
			   event == XACT_EVENT_COMMIT || event == XACT_EVENT_PARALLEL_COMMIT ? DROPPED :
			   CREATED);
	lbt_views_trim();
}

static void
finish_subxact_files(SubXactEvent event, SubTransactionId subxact, SubTransactionId parent,
					 void *arg)
{
	if (event == SUBXACT_EVENT_COMMIT_SUB)
		for (Pending *p = pending; p != NULL && p->subxact == subxact; p = p->next)
			p->subxact = parent;
	else if (event == SUBXACT_EVENT_ABORT_SUB)
		finish(subxact, CREATED);
}

/* An exit within a transaction aborts it, but after leaving shared memory. */
static void
finish_at_exit(void)
{
	finish(TopSubTransactionId, CREATED);
	if (!lbt_guard_has_failed)
		forget_now();
}

void
lbt_xact_init(void)
{
	RegisterXactCallback(finish_files, NULL);
	RegisterSubXactCallback(finish_subxact_files, NULL);
	lbt_at_exit(finish_at_exit);
	next_hook = object_access_hook;
	object_access_hook = note_change;
}
