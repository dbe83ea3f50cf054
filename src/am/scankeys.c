/*
 * scankeys.c - from scan keys to the intervals of a scan.
 *
 * Served: on each leading column an equality, with one value or with any of an array's, then any number of <, <=,
 * >=, > on the next column.  All else is nbtree's.  Further keys on a column only leave fewer of its values.
 *
 * The keys come column by column (the server sorts them, and nbtree insists on it).  Each narrows the interval
 * between the two bounds of the scan's first probe:
 *
 *     a = 7, b > 2, b <= 5        start (7, 2) past ---------- end (7, 5) past
 *     a = 7                       start (7) ------------------ end (7) past
 *
 * An equality is an interval around one value.  Of an array those values stay that the column's other keys leave;
 * the first of them is in the bounds.
 */
#include "am/scan.h"

#include "miscadmin.h"
#include "utils/array.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#define ST_SORT sort_values
#define ST_ELEMENT_TYPE LbtKeyValue
#define ST_COMPARE_ARG_TYPE const LbtKeyColumn
#define ST_COMPARE(a, b, column) lbt_compare_value(column, a, b)
#define ST_SCOPE static
#define ST_CHECK_FOR_INTERRUPTS
#define ST_DECLARE
#define ST_DEFINE
#include "lib/sort_template.h"

/* How far the keys have been taken in. */
typedef struct Progress
{
	int			column;			/* of the last key; -1 before the first */
	bool		equal;			/* it has an equality (true before the first) */
	bool		several;		/* it has more keys than one */
	bool		nothing;		/* no tuple satisfies the keys */
} Progress;

/* ---- arrays ---- */

/* Bring the values into order and drop those that repeat. */
static void
put_in_order(const LbtKeyColumn *column, LbtArray *array)
{
	bool		ordered = true;
	bool		distinct = true;
	int			kept = 1;

	for (int i = 1; i < array->n && ordered; i++)
	{
		int			cmp = lbt_compare_value(column, &array->values[i - 1], &array->values[i]);

		ordered = cmp <= 0;
		distinct &= cmp < 0;
	}
	if (ordered && distinct)
		return;
	if (!ordered)
		sort_values(array->values, array->n, column);
	for (int i = 1; i < array->n; i++)
		if (lbt_compare_value(column, &array->values[kept - 1], &array->values[i]) != 0)
			array->values[kept++] = array->values[i];
	array->n = kept;
}

/* Take in an array argument: false when it has elements that we do not serve. */
static bool
take_array(LbtScan *so, ScanKey key, LbtArray *array)
{
	const LbtKeyColumn *column = &so->index->keyspec.column[key->sk_attno - 1];
	MemoryContext old;
	ArrayType  *from;
	int16		length;
	bool		byval;
	char		align;
	Datum	   *elements;
	bool	   *isnull;
	int			n;
	bool		served = true;
	uint8	   *room = NULL;

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
		room = MemoryContextAllocHuge(so->array_context, (Size) Max(n, 1) * LBT_SCRATCH_BYTES);
	for (int i = 0; i < n && served; i++)
	{
		if (isnull[i])
			continue;
		served = lbt_keyspec_plain(column, elements[i]);
		if (served && lbt_keyspec_argument(column, key->sk_subtype, elements[i], &array->values[array->n],
										   room ? room + (Size) i * LBT_SCRATCH_BYTES : NULL) == 0)
			array->n++;
	}
	if (served)
		put_in_order(column, array);
	MemoryContextSwitchTo(old);
	return served;
}

