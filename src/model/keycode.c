/*
 * keycode.c - learning a mixed-radix key code and computing codes.
 */
#include "keycode.h"

/* From this many bytes on, only bytes that were seen have a rank. */
#define ALPHABET_BYTES 4096

/* ---- learning ---- */

void
lbt_keycode_begin(LbtKeyLearner *learner, int ncolumns, const LbtColumnOrder *order)
{
	memset(learner, 0, sizeof(*learner));
	learner->ncolumns = ncolumns < LBT_CODE_COLUMNS ? ncolumns : LBT_CODE_COLUMNS;
	memcpy(learner->order, order, sizeof(*order) * (size_t) learner->ncolumns);
	for (int i = 0; i < learner->ncolumns; i++)
	{
		learner->column[i].lo = UINT64_MAX;
		memset(learner->column[i].low, UINT8_MAX, sizeof(learner->column[i].low));
	}
}

static void
observe_bytes(LbtKeyLearner *learner, LbtColumnSeen *seen, const uint8_t *bytes, uint32_t length)
{
	if (length > LBT_CODE_BYTES)
		length = LBT_CODE_BYTES;
	if (length > seen->longest)
		seen->longest = length;
	if (length < LBT_CODE_BYTES)
		seen->ends[length] = 1;
	learner->nbytes += length;
	for (uint32_t i = 0; i < length; i++)
	{
		if (bytes[i] < seen->low[i])
			seen->low[i] = bytes[i];
		if (bytes[i] > seen->high[i])
			seen->high[i] = bytes[i];
		learner->members[bytes[i]] = true;
	}
}

void
lbt_keycode_observe(LbtKeyLearner *learner, const LbtKeyValue *values, int nvalues)
{
	for (int i = 0; i < learner->ncolumns && i < nvalues; i++)
	{
		LbtColumnSeen *seen = &learner->column[i];

		if (values[i].isnull)
			continue;
		if (learner->order[i].bytes)
		{
			observe_bytes(learner, seen, values[i].bytes, values[i].length);
			continue;
		}
		if (values[i].ordered < seen->lo)
			seen->lo = values[i].ordered;
		if (values[i].ordered > seen->hi)
			seen->hi = values[i].ordered;
	}
}

/* The length of the prefix that all strings seen have in common. */
static uint32_t
common_prefix(const LbtColumnSeen *seen)
{
	uint32_t	n = 0;

	while (n < seen->longest && !seen->ends[n] && seen->low[n] == seen->high[n])
		n++;
	return n;
}

/*
 * Add a digit, less significant than those before.  One step of the last digit
 * holds *space + 1 codes, up to 2^64.  If the digit is wider than that, it
 * loses its low bits and is the last.  Returns false without space.
 */
static bool
add_digit(LbtKeyCode *kc, int column, uint64_t *space, LbtKeyDigit digit)
{
	LbtKeyDigit *d = &kc->digit[kc->ndigits];
	uint64_t	steps;

	if (kc->ndigits == LBT_CODE_DIGITS || (kc->ndigits > 0 && d[-1].shift > 0) ||
		(*space == 0 && digit.span > 0))
		return false;
	while (digit.span >> digit.shift > *space)
		digit.shift++;
	steps = (digit.span >> digit.shift) + 1;
	/* (*space + 1) / steps - 1, where either sum may be 2^64 */
	*space = steps == *space + 1 ? 0 : *space / steps + (*space % steps == steps - 1) - 1;
	digit.weight = *space == UINT64_MAX ? UINT64_MAX : *space + 1;
	*d = digit;
	kc->ndigits++;
	kc->column[column].ndigits++;
	kc->ncolumns = column + 1;
	return true;
}

static bool
add_number(LbtKeyCode *kc, int column, uint64_t *space, const LbtColumnSeen *seen)
{
	LbtKeyDigit d = {0};

	if (seen->lo <= seen->hi)	/* else only NULLs or short pivots */
	{
		/* Keep the lowest code for a first column's leading NULLs. */
		d.lo = seen->lo - (column == 0 && kc->order[0].nulls_first && seen->lo > 0);
		d.span = seen->hi - d.lo;
	}
	return add_digit(kc, column, space, d);
}

