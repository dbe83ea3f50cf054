/*
 * counters.h - what lookups did, per index: counted in the backend, added up in shared memory.
 */
#ifndef LBT_COUNTERS_H
#define LBT_COUNTERS_H

#include "postgres.h"

#include "registry/view.h"

static inline void
lbt_count_many(LbtIndex *index, LbtEvent event, uint64 n)
{
	index->events[event] += n;
	if (unlikely(!index->dirty) && index->shareable)
		lbt_mark_dirty(index);
}

static inline void
lbt_count(LbtIndex *index, LbtEvent event)
{
	lbt_count_many(index, event, 1);
}

/* What became of a lookup: LBT_EV_VERIFIED, moved leaves away from the predicted one, or the reason of its descent. */
static inline void
lbt_count_lookup(LbtIndex *index, LbtEvent event, int moved)
{
	index->events[LBT_EV_LOOKUP]++;
	lbt_count(index, event);
	if (event == LBT_EV_NO_MODEL || (event == LBT_EV_VERIFIED && moved == 0))
		return;
	if (event == LBT_EV_VERIFIED)
		lbt_count(index, LBT_EV_MOVED_RIGHT);
	index->misses++;
}

/* Events that are not in the shared totals yet. */
static inline uint64
lbt_count_unflushed(const LbtIndex *index, LbtEvent event)
{
	return index->events[event] - index->flushed[event];
}

/* Add this backend's events to the shared totals.  What there is no memory for is not counted. */
extern void lbt_counters_flush(void);

/*
 * As lbt_counters_flush(), for one index and at once: within statements that take long.  The caller holds
 * no lock; what was read from shared memory before must be read again.  True when a training is wanted for which no
 * worker can be had.
 */
extern bool lbt_counters_flush_index(LbtIndex *index);

/* As lbt_counters_flush(), before the end of a transaction, but not more often than needed. */
extern void lbt_counters_before_commit(void);

/* Copy out the totals of an index of this database: zeroes when there are none, or none that can be reached. */
extern void lbt_stats_get(Oid oid, LbtStats *out);

/* Set the totals of an index of this database, or (InvalidOid) of all, to zero, and remember when.  May raise errors. */
extern void lbt_stats_reset(Oid oid);

/* Forget the totals of an index that is gone, or (InvalidOid) of a whole database.  Not after the end of a transaction. */
extern void lbt_stats_forget(Oid database, Oid oid);

/* All totals there are, palloc'd; returns how many.  May raise errors. */
extern uint32 lbt_stats_copy(LbtStats **copy);

#endif							/* LBT_COUNTERS_H */
