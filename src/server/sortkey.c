/*
 * sortkey.c - sort keys, by the server's functions if it has them.
 *
 *     the provider's  weights of the first level | 01 | of the second | 01 ...
 *     ours            weights of the first level
 *
 * Those of plain characters are known, and put together without asking the
 * provider: printable ASCII and, in UTF-8, characters of two bytes that take a
 * place of their own (Latin with accents, Greek, Cyrillic, ...).
 */
#include "server/sortkey.h"

#include "catalog/pg_collation.h"
#include "mb/pg_wchar.h"
#include "server/compat.h"
#include "utils/memutils.h"
#include "utils/pg_locale.h"
#if PG_VERSION_NUM < 160000 && defined(USE_ICU)
#include <unicode/ucol.h>
#endif

int			lbt_debug_sort_keys = LBT_SORT_KEYS_TRUE;
LbtProvided lbt_sort_keys_provided = {0, 0};

/* Providers give whole sort keys only: memory for one, kept for the next. */
static char *whole = NULL;
static Size whole_size = 0;

/* Sort keys are a few times as long as their text. */
#define BYTES_A_CHARACTER 4
#define LEAST_SIZE 1024

/*
 * What lies behind so much of a text is not worth its time.  (Search arguments
 * may be of any length, and ICU may need the whole key's memory.)  The price:
 * texts that agree so far may get keys out of order.
 */
#define MAX_TEXT 1024

static void
need_size(Size size)
{
	if (size <= whole_size)
		return;
	size = Max(size, LEAST_SIZE);
	whole = whole ? repalloc(whole, size) : MemoryContextAlloc(TopMemoryContext, size);
	whole_size = size;
}

#if PG_VERSION_NUM >= 180000

static Size
make_whole(Oid collation, const char *text, Size length)
{
	return pg_strnxfrm(whole, whole_size, text, length, pg_newlocale_from_collation(collation));
}

#else

/* Before 18 the server refuses libc; locale NULL is the database's own. */
static Size
libc_key(pg_locale_t locale, const char *text, Size length)
{
	char	   *copy = pnstrdup(text, length);
	Size		size = locale ? strxfrm_l(whole, copy, whole_size, locale->info.lt) :
		strxfrm(whole, copy, whole_size);

	pfree(copy);
	return size;
}

#ifdef USE_ICU
static Size
icu_key(pg_locale_t locale, const char *text, Size length)
{
#if PG_VERSION_NUM >= 160000
	return pg_strnxfrm(whole, whole_size, text, length, locale);
#else
	UChar	   *wide;
	int32_t		n = icu_to_uchar(&wide, text, length);
	Size		size = ucol_getSortKey(locale->info.icu.ucol, wide, n, (uint8_t *) whole,
									   (int32_t) whole_size);

	pfree(wide);
	return Max(size, 1) - 1;	/* without the zero at its end */
#endif
}
#endif

static Size
make_whole(Oid collation, const char *text, Size length)
{
	pg_locale_t locale = pg_newlocale_from_collation(collation);

#ifdef USE_ICU
	if (locale && locale->provider == COLLPROVIDER_ICU)
		return icu_key(locale, text, length);
#endif
	return libc_key(locale, text, length);
}

#endif

/* The text's sort key, in whole. */
static Size
all_levels(Oid collation, const char *text, Size length)
{
	Size		size;

	need_size(length * BYTES_A_CHARACTER + 1);
	size = make_whole(collation, text, length);
	if (size >= whole_size)
	{
		need_size(size + 1);
		size = make_whole(collation, text, length);
		size = Min(size, whole_size);
	}
	return size;
}

/* Ends the first level in both providers' keys; less than any weight byte. */
#define LEVEL_END 1

/* The first level of it. */
static Size
first_level(Oid collation, const char *text, Size length)
{
	Size		size = all_levels(collation, text, length);
	const char *end = memchr(whole, LEVEL_END, size);

	return end ? end - whole : size;
}

/* ---- plain characters ---- */

#define ASCII 0x80
#define ASCII_LOW 0x20			/* the printable ones */
#define ASCII_HIGH 0x7E
#define CHARACTERS 0x800		/* code points of up to two bytes in UTF-8 */
#define MAX_CHARACTER 2			/* bytes */

/* Some letters count as two. */
#define MAX_WEIGHT 6