/*
 * A byte string's prefix and digits, the last of which is the end of the
 * longest string.  Returns false if the digits do not reach it: later columns
 * must not order strings that these digits have not told apart.
 */
static bool
add_bytes(LbtKeyCode *kc, int column, uint64_t *space, const LbtColumnSeen *seen,
		  uint32_t *prefix_bytes)
{
	uint32_t	start = common_prefix(seen);

	if (start > LBT_CODE_PREFIX - *prefix_bytes)
		start = LBT_CODE_PREFIX - *prefix_bytes;	/* the rest are digits */
	kc->column[column].prefix_length = (uint16_t) start;
	memcpy(kc->prefix + *prefix_bytes, seen->low, start);
	*prefix_bytes += start;
	for (uint32_t at = start; at <= seen->longest && at < LBT_CODE_BYTES; at++)
	{
		LbtKeyDigit d = {.ends = seen->ends[at] || at == seen->longest};

		if (at < seen->longest)
		{
			d.lo = kc->rank[seen->low[at]];
			d.span = kc->rank[seen->high[at]] - d.lo + d.ends;
		}
		if (!add_digit(kc, column, space, d))
			return false;
	}
	return true;
}

/* A single number's code is its ordered value, for unseen keys too. */
static bool
is_single_number(const LbtKeyCode *kc)
{
	return kc->ncolumns == 1 && !kc->order[0].bytes;
}

void
lbt_keycode_finish(const LbtKeyLearner *learner, LbtKeyCode *kc)
{
	uint64_t	space = UINT64_MAX;
	uint32_t	prefix_bytes = 0;
	uint16_t	below = 0;
	bool		reached = true;

	memset(kc, 0, sizeof(*kc));
	for (int byte = 0; byte <= UINT8_MAX; byte++)
		if (learner->nbytes < ALPHABET_BYTES || learner->members[byte])
			kc->rank[byte] = below++;
		else
			kc->rank[byte] = below | LBT_NO_MEMBER;
	for (int i = 0; i < learner->ncolumns && reached; i++)
	{
		kc->order[i] = learner->order[i];
		reached = kc->order[i].bytes ?
			add_bytes(kc, i, &space, &learner->column[i], &prefix_bytes) :
			add_number(kc, i, &space, &learner->column[i]);
	}
	kc->raw = is_single_number(kc);
	if (kc->raw)
	{
		kc->digit[0].lo = 0;
		kc->digit[0].span = UINT64_MAX;
		kc->digit[0].weight = 1;
	}
}

/* ---- use ---- */

void
lbt_keycode_range(const LbtKeyCode *kc, uint64_t code, int ncolumns, uint64_t *first,
				  uint64_t *last)
{
	const LbtKeyDigit *d = kc->digit;
	uint64_t	rest = code;

	*last = UINT64_MAX;
	for (int i = 0; i < ncolumns && i < kc->ncolumns; i++)
		for (int n = kc->column[i].ndigits; n > 0 && d < kc->digit + kc->ndigits; n--, d++)
		{
			uint64_t	value = d->weight > 0 ? rest / d->weight : 0;

			if (value > d->span >> (d->shift & 63))
				value = d->span >> (d->shift & 63);
			rest -= value * d->weight;
			if (d->weight < UINT64_MAX)
				*last = code - rest + (d->weight - 1);
		}
	*first = code - rest;
}

size_t
lbt_keycode_bytes(const LbtKeyCode *kc)
{
	int			digits = 0;
	int			prefix_bytes = 0;
	bool		strings = false;

	if (kc->ndigits < 1 || kc->ndigits > LBT_CODE_DIGITS ||
		kc->ncolumns < 1 || kc->ncolumns > LBT_CODE_COLUMNS ||
		(kc->raw && !is_single_number(kc)))
		return 0;
	for (int i = 0; i < kc->ncolumns; i++)
	{
		digits += kc->column[i].ndigits;
		prefix_bytes += kc->column[i].prefix_length;
		strings |= kc->order[i].bytes != 0;
	}
	if (digits != kc->ndigits || prefix_bytes > LBT_CODE_PREFIX)
		return 0;
	return strings ? offsetof(LbtKeyCode, prefix) + (size_t) prefix_bytes :
		offsetof(LbtKeyCode, digit) + (size_t) digits * sizeof(LbtKeyDigit);
}

