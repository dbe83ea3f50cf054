/*
 * pace.c - trials of looking ahead; see pace.h.
 */
#include "ahead/pace.h"

#include <string.h>

/* Rows between two trials, at first and at most. */
#define INTERVAL_MIN 2048
#define INTERVAL_MAX (INTERVAL_MIN * 256)
#define INTERVAL_GROWTH 4

void
lbt_pace_init(LbtPace *pace, bool off, uint32_t rows)
{
	memset(pace, 0, sizeof(*pace));
	pace->off = off;
	pace->countdown = rows;
}

void
lbt_pace_rows(LbtPace *pace, uint32_t rows)
{
	if (pace->trying)
		return;
	pace->countdown -= pace->countdown < rows ? pace->countdown : rows;
	if (pace->countdown == 0)
	{
		pace->trying = true;
		pace->n[LBT_PLAIN] = pace->n[LBT_AHEAD] = 0;
	}
}

LbtPaceWay
lbt_pace_way(const LbtPace *pace)
{
	if (pace->trying)
		return pace->n[LBT_AHEAD] <= pace->n[LBT_PLAIN] ? LBT_AHEAD : LBT_PLAIN;
	return pace->off ? LBT_PLAIN : LBT_AHEAD;
}

static double
median(double *ns)
{
	for (int i = 1; i < LBT_PACE_SAMPLES; i++)
		for (int j = i; j > 0 && ns[j] < ns[j - 1]; j--)
		{
			double		swapped = ns[j];

			ns[j] = ns[j - 1];
			ns[j - 1] = swapped;
		}
	return ns[LBT_PACE_SAMPLES / 2];
}

static void
settle(LbtPace *pace, bool off)
{
	pace->trying = false;
	if (off != pace->off || pace->interval == 0)
		pace->interval = INTERVAL_MIN;
	else if (pace->interval < INTERVAL_MAX)
		pace->interval *= INTERVAL_GROWTH;
	pace->off = off;
	pace->countdown = pace->interval;
}

void
lbt_pace_sample(LbtPace *pace, LbtPaceWay way, double ns)
{
	if (!pace->trying)
		return;
	if (pace->n[way] < LBT_PACE_SAMPLES)
		pace->ns[way][pace->n[way]++] = ns;
	if (pace->n[LBT_PLAIN] == LBT_PACE_SAMPLES && pace->n[LBT_AHEAD] == LBT_PACE_SAMPLES)
		settle(pace, median(pace->ns[LBT_AHEAD]) >= median(pace->ns[LBT_PLAIN]));
}

void
lbt_pace_missed(LbtPace *pace)
{
	if (pace->trying || pace->off)
		settle(pace, false);
}

void
lbt_pace_unused(LbtPace *pace)
{
	settle(pace, true);
}
