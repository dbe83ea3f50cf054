/*
 * contract_spline.c - the promises of the spline, the leaf cache and the model; see contract.h.
 */
#include "contract.h"
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDING 1e-6L			/* leaves; what the fit's floating point may be off by */

LbtLeaf *
make_leaves(const uint64_t *codes, uint32_t nleaves)
{
	LbtLeaf    *leaves = test_alloc(nleaves * sizeof(LbtLeaf));

	for (uint32_t i = 0; i < nleaves; i++)
		leaves[i] = (LbtLeaf) {.min_code = codes[i], .block = i + 1};
	return leaves;
}

/* The fitted knots in memory of exactly their size; the caller frees them. */
static LbtKnot *
fit_knots(const LbtLeaf *leaves, uint32_t nleaves, uint32_t max_error, uint32_t *nknots)
{
	LbtKnot    *room = test_alloc(nleaves * sizeof(LbtKnot));
	LbtKnot    *knots;

	*nknots = lbt_spline_fit(leaves, nleaves, max_error, room, nleaves);
	CHECK(*nknots >= 1 && *nknots <= nleaves, "%u knots for %u leaves in order", *nknots, nleaves);
	knots = test_copy(room, *nknots * sizeof(LbtKnot));
	free(room);
	return knots;
}

void *
make_model(const LbtLeaf *leaves, uint32_t nleaves, uint32_t max_error, size_t *bytes)
{
	LbtModelHeader header = {.nleaves = nleaves};
	LbtKnot    *knots = fit_knots(leaves, nleaves, max_error, &header.nknots);
	LbtKeyLearner learner;
	void	   *memory;

	lbt_keycode_begin(&learner, 1, (LbtColumnOrder[]) {{.nulls_first = 0}});
	lbt_keycode_finish(&learner, &header.code);
	*bytes = lbt_model_bytes(nleaves, header.nknots, 0);
	memory = test_alloc(*bytes);
	memset(memory, 0xa5, *bytes);
	lbt_model_assemble(memory, &header, knots, leaves, NULL);
	free(knots);
	return memory;
}

LbtModel
open_model(void *memory, size_t bytes)
{
	LbtModel	model;
	LbtKeyCode	code;

	CHECK(lbt_model_open(memory, bytes, &model, &code), "a model of %zu bytes was refused", bytes);
	model.code = &((const LbtModelHeader *) memory)->code;
	CHECK(memcmp(&code, model.code, sizeof(code)) == 0, "the key code differs");
	return model;
}

/* Where the line between two leaves is at the code of a third. */
static long double
line_at(const LbtLeaf *leaves, uint32_t from, uint32_t to, uint32_t at)
{
	long double dx = (long double) (leaves[to].min_code - leaves[from].min_code);
	long double x = (long double) (leaves[at].min_code - leaves[from].min_code);

	return (long double) from + (long double) (to - from) * (x / dx);
}

/* The largest distance, in leaves, of the points between two leaves from the line through these. */
static long double
line_error(const LbtLeaf *leaves, uint32_t from, uint32_t to)
{
	long double worst = 0;

	for (uint32_t i = from + 1; i < to; i++)
	{
		long double error;

		if (leaves[i].min_code == leaves[i - 1].min_code)
			continue;
		error = fabsl(line_at(leaves, from, to, i) - (long double) i);
		if (error > worst)
			worst = error;
	}
	return worst;
}

/* The first slot above this one that has another code; nleaves when there is none. */
static uint32_t
next_distinct(const LbtLeaf *leaves, uint32_t nleaves, uint32_t slot)
{
	uint64_t	code = leaves[slot].min_code;

	while (slot < nleaves && leaves[slot].min_code == code)
		slot++;
	return slot;
}

/* Knots are first leaves of their codes, from the first leaf to the last code; no segment leaves the
 * error, and none but the last could have been drawn to one more point. */
static void
check_knots(const LbtLeaf *leaves, uint32_t nleaves, uint32_t max_error, const LbtKnot *knots,
			uint32_t nknots)
{
	CHECK(knots[0].slot == 0, "the first knot is slot %u", knots[0].slot);
	CHECK(knots[nknots - 1].code == leaves[nleaves - 1].min_code, "the last code is not a knot");
	for (uint32_t k = 0; k < nknots; k++)
	{
		uint32_t	slot = knots[k].slot;
		uint32_t	to,
					beyond;

		CHECK(slot < nleaves && knots[k].code == leaves[slot].min_code,
			  "knot %u is no data point", k);
		CHECK(slot == 0 || leaves[slot - 1].min_code < knots[k].code,
			  "knot %u is not the first leaf of its code", k);
		CHECK(knots[k].unused == 0, "knot %u holds something unused", k);
		if (k + 1 == nknots)
			break;
		to = knots[k + 1].slot;
		CHECK(knots[k].code < knots[k + 1].code && slot < to, "knots %u and next out of order", k);
		CHECK(line_error(leaves, slot, to) <= (long double) max_error + ROUNDING,
			  "the line from slot %u to %u is off by %.9Lf leaves, allowed %u", slot, to,
			  line_error(leaves, slot, to), max_error);
		beyond = next_distinct(leaves, nleaves, to);
		if (beyond < nleaves)
			CHECK(line_error(leaves, slot, beyond) >= (long double) max_error - ROUNDING,
				  "the segment from slot %u could reach beyond %u", slot, to);
	}
}

