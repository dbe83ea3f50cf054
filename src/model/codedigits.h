/*
 * codedigits.h - from values to digits: what the key code and the codes of segments have in common.
 *
 * Private to the model.  Digits may be read from memory that others overwrite: no more is relied on than
 * that from here to end there are digits.
 */
#ifndef LBT_CODEDIGITS_H
#define LBT_CODEDIGITS_H

#include "keycode.h"

#include <string.h>

/* What a digit of this value adds to the code. */
static inline uint64_t
lbt_digit_code(const LbtKeyDigit *d, uint64_t digit)
{
	return (digit >> (d->shift & 63)) * d->weight;
}

/* The code of all that comes first (or last) below the digits already placed. */
static inline uint64_t
lbt_rest_of_code(uint64_t code, const LbtKeyDigit *from, const LbtKeyDigit *end, bool high)
{
	if (high)
		for (const LbtKeyDigit *d = from; d < end; d++)
			code += lbt_digit_code(d, d->span);
	return code;
}

/* A byte between the end of the string, which is a digit, and the lowest byte seen: as the latter's lower end. */
static inline uint64_t
lbt_gap_above_end(uint64_t code, const LbtKeyDigit *d, const LbtKeyDigit *end, bool desc)
{
	uint64_t	digit = desc ? d->span - d->ends : d->ends;

	return lbt_rest_of_code(code + lbt_digit_code(d, digit), d + 1, end, desc);
}

static inline bool
lbt_is_member(const LbtAlphabet *a, uint8_t byte)
{
	return a->members[byte >> 3] >> (byte & 7) & 1;
}

/*
 * The digit of a byte in an alphabet, whose digit 0 may be the end of the string.  False when the byte is none of its
 * members; *code is complete then, as what is next in the column's order begins.
 */
static inline bool
lbt_digit_in_alphabet(const LbtAlphabet *a, uint8_t byte, const LbtKeyDigit *d, const LbtKeyDigit *end, bool desc,
					  uint64_t *digit, uint64_t *code)
{
	uint64_t	rank = a->rank[byte];

	if (lbt_is_member(a, byte))
	{
		*digit = rank;
		return true;
	}
	if (rank == 0)
		*code = d->ends ? lbt_gap_above_end(*code, d, end, desc) : lbt_rest_of_code(*code, d, end, desc);
	else if (rank >= d->span + 1 - d->ends)
		*code = lbt_rest_of_code(*code, d, end, !desc);
	else
		*code += lbt_digit_code(d, desc ? d->span - (rank - 1 + d->ends) : rank + d->ends);
	return false;
}

/*
 * Add a byte string's digits, those before column_end.  False when the code is complete: the string is
 * outside of what was learned, and the rest of the code says on which side.
 */
static inline bool
lbt_add_digits(bool desc, const LbtAlphabet *alphabets, const uint8_t *prefix, uint32_t prefix_length,
			   const LbtKeyValue *value, const LbtKeyDigit *d, const LbtKeyDigit *column_end,
			   const LbtKeyDigit *end, uint64_t *code)
{
	const uint8_t *bytes;
	uint32_t	left;

	if (prefix_length > 0)
	{
		uint32_t	common = value->length < prefix_length ? value->length : prefix_length;
		int			cmp = memcmp(value->bytes, prefix, common);

		if (cmp != 0 || common < prefix_length)
		{
			*code = lbt_rest_of_code(*code, d, end, (cmp > 0) != desc);
			return false;
		}
	}
	bytes = value->bytes + prefix_length;
	left = value->length - prefix_length;
	for (; d < column_end; d++)
	{
		uint64_t	digit;

		if (left == 0)
		{
			/* The string ends here.  The column's other digits stay 0: nothing else begins like this. */
			if (d->ends)
				*code += lbt_digit_code(d, desc ? d->span : 0);
			else
				*code = lbt_rest_of_code(*code, d, end, desc);
			return d->ends;
		}
		digit = (uint64_t) *bytes - d->lo;
		if (alphabets != NULL && d->alphabet > 0)
		{
			if (!lbt_digit_in_alphabet(&alphabets[d->alphabet - 1], *bytes, d, end, desc, &digit, code))
				return false;
		}
		else if (digit >= d->span + 1 - d->ends)
		{
			*code = *bytes < d->lo && d->ends ? lbt_gap_above_end(*code, d, end, desc) :
				lbt_rest_of_code(*code, d, end, (*bytes >= d->lo) != desc);
			return false;
		}
		digit += d->ends;
		*code += lbt_digit_code(d, desc ? d->span - digit : digit);
		bytes++;
		left--;
	}
	return true;
}

/* Add the digits of a column's value; false when the code is complete.  Without alphabets, no digit has one. */
static inline bool
lbt_add_column(LbtColumnOrder order, const LbtAlphabet *alphabets, const uint8_t *prefix, uint32_t prefix_length,
			   const LbtKeyValue *value, const LbtKeyDigit *d, const LbtKeyDigit *column_end,
			   const LbtKeyDigit *end, uint64_t *code)
{
	/*
	 * A value outside the range, or NULL, takes the end of the range, and so must all columns
	 * after it: they may not order keys that this column has already ordered.
	 */
	if (value->isnull)
		*code = lbt_rest_of_code(*code, d, end, !order.nulls_first);
	else if (order.bytes)
		return lbt_add_digits(order.desc, alphabets, prefix, prefix_length, value, d, column_end, end, code);
	else if (value->ordered < d->lo)
		*code = lbt_rest_of_code(*code, d, end, false);
	else if (value->ordered - d->lo > d->span)
		*code = lbt_rest_of_code(*code, d, end, true);
	else
	{
		*code += lbt_digit_code(d, value->ordered - d->lo);
		return true;
	}
	return false;
}

#endif							/* LBT_CODEDIGITS_H */
