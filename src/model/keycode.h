/*
 * keycode.h - the key code: an order-preserving map from an index key to uint64.
 *
 * A key is a list of columns, most significant first.  Every column value is first brought to an
 * "ordered value": a uint64 whose unsigned order is the column's order in the index (DESC already
 * inverted).  A code is those ordered values as digits of a mixed-radix number; the radices are
 * learned from the keys seen in training (cf. the mixed-radix string keys of "Learned Indexes for a
 * Google-scale Disk-based Database", Abu-Libdeh et al., 2020).
 *
 * Contract: key1 <= key2 implies code1 <= code2.  Different keys may share a code (a tie); nothing
 * may depend on codes being different.  No allocation, no globals, no PostgreSQL.
 */
#ifndef LBT_KEYCODE_H
#define LBT_KEYCODE_H

#include <stdbool.h>
#include <stdint.h>

/* More columns than this do not refine a code: they tie. */
#define LBT_CODE_COLUMNS 8

/* How a column's values become ordered values. */
typedef enum LbtKeyKind
{
	LBT_KEY_NONE = 0,			/* no code for this type */
	LBT_KEY_SIGNED,				/* int64 and everything that widens to it */
	LBT_KEY_UNSIGNED,			/* oid, bool, "char" */
	LBT_KEY_FLOAT				/* double; float widens to it; NaN above all, -0 = 0 */
} LbtKeyKind;

/* One column of a search key or separator. */
typedef struct LbtKeyValue
{
	uint64_t	ordered;		/* meaningless when isnull */
	bool		isnull;
} LbtKeyValue;

/* One digit of the code. */
typedef struct LbtKeyDigit
{
	uint64_t	lo;				/* smallest and largest ordered value seen in training */
	uint64_t	hi;
	uint64_t	weight;			/* what one step of the shifted digit adds to the code */
	uint8_t		shift;			/* low bits dropped, for a digit wider than the room left */
	uint8_t		nulls_first;	/* not bool: read from memory that others may overwrite */
} LbtKeyDigit;

typedef struct LbtKeyCode
{
	int32_t		ndigits;		/* 1..LBT_CODE_COLUMNS */
	LbtKeyDigit digit[LBT_CODE_COLUMNS];
} LbtKeyCode;

/* What a key of fewer columns stands for: the lowest or the highest key with that prefix. */
typedef enum LbtMissing
{
	LBT_MISSING_LOW,
	LBT_MISSING_HIGH
} LbtMissing;

static inline uint64_t
lbt_order_signed(int64_t v)
{
	return (uint64_t) v ^ (UINT64_C(1) << 63);
}

static inline uint64_t
lbt_order_float(double v)
{
	union
	{
		double		d;
		uint64_t	u;
	}			x;

	if (v != v)
		return UINT64_MAX;
	x.d = v + 0.0;				/* -0 becomes 0 */
	return (x.u >> 63) ? ~x.u : x.u | (UINT64_C(1) << 63);
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
	union
	{
		double		d;
		uint64_t	u;
	}			x;

	if (ordered == UINT64_MAX)
		return __builtin_nan("");
	x.u = (ordered >> 63) ? ordered ^ (UINT64_C(1) << 63) : ~ordered;
	return x.d;
}

/*
 * Learning takes three steps: begin, one observe for every separator, finish.  A separator may have
 * fewer values than columns (a truncated pivot); NULLs and missing values teach nothing.
 */
extern void lbt_keycode_begin(LbtKeyCode *kc, int ncolumns, const bool *nulls_first);
extern void lbt_keycode_observe(LbtKeyCode *kc, const LbtKeyValue *values, int nvalues);
extern void lbt_keycode_finish(LbtKeyCode *kc);

/* Is this key code, read from memory that others write, safe to use? */
extern bool lbt_keycode_valid(const LbtKeyCode *kc);

/* The general case of lbt_keycode(). */
extern uint64_t lbt_keycode_digits(const LbtKeyCode *kc, const LbtKeyValue *values, int nvalues,
								   LbtMissing missing);

/* The code of a key of nvalues leading columns. */
static inline uint64_t
lbt_keycode(const LbtKeyCode *kc, const LbtKeyValue *values, int nvalues, LbtMissing missing)
{
	if (kc->ndigits == 1 && nvalues >= 1 && !values[0].isnull)
		return values[0].ordered;	/* a single column's ordered value is its code */
	return lbt_keycode_digits(kc, values, nvalues, missing);
}

#endif							/* LBT_KEYCODE_H */
