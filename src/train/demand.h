/*
 * demand.h - when to train again, and by whom: the retrain policy, claims of
 * trainings, demands for them, and workers' places.  All of it is in the
 * index's entry, under its partition's lock; see registry/shmem.h.
 */
#ifndef LBT_DEMAND_H
#define LBT_DEMAND_H

#include "registry/models.h"

/* How a training that was claimed has ended. */
typedef enum LbtEnding
{
	LBT_ENDED,					/* published, or given up */
	LBT_ENDED_BY_ERROR,			/* tried again after a pause, which grows */
	LBT_ENDED_BY_DAMAGE			/* of the file: not tried again on use */
} LbtEnding;

/* Claim a file's training, to give back; false if a live backend has it. */
extern bool lbt_registry_claim(const LbtFile *file, Oid oid);
extern void lbt_registry_unclaim(const LbtFile *file, LbtEnding ending);

/* The same while handling an error that left no LWLock.  May raise another. */
extern void lbt_registry_unclaim_after_error(const LbtFile *file, LbtEnding ending);

/* An LbtSettle: settle what was counted before the outcome of a training. */
extern void lbt_policy_settle(LbtEntry *entry, LbtState state, const LbtTrained *trained);

/*
 * Report an index's events, which have not been reported before, to the
 * retrain policy, mark the index as used, and have a worker started where a
 * training is wanted.  True when none is available: train here, or do without.
 * May raise errors.  The index is told, as its model may be that of another's
 * file, which an extension has given to it.
 */
extern bool lbt_demand_report(const LbtFile *file, Oid oid, const uint64 *events,
							  int retrain_splits);

/*
 * Ask for a training of an index that may have no model yet.  It waits for the
 * pause after a failed training.  False when no worker is available.
 */
extern bool lbt_demand_raise(const LbtFile *file, Oid oid);

/*
 * For a worker: take the demand of one index of its database.  It is not given
 * out again before learnedbtree.naptime has passed, and a multiple of what the
 * training takes.  False when there is nothing to do now: in *next_in
 * milliseconds there will be; -1: not for a few seconds.
 */
extern bool lbt_demand_take(LbtFile *file, Oid *oid, int *next_in);

/* Raise a demand that was taken again, for ms from now.  May raise errors. */
extern void lbt_demand_defer(const LbtFile *file, int ms);

/*
 * Have a worker serve a database.  wake: one that is there already looks for
 * demands at once.  False when none can be started, or could connect.
 */
extern bool lbt_worker_start(Oid database, bool wake);

/* For a worker: enter its place (false: it has none), say connected, leave. */
extern bool lbt_worker_enter(Oid database);
extern void lbt_worker_connected(void);
extern void lbt_worker_leave(void);

#endif							/* LBT_DEMAND_H */
