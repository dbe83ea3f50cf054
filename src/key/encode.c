/*
 * encode.c - the encodings, one function each; see encode.h.
 *
 * Those of numeric and bit strings read the types' storage format, which is the same in all versions since
 * 9.1 and on every disk.
 */
#include "key/keyspec.h"

#include "access/htup_details.h"
#include "catalog/pg_enum.h"
#include "catalog/pg_type.h"
#include "server/sortkey.h"
#include "utils/date.h"
#include "utils/inet.h"
#include "utils/lsyscache.h"
#include "utils/rangetypes.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/typcache.h"

/* Most significant byte first, as many bytes as asked for. */
static uint8 *
put_bytes(uint8 *to, uint64 value, int nbytes)
{
	for (int i = nbytes - 1; i >= 0; i--)
	{
		to[i] = (uint8) value;
		value >>= 8;
	}
	return to + nbytes;
}

/* ---- numeric ---- */

/* The storage format: a header word, in the long form the weight, then digits of base 10,000. */
#define NUMERIC_FORM 0xC000
#define NUMERIC_FORM_POSITIVE 0x0000
#define NUMERIC_FORM_NEGATIVE 0x4000
#define NUMERIC_FORM_SHORT 0x8000
#define NUMERIC_SPECIAL 0xF000
#define NUMERIC_NAN 0xC000
#define NUMERIC_PLUS_INFINITY 0xD000
#define NUMERIC_SHORT_NEGATIVE 0x2000
#define NUMERIC_SHORT_WEIGHT_NEGATIVE 0x0040
#define NUMERIC_SHORT_WEIGHT 0x003F

/* First byte of the encoding. */
enum
{
	CLASS_MINUS_INFINITY,
	CLASS_NEGATIVE,
	CLASS_ZERO,
	CLASS_POSITIVE,
	CLASS_PLUS_INFINITY,
	CLASS_NAN
};

#define WEIGHT_BIAS 0x8000

static uint16
word_at(const char *at)
{
	uint16		word;

	memcpy(&word, at, sizeof(word));
	return word;
}

/* The sign and weight of a number that is neither special nor 0, as stored; returns where its digits are. */
static const char *
numeric_header(const char *at, bool *negative, int *weight)
{
	uint16		header = word_at(at);

	if ((header & NUMERIC_FORM) == NUMERIC_FORM_SHORT)
	{
		*negative = (header & NUMERIC_SHORT_NEGATIVE) != 0;
		*weight = header & NUMERIC_SHORT_WEIGHT;
		if (header & NUMERIC_SHORT_WEIGHT_NEGATIVE)
			*weight -= NUMERIC_SHORT_WEIGHT_NEGATIVE;
		return at + sizeof(uint16);
	}
	*negative = (header & NUMERIC_FORM) == NUMERIC_FORM_NEGATIVE;
	*weight = (int16) word_at(at + sizeof(uint16));
	return at + 2 * sizeof(uint16);
}

/*
 * Class, weight, digits, and an end that is below every digit, so that no number's encoding is the beginning of
 * another's.  A negative number's bytes are inverted: of two that begin alike, the one with more digits is less.
 * What there is no room for is cut off, and then all of the room is used: such a string has no end.
 */
static uint32
encode_numeric(Datum value, uint8 *room)
{
	const char *at = VARDATA_ANY(DatumGetPointer(value));
	const char *end = at + VARSIZE_ANY_EXHDR(DatumGetPointer(value));
	uint16		header = word_at(at);
	uint8	   *to = room;
	bool		negative;
	int			weight;

	if ((header & NUMERIC_FORM) == NUMERIC_NAN)
	{
		*room = (header & NUMERIC_SPECIAL) == NUMERIC_NAN ? CLASS_NAN :
			(header & NUMERIC_SPECIAL) == NUMERIC_PLUS_INFINITY ? CLASS_PLUS_INFINITY : CLASS_MINUS_INFINITY;
		return 1;
	}
	at = numeric_header(at, &negative, &weight);
	while (end > at && word_at(end - sizeof(uint16)) == 0)
		end -= sizeof(uint16);	/* none are stored, but should one be, it says nothing */
	if (at >= end)
	{
		*room = CLASS_ZERO;
		return 1;
	}
	*to++ = negative ? CLASS_NEGATIVE : CLASS_POSITIVE;
	to = put_bytes(to, (uint64) (weight + WEIGHT_BIAS), 2);
	for (; at < end && to < room + LBT_KEY_ROOM; at += sizeof(uint16))
	{
		uint16		digit = word_at(at);

		*to++ = (uint8) ((digit >> 8) + 1);
		if (to < room + LBT_KEY_ROOM)
			*to++ = (uint8) digit;
	}
	if (to < room + LBT_KEY_ROOM)
		*to++ = 0;
	if (negative)
		for (uint8 *b = room + 1; b < to; b++)
			*b = (uint8) ~*b;
	return to - room;
}

