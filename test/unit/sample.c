/*
 * sample.c - distributions of key codes; see sample.h.
 */
#include "sample.h"
#include "keycode.h"

#include <math.h>
#include <stdlib.h>

#define DEFINE_SAMPLE(name) \
	static void fill_##name(Rng *rng, uint64_t *codes, uint32_t n, uint32_t max_error); \
	const Distribution sample_##name = {#name, fill_##name}; \
	static void fill_##name(Rng *rng, uint64_t *codes, uint32_t n, uint32_t max_error)

#define UNUSED(argument) ((void) (argument))

static double
normal(Rng *rng)
{
	double		radius = sqrt(-2 * log(rng_unit(rng)));

	return radius * cos(6.283185307179586 * rng_unit(rng));
}

/* Doubles beyond the range of a code take its end. */
static uint64_t
to_code(double value)
{
	if (!(value > 0))
		return 0;
	return value >= 18446744073709549568.0 ? UINT64_MAX : (uint64_t) value;
}

DEFINE_SAMPLE(uniform)
{
	UNUSED(max_error);
	for (uint32_t i = 0; i < n; i++)
		codes[i] = lbt_order_signed((int64_t) rng_below(rng, UINT64_C(10000000000)));
}

DEFINE_SAMPLE(full_range)
{
	UNUSED(max_error);
	for (uint32_t i = 0; i < n; i++)
		codes[i] = rng_next(rng);
}

DEFINE_SAMPLE(sequential)
{
	UNUSED(rng);
	UNUSED(max_error);
	for (uint32_t i = 0; i < n; i++)
		codes[i] = lbt_order_signed((int64_t) i * 366);
}

/* Dense runs with now and then a gap, of any size. */
DEFINE_SAMPLE(gaps)
{
	uint64_t	code = lbt_order_signed(-5);

	UNUSED(max_error);
	for (uint32_t i = 0; i < n; i++)
	{
		codes[i] = code++;
		if (rng_below(rng, 200) == 0)
			code += rng_any_width(rng) >> 24;
	}
}

DEFINE_SAMPLE(exponential)
{
	UNUSED(max_error);
	for (uint32_t i = 0; i < n; i++)
		codes[i] = to_code(-log(rng_unit(rng)) * 1e15);
}

DEFINE_SAMPLE(lognormal)
{
	UNUSED(max_error);
	for (uint32_t i = 0; i < n; i++)
		codes[i] = to_code(exp(2 * normal(rng)) * 1e9);
}

/* Growing by a constant factor from 1 to the top: ties below, huge gaps above. */
DEFINE_SAMPLE(powers)
{
	UNUSED(rng);
	UNUSED(max_error);
	for (uint32_t i = 0; i < n; i++)
		codes[i] = to_code(exp2(64.0 * i / n));
}

/* A walk whose steps have no mean. */
DEFINE_SAMPLE(heavy_steps)
{
	double		code = 1e6;

	UNUSED(max_error);
	for (uint32_t i = 0; i < n; i++)
		codes[i] = to_code(code += 1 / pow(rng_unit(rng), 1.5));
}

DEFINE_SAMPLE(floats)
{
	UNUSED(max_error);
	for (uint32_t i = 0; i < n; i++)
		codes[i] = lbt_order_float(normal(rng) * 1e3);
}

/* Starts of address blocks of 2^8 to 2^24 addresses, neighbours in clusters, as registries hand them
 * out. */
DEFINE_SAMPLE(address_blocks)
{
	uint64_t	code = lbt_order_signed(1 << 24);
	uint64_t	width = 16;

	UNUSED(max_error);
	for (uint32_t i = 0; i < n; i++)
	{
		codes[i] = code;
		if (rng_below(rng, 40) == 0)
			width = 8 + rng_below(rng, 17);
		code += UINT64_C(1) << (width - rng_below(rng, 4) * (width > 12));
		if (rng_below(rng, 500) == 0)
			code += UINT64_C(1) << (16 + rng_below(rng, 12));
	}
}

