/*
 * bound.c - making a bound of a tuple and finding it in a leaf; see bound.h.
 */
#include "key/bound.h"

#include "key/sortkey.h"
#include "model/keybytes.h"

void
lbt_bound_take(const LbtKeySpec *spec, TupleDesc tupdesc, IndexTuple itup, int n, uint8 *scratch,
			   LbtBound *bound)
{
	for (int i = 0; i < n; i++)
	{
		const LbtKeyColumn *column = &spec->column[i];
		LbtKeyValue *value = &bound->value[i];
		Datum		datum = index_getattr(itup, i + 1, tupdesc, &value->isnull);

		if (value->isnull)
			continue;
		if (lbt_stored_compressed(column, datum))
			datum = PointerGetDatum(PG_DETOAST_DATUM(datum));
		if (column->encoded && scratch == NULL)
			value->ordered = (uint64) datum;
		else
			(void) lbt_keyspec_argument(column, InvalidOid, datum, value,
										scratch ? scratch + i * LBT_SCRATCH_BYTES : NULL);
	}
}

/* Texts of the same bytes are equal under any collation: a common case. */
static inline bool
same_text(const LbtKeyColumn *column, Datum a, Datum b)
{
	LbtKeyValue one;
	LbtKeyValue other;

	if (column->kind != LBT_KEY_TEXT || lbt_stored_compressed(column, a) ||
		lbt_stored_compressed(column, b))
		return false;
	lbt_stored_bytes(column, DatumGetPointer(a), &one);
	lbt_stored_bytes(column, DatumGetPointer(b), &other);
	return one.length == other.length && memcmp(one.bytes, other.bytes, one.length) == 0;
}

int
lbt_compare_datums(const LbtKeyColumn *column, Datum a, Datum b)
{
	int			cmp = 0;

	if (!same_text(column, a, b))
		cmp = DatumGetInt32(FunctionCall2Coll(unconstify(FmgrInfo *, &column->compare),
											  column->collation, a, b));
	return column->desc ? (cmp < 0) - (cmp > 0) : (cmp > 0) - (cmp < 0);
}

/* ---- searching a leaf ---- */

/* What items are compared by. */
typedef enum Test
{
	ANY_COLUMNS,
	INT4_COLUMN,				/* single, ascending, no NULL in the bound */
	INT8_COLUMN,
	BYTES_COLUMN,				/* the same of a byte string */
	GUESS_TEXT					/* of first column; no NULL in the bound */
} Test;

/* A search, compiled for each test.  The position is after lo, up to hi. */
typedef struct Gallop
{
	const LbtKeySpec *spec;
	TupleDesc	tupdesc;
	const LbtBound *bound;
	Page		page;
	int			lo;				/* before the bound, or none */
	int			hi;				/* not before the bound, or none */
	uint32		lo_common;		/* BYTES_COLUMN: bytes that the bound's key */
	uint32		hi_common;		/* shares with lo, and with hi */
} Gallop;

/* Kept out of the loop for integers. */
static pg_noinline bool
any_before(const LbtKeySpec *spec, TupleDesc tupdesc, const LbtBound *bound, IndexTuple itup)
{
	return lbt_before_bound(spec, tupdesc, bound, itup, false);
}

/* Is the item before the bound, as far as can be guessed cheaply? */
static inline bool
guess_before(const LbtKeySpec *spec, TupleDesc tupdesc, const LbtBound *bound, IndexTuple itup)
{
	const LbtKeyColumn *column = &spec->column[0];
	bool		isnull;
	Datum		datum = index_getattr(itup, 1, tupdesc, &isnull);

	if (!isnull && !lbt_stored_compressed(column, datum))
	{
		LbtKeyValue key;
		LbtKeyValue item;
		int			order;

		lbt_stored_bytes(column, DatumGetCString((Datum) bound->value[0].ordered), &key);
		lbt_stored_bytes(column, DatumGetPointer(datum), &item);
		order = lbt_guess_order(column->collation, item.bytes, item.length, key.bytes, key.length);
		if (order != 0)
			return (order < 0) != column->desc;
	}
	return lbt_before_bound(spec, tupdesc, bound, itup, false);
}

/*
 * Is the item, whose byte string is at this place, before the bound?  All
 * items between lo and hi share with its key what both of these do, at least.
 */
static pg_attribute_always_inline bool
bytes_before(const Gallop *search, IndexTuple itup, const char *at, uint32 *common)
{
	const LbtKeyValue *key = &search->bound->value[0];
	uint32		same = Min(search->lo_common, search->hi_common);
	LbtKeyValue item;

	if (unlikely(IndexTupleHasNulls(itup)) ||
		unlikely(lbt_stored_compressed(&search->spec->column[0], PointerGetDatum(at))))
	{
		*common = 0;
		return any_before(search->spec, search->tupdesc, search->bound, itup);
	}
	lbt_stored_bytes(&search->spec->column[0], at, &item);
	same = Min(same, item.length);
	same += lbt_common_bytes(key->bytes + same, key->length - same, item.bytes + same,
							 item.length - same);
	*common = same;
	if (same == item.length)
		return same < key->length || search->bound->past;
	return same < key->length && item.bytes[same] < key->bytes[same];
}

/* Where an item's first key begins. */
static inline const char *
item_key(Page page, OffsetNumber offset)
{
	return (const char *) lbt_page_tuple(page, offset) + MAXALIGN(sizeof(IndexTupleData));
}

