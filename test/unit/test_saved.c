/*
 * test_saved.c - saved models: what comes back is near what was given, and bytes that nobody wrote are harmless.
 */
#include "contract.h"
#include "contract_saved.h"
#include "sample.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a metapage has room for. */
#define ROOM 8000

/* How many keys a leaf of random keys has; their number per unit of key space varies that much less. */
#define PER_LEAF 366

static uint64_t
uniform_quantile(double p)
{
	return lbt_order_signed((int64_t) (p * 1e10));
}

static uint64_t
full_range_quantile(double p)
{
	return (uint64_t) (p * 18446744073709549568.0);
}

/* Heavy tails on both sides of a peak: densities of all magnitudes. */
static uint64_t
loglogistic_quantile(double p)
{
	return lbt_order_signed((int64_t) (1e9 * pow(p / (1 - p), 1.2)));
}

/* Leaf boundaries of random keys whose distribution has this quantile function. */
static LbtLeaf *
random_leaves(uint64_t (*quantile) (double), uint64_t seed, uint32_t nleaves)
{
	Rng			rng = {seed};
	double	   *places = test_alloc((nleaves + (size_t) 1) * sizeof(double));
	LbtLeaf    *leaves = test_alloc(nleaves * sizeof(LbtLeaf));

	places[0] = 0;
	for (uint32_t i = 0; i < nleaves; i++)
	{
		double		normal = -6;

		for (int k = 0; k < 12; k++)
			normal += rng_unit(&rng);
		places[i + 1] = places[i] + PER_LEAF + sqrt(PER_LEAF) * normal;
	}
	for (uint32_t i = 0; i < nleaves; i++)
		leaves[i] = (LbtLeaf) {.min_code = i == 0 ? 0 : quantile(places[i] / places[nleaves])};
	free(places);
	return leaves;
}

/* Blocks as a build gives them: inner pages between, one after each run of leaves, and now and then two. */
static void
number_blocks(LbtLeaf *leaves, uint32_t nleaves)
{
	const uint32_t run = 285;
	uint32_t	block = 1;

	for (uint32_t i = 0; i < nleaves; i++)
	{
		leaves[i].block = block++;
		if (i % run == run - 1)
			block += 1 + (i / run % run == run - 1);
	}
}

/* Blocks in no order at all. */
static void
scatter_blocks(LbtLeaf *leaves, uint32_t nleaves, uint64_t seed)
{
	Rng			rng = {seed};

	for (uint32_t i = 0; i < nleaves; i++)
		leaves[i].block = i + 1;
	for (uint32_t i = nleaves; i > 1; i--)
	{
		uint32_t	other = (uint32_t) rng_below(&rng, i);
		uint32_t	block = leaves[i - 1].block;

		leaves[i - 1].block = leaves[other].block;
		leaves[other].block = block;
	}
}

static LbtLeaf *
sequence_leaves(uint32_t nleaves)
{
	LbtLeaf    *leaves = test_alloc(nleaves * sizeof(LbtLeaf));

	for (uint32_t i = 0; i < nleaves; i++)
		leaves[i] = (LbtLeaf) {.min_code = i == 0 ? 0 : lbt_order_signed((int64_t) i * PER_LEAF - 1000000)};
	number_blocks(leaves, nleaves);
	return leaves;
}

/* ---- how near it is ---- */

typedef struct Expected
{
	const char *name;
	uint64_t	(*quantile) (double);
	uint32_t	nleaves;
	double		exact;			/* at least so many lookups find the right leaf */
	double		near;			/* or one from which it is reached in three steps to the right */
} Expected;

