/*
 * fuzz_image.c - any bytes taken as an image are refused or harmless, with a right checksum too; and
 * leaves from the input come back as the image's contract says.
 */
#include "contract.h"
#include "contract_image.h"
#include "fuzz.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

#define MAX_LEAVES 400

/* Runs of leaves at even steps, in codes and in blocks, from the input. */
static uint32_t
read_leaves(Input *input, LbtLeaf *leaves)
{
	uint64_t	code = 0;
	uint32_t	n = 0;

	do
	{
		uint32_t	run = 1 + input_byte(input) % 64;
		uint64_t	step = input_number(input);
		uint64_t	block = input_number(input);
		uint64_t	block_step = input_byte(input) % 4;

		while (run-- > 0 && n < MAX_LEAVES)
		{
			if (step > UINT64_MAX - code)
				step = UINT64_MAX - code;
			leaves[n] = (LbtLeaf) {n == 0 ? 0 : code, (uint32_t) (1 + block % (UINT32_MAX - 1)), 0};
			code += step;
			block += block_step;
			n++;
		}
	} while (input->left > 0 && n < MAX_LEAVES);
	return n;
}

/* The image of the input's leaves; NULL when there is none. */
static uint8_t *
image_of(Input *input, size_t *len)
{
	LbtLeaf		leaves[MAX_LEAVES];
	size_t		cap = input_byte(input) * 32;
	uint32_t	nleaves = read_leaves(input, leaves);
	Image		image = make_image(leaves, nleaves, cap);
	uint8_t    *bytes = NULL;

	if (image.bytes != NULL)
	{
		bytes = test_copy(image.bytes, image.len);
		*len = image.len;
		CHECK(lbt_image_same(bytes, *len, image.bytes, image.len), "an image and its copy differ");
	}
	free_image(&image);
	return bytes;
}

/* With a right checksum and length, if there is room for them and the input wants them. */
static void
use_bytes(uint8_t *bytes, size_t len, bool repair)
{
	if (repair && len >= AT_CODE)
	{
		uint32_t	value = (uint32_t) len;

		memcpy(bytes + AT_BYTES, &value, 4);
		value = crc_of(bytes, len);
		memcpy(bytes + AT_CRC, &value, 4);
	}
	use_image(bytes, len, 100000);
}

/* A sound image, some of its bytes overwritten from the input. */
static void
mutate_image(Input input, bool repair)
{
	uint8_t		changes[16];
	size_t		nchanges = 1 + input_byte(&input) % (sizeof(changes) / 2);
	size_t		len;
	uint8_t    *bytes;

	for (size_t i = 0; i < 2 * nchanges; i++)
		changes[i] = input_byte(&input);
	bytes = image_of(&input, &len);
	if (bytes == NULL)
		return;
	for (size_t i = 0; i < nchanges; i++)
	{
		/* Half of the changes go to the header, between the checksum and the key code. */
		size_t		room = i & 1 ? len - AT_STEP : AT_CODE - AT_STEP;

		bytes[AT_STEP + changes[2 * i] * room / 256] = changes[2 * i + 1];
	}
	use_bytes(bytes, len, repair);
	free(bytes);
}

/* The input as an image; repaired, it starts like one. */
static void
use_raw(Input input, bool repair)
{
	uint8_t    *bytes = test_copy(input.next, input.left);
	LbtLeaf		leaf = {0, 1, 0};
	size_t		len;
	uint8_t    *sound = encode(&one_column, &leaf, 1, 200, 0, &len);

	CHECK(sound != NULL, "no image of one leaf");
	if (repair && input.left >= AT_CODE)
		memcpy(bytes, sound, AT_CRC);
	use_bytes(bytes, input.left, repair);
	free(sound);
	free(bytes);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	Input		input = {data, size};
	uint8_t		how = input_byte(&input);
	size_t		len;

	switch (how % 3)
	{
		case 0:
			free(image_of(&input, &len));
			break;
		case 1:
			mutate_image(input, how & 128);
			break;
		default:
			use_raw(input, how & 128);
	}
	return 0;
}
