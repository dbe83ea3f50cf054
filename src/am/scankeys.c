/*
 * scankeys.c - from scan keys to intervals of the index.
 *
 * Served: equality on leading columns, with one value or with any of an array's, then any number of <, <=, >=,
 * > on the next column.  All else is nbtree's.  Further keys on a column with an equality only leave fewer of
 * its values.
 */
#include "am/scan.h"

#include "utils/memutils.h"

typedef struct Shape
{
	int			nequal;			/* leading columns with an equality */
	int			range_column;	/* column with inequalities, or -1 */
	LbtKeyValue equal[LBT_CODE_COLUMNS];
	LbtEdge		lower;
	LbtEdge		upper;
	bool		nothing;
} Shape;

static inline bool
edge_before(const LbtKeyColumn *column, const LbtEdge *a, const LbtEdge *b)
{
	int			order = lbt_compare_value(column, &a->value, &b->value);

	return order != 0 ? order < 0 : !a->past && b->past;
}

/* Narrow the range by one inequality.  side: where the true argument lies beside value. */
static void
narrow(Shape *shape, const LbtKeyColumn *column, StrategyNumber strategy, const LbtKeyValue *value,
	   int side)
{
	LbtEdge		edge = {.set = true,.value = *value};
	bool		is_lower = strategy == BTGreaterStrategyNumber ||
		strategy == BTGreaterEqualStrategyNumber;

	/* x > v and x <= v meet behind the values equal to v, x >= v and x < v before them */
	edge.past = strategy == BTGreaterStrategyNumber || strategy == BTLessEqualStrategyNumber;
	if (column->desc)
	{
		/* what is greater comes first: the same place, seen from the other side */
		is_lower = !is_lower;
		edge.past = !edge.past;
	}
	if (side != 0)
		edge.past = side > 0;

	if (is_lower)
	{
		if (!shape->lower.set || edge_before(column, &shape->lower, &edge))
			shape->lower = edge;
	}
	else if (!shape->upper.set || edge_before(column, &edge, &shape->upper))
		shape->upper = edge;
}

/* The values of a column with an equality as a list. */
static LbtArray *
list_of(LbtScan *so, const Shape *shape, int column)
{
	LbtArray   *list = so->narrays > 0 ? &so->array[so->narrays - 1] : NULL;

	if (list == NULL || list->column != column)
	{
		list = &so->array[so->narrays++];
		lbt_array_of_one(so, column, &shape->equal[column], list);
	}
	return list;
}

/* Take in the values that a column may have; false when that does not fit the shape. */
static bool
add_list(LbtScan *so, Shape *shape, const LbtArray *list)
{
	const LbtKeyColumn *column = &so->index->keyspec.column[list->column];

	switch (lbt_key_place(shape->nequal, shape->range_column, list->column))
	{
		case LBT_KEY_AGAIN:
			lbt_array_intersect(column, list_of(so, shape, list->column), list);
			return true;
		case LBT_KEY_NEXT:
			so->array[so->narrays++] = *list;
			shape->nequal++;
			if (shape->range_column >= 0)
			{
				/* Its inequalities came first. */
				lbt_array_narrow(column, &so->array[so->narrays - 1], &shape->lower, &shape->upper);
				shape->lower.set = shape->upper.set = false;
				shape->range_column = -1;
			}
			return true;
		case LBT_KEY_ELSEWHERE:
			break;
	}
	return false;
}

/*
 * All keys are in: lists of one value are plain equalities, empty ones leave nothing.  False when there are too
 * many combinations.
 */
static bool
settle_lists(LbtScan *so, Shape *shape)
{
	int			kept = 0;

	for (int i = 0; i < so->narrays; i++)
	{
		LbtArray   *list = &so->array[i];

		if (list->n == 0)
			shape->nothing = true;
		else
			lbt_array_value(list, 0, &shape->equal[list->column]);
		if (list->n > 1)
		{
			so->nprobes *= list->n;
			if (so->nprobes > PG_INT32_MAX)
				return false;
			so->probe.digit[kept] = 0;
			so->array[kept++] = *list;
		}
	}
	so->narrays = kept;
	return true;
}

