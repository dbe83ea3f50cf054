/*
 * fuzz_keycode.c - columns, training keys and search keys from the input; all codes are in order.
 */
#include "contract.h"
#include "fuzz_keys.h"
#include "test.h"

#define MAX_SEARCH_KEYS 6
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	Input		input = {data, size};
	KeyColumns	columns = read_columns(&input);
	int			ntraining = input_byte(&input) % 16;
	KeyBound	seen = {.nvalues = 0};
	KeyBound	keys[MAX_SEARCH_KEYS];
	static Strings strings;
	LbtKeyLearner learner;
	LbtKeyCode	code;

	strings.used = 0;
	lbt_keycode_begin(&learner, columns.ncolumns, columns.order);
	for (int i = 0; i < ntraining; i++)
	{
		KeyBound	separator = read_bound(&input, &columns, &seen, &strings);

		lbt_keycode_observe(&learner, separator.values, separator.nvalues);
	}
	lbt_keycode_finish(&learner, &code);
	CHECK(lbt_keycode_bytes(&code) > 0, "a learned code is not valid");

	for (int i = 0; i < MAX_SEARCH_KEYS; i++)
	{
		keys[i] = read_bound(&input, &columns, &seen, &strings);
		for (int j = 0; j <= i; j++)
			check_code_order(&code, &columns, &keys[i], &keys[j]);
	}
	return 0;
}
