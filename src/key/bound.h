/*
 * bound.h - positions in the index, and finding them within a leaf.
 *
 * A bound is a position between tuples: before the first tuple >= its key or,
 * with past, before the first tuple > its key.  The key covers a prefix of the
 * key columns; without columns the bound is the start of the index or, with
 * past, its end.  A scan is the interval between two bounds.
 */
#ifndef LBT_BOUND_H
#define LBT_BOUND_H

#include "key/keyspec.h"

typedef struct LbtBound
{
	int			ncolumns;
	bool		past;
	LbtKeyValue value[LBT_CODE_COLUMNS];
} LbtBound;

/*
 * Take a bound's first n values from a tuple that has them: they point into
 * it, scratch (LBT_SCRATCH_BYTES for each column), and what this allocates for
 * compressed values.  Those of encoded columns without scratch are for
 * comparisons only.
 */
extern void lbt_bound_take(const LbtKeySpec *spec, TupleDesc tupdesc, IndexTuple itup, int n,
						   uint8 *scratch, LbtBound *bound);

/* Byte strings in the column's order: a before b is -1, equal 0, after 1. */
static inline int
lbt_compare_bytes(const LbtKeyColumn *column, const LbtKeyValue *a, const LbtKeyValue *b)
{
	int			cmp = memcmp(a->bytes, b->bytes, Min(a->length, b->length));

	if (cmp == 0)
		cmp = (a->length > b->length) - (a->length < b->length);
	if (column->desc)
		return (cmp < 0) - (cmp > 0);
	return (cmp > 0) - (cmp < 0);
}

/* The same of two values, maybe compressed, by the comparison function. */
extern int	lbt_compare_datums(const LbtKeyColumn *column, Datum a, Datum b);

/* The same of two values of which one is NULL, or both. */
static inline int
lbt_compare_nulls(const LbtKeyColumn *column, bool key, bool tuple)
{
	return key && tuple ? 0 : key == column->nulls_first ? -1 : 1;
}

/* Is the key's value before (-1), equal to (0) or after (1) the tuple's? */
static inline int
lbt_compare_value(const LbtKeyColumn *column, const LbtKeyValue *key, const LbtKeyValue *tuple)
{
	if (unlikely(key->isnull || tuple->isnull))
		return lbt_compare_nulls(column, key->isnull, tuple->isnull);
	if (column->encoded)
		return lbt_compare_datums(column, (Datum) key->ordered, (Datum) tuple->ordered);
	if (column->bytes)
		return lbt_compare_bytes(column, key, tuple);
	return key->ordered < tuple->ordered ? -1 : key->ordered > tuple->ordered ? 1 : 0;
}

/* As lbt_compare_value(), with a column (from 0) that the tuple has. */
static inline int
lbt_compare_column(const LbtKeySpec *spec, TupleDesc tupdesc, int column, const LbtKeyValue *key,
				   IndexTuple itup)
{
	const LbtKeyColumn *c = &spec->column[column];
	bool		isnull;
	Datum		datum = index_getattr(itup, column + 1, tupdesc, &isnull);
	LbtKeyValue value;

	if (unlikely(isnull || key->isnull))
		return lbt_compare_nulls(c, key->isnull, isnull);
	if (!c->bytes)
	{
		/* index_getattr() extends integers of all lengths alike. */
		if (sizeof(Datum) == sizeof(int64) && likely(c->kind == LBT_KEY_SIGNED && !c->desc))
			value.ordered = lbt_order_signed((int64) datum);
		else
			value.ordered = lbt_ordered(c, datum);
		return key->ordered < value.ordered ? -1 : key->ordered > value.ordered ? 1 : 0;
	}
	if (c->encoded || unlikely(lbt_stored_compressed(c, datum)))
		return lbt_compare_datums(c, (Datum) key->ordered, datum);
	lbt_stored_bytes(c, DatumGetPointer(datum), &value);
	return lbt_compare_bytes(c, key, &value);
}

/* How many leading key columns a tuple has: all, unless a truncated pivot. */
static inline int
lbt_tuple_columns(const LbtKeySpec *spec, IndexTuple itup)
{
	if (BTreeTupleIsPivot(itup))
		return Min(BTreeTupleGetNAtts(itup, (Relation) NULL), spec->ncolumns);
	return spec->ncolumns;
}

/* Make the bound in front of what equals a tuple in the columns it has. */
static inline void
lbt_bound_of_tuple(const LbtKeySpec *spec, TupleDesc tupdesc, IndexTuple itup, uint8 *scratch,
				   LbtBound *bound)
{
	bound->ncolumns = lbt_tuple_columns(spec, itup);
	bound->past = false;
	lbt_bound_take(spec, tupdesc, itup, bound->ncolumns, scratch, bound);
}

/*
 * Is the bound's key before (-1), equal in its columns to (0) or after (1) the
 * tuple?  A pivot's missing columns are minus infinity.
 */
static inline int
lbt_compare_key(const LbtKeySpec *spec, TupleDesc tupdesc, const LbtBound *bound, IndexTuple itup,
				bool pivot)
{
	int			have = pivot ? lbt_tuple_columns(spec, itup) : spec->ncolumns;

	for (int i = 0; i < bound->ncolumns; i++)
	{
		int			cmp;

		if (i >= have)
			return 1;			/* than minus infinity */
		cmp = lbt_compare_column(spec, tupdesc, i, &bound->value[i], itup);
		if (cmp != 0)
			return cmp;
	}
	return 0;
}

/* Is the tuple before the bound?  (High key: is the bound beyond the page?) */
static inline bool
lbt_before_bound(const LbtKeySpec *spec, TupleDesc tupdesc, const LbtBound *bound,
				 IndexTuple itup, bool pivot)
{
	int			cmp = lbt_compare_key(spec, tupdesc, bound, itup, pivot);

	return cmp != 0 ? cmp > 0 : bound->past;
}

static inline IndexTuple
lbt_page_tuple(Page page, OffsetNumber offset)
{
	return (IndexTuple) PageGetItem(page, PageGetItemId(page, offset));
}

/*
 * The first data item in [first, last] not before the bound; last + 1 if all
 * are.  Gallops from guess.  The page must be locked.
 */
extern OffsetNumber lbt_page_search(const LbtKeySpec *spec, TupleDesc tupdesc,
									const LbtBound *bound, Page page, OffsetNumber first,
									OffsetNumber last, OffsetNumber guess);

/* Is the bound beyond the page's high key?  Never on a rightmost page. */
extern bool lbt_bound_beyond_page(const LbtKeySpec *spec, TupleDesc tupdesc,
								  const LbtBound *bound, Page page);

#endif							/* LBT_BOUND_H */
