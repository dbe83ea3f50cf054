/*
 * test_image.c - images of models: what comes back is near what was given, as near as it has to be.
 */
#define _POSIX_C_SOURCE 200809L

#include "contract.h"
#include "contract_image.h"
#include "sample.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static uint64_t
sequential_quantile(double p)
{
	return lbt_order_signed((int64_t) (p * 1e7) * PER_LEAF);
}

/* After the build, this part of the leaves has split, some more than once: every right half is at the
 * end of the file, in the order of the splits.  The result replaces the leaves. */
static LbtLeaf *
split_leaves(LbtLeaf *leaves, uint32_t *nleaves, double part)
{
	Rng			rng = {77};
	uint32_t	nsplits = (uint32_t) (*nleaves * part);
	uint32_t	nnew = *nleaves + nsplits;
	LbtLeaf    *new_blocks = test_alloc(nsplits * sizeof(LbtLeaf));
	LbtLeaf    *result = test_alloc(nnew * sizeof(LbtLeaf));
	uint32_t   *halves = test_alloc(*nleaves * sizeof(uint32_t));
	uint32_t	n = 0;
	uint32_t	split = 0;

	scatter_blocks(new_blocks, nsplits, 78);
	memset(halves, 0, *nleaves * sizeof(uint32_t));
	for (uint32_t i = 0; i < nsplits; i++)
		halves[rng_below(&rng, *nleaves)]++;
	for (uint32_t i = 0; i < *nleaves; i++)
	{
		uint64_t	width = i + 1 < *nleaves ? leaves[i + 1].min_code - leaves[i].min_code : 0;

		result[n++] = leaves[i];
		for (uint32_t k = 1; k <= halves[i]; k++)
		{
			result[n] = leaves[i];
			result[n].min_code += width / (halves[i] + 1) * k;
			result[n++].block = leaves[*nleaves - 1].block + new_blocks[split++].block;
		}
	}
	CHECK(n == nnew && split == nsplits, "%u leaves instead of %u", n, nnew);
	free(new_blocks);
	free(halves);
	free(leaves);
	*nleaves = n;
	return result;
}

/* ---- how good an image is ---- */

typedef struct Quality
{
	double		exact;			/* parts of the lookups: the leaf found is right */
	double		near;			/* the right one is it, or one of the next three */
} Quality;

/* Looks up random keys: all leaves are as likely. */
static Quality
measure(const LbtLeaf *leaves, uint32_t nleaves, const Image *image)
{
	enum
	{
		LOOKUPS = 50000
	};
	Rng			rng = {5};
	uint32_t	exact = 0;
	uint32_t	near = 0;
	uint32_t	last_block = 0;
	uint32_t   *slots;

	for (uint32_t i = 0; i < nleaves; i++)
		last_block = leaves[i].block > last_block ? leaves[i].block : last_block;
	slots = test_alloc((last_block + (size_t) 1) * sizeof(uint32_t));
	for (uint32_t i = 0; i < nleaves; i++)
		slots[leaves[i].block] = i;
	for (uint32_t i = 0; i < image->info.nleaves; i++)
		CHECK(image->leaves[i].block <= last_block &&
			  (i == 0 || slots[image->leaves[i].block] > slots[image->leaves[i - 1].block]),
			  "anchor %u is not in key order", i);
	for (int i = 0; i < LOOKUPS; i++)
	{
		uint32_t	right = (uint32_t) rng_below(&rng, nleaves);
		uint64_t	low = leaves[right].min_code;
		uint64_t	high = right + 1 < nleaves ? leaves[right + 1].min_code : low + 1000;
		uint64_t	code = high > low ? low + 1 + rng_below(&rng, high - low) : low;
		uint32_t	anchor = lbt_leaf_search(image->leaves, image->info.nleaves, 0, code, false);
		uint32_t	found = slots[image->leaves[anchor].block];

		right = lbt_leaf_search(leaves, nleaves, right, code, false);
		exact += found == right;
		near += found <= right && right - found <= 3;
	}
	free(slots);
	return (Quality) {(double) exact / LOOKUPS, (double) near / LOOKUPS};
}

