/*
 * fuzz_keycode.c - columns, training keys and search keys from the input; all codes are in order.
 */
#include "contract.h"
#include "fuzz.h"
#include "test.h"

#define MAX_SEARCH_KEYS 6

/* One in four values repeats or neighbours one that was seen, so that prefixes meet. */
static LbtKeyValue
read_value(Input *input, const LbtKeyValue *seen)
{
	uint8_t		how = input_byte(input);
	LbtKeyValue value = {.isnull = (how & 7) == 7};

	if (how & 8)
		value.ordered = seen->ordered + (uint64_t) (how >> 4) - 4;
	else if (how & 16)
		value.ordered = seen->ordered;
	else
		value.ordered = input_number(input);
	return value;
}

static KeyBound
read_bound(Input *input, int ncolumns, KeyBound *seen)
{
	uint8_t		how = input_byte(input);
	KeyBound	bound = {.nvalues = ncolumns};

	if (how & 1)
		bound.nvalues = (how >> 2) % (ncolumns + 1);
	bound.missing = how & 2 ? LBT_MISSING_HIGH : LBT_MISSING_LOW;
	for (int i = 0; i < bound.nvalues; i++)
	{
		bound.values[i] = read_value(input, &seen->values[i]);
		seen->values[i] = bound.values[i];
	}
	return bound;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	Input		input = {data, size};
	KeyColumns	columns = {.ncolumns = 1 + input_byte(&input) % MAX_COLUMNS};
	uint64_t	nulls_first = input_bytes(&input, 2);
	int			ntraining = input_byte(&input) % 16;
	KeyBound	seen = {.nvalues = 0};
	KeyBound	keys[MAX_SEARCH_KEYS];
	LbtKeyCode	code;

	for (int i = 0; i < columns.ncolumns; i++)
		columns.nulls_first[i] = nulls_first >> i & 1;
	lbt_keycode_begin(&code, columns.ncolumns, columns.nulls_first);
	for (int i = 0; i < ntraining; i++)
	{
		KeyBound	separator = read_bound(&input, columns.ncolumns, &seen);

		lbt_keycode_observe(&code, separator.values, separator.nvalues);
	}
	lbt_keycode_finish(&code);
	CHECK(lbt_keycode_valid(&code), "a learned code is not valid");

	for (int i = 0; i < MAX_SEARCH_KEYS; i++)
	{
		keys[i] = read_bound(&input, columns.ncolumns, &seen);
		for (int j = 0; j <= i; j++)
			check_code_order(&code, &columns, &keys[i], &keys[j]);
	}
	return 0;
}
