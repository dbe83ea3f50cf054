/*
 * separators_build.c - making separators; see separators.h.
 */
#include "separators.h"

#include "keybytes.h"

/* A leaf's share of the memory, but not less than MIN_BYTES for all. */
#define BYTES_PER_LEAF 32
#define MIN_BYTES (64 * 1024)

/* Separators closer than so many steps share their code with many keys. */
#define CLOSE_STEPS 256

/* Keep them if one in so many is that close. */
#define NEEDED_SHARE 128

uint32_t
lbt_separators_max_bytes(uint32_t nleaves)
{
	uint64_t	bytes = (uint64_t) nleaves * BYTES_PER_LEAF;

	if (bytes > INT32_MAX)
		return INT32_MAX;
	return bytes > MIN_BYTES ? (uint32_t) bytes : MIN_BYTES;
}

/* Does the code hold the whole key, so that almost only equal keys tie? */
static bool
is_whole(const LbtKeyCode *code, int ncolumns)
{
	const LbtKeyDigit *last = &code->digit[code->ndigits - 1];

	return code->ncolumns == ncolumns && last->shift == 0 &&
		(!code->order[ncolumns - 1].bytes || (last->ends && last->span == 0));
}

bool
lbt_separators_needed(const LbtKeyCode *code, int ncolumns, const LbtLeaf *leaves,
					  uint32_t nleaves)
{
	uint64_t	step = code->digit[code->ndigits - 1].weight;
	uint64_t	close = step > UINT64_MAX / CLOSE_STEPS ? UINT64_MAX : step * CLOSE_STEPS;
	uint32_t	n = 0;

	if (is_whole(code, ncolumns < LBT_CODE_COLUMNS ? ncolumns : LBT_CODE_COLUMNS))
		return false;
	for (uint32_t i = 2; i < nleaves; i++)
		n += leaves[i].min_code - leaves[i - 1].min_code < close;
	return n > nleaves / NEEDED_SHARE;
}

/* How much is kept. */
typedef struct Cut
{
	uint32_t	shift;			/* of blocks */
	uint32_t	more;			/* bytes behind those that tell them apart */
	uint32_t	longest;
} Cut;

/* From the best to the smallest; the last ones no longer tell all apart. */
static const Cut cuts[] = {
	{4, LBT_KEY_BYTES, LBT_KEY_BYTES}, {4, 32, LBT_KEY_BYTES}, {4, 16, LBT_KEY_BYTES},
	{5, 16, LBT_KEY_BYTES}, {6, 16, LBT_KEY_BYTES}, {5, 8, LBT_KEY_BYTES},
	{6, 8, LBT_KEY_BYTES}, {6, 4, LBT_KEY_BYTES}, {6, 2, LBT_KEY_BYTES},
	{6, 2, 256}, {6, 2, 128}, {6, 2, 64}, {6, 2, 32}, {6, 2, 16}, {6, 2, 8}
};

#define NCUTS (sizeof(cuts) / sizeof(cuts[0]))

/* What is known of a separator. */
typedef struct Known
{
	uint16_t	length;
	uint16_t	common;			/* with the one before */
} Known;

static LbtKeyBytes
separator_key(const LbtSeparatorKeys *keys, uint32_t leaf, uint8_t *room)
{
	return lbt_key_bytes(keys->order, keys->ncolumns,
						 &keys->values[(size_t) leaf * (size_t) keys->ncolumns],
						 leaf > 0 ? keys->nvalues[leaf] : 0, false, room);
}

/*
 * Measure all; returns how many bytes all but the first leaf's begin with.
 * The first leaf's, which is not looked at, counts as these bytes.
 */
static uint32_t
measure_keys(const LbtSeparatorKeys *keys, uint32_t nleaves, Known *known)
{
	uint8_t		rooms[2][LBT_KEY_BYTES];
	LbtKeyBytes before = {0};
	uint32_t	prefix = nleaves > 2 ? LBT_KEY_BYTES : 0;

	for (uint32_t i = 1; i < nleaves; i++)
	{
		LbtKeyBytes key = separator_key(keys, i, rooms[i & 1]);

		known[i].length = (uint16_t) key.length;
		known[i].common = (uint16_t) lbt_common_bytes(key.bytes, key.length, before.bytes,
													  before.length);
		if (i > 1 && known[i].common < prefix)
			prefix = known[i].common;
		before = key;
	}
	known[0].length = known[0].common = (uint16_t) prefix;
	if (nleaves > 1)
		known[1].common = (uint16_t) prefix;
	return prefix;
}

