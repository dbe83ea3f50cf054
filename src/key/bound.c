/*
 * bound.c - making a bound of a tuple, and finding a bound within a leaf; see bound.h.
 */
#include "key/bound.h"

void
lbt_bound_of_tuple(const LbtKeySpec *spec, TupleDesc tupdesc, IndexTuple itup, uint8 *scratch, LbtBound *bound)
{
	int			have = lbt_tuple_columns(spec, itup);
	int			i;

	for (i = 0; i < have; i++)
	{
		const LbtKeyColumn *column = &spec->column[i];
		LbtKeyValue *value = &bound->value[i];
		Datum		datum;
		bool		compressed;

		datum = index_getattr(itup, i + 1, tupdesc, &value->isnull);
		if (value->isnull)
			continue;
		compressed = lbt_stored_compressed(column, datum);
		if (scratch == NULL && (compressed || column->encoded))
			break;
		if (compressed)
			datum = PointerGetDatum(PG_DETOAST_DATUM(datum));
		(void) lbt_keyspec_argument(column, InvalidOid, datum, value,
									column->encoded ? scratch + i * LBT_SCRATCH_BYTES : NULL);
	}
	bound->ncolumns = i;
	bound->past = false;
}

int
lbt_compare_encoded(const LbtKeyColumn *column, Datum a, Datum b)
{
	int			cmp = DatumGetInt32(FunctionCall2Coll(unconstify(FmgrInfo *, &column->compare),
													  column->collation, a, b));

	return column->desc ? (cmp < 0) - (cmp > 0) : (cmp > 0) - (cmp < 0);
}

int
lbt_compare_compressed(const LbtKeyColumn *column, const LbtKeyValue *a, Datum b)
{
	struct varlena *plain = PG_DETOAST_DATUM(b);
	LbtKeyValue value;
	int			cmp;

	lbt_stored_bytes(column, (const char *) plain, &value);
	cmp = lbt_compare_bytes(column, a, &value);
	pfree(plain);
	return cmp;
}

/* Kept out of the loop for integers. */
static pg_noinline bool
any_before(const LbtKeySpec *spec, TupleDesc tupdesc, const LbtBound *bound, IndexTuple itup)
{
	return lbt_before_bound(spec, tupdesc, bound, itup, false);
}

/* Is the item before the bound?  Of one ascending integer column, no NULL in the bound, integer is its length. */
static pg_attribute_always_inline bool
before(const LbtKeySpec *spec, TupleDesc tupdesc, const LbtBound *bound, Page page, OffsetNumber offset, int integer)
{
	IndexTuple	itup = lbt_page_tuple(page, offset);
	const char *at = (const char *) itup + MAXALIGN(sizeof(IndexTupleData));
	uint64		v;

	if (integer == 0)
		return lbt_before_bound(spec, tupdesc, bound, itup, false);
	if (unlikely(IndexTupleHasNulls(itup)))
		return any_before(spec, tupdesc, bound, itup);
	v = lbt_order_signed(integer == sizeof(int64) ? *(const int64 *) at : *(const int32 *) at);
	return v < bound->value[0].ordered || (bound->past && v == bound->value[0].ordered);
}

/* Galloping search, compiled for each kind of test. */
static pg_attribute_always_inline OffsetNumber
gallop(const LbtKeySpec *spec, TupleDesc tupdesc, const LbtBound *bound, Page page, OffsetNumber first,
	   OffsetNumber last, OffsetNumber guess, int integer)
{
	int			lo = first - 1; /* before the bound, or none */
	int			hi = last + 1;	/* not before the bound, or none */
	int			at = guess < first ? first : guess > last ? last : guess;
	int			step = 1;

	if (before(spec, tupdesc, bound, page, at, integer))
	{
		lo = at;
		while (lo + step < hi && before(spec, tupdesc, bound, page, lo + step, integer))
		{
			lo += step;
			step <<= 1;
		}
		hi = Min(lo + step, hi);
	}
	else
	{
		hi = at;
		while (hi - step > lo && !before(spec, tupdesc, bound, page, hi - step, integer))
		{
			hi -= step;
			step <<= 1;
		}
		lo = Max(hi - step, lo);
	}
	while (hi - lo > 1)
	{
		int			mid = lo + (hi - lo) / 2;

		if (before(spec, tupdesc, bound, page, mid, integer))
			lo = mid;
		else
			hi = mid;
	}
	return (OffsetNumber) hi;
}

OffsetNumber
lbt_page_search(const LbtKeySpec *spec, TupleDesc tupdesc, const LbtBound *bound, Page page,
				OffsetNumber first, OffsetNumber last, OffsetNumber guess)
{
	if (first > last)
		return first;
	if (bound->ncolumns == 1 && spec->column[0].kind == LBT_KEY_SIGNED && !spec->column[0].desc &&
		!bound->value[0].isnull)
	{
		if (spec->column[0].length == sizeof(int64))
			return gallop(spec, tupdesc, bound, page, first, last, guess, sizeof(int64));
		if (spec->column[0].length == sizeof(int32))
			return gallop(spec, tupdesc, bound, page, first, last, guess, sizeof(int32));
	}
	if (bound->ncolumns == 0)
		return bound->past ? last + 1 : first;
	return gallop(spec, tupdesc, bound, page, first, last, guess, 0);
}

bool
lbt_bound_beyond_page(const LbtKeySpec *spec, TupleDesc tupdesc, const LbtBound *bound, Page page)
{
	BTPageOpaque opaque = BTPageGetOpaque(page);

	if (P_RIGHTMOST(opaque))
		return false;
	return lbt_before_bound(spec, tupdesc, bound, lbt_page_tuple(page, P_HIKEY), true);
}