/* ---- inet, cidr ---- */

/*
 * These compare the network bits that both have, then their number, then the whole address.  That is the
 * order of: network (the address without the bits behind the mask), length of the mask, and the bits behind the
 * mask, of which most addresses have none.
 */
static uint32
encode_inet(Datum value, uint8 *room)
{
	const inet_struct *inet = (const inet_struct *) VARDATA_ANY(DatumGetPointer(value));
	int			size = inet->family == PGSQL_AF_INET ? 4 : 16;
	int			bits = Min(inet->bits, size * BITS_PER_BYTE);
	uint8	   *network = room + 1;
	uint8	   *host = network + size + 1;

	room[0] = inet->family;
	network[size] = inet->bits;
	for (int i = 0; i < size; i++)
	{
		int			inside = Max(Min(bits - i * BITS_PER_BYTE, BITS_PER_BYTE), 0);	/* the network */
		uint8		mask = (uint8) (0xFF00 >> inside);

		network[i] = inet->ipaddr[i] & mask;
		host[i] = inet->ipaddr[i] & (uint8) ~mask;
	}
	return host + size - room;
}

/* ---- times ---- */

/* Compared as microseconds, a month being 30 days; centuries beyond what 64 bits hold are all one. */
static uint32
encode_interval(Datum value, uint8 *room)
{
	const Interval *interval = DatumGetIntervalP(value);
	__int128	span = (__int128) interval->time +
		((__int128) interval->month * DAYS_PER_MONTH + interval->day) * USECS_PER_DAY;

	span = Max(Min(span, PG_INT64_MAX), PG_INT64_MIN);
	put_bytes(room, lbt_order_signed((int64) span), sizeof(uint64));
	return sizeof(uint64);
}

/* The instant, then the zone. */
static uint32
encode_timetz(Datum value, uint8 *room)
{
	const TimeTzADT *time = DatumGetTimeTzADTP(value);
	uint8	   *to = put_bytes(room, lbt_order_signed(time->time + time->zone * USECS_PER_SEC), sizeof(uint64));

	put_bytes(to, (uint32) time->zone ^ (UINT32_C(1) << 31), sizeof(uint32));
	return sizeof(uint64) + sizeof(uint32);
}

/* ---- enum ---- */

/* The value's place among the others, a float in the catalog. */
static uint32
encode_enum(Datum value, uint8 *room)
{
	HeapTuple	tuple = SearchSysCache1(ENUMOID, value);

	if (!HeapTupleIsValid(tuple))
		return 0;
	put_bytes(room, lbt_order_float(((Form_pg_enum) GETSTRUCT(tuple))->enumsortorder), sizeof(uint64));
	ReleaseSysCache(tuple);
	return sizeof(uint64);
}

/* ---- ranges ---- */

/* First byte of the encoding: empty ranges come first. */
#define FIRST_EMPTY 0
#define FIRST_BOUNDS 1

/* A bound's kind: of lower bounds those at minus infinity come first, of upper bounds those at infinity last. */
#define LOWER_INFINITE 0
#define BOUND_FINITE 1
#define UPPER_INFINITE 2

static uint32
encode_element(Oid type, Datum value, uint8 *room, uint32 size)
{
	uint8		whole[LBT_KEY_ROOM];
	uint32		length;

	switch (type)
	{
		case INT4OID:
		case DATEOID:
			put_bytes(room, lbt_order_signed(DatumGetInt32(value)), sizeof(uint64));
			return sizeof(uint64);
		case INT8OID:
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
			put_bytes(room, lbt_order_signed(DatumGetInt64(value)), sizeof(uint64));
			return sizeof(uint64);
		default:
			Assert(type == NUMERICOID);
			length = Min(encode_numeric(value, whole), size);
			memcpy(room, whole, length);
			return length;
	}
}

