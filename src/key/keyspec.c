/*
 * keyspec.c - which column types have a key code, and search arguments of other types; see keyspec.h.
 *
 * A column is recognised by its operator class's comparison function, not by its type: an operator
 * class with an order of its own is not ours to second-guess.
 */
#include "key/keyspec.h"

#include "access/tupmacs.h"
#include "catalog/pg_type.h"
#include "utils/date.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

static const struct
{
	RegProcedure compare;
	Oid			type;
	LbtStore	store;
	LbtKeyKind	kind;
	LbtEncoding encoding;		/* SORT_KEY: only where the collation does not
								 * go by bytes */
}			known[] = {
	{F_BTINT2CMP, INT2OID, LBT_STORE_INT2, LBT_KEY_SIGNED},
	{F_BTINT4CMP, INT4OID, LBT_STORE_INT4, LBT_KEY_SIGNED},
	{F_BTINT8CMP, INT8OID, LBT_STORE_INT8, LBT_KEY_SIGNED},
	{F_BTOIDCMP, OIDOID, LBT_STORE_OID, LBT_KEY_UNSIGNED},
	{F_BTBOOLCMP, BOOLOID, LBT_STORE_BYTE, LBT_KEY_UNSIGNED},
	{F_BTCHARCMP, CHAROID, LBT_STORE_BYTE, LBT_KEY_UNSIGNED},
	{F_BTFLOAT4CMP, FLOAT4OID, LBT_STORE_FLOAT4, LBT_KEY_FLOAT},
	{F_BTFLOAT8CMP, FLOAT8OID, LBT_STORE_FLOAT8, LBT_KEY_FLOAT},
	{F_DATE_CMP, DATEOID, LBT_STORE_INT4, LBT_KEY_SIGNED},
	{F_TIMESTAMP_CMP, TIMESTAMPOID, LBT_STORE_INT8, LBT_KEY_SIGNED},
	{F_TIMESTAMPTZ_CMP, TIMESTAMPTZOID, LBT_STORE_INT8, LBT_KEY_SIGNED},
	{F_TIME_CMP, TIMEOID, LBT_STORE_INT8, LBT_KEY_SIGNED},
	{F_CASH_CMP, MONEYOID, LBT_STORE_INT8, LBT_KEY_SIGNED},
	{F_PG_LSN_CMP, PG_LSNOID, LBT_STORE_UINT8, LBT_KEY_UNSIGNED},
	{F_XID8CMP, XID8OID, LBT_STORE_UINT8, LBT_KEY_UNSIGNED},
	{F_UUID_CMP, UUIDOID, LBT_STORE_FIXED, LBT_KEY_BYTES},
	{F_MACADDR_CMP, MACADDROID, LBT_STORE_FIXED, LBT_KEY_BYTES},
	{F_MACADDR8_CMP, MACADDR8OID, LBT_STORE_FIXED, LBT_KEY_BYTES},
	{F_BYTEACMP, BYTEAOID, LBT_STORE_VARLENA, LBT_KEY_BYTES},
	{F_BTNAMECMP, NAMEOID, LBT_STORE_CSTRING, LBT_KEY_BYTES, LBT_ENCODE_SORT_KEY},
	{F_BTTEXTCMP, TEXTOID, LBT_STORE_VARLENA, LBT_KEY_BYTES, LBT_ENCODE_SORT_KEY},
	{F_BTTEXT_PATTERN_CMP, TEXTOID, LBT_STORE_VARLENA, LBT_KEY_BYTES},
	{F_BPCHARCMP, BPCHAROID, LBT_STORE_BPCHAR, LBT_KEY_BYTES, LBT_ENCODE_SORT_KEY},
	{F_BTBPCHAR_PATTERN_CMP, BPCHAROID, LBT_STORE_BPCHAR, LBT_KEY_BYTES},
	{F_NUMERIC_CMP, NUMERICOID, LBT_STORE_VARLENA, LBT_KEY_BYTES, LBT_ENCODE_NUMERIC},
	{F_NETWORK_CMP, INETOID, LBT_STORE_VARLENA, LBT_KEY_BYTES, LBT_ENCODE_INET},
	{F_INTERVAL_CMP, INTERVALOID, LBT_STORE_FIXED, LBT_KEY_BYTES, LBT_ENCODE_INTERVAL},
	{F_TIMETZ_CMP, TIMETZOID, LBT_STORE_FIXED, LBT_KEY_BYTES, LBT_ENCODE_TIMETZ},
	{F_ENUM_CMP, ANYENUMOID, LBT_STORE_OID, LBT_KEY_BYTES, LBT_ENCODE_ENUM},
	{F_BITCMP, BITOID, LBT_STORE_VARLENA, LBT_KEY_BYTES, LBT_ENCODE_BITS},
	{F_VARBITCMP, VARBITOID, LBT_STORE_VARLENA, LBT_KEY_BYTES, LBT_ENCODE_BITS},
	{F_RANGE_CMP, ANYRANGEOID, LBT_STORE_VARLENA, LBT_KEY_BYTES, LBT_ENCODE_RANGE},
};