typedef enum Learned
{
	UNKNOWN,
	REGULAR,
	EXCEPTION
} Learned;

/* A character's first-level weights, maybe none.  Not plain: EXCEPTION. */
typedef struct Weight
{
	uint8		bytes[MAX_WEIGHT];
	uint8		length;
	uint8		learned;
} Weight;

/* A character's weights behind another. */
typedef struct Pair
{
	uint16		first;
	uint16		second;
	Weight		weight;
} Pair;

#define PAIR_BITS 12

/*
 * What the provider has taught about a collation: the weights of characters,
 * and of each two, whether their weights stand side by side, too.  They need
 * not: "ch" is a letter of its own in Czech, and digits may count as numbers.
 *
 * Pairs of ASCII characters have a table.  The others are too many, and the
 * latest are kept.  Their weights may lack a byte, or have one more, behind
 * the first: ICU says the first byte of Cyrillic weights, and the like, once
 * for all that have it in a row.
 */
typedef struct Plain
{
	Oid			collation;
	struct Plain *next;
	Weight		weight[CHARACTERS];
	uint8		pair[ASCII][ASCII]; /* the first may be 0: none */
	Pair	   *further;		/* 1 << PAIR_BITS; NULL before the first */
} Plain;

static Plain *plains = NULL;
static Plain *recent_plain = NULL;

static pg_noinline Plain *
find_plain(Oid collation)
{
	Plain	   *plain = plains;

	while (plain != NULL && plain->collation != collation)
		plain = plain->next;
	if (plain == NULL)
	{
		plain = MemoryContextAllocZero(TopMemoryContext, sizeof(Plain));
		plain->collation = collation;
		plain->next = plains;
		plains = plain;
	}
	recent_plain = plain;
	return plain;
}

static inline Plain *
get_plain(Oid collation)
{
	return likely(recent_plain != NULL && recent_plain->collation == collation) ?
		recent_plain : find_plain(collation);
}

/* Write it in UTF-8; ASCII is the same in all encodings of the server. */
static Size
write_character(unsigned c, char *to)
{
	if (c < ASCII)
	{
		to[0] = (char) c;
		return 1;
	}
	to[0] = (char) (0xC0 | c >> 6);
	to[1] = (char) (0x80 | (c & 0x3F));
	return 2;
}

/* Characters without width (marks) may change more than their neighbours. */
static bool
is_plain(unsigned c)
{
	char		character[MAX_CHARACTER];

	if (c < ASCII)
		return c >= ASCII_LOW && c <= ASCII_HIGH;
	(void) write_character(c, character);
	return GetDatabaseEncoding() == PG_UTF8 && pg_encoding_dsplen(PG_UTF8, character) == 1;
}

static pg_noinline void
learn_weight(Plain *plain, unsigned c)
{
	Weight	   *weight = &plain->weight[c];
	char		character[MAX_CHARACTER];
	Size		size;

	if (!is_plain(c))
	{
		weight->learned = EXCEPTION;
		return;
	}
	size = first_level(plain->collation, character, write_character(c, character));
	weight->length = (uint8) Min(size, MAX_WEIGHT);
	memcpy(weight->bytes, whole, weight->length);
	weight->learned = size > MAX_WEIGHT ? EXCEPTION : REGULAR;
}

static inline const Weight *
weight_of(Plain *plain, unsigned c)
{
	if (unlikely(plain->weight[c].learned == UNKNOWN))
		learn_weight(plain, c);
	return &plain->weight[c];
}

/* The first level of these characters, in whole. */
static Size
first_level_of(Plain *plain, unsigned a, unsigned b, unsigned c)
{
	char		characters[3 * MAX_CHARACTER];
	Size		length = write_character(a, characters);

	length += write_character(b, characters + length);
	if (c != 0)
		length += write_character(c, characters + length);
	return first_level(plain->collation, characters, length);
}

/* Does the key in whole consist of these weights? */
static bool
consists_of(Size size, const Weight *first, const Weight *second)
{
	return size == (Size) first->length + second->length &&
		memcmp(whole, first->bytes, first->length) == 0 &&
		memcmp(whole + first->length, second->bytes, second->length) == 0;
}

/*
 * Two ASCII characters, or none and one.  Only guesses meet a pair that begins
 * with what is not plain: it is not known to make an exception of the second.
 */
