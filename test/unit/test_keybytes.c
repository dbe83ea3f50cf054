/*
 * test_keybytes.c - the key code of byte strings, alone and among numbers: order, ties, the saved model.
 */
#include "contract.h"
#include "contract_saved.h"
#include "strings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NBOUNDS 40

/* Columns, what their values are like, and the room of strings. */
typedef struct Scheme
{
	KeyColumns	columns;
	const StringKind *kind[MAX_COLUMNS];
	uint64_t	base[MAX_COLUMNS];
	uint64_t	width[MAX_COLUMNS];
	LbtKeyCode	code;
} Scheme;

typedef uint8_t Room[MAX_COLUMNS][STRING_ROOM];

static LbtKeyValue
number(Rng *rng, const Scheme *scheme, int column)
{
	LbtKeyValue value = {.ordered = scheme->base[column] + rng_below(rng, scheme->width[column] + 1)};

	if (rng_below(rng, 8) == 0)
		value.ordered += rng_below(rng, 3) - 1;
	return value;
}

static LbtKeyValue
usual_value(Rng *rng, const Scheme *scheme, int column, uint8_t *room)
{
	return scheme->columns.order[column].bytes ? usual_string(rng, scheme->kind[column], room) :
		(LbtKeyValue) {.ordered = scheme->base[column] + rng_below(rng, scheme->width[column] + 1)};
}

static KeyBound
any_bound(Rng *rng, const Scheme *scheme, const KeyBound *other, uint8_t (*room)[STRING_ROOM])
{
	int			ncolumns = scheme->columns.ncolumns;
	KeyBound	bound = {.nvalues = ncolumns};
	int			common = other != NULL ? (int) rng_below(rng, (uint64_t) ncolumns + 1) : 0;

	if (rng_below(rng, 5) == 0)
		bound.nvalues = (int) rng_below(rng, (uint64_t) ncolumns + 1);
	bound.high = rng_below(rng, 2) != 0;
	for (int i = 0; i < bound.nvalues; i++)
	{
		const LbtKeyValue *old = other != NULL && i < other->nvalues ? &other->values[i] : NULL;

		if (old != NULL && i < common)
			bound.values[i] = *old;
		else if (rng_below(rng, 16) == 0)
			bound.values[i].isnull = true;
		else if (scheme->columns.order[i].bytes)
			bound.values[i] = any_string(rng, scheme->kind[i], old, room[i]);
		else
			bound.values[i] = number(rng, scheme, i);
	}
	return bound;
}

/* Columns of random kinds; the first, if it says so, a byte string. */
static void
random_columns(Rng *rng, Scheme *scheme, int ncolumns, uint32_t first)
{
	static const uint64_t widths[] = {0, 1, 9, 255, 100000, UINT32_MAX, UINT64_C(1) << 50};

	scheme->columns.ncolumns = ncolumns;
	for (int i = 0; i < ncolumns; i++)
	{
		bool		bytes = i == 0 ? first < nstring_kinds : rng_below(rng, 2);

		scheme->columns.order[i] = (LbtColumnOrder) {.bytes = bytes,.desc = bytes && rng_below(rng, 2),
		.nulls_first = (uint8_t) rng_below(rng, 2)};
		scheme->kind[i] = &string_kinds[i == 0 && bytes ? first : rng_below(rng, nstring_kinds)];
		scheme->width[i] = widths[rng_below(rng, 7)];
		scheme->base[i] = 5 + rng_below(rng, UINT64_C(1) << 62);
	}
}

static void
learn(Rng *rng, Scheme *scheme, int nseparators)
{
	LbtKeyLearner learner;

	lbt_keycode_begin(&learner, scheme->columns.ncolumns, scheme->columns.order);
	for (int s = 0; s < nseparators; s++)
	{
		LbtKeyValue values[MAX_COLUMNS];
		Room		room;

		for (int i = 0; i < scheme->columns.ncolumns; i++)
			values[i] = usual_value(rng, scheme, i, room[i]);
		lbt_keycode_observe(&learner, values, rng_below(rng, 4) ? scheme->columns.ncolumns :
							(int) rng_below(rng, (uint64_t) scheme->columns.ncolumns + 1));
	}
	lbt_keycode_finish(&learner, &scheme->code);
	CHECK(lbt_keycode_bytes(&scheme->code) > 0, "a learned code of %d columns is not valid",
		  scheme->columns.ncolumns);
}

