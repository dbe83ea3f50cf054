/*
 * keycode.c - learning a mixed-radix key code and computing codes.
 */
#include "keycode.h"

/* From so many bytes on, only bytes that were seen have a rank. */
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
 * A byte string's prefix and digits; the last digit is the end of the longest
 * string.  If the digits do not reach that end, this is the last column: later
 * ones must not order strings that these digits have not told apart.
 */
static void
add_bytes(LbtKeyCode *kc, LbtCodeColumn *column, const LbtColumnSeen *seen, uint32_t *used)
{
	uint32_t	start = common_prefix(seen);

	if (start > LBT_CODE_PREFIX - *used)
		start = LBT_CODE_PREFIX - *used;	/* the rest: digits of one value */
	column->prefix_length = (uint16_t) start;
	memcpy(kc->prefix + *used, seen->low, start);
	*used += start;
	for (uint32_t at = start;
		 at <= seen->longest && at < LBT_CODE_BYTES && kc->ndigits < LBT_CODE_DIGITS; at++)
	{
		LbtKeyDigit *d = &kc->digit[kc->ndigits++];

		d->ends = seen->ends[at] || at == seen->longest;
		if (at < seen->longest)
		{
			d->lo = kc->rank[seen->low[at]];
			d->span = kc->rank[seen->high[at]] - d->lo + d->ends;
		}
		column->ndigits++;
	}
}

/* Prefixes and digits, not weighed yet.  Ranks are in place. */
static void
add_columns(const LbtKeyLearner *learner, LbtKeyCode *kc)
{
	uint32_t	used = 0;

	while (kc->ncolumns < learner->ncolumns && kc->ndigits < LBT_CODE_DIGITS)
	{
		const LbtColumnSeen *seen = &learner->column[kc->ncolumns];
		LbtCodeColumn *column = &kc->column[kc->ncolumns];

		kc->order[kc->ncolumns] = learner->order[kc->ncolumns];
		if (learner->order[kc->ncolumns].bytes)
			add_bytes(kc, column, seen, &used);
		else
		{
			if (seen->lo <= seen->hi)	/* else only NULLs or short pivots */
			{
				/* Keep the lowest code for a first column's leading NULLs. */
				uint64_t	lo = seen->lo -
					(kc->ncolumns == 0 && kc->order[0].nulls_first && seen->lo > 0);

				kc->digit[kc->ndigits].lo = lo;
				kc->digit[kc->ndigits].span = seen->hi - lo;
			}
			kc->ndigits++;
			column->ndigits = 1;
		}
		kc->ncolumns++;
	}
}

/* Keep the first ndigits digits, at least one; codes lose the rest. */
static void
truncate_digits(LbtKeyCode *kc, int ndigits)
{
	int			columns = 0;
	int			left = ndigits;

	while (columns < kc->ncolumns && left > kc->column[columns].ndigits)
		left -= kc->column[columns++].ndigits;
	if (columns == kc->ncolumns)
		return;					/* there are no more */
	kc->column[columns].ndigits = (uint8_t) left;
	kc->ndigits = ndigits;
	kc->ncolumns = columns + 1;
}

/*
 * Give every digit its place, most significant first, until the space is full:
 * as many codes as one step of the digit above may hold.  A digit wider than
 * the space left loses its low bits; those after it get none: they tie.
 */
static void
weigh_digits(LbtKeyCode *kc)
{
	unsigned	__int128 space = (unsigned __int128) 1 << 64;
	int			placed = 0;

	while (placed < kc->ndigits)
	{
		LbtKeyDigit *d = &kc->digit[placed];

		while ((unsigned __int128) (d->span >> d->shift) + 1 > space && d->shift < 63)
			d->shift++;
		if (d->shift > 0 && space < 2 && placed > 0)
			break;				/* nothing is left */
		space /= (unsigned __int128) (d->span >> d->shift) + 1;
		d->weight = space > UINT64_MAX ? UINT64_MAX : (uint64_t) space;
		placed++;
		if (d->shift > 0)
			break;
	}
	truncate_digits(kc, placed);
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
	uint16_t	below = 0;

	memset(kc, 0, sizeof(*kc));
	for (int byte = 0; byte <= UINT8_MAX; byte++)
		if (learner->nbytes < ALPHABET_BYTES || learner->members[byte])
			kc->rank[byte] = below++;
		else
			kc->rank[byte] = below | LBT_NO_MEMBER;
	add_columns(learner, kc);
	weigh_digits(kc);
	kc->raw = is_single_number(kc);
	if (kc->raw)
	{
		kc->digit[0].lo = 0;
		kc->digit[0].span = UINT64_MAX;
		kc->digit[0].weight = 1;
	}
}

/* ---- use ---- */

bool
lbt_keycode_valid(const LbtKeyCode *kc)
{
	int			digits = 0;
	int			prefix_bytes = 0;

	if (kc->ndigits < 1 || kc->ndigits > LBT_CODE_DIGITS ||
		kc->ncolumns < 1 || kc->ncolumns > LBT_CODE_COLUMNS ||
		(kc->raw && !is_single_number(kc)))
		return false;
	for (int i = 0; i < kc->ncolumns; i++)
	{
		digits += kc->column[i].ndigits;
		prefix_bytes += kc->column[i].prefix_length;
	}
	return digits == kc->ndigits && prefix_bytes <= LBT_CODE_PREFIX;
}

size_t
lbt_keycode_bytes(const LbtKeyCode *kc)
{
	size_t		prefix_bytes = 0;
	bool		strings = false;

	for (int i = 0; i < kc->ncolumns; i++)
	{
		prefix_bytes += kc->column[i].prefix_length;
		strings |= kc->order[i].bytes != 0;
	}
	return strings ? offsetof(LbtKeyCode, prefix) + prefix_bytes :
		offsetof(LbtKeyCode, digit) + (size_t) kc->ndigits * sizeof(LbtKeyDigit);
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
lbt_keycode_digits(const LbtKeyCode *kc, const LbtKeyValue *values, int nvalues, LbtMissing missing)
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
			return rest_of_code(code, d, end, missing == LBT_MISSING_HIGH);

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
