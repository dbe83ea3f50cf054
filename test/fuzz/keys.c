/*
 * keys.c - columns and keys from a fuzzer's bytes; see fuzz_keys.h.
 */
#include "fuzz_keys.h"

#include <string.h>

#define MAX_STRING (LBT_CODE_BYTES + 10)

KeyColumns
read_columns(Input *input)
{
	KeyColumns	columns = {.ncolumns = 1 + input_byte(input) % MAX_COLUMNS};
	uint64_t	nulls_first = input_bytes(input, 2);
	uint64_t	bytes = input_bytes(input, 2);
	uint64_t	desc = input_bytes(input, 2);

	for (int i = 0; i < columns.ncolumns; i++)
		columns.order[i] = (LbtColumnOrder) {.bytes = bytes >> i & 1,
		.desc = bytes >> i & desc >> i & 1,.nulls_first = nulls_first >> i & 1};
	return columns;
}

/* A string of a few bytes, or one seen before, cut, with a byte replaced, or with more behind it. */
static LbtKeyValue
read_string(Input *input, const LbtKeyValue *seen, Strings *strings)
{
	uint8_t		how = input_byte(input);
	uint8_t	   *bytes = strings->bytes + strings->used;
	LbtKeyValue value = {.isnull = (how & 7) == 7,.bytes = bytes};

	if (strings->used + MAX_STRING > sizeof(strings->bytes))
		return value;
	if (how & 8 && !seen->isnull && seen->length > 0)
	{
		value.length = seen->length;
		memcpy(bytes, seen->bytes, seen->length);
		if (value.length > 0 && how & 16)
			value.length = input_byte(input) % value.length;
		if (value.length > 0 && how & 32)
			bytes[input_byte(input) % value.length] = input_byte(input);
	}
	if (how & 64)
	{
		uint8_t		byte = input_byte(input);

		for (uint32_t n = input_byte(input); n > 0 && value.length < MAX_STRING; n--)
			bytes[value.length++] = byte;
	}
	for (uint32_t n = how & 128 ? input_byte(input) % 24 : 0; n > 0 && value.length < MAX_STRING; n--)
		bytes[value.length++] = input_byte(input);
	strings->used += value.length;
	return value;
}

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

KeyBound
read_bound(Input *input, const KeyColumns *columns, KeyBound *seen, Strings *strings)
{
	uint8_t		how = input_byte(input);
	KeyBound	bound = {.nvalues = columns->ncolumns};

	if (how & 1)
		bound.nvalues = (how >> 2) % (columns->ncolumns + 1);
	bound.high = how & 2;
	for (int i = 0; i < bound.nvalues; i++)
	{
		bound.values[i] = columns->order[i].bytes ?
			read_string(input, &seen->values[i], strings) : read_value(input, &seen->values[i]);
		seen->values[i] = bound.values[i];
	}
	return bound;
}