/* Few separators, as a small index has; or so many that not all bytes count. */
static int
few_or_many(Rng *rng)
{
	return (int) rng_below(rng, rng_below(rng, 4) ? 50 : 1500);
}

/* Random schemes, random and adversarial keys: every pair is in order. */
static void
keeps_order(const void *arg)
{
	int			ncolumns = *(const int *) arg;
	Rng			rng = {80 + (uint64_t) ncolumns};
	Room	   *rooms = test_alloc(NBOUNDS * sizeof(Room));
	int			nalphabets = 0;

	for (uint32_t round = 0; round < 500; round++)
	{
		KeyBound	bounds[NBOUNDS];
		Scheme		scheme;

		random_columns(&rng, &scheme, ncolumns, round % (nstring_kinds + (ncolumns > 1)));
		learn(&rng, &scheme, few_or_many(&rng));
		nalphabets += (scheme.code.rank[UINT8_MAX] & LBT_NO_MEMBER) != 0;
		for (int i = 0; i < NBOUNDS; i++)
		{
			bounds[i] = any_bound(&rng, &scheme, i > 0 ? &bounds[rng_below(&rng, (uint64_t) i)] : NULL,
								  rooms[i]);
			for (int j = 0; j < i; j++)
				check_code_order(&scheme.code, &scheme.columns, &bounds[i], &bounds[j]);
		}
	}
	CHECK(nalphabets > 20, "only %d codes leave bytes out", nalphabets);
	free(rooms);
}

/* One column, no rules: every string of up to three bytes of a few, learned from any pair of them. */
static void
short_strings(const void *arg)
{
	static const uint8_t alphabet[] = {0, 1, 'a', 255};
	uint8_t		bytes[85][3];
	KeyBound	keys[85];
	int			nkeys = 0;

	for (int length = 0; length <= 3; length++)
		for (int i = 0; i < 1 << 2 * length; i++, nkeys++)
		{
			for (int at = 0; at < length; at++)
				bytes[nkeys][at] = alphabet[i >> 2 * at & 3];
			keys[nkeys] = (KeyBound) {.nvalues = 1};
			keys[nkeys].values[0] = (LbtKeyValue) {.bytes = bytes[nkeys],.length = (uint32_t) length};
		}
	for (int a = 0; a < nkeys; a++)
		for (int b = a % 3; b < nkeys; b += 3)
		{
			KeyColumns	columns = {.ncolumns = 1,.order = {{.bytes = 1,.desc = arg != NULL}}};
			LbtKeyLearner learner;
			LbtKeyCode	code;

			lbt_keycode_begin(&learner, 1, columns.order);
			lbt_keycode_observe(&learner, keys[a].values, 1);
			lbt_keycode_observe(&learner, keys[b].values, 1);
			lbt_keycode_finish(&learner, &code);
			for (int i = 0; i < nkeys; i++)
				for (int j = 0; j < i; j++)
					check_code_order(&code, &columns, &keys[i], &keys[j]);
		}
}

/* One byte string column, learned from n strings made by make(). */
static LbtKeyCode
learn_strings(uint32_t n, const StringKind *kind, Rng *rng)
{
	LbtKeyLearner learner;
	LbtKeyCode	code;
	uint8_t		room[STRING_ROOM];

	lbt_keycode_begin(&learner, 1, (LbtColumnOrder[]) {{.bytes = 1}});
	for (uint32_t i = 0; i < n; i++)
	{
		LbtKeyValue value = usual_string(rng, kind, room);

		lbt_keycode_observe(&learner, &value, 1);
	}
	lbt_keycode_finish(&learner, &code);
	return code;
}

