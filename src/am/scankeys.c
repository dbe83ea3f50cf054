/*
 * scankeys.c - from scan keys to the intervals of a scan, and between these.
 *
 * Served: on each leading column an equality, with one value, NULL, or any of
 * an array's; then any number of <, <=, >=, >, IS NOT NULL on the next column,
 * and row comparisons that begin with it.  Further keys on a column only leave
 * fewer of its values.  No key at all is the whole index.  Leave all else to
 * nbtree, including a second key on a column with an array.
 *
 * The keys come column by column: the server sorts them, and nbtree insists on
 * it.  Each narrows the interval between the two bounds of the scan's first
 * probe (here with NULLS LAST):
 *
 *     a = 7, b > 2, b <= 5      start (7, 2) past -------- end (7, 5) past
 *     a = 7                     start (7) ---------------- end (7) past
 *     a = 7, (b, c) > (2, 9)    start (7, 2, 9) past ----- end (7, NULL)
 *
 * An equality is an interval around one value, at first an array's smallest.
 * Several arrays multiply: a probe is a combination of their values, and its
 * number counts these as an odometer does, the last column's digit turning
 * fastest.  As each array is in the index's order, so are the probes.
 *
 * A row comparison's bound has more columns than the other keys'.  The index
 * orders tuples by these columns as the comparison does; for NULLs see
 * lbt_row_matches().
 */
#include "am/scan.h"

#include "lib/qunique.h"
#include "utils/array.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

/* ---- shapes ---- */

/* The shape of a scan's keys, as far as they have been looked at. */
typedef struct Shape
{
	int			column;			/* of the last key; -1 before the first */
	bool		equal;			/* has an equality (true before the first) */
	bool		array;			/* ... with any of an array's values */
	bool		row;			/* it begins a row comparison */
} Shape;

/*
 * Take in a column's next key: an equality (so is IS NULL) or an inequality
 * (so is IS NOT NULL).  False if our engine does not serve such a shape.
 */
static inline bool
take_test(Shape *shape, const LbtKeySpec *spec, int column, bool equal, bool array)
{
	bool		again = column == shape->column;

	if (column >= spec->ncolumns || (array && !equal) ||
		(again ? array || shape->array : column != shape->column + 1 || !shape->equal))
		return false;
	shape->column = column;
	shape->equal = again ? !shape->row && (equal || shape->equal) : equal;
	shape->array = array;
	return true;
}

/* Has the column the order of this argument's type, under this collation? */
static inline bool
takes_argument(const LbtKeyColumn *column, Oid argtype, Oid collation)
{
	return lbt_keyspec_takes(column, argtype) &&
		(!column->bytes || column->collation == collation);
}

/* Take in an operator.  argtype: its argument's; InvalidOid: the column's. */
static inline bool
take_operator(Shape *shape, const LbtKeySpec *spec, int column, StrategyNumber strategy,
			  bool array, Oid argtype, Oid collation)
{
	return take_test(shape, spec, column, strategy == BTEqualStrategyNumber, array) &&
		takes_argument(&spec->column[column], argtype, collation);
}

/* Take in a row comparison's member: columns in sequence, in one direction. */
static inline bool
take_member(Shape *shape, const LbtKeySpec *spec, int number, int column, Oid argtype,
			Oid collation)
{
	if (number == 0)
	{
		if (!take_test(shape, spec, column, false, false))
			return false;
		shape->row = true;
		shape->equal = false;
	}
	else if (column >= spec->ncolumns || column != shape->column + number ||
			 spec->column[column].desc != spec->column[shape->column].desc)
		return false;
	return takes_argument(&spec->column[column], argtype, collation);
}

/* ---- arrays ---- */

/* Take in a column's first key, an equality with this value. */
static inline void
set_equal(LbtProbe *probe, int column, const LbtKeyValue *value)
{
	probe->start.value[column] = probe->end.value[column] = *value;
	probe->start.ncolumns = probe->end.ncolumns = column + 1;
}

