/*
 * scanarray.c - "= ANY" arguments: their values in the index's order, and the probes that these make.
 *
 * Several array columns multiply: a probe is a combination, and its number counts them as an odometer does,
 * the last column's digit turning fastest.  As each list is in the index's order, so are the probes.
 */
#include "am/scan.h"

#include "miscadmin.h"
#include "utils/array.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#define ST_SORT sort_numbers
#define ST_ELEMENT_TYPE uint64
#define ST_COMPARE(a, b) (*(a) < *(b) ? -1 : *(a) > *(b))
#define ST_SCOPE static
#define ST_CHECK_FOR_INTERRUPTS
#define ST_DECLARE
#define ST_DEFINE
#include "lib/sort_template.h"

#define ST_SORT sort_strings
#define ST_ELEMENT_TYPE LbtKeyValue
#define ST_COMPARE_ARG_TYPE const LbtKeyColumn
#define ST_COMPARE(a, b, column) lbt_compare_value(column, a, b)
#define ST_SCOPE static
#define ST_CHECK_FOR_INTERRUPTS
#define ST_DECLARE
#define ST_DEFINE
#include "lib/sort_template.h"

/* The value's place among numbers or strings: nothing more is known of either here. */
static inline int
compare_at(const LbtKeyColumn *column, const LbtArray *a, int i, const LbtArray *b, int k)
{
	if (a->numbers)
		return a->numbers[i] < b->numbers[k] ? -1 : a->numbers[i] > b->numbers[k];
	return lbt_compare_value(column, &a->strings[i], &b->strings[k]);
}

static inline void
move(LbtArray *array, int to, int from)
{
	if (array->numbers)
		array->numbers[to] = array->numbers[from];
	else
		array->strings[to] = array->strings[from];
}

void
lbt_array_value(const LbtArray *array, int at, LbtKeyValue *value)
{
	if (array->numbers)
	{
		value->isnull = false;
		value->ordered = array->numbers[at];
		value->length = 0;
		value->bytes = NULL;
	}
	else
		*value = array->strings[at];
}

/* Room for n values of a column, and for their encodings. */
static uint8 *
prepare(LbtScan *so, int column, int n, LbtArray *array)
{
	const LbtKeyColumn *c = &so->index->keyspec.column[column];

	array->column = column;
	array->n = 0;
	array->numbers = NULL;
	array->strings = NULL;
	if (!c->bytes)
		array->numbers = MemoryContextAllocHuge(so->array_context, Max(n, 1) * sizeof(uint64));
	else
		array->strings = MemoryContextAllocHuge(so->array_context, Max(n, 1) * sizeof(LbtKeyValue));
	return c->encoded ? MemoryContextAllocHuge(so->array_context, (Size) Max(n, 1) * LBT_KEY_ROOM) : NULL;
}

static void
append(LbtArray *array, const LbtKeyValue *value)
{
	if (array->numbers)
		array->numbers[array->n++] = value->ordered;
	else
		array->strings[array->n++] = *value;
}

/* Bring the values into order and drop those that repeat. */
static void
put_in_order(const LbtKeyColumn *column, LbtArray *array)
{
	bool		ordered = true;
	bool		distinct = true;
	int			kept = 1;

	for (int i = 1; i < array->n && ordered; i++)
	{
		int			cmp = compare_at(column, array, i - 1, array, i);

		ordered = cmp <= 0;
		distinct &= cmp < 0;
	}
	if (ordered && distinct)
		return;
	if (!ordered && array->numbers)
		sort_numbers(array->numbers, array->n);
	else if (!ordered)
		sort_strings(array->strings, array->n, column);
	for (int i = 1; i < array->n; i++)
		if (compare_at(column, array, kept - 1, array, i) != 0)
			move(array, kept++, i);
	array->n = kept;
}

/* The lists' memory, empty at the first call after a rescan. */
static MemoryContext
array_context(LbtScan *so)
{
	if (so->array_context == NULL)
		so->array_context = AllocSetContextCreate(GetMemoryChunkContext(so), "learnedbtree arrays",
												  ALLOCSET_START_SMALL_SIZES);
	return so->array_context;
}

bool
lbt_array_take(LbtScan *so, ScanKey key, LbtArray *array)
{
	int			attno = key->sk_attno - 1;
	const LbtKeyColumn *column = &so->index->keyspec.column[attno];
	MemoryContext old = MemoryContextSwitchTo(array_context(so));
	ArrayType  *from = DatumGetArrayTypeP(key->sk_argument);
	int16		length;
	bool		byval;
	char		align;
	Datum	   *elements;
	bool	   *isnull;
	int			n;
	bool		served = true;
	uint8	   *room;

	get_typlenbyvalalign(ARR_ELEMTYPE(from), &length, &byval, &align);
	deconstruct_array(from, ARR_ELEMTYPE(from), length, byval, align, &elements, &isnull, &n);
	room = prepare(so, attno, n, array);
	for (int i = 0; i < n && served; i++)
	{
		LbtKeyValue value;

		if (isnull[i])
			continue;
		served = lbt_keyspec_plain(column, elements[i]);
		if (served && lbt_keyspec_argument(column, key->sk_subtype, elements[i], &value,
										   room ? room + (Size) i * LBT_KEY_ROOM : NULL) == 0)
			append(array, &value);
	}
	if (served)
		put_in_order(column, array);
	MemoryContextSwitchTo(old);
	return served;
}

