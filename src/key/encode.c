/*
 * encode.c - the encodings, one function each; see keyspec.h.
 *
 * Each writes at most LBT_SCRATCH_BYTES and returns where it ends.  That of
 * numeric reads the type's storage format, the same in all versions since 9.1
 * and on every disk.
 */
#include "key/keyspec.h"

#include "access/htup_details.h"
#include "catalog/pg_enum.h"
#include "key/sortkey.h"
#include "utils/inet.h"
#include "utils/syscache.h"

/* Put so many bytes of a value, the most significant first. */
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

/* The value's place among the others, a float in the catalog. */
static uint8 *
encode_enum(Datum value, uint8 *to)
{
	HeapTuple	tuple = SearchSysCache1(ENUMOID, value);

	if (!HeapTupleIsValid(tuple))
		return to;
	to = put_high_first(to, lbt_order_float(((Form_pg_enum) GETSTRUCT(tuple))->enumsortorder),
						sizeof(uint64));
	ReleaseSysCache(tuple);
	return to;
}

uint32
lbt_encode(const LbtKeyColumn *column, Datum value, uint8 *scratch)
{
	LbtKeyValue text;

	switch (column->kind)
	{
		case LBT_KEY_NUMERIC:
			return encode_numeric(value, scratch) - scratch;
		case LBT_KEY_INET:
			return encode_inet(value, scratch) - scratch;
		case LBT_KEY_ENUM:
			return encode_enum(value, scratch) - scratch;
		default:

			/*
			 * The first level says most, and costs little.  Texts that differ
			 * on the others alone tie: where a column follows, it may then
			 * bring its own order into the code.
			 */
			Assert(column->kind == LBT_KEY_TEXT);
			lbt_stored_bytes(column, DatumGetPointer(value), &text);
			return lbt_sort_key(column->collation, text.bytes, text.length, scratch,
								LBT_SCRATCH_BYTES);
	}
}
