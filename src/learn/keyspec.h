/*
 * keyspec.h - how the values of an index's key columns are read and ordered.
 *
 * A key spec covers the leading key columns whose types have a key code.  For these, ordered values
 * (model/keycode.h) are exact: their order is the index's order and equal means equal, so pages are
 * searched by them without calling a comparison function.
 */
#ifndef LBT_KEYSPEC_H
#define LBT_KEYSPEC_H

#include "postgres.h"

#include "access/itup.h"
#include "access/skey.h"
#include "model/keycode.h"
#include "server/btree.h"
#include "utils/rel.h"

/* How a column's value is stored in the index tuple. */
typedef enum LbtStore
{
	LBT_STORE_INT2,
	LBT_STORE_INT4,
	LBT_STORE_INT8,
	LBT_STORE_OID,
	LBT_STORE_BYTE,				/* bool, "char" */
	LBT_STORE_FLOAT4,
	LBT_STORE_FLOAT8
} LbtStore;

typedef struct LbtKeyColumn
{
	LbtStore	store;
	LbtKeyKind	kind;
	Oid			type;			/* the operator class's input type */
	int			offset;			/* from the tuple's start, when the tuple has no NULLs */
	bool		desc;
	bool		nulls_first;
} LbtKeyColumn;

typedef struct LbtKeySpec
{
	int			ncolumns;		/* leading columns with a code; 0: none */
	int			nkeyatts;		/* key columns of the index */
	LbtKeyColumn column[LBT_CODE_COLUMNS];
} LbtKeySpec;

/* Work out the key spec of an open index. */
extern void lbt_keyspec_init(LbtKeySpec *spec, Relation rel);

/* Can search arguments of this type (InvalidOid: the column's own) be brought into its order? */
extern bool lbt_keyspec_takes(const LbtKeyColumn *column, Oid argtype);

/*
 * The ordered value of an argument of a type that the column takes.  An argument that the column's
 * type cannot represent (2^40 for an int4 column) lies beside its nearest value: returns 1 when the
 * argument comes right after *ordered in the index's order, -1 when right before it, 0 when equal.
 */
extern int	lbt_keyspec_argument(const LbtKeyColumn *column, Oid argtype, Datum arg,
								 uint64 *ordered);

/* The column's own value for an ordered value. */
extern Datum lbt_keyspec_datum(const LbtKeyColumn *column, uint64 ordered);

static inline uint64
lbt_load_ordered(const LbtKeyColumn *column, const char *at)
{
	uint64		v;

	switch (column->store)
	{
		case LBT_STORE_INT8:
			v = lbt_order_signed(*(const int64 *) at);
			break;
		case LBT_STORE_INT4:
			v = lbt_order_signed(*(const int32 *) at);
			break;
		case LBT_STORE_INT2:
			v = lbt_order_signed(*(const int16 *) at);
			break;
		case LBT_STORE_OID:
			v = *(const Oid *) at;
			break;
		case LBT_STORE_BYTE:
			v = *(const uint8 *) at;
			break;
		case LBT_STORE_FLOAT4:
			v = lbt_order_float(*(const float4 *) at);
			break;
		case LBT_STORE_FLOAT8:
			v = lbt_order_float(*(const float8 *) at);
			break;
		default:
			pg_unreachable();
	}
	return column->desc ? ~v : v;
}

/* Number of leading key columns that a tuple has values for: all, but in a truncated pivot. */
static inline int
lbt_tuple_columns(const LbtKeySpec *spec, IndexTuple itup)
{
	if (BTreeTupleIsPivot(itup))
		return Min(BTreeTupleGetNAtts(itup, (Relation) NULL), spec->ncolumns);
	return spec->ncolumns;
}

/* A column's value in a tuple that has it.  Column counts from 0. */
static inline LbtKeyValue
lbt_tuple_value(const LbtKeySpec *spec, int column, IndexTuple itup, TupleDesc tupdesc)
{
	const LbtKeyColumn *c = &spec->column[column];
	LbtKeyValue value;

	if (likely(!IndexTupleHasNulls(itup)))
	{
		value.isnull = false;
		value.ordered = lbt_load_ordered(c, (const char *) itup + c->offset);
	}
	else
	{
		/* Offsets shift behind NULLs.  The value's address is what its load needs. */
		bool		isnull;
		Datum		datum = index_getattr(itup, column + 1, tupdesc, &isnull);

		value.isnull = isnull;
		value.ordered = 0;
		if (!isnull)
			(void) lbt_keyspec_argument(c, InvalidOid, datum, &value.ordered);
	}
	return value;
}

#endif							/* LBT_KEYSPEC_H */
