/*
 * test_spline.c - the spline over every distribution and error: its bound, its knots, its slots.
 */
#include "contract.h"
#include "sample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const uint32_t errors[] = {1, 2, 4, 8, 32, 128};

#define NERRORS (sizeof(errors) / sizeof(errors[0]))

static void
check_codes(const uint64_t *codes, uint32_t nleaves, uint32_t max_error)
{
	LbtLeaf    *leaves = make_leaves(codes, nleaves);
	size_t		bytes;
	void	   *memory;
	LbtModel	model;

	check_spline(leaves, nleaves, max_error);
	memory = make_model(leaves, nleaves, max_error, &bytes);
	model = open_model(memory, bytes);
	check_slots(&model, nleaves);
	check_in_bounds(&model, nleaves);
	free(memory);
	free(leaves);
}

static void
keeps_contract(const void *arg)
{
	static const uint32_t sizes[] = {1, 2, 3, 10, 257, 10000};
	const Distribution *distribution = arg;

	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
		for (size_t e = 0; e < NERRORS; e++)
		{
			uint64_t   *codes = make_sample(distribution, s + 1, sizes[s], errors[e]);

			check_codes(codes, sizes[s], errors[e]);
			free(codes);
		}
}

static void
small_shapes(const void *arg)
{
	static const uint64_t shapes[][4] = {
		{0, 0, 0, 0},
		{UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX},
		{0, 0, UINT64_MAX, UINT64_MAX},
		{0, 1, 2, 3},
		{UINT64_MAX - 3, UINT64_MAX - 2, UINT64_MAX - 1, UINT64_MAX},
		{0, 1, UINT64_MAX - 1, UINT64_MAX},
		{0, 0, 0, 1},
		{0, 1, 1, 1},
		{0, UINT64_C(1) << 63, UINT64_C(1) << 63, UINT64_MAX},
		{UINT64_C(9007199254740991), UINT64_C(9007199254740992), UINT64_C(9007199254740993),
		UINT64_C(9007199254740994)}
	};

	(void) arg;
	for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++)
		for (uint32_t nleaves = 1; nleaves <= 4; nleaves++)
			for (uint32_t max_error = 0; max_error <= 3; max_error++)
			{
				check_codes(shapes[s], nleaves, max_error);
				check_codes(shapes[s] + 4 - nleaves, nleaves, max_error);
			}
}

static void
extreme_errors(const void *arg)
{
	static const uint32_t extremes[] = {0, UINT32_MAX};
	uint64_t   *codes = make_sample(&sample_lognormal, 3, 2000, 0);

	(void) arg;
	for (size_t e = 0; e < 2; e++)
		check_codes(codes, 2000, extremes[e]);
	free(codes);
}

static void
refuses_nothing(const void *arg)
{
	LbtLeaf    *leaves = test_alloc(0);
	LbtKnot    *knots = test_alloc(0);

	(void) arg;
	CHECK(lbt_spline_fit(leaves, 0, 4, knots, 2) == 0, "no leaves were fitted");
	free(leaves);
	free(knots);
}

static void
refuses_disorder(const void *arg)
{
	Rng			rng = {21};

	(void) arg;
	for (int round = 0; round < 500; round++)
	{
		uint32_t	nleaves = 2 + (uint32_t) rng_below(&rng, 300);
		uint32_t	at = 1 + (uint32_t) rng_below(&rng, nleaves - 1);
		uint64_t   *codes = test_alloc(nleaves * sizeof(uint64_t));
		LbtKnot    *knots = test_alloc(nleaves * sizeof(LbtKnot));
		LbtLeaf    *leaves;

		for (uint32_t i = 0; i < nleaves; i++)
			codes[i] = 1 + (rng_any_width(&rng) >> 1);
		sort_codes(codes, nleaves);
		codes[at] = round % 2 ? codes[at - 1] - 1 : rng_below(&rng, codes[at - 1]);
		leaves = make_leaves(codes, nleaves);
		CHECK(lbt_spline_fit(leaves, nleaves, 1 + (uint32_t) round % 9, knots, nleaves) == 0,
			  "codes out of order at leaf %u of %u were fitted", at, nleaves);
		free(leaves);
		free(knots);
		free(codes);
	}
}

/* With room for one knot less than needed, the fit is refused and says why; with just enough it is the same. */
static void
refuses_lack_of_room(const void *arg)
{
	Rng			rng = {23};

	(void) arg;
	for (int round = 0; round < 500; round++)
	{
		uint32_t	nleaves = 3 + (uint32_t) rng_below(&rng, 300);
		uint64_t   *codes = test_alloc(nleaves * sizeof(uint64_t));
		LbtKnot    *knots = test_alloc(nleaves * sizeof(LbtKnot));
		LbtKnot    *exact;
		LbtLeaf    *leaves;
		uint32_t	nknots;

		for (uint32_t i = 0; i < nleaves; i++)
			codes[i] = rng_any_width(&rng);
		sort_codes(codes, nleaves);
		leaves = make_leaves(codes, nleaves);
		nknots = lbt_spline_fit(leaves, nleaves, 1, knots, nleaves);
		CHECK(nknots > 0, "refused");
		exact = test_alloc(nknots * sizeof(LbtKnot));
		CHECK(lbt_spline_fit(leaves, nleaves, 1, exact, nknots) == nknots &&
			  memcmp(exact, knots, nknots * sizeof(LbtKnot)) == 0, "%u knots did not fit", nknots);
		if (nknots > 2)
			CHECK(lbt_spline_fit(leaves, nleaves, 1, exact, nknots - 1) > nknots - 1,
				  "%u knots fitted into %u", nknots, nknots - 1);
		free(exact);
		free(leaves);
		free(knots);
		free(codes);
	}
}