static int
compare_values(const void *a, const void *b, void *column)
{
	return lbt_compare_value(column, a, b);
}

/* Sort numbers, comparing them inline. */
#define ST_SORT sort_numbers
#define ST_ELEMENT_TYPE LbtKeyValue
#define ST_COMPARE(a, b) ((a)->ordered < (b)->ordered ? -1 : (a)->ordered > (b)->ordered)
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

/* Sort the values and drop duplicates. */
static void
put_in_order(LbtKeyColumn *column, LbtArray *array)
{
	int			i = 1;

	while (i < array->n && lbt_compare_value(column, &array->values[i - 1], &array->values[i]) < 0)
		i++;
	if (i >= array->n)
		return;
	if (column->bytes)
		qsort_arg(array->values, array->n, sizeof(LbtKeyValue), compare_values, column);
	else
		sort_numbers(array->values, array->n);
	array->n = qunique_arg(array->values, array->n, sizeof(LbtKeyValue), compare_values, column);
}

/* Take in an array; false if not served, or there are too many probes. */
static bool
take_array(LbtScan *so, ScanKey key, LbtArray *array)
{
	LbtKeyColumn *column = &so->index->keyspec.column[key->sk_attno - 1];
	MemoryContext old;
	ArrayType  *from;
	int16		length;
	bool		byval;
	char		align;
	Datum	   *elements;
	bool	   *isnull;
	int			n;
	bool		served = true;
	uint8	   *scratch = NULL;

	if (so->array_context == NULL)
		so->array_context = AllocSetContextCreate(GetMemoryChunkContext(so), "learnedbtree arrays",
												  ALLOCSET_START_SMALL_SIZES);
	old = MemoryContextSwitchTo(so->array_context);
	from = DatumGetArrayTypeP(key->sk_argument);
	get_typlenbyvalalign(ARR_ELEMTYPE(from), &length, &byval, &align);
	deconstruct_array(from, ARR_ELEMTYPE(from), length, byval, align, &elements, &isnull, &n);
	array->column = key->sk_attno - 1;
	array->n = 0;
	array->values = MemoryContextAllocHuge(so->array_context, Max(n, 1) * sizeof(LbtKeyValue));
	if (column->encoded)
		scratch = MemoryContextAllocHuge(so->array_context, (Size) Max(n, 1) * LBT_SCRATCH_BYTES);
	for (int i = 0; i < n && served; i++)
	{
		if (isnull[i])
			continue;
		served = lbt_keyspec_plain(column, elements[i]);
		if (served &&
			lbt_keyspec_argument(column, key->sk_subtype, elements[i], &array->values[array->n],
								 scratch ? scratch + (Size) i * LBT_SCRATCH_BYTES : NULL) == 0)
			array->n++;
	}
	MemoryContextSwitchTo(old);
	if (!served)
		return false;
	if (array->n > 0)
	{
		put_in_order(column, array);
		set_equal(&so->probe, array->column, &array->values[0]);
	}
	so->nprobes *= array->n;
	return so->nprobes <= PG_INT32_MAX;
}

/* ---- bounds ---- */

/* Does the bound have a value for this column? */
static inline bool
is_set(const LbtBound *bound, int column)
{
	return bound->ncolumns > column;
}

/* Compare the places of two bounds that both have column at, equal before. */
static inline int
compare_bounds(const LbtKeySpec *spec, int at, const LbtBound *a, const LbtBound *b)
{
	int			n = Min(a->ncolumns, b->ncolumns);

	for (int i = at; i < n; i++)
	{
		int			order = lbt_compare_value(&spec->column[i], &a->value[i], &b->value[i]);

		if (order != 0)
			return order;
	}

	/* The shorter one lies before all that begin alike, or (past) behind. */
	if (a->ncolumns < b->ncolumns)
		return a->past ? 1 : -1;
	return a->ncolumns > b->ncolumns ? (b->past ? -1 : 1) : a->past - b->past;
}

