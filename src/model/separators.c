/*
 * separators.c - keeping separators, and finding keys among them; see separators.h.
 *
 * Strings are front-coded in blocks:
 *
 *     Head | where each block begins | what all begin with | block 0: string 0, what is new in 1, 2, ... | block 1 | ...
 *
 *     "usr/bin/apt"   as a whole         length, bytes
 *     "usr/bin/ar"    9, "r"             bytes in common with the one before, length of the rest, the rest
 *     "usr/lib/a"     4, "lib/a"
 *
 * What is in common with the one before tells on the way through a block most of what there is to know of a string.  With
 * the n bytes that the key has in common with a string left of it,
 *
 *     the next one has more in common with that one: the key is right of it, too, and n stays,
 *     it has less: it is right of the key,
 *     it has as much: the bytes that follow decide.
 *
 * A number is a byte, or two if the first one's highest bit is set.  Each is read once, through volatile, and checked: the
 * memory may change between a check and the use.
 */
#include "separators.h"

#include "keybytes.h"

#include <string.h>

/* A leaf's share of the memory, but not less than MIN_BYTES for all. */
#define BYTES_PER_LEAF 32
#define MIN_BYTES (64 * 1024)

/* No string that is cut is longer, if nothing else helps; and this again halved, until it does. */
#define LONGEST_CUT 256
#define SHORTEST_CUT 8

/* Separators closer than so many steps of the code share theirs with many keys. */
#define CLOSE_STEPS 256

/* They are kept where one in so many is that close. */
#define NEEDED_SHARE 128

typedef struct Head
{
	uint32_t	shift;			/* a block has so many strings: 1 << shift */
	uint32_t	nblocks;
	uint32_t	prefix;			/* bytes that all but the first leaf's begin
								 * with; not in the blocks */
} Head;

#define MAX_SHIFT 6

/* As much of a block as is likely to be looked at. */
#define PREFETCH_BYTES 256

/* ---- reading a block ---- */

/* A string on the way through a block. */
typedef struct Walk
{
	const uint8_t *at;			/* behind it */
	const uint8_t *end;			/* of the memory */
	uint32_t	common;			/* with the one before */
	LbtKeyBytes rest;			/* of it, from there on */
} Walk;

static inline uint32_t
read_number(Walk *walk)
{
	uint32_t	n;

	if (walk->at >= walk->end)
		return 0;
	n = *(const volatile uint8_t *) walk->at++;
	if (n & 0x80 && walk->at < walk->end)
		n = (n & 0x7f) << 8 | *(const volatile uint8_t *) walk->at++;
	return n;
}

static inline void
read_string(Walk *walk, bool whole)
{
	uint32_t	length;

	walk->common = whole ? 0 : read_number(walk);
	length = read_number(walk);
	walk->rest.cut = length & 1;
	length >>= 1;
	if (length > (size_t) (walk->end - walk->at))
		length = (uint32_t) (walk->end - walk->at);
	walk->rest.bytes = walk->at;
	walk->rest.length = length;
	walk->at += length;
}

/* Begin with a block's first string. */
static inline void
read_block(const LbtSeparators *s, const Head *head, uint32_t block, Walk *walk)
{
	const volatile uint32_t *places = (const volatile uint32_t *) (s->memory + sizeof(Head));
	uint32_t	place = block < head->nblocks ? places[block] : 0;

	walk->at = (const uint8_t *) s->memory + (place < s->bytes ? place : s->bytes);
	walk->end = (const uint8_t *) s->memory + s->bytes;
	read_string(walk, true);
}

/* False when this is no head of separators. */
static inline bool
read_head(const LbtSeparators *s, Head *head)
{
	const volatile Head *shared = (const volatile Head *) s->memory;

	head->shift = shared->shift;
	head->nblocks = shared->nblocks;
	head->prefix = shared->prefix;
	return head->shift <= MAX_SHIFT && head->nblocks <= (s->bytes - sizeof(Head)) / sizeof(uint32_t) &&
		head->prefix <= s->bytes - sizeof(Head) - head->nblocks * sizeof(uint32_t);
}

/* ---- use ---- */