void
lbt_array_of_one(LbtScan *so, int column, const LbtKeyValue *value, LbtArray *array)
{
	(void) array_context(so);
	(void) prepare(so, column, 1, array);
	append(array, value);
}

void
lbt_array_intersect(const LbtKeyColumn *column, LbtArray *array, const LbtArray *other)
{
	int			kept = 0;

	for (int i = 0, k = 0; i < array->n && k < other->n;)
	{
		int			cmp = compare_at(column, array, i, other, k);

		if (cmp == 0)
			move(array, kept++, i);
		i += cmp <= 0;
		k += cmp >= 0;
	}
	array->n = kept;
}

void
lbt_array_narrow(const LbtKeyColumn *column, LbtArray *array, const LbtEdge *lower,
				 const LbtEdge *upper)
{
	int			kept = 0;

	for (int i = 0; i < array->n; i++)
	{
		LbtKeyValue value;
		int			cmp;

		lbt_array_value(array, i, &value);
		cmp = lower->set ? lbt_compare_value(column, &value, &lower->value) : 1;
		if (cmp < 0 || (cmp == 0 && lower->past))
			continue;
		cmp = upper->set ? lbt_compare_value(column, &value, &upper->value) : -1;
		if (cmp > 0 || (cmp == 0 && !upper->past))
			break;
		move(array, kept++, i);
	}
	array->n = kept;
}

static inline void
turn_to(const LbtScan *so, LbtProbe *probe, int array, int digit)
{
	const LbtArray *a = &so->array[array];

	probe->digit[array] = digit;
	lbt_array_value(a, digit, &probe->start.value[a->column]);
	lbt_array_value(a, digit, &probe->end.value[a->column]);
}

void
lbt_probe_go(const LbtScan *so, LbtProbe *probe, int64 number)
{
	int64		from = probe->number;

	if (number == from)
		return;
	Assert(number >= 0 && number < so->nprobes);
	probe->number = number;
	for (int i = so->narrays - 1; i >= 0; i--)
	{
		int			n = so->array[i].n;
		int			digit;

		if (number == from + 1 || number == from - 1)
		{
			/* One step: on to the next array only with a carry. */
			digit = probe->digit[i] + (number > from ? 1 : -1);
			if (digit >= 0 && digit < n)
			{
				turn_to(so, probe, i, digit);
				return;
			}
			turn_to(so, probe, i, digit < 0 ? n - 1 : 0);
		}
		else
		{
			int64		rest = number;

			for (int k = so->narrays - 1; k > i; k--)
				rest /= so->array[k].n;
			turn_to(so, probe, i, (int) (rest % n));
		}
	}
}

/* ---- probes that can have matches ---- */

/*
 * Where a tuple's value is in a list: the first value not before it; with *equal, that is its own.  n when all are
 * before it.
 */
static int
find_in_list(const LbtScan *so, TupleDesc tupdesc, const LbtArray *array, IndexTuple itup, bool *equal)
{
	int			lo = 0;
	int			hi = array->n;

	*equal = false;
	while (lo < hi)
	{
		int			mid = lo + (hi - lo) / 2;
		LbtKeyValue value;
		int			cmp;

		lbt_array_value(array, mid, &value);
		cmp = lbt_compare_column(&so->index->keyspec, tupdesc, array->column, &value, itup);
		if (cmp < 0)
			lo = mid + 1;
		else
			hi = mid;
		if (cmp == 0)
			*equal = true;
	}
	return lo;
}

/*
 * Find the tuple's place among the probes: digits of the first probe whose values, up to the last list's column,
 * are not before the tuple's; with *equal they are the tuple's own.  False when all are before it.
 */
static bool
place_among_probes(const LbtScan *so, TupleDesc tupdesc, IndexTuple itup, bool pivot, int *digit, bool *equal)
{
	const LbtKeySpec *spec = &so->index->keyspec;
	int			have = pivot ? lbt_tuple_columns(spec, itup) : spec->ncolumns;
	int			fixed = 0;		/* digits */
	bool		carry = false;

	*equal = true;
	for (int column = 0; fixed < so->narrays && *equal && !carry; column++)
	{
		const LbtArray *array = &so->array[fixed];

		if (column >= have)
			*equal = false;		/* minus infinity: all values are behind it */
		else if (array->column == column)
		{
			digit[fixed] = find_in_list(so, tupdesc, array, itup, equal);
			if (digit[fixed] == array->n)
				carry = true;
			else
				fixed++;
		}
		else
		{
			int			cmp = lbt_compare_column(spec, tupdesc, column, &so->probe.start.value[column], itup);

			*equal = cmp == 0;
			carry = cmp < 0;
		}
	}
	if (carry)
	{
		*equal = false;
		while (fixed > 0 && digit[fixed - 1] + 1 == so->array[fixed - 1].n)
			fixed--;
		if (fixed == 0)
			return false;
		digit[fixed - 1]++;
	}
	for (int i = fixed; i < so->narrays; i++)
		digit[i] = 0;
	return true;
}

int64
lbt_probe_seek(const LbtScan *so, TupleDesc tupdesc, IndexTuple itup, bool pivot, bool forward)
{
	int			digit[LBT_CODE_COLUMNS];
	bool		equal;
	int64		number = 0;

	if (!place_among_probes(so, tupdesc, itup, pivot, digit, &equal))
		return forward ? so->nprobes : so->nprobes - 1;
	for (int i = 0; i < so->narrays; i++)
		number = number * so->array[i].n + digit[i];
	return forward || equal ? number : number - 1;
}
