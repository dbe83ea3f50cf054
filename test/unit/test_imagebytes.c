/*
 * test_imagebytes.c - images byte by byte: whatever is no image is told from one, or harmless.
 */
#include "contract_image.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

static void
put32(uint8_t *at, uint32_t value)
{
	memcpy(at, &value, 4);
}

/* Codes so far apart that others in their place would soon be too large. */
static uint64_t
all_codes(double p)
{
	return (uint64_t) (p * 18446744073709549568.0);
}

/* An image of 300 leaves with midpoints, or, of 20 leaves, exactly. */
static uint8_t *
some_image(bool exact, size_t *len)
{
	uint32_t	nleaves = exact ? 20 : 300;
	LbtLeaf    *leaves = random_leaves(exact ? all_codes : uniform_quantile, 31, nleaves);
	uint8_t    *bytes;
	uint32_t	step;

	number_blocks(leaves, nleaves, 17);
	for (uint32_t i = 0; exact && i < nleaves; i++)
		leaves[i].block = UINT32_MAX - 1 - (nleaves - 1 - i);	/* the last there may be */
	bytes = encode(&one_column, leaves, nleaves, exact ? 1000 : 500, 1, len);
	CHECK(bytes != NULL, "no image");
	memcpy(&step, bytes + AT_STEP, 4);
	CHECK((step == 0) == exact, "not the image asked for");
	free(leaves);
	return bytes;
}

static LbtImageCheck
open_copy(const uint8_t *bytes, size_t len, uint32_t max_leaves)
{
	uint8_t    *copy = test_copy(bytes, len);
	LbtImageInfo info;
	LbtImageCheck check = lbt_image_open(copy, len, max_leaves, &info);

	free(copy);
	return check;
}

static void
header_checks(const void *arg)
{
	static const struct
	{
		int			at;
		uint32_t	value;
		bool		fix_crc;
		LbtImageCheck check;
		const char *what;
	}			cases[] = {
		{AT_MAGIC, 0, false, LBT_IMAGE_NONE, "nothing there"},
		{AT_MAGIC, 0x00053162, true, LBT_IMAGE_BAD_MAGIC, "another magic number"},
		{AT_VERSION, 1, true, LBT_IMAGE_BAD_VERSION, "another version"},
		{AT_BYTES, 39, true, LBT_IMAGE_BAD_LENGTH, "less than a header"},
		{AT_BYTES, 8000, true, LBT_IMAGE_BAD_LENGTH, "longer than there are bytes"},
		{AT_BYTES, UINT32_MAX, true, LBT_IMAGE_BAD_LENGTH, "longer than anything"},
		{AT_BYTES, 60, false, LBT_IMAGE_BAD_CRC, "shorter than it was"},
		{AT_CRC, 0, false, LBT_IMAGE_BAD_CRC, "another checksum"},
		{AT_NLEAVES, 0, true, LBT_IMAGE_BAD_VALUE, "no leaves"},
		{AT_NLEAVES, 301, true, LBT_IMAGE_BAD_VALUE, "more leaves than the index had"},
		{AT_TRAINED_LEAVES, 299, true, LBT_IMAGE_BAD_VALUE, "an index of fewer leaves"},
		{AT_NCOLUMNS, 0, true, LBT_IMAGE_BAD_VALUE, "no key code"},
		{AT_NCOLUMNS, 9, true, LBT_IMAGE_BAD_VALUE, "too many columns"},
		{AT_NCOLUMNS, UINT32_MAX, true, LBT_IMAGE_BAD_VALUE, "too many columns by far"},
		{AT_STEP, UINT32_MAX, true, LBT_IMAGE_BAD_VALUE, "too coarse a step"},
		{AT_CODE, 0x00000001, true, LBT_IMAGE_BAD_VALUE, "a column without digits"},
		{AT_TRAINED_AT, 5, true, LBT_IMAGE_OK, "another time of training"}
	};
	size_t		len;
	uint8_t    *bytes = some_image(false, &len);
	uint8_t		none[64] = {0};

	(void) arg;
	CHECK(~crc32c(UINT32_MAX, (const uint8_t *) "123456789", 9) == UINT32_C(0xe3069283), "no CRC-32C");
	CHECK(open_copy(bytes, len, 300) == LBT_IMAGE_OK, "the image itself");
	CHECK(open_copy(bytes, len, 299) == LBT_IMAGE_BAD_VALUE, "more leaves than allowed");
	CHECK(open_copy(none, 64, 300) == LBT_IMAGE_NONE && open_copy(none, 0, 300) == LBT_IMAGE_NONE,
		  "an empty page");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		uint8_t    *copy = test_copy(bytes, len);
		LbtImageCheck check;

		put32(copy + cases[i].at, cases[i].value);
		if (cases[i].fix_crc)
			put32(copy + AT_CRC, crc_of(copy, len));
		check = open_copy(copy, len, 1000);
		CHECK(check == cases[i].check, "%s: %d, expected %d", cases[i].what, check, cases[i].check);
		free(copy);
	}
	free(bytes);
}

