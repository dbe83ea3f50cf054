/*
 * test_pace.c - when trials of looking ahead take place, and what they decide.
 */
#include "ahead/pace.h"

#include "test.h"

#define FIRST 128

/* Run a trial that has begun: rows take so long by either way, but for this many samples of each that took a thousand times as long. */
static void
run_trial(LbtPace *pace, double plain_ns, double ahead_ns, int disturbed)
{
	CHECK(pace->trying, "no trial");
	for (int i = 0; i < LBT_PACE_SAMPLES; i++)
	{
		double		factor = i < disturbed ? 1000 : 1;

		CHECK(lbt_pace_way(pace) == LBT_AHEAD, "sample %d: a batch comes first", i);
		lbt_pace_sample(pace, LBT_AHEAD, ahead_ns * factor);
		CHECK(lbt_pace_way(pace) == LBT_PLAIN, "sample %d: then plain rows", i);
		lbt_pace_sample(pace, LBT_PLAIN, plain_ns * factor);
	}
	CHECK(!pace->trying, "the trial goes on after %d samples", LBT_PACE_SAMPLES);
}

/* Hand on rows until the next trial, a batch at a time; returns their number. */
static uint32_t
until_trial(LbtPace *pace)
{
	uint32_t	rows = 0;

	for (; !pace->trying; rows += 64)
	{
		CHECK(rows < UINT32_C(100000000), "no further trial");
		lbt_pace_rows(pace, 64);
	}
	return rows;
}

static void
slower_turns_off(const void *arg)
{
	LbtPace		pace;

	(void) arg;
	lbt_pace_init(&pace, false, FIRST);
	CHECK(lbt_pace_way(&pace) == LBT_AHEAD, "it begins with looking ahead");
	CHECK(until_trial(&pace) == FIRST, "the first trial");
	run_trial(&pace, 100, 101, 0);
	CHECK(lbt_pace_way(&pace) == LBT_PLAIN, "slower, and still on");
	(void) until_trial(&pace);
	run_trial(&pace, 100, 99, 0);
	CHECK(lbt_pace_way(&pace) == LBT_AHEAD, "faster, and still off");
	(void) until_trial(&pace);
	run_trial(&pace, 100, 100, 0);
	CHECK(lbt_pace_way(&pace) == LBT_PLAIN, "no faster, and still on");
}

static void
outliers_do_not_decide(const void *arg)
{
	(void) arg;
	for (int disturbed = 0; disturbed <= LBT_PACE_SAMPLES / 2; disturbed++)
	{
		LbtPace		pace;

		lbt_pace_init(&pace, false, FIRST);
		(void) until_trial(&pace);
		run_trial(&pace, 1, 200, disturbed);
		CHECK(lbt_pace_way(&pace) == LBT_PLAIN, "%d outliers keep it on", disturbed);
		(void) until_trial(&pace);
		run_trial(&pace, 200, 1, disturbed);
		CHECK(lbt_pace_way(&pace) == LBT_AHEAD, "%d outliers turn it off", disturbed);
	}
}

static void
same_verdicts_are_asked_for_less_often(const void *arg)
{
	LbtPace		pace;
	uint32_t	before = 0;
	uint32_t	rows = 0;

	(void) arg;
	lbt_pace_init(&pace, false, FIRST);
	(void) until_trial(&pace);
	for (int i = 0; i < 12; i++)
	{
		run_trial(&pace, 100, 200, 0);
		rows = until_trial(&pace);
		CHECK(rows >= before, "after %u rows, then after %u", before, rows);
		CHECK(rows <= 4 * before || i == 0, "after %u rows, then after %u", before, rows);
		before = rows;
	}
	CHECK(rows > 100000 && rows <= 1 << 20, "after %u rows in the end", rows);
	run_trial(&pace, 200, 100, 0);
	CHECK(until_trial(&pace) < 5000, "another verdict is not tried again soon");
}

static void
missing_blocks_turn_on(const void *arg)
{
	LbtPace		pace;

	(void) arg;
	lbt_pace_init(&pace, true, UINT32_MAX);
	lbt_pace_rows(&pace, 1000000);
	CHECK(lbt_pace_way(&pace) == LBT_PLAIN, "off at first");
	lbt_pace_missed(&pace);
	CHECK(lbt_pace_way(&pace) == LBT_AHEAD && !pace.trying, "blocks are missing");
	(void) until_trial(&pace);
	lbt_pace_sample(&pace, LBT_AHEAD, 100);
	lbt_pace_missed(&pace);
	CHECK(lbt_pace_way(&pace) == LBT_AHEAD && !pace.trying, "blocks are missing in a trial");
	(void) until_trial(&pace);
	run_trial(&pace, 50, 60, 0);	/* of its own samples alone */
	CHECK(lbt_pace_way(&pace) == LBT_PLAIN, "the trial after that");
}

static void
unused_predictions_turn_off(const void *arg)
{
	LbtPace		pace;
	uint32_t	first;

	(void) arg;
	lbt_pace_init(&pace, false, FIRST);
	lbt_pace_unused(&pace);
	CHECK(lbt_pace_way(&pace) == LBT_PLAIN && !pace.trying, "still on");
	first = until_trial(&pace);
	lbt_pace_sample(&pace, LBT_AHEAD, 1);
	lbt_pace_unused(&pace);
	CHECK(lbt_pace_way(&pace) == LBT_PLAIN && !pace.trying, "the trial goes on");
	CHECK(until_trial(&pace) > first, "the next trial is no further away");
	run_trial(&pace, 200, 100, 0);
	CHECK(lbt_pace_way(&pace) == LBT_AHEAD, "used again, and still off");
}

static void
late_samples_are_dropped(const void *arg)
{
	LbtPace		pace;

	(void) arg;
	lbt_pace_init(&pace, false, FIRST);
	lbt_pace_sample(&pace, LBT_AHEAD, 1e9);
	lbt_pace_rows(&pace, UINT32_MAX);
	for (int i = 0; i < 3 * LBT_PACE_SAMPLES; i++)
		lbt_pace_sample(&pace, LBT_AHEAD, 1);
	CHECK(pace.trying && lbt_pace_way(&pace) == LBT_PLAIN, "samples of one way alone end no trial");
	for (int i = 0; i < LBT_PACE_SAMPLES; i++)
		lbt_pace_sample(&pace, LBT_PLAIN, 2);
	CHECK(!pace.trying && lbt_pace_way(&pace) == LBT_AHEAD, "the samples of the trial decide");
}

const Test	pace_tests[] = {
	{"pace: slower than row by row turns off", slower_turns_off, NULL},
	{"pace: outliers do not decide", outliers_do_not_decide, NULL},
	{"pace: the same verdicts are asked for less often", same_verdicts_are_asked_for_less_often, NULL},
	{"pace: missing blocks turn on", missing_blocks_turn_on, NULL},
	{"pace: predictions that are not used turn off", unused_predictions_turn_off, NULL},
	{"pace: samples outside of a trial are dropped", late_samples_are_dropped, NULL},
	{NULL, NULL, NULL}
};