static uint32_t
count_knots(const Distribution *distribution, uint32_t nleaves, uint32_t max_error)
{
	uint64_t   *codes = make_sample(distribution, 31, nleaves, max_error);
	LbtLeaf    *leaves = make_leaves(codes, nleaves);
	LbtKnot    *knots = test_alloc(nleaves * sizeof(LbtKnot));
	uint32_t	nknots = lbt_spline_fit(leaves, nleaves, max_error, knots, nleaves);

	CHECK(nknots > 0, "refused");
	free(codes);
	free(leaves);
	free(knots);
	return nknots;
}

/* A fit that kept the bound with a knot for every leaf would be useless. */
static void
few_knots(const void *arg)
{
	uint32_t	nknots;

	(void) arg;
	nknots = count_knots(&sample_sequential, 20000, 1);
	CHECK(nknots == 2, "%u knots for a straight line", nknots);
	nknots = count_knots(&sample_all_equal, 20000, 1);
	CHECK(nknots == 1, "%u knots for one code", nknots);
	nknots = count_knots(&sample_both_ends, 20000, 1);
	CHECK(nknots <= 4, "%u knots for two straight lines", nknots);
	nknots = count_knots(&sample_outlier, 20000, 1);
	CHECK(nknots == 3, "%u knots for one line and one point", nknots);
	nknots = count_knots(&sample_uniform, 20000, 128);
	CHECK(nknots <= 10, "%u knots for uniform keys", nknots);
	nknots = count_knots(&sample_lognormal, 20000, 32);
	CHECK(nknots <= 150, "%u knots for lognormal keys", nknots);
}

/* Nothing that the knots can hold leads outside of them, or to no slot. */
static void
garbage_knots(const void *arg)
{
	static const double slopes[] = {
		0.0, -0.0, 1.0, -1.0, 1e308, -1e308, 5e-324, INFINITY, -INFINITY, NAN
	};
	Rng			rng = {22};

	(void) arg;
	for (int round = 0; round < 5000; round++)
	{
		uint32_t	nknots = 1 + (uint32_t) rng_below(&rng, 40);
		uint32_t	nleaves = round % 7 ? 1 + (uint32_t) rng_any_width(&rng) / 2 : UINT32_MAX;
		LbtKnot    *knots = test_alloc(nknots * sizeof(LbtKnot));

		for (uint32_t i = 0; i < nknots; i++)
		{
			uint64_t	bits = rng_next(&rng);

			knots[i].code = rng_any_width(&rng);
			knots[i].slot = (uint32_t) rng_any_width(&rng);
			knots[i].slope = slopes[rng_below(&rng, 10)];
			if (rng_below(&rng, 2))
				memcpy(&knots[i].slope, &bits, sizeof(bits));
		}
		for (int i = 0; i < 40; i++)
		{
			uint64_t	code = i < 2 ? (uint64_t) i * UINT64_MAX : rng_any_width(&rng);
			uint32_t	slot = lbt_spline_predict(knots, nknots, nleaves, code);

			CHECK(slot < nleaves, "slot %u of %u leaves", slot, nleaves);
		}
		free(knots);
	}
}

/* A million leaves, where slots no longer fit the small tests' floats. */
static void
many_leaves(const void *arg)
{
	const uint32_t nleaves = 1000000;
	uint64_t   *codes = make_sample(&sample_full_range, 5, nleaves, 4);

	(void) arg;
	check_codes(codes, nleaves, 4);
	free(codes);
}

#define CONTRACT(shape, described) \
	{"spline and slots keep their contract: " described, keeps_contract, &sample_##shape}

const Test	spline_tests[] = {
	{"no leaves are refused", refuses_nothing, NULL},
	{"codes out of order are refused", refuses_disorder, NULL},
	{"knots that do not fit are refused", refuses_lack_of_room, NULL},
	{"one to four leaves, with extreme and adjacent codes", small_shapes, NULL},
	{"errors of 0 and of all leaves", extreme_errors, NULL},
	CONTRACT(uniform, "uniform keys"),
	CONTRACT(full_range, "uniform over all codes"),
	CONTRACT(sequential, "sequential keys"),
	CONTRACT(gaps, "dense keys with gaps"),
	CONTRACT(exponential, "exponential keys"),
	CONTRACT(lognormal, "lognormal keys"),
	CONTRACT(powers, "powers of a constant"),
	CONTRACT(heavy_steps, "heavy-tailed steps"),
	CONTRACT(floats, "codes of normal floats"),
	CONTRACT(address_blocks, "clustered address blocks"),
	CONTRACT(commit_times, "times with runs of equal keys"),
	CONTRACT(long_runs, "long runs of equal codes"),
	CONTRACT(all_equal, "all codes equal"),
	CONTRACT(two_values, "only 0 and the largest code"),
	CONTRACT(both_ends, "both ends of the code space"),
	CONTRACT(outlier, "one outlier far below"),
	CONTRACT(zigzag, "zigzag at the error bound"),
	CONTRACT(staircase, "staircase at the error bound"),
	{"a million leaves keep the contract", many_leaves, NULL},
	{"smooth shapes need few knots", few_knots, NULL},
	{"a prediction stays in bounds whatever the knots hold", garbage_knots, NULL},
	{NULL, NULL, NULL}
};
