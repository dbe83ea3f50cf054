/*
 * sortkey.c - sort keys, put together from what the provider told (src/README,
 * "Text under a collation").
 *
 *     the provider's  weights of the first level | 01 | of the second | 01 ...
 *     ours            weights of the first level
 */
#include "key/sortkey.h"

#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "model/keybytes.h"
#include "server/compat.h"
#include "utils/memutils.h"

int			lbt_debug_sort_keys = LBT_SORT_KEYS_TRUE;
LbtProvided lbt_sort_keys_provided = {0, 0};

/* ---- the provider's keys ---- */

/* Its last one, with all levels.  len is not used. */
static StringInfoData whole;

/*
 * Leave out what follows this much of a text: search arguments may be longer.
 * Texts that agree so far may get keys out of order.
 */
#define MAX_TEXT 1024

/* Ends the first level in both providers' keys; less than any weight byte. */
#define LEVEL_END 1

/* The size of a text's first level, which is then in whole. */
static Size
first_level(Oid collation, const char *text, Size length)
{
	const char *end;
	Size		size;

	if (whole.data == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);

		initStringInfo(&whole);
		MemoryContextSwitchTo(old);
	}
	size = lbt_strnxfrm(collation, text, length, whole.data, whole.maxlen);
	if (size >= whole.maxlen)
	{
		enlargeStringInfo(&whole, size);
		size = lbt_strnxfrm(collation, text, length, whole.data, whole.maxlen);
		size = Min(size, whole.maxlen);
	}
	end = memchr(whole.data, LEVEL_END, size);
	return end ? end - whole.data : size;
}

/* ---- plain characters ---- */

#define ASCII 0x80
#define CHARACTERS 0x800		/* code points of up to two bytes in UTF-8 */

/* Some letters count as two. */
#define MAX_WEIGHT 6

typedef enum Learned
{
	UNKNOWN,
	REGULAR,
	EXCEPTION
} Learned;

/* A character's weights, maybe none; an EXCEPTION's are not known. */
typedef struct Weight
{
	uint8		bytes[MAX_WEIGHT];
	uint8		length;
	uint8		learned;
} Weight;

/* A character's weights after another. */
typedef struct Pair
{
	uint32		characters;		/* see find_pair(); 0: none */
	Weight		weight;
} Pair;

#define PAIR_BITS 12

/*
 * What the provider has taught about a collation: the weights of characters,
 * and whether those of two stand side by side where the characters do.  Of
 * pairs beyond ASCII, which are many, it keeps the latest.
 */
typedef struct Plain
{
	Oid			collation;
	struct Plain *next;
	Weight		weight[CHARACTERS];
	uint8		pair[ASCII][ASCII]; /* Learned; the first may be 0: none */
	Pair	   *further;		/* 1 << PAIR_BITS; NULL before the first */
} Plain;

static Plain *plains = NULL;

static inline Plain *
find_plain(Oid collation)
{
	Plain	   *plain = plains;

	while (plain != NULL && plain->collation != collation)
		plain = plain->next;
	return plain;
}

bool
lbt_collation_is_open(Oid collation)
{
	return collation == DEFAULT_COLLATION_OID || find_plain(collation) != NULL;
}

static inline Plain *
get_plain(Oid collation)
{
	Plain	   *plain = find_plain(collation);

	if (unlikely(plain == NULL))
	{
		(void) pg_newlocale_from_collation(collation);	/* or it cannot be opened */
		plain = MemoryContextAllocZero(TopMemoryContext, sizeof(Plain));
		plain->collation = collation;
		plain->next = plains;
		plains = plain;
	}
	return plain;
}

/* As first_level(), of up to three characters; a 0 ends them. */
static Size
first_level_of(const Plain *plain, pg_wchar a, pg_wchar b, pg_wchar c)
{
	pg_wchar	characters[] = {a, b, c, 0};
	unsigned char text[3 * MAX_MULTIBYTE_CHAR_LEN];
	Size		length = 0;

	/* ASCII is the same in all encodings of the server. */
	for (int i = 0; characters[i] != 0; i++)
	{
		(void) unicode_to_utf8(characters[i], text +length);
		length += characters[i] < ASCII ? 1 : 2;
	}
	return first_level(plain->collation, (char *) text, length);
}