/* Is the item before the bound?  *common is set for BYTES_COLUMN. */
static pg_attribute_always_inline bool
before(const Gallop *search, OffsetNumber offset, Test test, uint32 *common)
{
	IndexTuple	itup = lbt_page_tuple(search->page, offset);
	const char *at = (const char *) itup + MAXALIGN(sizeof(IndexTupleData));
	const LbtBound *bound = search->bound;
	uint64		v;

	if (test == ANY_COLUMNS)
		return lbt_before_bound(search->spec, search->tupdesc, bound, itup, false);
	if (test == BYTES_COLUMN)
		return bytes_before(search, itup, at, common);
	if (test == GUESS_TEXT)
		return guess_before(search->spec, search->tupdesc, bound, itup);
	if (unlikely(IndexTupleHasNulls(itup)))
		return any_before(search->spec, search->tupdesc, bound, itup);
	v = lbt_order_signed(test == INT8_COLUMN ? *(const int64 *) at : *(const int32 *) at);
	return v < bound->value[0].ordered || (bound->past && v == bound->value[0].ordered);
}

/* Is this item before the bound?  It becomes one of the ends. */
static pg_attribute_always_inline bool
look_at(Gallop *search, int at, Test test)
{
	uint32		common = 0;

	if (before(search, at, test, &common))
	{
		search->lo = at;
		search->lo_common = common;
		return true;
	}
	search->hi = at;
	search->hi_common = common;
	return false;
}

/* Prefetch for steps up to this length. */
#define MAX_AHEAD 7

/* Prefetch what steps from guess look at: cheaper than waiting for items. */
static inline void
prefetch_steps(Page page, OffsetNumber first, OffsetNumber last, int guess)
{
	for (int step = 1; step <= MAX_AHEAD; step += step + 1)
	{
		if (guess - step >= first)
			__builtin_prefetch(item_key(page, guess - step));
		if (guess + step <= last)
			__builtin_prefetch(item_key(page, guess + step));
	}
}

static pg_attribute_always_inline OffsetNumber
gallop(const LbtKeySpec *spec, TupleDesc tupdesc, const LbtBound *bound, Page page,
	   OffsetNumber first, OffsetNumber last, OffsetNumber guess, Test test)
{
	Gallop		search = {spec, tupdesc, bound, page,.lo = first - 1,.hi = last + 1};
	int			at = guess < first ? first : guess > last ? last : guess;
	int			step = 1;

	if (test == GUESS_TEXT || test == BYTES_COLUMN ||
		(test == ANY_COLUMNS && spec->column[0].kind == LBT_KEY_BYTES))
		prefetch_steps(page, first, last, at);
	if (look_at(&search, at, test))
		while (search.lo + step < search.hi && look_at(&search, search.lo + step, test))
			step <<= 1;
	else
		while (search.hi - step > search.lo && !look_at(&search, search.hi - step, test))
			step <<= 1;
	while (search.hi - search.lo > 1)
	{
		int			mid = search.lo + (search.hi - search.lo) / 2;

		/* The next step takes one of these two. */
		if (test == GUESS_TEXT && search.hi - search.lo > 3)
		{
			__builtin_prefetch(item_key(page, search.lo + (mid - search.lo) / 2));
			__builtin_prefetch(item_key(page, mid + (search.hi - mid) / 2));
		}
		(void) look_at(&search, mid, test);
	}
	return (OffsetNumber) search.hi;
}

OffsetNumber
lbt_page_search(const LbtKeySpec *spec, TupleDesc tupdesc, const LbtBound *bound, Page page,
				OffsetNumber first, OffsetNumber last, OffsetNumber guess)
{
	if (first > last)
		return first;
	if (bound->ncolumns == 0)
		return bound->past ? last + 1 : first;
	if (!bound->value[0].isnull)
	{
		const LbtKeyColumn *column = &spec->column[0];

		if (bound->ncolumns == 1 && !column->desc)
		{
			if (column->kind == LBT_KEY_SIGNED && column->length == sizeof(int64))
				return gallop(spec, tupdesc, bound, page, first, last, guess, INT8_COLUMN);
			if (column->kind == LBT_KEY_SIGNED && column->length == sizeof(int32))
				return gallop(spec, tupdesc, bound, page, first, last, guess, INT4_COLUMN);
			if (column->kind == LBT_KEY_BYTES)
				return gallop(spec, tupdesc, bound, page, first, last, guess, BYTES_COLUMN);
		}

		/*
		 * Comparing by a collation is slow: two prove a good guess.  The end
		 * of a key's entries is close to where they begin.
		 */
		if (column->kind == LBT_KEY_TEXT && (!bound->past || guess != first))
			guess = gallop(spec, tupdesc, bound, page, first, last, guess, GUESS_TEXT);
	}
	return gallop(spec, tupdesc, bound, page, first, last, guess, ANY_COLUMNS);
}

bool
lbt_bound_beyond_page(const LbtKeySpec *spec, TupleDesc tupdesc, const LbtBound *bound, Page page)
{
	BTPageOpaque opaque = BTPageGetOpaque(page);

	if (P_RIGHTMOST(opaque))
		return false;
	return lbt_before_bound(spec, tupdesc, bound, lbt_page_tuple(page, P_HIKEY), true);
}
