/*
 * test_keycode.c - the key code keeps the order of keys, for every type, range, NULL and prefix.
 */
#include "contract.h"
#include "test.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A random scheme: columns, the ranges their values are mostly in, and a code learned from these. */
typedef struct Scheme
{
	KeyColumns	columns;
	uint64_t	base[MAX_COLUMNS];
	uint64_t	width[MAX_COLUMNS]; /* values are base .. base + width */
	LbtKeyCode	code;
} Scheme;

static void
signed_order(const void *arg)
{
	static const int64_t values[] = {
		INT64_MIN, INT64_MIN + 1, -4294967296, -32768, -1, 0, 1, 32767, 4294967296, INT64_MAX - 1,
		INT64_MAX
	};

	(void) arg;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		for (size_t j = 0; j < sizeof(values) / sizeof(values[0]); j++)
			CHECK((values[i] < values[j]) ==
				  (lbt_order_signed(values[i]) < lbt_order_signed(values[j])),
				  "%lld and %lld", (long long) values[i], (long long) values[j]);
}

/* As the index orders floats: NaN equals NaN and is above all else, zeros are equal. */
static int
compare_floats(double a, double b)
{
	if (isnan(a) || isnan(b))
		return (isnan(a) != 0) - (isnan(b) != 0);
	return (a > b) - (a < b);
}

static void
check_float_pair(double a, double b)
{
	uint64_t	x = lbt_order_float(a);
	uint64_t	y = lbt_order_float(b);

	CHECK(compare_floats(a, b) == (x > y) - (x < y), "%a and %a become %llx and %llx", a, b,
		  (unsigned long long) x, (unsigned long long) y);
}

static void
float_order(const void *arg)
{
	static const double values[] = {
		-INFINITY, -DBL_MAX, -1e300, -1.5, -1.0, -DBL_MIN, -2e-310, -4.9406564584124654e-324, -0.0,
		0.0, 4.9406564584124654e-324, 2e-310, DBL_MIN, DBL_EPSILON, 1.0, 1.5, 3.4028234663852886e38,
		1e300, DBL_MAX, INFINITY, NAN, -NAN
	};
	Rng			rng = {51};

	(void) arg;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		for (size_t j = 0; j < sizeof(values) / sizeof(values[0]); j++)
			check_float_pair(values[i], values[j]);
	for (int round = 0; round < 200000; round++)
	{
		uint64_t	bits[2] = {rng_next(&rng), rng_next(&rng)};
		double		pair[2];

		if (round % 4 == 0)		/* neighbours, across zero and up to NaN too */
			bits[1] = bits[0] + 1;
		if (round % 4 == 1)
			bits[0] = bits[1] ^ UINT64_C(1) << rng_below(&rng, 64);
		if (round % 8 == 2)
			bits[0] >>= 12;		/* denormal */
		memcpy(pair, bits, sizeof(pair));
		check_float_pair(pair[0], pair[1]);
		check_float_pair(pair[0], values[rng_below(&rng, sizeof(values) / sizeof(values[0]))]);
	}
}

/* Ordered values back to what they came from; of equal floats, one. */
static void
orders_inverted(const void *arg)
{
	static const double floats[] = {
		-INFINITY, -DBL_MAX, -1.5, -4.9406564584124654e-324, 0.0, 4.9406564584124654e-324, DBL_MIN,
		INFINITY
	};
	Rng			rng = {55};

	(void) arg;
	for (size_t i = 0; i < sizeof(floats) / sizeof(floats[0]); i++)
		CHECK(lbt_unorder_float(lbt_order_float(floats[i])) == floats[i], "%a", floats[i]);
	CHECK(isnan(lbt_unorder_float(lbt_order_float(NAN))), "NaN");
	CHECK(!signbit(lbt_unorder_float(lbt_order_float(-0.0))), "zero has a sign");
	for (int round = 0; round < 10000; round++)
	{
		uint64_t	bits = rng_any_width(&rng);
		int64_t		value = lbt_unorder_signed(bits);
		double		back = lbt_unorder_float(bits);

		CHECK(lbt_order_signed(value) == bits, "%lld", (long long) value);
		if (!isnan(back) && back != 0)
			CHECK(lbt_order_float(back) == bits, "%a", back);
	}
}

