/*
 * keyspec.c - column types with a key code, the encodings, and arguments of
 * other types.
 *
 * A column is recognised by its operator class's comparison function, not by
 * its type: an operator class may have an order of its own.
 *
 * An encoding writes at most LBT_SCRATCH_BYTES and returns where it ends.
 * That of numeric reads the type's storage format, the same in all versions
 * since 9.1 and on every disk.
 */
#include "key/keyspec.h"

#include "access/transam.h"
#include "key/sortkey.h"
#include "nodes/nodeFuncs.h"
#include "utils/fmgroids.h"
#include "utils/inet.h"
#include "utils/lsyscache.h"

/* ---- encodings ---- */

/* Put nbytes bytes of a value, the most significant first. */
static inline uint8 *
put_high_first(uint8 *to, uint64 value, int nbytes)
{
	while (nbytes-- > 0)
		*to++ = (uint8) (value >> nbytes * BITS_PER_BYTE);
	return to;
}

/* ---- numeric ---- */

/* Storage format: header word, in the long form weight, base 10,000 digits. */
#define NUMERIC_FORM 0xC000
#define NUMERIC_FORM_NEGATIVE 0x4000
#define NUMERIC_FORM_SHORT 0x8000
#define NUMERIC_SPECIAL 0xF000
#define NUMERIC_NAN 0xC000
#define NUMERIC_PLUS_INFINITY 0xD000
#define NUMERIC_SHORT_NEGATIVE 0x2000
#define NUMERIC_SHORT_WEIGHT_NEGATIVE 0x0040
#define NUMERIC_SHORT_WEIGHT 0x003F

/* An encoding's first three bytes; of a negative number, inverted. */
#define NUMBER_MINUS_INFINITY 0
#define NUMBER_ZERO 0x800000
#define NUMBER_POSITIVE 0x818000	/* plus the weight */
#define NUMBER_PLUS_INFINITY 0xFF0000
#define NUMBER_NAN 0xFF0001
#define NUMBER_BYTES 3

/* Further digits tie. */
#define MAX_DIGITS ((LBT_SCRATCH_BYTES - NUMBER_BYTES - 1) / 2)

static uint16
word_at(const char *at)
{
	uint16		word;

	memcpy(&word, at, sizeof(word));
	return word;
}

/*
 * Weight, digits, and an end below every digit, so that no encoding begins
 * another.  A negative number's bytes are inverted: of two that begin alike,
 * the one with more digits is less.
 */
static uint8 *
encode_numeric(Datum value, uint8 *start)
{
	const char *at = VARDATA_ANY(DatumGetPointer(value));
	const char *end = at + VARSIZE_ANY_EXHDR(DatumGetPointer(value));
	uint16		header = word_at(at);
	uint16		form = header & NUMERIC_FORM;
	bool		negative = form == NUMERIC_FORM_NEGATIVE;
	uint8	   *to;
	int			weight;

	if (form == NUMERIC_NAN)
		return put_high_first(start, (header & NUMERIC_SPECIAL) == NUMERIC_NAN ? NUMBER_NAN :
							  (header & NUMERIC_SPECIAL) == NUMERIC_PLUS_INFINITY ?
							  NUMBER_PLUS_INFINITY : NUMBER_MINUS_INFINITY, NUMBER_BYTES);
	at += sizeof(uint16);
	if (form == NUMERIC_FORM_SHORT)
	{
		negative = (header & NUMERIC_SHORT_NEGATIVE) != 0;
		weight = (header & NUMERIC_SHORT_WEIGHT) - (header & NUMERIC_SHORT_WEIGHT_NEGATIVE);
	}
	else
	{
		weight = (int16) word_at(at);
		at += sizeof(uint16);
	}
	/* No zeros should be stored at the end, but they would say nothing. */
	while (end > at && word_at(end - sizeof(uint16)) == 0)
		end -= sizeof(uint16);
	if (at >= end)
		return put_high_first(start, NUMBER_ZERO, NUMBER_BYTES);
	to = put_high_first(start, (uint64) (NUMBER_POSITIVE + weight), NUMBER_BYTES);
	for (int i = 0; i < MAX_DIGITS && at < end; i++, at += sizeof(uint16))
		to = put_high_first(to, (uint64) word_at(at) + 0x100, 2);
	to = put_high_first(to, 0, 1);
	if (negative)
		for (uint8 *b = start; b < to; b++)
			*b = (uint8) ~*b;
	return to;
}

