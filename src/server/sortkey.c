/*
 * sortkey.c - sort keys, by the server's functions where it has them; see sortkey.h.
 *
 *     sort key of a collation's provider      weights of the first level | 01 | of the second | 01 | ...
 *     ours                                    weights of the first level, or all
 *
 * Those of plain characters (printable ASCII) on the first level are known, and put together without asking the provider.
 */
#include "server/sortkey.h"

#include "catalog/pg_collation.h"
#include "mb/pg_wchar.h"
#include "server/compat.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/pg_locale.h"
#if PG_VERSION_NUM < 160000 && defined(USE_ICU)
#include <unicode/ucol.h>
#endif

int			lbt_debug_sort_keys = LBT_SORT_KEYS_TRUE;

/* A sort key must be asked for as a whole, with memory for it: kept from one to the next. */
static char *whole = NULL;
static Size whole_size = 0;

/* Sort keys are a few times as long as their text. */
#define BYTES_A_CHARACTER 4
#define LEAST_SIZE 1024

/*
 * What lies behind so much of a text is not worth its time.  (Search arguments may be of any length, and ICU may
 * need the whole key's memory.)  The price: texts that agree so far may get keys out of order.
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

/* Before 18 the server's function refuses libc, which it does not trust; the database's own libc locale is NULL. */
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
	Size		size = ucol_getSortKey(locale->info.icu.ucol, wide, n, (uint8_t *) whole, (int32_t) whole_size);

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

/* What ends the first level, in the sort keys of both providers; less than any byte of a weight. */
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

#define PLAIN_LOW 0x20
#define PLAIN_HIGH 0x7E
#define PLAIN_CHARACTERS 128

#define MAX_WEIGHT 3

typedef enum Learned
{
	UNKNOWN,
	REGULAR,
	EXCEPTION
} Learned;

/* A character's weights on the first level; it may have none there.  An exception has too many. */
typedef struct Weight
{
	uint8		bytes[MAX_WEIGHT + 1];
	uint8		length;
	uint8		learned;
} Weight;

/*
 * What has been learned of a collation by asking its provider: the weights of single characters, and of two that stand
 * beside each other, whether their weights stand beside each other, too.  They need not: "ch" is a letter of its own in
 * Czech, and digits may count as numbers.
 */
typedef struct Plain
{
	Oid			collation;
	Weight		weight[PLAIN_CHARACTERS];
	uint8		pair[PLAIN_CHARACTERS][PLAIN_CHARACTERS];
} Plain;

static HTAB *plains = NULL;
static Plain *recent_plain = NULL;

