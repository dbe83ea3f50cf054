/*
 * fuzz.h - reading a fuzzer's bytes as numbers.  Past the end everything is 0.
 */
#ifndef LBT_FUZZ_H
#define LBT_FUZZ_H

#include <stddef.h>
#include <stdint.h>

typedef struct Input
{
	const uint8_t *next;
	size_t		left;
} Input;

static inline uint64_t
input_bytes(Input *input, int nbytes)
{
	uint64_t	value = 0;

	while (nbytes-- > 0 && input->left > 0)
	{
		value = value << 8 | *input->next++;
		input->left--;
	}
	return value;
}

static inline uint8_t
input_byte(Input *input)
{
	return (uint8_t) input_bytes(input, 1);
}

/* A number of any width: one byte says how many bits to take and where to put them, so that few bytes
 * of input reach both ends of the range. */
static inline uint64_t
input_number(Input *input)
{
	uint8_t		how = input_byte(input);
	uint64_t	value = input_bytes(input, 1 << (how & 3));

	switch (how >> 2 & 3)
	{
		case 0:
			return value;
		case 1:
			return ~value;
		case 2:
			return value << (how >> 4 & 15) * 4;
		default:
			return (UINT64_C(1) << 63) + value;
	}
}

extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif							/* LBT_FUZZ_H */