static pg_noinline void
learn_ascii_pair(Plain *plain, unsigned first, unsigned second)
{
	const Weight *one = weight_of(plain, first);
	const Weight *other = weight_of(plain, second);
	Learned		learned = other->learned;

	if (one->learned == REGULAR && other->learned == REGULAR &&
		!consists_of(first_level_of(plain, first, second, 0), one, other))
		learned = EXCEPTION;
	plain->pair[first][second] = learned;
}

/* The second's weights behind the first, from the key of both in whole. */
static void
weight_behind(Size size, const Weight *first, const Weight *second, Weight *weight)
{
	const uint8 *rest = (const uint8 *) whole + first->length;
	int			length = (int) size - first->length;
	int			lacks = second->length - length;	/* bytes of its own */

	weight->learned = EXCEPTION;
	if (length <= 0 || length > MAX_WEIGHT || lacks < -1 || lacks > 1 ||
		memcmp(whole, first->bytes, first->length) != 0)
		return;
	if (lacks > 0 && first->bytes[0] != second->bytes[0])
		return;
	if (lacks < 0 ? memcmp(rest + 1, second->bytes, second->length) :
		memcmp(rest, second->bytes + lacks, length))
		return;
	weight->learned = REGULAR;
	weight->length = (uint8) length;
	memcpy(weight->bytes, rest, length);
}

/*
 * Two plain characters, not both ASCII.  If one has no weights, what follows
 * is not told what was before: the other's must then be the same behind any.
 */
static pg_noinline void
learn_further_pair(Plain *plain, unsigned first, unsigned second, Pair *pair)
{
	const Weight *one = weight_of(plain, first);
	const Weight *other = weight_of(plain, second);
	Weight		weight = *other;

	if (one->length > 0 && other->length > 0)
		weight_behind(first_level_of(plain, first, second, 0), one, other, &weight);
	else if (one->length > 0 &&
			 !consists_of(first_level_of(plain, first, second, first), one, one))
		weight.learned = EXCEPTION;
	else if (other->length > 0 &&
			 !consists_of(first_level_of(plain, second, first, second), other, other))
		weight.learned = EXCEPTION;
	pair->first = (uint16) first;
	pair->second = (uint16) second;
	pair->weight = weight;
}

/* A character behind one or none (0), not both of ASCII; NULL as below. */
static const Weight *
further_weight(Plain *plain, unsigned before, unsigned c)
{
	const Weight *weight = weight_of(plain, c);
	Pair	   *pair;

	if (weight->learned == EXCEPTION)
		return NULL;
	if (before == 0 || weight_of(plain, before)->learned == EXCEPTION)
		return weight;
	if (unlikely(plain->further == NULL))
		plain->further = MemoryContextAllocZero(TopMemoryContext, sizeof(Pair) << PAIR_BITS);
	pair = &plain->further[(before * CHARACTERS + c) * 2654435761U >> (32 - PAIR_BITS)];
	if (unlikely(pair->first != before || pair->second != c))
		learn_further_pair(plain, before, c, pair);
	return pair->weight.learned == REGULAR ? &pair->weight : NULL;
}

static inline bool
goes_on(char byte)
{
	return ((uint8) byte & 0xC0) == 0x80;
}

/* The two-byte character that begins here, with left bytes left; 0 if none. */
static inline unsigned
two_bytes(const char *bytes, Size left)
{
	uint8		lead = (uint8) bytes[0];

	return left >= 2 && lead >= 0xC2 && lead <= 0xDF && goes_on(bytes[1]) ?
		(lead & 0x1F) << 6 | (bytes[1] & 0x3F) : 0;
}

/* A place in a text. */
typedef struct Place
{
	const char *bytes;
	Size		length;
	Size		at;				/* the next character */
	unsigned	before;			/* the one before, 0 if it is not known */
} Place;

/*
 * The weights of the next character, good until the next call; NULL if it is
 * not plain, or an exception by itself or behind the one before.
 */
