/*
 * workercounts.c - events of parallel workers' scans; see workercounts.h.
 *
 * A worker hands over before it ends, and the leader has waited for its workers' ends when EXPLAIN shows the plan
 * or the statement ends.  The leader takes all away before the commit, or, after an abort, with its next statement of
 * this kind, its next commit or its exit: another process with its number finds nothing.
 */
#include "learn/workercounts.h"

#include "common/hashfn.h"
#include "miscadmin.h"
#include "server/compat.h"
#include "server/guard.h"
#include "storage/proc.h"

typedef struct Key
{
	int			leader;
	uint32		statement;
	int			node;
} Key;

typedef struct WorkerCounts
{
	Key			key;			/* hash key */
	uint64		events[LBT_SCAN_EVENTS];
} WorkerCounts;

static dshash_table *table = NULL;
static bool may_have_some = false;	/* in the leader */

static uint32
hash_text(const char *statement)
{
	return statement ? hash_bytes((const unsigned char *) statement, (int) strlen(statement)) : 0;
}

dshash_table_handle
lbt_workercounts_create(dsa_area *area, int tranche)
{
	dshash_parameters params = lbt_dshash_parameters(sizeof(Key), sizeof(WorkerCounts), tranche);
	dshash_table *created = dshash_create(area, &params, NULL);
	dshash_table_handle handle = dshash_get_hash_table_handle(created);

	dshash_detach(created);
	return handle;
}

void
lbt_workercounts_attach(dsa_area *area, int tranche, dshash_table_handle handle)
{
	dshash_parameters params = lbt_dshash_parameters(sizeof(Key), sizeof(WorkerCounts), tranche);

	table = dshash_attach(area, &params, handle, NULL);
}

static Key
key_of(int leader, const char *statement, int node)
{
	return (Key) {.leader = leader,.statement = hash_text(statement),.node = node};
}

static void
hand_over(const Key *key, const uint64 *events)
{
	bool		found;
	WorkerCounts *counts = dshash_find_or_insert(table, key, &found);

	if (!found)
		memset(counts->events, 0, sizeof(counts->events));
	for (int i = 0; i < LBT_SCAN_EVENTS; i++)
		counts->events[i] += events[i];
	dshash_release_lock(table, counts);
}

void
lbt_workercounts_add(const char *statement, int node, const uint64 *events)
{
	PGPROC	   *leader = MyProc->lockGroupLeader;
	Key			key;

	if (table == NULL || leader == NULL)
		return;
	key = key_of(leader->pid, statement, node);
	LBT_GUARD_BEGIN();
	{
		hand_over(&key, events);
	}
	LBT_GUARD_END((void) 0);
}

static void
collect(const Key *key, uint64 *events)
{
	WorkerCounts *counts = dshash_find(table, key, false);

	if (counts == NULL)
		return;
	for (int i = 0; i < LBT_SCAN_EVENTS; i++)
		events[i] += counts->events[i];
	dshash_release_lock(table, counts);
}

void
lbt_workercounts_collect(const char *statement, int node, uint64 *events)
{
	Key			key = key_of(MyProcPid, statement, node);

	if (!may_have_some || table == NULL)
		return;
	LBT_GUARD_BEGIN();
	{
		collect(&key, events);
	}
	LBT_GUARD_END((void) 0);
}

static void
forget(bool all, uint32 statement)
{
	dshash_seq_status status;
	WorkerCounts *counts;

	dshash_seq_init(&status, table, true);
	while ((counts = dshash_seq_next(&status)) != NULL)
		if (counts->key.leader == MyProcPid && (all || counts->key.statement == statement))
			dshash_delete_current(&status);
	dshash_seq_term(&status);
}

static void
forget_guarded(bool all, uint32 statement)
{
	if (table == NULL)
		return;
	LBT_GUARD_BEGIN();
	{
		forget(all, statement);
	}
	LBT_GUARD_END((void) 0);
}

void
lbt_workercounts_forget(const char *statement)
{
	/* A first statement in its transaction has nothing to forget. */
	if (may_have_some)
		forget_guarded(false, hash_text(statement));
	may_have_some = true;
}

void
lbt_workercounts_forget_all(void)
{
	if (may_have_some)
		forget_guarded(true, 0);
	may_have_some = false;
}