/* ---- inet, cidr ---- */

/*
 * These compare the network bits that both have, then their number, then the
 * whole address.  So the order is: network, length of its mask, other bits.
 */
static uint8 *
encode_inet(Datum value, uint8 *to)
{
	const inet_struct *inet = (const inet_struct *) VARDATA_ANY(DatumGetPointer(value));
	int			size = inet->family == PGSQL_AF_INET ? 4 : 16;
	int			bits = Min(inet->bits, size * BITS_PER_BYTE);
	uint8	   *network = to + 1;
	uint8	   *host = network + size + 1;

	to[0] = inet->family;
	network[size] = inet->bits;

	for (int i = 0; i < size; i++)
	{
		int			inside = Max(Min(bits - i * BITS_PER_BYTE, BITS_PER_BYTE), 0);
		uint8		mask = (uint8) (0xFF00 >> inside);	/* of the network */

		network[i] = inet->ipaddr[i] & mask;
		host[i] = inet->ipaddr[i] & (uint8) ~mask;
	}
	return host + size;
}

/* ---- enums ---- */

/*
 * The OIDs of an enum's first values are even, and in their order; so are
 * those of values added later, if that keeps them in order.  The others get
 * odd ones, whose order only the catalog knows: they tie with what is less
 * than all others.
 */
static uint8 *
encode_enum(Oid oid, uint8 *to)
{
	return oid % 2 == 0 ? put_high_first(to, oid, sizeof(Oid)) : to;
}

/* Encode a value of the column's type, not compressed; returns the length. */
static uint32
encode(const LbtKeyColumn *column, Datum value, uint8 *scratch)
{
	LbtKeyValue text;

	switch (column->kind)
	{
		case LBT_KEY_NUMERIC:
			return encode_numeric(value, scratch) - scratch;
		case LBT_KEY_INET:
			return encode_inet(value, scratch) - scratch;
		case LBT_KEY_ENUM:
			return encode_enum(DatumGetObjectId(value), scratch) - scratch;
		default:

			/* The first level says most, and costs little. */
			Assert(column->kind == LBT_KEY_TEXT);
			lbt_stored_bytes(column, DatumGetPointer(value), &text);
			return lbt_sort_key(column->collation, text.bytes, text.length, scratch,
								LBT_SCRATCH_BYTES);
	}
}

/* ---- columns ---- */

static const struct
{
	RegProcedure compare;
	Oid			type;
	LbtKeyKind	kind;			/* TEXT: BYTES if it collates by bytes */
}			known[] = {
	{F_BTINT2CMP, INT2OID, LBT_KEY_SIGNED},
	{F_BTINT4CMP, INT4OID, LBT_KEY_SIGNED},
	{F_BTINT8CMP, INT8OID, LBT_KEY_SIGNED},
	{F_BTOIDCMP, OIDOID, LBT_KEY_UNSIGNED},
	{F_BTBOOLCMP, BOOLOID, LBT_KEY_UNSIGNED},
	{F_BTCHARCMP, CHAROID, LBT_KEY_UNSIGNED},
	{F_BTFLOAT4CMP, FLOAT4OID, LBT_KEY_FLOAT},
	{F_BTFLOAT8CMP, FLOAT8OID, LBT_KEY_FLOAT},
	{F_DATE_CMP, DATEOID, LBT_KEY_SIGNED},
	{F_TIMESTAMP_CMP, TIMESTAMPOID, LBT_KEY_SIGNED},
	{F_TIMESTAMPTZ_CMP, TIMESTAMPTZOID, LBT_KEY_SIGNED},
	{F_TIME_CMP, TIMEOID, LBT_KEY_SIGNED},
	{F_CASH_CMP, MONEYOID, LBT_KEY_SIGNED},
	{F_PG_LSN_CMP, PG_LSNOID, LBT_KEY_UNSIGNED},
	{F_XID8CMP, XID8OID, LBT_KEY_UNSIGNED},
	{F_UUID_CMP, UUIDOID, LBT_KEY_BYTES},
	{F_MACADDR_CMP, MACADDROID, LBT_KEY_BYTES},
	{F_MACADDR8_CMP, MACADDR8OID, LBT_KEY_BYTES},
	{F_BYTEACMP, BYTEAOID, LBT_KEY_BYTES},
	{F_BTNAMECMP, NAMEOID, LBT_KEY_TEXT},
	{F_BTTEXTCMP, TEXTOID, LBT_KEY_TEXT},
	{F_BTTEXT_PATTERN_CMP, TEXTOID, LBT_KEY_BYTES},
	{F_BPCHARCMP, BPCHAROID, LBT_KEY_TEXT},
	{F_BTBPCHAR_PATTERN_CMP, BPCHAROID, LBT_KEY_BYTES},
	{F_NUMERIC_CMP, NUMERICOID, LBT_KEY_NUMERIC},
	{F_NETWORK_CMP, INETOID, LBT_KEY_INET},
	{F_ENUM_CMP, ANYENUMOID, LBT_KEY_ENUM},
};

