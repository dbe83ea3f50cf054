/*
 * fuzz_spline.c - sorted codes from the input keep the spline's contract at any error; and the input
 * itself, taken as a model, is refused or harmless.
 */
#include "contract.h"
#include "fuzz.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

#define MAX_LEAVES 400

/* Runs of codes at even steps, from the input; in order, ending where they would wrap. */
static uint32_t
read_codes(Input *input, uint64_t *codes)
{
	uint64_t	code = input_number(input);
	uint32_t	n = 0;

	do
	{
		uint32_t	run = 1 + input_byte(input) % 32;
		uint64_t	step = input_number(input);

		while (run-- > 0 && n < MAX_LEAVES)
		{
			codes[n++] = code;
			if (step > UINT64_MAX - code)
				step = UINT64_MAX - code;
			code += step;
		}
	} while (input->left > 0 && n < MAX_LEAVES);
	return n;
}

static void
fit_and_search(Input input)
{
	uint64_t	codes[MAX_LEAVES];
	uint32_t	max_error = input_byte(&input);
	uint32_t	nleaves;
	size_t		bytes;
	LbtLeaf    *leaves;
	void	   *memory;
	LbtModel	model;

	if (max_error >= 240)
		max_error = (uint32_t) input_number(&input);
	nleaves = read_codes(&input, codes);
	leaves = make_leaves(codes, nleaves);
	check_spline(leaves, nleaves, max_error);
	memory = make_model(leaves, nleaves, max_error, &bytes);
	model = open_model(memory, bytes);
	check_slots(&model, nleaves);
	free(memory);
	free(leaves);
}

/* Codes in any order: refused if and only if they are out of order. */
static void
fit_any_order(Input input)
{
	uint32_t	max_error = input_byte(&input);
	uint32_t	nleaves = input_byte(&input) % 20;
	uint64_t	codes[20];
	bool		in_order = nleaves > 0;
	LbtLeaf    *leaves;
	LbtKnot    *knots = test_alloc(nleaves * sizeof(LbtKnot));

	for (uint32_t i = 0; i < nleaves; i++)
	{
		codes[i] = input_number(&input);
		in_order = in_order && (i == 0 || codes[i - 1] <= codes[i]);
	}
	leaves = make_leaves(codes, nleaves);
	CHECK((lbt_spline_fit(leaves, nleaves, max_error, knots, nleaves) > 0) == in_order,
		  "%u codes %s order", nleaves, in_order ? "refused in" : "fitted out of");
	free(knots);
	free(leaves);
}

/* Opens the memory, of exactly this size, and uses it if it is a model. */
static void
open_and_use(void *memory, size_t bytes)
{
	LbtModel	model;
	LbtKeyCode	code;

	if (lbt_model_open(memory, bytes, &model, &code))
	{
		LbtKeyValue values[LBT_CODE_COLUMNS];
		Rng			rng = {bytes};

		check_in_bounds(&model, bytes);
		for (int i = 0; i < 16; i++)
		{
			for (int v = 0; v < LBT_CODE_COLUMNS; v++)
				values[v] = (LbtKeyValue) {.ordered = rng_any_width(&rng),.isnull = rng_below(&rng, 4) == 0,
				.bytes = memory,.length = (uint32_t) rng_below(&rng, bytes + 1)};
			lbt_keycode(model.code, values, i % (LBT_CODE_COLUMNS + 1), i & 1);
		}
	}
}

static void
open_raw(Input input)
{
	void	   *memory = test_copy(input.next, input.left);

	open_and_use(memory, input.left);
	free(memory);
}

/* The input as a model with what would get most inputs refused at once set right. */
static void
open_repaired(Input input)
{
	uint32_t	nknots = 1 + input_byte(&input) % 8;
	uint32_t	nleaves = nknots + input_byte(&input) % 32;
	int32_t		ndigits = 1 + input_byte(&input) % LBT_CODE_COLUMNS;
	size_t		bytes = lbt_model_bytes(nleaves, nknots, 0);
	LbtModelHeader *header = test_alloc(bytes);
	size_t		used = input.left < bytes ? input.left : bytes;

	memset(header, 0xff, bytes);
	memcpy(header, input.next, used);
	header->bytes = bytes;
	header->nleaves = nleaves;
	header->nknots = nknots;
	header->code.ndigits = header->code.ncolumns = ndigits;
	header->code.raw = 0;
	for (int i = 0; i < ndigits; i++)
	{
		LbtCodeColumn *column = &header->code.column[i];
		LbtKeyDigit *digit = &header->code.digit[i];

		column->ndigits = 1;
		column->prefix_length &= LBT_CODE_PREFIX / LBT_CODE_COLUMNS - 1;
		digit->shift &= 63;
		digit->ends &= 1;
		if (header->code.order[i].bytes)
		{
			digit->lo &= UINT8_MAX;
			digit->span &= UINT8_MAX;
		}
	}
	open_and_use(header, bytes);
	free(header);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	Input		input = {data, size};

	switch (input_byte(&input) % 4)
	{
		case 0:
			fit_and_search(input);
			break;
		case 1:
			fit_any_order(input);
			break;
		case 2:
			open_raw(input);
			break;
		default:
			open_repaired(input);
	}
	return 0;
}
