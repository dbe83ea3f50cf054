/*
 * fuzz_separators.c - keys from the input are found by separators from it, in their leaf or, where strings are cut, one left
 * of it; and a model with separators, some of its bytes overwritten from the input, is refused or harmless.
 */
#include "fuzz_keys.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

#define MAX_SEPARATORS 40
#define MAX_SEARCH_KEYS 6

/* Keys from the input, and the separators of those in front, in order. */
typedef struct Case
{
	KeyColumns	columns;
	KeyBound	separators[MAX_SEPARATORS];
	uint32_t	nseparators;
	KeyBound	keys[MAX_SEARCH_KEYS];
	Separated	separated;
	bool		ample;
} Case;

static void
read_case(Input *input, Case *c)
{
	static Strings strings;
	KeyBound	seen = {.nvalues = 0};
	uint8_t		how = input_byte(input);
	uint32_t	max_bytes = how & 1 ? 65536 : (uint32_t) how * 8;

	strings.used = 0;
	c->columns = read_columns(input);
	c->nseparators = 1 + input_byte(input) % MAX_SEPARATORS;
	c->separators[0] = (KeyBound) {.nvalues = 0};
	for (uint32_t i = 1; i < c->nseparators; i++)
	{
		c->separators[i] = read_bound(input, &c->columns, &seen, &strings);
		c->separators[i].high = false;
	}
	sort_bounds(&c->columns, c->separators, c->nseparators);
	c->separated = make_separated(&c->columns, c->separators, c->nseparators, max_bytes);
	c->ample = how & 1;
	for (int i = 0; i < MAX_SEARCH_KEYS; i++)
		c->keys[i] = read_bound(input, &c->columns, &seen, &strings);
}

/* A NULL in a single column is not told apart, and neither is a key from one with higher numbers than it. */
static bool
is_told(const Case *c, const KeyBound *key)
{
	for (int i = 0; i < key->nvalues; i++)
		if ((key->values[i].isnull && c->columns.ncolumns == 1) || i >= LBT_CODE_COLUMNS ||
			(c->columns.order[i].bytes && !key->values[i].isnull && key->values[i].length >= LBT_CODE_BYTES / LBT_CODE_COLUMNS))
			return false;
	return key->nvalues == c->columns.ncolumns;
}

static void
check_all(const Case *c)
{
	bool		told = true;

	for (uint32_t i = 1; i < c->nseparators; i++)
		told = told && is_told(c, &c->separators[i]);
	for (int i = 0; i < MAX_SEARCH_KEYS; i++)
	{
		bool		past = c->keys[i].high;
		uint32_t	found = find_leaf(&c->separated, &c->keys[i], past);
		uint32_t	naive = naive_leaf(&c->columns, c->separators, c->nseparators, &c->keys[i], past);

		if (told && is_told(c, &c->keys[i]) && c->separated.separators.bytes > 0)
			CHECK(c->ample ? found == naive : found <= naive, "leaf %u, not %u", found, naive);
	}
}

/* Bytes of the separators or of the header replaced; keys are looked for all the same. */
static void
overwrite(Input *input, const Case *c)
{
	size_t		bytes;
	uint8_t    *memory = make_separated_model(&c->separated, &bytes);
	LbtModel	model;
	LbtKeyCode	code;

	for (uint32_t n = input_byte(input) % 16; n > 0; n--)
	{
		bool		header = input_byte(input) % 4 == 0;
		size_t		from = header ? 0 : sizeof(LbtModelHeader);
		size_t		room = header ? sizeof(LbtModelHeader) : bytes - from;

		memory[from + (input_byte(input) * 64 + input_byte(input)) % room] = input_byte(input);
	}
	if (lbt_model_open(memory, bytes, &model, &code))
		use_separated_model(&model, &c->columns, c->keys, MAX_SEARCH_KEYS);
	free(memory);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	Input		input = {data, size};
	static Case c;

	read_case(&input, &c);
	check_all(&c);
	overwrite(&input, &c);
	free_separated(&c.separated);
	return 0;
}
