/*
 * fuzz_codetree.c - subcodes learned from the input's keys keep the order; and a model with subcodes, some of
 * its bytes overwritten from the input, is refused or harmless.
 */
#include "fuzz_keys.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

#define MAX_SEPARATORS 40
#define MAX_SEARCH_KEYS 6

/* Keys from the input, and the tree of those in front, in order. */
typedef struct Case
{
	KeyColumns	columns;
	KeyBound	separators[MAX_SEPARATORS];
	uint32_t	nseparators;
	KeyBound	keys[MAX_SEARCH_KEYS];
	CodeTree	tree;
} Case;

static void
read_case(Input *input, Case *c)
{
	static Strings strings;
	KeyBound	seen = {.nvalues = 0};
	uint8_t		how = input_byte(input);
	uint32_t	max_bytes = how & 1 ? lbt_codetree_max_bytes(MAX_SEPARATORS) : (uint32_t) how * 8;

	strings.used = 0;
	c->columns = read_columns(input);
	c->nseparators = 1 + input_byte(input) % MAX_SEPARATORS;
	c->separators[0] = (KeyBound) {.nvalues = 0};
	for (uint32_t i = 1; i < c->nseparators; i++)
	{
		c->separators[i] = read_bound(input, &c->columns, &seen, &strings);
		c->separators[i].missing = LBT_MISSING_LOW;
	}
	sort_bounds(&c->columns, c->separators, c->nseparators);
	c->tree = make_code_tree(&c->columns, c->separators, c->nseparators, max_bytes);
	for (int i = 0; i < MAX_SEARCH_KEYS; i++)
		c->keys[i] = read_bound(input, &c->columns, &seen, &strings);
}

static void
check_all(const Case *c)
{
	for (int i = 0; i < MAX_SEARCH_KEYS; i++)
	{
		uint64_t	code = code_in_tree(&c->tree, &c->keys[i]);

		for (int j = 0; j < i; j++)
			check_order(&c->columns, &c->keys[i], code, &c->keys[j], code_in_tree(&c->tree, &c->keys[j]));
		for (uint32_t j = 0; j < c->nseparators; j++)
			check_order(&c->columns, &c->keys[i], code, &c->separators[j], c->tree.leaves[j].min_code);
	}
}

/* Bytes of the tree or of the header replaced; keys are looked for all the same. */
static void
overwrite(Input *input, const Case *c)
{
	size_t		bytes;
	uint8_t    *memory = make_tree_model(&c->tree, &bytes);
	LbtModel	model;

	for (uint32_t n = input_byte(input) % 16; n > 0; n--)
	{
		bool		header = input_byte(input) % 4 == 0;
		size_t		from = header ? 0 : sizeof(LbtModelHeader);
		size_t		room = header ? sizeof(LbtModelHeader) : bytes - from;

		memory[from + (input_byte(input) * 64 + input_byte(input)) % room] = input_byte(input);
	}
	if (lbt_model_open(memory, bytes, &model))
		use_tree_model(&model, &c->columns, c->keys, MAX_SEARCH_KEYS);
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
	free_code_tree(&c.tree);
	return 0;
}
