/*
 * contract_saved.c - saved models: what comes back keeps the contract; see contract_saved.h.
 */
#include "contract_saved.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

const LbtKeyCode one_column = {
	.raw = 1, .ncolumns = 1, .ndigits = 1,
	.column = {{.ndigits = 1}}, .digit = {{.span = UINT64_MAX, .weight = 1}}
};

uint8_t *
encode(const LbtKeyCode *code, const LbtLeaf *leaves, uint32_t nleaves, size_t room, size_t *len)
{
	uint8_t    *out = test_alloc(room);
	uint8_t    *bytes = NULL;

	*len = lbt_saved_encode(out, room, code, leaves, nleaves);
	CHECK(*len <= room, "%zu bytes used of %zu", *len, room);
	if (*len > 0)
		bytes = test_copy(out, *len);
	free(out);
	return bytes;
}

LbtLeaf *
decode(const uint8_t *bytes, size_t len, LbtKeyCode *code, uint32_t nleaves)
{
	uint8_t    *copy = test_copy(bytes, len);
	LbtLeaf    *leaves = test_alloc(nleaves * sizeof(LbtLeaf));
	bool		good = lbt_saved_decode(copy, len, code, leaves, nleaves);

	free(copy);
	if (!good)
	{
		free(leaves);
		return NULL;
	}
	CHECK(lbt_keycode_bytes(code) > 0, "no valid key code");
	CHECK(leaves[0].min_code == 0, "the first code is %llu", (unsigned long long) leaves[0].min_code);
	for (uint32_t i = 0; i < nleaves; i++)
	{
		CHECK(leaves[i].block >= 1 && leaves[i].block < UINT32_MAX, "block %u", leaves[i].block);
		CHECK(leaves[i].recent_buffer == 0, "a buffer hint out of nowhere");
		CHECK(i == 0 || leaves[i].min_code >= leaves[i - 1].min_code, "code %u of %u decreases", i, nleaves);
	}
	return leaves;
}

LbtLeaf *
save(const LbtKeyCode *code, const LbtLeaf *leaves, uint32_t nleaves, size_t room, size_t *len)
{
	uint8_t    *bytes = encode(code, leaves, nleaves, room, len);
	LbtKeyCode	decoded;
	LbtLeaf    *result;
	uint32_t	wrong = 0;

	if (bytes == NULL)
		return NULL;
	result = decode(bytes, *len, &decoded, nleaves);
	CHECK(result != NULL, "%u leaves in %zu bytes cannot be read", nleaves, *len);
	CHECK(memcmp(&decoded, code, lbt_keycode_bytes(code)) == 0, "the key code differs");
	for (uint32_t i = 0; i < nleaves; i++)
		wrong += leaves[i].block - result[i].block > 3;
	CHECK(wrong <= nleaves / 2, "the blocks of %u leaves of %u are distant", wrong, nleaves);
	free(bytes);
	return result;
}
