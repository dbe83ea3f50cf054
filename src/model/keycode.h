/*
 * keycode.h - the key code: an order-preserving map from index key to uint64.
 *
 * A key is a list of columns, most significant first, of two kinds:
 *
 *   number        first brought to an "ordered value": a uint64 whose unsigned
 *                 order is the column's order in the index (DESC already
 *                 inverted).  It is one digit.
 *   byte string   ordered by memcmp(), a string before those that it begins
 *                 (all reversed with desc).  After a prefix that all strings
 *                 share, every byte is a digit; an end is below all bytes.
 *
 * A code is these digits as a mixed-radix number.  Prefixes and radices are
 * learned from the keys seen in training (cf. the string keys of "Learned
 * Indexes for a Google-scale Disk-based Database", Abu-Libdeh et al., 2020).
 *
 * Contract: key1 <= key2 implies code1 <= code2.  Different keys may share a
 * code (a tie); nothing may depend on codes being different.  No allocation,
 * no globals, no PostgreSQL.
 */
#ifndef LBT_KEYCODE_H
#define LBT_KEYCODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* More columns or digits than these do not refine a code: they tie. */
#define LBT_CODE_COLUMNS 8
#define LBT_CODE_DIGITS 32

/* The bytes of all common prefixes together. */
#define LBT_CODE_PREFIX 512

/*
 * A byte string may be cut to this length: its code and what is learned from
 * it stay the same, because the digits run out before.
 */
#define LBT_CODE_BYTES (LBT_CODE_PREFIX + LBT_CODE_DIGITS)

/*
 * A byte's digit is its rank among the bytes seen: where these are few
 * (hexadecimal digits), a code holds more digits.  This bit is in the rank of
 * a byte that was not seen.
 */
#define LBT_NO_MEMBER 0x100

/* A column of a search key or separator; isnull: the rest means nothing. */
typedef struct LbtKeyValue
{
	uint64_t	ordered;		/* of a byte string: the caller's to use */
	bool		isnull;
	uint32_t	length;			/* of a byte string; not set for numbers */
	const uint8_t *bytes;
} LbtKeyValue;

/* How a column is ordered.  Not bool: others may overwrite the memory. */
typedef struct LbtColumnOrder
{
	uint8_t		bytes;			/* a byte string */
	uint8_t		desc;			/* of byte strings; values have it in them */
	uint8_t		nulls_first;
} LbtColumnOrder;

/* A column's part of the code. */
typedef struct LbtCodeColumn
{
	uint8_t		ndigits;		/* 1 for a number */
	uint16_t	prefix_length;	/* of a byte string; after those before */
} LbtCodeColumn;

/* One digit: values lo .. lo + span, or the string's end and ranks from lo. */
typedef struct LbtKeyDigit
{
	uint64_t	lo;				/* smallest value or rank seen in training */
	uint64_t	span;			/* the digit's highest value */
	uint64_t	weight;			/* what a step of the shifted digit adds */
	uint8_t		shift;			/* low bits dropped, out of space */
	uint8_t		ends;			/* 1: digit 0 is the end of the string */
} LbtKeyDigit;

typedef struct LbtKeyCode
{
	int32_t		raw;			/* a single number: its value is its code */
	int32_t		ncolumns;		/* 1..LBT_CODE_COLUMNS: those with digits */
	int32_t		ndigits;		/* 1..LBT_CODE_DIGITS: of all columns */
	LbtColumnOrder order[LBT_CODE_COLUMNS];
	LbtCodeColumn column[LBT_CODE_COLUMNS];
	LbtKeyDigit digit[LBT_CODE_DIGITS];
	uint16_t	rank[256];		/* members below; | LBT_NO_MEMBER if none */
	uint8_t		prefix[LBT_CODE_PREFIX];
} LbtKeyCode;

/* What is learned of a column before its digits are made. */
typedef struct LbtColumnSeen
{
	uint64_t	lo;				/* of numbers; lo > hi: none seen yet */
	uint64_t	hi;
	uint32_t	longest;		/* byte string; LBT_CODE_BYTES: that or more */
	uint8_t		low[LBT_CODE_BYTES];	/* of the bytes in this place */
	uint8_t		high[LBT_CODE_BYTES];
	uint8_t		ends[LBT_CODE_BYTES];	/* some string ends in this place */
} LbtColumnSeen;

typedef struct LbtKeyLearner
{
	int			ncolumns;
	LbtColumnOrder order[LBT_CODE_COLUMNS];
	LbtColumnSeen column[LBT_CODE_COLUMNS];
	uint64_t	nbytes;			/* of all byte strings */
	bool		members[256];	/* which bytes these are */
} LbtKeyLearner;

static inline uint64_t
lbt_order_signed(int64_t v)
{
	return (uint64_t) v ^ (UINT64_C(1) << 63);
}

static inline uint64_t
lbt_order_float(double v)
{
	uint64_t	bits;

	if (v != v)
		return UINT64_MAX;
	v += 0.0;					/* -0 becomes 0 */
	memcpy(&bits, &v, sizeof(bits));
	return (bits >> 63) ? ~bits : bits | (UINT64_C(1) << 63);
}

/* The inverses, for values that came from the functions above. */
static inline int64_t
lbt_unorder_signed(uint64_t ordered)
{
	return (int64_t) (ordered ^ (UINT64_C(1) << 63));
}

static inline double
lbt_unorder_float(uint64_t ordered)
{
	uint64_t	bits = (ordered >> 63) ? ordered ^ (UINT64_C(1) << 63) : ~ordered;
	double		v;

	if (ordered == UINT64_MAX)
		return __builtin_nan("");
	memcpy(&v, &bits, sizeof(v));
	return v;
}

/*
 * To learn, begin, observe each separator, and finish.  NULLs and what a
 * truncated pivot lacks teach nothing.
 */
extern void lbt_keycode_begin(LbtKeyLearner *learner, int ncolumns, const LbtColumnOrder *order);
extern void lbt_keycode_observe(LbtKeyLearner *learner, const LbtKeyValue *values, int nvalues);
extern void lbt_keycode_finish(const LbtKeyLearner *learner, LbtKeyCode *kc);

/*
 * How many first bytes of a key code are used: for numbers, no ranks or
 * prefix.  0: it is untrusted and not safe to use for keys ordered as it says.
 */
extern size_t lbt_keycode_bytes(const LbtKeyCode *kc);

/*
 * The first and last code of keys that share this many leading columns with
 * those of this code, as far as codes tell.
 */
extern void lbt_keycode_range(const LbtKeyCode *kc, uint64_t code, int ncolumns, uint64_t *first,
							  uint64_t *last);

/* The general case of lbt_keycode(). */
extern uint64_t lbt_keycode_digits(const LbtKeyCode *kc, const LbtKeyValue *values, int nvalues,
								   bool high);

/*
 * The code of a key of nvalues leading columns.  Missing ones are lowest, or
 * highest with high.
 */
static inline uint64_t
lbt_keycode(const LbtKeyCode *kc, const LbtKeyValue *values, int nvalues, bool high)
{
	if (kc->raw && nvalues >= 1 && !values[0].isnull)
		return values[0].ordered;
	return lbt_keycode_digits(kc, values, nvalues, high);
}

#endif							/* LBT_KEYCODE_H */