/*
 * Move the interval's start to the right, or its end to the left, to the place
 * of another bound.  Only that bound's columns from at on count.
 */
static inline void
narrow_bound(const LbtKeySpec *spec, LbtBound *bound, bool is_end, int at, const LbtBound *to)
{
	if (is_set(bound, at))
	{
		int			place = compare_bounds(spec, at, to, bound);

		if (is_end ? place >= 0 : place <= 0)
			return;
	}
	for (int i = at; i < to->ncolumns; i++)
		bound->value[i] = to->value[i];
	bound->ncolumns = to->ncolumns;
	bound->past = to->past;
}

/* Let there be no probe if further keys on a column leave it nothing. */
static inline void
look_if_empty(LbtScan *so, int at)
{
	const LbtBound *start = &so->probe.start;
	const LbtBound *end = &so->probe.end;

	if (is_set(start, at) && is_set(end, at) &&
		compare_bounds(&so->index->keyspec, at, start, end) >= 0)
		so->nprobes = 0;
}

/* ---- keys ---- */

/* Does the column, the last one so far, have an IS NULL? */
static inline bool
is_null(const LbtScan *so, int at)
{
	return is_set(&so->probe.start, at) && so->probe.start.value[at].isnull;
}

/* Take in IS [NOT] NULL; NOT only excludes NULLs, as an inequality does. */
static bool
add_null_test(LbtScan *so, Shape *shape, ScanKey key)
{
	static const LbtKeyValue null = {.isnull = true};
	int			at = key->sk_attno - 1;
	bool		again = at == shape->column;
	bool		wanted = (key->sk_flags & SK_SEARCHNULL) != 0;

	if (!take_test(shape, &so->index->keyspec, at, wanted, false))
		return false;
	if (again && wanted != is_null(so, at))
		so->nprobes = 0;
	else if (wanted)
		set_equal(&so->probe, at, &null);
	return true;
}

/* Take in (a, b) > (x, y) or the like: a bound of the columns that decide. */
static bool
add_row(LbtScan *so, Shape *shape, ScanKey key, uint8 *scratch)
{
	const LbtKeySpec *spec = &so->index->keyspec;
	ScanKey		member = (ScanKey) DatumGetPointer(key->sk_argument);
	int			at = key->sk_attno - 1;
	bool		again = at == shape->column;
	bool		is_end = false;
	LbtBound	to = {.ncolumns = at};
	int			side = 0;

	for (int i = 0; side == 0 && (i == 0 || !(member[i - 1].sk_flags & SK_ROW_END)); i++)
	{
		if (!take_member(shape, spec, i, member[i].sk_attno - 1, member[i].sk_subtype,
						 member[i].sk_collation))
			return false;
		if (i == 0)
		{
			/* As for plain keys; btree may have changed the members'. */
			StrategyNumber strategy = spec->column[at].desc ?
				BTCommuteStrategyNumber(key->sk_strategy) : key->sk_strategy;

			is_end = strategy < BTEqualStrategyNumber;
			to.past = strategy == BTGreaterStrategyNumber || strategy == BTLessEqualStrategyNumber;
		}
		if (member[i].sk_flags & SK_ISNULL)
		{
			/* Unknown where all before it are equal. */
			side = is_end ? -1 : 1;
			if (i == 0)
				so->nprobes = 0;
			continue;
		}
		if (!lbt_keyspec_plain(&spec->column[at + i], member[i].sk_argument))
			return false;
		side = lbt_keyspec_argument(&spec->column[at + i], member[i].sk_subtype,
									member[i].sk_argument, &to.value[at + i],
									scratch ? scratch + i * LBT_SCRATCH_BYTES : NULL);
		to.ncolumns++;
	}
	if (side != 0)
		to.past = side > 0;
	if (so->nprobes == 0)
		return true;
	if (again && is_null(so, at))
		so->nprobes = 0;
	narrow_bound(spec, is_end ? &so->probe.end : &so->probe.start, is_end, at, &to);
	if (again)
		look_if_empty(so, at);
	return true;
}