bool
lbt_separators_open(const void *memory, uint32_t bytes, LbtSeparators *separators)
{
	Head		head;

	separators->memory = memory;
	separators->bytes = bytes;
	separators->ncolumns = 0;
	return bytes == 0 || (bytes >= sizeof(Head) && read_head(separators, &head));
}

void
lbt_separators_set_columns(LbtSeparators *separators, const LbtColumnOrder *order, int ncolumns)
{
	separators->ncolumns = ncolumns < LBT_CODE_COLUMNS ? ncolumns : LBT_CODE_COLUMNS;
	memcpy(separators->order, order, sizeof(LbtColumnOrder) * (size_t) separators->ncolumns);
}

/*
 * Does the key belong right of a separator?  Not if that cannot be told.  Both from *common bytes on that they have in
 * common, which becomes how many these are in all.
 */
static inline bool
is_right(const LbtKeyBytes *key, const LbtKeyBytes *separator, bool past, uint32_t *common)
{
	uint32_t	n = lbt_common_bytes(key->bytes, key->length, separator->bytes, separator->length);

	*common += n;
	if (n < separator->length)
		return n < key->length && key->bytes[n] > separator->bytes[n];
	return !separator->cut && (n < key->length || (past && !key->cut));
}

/* The byte in this place; behind the end, 0. */
static inline uint8_t
byte_at(const LbtKeyBytes *key, uint32_t at)
{
	return at < key->length ? key->bytes[at] : 0;
}

static inline bool
all_within(uint8_t low, uint8_t high, uint8_t from, uint8_t to)
{
	return low >= from && high <= to;
}

/* So many bytes count to see where between two others a key lies. */
#define PLACES 7

/*
 * Where the key lies between two strings that differ from this byte on; so many bytes are looked at.  They are digits of a
 * number: of so many values as decimal digits or letters have, if they are that, and otherwise as can be seen to be in
 * use.  What is the same in all three, but for decimal digits, is so in most keys between ("/product-details/"), and does
 * not count.
 */
static inline void
interpolate(const LbtKeyBytes *low, const LbtKeyBytes *key, const LbtKeyBytes *high, uint32_t look_at, double *fraction)
{
	uint32_t	places = 0;

	uint64_t	a = 0;
	uint64_t	k = 0;
	uint64_t	b = 0;

	for (uint32_t i = 0; places < PLACES && i < look_at; i++)
	{
		uint8_t		x = byte_at(low, i);
		uint8_t		y = byte_at(key, i);
		uint8_t		z = byte_at(high, i);
		uint8_t		least = x < y ? x : y;
		uint8_t		most = x < y ? y : x;
		uint64_t	values;

		least = least < z ? least : z;
		most = most < z ? z : most;
		if (look_at > PLACES && least == most && !all_within(least, most, '0', '9'))
			continue;
		places++;
		values = (uint64_t) (most - least) + 1;
		if (all_within(least, most, '0', '9'))
		{
			least = '0';
			values = 10;
		}
		else if (all_within(least, most, 'a', 'z') || all_within(least, most, 'A', 'Z'))
		{
			least = least >= 'a' ? 'a' : 'A';
			values = 26;
		}
		a = a * values + x - least;
		k = k * values + y - least;
		b = b * values + z - least;
	}
	if (a < b)
		*fraction = k <= a ? 0.0 : k >= b ? 1.0 : (double) (k - a) / (double) (b - a);
}

/* A leaf's string from this byte on, as far as it is looked at; in room, PLACES bytes of it. */
static LbtKeyBytes
string_from(const LbtSeparators *s, const Head *head, uint32_t leaf, uint32_t from, uint8_t *room)
{
	uint32_t	block = leaf >> head->shift;
	uint32_t	end;
	Walk		walk;

	read_block(s, head, block, &walk);
	for (uint32_t i = block << head->shift;; i++)
	{
		end = walk.common + walk.rest.length;
		for (uint32_t at = walk.common > from ? walk.common : from; at < end && at - from < PLACES; at++)
			room[at - from] = walk.rest.bytes[at - walk.common];
		if (i == leaf)
			break;
		read_string(&walk, false);
	}
	end = end > from ? end - from : 0;
	return (LbtKeyBytes)
	{
		.bytes = room,.length = end < PLACES ? end : PLACES
	};
}

