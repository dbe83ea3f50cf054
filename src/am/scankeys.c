/*
 * scankeys.c - from scan keys to the intervals of a scan, and between these.
 *
 * Served: on each leading column an equality, with one value, NULL, or any of
 * an array's; then any number of <, <=, >=, >, IS NOT NULL on the next column,
 * and row comparisons that begin with it.  Further keys on a column only leave
 * fewer of its values.  No key at all is the whole index.  Keys on columns
 * after these, or after one that has none, become filters: scanskip.c skips
 * what they exclude.  Leave all else to nbtree, including a second key on a
 * column with an array.
 *
 * Each key narrows the interval between the two bounds of the scan's first
 * probe, that of arrays' smallest values (here with NULLS LAST):
 *
 *     a = 7, b > 2, b <= 5      start (7, 2) past -------- end (7, 5) past
 *     a = 7                     start (7) ---------------- end (7) past
 *     a = 7, (b, c) > (2, 9)    start (7, 2, 9) past ----- end (7, NULL)
 *
 * A probe's number counts the combinations of arrays' values as an odometer
 * does (src/README, "Several probes on one leaf").
 */
#include "am/scan.h"

#include "utils/array.h"
#include "utils/lsyscache.h"

/* The shape of a scan's keys, as far as they have been looked at. */
typedef struct Shape
{
	int			column;			/* of the last key; -1 before the first */
	bool		equal;			/* has an equality (true before the first) */
	bool		array;			/* ... with any of an array's values */
	bool		row;			/* it begins a row comparison */
	LbtProbe   *into;			/* the probe's interval, or a filter's */
} Shape;

static const LbtKeyValue null_value = {.isnull = true};

/* NULLs satisfy no inequality: they end the last column's open interval. */
static void
exclude_nulls(const LbtKeyColumn *column, int at, LbtProbe *probe)
{
	LbtBound   *bound = column->nulls_first ? &probe->start : &probe->end;

	if (lbt_bound_has(bound, at))
		return;
	bound->value[at] = null_value;
	bound->ncolumns = at + 1;
	bound->past = column->nulls_first;
}

/* All keys on the last column have been taken in. */
static inline void
finish_column(LbtScan *so, const Shape *shape)
{
	if (!shape->equal)
		exclude_nulls(&so->index->keyspec.column[shape->column], shape->column, shape->into);
	if (so->nfilters > 0)
		so->filter[so->nfilters - 1].equal = shape->equal;
	else if (unlikely(shape->row) &&
			 Max(shape->into->start.ncolumns, shape->into->end.ncolumns) > shape->column + 1)
		so->row_column = shape->column;
}

/* Further keys are on this column, after one without an equality. */
static void
begin_filter(LbtScan *so, Shape *shape, int column)
{
	LbtFilter  *filter;

	if (so->filter == NULL)
		so->filter = MemoryContextAlloc(GetMemoryChunkContext(so),
										LBT_CODE_COLUMNS * sizeof(LbtFilter));
	filter = &so->filter[so->nfilters++];
	filter->column = column;
	filter->array.n = 0;
	filter->range.start.ncolumns = filter->range.end.ncolumns = 0;
	filter->range.start.past = false;
	filter->range.end.past = true;
	shape->into = &filter->range;
	shape->row = false;
}

/*
 * Take in a column's next key: an equality (so is IS NULL) or an inequality
 * (so is IS NOT NULL).  null: NULLs satisfy it.  False if our engine does not
 * serve such a shape.
 */
static inline bool
take_test(LbtScan *so, Shape *shape, int column, bool equal, bool array, bool null)
{
	bool		again = column == shape->column;
	const LbtBound *start;

	/* (Columns come in order, or nbtree raises an error.) */
	if (column < shape->column || column >= so->index->keyspec.ncolumns || (array && !equal) ||
		(again && (array || shape->array)))
		return false;
	if (!again)
	{
		if (unlikely(shape->column >= 0))
			finish_column(so, shape);
		if (unlikely(so->nfilters > 0 || column != shape->column + 1 || !shape->equal))
			begin_filter(so, shape, column);
	}
	shape->column = column;
	shape->equal = again ? !shape->row && (equal || shape->equal) : equal;
	shape->array = array;

	/* No value satisfies IS NULL and another key. */
	start = &shape->into->start;
	if (again && null != (lbt_bound_has(start, column) && start->value[column].isnull))
		so->nprobes = 0;
	return true;
}

/* Has the column the order of the key's argument, under its collation? */
static inline bool
takes_argument(const LbtKeyColumn *column, ScanKey key)
{
	return lbt_keyspec_takes(column, key->sk_subtype) &&
		(!column->bytes || column->collation == key->sk_collation);
}

/* ---- arrays ---- */

