/*
 * encode.c - the encodings, one function each; see keyspec.h.
 *
 * Each writes at most LBT_SCRATCH_BYTES and returns where it ends.  That of
 * numeric reads the type's storage format, the same in all versions since 9.1
 * and on every disk.
 */
#include "key/keyspec.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/pg_enum.h"
#include "key/sortkey.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/fmgroids.h"
#include "utils/inet.h"
#include "utils/inval.h"
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

/*
 * The OIDs of an enum's first values are even, and in their order; so are
 * those of values added later, if that keeps them in order.  The others get
 * odd ones, and only of these the catalog has to be asked:
 *
 *     even value    its OID
 *     odd value     OID of the even one before it (or 0) | its sort order
 */
typedef struct OddValue
{
	Oid			oid;
	Oid			even;
	float4		place;
} OddValue;

/* An enum of which an odd value has been seen. */
typedef struct Enumeration
{
	Oid			type;
	uint32		read_at;		/* enums_changed when it was read */
	int			nodd;
	OddValue   *odd;
	struct Enumeration *next;
} Enumeration;

static Enumeration *enumerations = NULL;
static uint32 enums_changed = 0;	/* 0: never asked for */

bool		lbt_encode_lacked = false;

static void
enums_change(Datum arg, int cache, uint32 hash)
{
	enums_changed++;
}

static Enumeration *
get_enumeration(Oid type)
{
	Enumeration *e = enumerations;

	while (e != NULL && e->type != type)
		e = e->next;
	if (e != NULL)
		return e;
	if (enums_changed == 0)
	{
		CacheRegisterSyscacheCallback(ENUMOID, enums_change, (Datum) 0);
		enums_changed = 1;
	}
	e = MemoryContextAllocZero(TopMemoryContext, sizeof(Enumeration));
	e->type = type;
	e->next = enumerations;
	enumerations = e;
	return e;
}

static void
add_value(Enumeration *e, Form_pg_enum value, Oid *even)
{
	if (value->oid % 2 == 0)
	{
		*even = value->oid;
		return;
	}
	if (e->nodd % 16 == 0)
		e->odd = e->odd ? repalloc(e->odd, (e->nodd + 16) * sizeof(OddValue)) :
			MemoryContextAlloc(TopMemoryContext, 16 * sizeof(OddValue));
	e->odd[e->nodd++] = (OddValue) {value->oid, *even, value->enumsortorder};
}

/*
 * Read the odd values, in their order.  False if that is not allowed now, or
 * would have to wait for another session: nbtree asks the catalog only if it
 * meets such a value.
 */
static bool
read_values(Enumeration *e)
{
	uint32		changed = enums_changed;
	Oid			even = InvalidOid;
	Relation	rel;
	Relation	index;
	SysScanDesc scan;
	ScanKeyData key;
	HeapTuple	row;

	if (InterruptHoldoffCount > 0 || !ConditionalLockRelationOid(EnumRelationId, AccessShareLock))
		return false;
	if (!ConditionalLockRelationOid(EnumTypIdSortOrderIndexId, AccessShareLock))
	{
		UnlockRelationOid(EnumRelationId, AccessShareLock);
		return false;
	}
	e->nodd = 0;
	e->read_at = 0;
	rel = table_open(EnumRelationId, NoLock);
	index = index_open(EnumTypIdSortOrderIndexId, NoLock);
	ScanKeyInit(&key, Anum_pg_enum_enumtypid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(e->type));
	scan = systable_beginscan_ordered(rel, index, NULL, 1, &key);
	while ((row = systable_getnext_ordered(scan, ForwardScanDirection)) != NULL)
		add_value(e, (Form_pg_enum) GETSTRUCT(row), &even);
	systable_endscan_ordered(scan);
	index_close(index, AccessShareLock);
	table_close(rel, AccessShareLock);
	e->read_at = changed;
	return true;
}

static const OddValue *
find_value(const Enumeration *e, Oid oid)
{
	for (int i = 0; i < e->nodd; i++)
		if (e->odd[i].oid == oid)
			return &e->odd[i];
	return NULL;
}

/* A value that is not known ties with what is less than all others. */
static uint8 *
encode_enum(const LbtKeyColumn *column, Oid oid, uint8 *to)
{
	Enumeration *e;
	const OddValue *value;

	if (oid % 2 == 0)
		return put_high_first(to, oid, sizeof(Oid));
	e = get_enumeration(column->enumeration);
	value = find_value(e, oid);
	if (e->read_at != enums_changed)
	{
		if (read_values(e))
			value = find_value(e, oid);
		else if (value == NULL)
			lbt_encode_lacked = true;
	}
	if (value == NULL)
		return to;
	to = put_high_first(to, value->even, sizeof(Oid));
	return put_high_first(to, lbt_order_float(value->place), sizeof(uint64));
}

bool
lbt_encode_learn(const LbtKeySpec *spec)
{
	for (int i = 0; i < spec->ncolumns; i++)
		if (spec->column[i].kind == LBT_KEY_ENUM &&
			!read_values(get_enumeration(spec->column[i].enumeration)))
			return false;
	return true;
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
			return encode_enum(column, DatumGetObjectId(value), scratch) - scratch;
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