static inline const Weight *
next_character(Plain *plain, Place *place)
{
	unsigned	before = place->before;
	unsigned	c = (uint8) place->bytes[place->at];

	if (likely(c < ASCII && before < ASCII))
	{
		const uint8 *learned = &plain->pair[before][c];

		place->at++;
		place->before = c;
		if (unlikely(*learned == UNKNOWN))
			learn_ascii_pair(plain, before, c);
		return likely(*learned == REGULAR) ? &plain->weight[c] : NULL;
	}
	if (c >= ASCII)
	{
		c = two_bytes(place->bytes + place->at, place->length - place->at);
		place->at++;
	}
	place->at++;
	place->before = c;
	return c == 0 ? NULL : further_weight(plain, before, c);
}

/* Put the first level together; false if some are not plain, or exceptions. */
static bool
put_together(Plain *plain, const char *text, Size length, uint8 *out, Size room, Size *size)
{
	uint8	   *to = out;
	uint8	   *end = out + room;
	Place		place = {.length = length};

	place.bytes = text;

	while (place.at < length && to < end)
	{
		const Weight *weight = next_character(plain, &place);

		if (weight == NULL)
			return false;
		/* Copying a constant number of bytes is faster. */
		if (likely(end - to >= MAX_WEIGHT))
			memcpy(to, weight->bytes, MAX_WEIGHT);
		else
			memcpy(to, weight->bytes, end - to);
		to += Min(weight->length, end - to);
	}
	*size = to - out;
	return true;
}

Size
lbt_sort_key(Oid collation, const char *text, Size length, uint8 *out, Size room)
{
	Plain	   *plain = get_plain(collation);
	Size		size;

	if (length > MAX_TEXT)
		length = pg_mbcliplen(text, length, MAX_TEXT);
	if (put_together(plain, text, length, out, room, &size))
		return size;
	lbt_sort_keys_provided.texts++;
	lbt_sort_keys_provided.bytes += length;
	size = first_level(collation, text, length);
	size = Min(size, room);
	memcpy(out, whole, size);
	return size;
}

/* ---- guesses ---- */

/* Where a text's next weight comes from. */
typedef struct Cursor
{
	Place		place;
	Weight		weight;			/* of the character before */
	int			next;			/* byte of it */
} Cursor;

/* The next byte of the weights: 0 at the end, -1 if it is not known. */
static inline int
next_weight(Plain *plain, Cursor *cursor)
{
	while (cursor->next == cursor->weight.length)
	{
		const Weight *weight;

		if (cursor->place.at == cursor->place.length)
			return 0;
		weight = next_character(plain, &cursor->place);
		if (weight == NULL)
			return -1;
		cursor->weight = *weight;
		cursor->next = 0;
	}
	return cursor->weight.bytes[cursor->next++];
}

/* How many bytes two texts have in common, without a part of a character. */
static inline Size
in_common(const char *a, Size a_length, const char *b, Size b_length)
{
	Size		length = Min(a_length, b_length);
	Size		common = 0;

	/* By words as long as these are equal. */
	while (common + sizeof(uint64) <= length && memcmp(a + common, b + common, sizeof(uint64)) == 0)
		common += sizeof(uint64);
	while (common < length && a[common] == b[common])
		common++;
	while (common > 0 && ((common < a_length && goes_on(a[common])) ||
						  (common < b_length && goes_on(b[common]))))
		common--;
	return common;
}

/* The character that ends behind so many bytes; 0 if it cannot be plain. */
static inline unsigned
character_before(const char *bytes, Size length)
{
	if (length == 0)
		return 0;
	if ((uint8) bytes[length - 1] < ASCII)
		return (uint8) bytes[length - 1];
	return length >= 2 ? two_bytes(bytes + length - 2, 2) : 0;
}

int
lbt_guess_order(Oid collation, const char *a, Size a_length, const char *b, Size b_length)
{
	Plain	   *plain = get_plain(collation);
	Size		common = in_common(a, a_length, b, b_length);
	Place		place = {.at = common,.before = character_before(a, common)};
	Cursor		one = {.place = place};
	Cursor		other = {.place = place};

	one.place.bytes = a;
	one.place.length = a_length;
	other.place.bytes = b;
	other.place.length = b_length;
	for (;;)
	{
		int			x = next_weight(plain, &one);
		int			y = next_weight(plain, &other);

		if (x < 0 || y < 0 || (x == 0 && y == 0))
			return 0;
		if (x != y)
			return (x < y) != (lbt_debug_sort_keys == LBT_SORT_KEYS_SCRAMBLED && x % 3 == 0) ?
				-1 : 1;
	}
}
