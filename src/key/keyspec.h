/*
 * keyspec.h - how the values of an index's key columns are read and ordered.
 *
 * A key spec covers the leading key columns whose types have a key code.  They are of three kinds:
 *
 *   number        compared by its ordered value (model/keycode.h),
 *   byte string   compared by its bytes; both are exact, their order is the index's order and equal means
 *                 equal, so that pages are searched without calling a comparison function;
 *   encoded       the key code sees a byte string made from the value (encode.c), pages are searched by the
 *                 operator class's comparison function.
 *
 * An encoding keeps the order of the column's comparison function: a <= b implies encoding(a) <= encoding(b)
 * by memcmp(), the shorter first.  Different values may have the same one.  Pages are compared by the
 * comparison function itself, so that a sort key which breaks this rule costs a fallback, nothing else.
 */
#ifndef LBT_KEYSPEC_H
#define LBT_KEYSPEC_H

#include "postgres.h"

#include "access/itup.h"
#include "fmgr.h"
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
	LBT_STORE_UINT8,			/* pg_lsn, xid8 */
	LBT_STORE_OID,
	LBT_STORE_BYTE,				/* bool, "char" */
	LBT_STORE_FLOAT4,
	LBT_STORE_FLOAT8,

	/*
	 * byte strings, and what is encoded as such; a few encoded types are
	 * stored as numbers are
	 */
	LBT_STORE_FIXED,			/* of the column's length */
	LBT_STORE_CSTRING,			/* name */
	LBT_STORE_VARLENA,
	LBT_STORE_BPCHAR			/* varlena; blanks at the end do not count */
} LbtStore;

typedef enum LbtEncoding
{
	LBT_NOT_ENCODED = 0,
	LBT_ENCODE_NUMERIC,
	LBT_ENCODE_INET,
	LBT_ENCODE_INTERVAL,
	LBT_ENCODE_TIMETZ,
	LBT_ENCODE_ENUM,
	LBT_ENCODE_RANGE,
	LBT_ENCODE_BITS,
	LBT_ENCODE_SORT_KEY			/* text under a collation of its own order */
} LbtEncoding;

typedef struct LbtKeyColumn
{
	LbtStore	store;
	LbtKeyKind	kind;
	Oid			type;			/* the operator class's input type */
	Oid			stored_type;	/* the column's own, below domains */
	Oid			collation;
	FmgrInfo	compare;		/* the comparison function, of encoded columns */
	LbtEncoding encoding;
	int			length;			/* when LBT_STORE_FIXED */
	int			alignment;		/* of varlenas without a short header */
	int			offset;			/* from the tuple's start, when the tuple has
								 * no NULLs; -1: it varies */
	bool		bytes;			/* a byte string, for the key code */
	bool		encoded;		/* ... that is made from the value, for
								 * nothing else */
	bool		desc;
	bool		nulls_first;
} LbtKeyColumn;

typedef struct LbtKeySpec
{
	int			ncolumns;		/* leading columns with a code; 0: none */
	int			nkeyatts;		/* key columns of the index */
	bool		encoded;		/* some column is */
	bool		sort_keys;		/* ... by sort keys, which may contradict the
								 * comparison */
	LbtKeyColumn column[LBT_CODE_COLUMNS];
} LbtKeySpec;

/* Memory for the byte string that an encoded value becomes. */
#define LBT_KEY_ROOM LBT_CODE_BYTES

/* encode.c */

/*
 * Encode a value of an encoded column (the column's own type; of a varlena type one that is neither
 * compressed nor out of line) into room, LBT_KEY_ROOM bytes; returns the length.
 */
extern uint32 lbt_encode(const LbtKeyColumn *column, Datum value, uint8 *room);

/* Has LBT_ENCODE_RANGE an encoding for this range type? */
extern bool lbt_range_encodable(Oid type);

/* keyspec.c */

/* Work out the key spec of an open index. */
extern void lbt_keyspec_init(LbtKeySpec *spec, Relation rel);

/* Can search arguments of this type (InvalidOid: the column's own) be brought into its order? */
extern bool lbt_keyspec_takes(const LbtKeyColumn *column, Oid argtype);

static inline bool
lbt_stored_varlena(const LbtKeyColumn *column)
{
	return column->store == LBT_STORE_VARLENA || column->store == LBT_STORE_BPCHAR;
}

/*
 * A byte string is used where it lies, so it must be neither compressed nor out of line.  (To ask whether its
 * header is short is not enough: so is that of a pointer to an out-of-line value.)  Compressed values on pages
 * are another matter, see lbt_compare_compressed().
 */
static inline bool
lbt_keyspec_plain(const LbtKeyColumn *column, Datum arg)
{
	return !lbt_stored_varlena(column) ||
		(!VARATT_IS_EXTERNAL(DatumGetPointer(arg)) && !VARATT_IS_COMPRESSED(DatumGetPointer(arg)));
}

