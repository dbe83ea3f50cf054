/*
 * keycode.c - learning a mixed-radix key code and computing codes; see keycode.h for the contract.
 */
#include "keycode.h"

#include <string.h>

/* ---- learning ---- */

void
lbt_keycode_begin(LbtKeyLearner *learner, int ncolumns, const LbtColumnOrder *order)
{
	learner->ncolumns = ncolumns < LBT_CODE_COLUMNS ? ncolumns : LBT_CODE_COLUMNS;
	for (int i = 0; i < learner->ncolumns; i++)
	{
		LbtColumnSeen *seen = &learner->column[i];

		seen->order = order[i];
		seen->lo = UINT64_MAX;
		seen->hi = 0;
		seen->longest = 0;
		memset(seen->low, UINT8_MAX, sizeof(seen->low));
		memset(seen->high, 0, sizeof(seen->high));
		memset(seen->ends, 0, sizeof(seen->ends));
	}
}

static void
observe_bytes(LbtColumnSeen *seen, const uint8_t *bytes, uint32_t length)
{
	if (length > LBT_CODE_BYTES)
		length = LBT_CODE_BYTES;
	if (length > seen->longest)
		seen->longest = length;
	if (length < LBT_CODE_BYTES)
		seen->ends[length] = 1;
	for (uint32_t i = 0; i < length; i++)
	{
		if (bytes[i] < seen->low[i])
			seen->low[i] = bytes[i];
		if (bytes[i] > seen->high[i])
			seen->high[i] = bytes[i];
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
		if (seen->order.bytes)
		{
			observe_bytes(seen, values[i].bytes, values[i].length);
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
 * A byte string's prefix and digits, the last of which is the end of the longest string.  The columns that
 * follow may not order strings that these digits have not: if they do not reach the end, they are the last.
 */
static void
add_bytes(LbtKeyCode *kc, LbtCodeColumn *column, const LbtColumnSeen *seen, uint32_t *used)
{
	uint32_t	start = common_prefix(seen);

	if (start > LBT_CODE_PREFIX - *used)
		start = LBT_CODE_PREFIX - *used;	/* what is left of it are digits of one value */
	column->prefix = (uint8_t) *used;
	column->prefix_length = (uint8_t) start;
	memcpy(kc->prefix + *used, seen->low, start);
	*used += start;
	for (uint32_t at = start; at <= seen->longest && at < LBT_CODE_BYTES && kc->ndigits < LBT_CODE_DIGITS; at++)
	{
		LbtKeyDigit *d = &kc->digit[kc->ndigits++];

		memset(d, 0, sizeof(*d));
		d->ends = seen->ends[at] || at == seen->longest;
		if (at < seen->longest)
		{
			d->lo = seen->low[at];
			d->span = (uint64_t) (seen->high[at] - seen->low[at]) + d->ends;
		}
		column->ndigits++;
	}
}

static void
add_number(LbtKeyCode *kc, LbtCodeColumn *column, const LbtColumnSeen *seen)
{
	LbtKeyDigit *d = &kc->digit[kc->ndigits++];

	memset(d, 0, sizeof(*d));
	if (seen->lo <= seen->hi)	/* else only NULLs, or only truncated pivots */
	{
		d->lo = seen->lo;
		d->span = seen->hi - seen->lo;
	}
	column->ndigits = 1;
}

/* A single number needs no range: its ordered value is the code, for unseen keys too. */
static bool
is_single_number(const LbtKeyCode *kc)
{
	return kc->ncolumns == 1 && !kc->column[0].order.bytes;
}

static void
take_raw(LbtKeyCode *kc)
{
	kc->raw = 1;
	kc->digit[0] = (LbtKeyDigit) {.lo = 0,.span = UINT64_MAX,.weight = 1};
}

void
lbt_keycode_finish(const LbtKeyLearner *learner, LbtKeyCode *kc)
{
	uint32_t	used = 0;

	memset(kc, 0, sizeof(*kc));
	while (kc->ncolumns < learner->ncolumns && kc->ndigits < LBT_CODE_DIGITS)
	{
		const LbtColumnSeen *seen = &learner->column[kc->ncolumns];
		LbtCodeColumn *column = &kc->column[kc->ncolumns];

		column->order = seen->order;
		if (seen->order.bytes)
			add_bytes(kc, column, seen, &used);
		else
			add_number(kc, column, seen);
		kc->ncolumns++;
	}
	lbt_keycode_weigh(kc);
}

/* Keep this much, and nothing of the rest: the same code is the same bytes. */
static void
drop_rest(LbtKeyCode *kc, int ndigits, int ncolumns)
{
	uint32_t	used = 0;

	for (int i = 0; i < ncolumns; i++)
		used += kc->column[i].prefix_length;
	kc->ndigits = ndigits;
	kc->ncolumns = ncolumns;
	memset(&kc->digit[ndigits], 0, sizeof(LbtKeyDigit) * (size_t) (LBT_CODE_DIGITS - ndigits));
	memset(&kc->column[ncolumns], 0, sizeof(LbtCodeColumn) * (size_t) (LBT_CODE_COLUMNS - ncolumns));
	if (used < LBT_CODE_PREFIX)
		memset(kc->prefix + used, 0, LBT_CODE_PREFIX - used);
}

/*
 * Give every digit its place, most significant first, until 64 bits are full.  A digit wider than
 * the room that is left loses its low bits, and the digits after it get no room: they tie.
 */
void
lbt_keycode_weigh(LbtKeyCode *kc)
{
	unsigned __int128 room = (unsigned __int128) 1 << 64;	/* codes that one step above may hold */
	int			placed = 0;
	int			columns = 0;
	int			left = 0;		/* digits of the column */

	while (placed < kc->ndigits)
	{
		LbtKeyDigit *d = &kc->digit[placed];

		d->shift = 0;
		while ((unsigned __int128) (d->span >> d->shift) + 1 > room && d->shift < 63)
			d->shift++;
		if (d->shift > 0 && room < 2)
			break;				/* no room at all; never the first digit */
		room /= (unsigned __int128) (d->span >> d->shift) + 1;
		d->weight = room > UINT64_MAX ? UINT64_MAX : (uint64_t) room;
		placed++;
		if (left == 0)
			left = kc->column[columns++].ndigits;
		left--;
		if (d->shift > 0)
			break;
	}
	if (columns > 0)
		kc->column[columns - 1].ndigits -= (uint8_t) left;
	drop_rest(kc, placed, columns);
	kc->raw = 0;
	if (is_single_number(kc))
		take_raw(kc);
}

/* ---- use ---- */

static bool
valid_column(const LbtCodeColumn *column, const LbtKeyDigit *digit)
{
	if (!column->order.bytes)
		return column->ndigits == 1;
	if (column->ndigits < 1 || (uint32_t) column->prefix + column->prefix_length > LBT_CODE_PREFIX)
		return false;
	for (int i = 0; i < column->ndigits; i++)
		if (digit[i].ends > 1 || digit[i].lo > UINT8_MAX || digit[i].span > (uint64_t) UINT8_MAX + digit[i].ends)
			return false;
	return true;
}

bool
lbt_keycode_valid(const LbtKeyCode *kc)
{
	int			digits = 0;

	if (kc->ndigits < 1 || kc->ndigits > LBT_CODE_DIGITS ||
		kc->ncolumns < 1 || kc->ncolumns > LBT_CODE_COLUMNS ||
		(kc->raw && !is_single_number(kc)))
		return false;
	for (int i = 0; i < kc->ndigits; i++)
		if (kc->digit[i].shift > 63)
			return false;
	for (int i = 0; i < kc->ncolumns; i++)
	{
		if (kc->column[i].ndigits > kc->ndigits - digits ||
			!valid_column(&kc->column[i], &kc->digit[digits]))
			return false;
		digits += kc->column[i].ndigits;
	}
	return digits == kc->ndigits;
}

/* The code of all that comes first (or last) below the digits already placed. */
static inline uint64_t
rest_of_code(const LbtKeyCode *kc, uint64_t code, const LbtKeyDigit *from, bool high)
{
	if (high)
		for (const LbtKeyDigit *d = from; d < kc->digit + kc->ndigits; d++)
			code += (d->span >> d->shift) * d->weight;
	return code;
}

/* A byte between the end of the string, which is a digit, and the lowest byte seen: as the latter's lower end. */
static inline uint64_t
gap_above_end(const LbtKeyCode *kc, uint64_t code, const LbtKeyDigit *d, bool desc)
{
	uint64_t	digit = desc ? d->span - d->ends : d->ends;

	return rest_of_code(kc, code + (digit >> d->shift) * d->weight, d + 1, desc);
}

/*
 * Add a byte string's digits.  False when the code is complete: the string is outside of what was learned,
 * and the rest of the code says on which side.
 */
static inline bool
add_digits(const LbtKeyCode *kc, const LbtCodeColumn *column, const LbtKeyValue *value,
		   const LbtKeyDigit *d, uint64_t *code)
{
	bool		desc = column->order.desc;
	const uint8_t *bytes;
	uint32_t	left;

	if (column->prefix_length > 0)
	{
		const uint8_t *prefix = kc->prefix + column->prefix;
		uint32_t	common = value->length < column->prefix_length ? value->length : column->prefix_length;
		int			cmp = memcmp(value->bytes, prefix, common);

		if (cmp != 0 || common < column->prefix_length)
		{
			*code = rest_of_code(kc, *code, d, (cmp > 0) != desc);
			return false;
		}
	}
	bytes = value->bytes + column->prefix_length;
	left = value->length - column->prefix_length;
	for (const LbtKeyDigit *end = d + column->ndigits; d < end; d++)
	{
		uint64_t	digit;

		if (left == 0)
		{
			/* The string ends here.  The column's other digits stay 0: nothing else begins like this. */
			if (d->ends)
				*code += ((desc ? d->span : 0) >> d->shift) * d->weight;
			else
				*code = rest_of_code(kc, *code, d, desc);
			return d->ends;
		}
		digit = (uint64_t) *bytes - d->lo;
		if (digit >= d->span + 1 - d->ends)
		{
			*code = *bytes < d->lo && d->ends ? gap_above_end(kc, *code, d, desc) :
				rest_of_code(kc, *code, d, (*bytes >= d->lo) != desc);
			return false;
		}
		digit += d->ends;
		*code += ((desc ? d->span - digit : digit) >> d->shift) * d->weight;
		bytes++;
		left--;
	}
	return true;
}

uint64_t
lbt_keycode_digits(const LbtKeyCode *kc, const LbtKeyValue *values, int nvalues, LbtMissing missing)
{
	const LbtKeyDigit *d = kc->digit;
	uint64_t	code = 0;

	for (int i = 0; i < kc->ncolumns; i++)
	{
		const LbtCodeColumn *column = &kc->column[i];
		const LbtKeyValue *value = &values[i];

		if (i >= nvalues)
			return rest_of_code(kc, code, d, missing == LBT_MISSING_HIGH);

		/*
		 * A value outside the range, or NULL, takes the end of the range, and so must all columns
		 * after it: they may not order keys that this column has already ordered.
		 */
		if (value->isnull)
			return rest_of_code(kc, code, d, !column->order.nulls_first);
		if (column->order.bytes)
		{
			if (!add_digits(kc, column, value, d, &code))
				return code;
		}
		else
		{
			if (value->ordered < d->lo)
				return rest_of_code(kc, code, d, false);
			if (value->ordered - d->lo > d->span)
				return rest_of_code(kc, code, d, true);
			code += ((value->ordered - d->lo) >> d->shift) * d->weight;
		}
		d += column->ndigits;
	}
	return code;
}