/* Keep the values that are in the other array, too. */
static void
intersect(const LbtKeyColumn *column, LbtArray *array, const LbtArray *other)
{
	int			kept = 0;

	for (int i = 0, k = 0; i < array->n && k < other->n;)
	{
		int			cmp = lbt_compare_value(column, &array->values[i], &other->values[k]);

		if (cmp == 0)
			array->values[kept++] = array->values[i];
		i += cmp <= 0;
		k += cmp >= 0;
	}
	array->n = kept;
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

/* Move the interval's start to the right: before the values equal to this one, or past them. */
static inline void
raise_start(const LbtKeyColumn *column, LbtBound *start, int at, const LbtKeyValue *value, bool past)
{
	if (is_set(start, at) && compare_place(column, value, past, start) <= 0)
		return;
	start->value[at] = *value;
	start->ncolumns = at + 1;
	start->past = past;
}

/* Move its end to the left. */
static inline void
lower_end(const LbtKeyColumn *column, LbtBound *end, int at, const LbtKeyValue *value, bool past)
{
	if (is_set(end, at) && compare_place(column, value, past, end) >= 0)
		return;
	end->value[at] = *value;
	end->ncolumns = at + 1;
	end->past = past;
}

/* Keep the values that lie between the bounds, and put the first of them there. */
static void
narrow_array(const LbtKeyColumn *column, LbtArray *array, LbtBound *start, LbtBound *end)
{
	int			at = array->column;
	int			kept = 0;

	for (int i = 0; i < array->n; i++)
	{
		const LbtKeyValue *value = &array->values[i];

		if ((!is_set(start, at) || compare_place(column, value, true, start) > 0) &&
			(!is_set(end, at) || compare_place(column, value, false, end) < 0))
			array->values[kept++] = *value;
	}
	array->n = kept;
	if (kept > 0)
	{
		start->ncolumns = end->ncolumns = at;
		raise_start(column, start, at, &array->values[0], false);
		lower_end(column, end, at, &array->values[0], true);
	}
}

/* All keys on a column are in. */
static inline void
finish_column(LbtScan *so, Progress *p)
{
	LbtBound   *start = &so->probe.start;
	LbtBound   *end = &so->probe.end;
	const LbtKeyColumn *column = &so->index->keyspec.column[p->column];

	if (unlikely(so->narrays > 0 && so->array[so->narrays - 1].column == p->column))
	{
		LbtArray   *array = &so->array[so->narrays - 1];

		narrow_array(column, array, start, end);
		p->nothing |= array->n == 0;
	}
	else if (p->several && is_set(start, p->column) && is_set(end, p->column))
		p->nothing |= compare_place(column, &start->value[p->column], start->past, end) >= 0;
}

/* ---- keys ---- */

static bool
add_array(LbtScan *so, Progress *p, ScanKey key)
{
	LbtArray   *last = so->narrays > 0 ? &so->array[so->narrays - 1] : NULL;
	LbtArray	array;

	if (key->sk_strategy != BTEqualStrategyNumber || !take_array(so, key, &array))
		return false;
	if (last != NULL && last->column == array.column)
		intersect(&so->index->keyspec.column[array.column], last, &array);
	else
		so->array[so->narrays++] = array;
	p->equal = true;
	return true;
}

/* Take in one key, with room for an encoded value; false when we do not serve it. */
static inline bool
add_key(LbtScan *so, Progress *p, ScanKey key, uint8 *room)
{
	int			attno = key->sk_attno - 1;
	const LbtKeyColumn *column;
	StrategyNumber strategy;
	LbtKeyValue value;
	LbtBound   *start = &so->probe.start;
	LbtBound   *end = &so->probe.end;
	int			side;			/* where the true argument lies beside value */

	if ((key->sk_flags & ~(SK_ISNULL | SK_SEARCHARRAY)) != 0 ||
		!lbt_key_served(&so->index->keyspec, attno, key->sk_subtype, key->sk_collation))
		return false;
	p->several = attno == p->column;
	if (!p->several)
	{
		if (attno != p->column + 1 || !p->equal)
			return false;
		if (attno > 0)
			finish_column(so, p);
		p->column = attno;
		p->equal = false;
	}
	if (key->sk_flags & SK_ISNULL)
	{
		p->nothing = true;		/* btree's operators are strict */
		return true;
	}
	if (unlikely(key->sk_flags & SK_SEARCHARRAY))
		return add_array(so, p, key);
	column = &so->index->keyspec.column[attno];
	if (!lbt_keyspec_plain(column, key->sk_argument))
		return false;
	side = lbt_keyspec_argument(column, key->sk_subtype, key->sk_argument, &value, room);

	if (key->sk_strategy == BTEqualStrategyNumber)
	{
		p->equal = true;
		p->nothing |= side != 0;
		if (likely(!p->several))
		{
			start->value[attno] = end->value[attno] = value;
			start->ncolumns = end->ncolumns = attno + 1;
			return true;
		}
	}

	/* what is greater comes first in a descending column */
	strategy = column->desc ? BTCommuteStrategyNumber(key->sk_strategy) : key->sk_strategy;

	/*
	 * x > v begins behind the values equal to v, where x <= v ends; x >= v
	 * before them, where x < v ends
	 */
	if (strategy >= BTEqualStrategyNumber)
		raise_start(column, start, attno, &value, side != 0 ? side > 0 : strategy == BTGreaterStrategyNumber);
	if (strategy <= BTEqualStrategyNumber)
		lower_end(column, end, attno, &value, side != 0 ? side > 0 : strategy != BTLessStrategyNumber);
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
	const LbtKeySpec *spec = &so->index->keyspec;
	Progress	p = {.column = -1,.equal = true};

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
	if (spec->encoded && so->room == NULL)
		so->room = MemoryContextAlloc(GetMemoryChunkContext(so), scan->numberOfKeys * LBT_SCRATCH_BYTES);
	for (int i = 0; i < scan->numberOfKeys && !p.nothing; i++)
		if (!add_key(so, &p, &scan->keyData[i], so->room ? so->room + i * LBT_SCRATCH_BYTES : NULL))
			return false;
	if (!p.nothing)
		finish_column(so, &p);
	if (p.nothing)
	{
		so->nprobes = 0;
		return true;
	}
	if (!p.equal)
		exclude_nulls(&spec->column[p.column], p.column, &so->probe);
	for (int i = 0; i < so->narrays; i++)
	{
		so->nprobes *= so->array[i].n;
		if (so->nprobes > PG_INT32_MAX)
			return false;
	}
	return true;
}