/* The image is at least so good. */
static void
check_quality(const char *name, const LbtLeaf *leaves, uint32_t nleaves, double exact, double near)
{
	Image		image = make_image(leaves, nleaves, ROOM);
	Quality		quality;

	CHECK(image.bytes != NULL, "no image of %u leaves", nleaves);
	quality = measure(leaves, nleaves, &image);
	printf("# %s: %u leaves, %u anchors, %zu bytes, right leaf %.2f %%, or up to 3 right %.2f %%\n",
		   name, nleaves, image.info.nleaves, image.len, 100 * quality.exact, 100 * quality.near);
	CHECK(quality.exact >= exact && quality.near >= near, "only %.2f %% right, %.2f %% near",
		  100 * quality.exact, 100 * quality.near);
	free_image(&image);
}

typedef struct Expected
{
	const char *name;
	uint64_t	(*quantile) (double);
	uint32_t	nleaves;
	double		splits;			/* per leaf */
	double		exact;			/* at least */
	double		near;
} Expected;

static void
good_enough(const void *arg)
{
	const Expected *e = arg;
	uint32_t	nleaves = e->nleaves;
	LbtLeaf    *leaves = random_leaves(e->quantile, 21, nleaves);

	number_blocks(leaves, nleaves, 285);
	if (e->splits > 0)
		leaves = split_leaves(leaves, &nleaves, e->splits);
	check_quality(e->name, leaves, nleaves, e->exact, e->near);
	free(leaves);
}

/* ---- what comes back ---- */

static const Distribution *const all_samples[] = {
	&sample_uniform, &sample_full_range, &sample_sequential, &sample_gaps, &sample_exponential,
	&sample_lognormal, &sample_powers, &sample_heavy_steps, &sample_floats, &sample_address_blocks,
	&sample_commit_times, &sample_long_runs, &sample_all_equal, &sample_two_values, &sample_both_ends,
	&sample_outlier, &sample_zigzag, &sample_staircase
};

#define NSAMPLES (sizeof(all_samples) / sizeof(all_samples[0]))

static LbtLeaf *
sample_leaves(size_t sample, uint32_t nleaves)
{
	uint64_t   *codes = make_sample(all_samples[sample], 22 + sample, nleaves, 2);
	LbtLeaf    *leaves;

	codes[0] = 0;
	leaves = make_leaves(codes, nleaves);
	free(codes);
	return leaves;
}

/* A few hundred leaves come back as they were, wherever their blocks are. */
static void
small_is_exact(const void *arg)
{
	static const uint32_t counts[] = {1, 2, 3, 10, 100, 700};

	(void) arg;
	for (size_t sample = 0; sample < NSAMPLES; sample++)
		for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++)
		{
			uint32_t	nleaves = counts[k];
			LbtLeaf    *leaves = sample_leaves(sample, nleaves);
			Image		image;

			scatter_blocks(leaves, nleaves, k);
			image = make_image(leaves, nleaves, ROOM);
			CHECK(image.bytes != NULL && image.info.nleaves == nleaves, "%s: %u leaves of %u",
				  all_samples[sample]->name, image.info.nleaves, nleaves);
			for (uint32_t i = 0; i < nleaves; i++)
				CHECK(image.leaves[i].block == leaves[i].block &&
					  image.leaves[i].min_code == leaves[i].min_code, "%s: leaf %u of %u differs",
					  all_samples[sample]->name, i, nleaves);
			free_image(&image);
			free(leaves);
		}
}

/* Scattered blocks leave less room for the codes; they are hardly less exact. */
static void
scattered_are_near(const void *arg)
{
	uint32_t	nleaves = 2700;
	LbtLeaf    *leaves = random_leaves(uniform_quantile, 23, nleaves);
	Image		image;
	Quality		quality;

	(void) arg;
	scatter_blocks(leaves, nleaves, 24);
	image = make_image(leaves, nleaves, ROOM);
	CHECK(image.bytes != NULL && image.info.nleaves == nleaves, "%u leaves of %u",
		  image.info.nleaves, nleaves);
	for (uint32_t i = 0; i < nleaves; i++)
		CHECK(image.leaves[i].block == leaves[i].block, "the block of leaf %u differs", i);
	quality = measure(leaves, nleaves, &image);
	CHECK(quality.exact >= 0.98, "only %.2f %% right", 100 * quality.exact);
	free_image(&image);
	free(leaves);
}

