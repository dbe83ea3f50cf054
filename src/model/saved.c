/*
 * saved.c - encoding and decoding a saved model; see saved.h.
 */
#include "saved.h"

/* As it is in memory: the file is this machine's, and garbage is harmless. */
typedef struct Knot
{
	uint64_t	code;
	uint32_t	slot;
	uint32_t	block;
} Knot;

/*
 * A leaf between two knots.  Blocks left out are inner pages', at even
 * distances; if they cannot be, the second knot's block is elsewhere.
 */
static LbtLeaf
leaf_between(const Knot *from, const Knot *to, uint32_t slot)
{
	uint32_t	part = slot - from->slot;
	uint32_t	whole = to->slot - from->slot;
	uint32_t	gaps = to->block - from->block - whole;
	LbtLeaf		leaf = {.block = from->block + part};

	/* Rounding never passes to->code: a part is short by more. */
	leaf.min_code = from->code + (uint64_t) ((double) (to->code - from->code) * part / whole);
	if (to->block > from->block && gaps <= whole)
		leaf.block += (uint32_t) ((uint64_t) gaps * part / whole);
	if (leaf.block < from->block || leaf.block == UINT32_MAX)
		leaf.block = from->block;	/* no file is that large */
	return leaf;
}

/* Does a run of consecutive blocks begin here? */
static bool
begins_run(const LbtLeaf *leaves, uint32_t slot)
{
	return leaves[slot].block != leaves[slot - 1].block + 1;
}

/*
 * The knot after this one, at most stride leaves on: after whole runs, as gaps
 * at the same distance come back exactly, or after a part of one.  The first
 * leaf stands alone, as its code is no key's.
 */
static uint32_t
next_knot(const LbtLeaf *leaves, uint32_t nleaves, uint32_t at, uint32_t stride)
{
	const bool	in_run = at > 0 && !begins_run(leaves, at);
	uint32_t	end = 0;
	uint32_t	next = at + 1;

	while (at > 0 && next < nleaves - 1 && next - at < stride && !(in_run && end > 0))
	{
		if (begins_run(leaves, next))
			end = next;
		next++;
	}
	return end > 0 && !begins_run(leaves, next) ? end : next;
}

/* Write knots at this stride; returns how many, or 0 if they do not fit. */
static size_t
write_knots(char *out, size_t max_knots, const LbtLeaf *leaves, uint32_t nleaves, uint32_t stride)
{
	size_t		n = 0;

	for (uint32_t at = 0; n < max_knots; at = next_knot(leaves, nleaves, at, stride))
	{
		Knot		knot = {at == 0 ? 0 : leaves[at].min_code, at, leaves[at].block};

		memcpy(out + n++ * sizeof(Knot), &knot, sizeof(Knot));
		if (at == nleaves - 1)
			return n;
	}
	return 0;
}

/* Does it come back with another block, or a code beyond a neighbour's? */
static bool
is_wrong(const LbtLeaf *leaves, uint32_t nleaves, uint32_t slot, const LbtLeaf *saved)
{
	return saved->block != leaves[slot].block || saved->min_code <= leaves[slot - 1].min_code ||
		(slot + 1 < nleaves && saved->min_code > leaves[slot + 1].min_code);
}

/*
 * Put the leaves that knots give into leaves; or, with wrong, compare these
 * with them, and count.  False if nobody has written such knots.
 */
static bool
read_knots(const char *in, size_t nknots, LbtLeaf *leaves, uint32_t nleaves, uint32_t *wrong)
{
	Knot		from = {0};
	uint32_t	slot = 0;

	for (size_t i = 0; i < nknots; i++)
	{
		Knot		to;

		memcpy(&to, in + i * sizeof(Knot), sizeof(Knot));
		if (to.slot >= nleaves || to.code < from.code || to.block < 1 || to.block == UINT32_MAX ||
			(i == 0 ? to.slot > 0 || to.code > 0 : to.slot <= from.slot))
			return false;
		for (; slot <= to.slot; slot++)
		{
			LbtLeaf		leaf = {.min_code = to.code,.block = to.block};

			if (slot < to.slot)
				leaf = leaf_between(&from, &to, slot);
			if (wrong == NULL)
				leaves[slot] = leaf;
			else
				*wrong += slot > 1 && is_wrong(leaves, nleaves, slot, &leaf);
		}
		from = to;
	}
	return slot == nleaves;
}

size_t
lbt_saved_encode(void *out, size_t room, const LbtKeyCode *code, const LbtLeaf *leaves,
				 uint32_t nleaves)
{
	const size_t code_bytes = lbt_keycode_bytes(code);
	const size_t max_knots = room > code_bytes ? (room - code_bytes) / sizeof(Knot) : 0;
	char	   *knots = (char *) out + code_bytes;
	size_t		n = 0;
	uint32_t	wrong = 0;

	for (uint32_t i = 2; i < nleaves; i++)
		if (leaves[i].min_code < leaves[i - 1].min_code)
			return 0;
	if (max_knots == 0)
		return 0;
	for (uint64_t stride = 1 + nleaves / max_knots; n == 0 && stride <= UINT64_C(2) * nleaves;
		 stride += stride / 4 + 1)
		n = write_knots(knots, max_knots, leaves, nleaves, (uint32_t) stride);
	if (n == 0 || !read_knots(knots, n, (LbtLeaf *) leaves, nleaves, &wrong) ||
		wrong > nleaves / 2)
		return 0;
	memcpy(out, code, code_bytes);
	return code_bytes + n * sizeof(Knot);
}

bool
lbt_saved_decode(const void *in, size_t len, LbtKeyCode *code, LbtLeaf *leaves, uint32_t nleaves)
{
	size_t		code_bytes;

	memset(code, 0, sizeof(*code));
	memcpy(code, in, len < sizeof(*code) ? len : sizeof(*code));
	code_bytes = lbt_keycode_bytes(code);
	if (code_bytes == 0 || code_bytes > len || (len - code_bytes) % sizeof(Knot) != 0)
		return false;
	return read_knots((const char *) in + code_bytes, (len - code_bytes) / sizeof(Knot), leaves,
					  nleaves, NULL);
}