/* Work out how a column is read and ordered; false if it has no key code. */
static bool
column_init(LbtKeyColumn *column, Relation rel, int i)
{
	Form_pg_attribute att = TupleDescAttr(RelationGetDescr(rel), i);
	RegProcedure compare = index_getprocid(rel, i + 1, BTORDER_PROC);
	bool		collated;
	bool		pattern;
	int			k;

	for (k = 0; k < lengthof(known); k++)
		if (known[k].compare == compare)
			break;
	if (k == lengthof(known) || rel->rd_opcintype[i] != known[k].type ||
		att->attlen != (known[k].type == NAMEOID ? -2 : get_typlen(known[k].type)))
		return false;
	column->kind = known[k].kind;
	column->type = known[k].type;
	column->length = att->attlen;
	column->align = att->attalign;
	column->desc = (rel->rd_indoption[i] & INDOPTION_DESC) != 0;
	column->nulls_first = (rel->rd_indoption[i] & INDOPTION_NULLS_FIRST) != 0;
	column->collation = rel->rd_indcollation[i];
	collated = column->kind == LBT_KEY_TEXT;
	pattern = compare == F_BTTEXT_PATTERN_CMP || compare == F_BTBPCHAR_PATTERN_CMP;
	if ((collated || pattern) && !OidIsValid(column->collation))
		return false;
	if (pattern && !get_collation_isdeterministic(column->collation))
		return false;
	if (collated && lbt_collation_is_c(column->collation))
		column->kind = LBT_KEY_BYTES;
	column->bytes = column->kind >= LBT_KEY_BYTES;
	column->encoded = column->kind > LBT_KEY_BYTES;
	if (column->bytes)
		fmgr_info_cxt(compare, &column->compare, TopMemoryContext);
	return true;
}

void
lbt_keyspec_init(LbtKeySpec *spec, Relation rel)
{
	memset(spec, 0, sizeof(*spec));
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(rel) && i < LBT_CODE_COLUMNS; i++)
	{
		LbtKeyColumn *column = &spec->column[i];

		if (!column_init(column, rel, i))
			break;
		spec->order[i].bytes = column->bytes;
		spec->order[i].desc = column->bytes && column->desc;
		spec->order[i].nulls_first = column->nulls_first;
		spec->encoded |= column->encoded;
		spec->unsure |= column->kind == LBT_KEY_TEXT || column->kind == LBT_KEY_ENUM;
		spec->ncolumns = i + 1;
		if (spec->nplaces == i && column->length >= -1 &&
			(!column->encoded || column->kind == LBT_KEY_TEXT))
			spec->nplaces = (uint8) (i + 1);
		spec->varies |= column->length == -1 || spec->nplaces < spec->ncolumns;
	}
}

/* Of times only widening is exact: a date column takes dates only. */
bool
lbt_keyspec_takes(const LbtKeyColumn *column, Oid argtype)
{
	if (!OidIsValid(argtype) || argtype == column->type)
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
			return argtype == DATEOID;
		case TIMESTAMPTZOID:
			return argtype == TIMESTAMPOID || argtype == DATEOID;
		case TEXTOID:
			return argtype == VARCHAROID;	/* the same bytes */
		default:
			return false;
	}
}

/*
 * An integer or time of another type than the column's, exactly.  A date
 * compared with a timestamp becomes its first microsecond, as in the server's
 * cross-type comparisons; if out of range, it lies between the last finite
 * timestamp and infinity.
 */
