/*
 * keybytes.h - a key of any columns as one byte string.
 *
 * memcmp(), a prefix first, orders these strings as the index orders the keys:
 *
 *     number        eight bytes of its ordered value, the highest first
 *     byte string   as it is if it is the only column and ascends; else with
 *                   an end below all bytes, and inverted if it descends
 *     NULL          above or below all values: with several columns, by a
 *                   byte in front of each; in a single one, nine highest
 *                   bytes or none, and a string like that ties with it
 *
 * No allocation, no globals.
 */
#ifndef LBT_KEYBYTES_H
#define LBT_KEYBYTES_H

#include "keycode.h"

/* A longer key is cut, as is a byte string beyond LBT_CODE_BYTES. */
#define LBT_MAX_KEY_BYTES 1024

typedef struct LbtKeyBytes
{
	const uint8_t *bytes;
	uint32_t	length;
	bool		cut;			/* there may be more */
} LbtKeyBytes;

/*
 * The byte string of a key of nvalues leading columns.  Missing ones are
 * lowest, or highest with high.  It lies in the key's own memory or in room,
 * which has LBT_MAX_KEY_BYTES.
 */
extern LbtKeyBytes lbt_key_bytes(const LbtColumnOrder *order, int ncolumns,
								 const LbtKeyValue *values, int nvalues, bool high, uint8_t *room);

/*
 * How many leading bytes two strings share: no more than either has, even if
 * one changes meanwhile.  The last eight compared may overlap those before.
 */
static inline uint32_t
lbt_common_bytes(const uint8_t *a, uint32_t a_length, const uint8_t *b, uint32_t b_length)
{
	uint32_t	length = a_length < b_length ? a_length : b_length;
	uint32_t	n = 0;

	if (length < sizeof(uint64_t))
	{
		while (n < length && a[n] == b[n])
			n++;
		return n;
	}
	for (;;)
	{
		uint64_t	x;
		uint64_t	y;

		memcpy(&x, a + n, sizeof(x));
		memcpy(&y, b + n, sizeof(y));
		if (x != y)
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
			return n + (uint32_t) __builtin_ctzll((x ^ y) | UINT64_C(1) << 63) / 8;
#else
			return n + (uint32_t) __builtin_clzll((x ^ y) | 1) / 8;
#endif
		n += (uint32_t) sizeof(x);
		if (n == length)
			return n;
		if (length - n < sizeof(x))
			n = length - (uint32_t) sizeof(x);
	}
}

/* The key from this byte on. */
static inline LbtKeyBytes
lbt_rest_of(const LbtKeyBytes *key, uint32_t from)
{
	LbtKeyBytes rest = *key;

	if (from > rest.length)
		from = rest.length;
	rest.bytes += from;
	rest.length -= from;
	return rest;
}

#endif							/* LBT_KEYBYTES_H */