static bool
begins_block(uint32_t leaf, const Cut *cut)
{
	return (leaf & ((UINT32_C(1) << cut->shift) - 1)) == 0;
}

/* How much of a separator is kept; what is behind *common is written. */
static uint32_t
length_kept(const Known *known, uint32_t nleaves, uint32_t leaf, uint32_t prefix, const Cut *cut,
			uint32_t *common)
{
	uint32_t	length = known[leaf].common;

	if (leaf + 1 < nleaves && known[leaf + 1].common > length)
		length = known[leaf + 1].common;
	length += cut->more;
	if (length > prefix + cut->longest)
		length = prefix + cut->longest;
	if (length > known[leaf].length)
		length = known[leaf].length;
	*common = begins_block(leaf, cut) ? prefix : known[leaf].common;

	/* What the one before has lost is not shared. */
	if (*common > length)
		*common = length;
	return length;
}

static uint32_t
number_bytes(uint32_t n)
{
	return n < 0x80 ? 1 : 2;
}

static uint8_t *
write_number(uint8_t *to, uint32_t n)
{
	if (n >= 0x80)
		*to++ = (uint8_t) (0x80 | n >> 8);
	*to++ = (uint8_t) n;
	return to;
}

/* The bytes that all take with this cut. */
static uint64_t
bytes_kept(const Known *known, uint32_t nleaves, uint32_t prefix, const Cut *cut)
{
	uint64_t	bytes = sizeof(LbtSeparatorsHead) + prefix +
		(((nleaves - 1) >> cut->shift) + UINT64_C(1)) * sizeof(uint32_t);

	for (uint32_t i = 0; i < nleaves; i++)
	{
		uint32_t	common;
		uint32_t	rest = length_kept(known, nleaves, i, prefix, cut, &common) - common;

		bytes += (begins_block(i, cut) ? 0 : number_bytes(common - prefix)) +
			number_bytes(rest << 1) + rest;
	}
	return bytes;
}

size_t
lbt_separators_scratch_bytes(uint32_t nleaves)
{
	return (size_t) nleaves * sizeof(Known);
}

uint32_t
lbt_separators_build(const LbtSeparatorKeys *keys, uint32_t nleaves, void *memory,
					 uint32_t max_bytes, void *scratch, uint32_t *ties)
{
	Known	   *known = scratch;
	LbtSeparatorsHead *head = memory;
	uint32_t   *places = (uint32_t *) (head + 1);
	uint32_t	prefix = measure_keys(keys, nleaves, known);
	uint32_t	length_before = 0;
	uint8_t		room[LBT_KEY_BYTES];
	uint8_t    *to;
	const Cut  *cut = cuts;

	while (bytes_kept(known, nleaves, prefix, cut) > max_bytes)
		if (++cut == cuts + NCUTS)
			return 0;
	head->shift = cut->shift;
	head->prefix_length = prefix;
	to = (uint8_t *) (places + ((nleaves - 1) >> cut->shift) + 1);
	if (prefix > 0)
		memcpy(to, separator_key(keys, 1, room).bytes, prefix);
	to += prefix;
	*ties = 0;
	for (uint32_t i = 0; i < nleaves; i++)
	{
		uint32_t	common;
		uint32_t	length = length_kept(known, nleaves, i, prefix, cut, &common);
		LbtKeyBytes key = separator_key(keys, i, room);

		if (begins_block(i, cut))
			places[i >> cut->shift] = (uint32_t) (to - (uint8_t *) memory);
		else
		{
			to = write_number(to, common - prefix);
			*ties += lbt_leaf_tied(keys->leaves, i) && length == common && length >= length_before;
		}
		length_before = length;
		to = write_number(to, (length - common) << 1 | (key.cut || length < key.length));
		memcpy(to, key.bytes + common, length - common);
		to += length - common;
	}
	return (uint32_t) (to - (uint8_t *) memory);
}