/* Looks up random keys: all leaves are as likely. */
static void
near_enough(const void *arg)
{
	enum
	{
		LOOKUPS = 50000
	};
	const Expected *e = arg;
	LbtLeaf    *leaves = random_leaves(e->quantile, 21, e->nleaves);
	LbtLeaf    *saved;
	size_t		len;
	Rng			rng = {5};
	double		exact = 0;
	double		near = 0;

	number_blocks(leaves, e->nleaves);
	saved = save(&one_column, leaves, e->nleaves, ROOM, &len);
	CHECK(saved != NULL, "it does not fit");
	for (int i = 0; i < LOOKUPS; i++)
	{
		uint32_t	right = (uint32_t) rng_below(&rng, e->nleaves);
		uint64_t	low = leaves[right].min_code;
		uint64_t	high = right + 1 < e->nleaves ? leaves[right + 1].min_code : low + 1000;
		uint64_t	code = high > low ? low + 1 + rng_below(&rng, high - low) : low;
		uint32_t	found = lbt_leaf_search(saved, e->nleaves, right, code, false);

		right = lbt_leaf_search(leaves, e->nleaves, right, code, false);
		exact += found == right;
		near += found <= right && right - found <= 3;
	}
	printf("# %s: %zu bytes, right leaf %.2f %%, or up to 3 right %.2f %%\n", e->name, len, 100 * exact / LOOKUPS,
		   100 * near / LOOKUPS);
	CHECK(exact / LOOKUPS >= e->exact && near / LOOKUPS >= e->near, "less than expected");
	free(saved);
	free(leaves);
}

/* Sequences come back as they were, with blocks that are right or a little left, however many leaves. */
static void
sequences(const void *arg)
{
	static const uint32_t counts[] = {1, 2, 3, 300, 100000, 1000000};

	(void) arg;
	for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++)
	{
		LbtLeaf    *leaves = sequence_leaves(counts[k]);
		size_t		len;
		LbtLeaf    *saved = save(&one_column, leaves, counts[k], ROOM, &len);
		uint32_t	blocks = 0;

		CHECK(saved != NULL, "%u leaves do not fit", counts[k]);
		for (uint32_t i = 0; i < counts[k]; i++)
		{
			CHECK(saved[i].min_code + 1 >= leaves[i].min_code && saved[i].min_code <= leaves[i].min_code,
				  "leaf %u of %u differs", i, counts[k]);
			blocks += leaves[i].block - saved[i].block <= 1;
		}
		CHECK(blocks >= 0.97 * counts[k], "only %u blocks of %u leaves are right", blocks, counts[k]);
		free(saved);
		free(leaves);
	}
}

static const Distribution *const all_samples[] = {
	&sample_uniform, &sample_full_range, &sample_sequential, &sample_gaps, &sample_exponential,
	&sample_lognormal, &sample_powers, &sample_heavy_steps, &sample_floats, &sample_address_blocks,
	&sample_commit_times, &sample_long_runs, &sample_all_equal, &sample_two_values, &sample_both_ends,
	&sample_outlier, &sample_zigzag, &sample_staircase
};

/* All shapes: too many equal codes are not saved; all others of so few leaves are, in blocks of no order, too, and come back as they were. */
static void
any_shape(const void *arg)
{
	static const uint32_t counts[] = {1, 2, 3, 10, 100, 400};

	(void) arg;
	for (size_t sample = 0; sample < sizeof(all_samples) / sizeof(all_samples[0]); sample++)
		for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++)
		{
			uint32_t	nleaves = counts[k];
			uint64_t   *codes = make_sample(all_samples[sample], 22 + sample, nleaves, 2);
			LbtLeaf    *leaves;
			LbtLeaf    *saved;
			size_t		len;

			codes[0] = 0;
			leaves = make_leaves(codes, nleaves);
			scatter_blocks(leaves, nleaves, k);
			saved = save(&one_column, leaves, nleaves, ROOM, &len);
			CHECK((saved != NULL) == (nleaves < 3 || count_ties(leaves + 1, nleaves - 1) <= nleaves / 2),
				  "%s: %u leaves", all_samples[sample]->name, nleaves);
			for (uint32_t i = 1; saved != NULL && i < nleaves; i++)
				CHECK(saved[i].min_code == leaves[i].min_code && saved[i].block == leaves[i].block,
					  "%s: leaf %u of %u differs", all_samples[sample]->name, i, nleaves);
			free(saved);
			free(leaves);
			free(codes);
		}
}

