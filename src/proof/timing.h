/*
 * timing.h - some lookups are timed, so that a model that is slower than the descent can be told (train/demand.c).
 *
 * Of the lookups that a backend makes in an index, all but a few only count down.  A window is some lookups that follow each
 * other, by turns timed
 *
 *     by the model      as they are made: key code, prediction, proof, and the descent where that fails
 *     by a descent      of nbtree's kind, made only to be timed, in front of the model's lookup, which is not timed then
 *
 * so that no key is timed after its leaf has been brought into the processor's caches, and answers and our own counts are
 * the same whether a lookup is timed or not (pages visited, as EXPLAIN (BUFFERS) has them, are a few more).  The first descents of a window are not timed: they bring back into the caches what the
 * model has made needless, inner pages above all.
 *
 * The keys' encoding, which a descent does without, happens when the scan begins, and belongs to the model's time.
 *
 * Not timed: probes of lists and keys of nested loops that look ahead, which are predicted together with others; inserts;
 * sessions that have turned a part of prediction off.  What had to read a block does not count, and what was interrupted
 * counts as a few lookups.
 */
#ifndef LBT_TIMING_H
#define LBT_TIMING_H

#include "proof/locate.h"

/* LbtTiming.key_ns: the keys' encoding was not timed. */
#define LBT_KEYS_UNTIMED (-1.0)

static inline double
lbt_ns_since(instr_time start)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	INSTR_TIME_SUBTRACT(now, start);
	return INSTR_TIME_GET_DOUBLE(now) * 1e9;
}

/* Will the next lookup be timed, if it can be? */
static inline bool
lbt_timing_is_next(const LbtIndex *index)
{
	return unlikely(index->timing.countdown <= 1) && !lbt_mailbox_is_full(&index->mailbox);
}

/* A lookup is about to be made: count it, and should lbt_timing_begin() be called? */
static inline bool
lbt_timing_is_due(LbtIndex *index)
{
	return unlikely(--index->timing.countdown <= 0);
}

/* A lookup is being timed, or one may be. */
static inline bool
lbt_timing_runs(const LbtIndex *index)
{
	return unlikely(index->timing.countdown == 0);
}

/* A scan has made its bounds: what this took, if that is known, and only their encoding is the model's. */
static inline void
lbt_timing_keys(LbtIndex *index, const void *scan, double ns)
{
	index->timing.scan = scan;
	index->timing.key_ns = index->keyspec.encoded ? ns : 0;
}

/*
 * Time a descent to the bound, or start the clock for the model's lookup, which lbt_timing_end() follows.  backward as for
 * lbt_descend(); scan as for lbt_timing_keys().  The caller holds no lock.
 */
extern void lbt_timing_begin(Relation rel, LbtIndex *index, const LbtBound *bound, bool backward, Snapshot snapshot,
							 const void *scan);
extern void lbt_timing_end(LbtIndex *index);

#endif							/* LBT_TIMING_H */