/* Mostly within the scheme's range, often at its ends, sometimes anywhere. */
static LbtKeyValue
random_value(Rng *rng, const Scheme *scheme, int column)
{
	uint64_t	base = scheme->base[column];
	uint64_t	width = scheme->width[column];
	LbtKeyValue value = {.isnull = false};

	switch (rng_below(rng, 16))
	{
		case 0:
			value.isnull = true;
			value.ordered = rng_next(rng);	/* must not matter */
			break;
		case 1:
			value.ordered = rng_any_width(rng);
			break;
		case 2:
			value.ordered = base + rng_below(rng, 5) - 2;
			break;
		case 3:
			value.ordered = base + width + rng_below(rng, 5) - 2;
			break;
		case 4:
			value.ordered = rng_below(rng, 2) ? UINT64_MAX : 0;
			break;
		default:
			value.ordered = base + (width == UINT64_MAX ? rng_next(rng) :
									rng_below(rng, width + 1));
	}
	return value;
}

static KeyBound
random_bound(Rng *rng, const Scheme *scheme)
{
	int			ncolumns = scheme->columns.ncolumns;
	KeyBound	bound = {.nvalues = ncolumns};

	if (rng_below(rng, 4) == 0)
		bound.nvalues = (int) rng_below(rng, (uint64_t) ncolumns + 1);
	bound.high = rng_below(rng, 2) != 0;
	for (int i = 0; i < bound.nvalues; i++)
		bound.values[i] = random_value(rng, scheme, i);
	return bound;
}

static void
random_columns(Rng *rng, Scheme *scheme, int ncolumns)
{
	static const uint64_t widths[] = {
		0, 0, 1, 5, 255, 1000000, UINT32_MAX, UINT64_C(1) << 40, UINT64_C(1) << 62,
		(UINT64_C(1) << 63) - 1, UINT64_C(1) << 63, UINT64_MAX - 1, UINT64_MAX
	};
	bool		wide = rng_below(rng, 3) == 0;	/* else the digits have a chance to fit */

	scheme->columns.ncolumns = ncolumns;
	for (int i = 0; i < ncolumns; i++)
	{
		uint64_t	width = widths[rng_below(rng, wide ? 13 : 6)];

		scheme->columns.order[i] = (LbtColumnOrder) {.nulls_first = rng_below(rng, 2)};
		scheme->width[i] = width;
		scheme->base[i] = rng_any_width(rng);
		if (scheme->base[i] > UINT64_MAX - width)
			scheme->base[i] = UINT64_MAX - width;
	}
}

/* Learns from separators as an index has them: some truncated, some with NULLs, all in range. */
static void
learn(Rng *rng, Scheme *scheme, int nseparators)
{
	LbtKeyLearner learner;

	lbt_keycode_begin(&learner, scheme->columns.ncolumns, scheme->columns.order);
	for (int s = 0; s < nseparators; s++)
	{
		KeyBound	separator = random_bound(rng, scheme);

		for (int i = 0; i < separator.nvalues; i++)
			if (separator.values[i].ordered < scheme->base[i] ||
				separator.values[i].ordered - scheme->base[i] > scheme->width[i] ||
				rng_below(rng, 20) == 0)
				separator.values[i].ordered = scheme->base[i] +
					(rng_below(rng, 2) ? scheme->width[i] : 0);
		lbt_keycode_observe(&learner, separator.values, separator.nvalues);
	}
	lbt_keycode_finish(&learner, &scheme->code);
	CHECK(lbt_keycode_bytes(&scheme->code) > 0, "a learned code of %d columns is not valid",
		  scheme->columns.ncolumns);
}

/* Random schemes, random keys and prefixes of them: every pair is in order. */
static void
keeps_order(const void *arg)
{
	int			ncolumns = *(const int *) arg;
	Rng			rng = {60 + (uint64_t) ncolumns};

	for (int round = 0; round < 600; round++)
	{
		KeyBound	bounds[40];
		Scheme		scheme;

		random_columns(&rng, &scheme, ncolumns);
		learn(&rng, &scheme, (int) rng_below(&rng, 50));
		for (int i = 0; i < 40; i++)
		{
			bounds[i] = random_bound(&rng, &scheme);
			if (i > 0 && rng_below(&rng, 2))	/* else long common prefixes would be rare */
			{
				int			common = (int) rng_below(&rng, (uint64_t) ncolumns + 1);

				for (int v = 0; v < common && v < bounds[i].nvalues &&
					 v < bounds[i - 1].nvalues; v++)
					bounds[i].values[v] = bounds[i - 1].values[v];
			}
		}
		for (int i = 0; i < 40; i++)
			for (int j = 0; j < i; j++)
				check_code_order(&scheme.code, &scheme.columns, &bounds[i], &bounds[j]);
	}
}

