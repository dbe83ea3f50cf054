/*
 * timing.c - timing some lookups; see timing.h.
 */
#include "proof/timing.h"

#include "executor/instrument.h"
#include "server/btree.h"

/* Lookups of a window that count, in samples of so many each, and those of all after which it is given up. */
#define WINDOW_LOOKUPS 32
#define SAMPLE_LOOKUPS 4
#define WINDOW_MAX (WARM_UP + 2 * WINDOW_LOOKUPS)

/*
 * Descents of a window before the first one that counts.  After few of them descents are found to take up to twice as long
 * as they do where all lookups descend.
 */
#define WARM_UP 256

/* After so many times the usual lookups comes the next window, if the model takes less than this share of the time. */
#define CLEAR_PERIODS 16
#define CLEAR_SHARE 0.67

/* Lookups after one that could not be timed. */
#define RETRY_LOOKUPS 64

/* A lookup counts as at most so many times a typical one, and so long: the rest was another process's time. */
#define TYPICAL_MAX 8
#define LONGEST_NS 100000.0

/* By how much each lookup changes what is typical: outliers change it no more than others, so it is about the median. */
#define TYPICAL_STEP 1.1

static inline int64
blocks_read(void)
{
	return pgBufferUsage.shared_blks_read + pgBufferUsage.local_blks_read;
}

static inline void
start_clock(LbtTiming *timing)
{
	timing->reads = blocks_read();
	INSTR_TIME_SET_CURRENT(timing->start);
}

/* The next window is of the other way. */
static void
end_window(LbtIndex *index)
{
	LbtTiming  *timing = &index->timing;
	const double *typical = timing->typical_ns;
	bool		clear = typical[LBT_BY_MODEL] < CLEAR_SHARE * typical[LBT_BY_DESCENT];

	/* Enough to report (train/train.h): the statement may be a long one. */
	index->counts.misses = PG_UINT16_MAX;
	timing->way = timing->way == LBT_BY_MODEL ? LBT_BY_DESCENT : LBT_BY_MODEL;
	timing->seen = timing->n = 0;
	timing->sum_ns = 0;
	timing->countdown = LBT_UNTIMED_LOOKUPS * (clear ? CLEAR_PERIODS : 1);
}

static void
add_lookup(LbtTiming *timing)
{
	LbtTimes   *times = &timing->times[timing->way];
	double	   *typical = &timing->typical_ns[timing->way];
	double		longest = TYPICAL_MAX * Max(timing->typical_ns[LBT_BY_MODEL], timing->typical_ns[LBT_BY_DESCENT]);
	double		ns = lbt_ns_since(timing->start) + timing->key_ns;

	if (blocks_read() != timing->reads)
		return;
	ns = Min(ns, longest > 0 && longest < LONGEST_NS ? longest : LONGEST_NS);
	if (*typical == 0)
		*typical = ns;
	else
		*typical *= ns > *typical ? TYPICAL_STEP : 1 / TYPICAL_STEP;
	timing->sum_ns += ns;
	if (++timing->n % SAMPLE_LOOKUPS != 0)
		return;
	ns = timing->sum_ns / SAMPLE_LOOKUPS;
	timing->sum_ns = 0;
	times->n++;
	times->sum += ns;
	times->squares += ns * ns;
}

/* Can this lookup be timed?  The keys of its scan may have been made before another scan's that was timed. */
static bool
can_time(const LbtIndex *index, const LbtBound *bound, const void *scan)
{
	return index->state == LBT_READY && bound->ncolumns > 0 && lbt_enable_leaf_cache && lbt_enable_buffer_hint &&
		index->timing.scan == scan && index->timing.key_ns != LBT_KEYS_UNTIMED;
}

void
lbt_timing_begin(Relation rel, LbtIndex *index, const LbtBound *bound, bool backward, Snapshot snapshot, const void *scan)
{
	LbtTiming  *timing = &index->timing;
	bool		possible = can_time(index, bound, scan);

	timing->scan = NULL;
	timing->running = false;
	if (timing->n == WINDOW_LOOKUPS || timing->seen == WINDOW_MAX)
	{
		end_window(index);
		return;
	}
	timing->countdown = possible ? 0 : RETRY_LOOKUPS;
	if (!possible)
		return;
	timing->seen++;
	timing->running = timing->way == LBT_BY_MODEL;
	if (!timing->running)
	{
		/* Reading the clock takes time, too: as often as for the model. */
		start_clock(timing);
		timing->key_ns = index->keyspec.encoded ? lbt_ns_since(timing->start) : 0;
		start_clock(timing);
		lbt_descend_plainly(rel, index, bound, backward, snapshot);
		if (timing->seen > WARM_UP)
			add_lookup(timing);
	}
	else
		start_clock(timing);
}

void
lbt_timing_end(LbtIndex *index)
{
	LbtTiming  *timing = &index->timing;

	/* It may have been found that there is no such model any more. */
	if (!timing->running || index->state != LBT_READY)
		return;
	timing->running = false;
	while (unlikely(lbt_debug_lookup_delay > 0) && lbt_ns_since(timing->start) < lbt_debug_lookup_delay * 1e3)
		;
	add_lookup(timing);
}