/* Characters without width (marks) may change more than their neighbours. */
static bool
is_plain(pg_wchar c)
{
	unsigned char text[MAX_MULTIBYTE_CHAR_LEN];

	if (c < ASCII)
		return c >= ' ' && c <= '~';
	return GetDatabaseEncoding() == PG_UTF8 &&
		pg_encoding_dsplen(PG_UTF8, (char *) unicode_to_utf8(c, text)) == 1;
}

static const Weight *
weight_of(Plain *plain, pg_wchar c)
{
	Weight	   *weight = &plain->weight[c];

	if (weight->learned == UNKNOWN)
	{
		Size		size = is_plain(c) ? first_level_of(plain, c, 0, 0) : MAX_WEIGHT + 1;

		weight->learned = size <= MAX_WEIGHT ? REGULAR : EXCEPTION;
		if (weight->learned == REGULAR)
		{
			weight->length = (uint8) size;
			memcpy(weight->bytes, whole.data, size);
		}
	}
	return weight;
}

/*
 * The second's weights after the first, from the key of both in whole.  They
 * may lack a byte, or have one more: ICU says the first byte of Cyrillic
 * weights, and the like, once for all that have it in a row.
 */
static Weight
weight_after(Size size, const Weight *first, const Weight *second)
{
	Weight		weight = {.learned = EXCEPTION};
	int			length = (int) size - first->length;
	int			lacks = second->length - length;	/* bytes of its own */
	int			same = Min(length, second->length);

	if (length < Min(second->length, 1) || length > MAX_WEIGHT || lacks < -1 || lacks > 1 ||
		memcmp(whole.data, first->bytes, first->length) != 0 ||
		memcmp(whole.data + size - same, second->bytes + second->length - same, same) != 0 ||
		(lacks > 0 && first->bytes[0] != second->bytes[0]))
		return weight;
	weight.learned = REGULAR;
	weight.length = (uint8) length;
	memcpy(weight.bytes, whole.data + first->length, length);
	return weight;
}

/*
 * A character's weights after another, or after 0 for none.  Guesses also
 * meet pairs whose first is an exception: it makes none of the second.
 */
static Weight
learn_pair(Plain *plain, pg_wchar first, pg_wchar second)
{
	const Weight *one = weight_of(plain, first);
	const Weight *other = weight_of(plain, second);
	Weight		weight = *other;
	Weight		again;

	if (one->learned == EXCEPTION || other->learned == EXCEPTION)
		return weight;
	if (one->length > 0 && other->length > 0)
		return weight_after(first_level_of(plain, first, second, 0), one, other);

	/* Across one without weights, the other's must be the same, too. */
	if (one->length > 0)
		again = weight_after(first_level_of(plain, first, second, first), one, one);
	else
		again = weight_after(first_level_of(plain, second, first, second), other, other);
	if (again.learned == EXCEPTION || again.length != one->length + other->length)
		weight.learned = EXCEPTION;
	return weight;
}

/* May the second's own weights be used after the first? */
static pg_noinline void
learn_ascii_pair(Plain *plain, pg_wchar first, pg_wchar second)
{
	Weight		weight = learn_pair(plain, first, second);

	plain->pair[first][second] = weight.length == plain->weight[second].length ?
		weight.learned : EXCEPTION;
}

/* The same as learn_pair(), remembered; good until the next call. */
static const Weight *
find_pair(Plain *plain, pg_wchar first, pg_wchar second)
{
	uint32		characters = first * CHARACTERS + second;
	Pair	   *pair;

	if (unlikely(plain->further == NULL))
		plain->further = MemoryContextAllocZero(TopMemoryContext, sizeof(Pair) << PAIR_BITS);
	pair = &plain->further[characters * 2654435761U >> (32 - PAIR_BITS)];
	if (unlikely(pair->characters != characters))
	{
		pair->weight = learn_pair(plain, first, second);
		pair->characters = characters;
	}
	return &pair->weight;
}

static inline bool
goes_on(uint8 byte)
{
	return (byte & 0xC0) == 0x80;
}

/* The two-byte character that begins here; 0 if none does. */
static inline pg_wchar
two_bytes(const uint8 *at, const uint8 *end)
{
	return end - at >= 2 && at[0] >= 0xC2 && at[0] <= 0xDF && goes_on(at[1]) ?
		(at[0] & 0x1F) << 6 | (at[1] & 0x3F) : 0;
}

/* A text on the way through its characters. */
typedef struct TextWalk
{
	const uint8 *at;			/* the next character */
	const uint8 *end;
	pg_wchar	before;			/* the one before; 0: none, or not known */
	Weight		weight;			/* next_weight_byte(): that one's */
	int			next;			/* ... and a byte of it */
} TextWalk;