/* Both ends of every prefix of a key enclose the key, and the ends of its longer prefixes. */
static void
prefixes_enclose(const void *arg)
{
	Rng			rng = {52};

	(void) arg;
	for (int round = 0; round < 4000; round++)
	{
		Scheme		scheme;
		KeyBound	key;
		uint64_t	low = 0;
		uint64_t	high = UINT64_MAX;

		random_columns(&rng, &scheme, 1 + (int) rng_below(&rng, MAX_COLUMNS));
		learn(&rng, &scheme, (int) rng_below(&rng, 30));
		key = random_bound(&rng, &scheme);
		for (int length = 0; length <= key.nvalues; length++)
		{
			uint64_t	inner_low = lbt_keycode(&scheme.code, key.values, length, false);
			uint64_t	inner_high = lbt_keycode(&scheme.code, key.values, length, true);

			CHECK(low <= inner_low && inner_low <= inner_high && inner_high <= high,
				  "%d of %d columns: [%llu, %llu] is not within [%llu, %llu]", length,
				  scheme.columns.ncolumns, (unsigned long long) inner_low,
				  (unsigned long long) inner_high, (unsigned long long) low,
				  (unsigned long long) high);
			low = inner_low;
			high = inner_high;
			for (int end = 0; end < 2; end++)
			{
				uint64_t	first;
				uint64_t	last;

				lbt_keycode_range(&scheme.code, end ? high : low, length, &first, &last);
				CHECK(first <= low && high <= last, "%d columns' codes [%llu, %llu]: [%llu, %llu]",
					  length, (unsigned long long) low, (unsigned long long) high,
					  (unsigned long long) first, (unsigned long long) last);
			}
		}
		CHECK(key.nvalues < scheme.columns.ncolumns || low == high,
			  "a complete key has two codes");
	}
}

static LbtKeyCode
learn_range(int ncolumns, const LbtColumnOrder *order, const LbtKeyValue *low, const LbtKeyValue *high)
{
	LbtKeyLearner learner;
	LbtKeyCode	code;

	lbt_keycode_begin(&learner, ncolumns, order);
	lbt_keycode_observe(&learner, low, ncolumns);
	lbt_keycode_observe(&learner, high, ncolumns);
	lbt_keycode_finish(&learner, &code);
	return code;
}

static void
single_column(const void *arg)
{
	static const LbtKeyValue null = {.ordered = 99, .isnull = true};

	(void) arg;
	for (int nulls_first = 0; nulls_first < 2; nulls_first++)
	{
		LbtKeyCode	code = learn_range(1, (LbtColumnOrder[]) {{.nulls_first = nulls_first}},
									   (LbtKeyValue[]) {{.ordered = 1000}},
									   (LbtKeyValue[]) {{.ordered = 2000}});
		const uint64_t values[] = {0, 1, 999, 1000, 1500, 2000, 2001, UINT64_MAX};

		for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
			CHECK(lbt_keycode(&code, &(LbtKeyValue) {.ordered = values[i]}, 1, false) ==
				  values[i], "the code is not the value, trained on others");
		CHECK(lbt_keycode(&code, &null, 1, false) == (nulls_first ? 0 : UINT64_MAX),
			  "NULL is not at its end");
		CHECK(lbt_keycode(&code, &null, 0, false) == 0 &&
			  lbt_keycode(&code, &null, 0, true) == UINT64_MAX,
			  "no columns are not both ends");
	}
}

