/*
 * test_leafcache.c - searching the leaf cache from any guess, and placing a code within a leaf.
 */
#include "contract.h"
#include "sample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void
search_from(const LbtLeaf *leaves, uint32_t nleaves, uint32_t guess, uint64_t code)
{
	for (int or_equal = 0; or_equal < 2; or_equal++)
	{
		uint32_t	expected = 0;
		uint32_t	slot = lbt_leaf_search(leaves, nleaves, guess, code, or_equal);

		for (uint32_t i = 0; i < nleaves; i++)
			if (leaves[i].min_code < code || (or_equal && leaves[i].min_code == code))
				expected = i;
		CHECK(slot == expected, "%u leaves, guess %u, code %llu%s: slot %u, expected %u", nleaves,
			  guess, (unsigned long long) code, or_equal ? " past equal" : "", slot, expected);
	}
}

/* Every guess, every code there is and its neighbours, for short caches full of ties and extremes. */
static void
any_guess(const void *arg)
{
	Rng			rng = {11};

	(void) arg;
	for (int round = 0; round < 120; round++)
	{
		uint32_t	nleaves = 1 + (uint32_t) rng_below(&rng, 40);
		uint64_t	base = rng_below(&rng, 3) == 0 ? UINT64_MAX - 30 : rng_below(&rng, 5);
		uint64_t	codes[40];
		LbtLeaf    *leaves;

		for (uint32_t i = 0; i < nleaves; i++)
			codes[i] = base + rng_below(&rng, 31);
		if (rng_below(&rng, 2))
			codes[0] = 0;
		sort_codes(codes, nleaves);
		leaves = make_leaves(codes, nleaves);
		for (uint32_t guess = 0; guess < nleaves + 3; guess++)
			for (uint64_t code = base - 2; code != base + 34; code++)
				search_from(leaves, nleaves, guess, code);
		search_from(leaves, nleaves, UINT32_MAX, base + 7);
		search_from(leaves, nleaves, nleaves / 2, UINT64_MAX);
		free(leaves);
	}
}

/* Keys at a cut separator begin right of it, if they have all of its columns. */
static void
first_leaf(const void *arg)
{
	static const uint64_t codes[] = {0, 10, 20, 20, 30};
	LbtLeaf    *leaves = make_leaves(codes, 5);

	(void) arg;
	leaves[1].cut = 1;
	leaves[2].cut = 2;
	leaves[2].recent_buffer = (1u << 30) - 1;
	CHECK(leaves[2].cut == 2, "buffer %u has changed the cut", leaves[2].recent_buffer);
	CHECK(lbt_leaf_of_first(leaves, 5, 0, 10, 1) == 1, "at a cut of one column");
	CHECK(lbt_leaf_of_first(leaves, 5, 0, 9, 1) == 0, "before a cut");
	CHECK(lbt_leaf_of_first(leaves, 5, 1, 11, 1) == 1, "after a cut");
	CHECK(lbt_leaf_of_first(leaves, 5, 1, 20, 1) == 1, "at a cut of more columns");
	CHECK(lbt_leaf_of_first(leaves, 5, 1, 20, 3) == 2, "at a cut of fewer columns");
	CHECK(lbt_leaf_of_first(leaves, 5, 3, 30, 3) == 3, "at a separator that is not cut");
	CHECK(lbt_leaf_of_first(leaves, 5, 4, 30, 3) == 4, "at the last leaf");
	free(leaves);
}

/* Leaves in no order, as a reader of changing memory may see them. */
static void
any_contents(const void *arg)
{
	Rng			rng = {12};

	(void) arg;
	for (int round = 0; round < 2000; round++)
	{
		uint32_t	nleaves = 1 + (uint32_t) rng_below(&rng, 100);
		LbtLeaf    *leaves = test_alloc(nleaves * sizeof(LbtLeaf));

		for (uint32_t i = 0; i < nleaves; i++)
			leaves[i].min_code = rng_any_width(&rng);
		for (int i = 0; i < 50; i++)
		{
			uint64_t	code = rng_any_width(&rng);
			uint32_t	slot = lbt_leaf_search(leaves, nleaves, (uint32_t) rng_next(&rng), code,
											   i & 1);
			double		fraction;

			CHECK(slot < nleaves, "slot %u of %u leaves", slot, nleaves);
			fraction = lbt_leaf_fraction(leaves, nleaves, slot, code);
			CHECK(fraction >= 0 && fraction <= 1, "fraction %g", fraction);
		}
		free(leaves);
	}
}

static void
place_in_leaf(const void *arg)
{
	static const uint64_t codes[] = {0, 100, 200, 200, 201, UINT64_MAX - 1, UINT64_MAX};
	static const struct
	{
		uint32_t	nleaves;
		uint32_t	slot;
		uint64_t	code;
		double		fraction;
		const char *what;
	}			cases[] = {
		{7, 0, 50, 0.5, "the first leaf's start is not known"},
		{7, 6, UINT64_MAX, 0.5, "the last leaf's end is not known"},
		{1, 0, 50, 0.5, "the only leaf's ends are not known"},
		{7, 2, 200, 0.5, "a leaf of one code has no places"},
		{7, 1, 100, 0, "the leaf's first code"},
		{7, 1, 99, 0, "below the leaf"},
		{7, 1, 125, 0.25, "a quarter into the leaf"},
		{7, 1, 200, 1, "the leaf's end"},
		{7, 1, UINT64_MAX, 1, "above the leaf"},
		{7, 3, 200, 0, "a leaf of two codes"},
		{7, 4, UINT64_MAX / 2, 0.5, "the middle of nearly all codes"},
		{7, 4, UINT64_MAX - 2, 1, "the end of nearly all codes"}
	};
	LbtLeaf    *leaves = make_leaves(codes, 7);

	(void) arg;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		double		fraction = lbt_leaf_fraction(leaves, cases[i].nleaves, cases[i].slot, cases[i].code);

		CHECK(fraction <= 1 && fabs(fraction - cases[i].fraction) < 1e-9,
			  "%s: fraction %g", cases[i].what, fraction);
	}
	free(leaves);
}

static void
fraction_grows(const void *arg)
{
	Rng			rng = {13};

	(void) arg;
	for (int round = 0; round < 3000; round++)
	{
		uint64_t	codes[4] = {0, rng_any_width(&rng), rng_any_width(&rng), UINT64_MAX};
		uint64_t	probes[32];
		LbtLeaf    *leaves;
		double		previous = 0;

		sort_codes(codes, 4);
		leaves = make_leaves(codes, 4);
		for (int i = 0; i < 32; i++)
			probes[i] = i % 2 ? rng_any_width(&rng) :
				codes[1] + (codes[2] - codes[1]) / 32 * (uint64_t) i;
		sort_codes(probes, 32);
		for (int i = 0; i < 32; i++)
		{
			double		fraction = lbt_leaf_fraction(leaves, 4, 1, probes[i]);

			CHECK(fraction >= previous && fraction <= 1, "fraction %g after %g", fraction,
				  previous);
			previous = fraction;
		}
		free(leaves);
	}
}

const Test	leafcache_tests[] = {
	{"leaf search finds the slot from any guess", any_guess, NULL},
	{"leaf search stays in bounds whatever the leaves hold", any_contents, NULL},
	{"the leaf that begins with a key", first_leaf, NULL},
	{"a code's place within its leaf", place_in_leaf, NULL},
	{"a code's place grows with the code, from 0 to 1", fraction_grows, NULL},
	{NULL, NULL, NULL}
};
