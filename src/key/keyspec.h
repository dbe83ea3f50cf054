/*
 * keyspec.h - how the values of an index's key columns are read and ordered.
 *
 * A key spec covers the leading key columns whose types have a key code:
 *
 *   number        compared by its ordered value (model/keycode.h)
 *   byte string   compared by its bytes; both are exact: their order is the
 *                 index's and equal means equal, so pages are searched without
 *                 calling a comparison function
 *   encoded       the key code sees a byte string made from the value; pages
 *                 are searched by the operator class's comparison function
 *
 * An encoding keeps the order of the comparison function: a <= b implies
 * encoding(a) <= encoding(b) by memcmp(), the shorter first.  Different values
 * may share one.  What breaks this rule costs only a fallback.
 */
#ifndef LBT_KEYSPEC_H
#define LBT_KEYSPEC_H

#include "postgres.h"

#include "catalog/pg_type.h"
#include "model/keycode.h"
#include "server/btree.h"
#include "utils/memutils.h"

/* How a column's values are ordered and, with their length, stored. */
typedef enum LbtKeyKind
{
	LBT_KEY_SIGNED,				/* integers, times, money */
	LBT_KEY_UNSIGNED,			/* oid, pg_lsn, xid8, bool, "char" */
	LBT_KEY_FLOAT,				/* NaN above all, -0 = 0 */
	LBT_KEY_BYTES,				/* byte strings; those below are encoded */
	LBT_KEY_NUMERIC,
	LBT_KEY_INET,
	LBT_KEY_ENUM,
	LBT_KEY_TEXT				/* under a collation of its own order */
} LbtKeyKind;

typedef struct LbtKeyColumn
{
	LbtKeyKind	kind;
	int			length;			/* as attlen: -1 varlena, -2 C string (name) */
	char		align;			/* as attalign */
	Oid			type;			/* the operator class's input type */
	Oid			collation;
	FmgrInfo	compare;		/* comparison function, except of numbers */
	bool		bytes;			/* a byte string, for the key code */
	bool		encoded;		/* ... made from the value for nothing else */
	bool		desc;
	bool		nulls_first;
} LbtKeyColumn;

typedef struct LbtKeySpec
{
	int			ncolumns;		/* leading columns with a code; 0: none */
	bool		encoded;		/* some column is */
	bool		unsure;			/* ... by what may contradict the order */

	/* Of an entry without NULLs: */
	uint8		nplaces;		/* columns that can be found without a lock */
	bool		varies;			/* not all, or not in the same place in all */
	LbtColumnOrder order[LBT_CODE_COLUMNS]; /* for the key code */
	LbtKeyColumn column[LBT_CODE_COLUMNS];	/* of a kept one, ncolumns */
} LbtKeySpec;

/* The bytes in use, as kept in views. */
static inline Size
lbt_keyspec_bytes(const LbtKeySpec *spec)
{
	return offsetof(LbtKeySpec, column) + spec->ncolumns * sizeof(LbtKeyColumn);
}

/* Scratch memory for the byte string that an encoded value becomes. */
#define LBT_SCRATCH_BYTES LBT_CODE_BYTES

/* Work out the key spec of an open index. */
extern void lbt_keyspec_init(LbtKeySpec *spec, Relation rel);

/* Can arguments of this type (InvalidOid: the column's) get its order? */
extern bool lbt_keyspec_takes(const LbtKeyColumn *column, Oid argtype);

static inline bool
lbt_stored_compressed(const LbtKeyColumn *column, Datum value)
{
	return column->length == -1 && VARATT_IS_COMPRESSED(DatumGetPointer(value));
}

/*
 * Can a key be made of this value?  A byte string is used where it lies, so it
 * must be neither compressed nor out of line.  An enum's value must be one
 * that its OID orders.
 */
static inline bool
lbt_keyspec_plain(const LbtKeyColumn *column, Datum arg)
{
	if (column->length != -1)
		return column->kind != LBT_KEY_ENUM || DatumGetObjectId(arg) % 2 == 0;
	return !VARATT_IS_EXTERNAL(DatumGetPointer(arg)) && !VARATT_IS_COMPRESSED(DatumGetPointer(arg));
}

/*
 * Make a key value of an argument, whose type the column takes.  It must be
 * plain, but an enum's value need not be.  It, and the scratch of an encoded
 * column, must outlive the key value.  Of an argument that the column's type
 * cannot represent (2^40 for an int4 column) this is the nearest value:
 * returns 1 if the argument comes right after it in the index's order, -1 if
 * right before it, 0 if equal.
 */
