/*
 * demand.h - when to train again, and by whom: reports of this backend's
 * counts, the retrain policy, demands for trainings, and workers.  Its state
 * is in the index's entry, under its partition's lock; see registry/shmem.h.
 */
#ifndef LBT_DEMAND_H
#define LBT_DEMAND_H

#include "registry/view.h"

/* In _PG_init: report before commits and at exit; see what is dropped. */
extern void lbt_report_init(void);

/* Forget the indexes of a database that was dropped. */
extern void lbt_forget_database(Oid database);

/*
 * Gets the tables with files of this transaction that a TRUNCATE tells of, if
 * anybody waits for its end; else NULL.  It may make the files anew in place,
 * so models of the tables' indexes have gone.  When it has ended, they are to
 * go again: triggers before it may have brought some back.
 */
extern List **lbt_truncated;
extern void lbt_forget_models(const List *tables);

/*
 * Have this process leave shared memory when it exits; at the latest from the
 * end of its first transaction on.  Not while a command has callbacks of its
 * own (PG_ENSURE_ERROR_CLEANUP, in which 19's REPACK builds indexes): the
 * server takes them back in reverse order, and fails the command otherwise.
 */
extern void lbt_expect_exit(void);

/* Report events of all indexes.  Without memory for some, they are lost. */
extern void lbt_report_all(void);

/*
 * The same if the last report is some time ago.  For the end of a statement in
 * a transaction block: a session may roll back all that it does.
 */
extern void lbt_report_if_due(void);

/*
 * Report those of one index, at once: within statements that take long.  The
 * caller holds no lock; what was read from shared memory before must be read
 * again.
 */
extern void lbt_report(LbtIndex *index);

/* A backend's failures, right-moves and splits until it does so. */
#define MISSES_BEFORE_REPORT 64

static inline void
lbt_report_misses(LbtIndex *index)
{
	if (unlikely(index->counts.misses >= MISSES_BEFORE_REPORT))
		lbt_report(index);
}

/*
 * Ask for a training of an index that may have no model yet.  It waits for the
 * pause after a failed training, and for a worker: false when none can be
 * started now, or ever (learnedbtree.autotrain is off).
 */
extern bool lbt_demand_raise(const LbtFile *file);

/*
 * For a worker: the oldest demand of its database.  It is not given out again
 * before learnedbtree.naptime has passed.  False when there is nothing to do
 * now: in *next_in milliseconds there will be; -1: not for a few seconds.
 */
extern bool lbt_demand_take(LbtFile *file, int *next_in);

/* For a connected worker: take its place (false: it has none), and leave. */
extern bool lbt_worker_enter(Oid database);
extern void lbt_worker_leave(void);

/* Shall it look which entries are gone?  Asks once. */
extern bool lbt_worker_sweeps(void);

#endif							/* LBT_DEMAND_H */
