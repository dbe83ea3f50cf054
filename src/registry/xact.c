/*
 * xact.c - forgetting indexes that transactions have dropped, or made in vain.
 *
 * Which these are the catalog says, and it is asked before a commit, while an
 * error is still possible.  At a transaction's end nothing touches shared
 * memory: that may map a segment, and an error would be the server's end.  So
 * what an aborted transaction has made stays until the process's next commit.
 *
 * No mistake here matters for answers: a model that stays too long is never
 * found, and goes if memory is short; one that goes early is trained again.
 * A worker finds what is missed before it ends (train/worker.c): what sessions
 * without the library drop, prepared transactions, and ones that an exit has
 * aborted.
 */
#include "registry/view.h"

#include "access/xact.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_class.h"
#include "catalog/pg_database.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

/* An index that may be gone, or be going. */
typedef struct Doubtful
{
	LbtFile		file;
	TimestampTz statement;		/* of the statement that has said so */
} Doubtful;

static List *doubtful = NIL;	/* in TopMemoryContext */
static object_access_hook_type next_hook = NULL;

void
lbt_forget_if_gone(const LbtFile *file)
{
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);
	Doubtful   *index = palloc(sizeof(Doubtful));

	index->file = *file;
	index->statement = GetCurrentStatementStartTimestamp();
	doubtful = lappend(doubtful, index);
	MemoryContextSwitchTo(old);
}

static void
note_drop(ObjectAccessType access, Oid class, Oid object, int sub, void *arg)
{
	LbtFile		file;
	ListCell   *lc;

	if (next_hook)
		next_hook(access, class, object, sub, arg);
	if (access != OAT_DROP || sub != 0)
		return;
	if (class == RelationRelationId && lbt_index_file(object, &file) && lbt_registry_attach())
		lbt_forget_if_gone(&file);
	if (class == DatabaseRelationId && lbt_registry_attach())
		foreach(lc, lbt_registry_list(0))
			if (((const LbtFile *) lfirst(lc))->database == object)
				lbt_forget_if_gone(lfirst(lc));
}

/*
 * DROP INDEX CONCURRENTLY commits before its index is gone, too.  A database
 * is dropped by a transaction that does nothing else.
 */
static void
forget_gone(void)
{
	ListCell   *lc;

	foreach(lc, doubtful)
	{
		Doubtful   *index = lfirst(lc);

		if (index->file.database != MyDatabaseId ||
			!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(index->file.index)))
			lbt_registry_forget(&index->file);
		else if (index->statement == GetCurrentStatementStartTimestamp())
			continue;
		doubtful = foreach_delete_current(doubtful, lc);
		pfree(index);
	}
}

static void
transaction_ends(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
			forget_gone();
			break;
		case XACT_EVENT_PARALLEL_PRE_COMMIT:
		case XACT_EVENT_PRE_PREPARE:
			break;
		default:
			lbt_views_trim();
	}
}

void
lbt_xact_init(void)
{
	RegisterXactCallback(transaction_ends, NULL);
	next_hook = object_access_hook;
	object_access_hook = note_drop;
}