/* Where all digits fit, different keys within the ranges have different codes. */
static void
tells_keys_apart(const void *arg)
{
	LbtKeyValue low[4] = {{.ordered = 100}, {.ordered = 7}, {.ordered = UINT64_C(1) << 63}, {.ordered = 0}};
	LbtKeyValue high[4] = {{.ordered = 65635}, {.ordered = 7}, {.ordered = (UINT64_C(1) << 63) + 65535},
	{.ordered = UINT32_MAX}};
	KeyColumns	columns = {.ncolumns = 4,.order = {{0, 0, 0}, {0, 0, 1}, {0, 0, 0}, {0, 0, 1}}};
	LbtKeyCode	code = learn_range(4, columns.order, low, high);
	Rng			rng = {53};

	(void) arg;
	for (int round = 0; round < 20000; round++)
	{
		KeyBound	keys[2] = {{.nvalues = 4}, {.nvalues = 4}};
		bool		same;

		for (int i = 0; i < 4; i++)
		{
			uint64_t	span = high[i].ordered - low[i].ordered + 1;

			keys[0].values[i].ordered = low[i].ordered + rng_below(&rng, span);
			keys[1].values[i].ordered = rng_below(&rng, 3) ? keys[0].values[i].ordered :
				low[i].ordered + rng_below(&rng, span);
		}
		if (round % 2)			/* the smallest difference there is */
		{
			keys[1] = keys[0];
			keys[1].values[3].ordered ^= 1;
		}
		check_code_order(&code, &columns, &keys[0], &keys[1]);
		same = compare_bounds(&columns, &keys[0], &keys[1]) == 0;
		CHECK(same == (lbt_keycode(&code, keys[0].values, 4, false) ==
					   lbt_keycode(&code, keys[1].values, 4, false)),
			  "codes of different keys tie, though there is room");
	}
}

/* A digit wider than its room loses low bits only. */
static void
wide_digit_shifts(const void *arg)
{
	LbtKeyCode	code = learn_range(2, (LbtColumnOrder[2]) {{0}},
								   (LbtKeyValue[]) {{.ordered = 0}, {.ordered = 0}},
								   (LbtKeyValue[]) {{.ordered = 255}, {.ordered = UINT64_MAX}});
	uint64_t	previous = 0;

	(void) arg;
	for (uint64_t first = 0; first < 256; first++)
		for (uint64_t second = 0; second < 64; second++)
		{
			LbtKeyValue key[2] = {{.ordered = first}, {.ordered = second << 58}};
			uint64_t	now = lbt_keycode(&code, key, 2, false);

			CHECK(now > previous || (first == 0 && second == 0), "key %llu, %llu << 58 ties",
				  (unsigned long long) first, (unsigned long long) second);
			previous = now;
		}
}

/* A digit that is too wide by one value loses one bit, and no more. */
static void
misses_room_by_one(const void *arg)
{
	const uint64_t width = UINT64_C(1) << 32;
	LbtKeyCode	code = learn_range(2, (LbtColumnOrder[2]) {{0}},
								   (LbtKeyValue[]) {{.ordered = 0}, {.ordered = 0}},
								   (LbtKeyValue[]) {{.ordered = width}, {.ordered = width - 1}});

	(void) arg;
	for (uint64_t i = 0; i < 64; i++)
	{
		LbtKeyValue key[2] = {{.ordered = i}, {.ordered = i << 26}};
		LbtKeyValue next[2] = {{.ordered = i}, {.ordered = (i << 26) + 2}};

		CHECK(lbt_keycode(&code, key, 2, false) <
			  lbt_keycode(&code, next, 2, false), "keys two values apart tie");
	}
}

/* The codes of keys that share a column's value are those of no other value, where digits have room. */
static void
ranges_tell_values_apart(const void *arg)
{
	LbtKeyCode	code = learn_range(3, (LbtColumnOrder[3]) {{0}},
								   (LbtKeyValue[]) {{.ordered = 10}, {.ordered = 0}, {.ordered = 5}},
								   (LbtKeyValue[]) {{.ordered = 19}, {.ordered = 6}, {.ordered = 90}});

	(void) arg;
	for (int columns = 1; columns <= 3; columns++)
		for (uint64_t i = 0; i < 70; i++)
		{
			LbtKeyValue key[3] = {{.ordered = 10 + i / 7}, {.ordered = i % 7}, {.ordered = 5 + i}};
			uint64_t	low = lbt_keycode(&code, key, columns, false);
			uint64_t	high = lbt_keycode(&code, key, columns, true);
			uint64_t	first;
			uint64_t	last;
			uint64_t	next_first;

			lbt_keycode_range(&code, lbt_keycode(&code, key, 3, false), columns, &first, &last);
			CHECK(first == low && high <= last, "%d columns of key %llu", columns,
				  (unsigned long long) i);
			key[columns - 1].ordered++;
			low = lbt_keycode(&code, key, columns, false);
			if (low == high)
				continue;		/* beyond what was seen */
			lbt_keycode_range(&code, low, columns, &next_first, &high);
			CHECK(last < next_first, "%d columns of key %llu: ranges meet", columns,
				  (unsigned long long) i);
		}
}