/* Take in one key, with room for an encoded value; false when it does not fit the shape. */
static bool
add_key(LbtScan *so, Shape *shape, ScanKey key, uint8 *room)
{
	const LbtKeySpec *spec = &so->index->keyspec;
	int			attno = key->sk_attno - 1;
	const LbtKeyColumn *column;
	LbtKeyPlace place;
	LbtKeyValue value;
	int			side;

	if ((key->sk_flags & ~(SK_ISNULL | SK_SEARCHARRAY)) != 0 ||
		!lbt_key_served(spec, attno, key->sk_subtype, key->sk_collation))
		return false;
	column = &spec->column[attno];
	if (key->sk_flags & SK_ISNULL)
	{
		shape->nothing = true;	/* btree's operators are strict */
		return true;
	}
	if (unlikely(key->sk_flags & SK_SEARCHARRAY))
	{
		LbtArray	list;

		return key->sk_strategy == BTEqualStrategyNumber && lbt_array_take(so, key, &list) &&
			add_list(so, shape, &list);
	}
	if (!lbt_keyspec_plain(column, key->sk_argument))
		return false;
	side = lbt_keyspec_argument(column, key->sk_subtype, key->sk_argument, &value, room);

	if (key->sk_strategy == BTEqualStrategyNumber)
	{
		if (side != 0)
			shape->nothing = true;
		if (likely(attno == shape->nequal && shape->range_column < 0))
			shape->equal[shape->nequal++] = value;
		else
		{
			LbtArray	one;

			lbt_array_of_one(so, attno, &value, &one);
			return add_list(so, shape, &one);
		}
		return true;
	}
	place = lbt_key_place(shape->nequal, shape->range_column, attno);
	if (place == LBT_KEY_ELSEWHERE)
		return false;
	if (unlikely(place == LBT_KEY_AGAIN))
	{
		LbtEdge		none = {.set = false};

		shape->lower = shape->upper = none;
		narrow(shape, column, key->sk_strategy, &value, side);
		lbt_array_narrow(column, list_of(so, shape, attno), &shape->lower, &shape->upper);
		shape->lower = shape->upper = none;
		return true;
	}
	shape->range_column = attno;
	narrow(shape, column, key->sk_strategy, &value, side);
	return true;
}

static void
set_bound(LbtBound *bound, const Shape *shape, const LbtEdge *edge, bool past)
{
	bound->ncolumns = shape->nequal;
	bound->past = past;
	memcpy(bound->value, shape->equal, sizeof(LbtKeyValue) * shape->nequal);
	if (edge->set)
	{
		bound->value[bound->ncolumns++] = edge->value;
		bound->past = edge->past;
	}
}

/* NULLs satisfy no inequality: where the range has no edge, they are one. */
static void
exclude_nulls(LbtBound *bound, bool past)
{
	bound->value[bound->ncolumns].ordered = 0;
	bound->value[bound->ncolumns].isnull = true;
	bound->ncolumns++;
	bound->past = past;
}

bool
lbt_scan_interval(IndexScanDesc scan, LbtScan *so)
{
	const LbtKeySpec *spec = &so->index->keyspec;
	Shape		shape;

	shape.nequal = 0;
	shape.range_column = -1;
	shape.lower.set = shape.upper.set = false;
	shape.nothing = false;
	so->narrays = 0;
	so->nprobes = 1;
	so->probe.number = 0;
	if (so->array_context)
		MemoryContextReset(so->array_context);
	if (scan->numberOfKeys == 0 || scan->numberOfOrderBys > 0)
		return false;
	if (spec->encoded && so->room == NULL)
		so->room = MemoryContextAlloc(GetMemoryChunkContext(so), scan->numberOfKeys * LBT_KEY_ROOM);
	for (int i = 0; i < scan->numberOfKeys; i++)
		if (!add_key(so, &shape, &scan->keyData[i], so->room ? so->room + i * LBT_KEY_ROOM : NULL))
			return false;

	if (unlikely(so->narrays > 0) && !settle_lists(so, &shape))
		return false;

	set_bound(&so->probe.start, &shape, &shape.lower, false);
	set_bound(&so->probe.end, &shape, &shape.upper, true);
	if (shape.range_column >= 0)
	{
		const LbtKeyColumn *column = &spec->column[shape.range_column];
		bool		nulls_first = column->nulls_first;

		if (!shape.lower.set && nulls_first)
			exclude_nulls(&so->probe.start, true);
		if (!shape.upper.set && !nulls_first)
			exclude_nulls(&so->probe.end, false);
		if (shape.lower.set && shape.upper.set && !edge_before(column, &shape.lower, &shape.upper))
			shape.nothing = true;
	}
	so->nothing = shape.nothing;
	return true;
}