/*
 * The key value for an argument of a type that the column takes; a byte string must be plain and outlive the
 * key value, and so must room, LBT_KEY_ROOM bytes for a column that is encoded (else NULL).  An argument that
 * the column's type cannot represent (2^40 for an int4 column) lies beside its nearest value: returns 1 when
 * the argument comes right after that in the index's order, -1 when right before it, 0 when equal.
 */
extern int	lbt_keyspec_argument(const LbtKeyColumn *column, Oid argtype, Datum arg,
								 LbtKeyValue *value, uint8 *room);

/* The column's own value for a key value: of a byte string, the argument that it was made from. */
extern Datum lbt_keyspec_datum(const LbtKeyColumn *column, const LbtKeyValue *value);

/* How the columns are ordered, for the key code. */
extern void lbt_keyspec_order(const LbtKeySpec *spec, LbtColumnOrder *order);

/* Could a training of this index have learned this key code? */
extern bool lbt_keyspec_fits(const LbtKeySpec *spec, const LbtKeyCode *code);

/* A byte string stored at this address; not of a compressed one. */
static inline void
lbt_stored_bytes(const LbtKeyColumn *column, const char *at, LbtKeyValue *value)
{
	value->isnull = false;
	if (lbt_stored_varlena(column))
	{
		Assert(!VARATT_IS_EXTERNAL(at) && !VARATT_IS_COMPRESSED(at));
		value->bytes = (const uint8_t *) VARDATA_ANY(at);
		value->length = VARSIZE_ANY_EXHDR(at);
		if (column->store == LBT_STORE_BPCHAR)
			while (value->length > 0 && value->bytes[value->length - 1] == ' ')
				value->length--;
	}
	else
	{
		value->bytes = (const uint8_t *) at;
		value->length = column->store == LBT_STORE_FIXED ? column->length : strlen(at);
	}
}

static inline bool
lbt_stored_compressed(const LbtKeyColumn *column, const char *at)
{
	return lbt_stored_varlena(column) && VARATT_IS_COMPRESSED(at);
}

/* Two values of an encoded column, as the comparison function has them. */
static inline int
lbt_compare_encoded(const LbtKeyColumn *column, Datum a, Datum b)
{
	int			cmp = DatumGetInt32(FunctionCall2Coll(unconstify(FmgrInfo *, &column->compare),
													  column->collation, a, b));

	return column->desc ? (cmp < 0) - (cmp > 0) : (cmp > 0) - (cmp < 0);
}

/* Two byte strings in the column's order: is the first before (-1), equal to (0) or after (1) the second? */
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

/* The same where the second is compressed, at this address on a page. */
extern int	lbt_compare_compressed(const LbtKeyColumn *column, const LbtKeyValue *a, const char *at);

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
		case LBT_STORE_UINT8:
			v = *(const uint64 *) at;
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

/* Where a column's byte string is in a tuple that has the column; NULL when it is NULL. */
static inline const char *
lbt_tuple_bytes(const LbtKeySpec *spec, int column, IndexTuple itup, TupleDesc tupdesc)
{
	const LbtKeyColumn *c = &spec->column[column];
	bool		isnull;
	Datum		datum;

	if (likely(!IndexTupleHasNulls(itup) && c->offset >= 0))
	{
		const char *at = (const char *) itup + c->offset;

		/* A short header needs no alignment, and is not 0 as padding is. */
		if (lbt_stored_varlena(c) && !VARATT_NOT_PAD_BYTE(at))
			at = (const char *) TYPEALIGN(c->alignment, at);
		return at;
	}
	datum = index_getattr(itup, column + 1, tupdesc, &isnull);
	return isnull ? NULL : DatumGetPointer(datum);
}

/* An encoded column's value in a tuple that has the column; not a copy. */
static inline Datum
lbt_tuple_datum(const LbtKeySpec *spec, int column, IndexTuple itup, TupleDesc tupdesc, bool *isnull)
{
	const char *at;

	if (spec->column[column].store == LBT_STORE_OID)
		return index_getattr(itup, column + 1, tupdesc, isnull);
	at = lbt_tuple_bytes(spec, column, itup, tupdesc);
	*isnull = at == NULL;
	return PointerGetDatum(at);
}

/* A number's value in a tuple that has the column.  Column counts from 0. */
static inline LbtKeyValue
lbt_tuple_value(const LbtKeySpec *spec, int column, IndexTuple itup, TupleDesc tupdesc)
{
	const LbtKeyColumn *c = &spec->column[column];
	LbtKeyValue value;

	if (likely(!IndexTupleHasNulls(itup) && c->offset >= 0))
	{
		value.isnull = false;
		value.ordered = lbt_load_ordered(c, (const char *) itup + c->offset);
	}
	else
	{
		/*
		 * Offsets shift behind NULLs and byte strings.  The value's address
		 * is what its load needs.
		 */
		bool		isnull;
		Datum		datum = index_getattr(itup, column + 1, tupdesc, &isnull);

		value.isnull = isnull;
		value.ordered = 0;
		if (!isnull)
			(void) lbt_keyspec_argument(c, InvalidOid, datum, &value, NULL);
	}
	return value;
}

#endif							/* LBT_KEYSPEC_H */