/* Take in a column's first key, an equality with this value. */
static inline void
set_equal(LbtProbe *probe, int column, const LbtKeyValue *value)
{
	probe->start.value[column] = probe->end.value[column] = *value;
	probe->start.ncolumns = probe->end.ncolumns = column + 1;
}

/* How to sort a column's values: by their encodings first, if these help. */
typedef struct Sorting
{
	const LbtKeyColumn *column;
	bool		encoded;
} Sorting;

static inline int
compare_values(const Sorting *by, const LbtKeyValue *a, const LbtKeyValue *b)
{
	int			order = by->encoded ? lbt_compare_bytes(by->column, a, b) : 0;

	return order != 0 ? order : lbt_compare_value(by->column, a, b);
}

#define ST_SORT sort_values
#define ST_ELEMENT_TYPE LbtKeyValue
#define ST_COMPARE_ARG_TYPE const Sorting
#define ST_COMPARE(a, b, by) compare_values(by, a, b)
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

/*
 * Drop duplicates of sorted values.  False if they are not in order: then all
 * are still there, some several times.
 */
static bool
drop_duplicates(const LbtKeyColumn *column, LbtArray *array)
{
	int			n = 1;

	for (int i = 1; i < array->n; i++)
	{
		int			order = lbt_compare_value(column, &array->values[n - 1], &array->values[i]);

		if (unlikely(order > 0))
			return false;
		if (order < 0)
			array->values[n++] = array->values[i];
	}
	array->n = n;
	return true;
}

/*
 * Sort the values and drop duplicates.  Encodings may contradict the order: if
 * they put any two neighbours the wrong way round, sort without them.
 */
static void
put_in_order(const LbtKeyColumn *column, LbtArray *array)
{
	Sorting		by = {column, column->encoded};

	sort_values(array->values, array->n, &by);
	if (drop_duplicates(column, array))
		return;
	by.encoded = false;
	sort_values(array->values, array->n, &by);
	(void) drop_duplicates(column, array);
}

/* Take in an array; false if not served, or there are too many probes. */
static bool
take_array(LbtScan *so, ScanKey key, LbtProbe *into)
{
	bool		filters = into != &so->walk.probe;
	LbtArray   *array = filters ? &so->filter[so->nfilters - 1].array : &so->array[so->narrays++];
	LbtKeyColumn *column = &so->index->keyspec.column[key->sk_attno - 1];
	MemoryContext old;
	ArrayType  *from;
	int16		length;
	bool		byval;
	char		align;
	Datum	   *elements;
	bool	   *isnull;
	int			n;
	uint8		scratch[LBT_SCRATCH_BYTES];

	if (so->array_context == NULL)
		so->array_context = AllocSetContextCreate(GetMemoryChunkContext(so), "learnedbtree arrays",
												  ALLOCSET_START_SMALL_SIZES);
	old = MemoryContextSwitchTo(so->array_context);
	from = DatumGetArrayTypeP(key->sk_argument);
	get_typlenbyvalalign(ARR_ELEMTYPE(from), &length, &byval, &align);
	deconstruct_array(from, ARR_ELEMTYPE(from), length, byval, align, &elements, &isnull, &n);
	MemoryContextSwitchTo(old);
	array->column = key->sk_attno - 1;
	array->n = 0;
	array->values = MemoryContextAllocHuge(so->array_context, Max(n, 1) * sizeof(LbtKeyValue));
	for (int i = 0; i < n; i++)
	{
		LbtKeyValue *value = &array->values[array->n];

		if (i % 1024 == 0)
			CHECK_FOR_INTERRUPTS();
		if (isnull[i])
			continue;
		if (!lbt_keyspec_plain(column, elements[i]))
			return false;
		if (lbt_keyspec_argument(column, key->sk_subtype, elements[i], value, scratch) != 0)
			continue;
		if (column->encoded)
			value->bytes = memcpy(MemoryContextAlloc(so->array_context, value->length), scratch,
								  value->length);
		array->n++;
	}
	pfree(elements);
	pfree(isnull);
	if (array->n > 0)
	{
		put_in_order(column, array);
		set_equal(into, array->column, &array->values[0]);
	}
	so->nprobes *= filters ? array->n > 0 : array->n;
	return so->nprobes <= PG_INT32_MAX;
}

/* ---- bounds ---- */

int
lbt_compare_bounds(const LbtKeySpec *spec, int at, const LbtBound *a, const LbtBound *b)
{
	int			n = Min(a->ncolumns, b->ncolumns);

	for (int i = at; i < n; i++)
	{
		int			order = lbt_compare_value(&spec->column[i], &a->value[i], &b->value[i]);

		if (order != 0)
			return order;
	}

	/* The shorter one lies before all that begin alike, or (past) after. */
	if (a->ncolumns < b->ncolumns)
		return a->past ? 1 : -1;
	return a->ncolumns > b->ncolumns ? (b->past ? -1 : 1) : a->past - b->past;
}