/* Codes between two leaves' codes are predicted between their predictions. */
static void
check_between(const LbtKnot *knots, uint32_t nknots, uint32_t nleaves, uint64_t low, uint64_t high)
{
	uint64_t	codes[] = {
		low, low + 1, low + (high - low) / 3, low + (high - low) / 2, high - 1, high
	};
	uint32_t	previous = lbt_spline_predict(knots, nknots, nleaves, low);
	uint64_t	previous_code = low;

	for (size_t i = 1; i < sizeof(codes) / sizeof(codes[0]); i++)
	{
		uint32_t	predicted;

		if (codes[i] <= previous_code || codes[i] > high)
			continue;			/* close neighbours have no third between them */
		predicted = lbt_spline_predict(knots, nknots, nleaves, codes[i]);
		CHECK(predicted >= previous, "prediction falls from %u to %u at code %llu", previous,
			  predicted, (unsigned long long) codes[i]);
		previous = predicted;
		previous_code = codes[i];
	}
}

void
check_spline(const LbtLeaf *leaves, uint32_t nleaves, uint32_t max_error)
{
	uint32_t	nknots;
	LbtKnot    *knots = fit_knots(leaves, nleaves, max_error, &nknots);

	check_knots(leaves, nleaves, max_error, knots, nknots);
	for (uint32_t i = 0; i < nleaves; i = next_distinct(leaves, nleaves, i))
	{
		double		predicted = lbt_spline_predict(knots, nknots, nleaves, leaves[i].min_code);

		/* A line within max_error of a slot can round down to one leaf more. */
		CHECK(fabs(predicted - (double) i) <= (double) max_error + 1,
			  "slot %u is predicted %.0f, allowed error %u", i, predicted, max_error);
		if (i > 0)
			check_between(knots, nknots, nleaves, leaves[i - 1].min_code, leaves[i].min_code);
	}
	CHECK(lbt_spline_predict(knots, nknots, nleaves, 0) == 0, "code 0 is not in slot 0");
	check_between(knots, nknots, nleaves, 0, leaves[0].min_code);
	check_between(knots, nknots, nleaves, leaves[nleaves - 1].min_code, UINT64_MAX);
	free(knots);
}

uint32_t
count_ties(const LbtLeaf *leaves, uint32_t nleaves)
{
	uint32_t	ties = 0;

	for (uint32_t i = 1; i < nleaves; i++)
		ties += leaves[i].min_code == leaves[i - 1].min_code;
	return ties;
}

/* How many leaves have a min_code below the code, or, with or_equal, not above it. */
static uint32_t
count_below(const LbtLeaf *leaves, uint32_t nleaves, uint64_t code, bool or_equal)
{
	uint32_t	count = 0;
	uint32_t	end = nleaves;

	if (nleaves <= 64)			/* the plainest answer, where it is affordable */
	{
		for (uint32_t i = 0; i < nleaves; i++)
			count += leaves[i].min_code < code || (or_equal && leaves[i].min_code == code);
		return count;
	}
	while (count < end)
	{
		uint32_t	middle = count + (end - count) / 2;

		if (leaves[middle].min_code < code || (or_equal && leaves[middle].min_code == code))
			count = middle + 1;
		else
			end = middle;
	}
	return count;
}

static void
check_slot(const LbtModel *model, uint64_t code)
{
	for (int or_equal = 0; or_equal < 2; or_equal++)
	{
		uint32_t	count = count_below(model->leaves, model->nleaves, code, or_equal);
		uint32_t	expected = count > 0 ? count - 1 : 0;
		uint32_t	slot = lbt_model_slot(model, code, or_equal);

		CHECK(slot == expected, "code %llu%s is in slot %u, found %u", (unsigned long long) code,
			  or_equal ? " past equal" : "", expected, slot);
	}
}

void
check_slots(const LbtModel *model, uint64_t seed)
{
	Rng			rng = {seed};

	for (uint32_t i = 0; i < model->nleaves; i++)
	{
		uint64_t	code = model->leaves[i].min_code;
		uint64_t	next = i + 1 < model->nleaves ? model->leaves[i + 1].min_code : UINT64_MAX;

		check_slot(model, code);
		check_slot(model, code - 1);	/* wraps at both ends: just other codes */
		check_slot(model, code + 1);
		check_slot(model, code + (next - code) / 2);
	}
	check_slot(model, 0);
	check_slot(model, 1);
	check_slot(model, UINT64_MAX - 1);
	check_slot(model, UINT64_MAX);
	for (int i = 0; i < 100; i++)
		check_slot(model, rng_any_width(&rng));
}

void
check_in_bounds(const LbtModel *model, uint64_t seed)
{
	Rng			rng = {seed};

	for (int i = 0; i < 64; i++)
	{
		uint64_t	code = i == 0 ? 0 : i == 1 ? UINT64_MAX : rng_any_width(&rng);
		uint32_t	guess;
		uint32_t	slot;
		double		fraction;

		if (i % 4 == 3)			/* codes found in the memory reach more of the paths */
			code = model->leaves[rng_below(&rng, model->nleaves)].min_code;
		else if (i % 4 == 2)
			code = model->knots[rng_below(&rng, model->nknots)].code + 1;
		guess = lbt_spline_predict(model->knots, model->nknots, model->nleaves, code);
		CHECK(guess < model->nleaves, "prediction %u of %u leaves", guess, model->nleaves);
		slot = lbt_model_slot(model, code, i & 1);
		CHECK(slot < model->nleaves, "slot %u of %u leaves", slot, model->nleaves);
		fraction = lbt_leaf_fraction(model->leaves, model->nleaves, slot, code);
		CHECK(fraction >= 0 && fraction <= 1, "fraction %g", fraction);
	}
}