/* Take in any other operator.  side: where the argument lies beside value. */
static void
add_bounds(LbtScan *so, int at, bool again, StrategyNumber strategy, const LbtKeyValue *value,
		   int side)
{
	const LbtKeySpec *spec = &so->index->keyspec;
	LbtBound	to;

	if (again && is_null(so, at))
		so->nprobes = 0;
	to.value[at] = *value;
	to.ncolumns = at + 1;

	/* What is greater comes first in a descending column. */
	if (spec->column[at].desc)
		strategy = BTCommuteStrategyNumber(strategy);

	/* x > v begins, and x <= v ends, behind v; x >= v and x < v before it. */
	to.past = side != 0 ? side > 0 : strategy == BTGreaterStrategyNumber;
	if (strategy >= BTEqualStrategyNumber)
		narrow_bound(spec, &so->probe.start, false, at, &to);
	to.past = side != 0 ? side > 0 : strategy != BTLessStrategyNumber;
	if (strategy <= BTEqualStrategyNumber)
		narrow_bound(spec, &so->probe.end, true, at, &to);
	if (again)
		look_if_empty(so, at);
}

/*
 * Take in one key, with scratch space for encoded values; false if we do not
 * serve it.  Sets so->nprobes to 0 if no tuple satisfies the keys.
 */
static inline bool
add_key(LbtScan *so, Shape *shape, ScanKey key, uint8 *scratch)
{
	int			at = key->sk_attno - 1;
	const LbtKeyColumn *column = &so->index->keyspec.column[at];
	bool		again = at == shape->column;
	bool		array = (key->sk_flags & SK_SEARCHARRAY) != 0;
	LbtKeyValue value;
	int			side;

	if (unlikely(key->sk_flags & ~(SK_ISNULL | SK_SEARCHARRAY)))
	{
		if (key->sk_flags == SK_ROW_HEADER)
			return add_row(so, shape, key, scratch);
		if (key->sk_flags == (SK_ISNULL | SK_SEARCHNULL) ||
			key->sk_flags == (SK_ISNULL | SK_SEARCHNOTNULL))
			return add_null_test(so, shape, key);
		return false;
	}
	if (!take_operator(shape, &so->index->keyspec, at, key->sk_strategy, array, key->sk_subtype,
					   key->sk_collation))
		return false;
	if (key->sk_flags & SK_ISNULL)
	{
		so->nprobes = 0;		/* btree's operators are strict */
		return true;
	}
	if (unlikely(array))
		return take_array(so, key, &so->array[so->narrays++]);
	if (!lbt_keyspec_plain(column, key->sk_argument))
		return false;
	side = lbt_keyspec_argument(column, key->sk_subtype, key->sk_argument, &value, scratch);
	if (key->sk_strategy == BTEqualStrategyNumber)
	{
		if (side != 0)
			so->nprobes = 0;
		if (likely(!again))
		{
			set_equal(&so->probe, at, &value);
			return true;
		}
	}
	add_bounds(so, at, again, key->sk_strategy, &value, side);
	return true;
}

/* NULLs satisfy no inequality: they end the last column's open interval. */
static void
exclude_nulls(const LbtKeyColumn *column, int at, LbtProbe *probe)
{
	LbtBound   *bound = column->nulls_first ? &probe->start : &probe->end;

	if (is_set(bound, at))
		return;
	bound->value[at] = (LbtKeyValue)
	{
		.isnull = true
	};
	bound->ncolumns = at + 1;
	bound->past = column->nulls_first;
}