/* What a digit of this value adds to the code. */
static inline uint64_t
digit_code(const LbtKeyDigit *d, uint64_t digit)
{
	return (digit >> (d->shift & 63)) * d->weight;
}

/* The lowest (or highest) code that begins with the digits already placed. */
static inline uint64_t
rest_of_code(uint64_t code, const LbtKeyDigit *from, const LbtKeyDigit *end, bool high)
{
	if (high)
		for (const LbtKeyDigit *d = from; d < end; d++)
			code += digit_code(d, d->span);
	return code;
}

/*
 * Add a byte string's digits, those before column_end.  Returns false if the
 * code is complete: the string is outside what was learned, and the rest of
 * the code says on which side.
 */
static inline bool
add_digits(const LbtKeyCode *kc, bool desc, const uint8_t *prefix, uint32_t prefix_length,
		   const LbtKeyValue *value, const LbtKeyDigit *d, const LbtKeyDigit *column_end,
		   uint64_t *code)
{
	const LbtKeyDigit *end = kc->digit + kc->ndigits;
	const uint8_t *bytes = value->bytes;
	const uint8_t *bytes_end = bytes + value->length;

	if (prefix_length > 0)
	{
		uint32_t	common = value->length < prefix_length ? value->length : prefix_length;
		int			cmp = memcmp(bytes, prefix, common);

		if (cmp != 0 || common < prefix_length)
		{
			*code = rest_of_code(*code, d, end, (cmp > 0) != desc);
			return false;
		}
		bytes += prefix_length;
	}
	for (; d < column_end; d++)
	{
		uint64_t	rank;
		uint64_t	digit;
		bool		seen;

		if (bytes == bytes_end)
		{
			/* The string ends here; the column's other digits stay 0. */
			if (d->ends)
				*code += digit_code(d, desc ? d->span : 0);
			else
				*code = rest_of_code(*code, d, end, desc);
			return d->ends;
		}
		rank = kc->rank[*bytes++];
		digit = rank - d->lo;
		seen = digit < d->span + 1 - d->ends;
		if (!seen)
		{
			/* Not seen here: take the place of the next higher byte seen. */
			rank &= LBT_NO_MEMBER - 1;
			digit = rank > d->lo ? rank - d->lo : 0;
			if (digit >= d->span + 1 - d->ends)
			{
				*code = rest_of_code(*code, d, end, !desc);
				return false;
			}
		}
		digit += d->ends;
		*code += digit_code(d, desc ? d->span - digit : digit);
		if (!seen)
		{
			*code = rest_of_code(*code, d + 1, end, desc);
			return false;
		}
	}
	return true;
}

uint64_t
lbt_keycode_digits(const LbtKeyCode *kc, const LbtKeyValue *values, int nvalues, bool high)
{
	const LbtKeyDigit *d = kc->digit;
	const LbtKeyDigit *end = kc->digit + kc->ndigits;
	const uint8_t *prefix = kc->prefix;
	uint64_t	code = 0;

	for (int i = 0; i < kc->ncolumns && d < end; i++)
	{
		const LbtCodeColumn *column = &kc->column[i];
		LbtColumnOrder order = kc->order[i];
		const LbtKeyValue *value = &values[i];

		if (i >= nvalues)
			return rest_of_code(code, d, end, high);

		/*
		 * A value outside the range, or NULL, takes the end of the range, and
		 * so must all columns after it: they may not order keys that this
		 * column has already ordered.
		 */
		if (value->isnull)
			return rest_of_code(code, d, end, !order.nulls_first);
		if (order.bytes)
		{
			/* A garbage code may count no digit for a number. */
			ptrdiff_t	ndigits = column->ndigits < end - d ? column->ndigits : end - d;

			if (!add_digits(kc, order.desc, prefix, column->prefix_length, value, d, d + ndigits,
							&code))
				return code;
			d += ndigits;
			prefix += column->prefix_length;
			continue;
		}
		if (value->ordered < d->lo)
			return code;
		if (value->ordered - d->lo > d->span)
			return rest_of_code(code, d, end, true);
		code += digit_code(d, value->ordered - d->lo);
		d++;
	}
	return code;
}
