/*
 * separators.c - finding keys among separators; see separators.h.
 *
 * On the way through a block, what a string shares with the one before tells
 * most about it.  Say the key shares n bytes with a string left of it.  The
 * next string shares with that one
 *
 *     more: the key is right of it, too, and n stays
 *     less: it is right of the key
 *     n:    the bytes that follow decide
 *
 * The memory may change between check and use: each number is read once,
 * through volatile, and checked.
 */
#include "separators.h"

#include "keybytes.h"

/* ---- reading a block ---- */

/* A string on the way through a block. */
typedef struct Walk
{
	const uint8_t *at;			/* after it */
	uint32_t	common;			/* with the one before */
	LbtKeyBytes rest;			/* of it, from there on */
} Walk;

static inline uint32_t
read_number(const LbtSeparators *separators, Walk *walk)
{
	const uint8_t *end = separators->memory + separators->bytes;
	uint32_t	n;

	if (walk->at >= end)
		return 0;
	n = *(const volatile uint8_t *) walk->at++;
	if (n & 0x80 && walk->at < end)
		n = (n & 0x7f) << 8 | *(const volatile uint8_t *) walk->at++;
	return n;
}

static inline void
read_string(const LbtSeparators *separators, Walk *walk, bool whole)
{
	size_t		left;
	uint32_t	length;

	walk->common = whole ? 0 : read_number(separators, walk);
	length = read_number(separators, walk);
	left = (size_t) (separators->memory + separators->bytes - walk->at);
	walk->rest.cut = length & 1;
	walk->rest.bytes = walk->at;
	walk->rest.length = length >> 1 < left ? length >> 1 : (uint32_t) left;
	walk->at += walk->rest.length;
}

/* Begin with a block's first string. */
static inline void
read_first(const LbtSeparators *separators, uint32_t block, Walk *walk)
{
	const volatile uint32_t *places =
		(const volatile uint32_t *) (separators->memory + sizeof(LbtSeparatorsHead));
	uint32_t	place = places[block];

	walk->at = separators->memory + (place < separators->bytes ? place : separators->bytes);
	read_string(separators, walk, true);
}

/*
 * Load the line with this byte, to be read soon.  Processors drop prefetches
 * of pages that their translation buffers do not know.
 */
static inline void
load(const LbtSeparators *separators, const uint8_t *at)
{
	const uint8_t *last = separators->memory + separators->bytes - 1;

	(void) *(const volatile uint8_t *) (at < last ? at : last);
}

/* ---- use ---- */

bool
lbt_separators_open(const void *memory, uint32_t bytes, uint32_t nleaves,
					LbtSeparators *separators)
{
	size_t		prefix_at;

	*separators = (LbtSeparators)
	{
		.memory = memory,.bytes = bytes
	};
	if (bytes == 0)
		return true;
	if (bytes < sizeof(LbtSeparatorsHead))
		return false;
	memcpy(&separators->head, memory, sizeof(LbtSeparatorsHead));
	if (separators->head.shift > LBT_SEPARATORS_MAX_SHIFT)
		return false;
	prefix_at = sizeof(LbtSeparatorsHead) +
		(((nleaves - 1) >> separators->head.shift) + (size_t) 1) * sizeof(uint32_t);
	separators->prefix = separators->memory + prefix_at;
	return prefix_at + separators->head.prefix_length <= bytes;
}

/*
 * Does the key belong right of a separator?  False if that cannot be told.
 * Both start after *common shared bytes, which becomes how many in all.
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

/* The byte in this place; after the end, 0. */
static inline uint8_t
byte_at(const LbtKeyBytes *key, uint32_t at)
{
	return at < key->length ? key->bytes[at] : 0;
}

static inline bool
both_within(uint8_t least, uint8_t most, uint8_t low, uint8_t high)
{
	return least >= low && most <= high;
}

/* So many bytes count to see where between two others a key lies. */
#define PLACES 7

/*
 * Where the key lies between two strings, by bytes as digits of a number.  A
 * digit has 10 or 26 values if all three are decimal digits or letters, else
 * as many as lie between them.
 */
