/*
 * keycode.c - learning a mixed-radix key code and computing codes; see keycode.h for the contract.
 */
#include "keycode.h"

/* A single column needs no range: its ordered value is the code, for unseen keys too. */
static void
take_raw(LbtKeyDigit *d)
{
	d->lo = 0;
	d->hi = UINT64_MAX;
	d->weight = 1;
	d->shift = 0;
}

void
lbt_keycode_begin(LbtKeyCode *kc, int ncolumns, const bool *nulls_first)
{
	kc->ndigits = ncolumns < LBT_CODE_COLUMNS ? ncolumns : LBT_CODE_COLUMNS;
	for (int i = 0; i < LBT_CODE_COLUMNS; i++)
	{
		LbtKeyDigit *d = &kc->digit[i];

		d->lo = UINT64_MAX;		/* lo > hi: nothing seen yet */
		d->hi = 0;
		d->weight = 0;
		d->shift = 0;
		d->nulls_first = i < kc->ndigits && nulls_first[i];
	}
	if (kc->ndigits == 1)
		take_raw(&kc->digit[0]);	/* usable at once: there is nothing to learn */
}

void
lbt_keycode_observe(LbtKeyCode *kc, const LbtKeyValue *values, int nvalues)
{
	for (int i = 0; i < kc->ndigits && i < nvalues; i++)
	{
		LbtKeyDigit *d = &kc->digit[i];

		if (values[i].isnull)
			continue;
		if (values[i].ordered < d->lo)
			d->lo = values[i].ordered;
		if (values[i].ordered > d->hi)
			d->hi = values[i].ordered;
	}
}

/*
 * Give every digit its place, most significant first, until 64 bits are full.  A digit wider than
 * the room that is left loses its low bits, and the columns after it get no room: they tie.
 */
void
lbt_keycode_finish(LbtKeyCode *kc)
{
	unsigned __int128 room = (unsigned __int128) 1 << 64;	/* codes that one step above may hold */
	int			placed = 0;

	while (placed < kc->ndigits)
	{
		LbtKeyDigit *d = &kc->digit[placed];

		if (d->lo > d->hi)
			d->lo = d->hi = 0;	/* only NULLs, or only truncated pivots */
		d->shift = 0;
		while (d->shift < 63 && (unsigned __int128) ((d->hi - d->lo) >> d->shift) + 1 > room)
			d->shift++;
		if ((unsigned __int128) ((d->hi - d->lo) >> d->shift) + 1 > room)
			break;				/* no room at all; never the first digit */
		room /= (unsigned __int128) ((d->hi - d->lo) >> d->shift) + 1;
		d->weight = room > UINT64_MAX ? UINT64_MAX : (uint64_t) room;
		placed++;
		if (d->shift > 0)
			break;
	}
	kc->ndigits = placed;
	if (placed == 1)
		take_raw(&kc->digit[0]);
}

bool
lbt_keycode_valid(const LbtKeyCode *kc)
{
	if (kc->ndigits < 1 || kc->ndigits > LBT_CODE_COLUMNS)
		return false;
	for (int i = 0; i < kc->ndigits; i++)
		if (kc->digit[i].lo > kc->digit[i].hi || kc->digit[i].shift > 63)
			return false;
	return true;
}

/* The code of all that comes first (or last) below the digits already placed. */
static inline uint64_t
rest_of_code(const LbtKeyCode *kc, uint64_t code, int from, bool high)
{
	if (high)
		for (int i = from; i < kc->ndigits; i++)
		{
			const LbtKeyDigit *d = &kc->digit[i];

			code += ((d->hi - d->lo) >> d->shift) * d->weight;
		}
	return code;
}

uint64_t
lbt_keycode_digits(const LbtKeyCode *kc, const LbtKeyValue *values, int nvalues, LbtMissing missing)
{
	uint64_t	code = 0;

	for (int i = 0; i < kc->ndigits; i++)
	{
		const LbtKeyDigit *d = &kc->digit[i];

		if (i >= nvalues)
			return rest_of_code(kc, code, i, missing == LBT_MISSING_HIGH);

		/*
		 * A value outside the range, or NULL, takes the end of the range, and so must all columns
		 * after it: they may not order keys that this column has already ordered.
		 */
		if (values[i].isnull)
			return rest_of_code(kc, code, i, !d->nulls_first);
		if (values[i].ordered < d->lo)
			return rest_of_code(kc, code, i, false);
		if (values[i].ordered > d->hi)
			return rest_of_code(kc, code, i, true);
		code += ((values[i].ordered - d->lo) >> d->shift) * d->weight;
	}
	return code;
}
