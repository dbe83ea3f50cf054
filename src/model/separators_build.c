/*
 * separators_build.c - making separators; see separators.h.
 */
#include "separators.h"

#include "keybytes.h"

/* A leaf's share of the memory, but not less than MIN_BYTES for all. */
#define BYTES_PER_LEAF 32
#define MIN_BYTES (64 * 1024)

/* Separators closer than this many steps share their code with many keys. */
#define CLOSE_STEPS 256

/* Keep them if one in this many is that close. */
#define NEEDED_SHARE 128

uint32_t
lbt_separators_max_bytes(uint32_t nleaves)
{
	uint64_t	bytes = (uint64_t) nleaves * BYTES_PER_LEAF;

	return bytes > INT32_MAX ? INT32_MAX : bytes > MIN_BYTES ? (uint32_t) bytes : MIN_BYTES;
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
	uint32_t	more;			/* bytes after those that tell them apart */
	uint32_t	longest;
} Cut;

#define ALL LBT_MAX_KEY_BYTES

/* From the best to the smallest; the last ones no longer tell all apart. */
static const Cut cuts[] = {
	{4, ALL, ALL}, {4, 32, ALL}, {4, 16, ALL}, {5, 16, ALL}, {6, 16, ALL}, {5, 8, ALL},
	{6, 8, ALL}, {6, 4, ALL}, {6, 2, ALL}, {6, 2, 256}, {6, 2, 128}, {6, 2, 64}, {6, 2, 32},
	{6, 2, 16}, {6, 2, 8}
};

#define NCUTS (sizeof(cuts) / sizeof(cuts[0]))

static LbtKeyBytes
separator_key(const LbtSeparatorKeys *keys, uint32_t leaf, uint8_t *room)
{
	return lbt_key_bytes(keys->order, keys->ncolumns,
						 &keys->values[(size_t) leaf * (size_t) keys->ncolumns],
						 leaf > 0 ? keys->nvalues[leaf] : 0, false, room);
}

/* What all but the first leaf's begin with. */
static LbtKeyBytes
find_prefix(const LbtSeparatorKeys *keys, uint32_t nleaves, uint8_t *room)
{
	LbtKeyBytes prefix = separator_key(keys, nleaves > 1 ? 1 : 0, room);
	uint8_t		room_of_key[LBT_MAX_KEY_BYTES];

	for (uint32_t i = 2; i < nleaves; i++)
	{
		LbtKeyBytes key = separator_key(keys, i, room_of_key);

		prefix.length = lbt_common_bytes(prefix.bytes, prefix.length, key.bytes, key.length);
	}
	prefix.cut = false;
	return prefix;
}

static uint8_t *
write_number(uint8_t *to, uint32_t n)
{
	if (n >= 0x80)
		*to++ = (uint8_t) (0x80 | n >> 8);
	*to++ = (uint8_t) n;
	return to;
}

/* The most bytes of the two numbers in front of a string. */
#define NUMBERS_BYTES 4

/* lbt_separators_build() with this cut; the first leaf's is the prefix. */
static uint32_t
write_separators(const LbtSeparatorKeys *keys, uint32_t nleaves, const LbtKeyBytes *prefix,
				 const Cut *cut, uint8_t *memory, uint32_t max_bytes)
{
	LbtSeparatorsHead *head = (LbtSeparatorsHead *) memory;
	uint32_t   *places = (uint32_t *) (head + 1);
	uint64_t	nblocks = ((nleaves - 1) >> cut->shift) + UINT64_C(1);
	uint64_t	at = sizeof(*head) + nblocks * sizeof(*places);
	uint8_t		rooms[2][LBT_MAX_KEY_BYTES];
	LbtKeyBytes key = *prefix;
	uint32_t	common = prefix->length;	/* with the one before */
	uint8_t    *to = memory + at;

	if (at + prefix->length > max_bytes)
		return 0;
	head->shift = cut->shift;
	head->prefix_length = prefix->length;
	memcpy(to, prefix->bytes, prefix->length);
	to += prefix->length;
	for (uint32_t i = 0; i < nleaves; i++)
	{
		bool		begins_block = (i & ((UINT32_C(1) << cut->shift) - 1)) == 0;
		LbtKeyBytes next = separator_key(keys, i + 1 < nleaves ? i + 1 : 0, rooms[i & 1]);
		uint32_t	next_common = lbt_common_bytes(key.bytes, key.length, next.bytes, next.length);
		uint32_t	length = (common > next_common ? common : next_common) + cut->more;
		uint32_t	shared = begins_block ? prefix->length : common;

		if (length > prefix->length + cut->longest)
			length = prefix->length + cut->longest;
		if (length > key.length)
			length = key.length;
		if (shared > length)
			shared = length;	/* the one before has lost the rest */
		if (length - shared + NUMBERS_BYTES > max_bytes - (size_t) (to - memory))
			return 0;
		if (begins_block)
			places[i >> cut->shift] = (uint32_t) (to - memory);
		else
			to = write_number(to, shared - prefix->length);
		to = write_number(to, (length - shared) << 1 | (key.cut || length < key.length));
		memcpy(to, key.bytes + shared, length - shared);
		to += length - shared;
		key = next;
		common = next_common;
	}
	return (uint32_t) (to - memory);
}

uint32_t
lbt_separators_build(const LbtSeparatorKeys *keys, uint32_t nleaves, void *memory,
					 uint32_t max_bytes)
{
	uint8_t		room[LBT_MAX_KEY_BYTES];
	LbtKeyBytes prefix = find_prefix(keys, nleaves, room);
	uint32_t	bytes = 0;

	for (size_t i = 0; bytes == 0 && i < NCUTS; i++)
		bytes = write_separators(keys, nleaves, &prefix, &cuts[i], memory, max_bytes);
	return bytes;
}
