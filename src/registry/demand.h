/*
 * demand.h - demands for training, which backends raise and the background worker (train/worker.c) serves, and the
 * launcher that starts workers.
 *
 * Demands live in the index's registry entry: there is at most one for each index, and it stays until a
 * training has been published or the index is gone, whatever happens to the worker.
 */
#ifndef LBT_DEMAND_H
#define LBT_DEMAND_H

#include "postgres.h"

#include "postmaster/bgworker.h"
#include "registry/control.h"

/* What a backend's report led to. */
typedef enum LbtDemand
{
	LBT_DEMAND_NONE,
	LBT_DEMAND_RAISED,			/* a worker will see to it */
	LBT_DEMAND_UNSERVED			/* no worker can be started: train here, or do
								 * without */
} LbtDemand;

/*
 * Report an index's events, which have not been reported before, to the retrain policy (policy.h), mark the index as used,
 * and wake the launcher where a training is wanted.  Takes the entry's partition lock; the caller holds no lock.
 * Allocates nothing but the start of a launcher.
 */
extern LbtDemand lbt_demand_report(const LbtFile *file, const uint64 *events, int retrain_splits);

/*
 * Ask for a training of an index that may have no model yet, of this database.  anew: whatever became of earlier ones;
 * otherwise not before the pause after a failed one is over.  False when no worker can be had.  Raises no error; the
 * caller holds no lock.
 */
extern bool lbt_demand_raise(const LbtFile *file, Oid oid, bool anew);

/* Ask for a training if there has been none since this time.  Raises no error. */
extern void lbt_demand_renew(const LbtFile *file, Oid oid, TimestampTz since);

/* For the launcher: become the launcher (false: there is one), and cease to be it. */
extern bool lbt_launcher_enter(void);
extern void lbt_launcher_leave(void);

/* Wake the launcher, or start one; false when there is no slot for it or its workers. */
extern bool lbt_launcher_wake(void);

/* A worker says that it has connected; the number that have. */
static inline void
lbt_worker_connected(void)
{
	pg_atomic_fetch_add_u32(&lbt_control->workers_connected, 1);
	pg_atomic_write_u32(&lbt_control->told_no_worker, 0);
}

static inline uint32
lbt_workers_connected(void)
{
	return pg_atomic_read_u32(&lbt_control->workers_connected);
}

/* Other databases wait for their turn: said by the launcher, asked by workers, who then do not linger. */
static inline void
lbt_workers_give_way(bool waiting)
{
	pg_atomic_write_u32(&lbt_control->databases_wait, waiting);
}

static inline bool
lbt_worker_should_give_way(void)
{
	return pg_atomic_read_u32(&lbt_control->databases_wait) != 0;
}

/*
 * Start a background process of this name at a function of ours; notify_pid and handle as for the server's
 * background workers.  False when there is no slot, which the log says, once until a worker has connected.
 */
extern bool lbt_start_process(const char *name, const char *function, Datum arg, int notify_pid,
							  BackgroundWorkerHandle **handle);

/*
 * Databases with indexes to be trained now: their number, at most max, the rest another time.  *later:
 * there are others whose time comes soon.
 */
extern int	lbt_demand_databases(Oid *databases, int max, bool *later);

/*
 * For a worker: take the demand of one index of the database.  It is not given out again before
 * learnedbtree.naptime has passed.  False when there is nothing to do now.
 */
extern bool lbt_demand_take(Oid database, LbtFile *file, Oid *oid);

/*
 * What was taken could not be served: raise it again for a time from now (milliseconds), or, without
 * again, let nobody raise it before that time.
 */
extern void lbt_demand_defer(const LbtFile *file, int ms, bool again);

/* No worker can connect to this database: drop its demands, and let nobody raise them for a time. */
extern void lbt_demand_drop_database(Oid database, int ms);

#endif							/* LBT_DEMAND_H */