/* Seconds at which people commit: bursts of equal times, quiet nights, busier years. */
DEFINE_SAMPLE(commit_times)
{
	uint64_t	now = lbt_order_signed(1112911993);

	UNUSED(max_error);
	for (uint32_t i = 0; i < n;)
	{
		uint32_t	run = rng_below(rng, 3) ? 1 : (uint32_t) (1 + rng_below(rng, 1 + i % 60));

		while (run-- > 0 && i < n)
			codes[i++] = now;
		now += 1 + to_code(-log(rng_unit(rng)) * 40000.0 / (1 + i / 1000));
		if (rng_below(rng, 30) == 0)
			now += 8 * 3600;
	}
}

DEFINE_SAMPLE(long_runs)
{
	uint64_t	code = 7;

	UNUSED(max_error);
	for (uint32_t i = 0; i < n; i++)
	{
		codes[i] = code;
		if (rng_below(rng, 700) == 0)
			code += 1 + rng_below(rng, 3);
	}
}

DEFINE_SAMPLE(all_equal)
{
	uint64_t	code = rng_any_width(rng);

	UNUSED(max_error);
	for (uint32_t i = 0; i < n; i++)
		codes[i] = code;
}

DEFINE_SAMPLE(two_values)
{
	UNUSED(rng);
	UNUSED(max_error);
	for (uint32_t i = 0; i < n; i++)
		codes[i] = i < n / 3 ? 0 : UINT64_MAX;
}

/* 0, 1, 2, ... and ..., UINT64_MAX - 1, UINT64_MAX, nothing between. */
DEFINE_SAMPLE(both_ends)
{
	UNUSED(rng);
	UNUSED(max_error);
	for (uint32_t i = 0; i < n; i++)
		codes[i] = i < n / 2 ? i : UINT64_MAX - (n - 1 - i);
}

/* One code at the bottom, all others next to each other at the top: slopes of 2^-64. */
DEFINE_SAMPLE(outlier)
{
	UNUSED(rng);
	UNUSED(max_error);
	for (uint32_t i = 0; i < n; i++)
		codes[i] = i == 0 ? 0 : UINT64_MAX - (n - 1 - i);
}

/* A triangle wave around a straight line, as high as the error allows: just within, or just not. */
DEFINE_SAMPLE(zigzag)
{
	const double step = 1000;
	double		height = (double) max_error + (double) rng_below(rng, 3) / 2 - 0.5;
	double		offset = 0;
	double		slope = 0.9;

	for (uint32_t i = 0; i < n; i++)
	{
		codes[i] = to_code(step * (i + height + 1 + offset));
		offset += slope;
		if (fabs(offset) >= height)
		{
			offset = offset > 0 ? height : -height;
			slope = -slope;
		}
	}
}

/* Runs of equal codes about twice as long as the error allows, at even distances. */
DEFINE_SAMPLE(staircase)
{
	uint64_t	code = 0;

	for (uint32_t i = 0; i < n;)
	{
		uint64_t	run = 2 * max_error + rng_below(rng, 3);

		while (run-- > 0 && i < n)
			codes[i++] = code;
		if (i < n)
			codes[i++] = code + 1;
		code += 1000 * (max_error + 1);
	}
}

static int
compare_codes(const void *a, const void *b)
{
	uint64_t	x = *(const uint64_t *) a;
	uint64_t	y = *(const uint64_t *) b;

	return (x > y) - (x < y);
}

void
sort_codes(uint64_t *codes, size_t n)
{
	qsort(codes, n, sizeof(uint64_t), compare_codes);
}

uint64_t *
make_sample(const Distribution *distribution, uint64_t seed, uint32_t n, uint32_t max_error)
{
	uint64_t   *codes = test_alloc(n * sizeof(uint64_t));
	Rng			rng = {seed};

	distribution->fill(&rng, codes, n, max_error);
	sort_codes(codes, n);
	return codes;
}
