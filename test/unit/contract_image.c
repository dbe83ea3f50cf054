/*
 * contract_image.c - making and checking images; see contract_image.h.
 */
#include "contract_image.h"
#include "contract.h"
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const LbtKeyCode one_column = {
	.raw = 1, .ncolumns = 1, .ndigits = 1,
	.column = {{.ndigits = 1}}, .digit = {{.span = UINT64_MAX, .weight = 1}}
};

/* CRC-32C bit by bit, on its own: the one under test is not to judge itself. */
uint32_t
crc32c(uint32_t crc, const uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
	{
		crc ^= bytes[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? UINT32_C(0x82f63b78) : 0);
	}
	return crc;
}

uint32_t
crc_of(const uint8_t *image, size_t len)
{
	return ~crc32c(crc32c(UINT32_MAX, image, AT_CRC), image + AT_CRC + 4, len - AT_CRC - 4);
}

uint8_t *
encode(const LbtKeyCode *code, const LbtLeaf *leaves, uint32_t nleaves, size_t cap, int64_t trained_at,
	   size_t *used)
{
	uint8_t    *out = test_alloc(cap);
	LbtLeaf    *scratch_leaves = test_alloc(nleaves * sizeof(LbtLeaf));
	LbtKnot    *scratch_knots = test_alloc(nleaves * sizeof(LbtKnot));
	uint8_t    *image = NULL;

	*used = lbt_image_encode(out, cap, code, leaves, nleaves, trained_at, scratch_leaves,
							 scratch_knots);
	CHECK(*used <= cap, "%zu bytes used of %zu", *used, cap);
	if (*used > 0)
		image = test_copy(out, *used);
	free(out);
	free(scratch_leaves);
	free(scratch_knots);
	return image;
}

static void
check_decoded(const Image *image)
{
	const LbtLeaf *leaves = image->leaves;

	CHECK(leaves[0].min_code == 0, "the first code is %llu", (unsigned long long) leaves[0].min_code);
	for (uint32_t i = 0; i < image->info.nleaves; i++)
	{
		CHECK(leaves[i].block >= 1 && leaves[i].block < UINT32_MAX, "block %u", leaves[i].block);
		CHECK(leaves[i].recent_buffer == 0, "a buffer hint out of nowhere");
		CHECK(i == 0 || leaves[i].min_code >= leaves[i - 1].min_code, "code %u of %u decreases", i,
			  image->info.nleaves);
	}
}

Image
make_image(const LbtLeaf *leaves, uint32_t nleaves, size_t cap)
{
	Image		image = {.bytes = NULL};
	LbtImageCheck check;

	image.bytes = encode(&one_column, leaves, nleaves, cap, 4711, &image.len);
	if (image.bytes == NULL)
		return image;
	check = lbt_image_open(image.bytes, image.len, nleaves, &image.info);
	CHECK(check == LBT_IMAGE_OK, "the image of %u leaves opens as %d", nleaves, check);
	CHECK(image.info.nleaves >= 1 && image.info.nleaves <= nleaves &&
		  image.info.trained_leaves == nleaves && image.info.trained_at == 4711 &&
		  image.info.bytes == image.len, "the header of %u leaves says otherwise", nleaves);
	CHECK(memcmp(&image.info.code, &one_column, sizeof(one_column)) == 0, "the key code differs");
	image.leaves = test_alloc(image.info.nleaves * sizeof(LbtLeaf));
	CHECK(lbt_image_leaves(image.bytes, image.len, &image.info, image.leaves), "no leaves");
	check_decoded(&image);
	return image;
}

void
free_image(Image *image)
{
	free(image->bytes);
	free(image->leaves);
}

int
use_image(const uint8_t *bytes, size_t len, uint32_t max_leaves)
{
	Image		image = {.bytes = test_copy(bytes, len), .len = len};
	int			reached = 0;

	if (lbt_image_open(image.bytes, len, max_leaves, &image.info) == LBT_IMAGE_OK)
	{
		CHECK(image.info.nleaves >= 1 && image.info.nleaves <= max_leaves, "%u leaves of at most %u",
			  image.info.nleaves, max_leaves);
		CHECK(lbt_keycode_valid(&image.info.code), "no valid key code");
		reached = 1;
		image.leaves = test_alloc(image.info.nleaves * sizeof(LbtLeaf));
		if (lbt_image_leaves(image.bytes, len, &image.info, image.leaves))
		{
			reached = 2;
			check_decoded(&image);
		}
		CHECK(!lbt_image_leaves(image.bytes, image.info.bytes - 1, &image.info, image.leaves),
			  "leaves of half an image");
	}
	free_image(&image);
	return reached;
}

LbtLeaf *
random_leaves(uint64_t (*quantile) (double), uint64_t seed, uint32_t nleaves)
{
	Rng			rng = {seed};
	uint64_t   *codes = test_alloc(nleaves * sizeof(uint64_t));
	double	   *places = test_alloc(nleaves * sizeof(double));
	double		place = 0;
	LbtLeaf    *leaves;

	for (uint32_t i = 0; i < nleaves; i++)
	{
		double		normal = -6;

		places[i] = place;
		for (int k = 0; k < 12; k++)
			normal += rng_unit(&rng);
		place += PER_LEAF + sqrt(PER_LEAF) * normal;
	}
	for (uint32_t i = 0; i < nleaves; i++)
		codes[i] = i == 0 ? 0 : quantile(places[i] / place);
	leaves = make_leaves(codes, nleaves);
	free(codes);
	free(places);
	return leaves;
}

uint64_t
uniform_quantile(double p)
{
	return lbt_order_signed((int64_t) (p * 1e10));
}

void
number_blocks(LbtLeaf *leaves, uint32_t nleaves, uint32_t run)
{
	uint32_t	block = 1;

	for (uint32_t i = 0; i < nleaves; i++)
	{
		leaves[i].block = block++;
		if (i % run == run - 1)
			block += 1 + (i / run % run == run - 1);
	}
}

void
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