static void
cut_and_flipped(const void *arg)
{
	(void) arg;
	for (int exact = 0; exact < 2; exact++)
	{
		size_t		len;
		uint8_t    *bytes = some_image(exact, &len);

		for (size_t cut = 0; cut < len; cut++)
		{
			LbtImageCheck expected = cut < 4 ? LBT_IMAGE_NONE : LBT_IMAGE_BAD_LENGTH;

			CHECK(open_copy(bytes, cut, 1000) == expected, "%zu bytes of %zu", cut, len);
		}
		for (size_t bit = 0; bit < len * 8; bit++)
		{
			bytes[bit / 8] ^= (uint8_t) (1 << bit % 8);
			CHECK(open_copy(bytes, len, 1000) != LBT_IMAGE_OK, "bit %zu flipped", bit);
			bytes[bit / 8] ^= (uint8_t) (1 << bit % 8);
		}
		CHECK(open_copy(bytes, len, 1000) == LBT_IMAGE_OK, "the image itself");
		free(bytes);
	}
}

/* Shorter than written, though header and checksum agree: the leaves run out of bytes. */
static void
shortened(const void *arg)
{
	(void) arg;
	for (int exact = 0; exact < 2; exact++)
	{
		size_t		len;
		uint8_t    *bytes = some_image(exact, &len);

		CHECK(use_image(bytes, len, 1000) == 2, "the image itself");
		while (--len >= AT_CODE)
		{
			int			expected = len < AT_CODE + 22 ? 0 : 1;	/* a key code of one digit */

			put32(bytes + AT_BYTES, (uint32_t) len);
			put32(bytes + AT_CRC, crc_of(bytes, len));
			CHECK(use_image(bytes, len, 1000) == expected, "%zu bytes are enough", len);
		}
		free(bytes);
	}
}

/* Contents that nobody wrote, under a right checksum: refused, or a sound leaf cache. */
static void
forged(const void *arg)
{
	Rng			rng = {32};
	int			reached[3] = {0};

	(void) arg;
	for (int round = 0; round < 4000; round++)
	{
		size_t		len;
		uint8_t    *bytes = some_image(round & 1, &len);

		for (uint64_t n = 1 + rng_below(&rng, 6); n > 0; n--)
			bytes[AT_STEP + rng_below(&rng, len - AT_STEP)] = (uint8_t) rng_next(&rng);
		if (round % 3 == 0)
			put32(bytes + AT_NLEAVES, 1 + (uint32_t) rng_below(&rng, 3000));
		put32(bytes + AT_TRAINED_LEAVES, 3000);
		put32(bytes + AT_CRC, crc_of(bytes, len));
		reached[use_image(bytes, len, 3000)]++;
		free(bytes);
	}
	CHECK(reached[0] > 100 && reached[1] > 100 && reached[2] > 100, "%d not opened, %d refused, %d sound",
		  reached[0], reached[1], reached[2]);
}

static void
same_images(const void *arg)
{
	size_t		len;
	uint8_t    *a = some_image(false, &len);
	uint8_t    *b = test_copy(a, len);
	size_t		other_len;
	uint8_t    *other = some_image(true, &other_len);
	uint8_t		longer[1200] = {0};

	(void) arg;
	CHECK(lbt_image_same(a, len, b, len), "an image and its copy");
	b[AT_TRAINED_AT] ^= 1;
	CHECK(!lbt_image_same(a, len, b, len), "a broken copy");
	put32(b + AT_CRC, crc_of(b, len));
	CHECK(lbt_image_same(a, len, b, len), "made at another time");
	memcpy(longer, b, len);
	CHECK(lbt_image_same(a, len, longer, sizeof(longer)), "with more bytes behind it");
	b[len - 1] ^= 1;
	put32(b + AT_CRC, crc_of(b, len));
	CHECK(!lbt_image_same(a, len, b, len), "another last byte");
	b[len - 1] ^= 1;
	b[AT_NLEAVES] ^= 1;
	put32(b + AT_CRC, crc_of(b, len));
	CHECK(!lbt_image_same(a, len, b, len), "another number of leaves");
	CHECK(!lbt_image_same(a, len, other, other_len), "another image");
	CHECK(!lbt_image_same(a, len, a, len - 1) && !lbt_image_same(a, 0, a, 0), "no image");
	free(a);
	free(b);
	free(other);
}

const Test	imagebytes_tests[] = {
	{"every wrong header of an image is told apart", header_checks, NULL},
	{"an image cut short or with a bit flipped is none", cut_and_flipped, NULL},
	{"an image made shorter gives no leaves", shortened, NULL},
	{"a forged image is refused or harmless", forged, NULL},
	{"images are the same but for their time", same_images, NULL},
	{NULL, NULL, NULL}
};