bool
lbt_scan_interval(IndexScanDesc scan, LbtScan *so)
{
	const LbtKeySpec *spec = &so->index->keyspec;
	Shape		shape = {.column = -1,.equal = true};
	Size		scratch_bytes = spec->ncolumns * LBT_SCRATCH_BYTES; /* a key */

	so->narrays = 0;
	so->nprobes = 1;
	so->row_column = -1;
	so->probe.number = 0;
	so->probe.start.ncolumns = so->probe.end.ncolumns = 0;
	so->probe.start.past = false;
	so->probe.end.past = true;
	if (so->array_context)
		MemoryContextReset(so->array_context);
	if (scan->numberOfOrderBys > 0)
		return false;
	if (spec->encoded && so->scratch == NULL && scan->numberOfKeys > 0)
		so->scratch = MemoryContextAlloc(GetMemoryChunkContext(so),
										 scan->numberOfKeys * scratch_bytes);
	for (int i = 0; i < scan->numberOfKeys && so->nprobes > 0; i++)
		if (!add_key(so, &shape, &scan->keyData[i],
					 so->scratch ? so->scratch + i * scratch_bytes : NULL))
			return false;
	if (!shape.equal)
		exclude_nulls(&spec->column[shape.column], shape.column, &so->probe);
	if (unlikely(shape.row) &&
		Max(so->probe.start.ncolumns, so->probe.end.ncolumns) > shape.column + 1)
		so->row_column = shape.column;
	return true;
}

/* Is the tuple not NULL where it first differs from a row's bound? */
static bool
is_known(const LbtScan *so, TupleDesc tupdesc, const LbtBound *bound, IndexTuple itup)
{
	bool		isnull;

	for (int i = so->row_column; i < bound->ncolumns; i++)
		if (lbt_compare_column(&so->index->keyspec, tupdesc, i, &bound->value[i], itup) != 0)
		{
			(void) index_getattr(itup, i + 1, tupdesc, &isnull);
			return !isnull;
		}
	return true;
}

bool
lbt_row_matches(const LbtScan *so, TupleDesc tupdesc, IndexTuple itup)
{
	return is_known(so, tupdesc, &so->probe.start, itup) &&
		is_known(so, tupdesc, &so->probe.end, itup);
}

/* ---- from one probe to another ---- */

void
lbt_probe_go(const LbtScan *so, LbtProbe *probe, int64 number)
{
	uint32		rest = (uint32) number;

	if (number == probe->number)
		return;
	Assert(number >= 0 && number < so->nprobes);
	probe->number = number;
	for (int i = so->narrays - 1; i >= 0; i--)
	{
		const LbtArray *array = &so->array[i];
		uint32		digit = rest;

		if (i > 0)
		{
			rest = digit / (uint32) array->n;
			digit %= (uint32) array->n;
		}
		probe->start.value[array->column] = array->values[digit];
		probe->end.value[array->column] = array->values[digit];
	}
}

/* Gallop: the next probe is mostly near, but probes may outnumber tuples. */
int64
lbt_probe_seek(const LbtScan *so, LbtProbe *probe, TupleDesc tupdesc, IndexTuple itup,
			   bool pivot, bool forward)
{
	int64		from = probe->number;
	int64		stop = forward ? so->nprobes - from : from + 1;
	int64		passed = 0;

	/*
	 * Probes up to from + passed end before the tuple (backward: begin behind
	 * it); the one at stop does not, or there is none.
	 */

	for (int64 step = 1; stop - passed > 1;)
	{
		int64		at = passed + Min(step, (stop - passed) / 2);

		lbt_probe_go(so, probe, forward ? from + at : from - at);
		if (lbt_before_bound(&so->index->keyspec, tupdesc, forward ? &probe->end : &probe->start,
							 itup, pivot) != forward)
		{
			passed = at;
			step *= 2;
		}
		else
			stop = at;
	}
	return forward ? from + stop : from - stop;
}
