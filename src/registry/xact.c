/*
 * xact.c - models of files that transactions make and remove; see xact.h.
 *
 * Before a commit, while an error is still possible, drop the models that the
 * commit makes useless: if the transaction fails after all, they are trained
 * again.  At its end do not touch shared memory: that may map a segment, and
 * an error would be the server's end.  What the end made useless goes on a
 * list for the process's next statement, commit or exit: also, again, what was
 * dropped before the commit, as somebody may have trained the index since, if
 * its last lock was not ours alone (DROP INDEX CONCURRENTLY).
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
#include "registry/view.h"
#include "server/guard.h"
#include "utils/memutils.h"

/* What to forget if the transaction commits, or if it aborts. */
typedef struct Pending
{
	LbtFile		file;			/* its model; without a number: database's */
	Oid			oid;			/* the dropped index: its counts, too */
	bool		if_committed;
	SubTransactionId subxact;
	struct Pending *next;
} Pending;

/* In TopMemoryContext: this transaction's, newest first; and ended ones'. */
static Pending *pending = NULL;
static Pending *ended = NULL;
static object_access_hook_type next_hook = NULL;

static void
remember(bool if_committed, const LbtFile *file, Oid oid)
{
	Pending    *p = MemoryContextAllocZero(TopMemoryContext, sizeof(Pending));

	p->file = *file;
	p->oid = oid;
	p->if_committed = if_committed;
	p->subxact = GetCurrentSubTransactionId();
	p->next = pending;
	pending = p;
}

static void
forget_models(const Pending *p)
{
	if (OidIsValid(p->file.number))
		lbt_registry_drop_file(&p->file);
	else
		lbt_registry_drop_matching(p->file.database, InvalidOid, NULL);
}

/* Try each once: what is out of reach goes when memory is short. */
static void
forget_ended(void)
{
	while (ended != NULL)
	{
		Pending    *p = ended;

		ended = p->next;
		forget_models(p);
		if (OidIsValid(p->oid))
			lbt_stats_forget(p->file.database, p->oid);
		pfree(p);
	}
}

/*
 * The subtransactions from this one on have ended; one that was prepared has
 * done neither, and may do so in another process.  Allocates nothing.
 */
static void
finish(SubTransactionId first, bool committed, bool aborted)
{
	while (pending != NULL && pending->subxact >= first)
	{
		Pending    *p = pending;

		pending = p->next;
		if (p->if_committed ? committed : aborted)
		{
			p->next = ended;
			ended = p;
		}
		else
			pfree(p);
	}
}

void
lbt_xact_created(const LbtFile *file, Oid oid)
{
	ListCell   *lc;

	foreach(lc, lbt_registry_list(file->database, oid, file))
		remember(true, lfirst(lc), InvalidOid);
	remember(false, file, InvalidOid);
}

static void
note_change(ObjectAccessType access, Oid class, Oid object, int sub, void *arg)
{
	LbtFile		file = {.database = object};

	if (next_hook)
		next_hook(access, class, object, sub, arg);
	if (access != OAT_DROP || sub != 0)
		return;
	if (class == RelationRelationId && lbt_index_file(object, &file) && lbt_registry_attach())
		remember(true, &file, object);
	else if (class == DatabaseRelationId && lbt_registry_attach())
		remember(true, &file, InvalidOid);
}

static void
transaction_ends(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
			if (pending != NULL || ended != NULL)
				(void) lbt_registry_attach();
			lbt_xact_clean_up();
			for (const Pending *p = pending; p != NULL; p = p->next)
				if (p->if_committed)
					forget_models(p);
			return;
		case XACT_EVENT_PARALLEL_PRE_COMMIT:
		case XACT_EVENT_PRE_PREPARE:
			return;
		default:
			finish(TopSubTransactionId,
				   event == XACT_EVENT_COMMIT || event == XACT_EVENT_PARALLEL_COMMIT,
				   event == XACT_EVENT_ABORT || event == XACT_EVENT_PARALLEL_ABORT);
	}
	lbt_views_trim();
}

static void
subtransaction_ends(SubXactEvent event, SubTransactionId subxact, SubTransactionId parent,
					void *arg)
{
	if (event == SUBXACT_EVENT_COMMIT_SUB)
		for (Pending *p = pending; p != NULL && p->subxact == subxact; p = p->next)
			p->subxact = parent;
	else if (event == SUBXACT_EVENT_ABORT_SUB)
		finish(subxact, false, true);
}

void
lbt_xact_clean_up(void)
{
	if (unlikely(ended != NULL) && lbt_control != NULL && lbt_guard_may_enter())
		forget_ended();
}

/* An exit within a transaction aborts it, but after leaving shared memory. */
void
lbt_xact_exit(void)
{
	finish(TopSubTransactionId, false, true);
	if (!lbt_guard_has_failed)
		forget_ended();
}

void
lbt_xact_init(void)
{
	RegisterXactCallback(transaction_ends, NULL);
	RegisterSubXactCallback(subtransaction_ends, NULL);
	next_hook = object_access_hook;
	object_access_hook = note_change;
}
