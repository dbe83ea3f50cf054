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
	for (; seen->longest < length; seen->longest++)
	{
		seen->count[seen->longest] = 0;
		memset(seen->members[seen->longest], 0, sizeof(seen->members[0]));
	}
	if (length < LBT_CODE_BYTES)
		seen->ends[length] = 1;
	for (uint32_t i = 0; i < length; i++)
	{
		if (bytes[i] < seen->low[i])
			seen->low[i] = bytes[i];
		if (bytes[i] > seen->high[i])
			seen->high[i] = bytes[i];
		seen->count[i]++;
		seen->members[i][bytes[i] >> 3] |= (uint8_t) (1 << (bytes[i] & 7));
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

int
lbt_alphabet_rank(LbtAlphabet *alphabet)
{
	int			n = 0;

	for (int byte = 0; byte <= UINT8_MAX; byte++)
	{
		alphabet->rank[byte] = (uint8_t) n;
		n += lbt_is_member(alphabet, (uint8_t) byte);
	}
	return n;
}

/* How many alphabets the first digits use. */
static int
used_alphabets(const LbtKeyCode *kc, int ndigits)
{
	int			n = 0;

	for (int i = 0; i < ndigits; i++)
		if (kc->digit[i].alphabet > n)
			n = kc->digit[i].alphabet;
	return n;
}

/* The alphabet that holds all these members: one that is there, or a new one; 0: none to be had. */
static uint8_t
find_alphabet(LbtKeyCode *kc, const uint8_t *members)
{
	int			n = used_alphabets(kc, kc->ndigits);

	for (int i = 0; i < n; i++)
	{
		bool		all = true;

		for (int at = 0; at < 32; at++)
			all = all && (members[at] & ~kc->alphabet[i].members[at]) == 0;
		if (all)
			return (uint8_t) (i + 1);
	}
	if (n == LBT_CODE_ALPHABETS)
		return 0;
	memcpy(kc->alphabet[n].members, members, 32);
	(void) lbt_alphabet_rank(&kc->alphabet[n]);
	return (uint8_t) (n + 1);
}

static uint32_t
count_members(const uint8_t *members)
{
	uint32_t	n = 0;

	for (int at = 0; at < 32; at++)
		n += (uint32_t) __builtin_popcount(members[at]);
	return n;
}

/*
 * Use an alphabet where that makes the digit a quarter smaller (0.4 bits), and so many keys have been seen that what
 * is not in it is rare.
 */
static void
use_alphabet(LbtKeyCode *kc, LbtKeyDigit *d, const uint8_t *members, uint32_t count)
{
	uint32_t	range = (uint32_t) (d->span + 1 - d->ends);
	uint32_t	n;
	uint8_t		alphabet;

	if (count_members(members) * 4 > range * 3 || count / 4 < range)
		return;
	alphabet = find_alphabet(kc, members);
	if (alphabet == 0)
		return;
	n = count_members(kc->alphabet[alphabet - 1].members);	/* perhaps more than here */
	if (n * 4 > range * 3)
		return;
	d->alphabet = alphabet;
	d->span = n - 1 + d->ends;
}

/*
 * A byte string's prefix and digits, the last of which is the end of the longest string.  The columns that
 * follow may not order strings that these digits have not: if they do not reach the end, they are the last.
 */
static void
add_bytes(LbtKeyCode *kc, LbtCodeColumn *column, const LbtColumnSeen *seen, uint32_t *used,
		  bool alphabets)
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
			if (alphabets)
				use_alphabet(kc, d, seen->members[at], seen->count[at]);
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
add_columns(const LbtKeyLearner *learner, LbtKeyCode *kc, bool alphabets)
{
	uint32_t	used = 0;

	memset(kc, 0, sizeof(*kc));
	while (kc->ncolumns < learner->ncolumns && kc->ndigits < LBT_CODE_DIGITS)
	{
		const LbtColumnSeen *seen = &learner->column[kc->ncolumns];
		LbtCodeColumn *column = &kc->column[kc->ncolumns];

		column->order = seen->order;
		if (seen->order.bytes)
			add_bytes(kc, column, seen, &used, alphabets);
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
	for (int i = used_alphabets(kc, ndigits); i < LBT_CODE_ALPHABETS; i++)
		memset(&kc->alphabet[i], 0, sizeof(LbtAlphabet));
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
	add_columns(learner, kc, true);
	lbt_keycode_weigh(kc);
}

void
lbt_keycode_finish_within(const LbtKeyLearner *learner, uint64_t room, LbtKeyCode *kc)
{
	add_columns(learner, kc, false);
	weigh_within(kc, room);
}

/* ---- use ---- */

static bool
valid_column(const LbtKeyCode *kc, const LbtCodeColumn *column, const LbtKeyDigit *digit)
{
	if (column->ndigits < 1 || (uint32_t) column->prefix + column->prefix_length > LBT_CODE_PREFIX)
		return false;
	if (!column->order.bytes)
		return column->ndigits == 1;
	for (int i = 0; i < column->ndigits; i++)
		if (digit[i].alphabet > LBT_CODE_ALPHABETS ||
			(digit[i].alphabet > 0 &&
			 digit[i].span + 1 - digit[i].ends != count_members(kc->alphabet[digit[i].alphabet - 1].members)) ||
			digit[i].ends > 1 || digit[i].lo > UINT8_MAX || digit[i].span > (uint64_t) UINT8_MAX + digit[i].ends)
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
			!valid_column(kc, &kc->column[i], &kc->digit[digits]))
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
		if (!lbt_add_column(column->order, kc->alphabet, kc->prefix + column->prefix, column->prefix_length, &values[i], d,
							d + column->ndigits, end, &code))
			return code;
		d += column->ndigits;
	}
	return code;
}