static pg_noinline Plain *
find_plain(Oid collation)
{
	bool		found;

	if (plains == NULL)
	{
		HASHCTL		info = {.keysize = sizeof(Oid),.entrysize = sizeof(Plain),.hcxt = TopMemoryContext};

		plains = hash_create("learnedbtree collations", 8, &info, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	}
	recent_plain = hash_search(plains, &collation, HASH_ENTER, &found);
	if (!found)
	{
		memset(recent_plain, 0, sizeof(Plain));
		recent_plain->collation = collation;
	}
	return recent_plain;
}

static inline Plain *
get_plain(Oid collation)
{
	return likely(recent_plain != NULL && recent_plain->collation == collation) ? recent_plain : find_plain(collation);
}

static pg_noinline void
learn_weight(Plain *plain, const char *character)
{
	Weight	   *weight = &plain->weight[(uint8) *character];
	Size		size = first_level(plain->collation, character, 1);

	weight->length = (uint8) Min(size, MAX_WEIGHT);
	memcpy(weight->bytes, whole, weight->length);
	weight->learned = size > MAX_WEIGHT ? EXCEPTION : REGULAR;
}

/* Both are regular. */
static pg_noinline void
learn_pair(Plain *plain, const char *two)
{
	const Weight *first = &plain->weight[(uint8) two[0]];
	const Weight *second = &plain->weight[(uint8) two[1]];
	Size		size = first_level(plain->collation, two, 2);

	plain->pair[(uint8) two[0]][(uint8) two[1]] = size == (Size) first->length + second->length &&
		memcmp(whole, first->bytes, first->length) == 0 &&
		memcmp(whole + first->length, second->bytes, second->length) == 0 ? REGULAR : EXCEPTION;
}

/*
 * The weights of the character at this place of a text; NULL if it is not plain, or an exception by itself or behind the
 * one before.  What is not plain is not known to make an exception of what follows.
 */
static inline const Weight *
weight_at(Plain *plain, const char *text, Size at)
{
	uint8		c = (uint8) text[at];
	uint8		before = at > 0 ? (uint8) text[at - 1] : 0;
	const Weight *weight = &plain->weight[c];

	if (c < PLAIN_LOW || c > PLAIN_HIGH)
		return NULL;
	if (unlikely(weight->learned == UNKNOWN))
		learn_weight(plain, &text[at]);
	if (weight->learned == EXCEPTION)
		return NULL;
	if (before >= PLAIN_LOW && before <= PLAIN_HIGH && plain->weight[before].learned == REGULAR)
	{
		if (unlikely(plain->pair[before][c] == UNKNOWN))
			learn_pair(plain, &text[at - 1]);
		if (plain->pair[before][c] == EXCEPTION)
			return NULL;
	}
	return weight;
}

/* The text's sort key, put together; false if it is not all of plain characters, or some are an exception. */
static bool
put_together(Oid collation, const char *text, Size length, uint8 *out, Size room, Size *size)
{
	Plain	   *plain = get_plain(collation);
	uint8	   *to = out;
	uint8	   *end = out + room;

	for (Size i = 0; i < length && to < end; i++)
	{
		const Weight *weight = weight_at(plain, text, i);

		if (weight == NULL)
			return false;
		for (int byte = 0; byte < weight->length && to < end; byte++)
			*to++ = weight->bytes[byte];
	}
	*size = to - out;
	return true;
}

Size
lbt_sort_key(Oid collation, bool all, const char *text, Size length, uint8 *out, Size room)
{
	Size		size;

	if (length > MAX_TEXT)
		length = pg_mbcliplen(text, length, MAX_TEXT);
	if (!all && put_together(collation, text, length, out, room, &size))
		return size;
	size = all ? all_levels(collation, text, length) : first_level(collation, text, length);
	size = Min(size, room);
	memcpy(out, whole, size);
	return size;
}

/* Where a text's next weight comes from. */
typedef struct Cursor
{
	const char *text;
	Size		length;
	Size		at;				/* the next character */
	const uint8 *weight;		/* of the one before, what is left */
	int			left;
} Cursor;

/* The next byte of the weights: 0 at the end, -1 if it is not known. */
static inline int
next_weight(Plain *plain, Cursor *cursor)
{
	while (cursor->left == 0)
	{
		const Weight *weight;

		if (cursor->at == cursor->length)
			return 0;
		weight = weight_at(plain, cursor->text, cursor->at++);
		if (weight == NULL)
			return -1;
		cursor->weight = weight->bytes;
		cursor->left = weight->length;
	}
	cursor->left--;
	return *cursor->weight++;
}

int
lbt_guess_order(Oid collation, const char *a, Size a_length, const char *b, Size b_length)
{
	Plain	   *plain = get_plain(collation);
	Size		common = 0;
	Cursor		one = {.text = a,.length = a_length};
	Cursor		other = {.text = b,.length = b_length};

	/* By words as long as these are equal. */
	while (common + sizeof(uint64) <= Min(a_length, b_length) && memcmp(a + common, b + common, sizeof(uint64)) == 0)
		common += sizeof(uint64);
	while (common < a_length && common < b_length && a[common] == b[common])
		common++;
	one.at = other.at = common;
	for (;;)
	{
		int			x = next_weight(plain, &one);
		int			y = next_weight(plain, &other);

		if (x < 0 || y < 0 || (x == 0 && y == 0))
			return 0;
		if (x != y)
			return (x < y) != (lbt_debug_sort_keys == LBT_SORT_KEYS_SCRAMBLED && x % 3 == 0) ? -1 : 1;
	}
}