/*
 * On the way through a block from its first string, which is left of the key and has common bytes in common with it: the
 * last leaf whose string is.  And where in this leaf the key is, if the next leaf's string tells.
 */
static uint32_t
go_through(const LbtSeparators *s, const Head *head, uint32_t block, uint32_t nleaves, const LbtKeyBytes *key, bool past,
		   uint32_t common, double *fraction)
{
	uint32_t	leaf = block << head->shift;
	uint32_t	end = leaf + (UINT32_C(1) << head->shift);
	uint32_t	from;			/* here its string and the next one differ */
	uint8_t		room[PLACES];
	LbtKeyBytes low;
	LbtKeyBytes rest;
	LbtKeyBytes high;
	Walk		walk;

	read_block(s, head, block, &walk);
	for (; leaf + 1 < end && leaf + 1 < nleaves; leaf++)
	{
		read_string(&walk, false);
		if (walk.common < common)
			break;
		if (walk.common == common)
		{
			rest = lbt_rest_of(key, common);
			if (!is_right(&rest, &walk.rest, past, &common))
				break;
		}
	}
	if (leaf + 1 >= nleaves)
		return leaf;
	from = walk.common;
	if (leaf + 1 == end)
	{
		read_block(s, head, block + 1, &walk);
		from = lbt_common_bytes(key->bytes, key->length, walk.rest.bytes, walk.rest.length);
		from = from < common ? from : common;
	}
	low = string_from(s, head, leaf, from, room);
	rest = lbt_rest_of(key, from);
	high = lbt_rest_of(&walk.rest, from - walk.common);
	interpolate(&low, &rest, &high, PLACES, fraction);
	return leaf;
}

/* Is the key left of all that begins as separators do (-1), one of these (0) or right of them (1)? */
static inline int
beside_prefix(const LbtSeparators *s, const Head *head, const LbtKeyBytes *key)
{
	const uint8_t *prefix = (const uint8_t *) s->memory + sizeof(Head) + head->nblocks * sizeof(uint32_t);
	uint32_t	n = lbt_common_bytes(key->bytes, key->length, prefix, head->prefix);

	if (n == head->prefix)
		return 0;
	return n == key->length || key->bytes[n] < prefix[n] ? -1 : 1;
}

#define NOT_RIGHT UINT32_MAX

/* Blocks between which the one that is looked for lies, and the first strings of these two. */
typedef struct Between
{
	uint32_t	lo;
	uint32_t	hi;
	LbtKeyBytes low;			/* left of the key */
	LbtKeyBytes high;			/* right of it; of length 0: not known */
	uint32_t	low_common;		/* bytes that it has in common with the key */
	uint32_t	high_common;
} Between;

/* What is between two strings begins with what both do. */
static inline uint32_t
common_of(const Between *b)
{
	return b->low_common < b->high_common ? b->low_common : b->high_common;
}

/* Look at a block, and move one side there. */
static inline void
narrow(const LbtSeparators *s, const Head *head, uint32_t block, const LbtKeyBytes *key, bool past, Between *b)
{
	uint32_t	common = common_of(b);
	LbtKeyBytes rest = lbt_rest_of(key, common);
	LbtKeyBytes string;
	Walk		walk;

	read_block(s, head, block, &walk);
	string = lbt_rest_of(&walk.rest, common);
	if (is_right(&rest, &string, past, &common))
	{
		b->lo = block;
		b->low = walk.rest;
		b->low_common = common;
	}
	else
	{
		b->hi = block;
		b->high = walk.rest;
		b->high_common = common;
	}
}

/* To guess a block, more bytes are looked at: between the two lie more keys, with groups of their own. */
#define LOOK_AT 64

/* The block, between the two, at whose beginning the key would be if keys were even. */
static inline uint32_t
guess_block(const Between *b, const LbtKeyBytes *key)
{
	uint32_t	common = common_of(b);
	LbtKeyBytes low = lbt_rest_of(&b->low, common);
	LbtKeyBytes rest = lbt_rest_of(key, common);
	LbtKeyBytes high = lbt_rest_of(&b->high, common);
	double		fraction = 0.5;

	interpolate(&low, &rest, &high, rest.length < LOOK_AT ? rest.length : LOOK_AT, &fraction);
	return b->lo + 1 + (uint32_t) (fraction * (b->hi - b->lo - 2));
}

