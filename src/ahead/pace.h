/*
 * pace.h - does looking ahead pay?  The clock tells, within the statement.
 *
 * If the inner side is in the processor's caches, the outer rows come in its
 * order, or most time goes elsewhere, looking ahead costs more than it brings.
 * So now and then a trial times rows both ways, in turn.  It compares medians,
 * so that a few disturbed samples do not decide.  While trials find the same,
 * they become rarer:
 *
 *     on   --- rows, looked ahead for ---  trial  --- rows (4 times as many)
 *                                       a p a p a p a p   a: batch, p: plain
 *     off  --- plain rows ---------------  trial  --- rows ...
 *
 * Two things need no clock: blocks that are missing, and rows that the inner
 * side has from elsewhere (Memoize).
 *
 * Times are nanoseconds for an outer row, from one row asked for to the next,
 * without what the outer side takes to make it.
 */
#ifndef LBT_PACE_H
#define LBT_PACE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum LbtPaceWay
{
	LBT_PLAIN,					/* row by row */
	LBT_AHEAD,
	LBT_PACE_WAYS
} LbtPaceWay;

#define LBT_PACE_SAMPLES 5

typedef struct LbtPace
{
	bool		off;			/* the last trial was for going row by row */
	bool		trying;			/* a trial is on */
	uint32_t	countdown;		/* rows until the next one */
	uint32_t	interval;		/* what it was set to */
	int			n[LBT_PACE_WAYS];	/* samples of this trial */
	double		ns[LBT_PACE_WAYS][LBT_PACE_SAMPLES];
} LbtPace;

/* Begin, on or off; so many rows before the first trial. */
extern void lbt_pace_init(LbtPace *pace, bool off, uint32_t rows);

/* So many rows were handed on: a trial begins when it is due. */
extern void lbt_pace_rows(LbtPace *pace, uint32_t rows);

/* The way of the next rows. */
extern LbtPaceWay lbt_pace_way(const LbtPace *pace);

/* Add a sample of a trial; the last one ends it. */
extern void lbt_pace_sample(LbtPace *pace, LbtPaceWay way, double ns);

/* Blocks are missing, so looking ahead pays: ends a trial. */
extern void lbt_pace_missed(LbtPace *pace);

/* Most rows were not looked up at all, so it does not. */
extern void lbt_pace_unused(LbtPace *pace);

#endif							/* LBT_PACE_H */