/* Can the column's values be brought into the key code, as they are or encoded?  Settles which of the two for text. */
static bool
has_code(LbtKeyColumn *column, RegProcedure compare)
{
	if (compare == F_BTTEXT_PATTERN_CMP || compare == F_BTBPCHAR_PATTERN_CMP)
		return OidIsValid(column->collation) && get_collation_isdeterministic(column->collation);
	if (column->encoding == LBT_ENCODE_RANGE)
		return lbt_range_encodable(column->stored_type);
	if (column->encoding != LBT_ENCODE_SORT_KEY)
		return true;
	if (lbt_collation_is_c(column->collation))
		column->encoding = LBT_NOT_ENCODED;
	return column->encoding == LBT_NOT_ENCODED || OidIsValid(column->collation);
}

/* The type of what is stored, where it is not the input type: text for varchar, cstring for name. */
static bool
stored_as(LbtStore store, Form_pg_attribute att)
{
	if (store == LBT_STORE_VARLENA || store == LBT_STORE_BPCHAR)
		return att->attlen == -1;
	return store == LBT_STORE_CSTRING ? att->attlen == -2 : att->attlen > 0;
}

/* Work out how a column is read and ordered, but for its offset; false when it has no key code. */
static bool
column_init(LbtKeyColumn *column, Relation rel, int i)
{
	Form_pg_attribute att = TupleDescAttr(RelationGetDescr(rel), i);
	RegProcedure compare = index_getprocid(rel, i + 1, BTORDER_PROC);
	int			k;

	for (k = 0; k < lengthof(known); k++)
		if (known[k].compare == compare)
			break;
	if (k == lengthof(known) || rel->rd_opcintype[i] != known[k].type || !stored_as(known[k].store, att))
		return false;
	column->store = known[k].store;
	column->kind = known[k].kind;
	column->type = known[k].type;
	column->stored_type = getBaseType(att->atttypid);
	column->length = att->attlen;
	column->alignment = att->attalign == TYPALIGN_DOUBLE ? ALIGNOF_DOUBLE : ALIGNOF_INT;
	column->desc = (rel->rd_indoption[i] & INDOPTION_DESC) != 0;
	column->nulls_first = (rel->rd_indoption[i] & INDOPTION_NULLS_FIRST) != 0;
	column->bytes = known[k].kind == LBT_KEY_BYTES;
	column->collation = rel->rd_indcollation[i];
	column->encoding = known[k].encoding;
	if (!has_code(column, compare))
		return false;
	column->encoded = column->encoding != LBT_NOT_ENCODED;
	if (column->encoded)
		fmgr_info_cxt(compare, &column->compare, TopMemoryContext);
	return true;
}

void
lbt_keyspec_init(LbtKeySpec *spec, Relation rel)
{
	TupleDesc	tupdesc = RelationGetDescr(rel);
	int			offset = MAXALIGN(sizeof(IndexTupleData));

	memset(spec, 0, sizeof(*spec));
	spec->nkeyatts = IndexRelationGetNumberOfKeyAttributes(rel);
	for (int i = 0; i < spec->nkeyatts && i < LBT_CODE_COLUMNS; i++)
	{
		Form_pg_attribute att = TupleDescAttr(tupdesc, i);
		LbtKeyColumn *column = &spec->column[i];

		if (!column_init(column, rel, i))
			return;
		if (offset >= 0 && att->attlen > 0)
			offset = att_align_nominal(offset, att->attalign);
		column->offset = offset;
		offset = offset >= 0 && att->attlen > 0 ? offset + att->attlen : -1;
		spec->encoded |= column->encoded;
		spec->sort_keys |= column->encoding == LBT_ENCODE_SORT_KEY;
		spec->ncolumns = i + 1;
	}
}

static bool
is_time(Oid type)
{
	return type == DATEOID || type == TIMESTAMPOID || type == TIMESTAMPTZOID;
}

/*
 * Integers compare with integers, floats with floats; every other type only with itself.  Of times
 * only widening is exact: a date column takes dates only, and a timestamp column no timestamptz.
 */
bool
lbt_keyspec_takes(const LbtKeyColumn *column, Oid argtype)
{
	if (!OidIsValid(argtype))
		return true;
	switch (column->type)
	{
		case INT2OID:
		case INT4OID:
		case INT8OID:
			return argtype == INT2OID || argtype == INT4OID || argtype == INT8OID;
		case FLOAT4OID:
		case FLOAT8OID:
			return argtype == FLOAT4OID || argtype == FLOAT8OID;
		case TIMESTAMPOID:
			return argtype == TIMESTAMPOID || argtype == DATEOID;
		case TIMESTAMPTZOID:
			return is_time(argtype);
		case TEXTOID:
			return argtype == TEXTOID || argtype == VARCHAROID; /* the same bytes */
		default:
			return argtype == column->type;
	}
}

/*
 * Comparing a date with a timestamp brings the date to its first microsecond, as the server's own
 * cross-type comparisons do; what is then out of range lies between the last finite timestamp and
 * infinity.
 */