/* So many blocks are halved; among more, a guess is made first. */
#define FEW_BLOCKS 4

/* Guess a block, and go away from it, in growing steps, until the key is between two of them. */
static void
narrow_by_guess(const LbtSeparators *s, const Head *head, const LbtKeyBytes *key, bool past, Between *b)
{
	uint32_t	at = guess_block(b, key);
	bool		right;

	narrow(s, head, at, key, past, b);
	right = b->lo == at;
	for (uint32_t step = 1; b->hi - b->lo > step; step *= 8)
	{
		at = right ? b->lo + step : b->hi - step;
		narrow(s, head, at, key, past, b);
		if (right != (b->lo == at))
			break;
	}
}

/*
 * The last block from this one to that whose first string is left of the key, and how many bytes the two have in common:
 * NOT_RIGHT if there is none.
 */
static uint32_t
find_block(const LbtSeparators *s, const Head *head, uint32_t lo, uint32_t last, const LbtKeyBytes *key, bool past,
		   uint32_t *common)
{
	Between		b = {.lo = last + 1,.hi = last + 1};

	/*
	 * The first strings of this block and of the one behind the last are most
	 * likely of other codes, and tell little of those in between.
	 */
	if (last - lo > FEW_BLOCKS)
	{
		narrow(s, head, lo + 1, key, past, &b);
		if (b.lo == lo + 1)
			narrow(s, head, last, key, past, &b);
	}
	if (b.lo > last)
	{
		narrow(s, head, lo, key, past, &b);
		*common = NOT_RIGHT;
		if (b.lo != lo)
			return lo;
	}
	if (b.hi - b.lo > FEW_BLOCKS && b.high.length > 0)
		narrow_by_guess(s, head, key, past, &b);
	while (b.hi - b.lo > 1)
		narrow(s, head, b.lo + (b.hi - b.lo) / 2, key, past, &b);
	*common = b.low_common;
	return b.lo;
}

void
lbt_separators_find(const LbtSeparators *separators, const LbtLeaf *leaves, uint32_t nleaves,
					const LbtTiedKey *tied, uint32_t *slot, double *fraction)
{
	uint32_t	first;
	uint32_t	end;
	int			side;
	uint32_t	block;
	uint32_t	found;
	uint32_t	common = 0;
	uint8_t		room[LBT_KEY_BYTES];
	LbtKeyBytes key;
	Head		head;

	if (tied->past)
	{
		first = lbt_leaf_search(leaves, nleaves, *slot, tied->code, false) + 1;
		end = *slot + 1;
	}
	else
	{
		first = *slot + 1;
		end = lbt_leaf_search(leaves, nleaves, first, tied->code, true) + 1;
	}
	if (first > end || end > nleaves || separators->ncolumns == 0 || !read_head(separators, &head))
		return;
	key = lbt_key_bytes(separators->order, separators->ncolumns, tied->values, tied->nvalues, tied->past, room);
	side = beside_prefix(separators, &head, &key);
	if (side != 0)
	{
		*slot = side < 0 ? first - 1 : end - 1;
		return;
	}
	key = lbt_rest_of(&key, head.prefix);
	block = find_block(separators, &head, (first < end ? first : *slot) >> head.shift, (end - 1) >> head.shift, &key, tied->past, &common);
	if (common == NOT_RIGHT)
	{
		*slot = first - 1;
		return;
	}
	found = go_through(separators, &head, block, nleaves, &key, tied->past, common, fraction);
	*slot = found < first ? first - 1 : found < end ? found : end - 1;
}

