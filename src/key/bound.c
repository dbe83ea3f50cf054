/*
 * bound.c - finding a bound within a leaf; see bound.h.
 */
#include "key/bound.h"

/*
 * Galloping search, with the test for "before the bound" expanded at compile time: once for any key,
 * once for the common case of one int8 column.
 */
#define LBT_GALLOP(before) \
	do { \
		int			lo = first - 1, /* before the bound, or none */ \
					hi = last + 1,	/* not before the bound, or none */ \
					at = guess < first ? first : guess > last ? last : guess, \
					step = 1; \
		if (before(at)) \
		{ \
			lo = at; \
			while (lo + step < hi && before(lo + step)) \
			{ \
				lo += step; \
				step <<= 1; \
			} \
			hi = Min(lo + step, hi); \
		} \
		else \
		{ \
			hi = at; \
			while (hi - step > lo && !before(hi - step)) \
			{ \
				hi -= step; \
				step <<= 1; \
			} \
			lo = Max(hi - step, lo); \
		} \
		while (hi - lo > 1) \
		{ \
			int			mid = lo + (hi - lo) / 2; \
			if (before(mid)) \
				lo = mid; \
			else \
				hi = mid; \
		} \
		return (OffsetNumber) hi; \
	} while (0)

static OffsetNumber
search_any(const LbtKeySpec *spec, TupleDesc tupdesc, const LbtBound *bound, Page page,
		   OffsetNumber first, OffsetNumber last, OffsetNumber guess)
{
#define BEFORE(off) lbt_offset_before(spec, tupdesc, bound, page, (OffsetNumber) (off))
	LBT_GALLOP(BEFORE);
#undef BEFORE
}

/* Kept out of the loop for int8. */
static pg_noinline bool
any_before(const LbtKeySpec *spec, TupleDesc tupdesc, const LbtBound *bound, IndexTuple itup)
{
	return lbt_before_bound(spec, tupdesc, bound, itup, false);
}

/* One ascending int8 column, no NULL in the bound. */
static inline bool
int8_before(const LbtKeySpec *spec, TupleDesc tupdesc, const LbtBound *bound, Page page,
			OffsetNumber offset)
{
	IndexTuple	itup = lbt_page_tuple(page, offset);

	if (likely(!IndexTupleHasNulls(itup)))
	{
		uint64		v = lbt_order_signed(*(const int64 *) ((const char *) itup +
														   MAXALIGN(sizeof(IndexTupleData))));

		return v < bound->value[0].ordered || (bound->past && v == bound->value[0].ordered);
	}
	return any_before(spec, tupdesc, bound, itup);
}

static OffsetNumber
search_int8(const LbtKeySpec *spec, TupleDesc tupdesc, const LbtBound *bound, Page page,
			OffsetNumber first, OffsetNumber last, OffsetNumber guess)
{
#define BEFORE(off) int8_before(spec, tupdesc, bound, page, (OffsetNumber) (off))
	LBT_GALLOP(BEFORE);
#undef BEFORE
}

OffsetNumber
lbt_page_search(const LbtKeySpec *spec, TupleDesc tupdesc, const LbtBound *bound, Page page,
				OffsetNumber first, OffsetNumber last, OffsetNumber guess)
{
	if (first > last)
		return first;
	if (bound->ncolumns == 1 && spec->column[0].store == LBT_STORE_INT8 &&
		!spec->column[0].desc && !bound->value[0].isnull)
		return search_int8(spec, tupdesc, bound, page, first, last, guess);
	return search_any(spec, tupdesc, bound, page, first, last, guess);
}

bool
lbt_bound_beyond_page(const LbtKeySpec *spec, TupleDesc tupdesc, const LbtBound *bound, Page page)
{
	BTPageOpaque opaque = BTPageGetOpaque(page);

	if (P_RIGHTMOST(opaque))
		return false;
	return lbt_before_bound(spec, tupdesc, bound, lbt_page_tuple(page, P_HIKEY), true);
}
