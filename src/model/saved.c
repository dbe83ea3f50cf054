/*
 * saved.c - encoding and decoding a saved model; see saved.h.
 */
#include "saved.h"

/* Lookups find a leaf from this many to its left, by steps to the right. */
#define NEAR 3

/* The first leaf stands alone, as its code is no key's. */
static uint32_t
slot_of(uint32_t knot, uint32_t nknots, uint32_t nleaves)
{
	if (knot == 0)
		return 0;
	if (knot == nknots - 1)
		return nleaves - 1;
	return 1 + (uint32_t) ((uint64_t) (knot - 1) * (nleaves - 2) / (nknots - 2));
}

/*
 * A leaf between two knots.  Blocks left out are inner pages', at even
 * distances; if they cannot be, the second knot's block is elsewhere.
 */
static LbtLeaf
leaf_between(const LbtLeaf *from, const LbtLeaf *to, uint32_t part, uint32_t whole)
{
	uint32_t	gaps = to->block - from->block - whole;
	LbtLeaf		leaf = {.block = from->block + part};

	if (part == whole)
		return *to;

	/* Rounding never passes to->min_code: a part is short by more. */
	leaf.min_code = from->min_code +
		(uint64_t) ((double) (to->min_code - from->min_code) * part / whole);
	if (to->block > from->block && gaps <= whole)
		leaf.block += (uint32_t) ((uint64_t) gaps * part / whole);
	if (leaf.block < from->block || leaf.block == UINT32_MAX)
		leaf.block = from->block;	/* no file is that large */
	return leaf;
}

/* Does it come back with a distant block, or a code beyond a neighbour's? */
static bool
is_wrong(const LbtLeaf *leaves, uint32_t nleaves, uint32_t slot, const LbtLeaf *saved)
{
	return leaves[slot].block - saved->block > NEAR ||
		(slot > 1 && saved->min_code <= leaves[slot - 1].min_code) ||
		(slot + 1 < nleaves && saved->min_code > leaves[slot + 1].min_code);
}

/*
 * Put the leaves that knots give into leaves; or, with wrong, compare these
 * with them, and count.  False if nobody has written such knots.
 */
static bool
read_knots(const char *in, uint32_t nknots, LbtLeaf *leaves, uint32_t nleaves, uint32_t *wrong)
{
	LbtLeaf		from = {0};
	uint32_t	from_slot = 0;
	uint32_t	slot = 0;

	for (uint32_t i = 0; i < nknots; i++)
	{
		uint32_t	to_slot = slot_of(i, nknots, nleaves);
		LbtLeaf		to;

		memcpy(&to, in + i * sizeof(LbtLeaf), sizeof(LbtLeaf));
		to.recent_buffer = 0;
		to.cut = 0;
		if (to.min_code < from.min_code || to.block < 1 || to.block == UINT32_MAX ||
			(i == 0 && to.min_code > 0))
			return false;
		for (; slot <= to_slot; slot++)
		{
			LbtLeaf		leaf = leaf_between(&from, &to, slot - from_slot, to_slot - from_slot);

			if (wrong == NULL)
				leaves[slot] = leaf;
			else
				*wrong += slot > 0 && is_wrong(leaves, nleaves, slot, &leaf);
		}
		from = to;
		from_slot = to_slot;
	}
	return true;
}

size_t
lbt_saved_encode(void *out, size_t room, const LbtKeyCode *code, const LbtLeaf *leaves,
				 uint32_t nleaves)
{
	const size_t code_bytes = lbt_keycode_bytes(code);
	const size_t max_knots = room > code_bytes ? (room - code_bytes) / sizeof(LbtLeaf) : 0;
	const uint32_t nknots = max_knots < nleaves ? (uint32_t) max_knots : nleaves;
	char	   *knots = (char *) out + code_bytes;
	uint32_t	wrong = 0;

	for (uint32_t i = 2; i < nleaves; i++)
		if (leaves[i].min_code < leaves[i - 1].min_code)
			return 0;
	if (nknots < 2 && nknots < nleaves)
		return 0;
	for (uint32_t i = 0; i < nknots; i++)
	{
		LbtLeaf		knot = leaves[slot_of(i, nknots, nleaves)];

		if (i == 0)
			knot.min_code = 0;
		memcpy(knots + i * sizeof(LbtLeaf), &knot, sizeof(LbtLeaf));
	}
	if (!read_knots(knots, nknots, (LbtLeaf *) leaves, nleaves, &wrong) || wrong > nleaves / 2)
		return 0;
	memcpy(out, code, code_bytes);
	return code_bytes + nknots * sizeof(LbtLeaf);
}

bool
lbt_saved_decode(const void *in, size_t len, LbtKeyCode *code, LbtLeaf *leaves, uint32_t nleaves)
{
	size_t		code_bytes;
	size_t		nknots;

	memset(code, 0, sizeof(*code));
	memcpy(code, in, len < sizeof(*code) ? len : sizeof(*code));
	code_bytes = lbt_keycode_bytes(code);
	if (code_bytes == 0 || code_bytes > len)
		return false;
	nknots = (len - code_bytes) / sizeof(LbtLeaf);
	if (nknots > nleaves || (nknots < 2 && nknots < nleaves))
		return false;
	return read_knots((const char *) in + code_bytes, (uint32_t) nknots, leaves, nleaves, NULL);
}