void
lbt_separators_prefetch(const LbtSeparators *separators, uint32_t slot, bool past, int round)
{
	const volatile uint32_t *places = (const volatile uint32_t *) (separators->memory + sizeof(Head));
	Head		head;
	uint32_t	block;

	if (!read_head(separators, &head))
		return;
	block = (past ? slot : slot + 1) >> head.shift;
	if (block >= head.nblocks)
		return;
	if (round == 0)
		__builtin_prefetch((const void *) &places[block]);
	else
	{
		uint32_t	place = places[block];

		if (place >= separators->bytes)
			return;
		for (uint32_t at = 0; at < PREFETCH_BYTES; at += 64)
			__builtin_prefetch(separators->memory + place + at);
	}
	/* GCC 12 drops calls of functions that do nothing but prefetch. */
	__asm__ __volatile__("");
}

uint32_t
lbt_separators_ties(const LbtSeparators *separators, const LbtLeaf *leaves, uint32_t nleaves)
{
	uint32_t	ties = 0;
	uint32_t	length = 0;
	Head		head;
	Walk		walk = {0};

	if (separators->bytes == 0 || !read_head(separators, &head))
		return lbt_leaf_ties(leaves, nleaves);
	for (uint32_t i = 0; i < nleaves; i++)
	{
		bool		whole = (i & ((UINT32_C(1) << head.shift) - 1)) == 0;

		if (whole)
			read_block(separators, &head, i >> head.shift, &walk);
		else
			read_string(&walk, false);

		/*
		 * Of a block's first string nothing says what it shares with the one
		 * before.
		 */
		ties += !whole && lbt_leaf_tied(leaves, i) && walk.rest.length == 0 && walk.common >= length;
		length = walk.common + walk.rest.length;
	}
	return ties;
}

/* ---- making them ---- */

uint32_t
lbt_separators_max_bytes(uint32_t nleaves)
{
	uint64_t	bytes = (uint64_t) nleaves * BYTES_PER_LEAF;

	if (bytes > INT32_MAX)
		return INT32_MAX;
	return bytes > MIN_BYTES ? (uint32_t) bytes : MIN_BYTES;
}

/* Is all of a key in its code, so that keys tie that are equal, and hardly any others? */
static bool
is_whole(const LbtKeyCode *code, int ncolumns)
{
	const LbtKeyDigit *last = &code->digit[code->ndigits - 1];

	return code->ncolumns == ncolumns && last->shift == 0 &&
		(!code->order[ncolumns - 1].bytes || (last->ends && last->span == 0));
}

bool
lbt_separators_needed(const LbtKeyCode *code, int ncolumns, const LbtLeaf *leaves, uint32_t nleaves)
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
	uint32_t	more;			/* bytes behind those that tell neighbours
								 * apart */
	uint32_t	longest;
} Cut;

/* From the best to the smallest; a last one is made of that. */
static const Cut cuts[] = {
	{4, LBT_KEY_BYTES, LBT_KEY_BYTES}, {4, 32, LBT_KEY_BYTES}, {4, 16, LBT_KEY_BYTES}, {5, 16, LBT_KEY_BYTES}, {6, 16, LBT_KEY_BYTES},
	{5, 8, LBT_KEY_BYTES}, {6, 8, LBT_KEY_BYTES}, {6, 4, LBT_KEY_BYTES}, {6, 2, LBT_KEY_BYTES}
};

#define NCUTS (sizeof(cuts) / sizeof(cuts[0]))

/* What is known of a separator. */
typedef struct Known
{
	uint16_t	length;
	uint16_t	common;			/* with the one before */
} Known;

/* From this byte on. */
static LbtKeyBytes
separator_key(const LbtSeparatorKeys *keys, uint32_t leaf, uint32_t from, uint8_t *room)
{
	LbtKeyBytes key = lbt_key_bytes(keys->order, keys->ncolumns, &keys->values[(size_t) leaf * (size_t) keys->ncolumns],
									leaf > 0 ? keys->nvalues[leaf] : 0, false, room);

	return lbt_rest_of(&key, from);
}