static int64
widen(Oid column_type, Oid type, Datum arg)
{
	int			overflow = 0;
	int64		t;

	if (type == INT2OID)
		return DatumGetInt16(arg);
	if (type == INT4OID)
		return DatumGetInt32(arg);
	if (type == INT8OID)
		return DatumGetInt64(arg);
	if (type == TIMESTAMPOID)
		t = DatumGetTimestamp(arg);
	else
	{
		DateADT		date = DatumGetDateADT(arg);

		if (DATE_NOT_FINITE(date))
			return DATE_IS_NOBEGIN(date) ? PG_INT64_MIN : PG_INT64_MAX;
		if (date >= TIMESTAMP_END_JULIAN - POSTGRES_EPOCH_JDATE)
			return PG_INT64_MAX - 1;
		t = date * USECS_PER_DAY;
	}
	if (column_type == TIMESTAMPTZOID)
		t = lbt_timestamp2timestamptz(t, &overflow);
	return overflow > 0 ? PG_INT64_MAX - 1 : overflow < 0 ? PG_INT64_MIN + 1 : t;
}

int
lbt_keyspec_argument(const LbtKeyColumn *column, Oid argtype, Datum arg, LbtKeyValue *value,
					 uint8 *scratch)
{
	int			side;

	Assert(lbt_keyspec_plain(column, arg) || column->kind == LBT_KEY_ENUM);
	value->isnull = false;
	if (column->bytes)
	{
		value->ordered = (uint64) arg;
		if (column->encoded)
		{
			value->length = encode(column, arg, scratch);
			value->bytes = scratch;
		}
		else
			lbt_stored_bytes(column, DatumGetPointer(arg), value);
		return 0;
	}
	if (!OidIsValid(argtype) || argtype == column->type)
	{
		value->ordered = lbt_ordered(column, arg);
		return 0;
	}
	if (column->kind == LBT_KEY_SIGNED)
	{
		int64		exact = widen(column->type, argtype, arg);
		int64		max = column->length == sizeof(int64) ? PG_INT64_MAX :
			column->length == sizeof(int32) ? PG_INT32_MAX : PG_INT16_MAX;
		int64		v = Max(Min(exact, max), -max - 1);

		side = (exact > v) - (exact < v);
		value->ordered = lbt_order_signed(v);
	}
	else
	{
		double		exact = argtype == FLOAT4OID ? DatumGetFloat4(arg) : DatumGetFloat8(arg);
		double		v = column->type == FLOAT4OID ? (double) (float) exact : exact;

		side = (exact > v) - (exact < v);	/* of NaN, neither */
		value->ordered = lbt_order_float(v);
	}
	if (!column->desc)
		return side;
	value->ordered = ~value->ordered;
	return -side;
}

Datum
lbt_keyspec_datum(const LbtKeyColumn *column, const LbtKeyValue *value)
{
	bool		wide = column->length == sizeof(uint64);
	uint64		ordered = column->desc ? ~value->ordered : value->ordered;

	if (column->bytes)
		return (Datum) value->ordered;
	if (column->kind == LBT_KEY_SIGNED)
		return wide ? Int64GetDatum(lbt_unorder_signed(ordered)) :
			Int32GetDatum((int32) lbt_unorder_signed(ordered));
	if (column->kind == LBT_KEY_UNSIGNED)
		return wide ? UInt64GetDatum(ordered) : UInt32GetDatum((uint32) ordered);
	if (column->type == FLOAT4OID)
		return Float4GetDatum((float4) lbt_unorder_float(ordered));
	return Float8GetDatum(lbt_unorder_float(ordered));
}

Node *
lbt_key_as_it_stands(Node *key, const LbtKeyColumn *column, Oid *type)
{
	for (;;)
	{
		const FuncExpr *cast = (const FuncExpr *) key;
		Oid			from;

		if (IsA(key, RelabelType))
		{
			key = (Node *) ((RelabelType *) key)->arg;
			continue;
		}
		if (!IsA(key, FuncExpr) || cast->funcid >= FirstNormalObjectId ||
			(cast->funcformat != COERCE_EXPLICIT_CAST &&
			 cast->funcformat != COERCE_IMPLICIT_CAST) ||
			list_length(cast->args) != 1 || cast->funcresulttype != column->type)
			return key;
		from = getBaseType(exprType(linitial(cast->args)));
		if (!lbt_keyspec_takes(column, from))
			return key;
		key = linitial(cast->args);
		*type = from;
	}
}