/* A key code of n columns, every other one of byte strings that have a prefix in common. */
static void
learn_columns(int n, LbtKeyCode *code)
{
	static const char *const strings[] = {"user1", "user12", "user7", "user90"};
	LbtColumnOrder order[LBT_CODE_COLUMNS] = {{0}};
	LbtKeyLearner learner;

	for (int i = 0; i < n; i++)
		order[i] = (LbtColumnOrder) {i & 1, i >> 1 & 1, i >> 2 & 1};
	memset(code, 0, sizeof(*code));
	lbt_keycode_begin(&learner, n, order);
	for (int k = 0; k < 4; k++)
	{
		LbtKeyValue values[LBT_CODE_COLUMNS];

		for (int i = 0; i < n; i++)
			values[i] = (LbtKeyValue) {.ordered = (uint64_t) (3 * k + i),
				.length = (uint32_t) strlen(strings[k]),.bytes = (const uint8_t *) strings[k]};
		lbt_keycode_observe(&learner, values, n);
	}
	lbt_keycode_finish(&learner, code);
}

static void
many_columns(const void *arg)
{
	LbtLeaf    *leaves = sequence_leaves(500);

	(void) arg;
	for (int n = 1; n <= LBT_CODE_COLUMNS; n++)
	{
		LbtKeyCode	code;
		size_t		len;
		LbtLeaf    *saved;

		learn_columns(n, &code);
		saved = save(&code, leaves, 500, ROOM, &len);
		CHECK(saved != NULL, "%d columns", n);
		free(saved);
	}
	free(leaves);
}

/* ---- none ---- */

static void
not_saved(const void *arg)
{
	uint32_t	nleaves = 10000;
	LbtLeaf    *leaves = sequence_leaves(nleaves);
	uint8_t    *bytes;
	size_t		len;

	(void) arg;
	leaves[7].min_code = leaves[6].min_code - 1;
	CHECK(encode(&one_column, leaves, nleaves, ROOM, &len) == NULL, "codes in no order");
	free(leaves);
	leaves = sequence_leaves(nleaves);
	for (uint32_t i = 1; i < nleaves; i++)
		leaves[i].min_code = leaves[1].min_code + i / 3;
	CHECK(encode(&one_column, leaves, nleaves, ROOM, &len) == NULL, "too many equal codes");
	for (uint32_t i = 1; i < nleaves; i++)
		leaves[i].min_code = i % 200 == 0 ? UINT64_C(1) << 63 | (uint64_t) i << 40 : leaves[i - 1].min_code + PER_LEAF;
	bytes = encode(&one_column, leaves, nleaves, ROOM, &len);
	CHECK(bytes != NULL, "some gaps");
	free(bytes);
	free(leaves);
	leaves = sequence_leaves(nleaves);
	scatter_blocks(leaves, nleaves, 29);
	CHECK(encode(&one_column, leaves, nleaves, ROOM, &len) == NULL, "scattered blocks");
	free(leaves);
}

/* Few knots of a few leaves in blocks of no order: at most half come back with a distant block, else nothing is saved. */
static void
few_knots(const void *arg)
{
	const size_t code_bytes = lbt_keycode_bytes(&one_column);
	int			reached[2] = {0, 0};

	(void) arg;
	for (uint32_t nleaves = 3; nleaves <= 12; nleaves++)
		for (uint32_t nknots = 2; nknots < nleaves; nknots++)
			for (uint64_t seed = 0; seed < 200; seed++)
			{
				LbtLeaf    *leaves = sequence_leaves(nleaves);
				LbtLeaf    *saved;
				size_t		len;

				scatter_blocks(leaves, nleaves, seed);
				saved = save(&one_column, leaves, nleaves, code_bytes + nknots * sizeof(LbtLeaf), &len);
				reached[saved != NULL]++;
				free(saved);
				free(leaves);
			}
	CHECK(reached[0] > 500 && reached[1] > 500, "%d not saved, %d saved", reached[0], reached[1]);
}