/*
 * The weights of the next character, good until the next call; NULL if it is
 * not plain, or an exception by itself or after the one before.
 */
static inline const Weight *
next_character(Plain *plain, TextWalk *walk)
{
	const Weight *weight;
	pg_wchar	before = walk->before;
	pg_wchar	c = *walk->at++;

	if (likely(c < ASCII && before < ASCII))
	{
		const uint8 *learned = &plain->pair[before][c];

		walk->before = c;
		if (unlikely(*learned == UNKNOWN))
			learn_ascii_pair(plain, before, c);
		return likely(*learned == REGULAR) ? &plain->weight[c] : NULL;
	}
	if (c >= ASCII)
	{
		c = two_bytes(walk->at - 1, walk->end);
		walk->at++;
	}
	walk->before = c;
	weight = find_pair(plain, before, c);
	return weight->learned == REGULAR ? weight : NULL;
}

/* Put the first level together; -1 if some are not plain, or exceptions. */
static ssize_t
put_together(Plain *plain, const uint8 *bytes, Size length, uint8 *out, Size room)
{
	uint8	   *to = out;
	uint8	   *end = out + room;
	TextWalk	walk = {.at = bytes,.end = bytes + length};

	while (walk.at < walk.end && to < end)
	{
		const Weight *weight = next_character(plain, &walk);

		if (weight == NULL)
			return -1;
		/* Copying a constant number of bytes is faster. */
		if (likely(end - to >= MAX_WEIGHT))
			memcpy(to, weight->bytes, MAX_WEIGHT);
		else
			memcpy(to, weight->bytes, end - to);
		to += Min(weight->length, end - to);
	}
	return to - out;
}

Size
lbt_sort_key(Oid collation, const uint8 *text, Size length, uint8 *out, Size room)
{
	Plain	   *plain = get_plain(collation);
	ssize_t		size;

	if (length > MAX_TEXT)
		length = pg_mbcliplen((const char *) text, length, MAX_TEXT);
	size = put_together(plain, text, length, out, room);
	if (size < 0)
	{
		lbt_sort_keys_provided.texts++;
		lbt_sort_keys_provided.bytes += length;
		size = first_level(collation, (const char *) text, length);
		size = Min(size, (ssize_t) room);
		memcpy(out, whole.data, size);
	}
	if (unlikely(lbt_debug_sort_keys == LBT_SORT_KEYS_SCRAMBLED))
		for (ssize_t i = 0; i < size; i++)
			out[i] = (uint8) (out[i] * 157 + i);
	return size;
}

/* ---- guesses ---- */

/* The next byte of the weights: 0 at the end, -1 if it is not known. */
static inline int
next_weight_byte(Plain *plain, TextWalk *walk)
{
	while (walk->next == walk->weight.length)
	{
		const Weight *weight;

		if (walk->at == walk->end)
			return 0;
		weight = next_character(plain, walk);
		if (weight == NULL)
			return -1;
		walk->weight = *weight;
		walk->next = 0;
	}
	return walk->weight.bytes[walk->next++];
}

/* The character that ends after this many bytes; 0 if it cannot be plain. */
static inline pg_wchar
character_before(const uint8 *bytes, Size length)
{
	if (length == 0)
		return 0;
	if (bytes[length - 1] < ASCII)
		return bytes[length - 1];
	return length >= 2 ? two_bytes(bytes + length - 2, bytes + length) : 0;
}

int
lbt_guess_order(Oid collation, const uint8 *a, Size a_length, const uint8 *b, Size b_length)
{
	Plain	   *plain = get_plain(collation);
	TextWalk	one = {.end = a + a_length};
	TextWalk	other = {.end = b + b_length};
	Size		common = lbt_common_bytes(a, a_length, b, b_length);

	/* Begin with the first characters that differ. */
	while (common > 0 && ((common < a_length && goes_on(a[common])) ||
						  (common < b_length && goes_on(b[common]))))
		common--;
	one.at = a + common;
	other.at = b + common;
	one.before = other.before = character_before(a, common);
	for (;;)
	{
		int			x = next_weight_byte(plain, &one);
		int			y = next_weight_byte(plain, &other);

		if (x < 0 || y < 0 || (x == 0 && y == 0))
			return 0;
		if (x != y)
			return (x < y) != (lbt_debug_sort_keys == LBT_SORT_KEYS_SCRAMBLED && x % 3 == 0) ?
				-1 : 1;
	}
}