/* All shapes, most too ragged for so few bytes: no image or a sound one, and the same again. */
static void
any_shape(const void *arg)
{
	static const uint32_t counts[] = {50, 3000, 30000};

	(void) arg;
	for (size_t sample = 0; sample < NSAMPLES; sample++)
		for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++)
		{
			uint32_t	nleaves = counts[k];
			LbtLeaf    *leaves = sample_leaves(sample, nleaves);
			Image		image;
			size_t		again_len;
			uint8_t    *again;

			number_blocks(leaves, nleaves, 90 + 10 * (uint32_t) sample);
			image = make_image(leaves, nleaves, ROOM);
			again = encode(&one_column, leaves, nleaves, ROOM, 4711, &again_len);
			CHECK(again_len == image.len && (again_len == 0 ||
				  memcmp(again, image.bytes, again_len) == 0), "%s: another image the second time",
				  all_samples[sample]->name);
			if (image.bytes != NULL)
				measure(leaves, nleaves, &image);
			free(again);
			free_image(&image);
			free(leaves);
		}
}

/* Codes on a straight line come back exactly, however many, and in next to no room. */
static void
lines_are_free(const void *arg)
{
	uint32_t	nleaves = 200000;
	LbtLeaf    *leaves = test_alloc(nleaves * sizeof(LbtLeaf));
	Image		image;

	(void) arg;
	for (uint32_t i = 0; i < nleaves; i++)
		leaves[i] = (LbtLeaf) {i == 0 ? 0 : lbt_order_signed((int64_t) i * 366 - 1000000), 0, 0};
	number_blocks(leaves, nleaves, 200);
	image = make_image(leaves, nleaves, 300);
	CHECK(image.bytes != NULL && image.info.nleaves == nleaves, "%u leaves of %u",
		  image.info.nleaves, nleaves);
	CHECK(memcmp(image.leaves, leaves, nleaves * sizeof(LbtLeaf)) == 0, "they differ");
	free_image(&image);
	free(leaves);
}

/* Dense runs between gaps of all sizes: each run has to be found although the gaps are far wider. */
static void
runs_between_gaps(const void *arg)
{
	uint32_t	nleaves = 27000;
	LbtLeaf    *leaves = test_alloc(nleaves * sizeof(LbtLeaf));
	uint64_t	code = lbt_order_signed(0);
	Rng			rng = {33};

	(void) arg;
	for (uint32_t i = 0; i < nleaves; i++)
	{
		leaves[i] = (LbtLeaf) {i == 0 ? 0 : code, 0, 0};
		code += PER_LEAF;
		if (rng_below(&rng, 100) == 0)
			code += rng_any_width(&rng) >> 26;
	}
	number_blocks(leaves, nleaves, 285);
	check_quality("dense runs between gaps", leaves, nleaves, 0.99, 0.99);
	free(leaves);
}

/* Codes that many leaves share, as a few keys with very many duplicates give them: those leaves are
 * found only if the code comes back as it was. */
static void
shared_codes(const void *arg)
{
	uint32_t	nleaves = 30000;
	LbtLeaf    *leaves = test_alloc(nleaves * sizeof(LbtLeaf));
	uint64_t	code = lbt_order_signed(0);
	Rng			rng = {34};

	(void) arg;
	for (uint32_t i = 0, left = 1; i < nleaves; i++)
	{
		leaves[i] = (LbtLeaf) {i == 0 ? 0 : code, 0, 0};
		if (--left == 0)
		{
			left = rng_below(&rng, 50) == 0 ? 100 : 1;
			code += 1000000 + rng_below(&rng, 100000);
		}
	}
	number_blocks(leaves, nleaves, 285);
	check_quality("codes that leaves share", leaves, nleaves, 0.97, 0.97);
	free(leaves);
}