/* Strings with a common prefix and 19 decimal digits have a code each. */
static void
decimal_digits(const void *arg)
{
	static const StringKind kind = {"user", 1, "0123456789", 10, 19, 19};
	Rng			rng = {91};
	LbtKeyCode	code = learn_strings(1000, &kind, &rng);
	uint64_t	codes[20];

	(void) arg;
	CHECK(code.column[0].prefix_length == 4 && memcmp(code.prefix, "user", 4) == 0, "no prefix");
	for (int round = 0; round < 20000; round++)
	{
		uint8_t		room[STRING_ROOM];
		LbtKeyValue value = usual_string(&rng, &kind, room);

		codes[0] = lbt_keycode(&code, &value, 1, false);
		for (int at = 4; at < 23; at++)
		{
			uint8_t		old = room[at];

			room[at] = old == '9' ? '0' : old + 1;
			codes[1] = lbt_keycode(&code, &value, 1, false);
			CHECK(old == '9' ? codes[1] < codes[0] : codes[1] > codes[0], "digit %d does not count", at);
			room[at] = old;
		}
	}
}

/* Of hexadecimal digits, 16 count, and a byte that is none lies between those that it lies between. */
static void
hexadecimal_digits(const void *arg)
{
	static const char hex[] = "0123456789abcdef";
	static const StringKind kind = {"", 0, hex, 16, 32, 32};
	bool		desc = arg != NULL;
	Rng			rng = {94};
	LbtKeyLearner learner;
	LbtKeyCode	code;
	uint8_t		room[STRING_ROOM];
	LbtKeyValue value;

	lbt_keycode_begin(&learner, 1, (LbtColumnOrder[]) {{.bytes = 1,.desc = desc}});
	for (int i = 0; i < 1000; i++)
	{
		value = usual_string(&rng, &kind, room);
		lbt_keycode_observe(&learner, &value, 1);
	}
	lbt_keycode_finish(&learner, &code);
	CHECK(lbt_keycode_bytes(&code) > 0 && code.ndigits == 16, "%d digits", code.ndigits);
	for (int round = 0; round < 20000; round++)
	{
		uint64_t	low,
					between,
					high;
		int			at = (int) rng_below(&rng, 16);

		value = usual_string(&rng, &kind, room);
		room[at] = (uint8_t) hex[9];
		low = lbt_keycode(&code, &value, 1, false);
		room[at] = 'B';
		between = lbt_keycode(&code, &value, 1, false);
		room[at] = (uint8_t) hex[10];
		high = lbt_keycode(&code, &value, 1, false);
		CHECK(desc ? high <= between && between <= low && high < low :
			  low <= between && between <= high && low < high, "digit %d does not count", at);
	}
}

/* Of random bytes, the first eight count. */
static void
random_bytes(const void *arg)
{
	Rng			rng = {92};
	const StringKind *kind = &string_kinds[2];
	LbtKeyCode	code = learn_strings(20000, kind, &rng);

	(void) arg;
	CHECK(kind->longest == 16 && kind->nbytes == 256, "another kind");
	for (int round = 0; round < 20000; round++)
	{
		uint8_t		room[STRING_ROOM];
		LbtKeyValue value = usual_string(&rng, kind, room);
		uint64_t	before = lbt_keycode(&code, &value, 1, false);

		room[7] ^= 1;
		CHECK(lbt_keycode(&code, &value, 1, false) != before, "the eighth byte does not count");
	}
}

/* What is cut off at LBT_CODE_BYTES is neither learned nor part of a code. */
static void
cut_strings(const void *arg)
{
	static const StringKind kind = {"", 0, "ab", 2, LBT_CODE_BYTES - 1, LBT_CODE_BYTES + 20};
	Rng			rng = {93};
	LbtKeyLearner learner[2];
	LbtKeyCode	code[2];
	uint8_t		room[STRING_ROOM];

	(void) arg;
	memset(code, 0, sizeof(code));
	for (int i = 0; i < 2; i++)
		lbt_keycode_begin(&learner[i], 1, (LbtColumnOrder[]) {{.bytes = 1}});
	for (int round = 0; round < 4000; round++)
	{
		LbtKeyValue value = usual_string(&rng, &kind, room);
		LbtKeyValue cut = value;

		memset(room, 'a', LBT_CODE_PREFIX);
		if (cut.length > LBT_CODE_BYTES)
			cut.length = LBT_CODE_BYTES;
		if (round < 2000)
		{
			lbt_keycode_observe(&learner[0], &value, 1);
			lbt_keycode_observe(&learner[1], &cut, 1);
			continue;
		}
		if (round == 2000)
			for (int i = 0; i < 2; i++)
				lbt_keycode_finish(&learner[i], &code[i]);
		CHECK(lbt_keycode(&code[0], &value, 1, false) ==
			  lbt_keycode(&code[1], &cut, 1, false), "a cut string has another code");
	}
	CHECK(memcmp(&code[0], &code[1], sizeof(LbtKeyCode)) == 0, "cut strings teach something else");
	CHECK(code[0].column[0].prefix_length == LBT_CODE_PREFIX, "not all of the prefix is used");
}