/* Any room: nothing is written past it, and what fits less fits more. */
static void
any_room(const void *arg)
{
	static const uint32_t counts[] = {1, 3, 400, 6000};

	(void) arg;
	for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++)
	{
		LbtLeaf    *leaves = random_leaves(uniform_quantile, 30, counts[k]);
		size_t		fits_in = 0;

		number_blocks(leaves, counts[k]);
		for (size_t room = 0; room <= ROOM; room += room < 300 ? 1 : 79)
		{
			size_t		len;
			LbtLeaf    *saved = save(&one_column, leaves, counts[k], room, &len);

			CHECK(saved != NULL || fits_in == 0, "it fitted %zu bytes, but not %zu", fits_in, room);
			if (saved != NULL && fits_in == 0)
				fits_in = room;
			free(saved);
		}
		CHECK(fits_in > 20 && fits_in < 4000, "%u leaves fit %zu bytes", counts[k], fits_in);
		free(leaves);
	}
}

/* ---- bytes that nobody wrote ---- */

/* One that is cut is none, or sound. */
static void
cut(const void *arg)
{
	LbtLeaf    *leaves = random_leaves(full_range_quantile, 31, 300);
	size_t		len;
	uint8_t    *bytes;
	LbtKeyCode	code;

	(void) arg;
	number_blocks(leaves, 300);
	bytes = encode(&one_column, leaves, 300, ROOM, &len);
	for (size_t n = 0; n < len; n++)
		free(decode(bytes, n, &code, 300));
	CHECK(decode(bytes, 100, &code, 300) == NULL, "a hundred bytes are enough");
	CHECK(decode(bytes, len, &code, 299) == NULL, "fewer leaves");
	free(bytes);
	free(leaves);
}

static void
forged(const void *arg)
{
	Rng			rng = {32};
	int			reached[2] = {0};
	LbtLeaf    *leaves = random_leaves(full_range_quantile, 31, 300);
	size_t		len;
	uint8_t    *bytes;

	(void) arg;
	number_blocks(leaves, 300);
	bytes = encode(&one_column, leaves, 300, ROOM, &len);
	for (int round = 0; round < 8000; round++)
	{
		uint8_t    *copy = test_copy(bytes, len);
		LbtKeyCode	code;
		LbtLeaf    *decoded;

		/* The half of the changes go to what is in front of the codes. */
		for (uint64_t n = 1 + rng_below(&rng, 4); n > 0; n--)
			copy[rng_below(&rng, n & 1 ? offsetof(LbtKeyCode, digit[1]) + 20 : len)] = (uint8_t) rng_next(&rng);
		decoded = decode(copy, len, &code, 300);
		reached[decoded != NULL]++;
		free(decoded);
		free(copy);
	}
	CHECK(reached[0] > 1000 && reached[1] > 1000, "%d refused, %d sound", reached[0], reached[1]);
	free(bytes);
	free(leaves);
}

#define NEAR(what, ...) {what, near_enough, &(const Expected) {what, __VA_ARGS__}}

const Test	saved_tests[] = {
	NEAR("saved model of 2,500 leaves, uniform keys", uniform_quantile, 2500, 0.95, 0.97),
	NEAR("saved model of 27,000 leaves, uniform keys", uniform_quantile, 27000, 0.85, 0.92),
	NEAR("saved model of 273,225 leaves, uniform keys", uniform_quantile, 273225, 0.6, 0.8),
	NEAR("saved model of 273,225 leaves, full range of codes", full_range_quantile, 273225, 0.6, 0.8),
	NEAR("saved model of 273,225 leaves, heavy tails", loglogistic_quantile, 273225, 0.35, 0.85),
	{"a saved sequence comes back as it was", sequences, NULL},
	{"a saved model of any shape is sound", any_shape, NULL},
	{"a saved model keeps a key code of many columns", many_columns, NULL},
	{"what is not worth saving is not saved", not_saved, NULL},
	{"a saved model of few knots is near, or there is none", few_knots, NULL},
	{"a saved model fits the room, whatever it is", any_room, NULL},
	{"a saved model that is cut short is none, or sound", cut, NULL},
	{"a forged saved model is refused or harmless", forged, NULL},
	{NULL, NULL, NULL}
};
