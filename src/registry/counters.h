/*
 * counters.h - per-index counts of what lookups did, added up in shared
 * memory.
 *
 * Lookups count in LbtIndex, private to the backend, and its events only grow:
 * a scan takes the difference of two moments for its own, whatever is reported
 * in between (am/scan.c).  train/report.c adds them to the totals.
 */
#ifndef LBT_COUNTERS_H
#define LBT_COUNTERS_H

#include "postgres.h"

#include "registry/view.h"

static inline void
lbt_count_many(LbtIndex *index, LbtEvent event, uint64 n)
{
	index->counts.events[event] += n;
	if (unlikely(!index->counts.dirty) && index->shareable)
		lbt_mark_dirty(index);
}

static inline void
lbt_count(LbtIndex *index, LbtEvent event)
{
	lbt_count_many(index, event, 1);
}

/* Count a lookup: LBT_EV_VERIFIED, moved leaves away, or why it descended. */
static inline void
lbt_count_lookup(LbtIndex *index, LbtEvent event, int moved)
{
	index->counts.events[LBT_EV_LOOKUP]++;
	lbt_count(index, event);
	if (event == LBT_EV_NO_MODEL || (event == LBT_EV_VERIFIED && moved == 0))
		return;
	if (event == LBT_EV_VERIFIED)
		lbt_count(index, LBT_EV_MOVED_RIGHT);
	index->counts.misses++;
}

/* Events that are not in the shared totals yet. */
static inline uint64
lbt_count_unflushed(const LbtIndex *index, LbtEvent event)
{
	return index->counts.events[event] - index->counts.reported[event];
}

/* Add events of an index to its totals.  May raise errors. */
extern void lbt_stats_add(LbtIndex *index, const uint64 *events);

/* Totals of an index of this database; zeroes if none, or none reachable. */
extern void lbt_stats_get(Oid oid, LbtStats *out);

/* Zero an index's totals, or the database's.  May raise errors. */
extern void lbt_stats_reset(Oid oid);

/* Forget the totals of an index that is gone. */
extern void lbt_stats_forget(Oid database, Oid oid);

/* All totals (LbtStats), palloc'd.  May raise errors. */
extern List *lbt_stats_copy(void);

#endif							/* LBT_COUNTERS_H */