/*
 * Move the interval's start to the right, or its end to the left, to the place
 * of another bound.  Only that bound's columns from at on count.  There is no
 * probe if further keys on a column (again) leave it nothing.
 */
static inline void
narrow(LbtScan *so, LbtProbe *into, int at, bool again, bool is_end, const LbtBound *to)
{
	const LbtKeySpec *spec = &so->index->keyspec;
	LbtBound   *start = &into->start;
	LbtBound   *end = &into->end;
	LbtBound   *bound = is_end ? end : start;

	if (again && lbt_bound_has(bound, at))
	{
		int			place = lbt_compare_bounds(spec, at, to, bound);

		if (is_end ? place >= 0 : place <= 0)
			return;
	}
	for (int i = at; i < to->ncolumns; i++)
		bound->value[i] = to->value[i];
	bound->ncolumns = to->ncolumns;
	bound->past = to->past;
	if (again && lbt_bound_has(start, at) && lbt_bound_has(end, at) &&
		lbt_compare_bounds(spec, at, start, end) >= 0)
		so->nprobes = 0;
}

/* ---- keys ---- */

/* What is greater comes first in a descending column. */
static inline StrategyNumber
strategy_in_order(const LbtKeyColumn *column, ScanKey key)
{
	return column->desc ? BTCommuteStrategyNumber(key->sk_strategy) : key->sk_strategy;
}

/* Take in (a, b) > (x, y) or the like: a bound of the columns that decide. */
static bool
add_row(LbtScan *so, Shape *shape, ScanKey key, uint8 *scratch)
{
	const LbtKeySpec *spec = &so->index->keyspec;
	ScanKey		member = (ScanKey) DatumGetPointer(key->sk_argument);
	int			at = key->sk_attno - 1;
	bool		again = at == shape->column;
	LbtBound	to = {.ncolumns = at};
	int			side = 0;
	StrategyNumber strategy;
	bool		is_end;

	if (!take_test(so, shape, at, false, false, false) || so->nfilters > 0)
		return false;
	shape->row = true;
	shape->equal = false;

	/* Not the members' strategies, which btree may have changed. */
	strategy = strategy_in_order(&spec->column[at], key);
	is_end = strategy < BTEqualStrategyNumber;
	for (bool last = false; !last && side == 0; member++)
	{
		int			i = to.ncolumns;
		const LbtKeyColumn *column = &spec->column[i];

		/* The columns must be in sequence, and in one direction. */
		if (i >= spec->ncolumns || member->sk_attno - 1 != i ||
			column->desc != spec->column[at].desc || !takes_argument(column, member))
			return false;
		if (member->sk_flags & SK_ISNULL)
		{
			/* Unknown where all before it are equal. */
			side = is_end ? -1 : 1;
			if (i == at)
				so->nprobes = 0;
			continue;
		}
		if (!lbt_keyspec_plain(column, member->sk_argument))
			return false;
		side = lbt_keyspec_argument(column, member->sk_subtype, member->sk_argument, &to.value[i],
									scratch ? scratch + (i - at) * LBT_SCRATCH_BYTES : NULL);
		to.ncolumns++;
		last = (member->sk_flags & SK_ROW_END) != 0;
	}
	to.past = side != 0 ? side > 0 :
		strategy == BTGreaterStrategyNumber || strategy == BTLessEqualStrategyNumber;
	if (so->nprobes > 0)
		narrow(so, shape->into, at, again, is_end, &to);
	return true;
}

