/*
 * keycode.c - learning a mixed-radix key code and computing codes; see keycode.h for the contract.
 */
#include "codedigits.h"

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
	column->prefix = (uint16_t) *used;
	column->prefix_length = (uint16_t) start;
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

/* Prefixes and digits, not weighed yet. */
static void
add_columns(const LbtKeyLearner *learner, LbtKeyCode *kc)
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

void
lbt_keycode_truncate(LbtKeyCode *kc, int ndigits)
{
	int			columns = 0;
	int			left = ndigits;

	while (columns < kc->ncolumns && left > kc->column[columns].ndigits)
		left -= kc->column[columns++].ndigits;
	if (columns == kc->ncolumns)
		return;					/* there are no more */
	kc->column[columns].ndigits = (uint8_t) left;
	drop_rest(kc, ndigits, columns + 1);
}

/*
 * Give every digit its place, most significant first, until the room is full.  A digit wider than
 * the room that is left loses its low bits, and the digits after it get no room: they tie.
 */
static void
weigh_within(LbtKeyCode *kc, unsigned __int128 room)	/* room: codes that one step above may hold */
{
	int			placed = 0;

	while (placed < kc->ndigits)
	{
		LbtKeyDigit *d = &kc->digit[placed];

		d->shift = 0;
		while ((unsigned __int128) (d->span >> d->shift) + 1 > room && d->shift < 63)
			d->shift++;
		if (d->shift > 0 && room < 2 && placed > 0)
			break;				/* no room at all */
		room /= (unsigned __int128) (d->span >> d->shift) + 1;
		d->weight = room > UINT64_MAX ? UINT64_MAX : (uint64_t) room;
		placed++;
		if (d->shift > 0)
			break;
	}
	lbt_keycode_truncate(kc, placed);
	kc->raw = 0;
}

void
lbt_keycode_weigh(LbtKeyCode *kc)
{
	weigh_within(kc, (unsigned __int128) 1 << 64);
	if (is_single_number(kc))
		take_raw(kc);
}

void
lbt_keycode_finish(const LbtKeyLearner *learner, LbtKeyCode *kc)
{
	add_columns(learner, kc);
	lbt_keycode_weigh(kc);
}

void
lbt_keycode_finish_within(const LbtKeyLearner *learner, uint64_t room, LbtKeyCode *kc)
{
	add_columns(learner, kc);
	weigh_within(kc, room);
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

uint64_t
lbt_keycode_digits(const LbtKeyCode *kc, const LbtKeyValue *values, int nvalues, LbtMissing missing)
{
	const LbtKeyDigit *d = kc->digit;
	const LbtKeyDigit *end = kc->digit + kc->ndigits;
	uint64_t	code = 0;

	for (int i = 0; i < kc->ncolumns; i++)
	{
		const LbtCodeColumn *column = &kc->column[i];

		if (i >= nvalues)
			return lbt_rest_of_code(code, d, end, missing == LBT_MISSING_HIGH);
		if (!lbt_add_column(column->order, kc->prefix + column->prefix, column->prefix_length, &values[i], d,
							d + column->ndigits, end, &code))
			return code;
		d += column->ndigits;
	}
	return code;
}
