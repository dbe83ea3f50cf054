/*
 * scankeys.c - from scan keys to an interval of the index.
 *
 * Served: equality on leading columns, then any number of <, <=, >=, > on the next column, all with
 * plain arguments.  All else is nbtree's.
 */
#include "am/scan.h"

#include "utils/memutils.h"

/* A place within the range column: before the first value >= (past: >) this one. */
typedef struct Edge
{
	bool		set;
	bool		past;
	LbtKeyValue value;
} Edge;

typedef struct Shape
{
	int			nequal;			/* leading columns with an equality */
	int			range_column;	/* column with inequalities, or -1 */
	LbtKeyValue equal[LBT_CODE_COLUMNS];
	Edge		lower;
	Edge		upper;
	bool		nothing;
} Shape;

static inline bool
edge_before(const LbtKeyColumn *column, const Edge *a, const Edge *b)
{
	int			order = lbt_compare_value(column, &a->value, &b->value);

	return order != 0 ? order < 0 : !a->past && b->past;
}

/* Narrow the range by one inequality.  side: where the true argument lies beside value. */
static void
narrow(Shape *shape, const LbtKeyColumn *column, StrategyNumber strategy, const LbtKeyValue *value,
	   int side)
{
	Edge		edge = {.set = true,.value = *value};
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

/* Take in one key, with room for an encoded value; false when it does not fit the shape. */
static bool
add_key(Shape *shape, const LbtKeySpec *spec, ScanKey key, uint8 *room)
{
	int			attno = key->sk_attno - 1;
	const LbtKeyColumn *column;
	LbtKeyValue value;
	int			side;

	if ((key->sk_flags & ~SK_ISNULL) != 0 || attno >= spec->ncolumns)
		return false;
	column = &spec->column[attno];
	if (!lbt_keyspec_takes(column, key->sk_subtype))
		return false;
	if (key->sk_flags & SK_ISNULL)
	{
		shape->nothing = true;	/* btree's operators are strict */
		return true;
	}
	if (column->bytes &&
		(key->sk_collation != column->collation || !lbt_keyspec_plain(column, key->sk_argument)))
		return false;
	side = lbt_keyspec_argument(column, key->sk_subtype, key->sk_argument, &value, room);

	if (key->sk_strategy == BTEqualStrategyNumber)
	{
		if (attno != shape->nequal || shape->range_column >= 0)
			return false;
		shape->equal[shape->nequal++] = value;
		if (side != 0)
			shape->nothing = true;
		return true;
	}
	if (attno != shape->nequal)
		return false;
	shape->range_column = attno;
	narrow(shape, column, key->sk_strategy, &value, side);
	return true;
}

static void
set_bound(LbtBound *bound, const Shape *shape, const Edge *edge, bool past)
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
	if (scan->numberOfKeys == 0 || scan->numberOfOrderBys > 0)
		return false;
	if (spec->encoded && so->room == NULL)
		so->room = MemoryContextAlloc(GetMemoryChunkContext(so), scan->numberOfKeys * LBT_KEY_ROOM);
	for (int i = 0; i < scan->numberOfKeys; i++)
		if (!add_key(&shape, spec, &scan->keyData[i], so->room ? so->room + i * LBT_KEY_ROOM : NULL))
			return false;

	set_bound(&so->start, &shape, &shape.lower, false);
	set_bound(&so->end, &shape, &shape.upper, true);
	if (shape.range_column >= 0)
	{
		const LbtKeyColumn *column = &spec->column[shape.range_column];
		bool		nulls_first = column->nulls_first;

		if (!shape.lower.set && nulls_first)
			exclude_nulls(&so->start, true);
		if (!shape.upper.set && !nulls_first)
			exclude_nulls(&so->end, false);
		if (shape.lower.set && shape.upper.set && !edge_before(column, &shape.lower, &shape.upper))
			shape.nothing = true;
	}
	so->nothing = shape.nothing;
	return true;
}