/* Take in any other operator.  side: where the argument lies beside value. */
static inline void
add_bounds(LbtScan *so, LbtProbe *into, int at, bool again, StrategyNumber strategy,
		   const LbtKeyValue *value, int side)
{
	LbtBound	to;

	to.value[at] = *value;
	to.ncolumns = at + 1;

	/* x > v begins, and x <= v ends, after v; x >= v and x < v before it. */
	to.past = side != 0 ? side > 0 : strategy == BTGreaterStrategyNumber;
	if (strategy >= BTEqualStrategyNumber)
		narrow(so, into, at, again, false, &to);
	to.past = side != 0 ? side > 0 : strategy != BTLessStrategyNumber;
	if (strategy <= BTEqualStrategyNumber)
		narrow(so, into, at, again, true, &to);
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
	bool		equal = key->sk_strategy == BTEqualStrategyNumber;
	bool		array = (key->sk_flags & SK_SEARCHARRAY) != 0;
	LbtKeyValue value;
	int			side;

	if (unlikely(key->sk_flags & ~(SK_ISNULL | SK_SEARCHARRAY)))
	{
		bool		is_null = key->sk_flags == (SK_ISNULL | SK_SEARCHNULL);

		if (key->sk_flags == SK_ROW_HEADER)
			return add_row(so, shape, key, scratch);
		if ((!is_null && key->sk_flags != (SK_ISNULL | SK_SEARCHNOTNULL)) ||
			!take_test(so, shape, at, is_null, false, is_null))
			return false;
		if (is_null)
			set_equal(shape->into, at, &null_value);
		return true;
	}
	if (!take_test(so, shape, at, equal, array, false) || !takes_argument(column, key))
		return false;
	if (key->sk_flags & SK_ISNULL)
	{
		so->nprobes = 0;		/* btree's operators are strict */
		return true;
	}
	if (unlikely(array))
		return take_array(so, key, shape->into);
	if (!lbt_keyspec_plain(column, key->sk_argument))
		return false;
	side = lbt_keyspec_argument(column, key->sk_subtype, key->sk_argument, &value, scratch);
	if (equal && side != 0)
		so->nprobes = 0;
	if (likely(equal && !again))
		set_equal(shape->into, at, &value);
	else
		add_bounds(so, shape->into, at, again, strategy_in_order(column, key), &value, side);
	return true;
}

bool
lbt_scan_interval(IndexScanDesc scan, LbtScan *so)
{
	const LbtKeySpec *spec = &so->index->keyspec;
	Shape		shape = {.column = -1,.equal = true,.into = &so->walk.probe};
	Size		scratch_bytes = spec->ncolumns * LBT_SCRATCH_BYTES; /* a key */

	so->narrays = 0;
	so->nprobes = 1;
	so->row_column = -1;
	so->nfilters = 0;
	so->walk.probe.number = 0;
	so->walk.probe.start.ncolumns = so->walk.probe.end.ncolumns = 0;
	so->walk.probe.start.past = false;
	so->walk.probe.end.past = true;
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
	if (shape.column >= 0 && so->nprobes > 0)
		finish_column(so, &shape);
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
	return is_known(so, tupdesc, &so->walk.probe.start, itup) &&
		is_known(so, tupdesc, &so->walk.probe.end, itup);
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

bool
lbt_probe_after(const LbtScan *so, LbtProbe *probe, const LbtBound *bound, bool forward,
				 bool *cuts)
{
	const LbtKeySpec *spec = &so->index->keyspec;
	int64		low = 0;
	int64		high = so->nprobes;
	int64		number;

	/* Forward, the first that ends after it; backward, the one before ... */
	while (low < high)
	{
		int64		middle = low + (high - low) / 2;

		lbt_probe_go(so, probe, middle);
		if (lbt_compare_bounds(spec, 0, forward ? &probe->end : &probe->start, bound) >= forward)
			high = middle;
		else
			low = middle + 1;
	}
	number = forward ? low : low - 1;
	if (number < 0 || number == so->nprobes)
		return false;
	lbt_probe_go(so, probe, number);
	*cuts = forward ? lbt_compare_bounds(spec, 0, bound, &probe->start) > 0 :
		lbt_compare_bounds(spec, 0, bound, &probe->end) < 0;
	return true;
}

/* Gallop: the next probe is mostly near, but probes may outnumber tuples. */
int64
lbt_probe_seek(const LbtScan *so, LbtProbe *probe, TupleDesc tupdesc, Page page, OffsetNumber far,
			   bool forward)
{
	BTPageOpaque opaque = BTPageGetOpaque(page);
	bool		at_edge = forward ? far > PageGetMaxOffsetNumber(page) :
		far == P_FIRSTDATAKEY(opaque);
	IndexTuple	itup;
	int64		from = probe->number;
	int64		stop = forward ? so->nprobes - from : from + 1;
	int64		passed = 0;

	/* Nothing lies beyond the index's outermost items. */
	if (at_edge && (!forward || P_RIGHTMOST(opaque)))
		return forward ? so->nprobes : -1;
	itup = lbt_page_tuple(page, !forward ? far - 1 : at_edge ? P_HIKEY : far);

	/*
	 * Probes up to from + passed end before the tuple (backward: begin after
	 * it); the one at stop does not, or there is none.
	 */
	for (int64 step = 1; stop - passed > 1;)
	{
		int64		at = passed + Min(step, (stop - passed) / 2);

		lbt_probe_go(so, probe, forward ? from + at : from - at);
		if (lbt_before_bound(&so->index->keyspec, tupdesc, forward ? &probe->end : &probe->start,
							 itup, at_edge) != forward)
		{
			passed = at;
			step *= 2;
		}
		else
			stop = at;
	}
	return forward ? from + stop : from - stop;
}
