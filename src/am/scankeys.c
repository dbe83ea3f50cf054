/*
 * scankeys.c - from scan keys to the intervals of a scan, and from one of these to another.
 *
 * Served: on each leading column an equality, with one value or with any of an array's, then any number of <, <=,
 * >=, > on the next column.  Further keys on a column only leave fewer of its values.  All else is nbtree's, a second
 * key on a column with an array included.
 *
 * The keys come column by column (the server sorts them, and nbtree insists on it).  Each narrows the interval
 * between the two bounds of the scan's first probe:
 *
 *     a = 7, b > 2, b <= 5        start (7, 2) past ---------- end (7, 5) past
 *     a = 7                       start (7) ------------------ end (7) past
 *
 * An equality is an interval around one value, at first an array's smallest.  Several arrays multiply: a probe is a
 * combination of their values, and its number counts these as an odometer does, the last column's digit turning
 * fastest.  As each array is in the index's order, so are the probes.
 */
#include "am/scan.h"

#include "lib/qunique.h"
#include "utils/array.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

/* ---- arrays ---- */

/* The first key on a column is an equality with this value. */
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

/* Bring the values into order and drop those that repeat. */
static void
put_in_order(LbtKeyColumn *column, LbtArray *array)
{
	int			i = 1;

	while (i < array->n && lbt_compare_value(column, &array->values[i - 1], &array->values[i]) < 0)
		i++;
	if (i >= array->n)
		return;
	qsort_arg(array->values, array->n, sizeof(LbtKeyValue), compare_values, column);
	array->n = qunique_arg(array->values, array->n, sizeof(LbtKeyValue), compare_values, column);
}

/* Take in an array argument: false when it has elements that we do not serve, or there are too many probes. */
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
		if (served && lbt_keyspec_argument(column, key->sk_subtype, elements[i], &array->values[array->n],
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

/* Has the bound a value for the column that is being narrowed, the last one so far? */
static inline bool
is_set(const LbtBound *bound, int column)
{
	return bound->ncolumns > column;
}

/* Where a value lies with regard to a bound's value in its last column: 0 when it is the same place. */
static inline int
compare_place(const LbtKeyColumn *column, const LbtKeyValue *value, bool past, const LbtBound *bound)
{
	int			order = lbt_compare_value(column, value, &bound->value[bound->ncolumns - 1]);

	return order != 0 ? order : past - bound->past;
}

/*
 * Move the interval's start to the right, or its end to the left: before the values equal to this one, or past them.
 */
static inline void
narrow(const LbtKeyColumn *column, LbtBound *bound, bool is_end, int at, const LbtKeyValue *value, bool past)
{
	if (is_set(bound, at))
	{
		int			place = compare_place(column, value, past, bound);

		if (is_end ? place >= 0 : place <= 0)
			return;
	}
	bound->value[at] = *value;
	bound->ncolumns = at + 1;
	bound->past = past;
}

/* ---- keys ---- */

/*
 * Take in one key, with scratch space for an encoded value; false when we do not serve it.  so->nprobes becomes 0 where no tuple
 * satisfies the keys.
 */
static inline bool
add_key(LbtScan *so, LbtShape *shape, ScanKey key, uint8 *scratch)
{
	int			at = key->sk_attno - 1;
	const LbtKeyColumn *column = &so->index->keyspec.column[at];
	bool		again = at == shape->column;
	bool		array = (key->sk_flags & SK_SEARCHARRAY) != 0;
	LbtBound   *start = &so->probe.start;
	LbtBound   *end = &so->probe.end;
	StrategyNumber strategy;
	LbtKeyValue value;
	int			side;			/* where the true argument lies beside value */

	if ((key->sk_flags & ~(SK_ISNULL | SK_SEARCHARRAY)) != 0 ||
		!lbt_shape_add(shape, &so->index->keyspec, at, key->sk_strategy, array, key->sk_subtype, key->sk_collation))
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

	/* What is greater comes first in a descending column. */
	strategy = column->desc ? BTCommuteStrategyNumber(key->sk_strategy) : key->sk_strategy;

	/*
	 * x > v begins behind the values equal to v, where x <= v ends; x >= v
	 * before them, where x < v ends.
	 */
	if (strategy >= BTEqualStrategyNumber)
		narrow(column, start, false, at, &value, side != 0 ? side > 0 : strategy == BTGreaterStrategyNumber);
	if (strategy <= BTEqualStrategyNumber)
		narrow(column, end, true, at, &value, side != 0 ? side > 0 : strategy != BTLessStrategyNumber);
	if (again && is_set(start, at) && is_set(end, at) &&
		compare_place(column, &start->value[at], start->past, end) >= 0)
		so->nprobes = 0;
	return true;
}

/* NULLs satisfy no inequality: where the last column's interval is open, they are its end. */
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
	LbtShape	shape = {.column = -1,.equal = true};

	so->narrays = 0;
	so->nprobes = 1;
	so->probe.number = 0;
	so->probe.start.ncolumns = so->probe.end.ncolumns = 0;
	so->probe.start.past = false;
	so->probe.end.past = true;
	if (so->array_context)
		MemoryContextReset(so->array_context);
	if (scan->numberOfKeys == 0 || scan->numberOfOrderBys > 0)
		return false;
	if (so->index->keyspec.encoded && so->scratch == NULL)
		so->scratch = MemoryContextAlloc(GetMemoryChunkContext(so), scan->numberOfKeys * LBT_SCRATCH_BYTES);
	for (int i = 0; i < scan->numberOfKeys && so->nprobes > 0; i++)
		if (!add_key(so, &shape, &scan->keyData[i], so->scratch ? so->scratch + i * LBT_SCRATCH_BYTES : NULL))
			return false;
	if (!shape.equal)
		exclude_nulls(&so->index->keyspec.column[shape.column], shape.column, &so->probe);
	return true;
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

/* Gallops: most often the next probes are near, but there may be far more of them than the index has tuples. */
int64
lbt_probe_seek(const LbtScan *so, LbtProbe *probe, TupleDesc tupdesc, IndexTuple itup, bool pivot, bool forward)
{
	int64		from = probe->number;
	int64		stop = forward ? so->nprobes - from : from + 1;
	int64		passed = 0;

	/*
	 * Probes up to passed from there end before the tuple (backward: begin
	 * behind it), the one at stop does not, or there is none.
	 */

	for (int64 step = 1; stop - passed > 1;)
	{
		int64		at = passed + Min(step, (stop - passed) / 2);

		lbt_probe_go(so, probe, forward ? from + at : from - at);
		if (lbt_before_bound(&so->index->keyspec, tupdesc, forward ? &probe->end : &probe->start, itup, pivot) !=
			forward)
		{
			passed = at;
			step *= 2;
		}
		else
			stop = at;
	}
	return forward ? from + stop : from - stop;
}