/* Only values widen a digit: a NULL's bits and missing columns do not.  NULLs that come first have a code of their own. */
static void
nulls_teach_nothing(const void *arg)
{
	const LbtColumnOrder order[2] = {{.nulls_first = 1}, {0}};
	LbtKeyValue values[2] = {{.ordered = 50}, {.ordered = 60}};
	LbtKeyValue nulls[2] = {{.ordered = 0,.isnull = true}, {.ordered = UINT64_MAX,.isnull = true}};
	LbtKeyLearner learner;
	LbtKeyCode	code;

	(void) arg;
	lbt_keycode_begin(&learner, 2, order);
	lbt_keycode_observe(&learner, nulls, 2);
	lbt_keycode_observe(&learner, values, 2);
	lbt_keycode_observe(&learner, nulls, 1);
	values[0].ordered = 51;
	values[1].ordered = UINT64_MAX;
	lbt_keycode_observe(&learner, values, 1);
	lbt_keycode_observe(&learner, values, 0);
	lbt_keycode_finish(&learner, &code);
	CHECK(code.digit[0].lo == 49 && code.digit[0].span == 2, "the first column's range is %llu..%llu",
		  (unsigned long long) code.digit[0].lo, (unsigned long long) (code.digit[0].lo + code.digit[0].span));
	nulls[0].ordered = 50;
	CHECK(lbt_keycode(&code, nulls, 1, true) < lbt_keycode(&code, &(LbtKeyValue) {.ordered = 50}, 1, false),
		  "NULL and the least value tie");
	CHECK(code.digit[1].lo == 60 && code.digit[1].span == 0,
		  "the second column's range is %llu..%llu", (unsigned long long) code.digit[1].lo,
		  (unsigned long long) (code.digit[1].lo + code.digit[1].span));
}

/* Two columns of which the first leaves no room, with and without all values seen. */
static void
no_room_for_second(const void *arg)
{
	static const uint64_t ranges[][2] = {
		{0, UINT64_MAX}, {5, UINT64_MAX}, {5, UINT64_MAX - 5}, {0, UINT64_C(1) << 63},
		{UINT64_C(1) << 62, UINT64_C(3) << 62}, {UINT64_C(1) << 62, (UINT64_C(3) << 62) + 1}
	};
	static const LbtKeyValue edges[] = {
		{.ordered = 0}, {.ordered = 1}, {.ordered = UINT64_C(1) << 62}, {.ordered = UINT64_C(3) << 62},
		{.ordered = UINT64_MAX - 1}, {.ordered = UINT64_MAX}, {.ordered = 0,.isnull = true}
	};
	const size_t nranges = sizeof(ranges) / sizeof(ranges[0]);

	(void) arg;
	for (size_t r = 0; r < nranges * nranges * 2; r++)
	{
		const uint64_t *first = ranges[r % nranges];
		const uint64_t *second = ranges[r / nranges % nranges];
		bool		nulls_first = r >= nranges * nranges;
		KeyColumns	columns = {.ncolumns = 2, .order = {{0, 0, nulls_first}, {0, 0, nulls_first}}};
		LbtKeyCode	code = learn_range(2, columns.order,
									   (LbtKeyValue[]) {{.ordered = first[0]}, {.ordered = second[0]}},
									   (LbtKeyValue[]) {{.ordered = first[1]}, {.ordered = second[1]}});
		Rng			rng = {54};

		for (int round = 0; round < 400; round++)
		{
			KeyBound	a = {.nvalues = (int) rng_below(&rng, 3)};
			KeyBound	b = {.nvalues = (int) rng_below(&rng, 3)};

			a.high = round & 1;
			b.high = round & 2;
			for (int i = 0; i < 2; i++)
			{
				a.values[i] = edges[rng_below(&rng, 7)];
				b.values[i] = edges[rng_below(&rng, 7)];
			}
			check_code_order(&code, &columns, &a, &b);
		}
	}
}

