/*
 * encode.c - the encodings, one function each; see keyspec.h.
 *
 * Each writes as much as there is space for.  A cut encoding keeps the order,
 * as all are cut at the same length.  That of numeric reads the type's storage
 * format, the same in all versions since 9.1 and on every disk.
 */
#include "key/keyspec.h"

#include "access/htup_details.h"
#include "catalog/pg_enum.h"
#include "catalog/pg_type.h"
#include "server/sortkey.h"
#include "utils/inet.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

/* Where an encoding goes. */
typedef struct Output
{
	uint8	   *to;
	const uint8 *end;
} Output;

/* Most significant byte first, as many bytes as asked for. */
static inline void
put_bytes(Output *out, uint64 value, int nbytes)
{
	while (nbytes-- > 0 && out->to < out->end)
		*out->to++ = (uint8) (value >> nbytes * BITS_PER_BYTE);
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
static void
encode_numeric(const LbtKeyColumn *column, Datum value, Output *out)
{
	const char *at = VARDATA_ANY(DatumGetPointer(value));
	const char *end = at + VARSIZE_ANY_EXHDR(DatumGetPointer(value));
	uint16		header = word_at(at);
	uint16		form = header & NUMERIC_FORM;
	bool		negative = form == NUMERIC_FORM_NEGATIVE;
	uint8	   *start = out->to;
	int			weight;

	if (form == NUMERIC_NAN)
	{
		put_bytes(out, (header & NUMERIC_SPECIAL) == NUMERIC_NAN ? NUMBER_NAN :
				  (header & NUMERIC_SPECIAL) == NUMERIC_PLUS_INFINITY ? NUMBER_PLUS_INFINITY :
				  NUMBER_MINUS_INFINITY, 3);
		return;
	}
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
	{
		put_bytes(out, NUMBER_ZERO, 3);
		return;
	}
	put_bytes(out, (uint64) (NUMBER_POSITIVE + weight), 3);
	for (; at < end && out->to < out->end; at += sizeof(uint16))
		put_bytes(out, (uint64) word_at(at) + 0x100, 2);
	put_bytes(out, 0, 1);
	if (negative)
		for (uint8 *b = start; b < out->to; b++)
			*b = (uint8) ~*b;
}

/* ---- inet, cidr ---- */

/*
 * These compare the network bits that both have, then their number, then the
 * whole address.  So the order is: network (the address without the bits
 * behind the mask), length of the mask, bits behind it (most have none).
 */
static void
encode_inet(const LbtKeyColumn *column, Datum value, Output *out)
{
	const inet_struct *inet = (const inet_struct *) VARDATA_ANY(DatumGetPointer(value));
	int			size = inet->family == PGSQL_AF_INET ? 4 : 16;
	int			bits = Min(inet->bits, size * BITS_PER_BYTE);
	uint8	   *network = out->to + 1;
	uint8	   *host = network + size + 1;

	out->to[0] = inet->family;
	network[size] = inet->bits;

	for (int i = 0; i < size; i++)
	{
		int			inside = Max(Min(bits - i * BITS_PER_BYTE, BITS_PER_BYTE), 0);
		uint8		mask = (uint8) (0xFF00 >> inside);	/* of the network */

		network[i] = inet->ipaddr[i] & mask;
		host[i] = inet->ipaddr[i] & (uint8) ~mask;
	}
	out->to = host + size;
}

/* ---- enums ---- */

/* The value's place among the others, a float in the catalog. */
static void
encode_enum(const LbtKeyColumn *column, Datum value, Output *out)
{
	HeapTuple	tuple = SearchSysCache1(ENUMOID, value);

	if (!HeapTupleIsValid(tuple))
		return;
	put_bytes(out, lbt_order_float(((Form_pg_enum) GETSTRUCT(tuple))->enumsortorder),
			  sizeof(uint64));
	ReleaseSysCache(tuple);
}

/* ---- text in the order of a collation ---- */

/*
 * The first level says most, and costs little.  Texts that differ on the
 * others alone tie: where a column follows, it may then bring its own order
 * into the code.
 */
static void
encode_sort_key(const LbtKeyColumn *column, Datum value, Output *out)
{
	LbtKeyValue text;
	uint32		length;

	lbt_stored_bytes(column, DatumGetPointer(value), &text);
	length = lbt_sort_key(column->collation, (const char *) text.bytes, text.length,
						  out->to, out->end - out->to);
	/* Sort keys that contradict the comparison on purpose. */
	if (unlikely(lbt_debug_sort_keys == LBT_SORT_KEYS_SCRAMBLED))
		for (uint32 i = 0; i < length; i++)
			out->to[i] = (uint8) (out->to[i] * 157 + i);
	out->to += length;
}

/* ---- all of them ---- */

static void (*const encode[]) (const LbtKeyColumn *column, Datum value, Output *out) =
{
	[LBT_ENCODE_NUMERIC] = encode_numeric,
		[LBT_ENCODE_INET] = encode_inet,
		[LBT_ENCODE_ENUM] = encode_enum,
		[LBT_ENCODE_SORT_KEY] = encode_sort_key,
};

uint32
lbt_encode(const LbtKeyColumn *column, Datum value, uint8 *scratch)
{
	Output		out = {.to = scratch,.end = scratch + LBT_SCRATCH_BYTES};

	encode[column->encoding] (column, value, &out);
	return out.to - scratch;
}