static Timestamp
widen_time(Oid column_type, Oid type, Datum arg)
{
	int			overflow = 0;
	Timestamp	t;

	if (type == TIMESTAMPOID)
		t = timestamp2timestamptz_opt_overflow(DatumGetTimestamp(arg), &overflow);
	else if (column_type == TIMESTAMPOID)
		t = date2timestamp_opt_overflow(DatumGetDateADT(arg), &overflow);
	else
		t = date2timestamptz_opt_overflow(DatumGetDateADT(arg), &overflow);
	return overflow > 0 ? PG_INT64_MAX - 1 : overflow < 0 ? PG_INT64_MIN + 1 : t;
}

static int64
integer_argument(Oid column_type, Oid type, Datum arg)
{
	if (type != column_type && is_time(type))
		return widen_time(column_type, type, arg);
	switch (type)
	{
		case INT2OID:
			return DatumGetInt16(arg);
		case INT4OID:
		case DATEOID:
			return DatumGetInt32(arg);
		default:
			return DatumGetInt64(arg);
	}
}

int
lbt_keyspec_argument(const LbtKeyColumn *column, Oid argtype, Datum arg, LbtKeyValue *value,
					 uint8 *room)
{
	uint64	   *ordered = &value->ordered;
	int			side = 0;

	value->isnull = false;
	if (column->bytes)
	{
		Assert(lbt_keyspec_plain(column, arg));
		if (column->encoded)
		{
			value->length = lbt_encode(column, arg, room);
			value->bytes = room;
		}
		else
			lbt_stored_bytes(column, DatumGetPointer(arg), value);
		value->ordered = (uint64) arg;	/* for lbt_keyspec_datum() */
		return 0;
	}
	if (!OidIsValid(argtype))
		argtype = column->type;
	if (column->kind == LBT_KEY_SIGNED)
	{
		int64		exact = integer_argument(column->type, argtype, arg);
		int64		max = column->store == LBT_STORE_INT4 ? PG_INT32_MAX :
			column->store == LBT_STORE_INT2 ? PG_INT16_MAX : PG_INT64_MAX;
		int64		v = Max(Min(exact, max), -max - 1);

		side = (exact > v) - (exact < v);
		*ordered = lbt_order_signed(v);
	}
	else if (column->kind == LBT_KEY_FLOAT)
	{
		double		exact = argtype == FLOAT4OID ? DatumGetFloat4(arg) : DatumGetFloat8(arg);
		double		v = column->store == LBT_STORE_FLOAT4 ? (double) (float) exact : exact;

		side = (exact > v) - (exact < v);	/* of NaN, neither */
		*ordered = lbt_order_float(v);
	}
	else if (column->store == LBT_STORE_OID)
		*ordered = DatumGetObjectId(arg);
	else if (column->store == LBT_STORE_UINT8)
		*ordered = DatumGetUInt64(arg);
	else
		*ordered = (uint8) DatumGetChar(arg);

	if (!column->desc)
		return side;
	*ordered = ~*ordered;
	return -side;
}

Datum
lbt_keyspec_datum(const LbtKeyColumn *column, const LbtKeyValue *value)
{
	uint64		ordered = value->ordered;

	if (column->bytes)
		return (Datum) ordered;
	if (column->desc)
		ordered = ~ordered;
	if (column->kind == LBT_KEY_SIGNED)
		return Int64GetDatum(lbt_unorder_signed(ordered));	/* of a smaller integer,
															 * too */
	if (column->kind == LBT_KEY_UNSIGNED)
		return UInt64GetDatum(ordered);
	if (column->store == LBT_STORE_FLOAT4)
		return Float4GetDatum((float4) lbt_unorder_float(ordered));
	return Float8GetDatum(lbt_unorder_float(ordered));
}

int
lbt_compare_compressed(const LbtKeyColumn *column, const LbtKeyValue *a, const char *at)
{
	struct varlena *plain = pg_detoast_datum((struct varlena *) at);
	LbtKeyValue b;
	int			cmp;

	lbt_stored_bytes(column, (const char *) plain, &b);
	cmp = lbt_compare_bytes(column, a, &b);
	pfree(plain);
	return cmp;
}

void
lbt_keyspec_order(const LbtKeySpec *spec, LbtColumnOrder *order)
{
	for (int i = 0; i < spec->ncolumns; i++)
	{
		const LbtKeyColumn *column = &spec->column[i];

		order[i] = (LbtColumnOrder)
		{
			.bytes = column->bytes,.desc = column->bytes && column->desc,
				.nulls_first = column->nulls_first
		};
	}
}

bool
lbt_keyspec_fits(const LbtKeySpec *spec, const LbtKeyCode *code)
{
	LbtColumnOrder order[LBT_CODE_COLUMNS];

	if (code->ncolumns > spec->ncolumns)
		return false;
	lbt_keyspec_order(spec, order);
	for (int i = 0; i < code->ncolumns; i++)
		if (memcmp(&order[i], &code->column[i].order, sizeof(LbtColumnOrder)) != 0)
			return false;
	return true;
}