/* The strings of a column decide before the columns after it. */
static void
string_before_number(const void *arg)
{
	KeyColumns	columns = {.ncolumns = 2,.order = {{.bytes = 1}, {0}}};
	LbtKeyLearner learner;
	LbtKeyCode	code;
	uint64_t	last = 0;

	(void) arg;
	lbt_keycode_begin(&learner, 2, columns.order);
	for (uint64_t i = 0; i < 200; i++)
	{
		char		text[8];
		int			length = snprintf(text, sizeof(text), "%d", (int) (i % 100));
		LbtKeyValue key[2] = {{.bytes = (const uint8_t *) text,.length = (uint32_t) length}, {.ordered = i / 100}};

		lbt_keycode_observe(&learner, key, 2);
	}
	lbt_keycode_finish(&learner, &code);
	CHECK(code.ncolumns == 2, "the second column has no digit");
	for (int i = 0; i < 110; i++)
		for (uint64_t n = 0; n < 2; n++)
		{
			/* in order: 0, 00..09, 1, 10..19 */
			char		text[8];
			int			length = i % 11 == 0 ? snprintf(text, sizeof(text), "%d", i / 11) :
				snprintf(text, sizeof(text), "%d%d", i / 11, i % 11 - 1);
			LbtKeyValue key[2] = {{.bytes = (const uint8_t *) text,.length = (uint32_t) length}, {.ordered = n}};
			uint64_t	now = lbt_keycode(&code, key, 2, false);

			CHECK((i == 0 && n == 0) || now > last, "(%s, %d) is not above what is below it", text, (int) n);
			last = now;
		}
}

/* A saved model brings back the code as it was, and no garbage in its place. */
static void
survives_saving(const void *arg)
{
	Rng			rng = {95};
	LbtLeaf		leaves[40];

	(void) arg;
	for (uint32_t i = 0; i < 40; i++)
		leaves[i] = (LbtLeaf) {.min_code = i * 1000,.block = i + 1};
	for (uint32_t round = 0; round < 3000; round++)
	{
		Scheme		scheme;
		size_t		len;
		LbtLeaf    *saved;

		random_columns(&rng, &scheme, 1 + (int) rng_below(&rng, MAX_COLUMNS),
					   round % (nstring_kinds + 1));
		learn(&rng, &scheme, few_or_many(&rng));
		saved = save(&scheme.code, leaves, 40, 4096, &len);
		CHECK(saved != NULL, "it does not fit");
		free(saved);
	}
}

static const int column_counts[] = {1, 2, 3, 5, MAX_COLUMNS};

const Test	keybytes_tests[] = {
	{"codes keep the order of byte strings", keeps_order, &column_counts[0]},
	{"codes keep the order of byte strings and numbers: 2 columns", keeps_order, &column_counts[1]},
	{"codes keep the order of byte strings and numbers: 3 columns", keeps_order, &column_counts[2]},
	{"codes keep the order of byte strings and numbers: 5 columns", keeps_order, &column_counts[3]},
	{"codes keep the order of byte strings and numbers: more columns than codes have", keeps_order,
	&column_counts[4]},
	{"codes keep the order of all short strings, learned from any two", short_strings, NULL},
	{"codes keep the order of all short strings, descending", short_strings, column_counts},
	{"19 decimal digits behind a prefix all count", decimal_digits, NULL},
	{"16 hexadecimal digits all count", hexadecimal_digits, NULL},
	{"16 hexadecimal digits all count, descending", hexadecimal_digits, column_counts},
	{"of random bytes the first eight count", random_bytes, NULL},
	{"what a string is cut to is all that counts", cut_strings, NULL},
	{"strings of several lengths decide before the next column", string_before_number, NULL},
	{"a key code survives being saved", survives_saving, NULL},
	{NULL, NULL, NULL}
};
