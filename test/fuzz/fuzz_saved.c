/*
 * fuzz_saved.c - any bytes taken as a saved model are refused or harmless; and leaves from the input come back as the
 * contract says.
 */
#include "contract_saved.h"
#include "fuzz.h"
#include "test.h"

#include <stdlib.h>

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
			leaves[n] = (LbtLeaf) {.min_code = n == 0 ? 0 : code, .block = (uint32_t) (1 + block % (UINT32_MAX - 1))};
			code += step;
			block += block_step;
			n++;
		}
	} while (input->left > 0 && n < MAX_LEAVES);
	return n;
}

/* A saved model of leaves from the input, some of its bytes overwritten. */
static void
mutate(Input *input)
{
	LbtLeaf		leaves[MAX_LEAVES];
	uint8_t		changes[16];
	const size_t front = offsetof(LbtKeyCode, digit[1]) + 20;
	size_t		nchanges = 1 + input_byte(input) % (sizeof(changes) / 2);
	uint32_t	nleaves;
	size_t		len;
	uint8_t    *bytes;
	LbtKeyCode	code;

	for (size_t i = 0; i < 2 * nchanges; i++)
		changes[i] = input_byte(input);
	nleaves = read_leaves(input, leaves);
	bytes = encode(&one_column, leaves, nleaves, 4096, &len);
	if (bytes == NULL)
		return;

	/* Half of the changes go to the first bytes: the key code, and some runs. */
	for (size_t i = 0; i < nchanges; i++)
		bytes[changes[2 * i] * (i & 1 || len < front ? len : front) / 256] = changes[2 * i + 1];
	free(decode(bytes, len, &code, nleaves));
	free(bytes);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	Input		input = {data, size};
	uint8_t		how = input_byte(&input);
	uint32_t	nleaves = 1 + (uint32_t) input_bytes(&input, 2);
	LbtLeaf		leaves[MAX_LEAVES];
	LbtKeyCode	code;
	size_t		len;

	switch (how % 3)
	{
		case 0:
			free(save(&one_column, leaves, read_leaves(&input, leaves), nleaves, &len));
			break;
		case 1:
			mutate(&input);
			break;
		default:
			free(decode(input.next, input.left, &code, nleaves));
	}
	return 0;
}