/* Runs of any length between inner pages, as keys of different sizes give them. */
static void
irregular_runs(const void *arg)
{
	uint32_t	nleaves = 170000;
	LbtLeaf    *leaves = random_leaves(uniform_quantile, 25, nleaves);
	Rng			rng = {26};
	uint32_t	block = 1;
	Image		image;

	(void) arg;
	for (uint32_t i = 0, left = 0; i < nleaves; i++)
	{
		if (left-- == 0)
		{
			left = 100 + (uint32_t) rng_below(&rng, 200);
			block++;
		}
		leaves[i].block = block++;
	}
	image = make_image(leaves, nleaves, ROOM);
	CHECK(image.bytes != NULL && image.info.nleaves == nleaves, "%u leaves of %u",
		  image.info.nleaves, nleaves);
	for (uint32_t i = 0; i < nleaves; i++)
		CHECK(image.leaves[i].block == leaves[i].block, "the block of leaf %u differs", i);
	CHECK(measure(leaves, nleaves, &image).exact >= 0.9, "the codes are too far off");
	free_image(&image);
	free(leaves);
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
	uint64_t   *codes = make_sample(&sample_uniform, 27, 500, 2);
	LbtLeaf    *leaves;
	LbtKeyCode	code;
	LbtImageInfo info;
	size_t		len;
	uint8_t    *bytes;

	(void) arg;
	codes[0] = 0;
	leaves = make_leaves(codes, 500);
	for (int32_t n = 1; n <= LBT_CODE_COLUMNS; n++)
	{
		learn_columns(n, &code);
		bytes = encode(&code, leaves, 500, ROOM, INT64_MIN + n, &len);
		CHECK(bytes != NULL && lbt_image_open(bytes, len, 500, &info) == LBT_IMAGE_OK, "%d columns", n);
		CHECK(info.trained_at == INT64_MIN + n, "the header differs");
		CHECK(memcmp(&info.code, &code, sizeof(code)) == 0, "the key code of %d columns differs", n);
		free(bytes);
	}
	free(leaves);
	free(codes);
}

/* ---- no image ---- */

static void
none_worth_having(const void *arg)
{
	uint32_t	nleaves = 20000;
	LbtLeaf    *leaves = random_leaves(uniform_quantile, 28, nleaves);
	LbtLeaf    *ragged = sample_leaves(7, 100000);
	LbtKeyCode	no_code = {0};
	size_t		len;

	(void) arg;
	CHECK(encode(&one_column, leaves, 0, ROOM, 0, &len) == NULL, "an image of nothing");
	CHECK(encode(&no_code, leaves, 10, ROOM, 0, &len) == NULL, "an image without a key code");
	leaves[7].block = 0;
	CHECK(encode(&one_column, leaves, 10, ROOM, 0, &len) == NULL, "a leaf in the metapage");
	leaves[7].block = UINT32_MAX;
	CHECK(encode(&one_column, leaves, 10, ROOM, 0, &len) == NULL, "a leaf nowhere");
	leaves[7].block = 8;
	leaves[7].min_code = leaves[6].min_code - 1;
	CHECK(encode(&one_column, leaves, 10, ROOM, 0, &len) == NULL, "codes in no order");
	leaves[7].min_code = leaves[6].min_code;
	scatter_blocks(leaves, nleaves, 29);
	CHECK(encode(&one_column, leaves, nleaves, ROOM, 0, &len) == NULL, "scattered blocks");
	CHECK(encode(&one_column, ragged, 100000, ROOM, 0, &len) == NULL, "codes that do not fit");
	free(ragged);
	free(leaves);
}

/* Any room: nothing is written past it (it ends where the heap block does), and what fits is sound. */
static void
any_room(const void *arg)
{
	static const uint32_t counts[] = {3, 400, 6000};

	(void) arg;
	for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++)
	{
		LbtLeaf    *leaves = random_leaves(uniform_quantile, 30, counts[k]);
		size_t		fits_in = 0;

		number_blocks(leaves, counts[k], 17);
		for (size_t cap = 0; cap <= 8200; cap += cap < 300 ? 1 : 79)
		{
			Image		image = make_image(leaves, counts[k], cap);

			CHECK(image.bytes != NULL || fits_in == 0, "it fitted %zu bytes, but not %zu", fits_in, cap);
			if (image.bytes != NULL && fits_in == 0)
				fits_in = cap;
			free_image(&image);
		}
		CHECK(fits_in > AT_CODE && fits_in < 4000, "%u leaves fit %zu bytes", counts[k], fits_in);
		free(leaves);
	}
}

/* ---- real keys ---- */

typedef struct RealKeys
{
	const char *name;			/* of NAME.txt.xz, an integer a line, in the folder of LBT_KEYS */
	uint32_t	per_leaf;
	double		exact;			/* at least */
} RealKeys;