static inline void
interpolate(const LbtKeyBytes *low, const LbtKeyBytes *key, const LbtKeyBytes *high,
			double *fraction)
{
	uint64_t	a = 0;
	uint64_t	k = 0;
	uint64_t	b = 0;

	for (uint32_t i = 0; i < PLACES; i++)
	{
		uint8_t		x = byte_at(low, i);
		uint8_t		y = byte_at(key, i);
		uint8_t		z = byte_at(high, i);
		uint8_t		least = x < y ? x : y;
		uint8_t		most = x < y ? y : x;
		uint64_t	values;

		least = least < z ? least : z;
		most = most < z ? z : most;
		values = (uint64_t) (most - least) + 1;
		if (both_within(least, most, '0', '9'))
		{
			least = '0';
			values = 10;
		}
		else if (both_within(least, most, 'a', 'z') || both_within(least, most, 'A', 'Z'))
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

/* ---- the block ---- */

/* A key on its way to its leaf. */
typedef struct Search
{
	LbtTiedKey *tied;
	LbtKeyBytes key;			/* without what all separators begin with */
	uint32_t	first;			/* the leaf is one of first - 1 .. end - 1 */
	uint32_t	end;
	uint32_t	at;				/* the block looked at */
	Walk		walk;			/* its first string */

	/*
	 * The block is one of lo .. hi - 1, or there is none: until one left of
	 * the key is found, lo is the block before all.  How many bytes their
	 * first strings share with the key.
	 */
	uint32_t	lo;
	uint32_t	hi;
	const uint8_t *low;			/* the first string of lo; till then, memory */
	uint32_t	low_common;
	uint32_t	high_common;
} Search;

/* A key between two strings begins with what these share. */
static inline uint32_t
common_of(const Search *s)
{
	return s->low_common < s->high_common ? s->low_common : s->high_common;
}

/*
 * Choose the block to look at next.  Returns false when the search has ended.
 * (lo may be -1.)
 */
static inline bool
choose_block(Search *s)
{
	s->at = s->hi - (s->hi - s->lo) / 2;
	return s->at < s->hi;
}

/* Read the chosen block's first string; load where it begins to tell more. */
static inline void
look(const LbtSeparators *separators, Search *s)
{
	read_first(separators, s->at, &s->walk);
	load(separators, s->walk.rest.bytes + common_of(s));
}

/* Compare it, and move one side there. */
static inline void
narrow_search(Search *s)
{
	uint32_t	common = common_of(s);
	LbtKeyBytes rest = lbt_rest_of(&s->key, common);
	LbtKeyBytes string = lbt_rest_of(&s->walk.rest, common);

	if (is_right(&rest, &string, s->tied->past, &common))
	{
		s->lo = s->at;
		s->low = s->walk.rest.bytes;
		s->low_common = common;
	}
	else
	{
		s->hi = s->at;
		s->high_common = common;
	}
}

/* ---- in the block ---- */

/* The last string passed, from this byte on; at most PLACES bytes, in room. */
static LbtKeyBytes
string_from(const Walk *passed, uint32_t last, uint32_t from, uint8_t *room)
{
	uint32_t	end = passed[last].common + passed[last].rest.length;
	uint32_t	at = end < from ? from : end - from < PLACES ? end : from + PLACES;
	LbtKeyBytes string = {.bytes = room,.length = at - from};

	/* Each byte is in the last string that does not share it. */
	for (uint32_t i = last; at > from; i--)
		for (; at > from && at > passed[i].common; at--)
			room[at - 1 - from] = byte_at(&passed[i].rest, at - 1 - passed[i].common);
	return string;
}

/*
 * Go through the block found, whose first string is left of the key, to the
 * last leaf whose string is.  Also say where in this leaf the key is, if the
 * next leaf's string tells.
 */
static uint32_t
go_through(const LbtSeparators *separators, const Search *s, uint32_t nleaves)
{
	uint32_t	leaf = s->lo << separators->head.shift;
	uint32_t	end = leaf + (UINT32_C(1) << separators->head.shift);
	uint32_t	common = s->low_common;
	uint32_t	from;			/* here its string and the next one differ */
	uint8_t		room[PLACES];
	LbtKeyBytes low;
	LbtKeyBytes rest;
	LbtKeyBytes high;
	Walk		walk;
	Walk		passed[1 << LBT_SEPARATORS_MAX_SHIFT];	/* first is whole */
	uint32_t	last = 0;

	read_first(separators, s->lo, &walk);
	passed[0] = walk;
	for (; leaf + 1 < end && leaf + 1 < nleaves; leaf++)
	{
		read_string(separators, &walk, false);
		if (walk.common < common)
			break;
		if (walk.common == common)
		{
			rest = lbt_rest_of(&s->key, common);
			if (!is_right(&rest, &walk.rest, s->tied->past, &common))
				break;
		}
		passed[++last] = walk;
	}
	if (leaf + 1 >= nleaves)
		return leaf;
	from = walk.common;
	if (leaf + 1 == end)
	{
		read_first(separators, s->lo + 1, &walk);
		from = lbt_common_bytes(s->key.bytes, s->key.length, walk.rest.bytes, walk.rest.length);
		from = from < common ? from : common;
	}
	low = string_from(passed, last, from, room);
	rest = lbt_rest_of(&s->key, from);
	high = lbt_rest_of(&walk.rest, from - walk.common);
	interpolate(&low, &rest, &high, &s->tied->fraction);
	return leaf;
}

/* ---- keys together ---- */

/* Begin a search; false if the slot is known already or cannot be told. */
static inline bool
begin_search(const LbtSeparators *separators, const LbtLeaf *leaves, uint32_t nleaves,
			 LbtTiedKey *tied, Search *s, uint8_t *room)
{
	uint32_t	shift = separators->head.shift;
	uint32_t	prefix_length = separators->head.prefix_length;
	uint32_t	common;

	/* The tie run begins or, with past, ends at the key's slot. */
	s->first = s->end = tied->slot + 1;
	if (tied->past)
		s->first = lbt_leaf_search(leaves, nleaves, tied->slot, tied->code, false) + 1;
	else
		s->end = lbt_leaf_search(leaves, nleaves, s->first, tied->code, true) + 1;
	if (s->first > s->end)
		return false;
	s->key = lbt_key_bytes(separators->order, separators->ncolumns, tied->values, tied->nvalues,
						   tied->past, room);
	common = lbt_common_bytes(s->key.bytes, s->key.length, separators->prefix, prefix_length);
	if (common < prefix_length)
	{
		bool		right = byte_at(&s->key, common) > separators->prefix[common];

		tied->slot = right ? s->end - 1 : s->first - 1;
		return false;
	}
	s->key = lbt_rest_of(&s->key, prefix_length);
	s->tied = tied;
	s->lo = ((s->first < s->end ? s->first : tied->slot) >> shift) - 1;
	s->hi = ((s->end - 1) >> shift) + 1;
	s->low = separators->memory;
	s->low_common = s->high_common = 0;
	return true;
}

/* So much of a block is likely to be read. */
#define BLOCK_BYTES 384
#define LINE_BYTES 64

void
lbt_separators_find(const LbtSeparators *separators, const LbtLeaf *leaves, uint32_t nleaves,
					LbtTiedKey *keys, int nkeys)
{
	Search		searches[LBT_SEPARATORS_GROUP];
	uint8_t		rooms[LBT_SEPARATORS_GROUP][LBT_MAX_KEY_BYTES];
	uint8_t		going[LBT_SEPARATORS_GROUP];	/* they have no block yet */
	int			nsearches = 0;
	int			ngoing = 0;

	for (int i = 0; i < nkeys; i++)
		if (begin_search(separators, leaves, nleaves, &keys[i], &searches[nsearches], rooms[i]))
			going[ngoing++] = (uint8_t) nsearches++;
	while (ngoing > 0)
	{
		int			n = 0;

		for (int i = 0; i < ngoing; i++)
			if (choose_block(&searches[going[i]]))
				going[n++] = going[i];
		ngoing = n;

		/* Keep these loops short, so that the processor overlaps the loads. */
		for (int i = 0; i < ngoing; i++)
			look(separators, &searches[going[i]]);
		for (int i = 0; i < ngoing; i++)
			narrow_search(&searches[going[i]]);
	}
	for (int i = 0; i < nsearches && nsearches > 1; i++)
		for (uint32_t at = LINE_BYTES; at < BLOCK_BYTES; at += LINE_BYTES)
			load(separators, searches[i].low + at);
	for (int i = 0; i < nsearches; i++)
	{
		const Search *s = &searches[i];
		uint32_t	found = s->low == separators->memory ? 0 :
			go_through(separators, s, nleaves);

		s->tied->slot = found < s->first ? s->first - 1 : found < s->end ? found : s->end - 1;
	}
}
