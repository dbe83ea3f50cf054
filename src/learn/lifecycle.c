/*
 * lifecycle.c - forgetting models at transaction end; see lifecycle.h.
 *
 * Nothing here can be wrong in a way that matters for answers: a model that stays too long is never
 * found again and goes when memory is short, one that goes too early is trained again.
 */
#include "learn/lifecycle.h"

#include "access/xact.h"
#include "learn/counters.h"
#include "learn/workercounts.h"
#include "utils/memutils.h"

typedef struct Pending
{
	SubTransactionId subxact;
	bool		created;		/* else dropped */
	bool		superseded;		/* created, and again later in this transaction */
	LbtFile		file;			/* when created */
	Oid			database;
	Oid			oid;
	struct Pending *next;
} Pending;

static Pending *pending = NULL; /* in TopMemoryContext */

static void
remember(bool created, const LbtFile *file, Oid database, Oid oid)
{
	Pending    *p = MemoryContextAllocZero(TopMemoryContext, sizeof(Pending));

	p->subxact = GetCurrentSubTransactionId();
	p->created = created;
	if (file)
		p->file = *file;
	p->database = database;
	p->oid = oid;
	p->next = pending;
	pending = p;
}

void
lbt_lifecycle_created(const LbtIndex *index)
{
	if (index->shareable)
		remember(true, &index->file, index->file.database, index->oid);
}

void
lbt_lifecycle_dropped(Oid database, Oid oid)
{
	/* Now, while an error is still allowed: after the commit nothing may be attached any more. */
	if (lbt_registry_attach())
		remember(false, NULL, database, oid);
}

static void
finish(const Pending *p, bool committed)
{
	if (committed && p->superseded)
		lbt_registry_drop_file(&p->file);
	else if (committed)
		lbt_registry_drop_matching(p->database, p->oid, p->created ? &p->file : NULL);
	else if (p->created)
		lbt_registry_drop_file(&p->file);
	if (committed && !p->created)
		lbt_stats_forget(p->database, p->oid);
}

static void
at_xact_end(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
		case XACT_EVENT_PARALLEL_PRE_COMMIT:
		case XACT_EVENT_PRE_PREPARE:
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
		for (Pending *older = pending; p->created && older != NULL; older = older->next)
			if (older->created && older->oid == p->oid &&
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
}
