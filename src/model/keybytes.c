/*
 * keybytes.c - keys as byte strings; see keybytes.h.
 */
#include "keybytes.h"

/* With several columns, each begins with one of these. */
enum
{
	NULL_FIRST,
	VALUE,
	NULL_LAST,
	MISSING_HIGH
};

/* So many highest bytes are above almost all values of a single column. */
#define TOP_BYTES 9

static void
put_byte(uint8_t *room, LbtKeyBytes *key, uint8_t byte)
{
	if (key->length < LBT_MAX_KEY_BYTES)
		room[key->length++] = byte;
	else
		key->cut = true;
}

/*
 * A byte string, inverted if it descends.  Its end is two zeroes, so it sorts
 * below all bytes, and the highest byte follows a zero within.
 */
static void
put_bytes(uint8_t *room, LbtKeyBytes *key, const LbtKeyValue *value, uint8_t inverted)
{
	bool		cut = value->length >= LBT_CODE_BYTES;
	uint32_t	length = cut ? LBT_CODE_BYTES : value->length;

	for (uint32_t i = 0; i < length; i++)
	{
		put_byte(room, key, value->bytes[i] ^ inverted);
		if (value->bytes[i] == 0)
			put_byte(room, key, UINT8_MAX ^ inverted);
	}
	for (int i = 0; i < 2 && !cut; i++)
		put_byte(room, key, inverted);
	key->cut = key->cut || cut;
}

LbtKeyBytes
lbt_key_bytes(const LbtColumnOrder *order, int ncolumns, const LbtKeyValue *values, int nvalues,
			  bool high, uint8_t *room)
{
	LbtKeyBytes key = {.bytes = room};

	if (ncolumns == 1 && nvalues == 1 && order->bytes && !order->desc && !values->isnull)
	{
		key.cut = values->length >= LBT_CODE_BYTES; /* as separators are */
		key.length = key.cut ? LBT_CODE_BYTES : values->length;
		key.bytes = values->bytes;
		return key;
	}
	for (int i = 0; i < ncolumns && !key.cut; i++)
	{
		bool		missing = i >= nvalues;

		if (ncolumns > 1 && (!missing || high))
			put_byte(room, &key, missing ? MISSING_HIGH : !values[i].isnull ? VALUE :
					 order[i].nulls_first ? NULL_FIRST : NULL_LAST);
		else if (missing ? high : values[i].isnull && !order[i].nulls_first)
			for (int n = 0; n < TOP_BYTES; n++)
				put_byte(room, &key, UINT8_MAX);
		if (missing)
			break;
		if (values[i].isnull)
			continue;
		if (order[i].bytes)
			put_bytes(room, &key, &values[i], order[i].desc ? UINT8_MAX : 0);
		else
			for (int shift = 56; shift >= 0; shift -= 8)
				put_byte(room, &key, (uint8_t) (values[i].ordered >> shift));
	}
	return key;
}