extern int	lbt_keyspec_argument(const LbtKeyColumn *column, Oid argtype, Datum arg,
								 LbtKeyValue *value, uint8 *scratch);

/*
 * Make a key of values for the leading columns, compared as these types (NULL:
 * as the columns' own).  scratch is as above, for each column.  False if there
 * is no such key: a NULL, unless nulls says that they may be, or a value that
 * is not plain or that its column cannot have.
 */
static inline bool
lbt_key_of(const LbtKeySpec *spec, int ncolumns, const Oid *types, bool nulls,
		   const Datum *values, const bool *isnull, uint8 *scratch, LbtKeyValue *key)
{
	for (int i = 0; i < ncolumns; i++)
	{
		const LbtKeyColumn *column = &spec->column[i];

		key[i].isnull = isnull[i];
		key[i].ordered = 0;
		if (isnull[i] ? !nulls :
			!lbt_keyspec_plain(column, values[i]) ||
			lbt_keyspec_argument(column, types ? types[i] : InvalidOid, values[i], &key[i],
								 scratch ? scratch + i * LBT_SCRATCH_BYTES : NULL) != 0)
			return false;
	}
	return true;
}

/* A key value's own value; of a byte string, the argument it was made from. */
extern Datum lbt_keyspec_datum(const LbtKeyColumn *column, const LbtKeyValue *value);

/* Could a training of this index have learned this key code? */
static inline bool
lbt_keyspec_can_use(const LbtKeySpec *spec, const LbtKeyCode *code)
{
	return code->ncolumns <= spec->ncolumns &&
		memcmp(spec->order, code->order, code->ncolumns * sizeof(LbtColumnOrder)) == 0;
}

/*
 * The bytes that a varlena with this header takes; 0 if it is out of line, or
 * they are more than there are, or fewer than its header's.
 */
static inline uint32
lbt_varlena_bytes(const void *header, uint32 room)
{
	uint32		least = room == 0 || VARATT_IS_1B(header) ? VARHDRSZ_SHORT : VARHDRSZ;
	uint32		bytes;

	if (room < least || VARATT_IS_1B_E(header))
		return 0;
	bytes = VARSIZE_ANY(header);
	return bytes >= least && bytes <= room ? bytes : 0;
}

/* The length that counts: blanks at the end of a char(n) do not. */
static inline uint32
lbt_length_that_counts(const LbtKeyColumn *column, const uint8_t *bytes, uint32 length)
{
	if (column->type == BPCHAROID)
		while (length > 0 && bytes[length - 1] == ' ')
			length--;
	return length;
}

/* The byte string stored at this address, which is plain. */
static inline void
lbt_stored_bytes(const LbtKeyColumn *column, const char *at, LbtKeyValue *value)
{
	if (column->length == -1)
	{
		Assert(lbt_keyspec_plain(column, PointerGetDatum(at)));
		value->bytes = (const uint8_t *) VARDATA_ANY(at);
		value->length = lbt_length_that_counts(column, value->bytes, VARSIZE_ANY_EXHDR(at));
	}
	else
	{
		value->bytes = (const uint8_t *) at;
		value->length = column->length > 0 ? column->length : strlen(at);
	}
}

/* A number's ordered value. */
static inline uint64
lbt_ordered(const LbtKeyColumn *column, Datum value)
{
	bool		wide = column->length == sizeof(uint64);
	uint64		v;

	if (column->kind == LBT_KEY_SIGNED)
		v = lbt_order_signed(wide ? DatumGetInt64(value) :
							 column->length == sizeof(int32) ? DatumGetInt32(value) :
							 DatumGetInt16(value));
	else if (column->kind == LBT_KEY_FLOAT)
		v = lbt_order_float(wide ? DatumGetFloat8(value) : DatumGetFloat4(value));
	else
		v = wide ? DatumGetUInt64(value) : column->length == sizeof(Oid) ? DatumGetObjectId(value) :
			DatumGetUInt8(value);
	return column->desc ? ~v : v;
}

/*
 * What a key is made of, without relabellings, and without casts by which its
 * type and the column's have one order (int4 to int8).  Sets *type, what the
 * key is compared as, where there was a cast.
 */
extern Node *lbt_key_as_it_stands(Node *key, const LbtKeyColumn *column, Oid *type);

#endif							/* LBT_KEYSPEC_H */