static LbtLeaf *
real_leaves(const RealKeys *keys, uint32_t *nleaves)
{
	enum
	{
		MAX_KEYS = 1000000
	};
	const char *folder = getenv("LBT_KEYS");
	uint64_t   *codes = test_alloc(MAX_KEYS * sizeof(uint64_t));
	uint32_t	n = 0;
	char		command[4096];
	char		line[256];
	LbtLeaf    *leaves;
	FILE	   *file;

	CHECK(folder != NULL && strchr(folder, '\'') == NULL, "LBT_KEYS names no folder");
	snprintf(command, sizeof(command), "xzcat '%s/%s.txt.xz'", folder, keys->name);
	file = popen(command, "r");
	CHECK(file != NULL, "cannot run %s", command);
	while (n < MAX_KEYS && fgets(line, sizeof(line), file) != NULL)
		codes[n++] = lbt_order_signed(strtoll(line, NULL, 10));
	CHECK(pclose(file) == 0 && n > 10000, "%s gave %u keys", command, n);
	sort_codes(codes, n);
	*nleaves = n / keys->per_leaf;
	for (uint32_t i = 0; i < *nleaves; i++)
		codes[i] = i == 0 ? 0 : codes[i * keys->per_leaf];
	leaves = make_leaves(codes, *nleaves);
	free(codes);
	return leaves;
}

/* Leaves of as many keys as pages have are few enough to be told exactly; smaller ones are more. */
static void
real_keys(const void *arg)
{
	const RealKeys *keys = arg;
	uint32_t	nleaves;
	LbtLeaf    *leaves = real_leaves(keys, &nleaves);

	number_blocks(leaves, nleaves, 285);
	check_quality(keys->name, leaves, nleaves, keys->exact, keys->exact);
	free(leaves);
}

#define QUALITY(what, ...) {what, good_enough, &(const Expected) {what, __VA_ARGS__}}

const Test	image_tests[] = {
	{"a small image gives back every leaf as it was", small_is_exact, NULL},
	{"an image of a few thousand scattered leaves is near", scattered_are_near, NULL},
	QUALITY("image of 1,000 leaves, uniform keys", uniform_quantile, 1000, 0, 0.999, 1),
	QUALITY("image of 2,700 leaves, uniform keys", uniform_quantile, 2700, 0, 0.999, 1),
	QUALITY("image of 27,000 leaves, uniform keys", uniform_quantile, 27000, 0, 0.975, 0.985),
	QUALITY("image of 273,225 leaves, uniform keys", uniform_quantile, 273225, 0, 0.92, 0.955),
	QUALITY("image of 273,225 leaves, full range of codes", full_range_quantile, 273225, 0, 0.92, 0.955),
	QUALITY("image of 273,225 leaves, heavy tails", loglogistic_quantile, 273225, 0, 0.91, 0.95),
	QUALITY("image of 27,000 leaves, heavy tails", loglogistic_quantile, 27000, 0, 0.97, 0.98),
	QUALITY("image of 27,000 leaves, dense keys", sequential_quantile, 27000, 0, 0.975, 0.985),
	QUALITY("image of 27,000 leaves, 10 % split since", uniform_quantile, 27000, 0.1, 0.85, 0.98),
	QUALITY("image of 27,000 leaves, half split since", uniform_quantile, 27000, 0.5, 0.6, 0.97),
	QUALITY("image of 27,000 leaves, as many splits", uniform_quantile, 27000, 1, 0.45, 0.95),
	{"an image of any shape is sound", any_shape, NULL},
	{"an image of codes on a line takes no room", lines_are_free, NULL},
	{"an image finds dense runs between gaps", runs_between_gaps, NULL},
	{"an image keeps codes that leaves share", shared_codes, NULL},
	{"an image has room for irregular runs of blocks", irregular_runs, NULL},
	{"an image keeps a key code of many columns", many_columns, NULL},
	{"no image where none is worth having", none_worth_having, NULL},
	{"an image fits the room, whatever it is", any_room, NULL},
	{NULL, NULL, NULL}
};

#define REAL_KEYS(what, ...) {what, real_keys, &(const RealKeys) {__VA_ARGS__}}

const Test	image_realkeys_tests[] = {
	REAL_KEYS("image of real address blocks, leaves of a page", "ipv4_starts", 366, 1),
	REAL_KEYS("image of real address blocks, leaves of 50 keys", "ipv4_starts", 50, 0.98),
	REAL_KEYS("image of real address blocks, leaves of 5 keys", "ipv4_starts", 5, 0.9),
	REAL_KEYS("image of real commit times, leaves of a page", "commit_times", 366, 1),
	REAL_KEYS("image of real commit times, leaves of 50 keys", "commit_times", 50, 0.98),
	REAL_KEYS("image of real commit times, leaves of 5 keys", "commit_times", 5, 0),
	{NULL, NULL, NULL}
};