/* Columns beyond what a code holds tie; those before them do not. */
static void
more_columns_than_digits(const void *arg)
{
	LbtKeyValue low[MAX_COLUMNS] = {{.ordered = 0}};
	LbtKeyValue high[MAX_COLUMNS];
	LbtColumnOrder order[MAX_COLUMNS] = {{0}};
	LbtKeyCode	code;
	uint64_t	codes[2];

	(void) arg;
	for (int i = 0; i < MAX_COLUMNS; i++)
		high[i] = (LbtKeyValue) {.ordered = 3};
	code = learn_range(MAX_COLUMNS, order, low, high);
	CHECK(code.ndigits == LBT_CODE_COLUMNS, "%d digits", code.ndigits);
	for (int i = 0; i < MAX_COLUMNS; i++)
	{
		LbtKeyValue key[MAX_COLUMNS] = {{.ordered = 0}};

		codes[0] = lbt_keycode(&code, key, MAX_COLUMNS, false);
		key[i].ordered = 1;
		codes[1] = lbt_keycode(&code, key, MAX_COLUMNS, false);
		CHECK((codes[0] < codes[1]) == (i < LBT_CODE_COLUMNS), "column %d", i);
	}
}

static void
invalid_codes(const void *arg)
{
	LbtKeyCode	code = learn_range(2, (LbtColumnOrder[]) {{0}, {.nulls_first = 1}},
								   (LbtKeyValue[]) {{.ordered = 0}, {.ordered = 0}},
								   (LbtKeyValue[]) {{.ordered = 9}, {.ordered = 9}});
	LbtKeyCode	bad;

	(void) arg;
	CHECK(lbt_keycode_bytes(&code) > 0, "a learned code is not valid");
	for (int32_t ndigits = -2; ndigits < 12; ndigits++)
	{
		bad = code;
		for (int i = 2; i < LBT_CODE_COLUMNS; i++)
		{
			bad.digit[i] = bad.digit[0];
			bad.column[i] = bad.column[0];
		}
		bad.ncolumns = bad.ndigits = ndigits;
		CHECK((lbt_keycode_bytes(&bad) > 0) == (ndigits >= 1 && ndigits <= LBT_CODE_COLUMNS),
			  "%d digits", ndigits);
	}
	bad = code;
	bad.raw = 1;
	CHECK(lbt_keycode_bytes(&bad) == 0, "two columns are their value");
	bad = code;
	bad.column[1].prefix_length = LBT_CODE_PREFIX + 1;
	CHECK(lbt_keycode_bytes(&bad) == 0, "a prefix beyond all prefixes is valid");
}

static const int column_counts[] = {1, 2, 3, 4, 5, 6, 7, 8, MAX_COLUMNS};

#define ORDER(ncolumns, at) \
	{"codes keep the order of keys of " ncolumns, keeps_order, &column_counts[at]}

const Test	keycode_tests[] = {
	{"signed integers keep their order", signed_order, NULL},
	{"floats keep their order: NaN, zeros, infinities, denormals", float_order, NULL},
	{"ordered values turn back into their values", orders_inverted, NULL},
	ORDER("1 column", 0),
	ORDER("2 columns", 1),
	ORDER("3 columns", 2),
	ORDER("4 columns", 3),
	ORDER("5 columns", 4),
	ORDER("6 columns", 5),
	ORDER("7 columns", 6),
	ORDER("8 columns", 7),
	ORDER("more columns than a code has digits", 8),
	{"both ends of a prefix enclose its keys", prefixes_enclose, NULL},
	{"ranges tell values apart", ranges_tell_values_apart, NULL},
	{"a single column's value is its code", single_column, NULL},
	{"keys in range are told apart where there is room", tells_keys_apart, NULL},
	{"a digit wider than its room loses low bits only", wide_digit_shifts, NULL},
	{"a digit too wide by one value loses one bit", misses_room_by_one, NULL},
	{"only values seen widen a digit", nulls_teach_nothing, NULL},
	{"order is kept when the first column leaves no room", no_room_for_second, NULL},
	{"columns beyond the last digit tie", more_columns_than_digits, NULL},
	{"an unusable key code is not valid", invalid_codes, NULL},
	{NULL, NULL, NULL}
};