/* Take the measure of all separators.  Returns how many bytes all begin with, which then do not count. */
static uint32_t
measure(const LbtSeparatorKeys *keys, uint32_t nleaves, Known *known)
{
	uint8_t		rooms[2][LBT_KEY_BYTES];
	LbtKeyBytes before = {0};
	uint32_t	prefix = nleaves > 2 ? LBT_KEY_BYTES : 0;

	for (uint32_t i = 0; i < nleaves; i++)
	{
		LbtKeyBytes key = separator_key(keys, i, 0, rooms[i & 1]);

		known[i].length = (uint16_t) key.length;
		known[i].common = (uint16_t) lbt_common_bytes(key.bytes, key.length, before.bytes, before.length);
		if (i > 1 && known[i].common < prefix)
			prefix = known[i].common;
		before = key;
	}
	for (uint32_t i = 1; i < nleaves; i++)
	{
		known[i].length = (uint16_t) (known[i].length - prefix);
		if (i > 1)
			known[i].common = (uint16_t) (known[i].common - prefix);
	}
	return prefix;
}

static bool
begins_block(uint32_t leaf, const Cut *cut)
{
	return (leaf & ((UINT32_C(1) << cut->shift) - 1)) == 0;
}

/* How much of a separator is kept, and how much of that is written: behind *common. */
static uint32_t
length_kept(const Known *known, uint32_t nleaves, uint32_t leaf, const Cut *cut, uint32_t *common)
{
	uint32_t	length = known[leaf].common;

	if (leaf + 1 < nleaves && known[leaf + 1].common > length)
		length = known[leaf + 1].common;
	length += cut->more;
	if (length > cut->longest)
		length = cut->longest;
	if (length > known[leaf].length)
		length = known[leaf].length;
	*common = begins_block(leaf, cut) ? 0 : known[leaf].common;

	/* What the one before has lost is not in common. */
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
	uint64_t	bytes = sizeof(Head) + prefix + (((nleaves - 1) >> cut->shift) + UINT64_C(1)) * sizeof(uint32_t);

	for (uint32_t i = 0; i < nleaves; i++)
	{
		uint32_t	common;
		uint32_t	rest = length_kept(known, nleaves, i, cut, &common) - common;

		bytes += (begins_block(i, cut) ? 0 : number_bytes(common)) + number_bytes(rest << 1) + rest;
	}
	return bytes;
}

/* As much of each as fits; false when nothing does. */
static bool
choose_cut(const Known *known, uint32_t nleaves, uint32_t prefix, uint64_t room, Cut *cut)
{
	for (size_t i = 0; i < NCUTS; i++)
	{
		*cut = cuts[i];
		if (bytes_kept(known, nleaves, prefix, cut) <= room)
			return true;
	}
	for (cut->longest = LONGEST_CUT; cut->longest >= SHORTEST_CUT; cut->longest /= 2)
		if (bytes_kept(known, nleaves, prefix, cut) <= room)
			return true;
	return false;
}

size_t
lbt_separators_scratch_bytes(uint32_t nleaves)
{
	return (size_t) nleaves * sizeof(Known);
}

uint32_t
lbt_separators_build(const LbtSeparatorKeys *keys, uint32_t nleaves, void *memory, uint32_t max_bytes, void *scratch)
{
	Known	   *known = scratch;
	Head	   *head = memory;
	uint32_t   *places = (uint32_t *) (head + 1);
	uint32_t	prefix = measure(keys, nleaves, known);
	uint8_t		room[LBT_KEY_BYTES];
	uint8_t    *to;
	Cut			cut;

	if (nleaves == 0 || !choose_cut(known, nleaves, prefix, max_bytes, &cut))
		return 0;
	head->shift = cut.shift;
	head->nblocks = ((nleaves - 1) >> cut.shift) + 1;
	head->prefix = prefix;
	to = (uint8_t *) (places + head->nblocks);
	if (prefix > 0)
		memcpy(to, separator_key(keys, 1, 0, room).bytes, prefix);
	to += prefix;
	for (uint32_t i = 0; i < nleaves; i++)
	{
		uint32_t	common;
		uint32_t	length = length_kept(known, nleaves, i, &cut, &common);
		LbtKeyBytes key = separator_key(keys, i, prefix, room);

		if (begins_block(i, &cut))
			places[i >> cut.shift] = (uint32_t) (to - (uint8_t *) memory);
		else
			to = write_number(to, common);
		to = write_number(to, (length - common) << 1 | (key.cut || length < key.length));
		memcpy(to, key.bytes + common, length - common);
		to += length - common;
	}
	return (uint32_t) (to - (uint8_t *) memory);
}