/* Kind, value, and whether the bound is the later one of two at this value: "(x" after "[x", "x]" after "x)". */
static uint32
encode_bound(Oid type, const RangeBound *bound, uint8 *room, uint32 size)
{
	uint32		length = 1;

	if (size < 1)
		return 0;
	room[0] = bound->infinite ? (bound->lower ? LOWER_INFINITE : UPPER_INFINITE) : BOUND_FINITE;
	if (bound->infinite)
		return length;
	length += encode_element(type, bound->val, room + length, size - length);
	if (length < size)
		room[length++] = bound->lower ? !bound->inclusive : bound->inclusive;
	return length;
}

static uint32
encode_range(Oid rangetype, Datum value, uint8 *room)
{
	RangeType  *range = DatumGetRangeTypeP(value);
	TypeCacheEntry *typcache = lookup_type_cache(rangetype, TYPECACHE_RANGE_INFO);
	Oid			type = typcache->rngelemtype->type_id;
	RangeBound	lower;
	RangeBound	upper;
	bool		empty;
	uint32		length = 1;

	range_deserialize(typcache, range, &lower, &upper, &empty);
	room[0] = empty ? FIRST_EMPTY : FIRST_BOUNDS;
	if (!empty)
	{
		length += encode_bound(type, &lower, room + length, LBT_KEY_ROOM - length);
		length += encode_bound(type, &upper, room + length, LBT_KEY_ROOM - length);
	}
	if ((Pointer) range != DatumGetPointer(value))
		pfree(range);
	return length;
}

/* The built-in range types of elements that encode_element() knows. */
bool
lbt_range_encodable(Oid type)
{
	switch (type)
	{
		case INT4RANGEOID:
		case INT8RANGEOID:
		case NUMRANGEOID:
		case DATERANGEOID:
		case TSRANGEOID:
		case TSTZRANGEOID:
			return true;
		default:
			return false;
	}
}

/* ---- bit strings ---- */

/*
 * Bytes, each behind a 1, then a 0 and the number of bits: compared are the bytes that both have, then the
 * numbers of bits.
 */
static uint32
encode_bits(Datum value, uint8 *room)
{
	const char *at = VARDATA_ANY(DatumGetPointer(value));
	const char *end = at + VARSIZE_ANY_EXHDR(DatumGetPointer(value));
	const uint8 *limit = room + LBT_KEY_ROOM;
	uint8	   *to = room;
	int32		nbits;

	memcpy(&nbits, at, sizeof(nbits));
	for (at += sizeof(nbits); at < end && to < limit; at++)
	{
		*to++ = 1;
		if (to < limit)
			*to++ = (uint8) *at;
	}
	if (to + 1 + sizeof(nbits) <= limit && at == end)
	{
		*to++ = 0;
		to = put_bytes(to, (uint32) nbits, sizeof(nbits));
	}
	else
	{
		/* No room for an end: such a string has none. */
		memset(to, 1, limit - to);
		to = unconstify(uint8 *, limit);
	}
	return to - room;
}

/* ---- text in the order of a collation ---- */

/* Sort keys that contradict the comparison on purpose. */
static void
scramble(uint8 *key, uint32 length)
{
	for (uint32 i = 0; i < length; i++)
		key[i] = (uint8) (key[i] * 157 + i);
}

static uint32
encode_sort_key(const LbtKeyColumn *column, Datum value, uint8 *room)
{
	LbtKeyValue text;
	uint32		length;

	lbt_stored_bytes(column, DatumGetPointer(value), &text);
	length = lbt_sort_key(column->collation, (const char *) text.bytes, text.length, room, LBT_KEY_ROOM);
	if (unlikely(lbt_debug_sort_keys == LBT_SORT_KEYS_SCRAMBLED))
		scramble(room, length);
	return length;
}

/* ---- all of them ---- */

uint32
lbt_encode(const LbtKeyColumn *column, Datum value, uint8 *room)
{
	switch (column->encoding)
	{
		case LBT_ENCODE_NUMERIC:
			return encode_numeric(value, room);
		case LBT_ENCODE_INET:
			return encode_inet(value, room);
		case LBT_ENCODE_INTERVAL:
			return encode_interval(value, room);
		case LBT_ENCODE_TIMETZ:
			return encode_timetz(value, room);
		case LBT_ENCODE_ENUM:
			return encode_enum(value, room);
		case LBT_ENCODE_RANGE:
			return encode_range(column->stored_type, value, room);
		case LBT_ENCODE_BITS:
			return encode_bits(value, room);
		case LBT_ENCODE_SORT_KEY:
			return encode_sort_key(column, value, room);
		case LBT_NOT_ENCODED:
			break;
	}
	pg_unreachable();
}
