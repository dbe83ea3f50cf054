/*
 * strings.c - byte strings for tests; see strings.h.
 */
#include "strings.h"

#include <string.h>

static const char all_bytes[256] = {0};	/* see random_byte() */

const StringKind string_kinds[] = {
	{"user", 1, "0123456789", 10, 16, 20},
	{"", 0, "0123456789", 10, 20, 20},
	{"", 0, all_bytes, 256, 16, 16},
	{"", 0, "ab", 2, 0, 5},
	{"", 0, "\0\1", 2, 0, 6},
	{"\377", 1, "\376\377", 2, 0, 6},
	{"", 0, "\0\377", 2, 1, 12},
	{"/usr/share/", 11, "abcdefgh/.", 10, 1, 30},
	{"", 0, "m", 1, 3, 3},
	{"x\0", 20, "\0a", 2, 0, 4},
	{"", 0, "k", 1, LBT_CODE_BYTES - 2, LBT_CODE_BYTES + 2},
	{"", 0, "0123456789abcdef", 16, 0, 40},
};
const uint32_t nstring_kinds = sizeof(string_kinds) / sizeof(string_kinds[0]);

static uint8_t
random_byte(Rng *rng, const StringKind *kind)
{
	if (kind->alphabet == all_bytes)
		return (uint8_t) rng_next(rng);
	return (uint8_t) kind->alphabet[rng_below(rng, kind->nbytes)];
}

static LbtKeyValue
string_value(const uint8_t *bytes, uint32_t length)
{
	return (LbtKeyValue) {.bytes = bytes,.length = length};
}

LbtKeyValue
usual_string(Rng *rng, const StringKind *kind, uint8_t *room)
{
	/* A literal's terminator is not part of the prefix, but a zero within is. */
	uint32_t	unit = kind->prefix[0] == 'x' ? 2 : (uint32_t) strlen(kind->prefix);
	uint32_t	length = 0;
	uint32_t	rest = kind->shortest + (uint32_t) rng_below(rng, kind->longest - kind->shortest + 1);

	for (uint32_t i = 0; i < kind->repeat; i++, length += unit)
		memcpy(room + length, kind->prefix, unit);
	while (rest-- > 0)
		room[length++] = random_byte(rng, kind);
	return string_value(room, length);
}

LbtKeyValue
any_string(Rng *rng, const StringKind *kind, const LbtKeyValue *other, uint8_t *room)
{
	LbtKeyValue made;
	uint32_t	at;

	if (rng_below(rng, 3) == 0)
		return usual_string(rng, kind, room);
	if (other != NULL && !other->isnull && rng_below(rng, 2))
	{
		memmove(room, other->bytes, other->length);
		made = string_value(room, other->length);
	}
	else
		made = usual_string(rng, kind, room);
	at = made.length == 0 ? 0 : (uint32_t) rng_below(rng, made.length);
	switch (rng_below(rng, 8))
	{
		case 0:
			made.length = at;
			break;
		case 1:
			room[at] = (uint8_t) rng_next(rng);
			break;
		case 2:
			room[at]++;
			break;
		case 3:
			room[at] = rng_below(rng, 2) ? 0 : UINT8_MAX;
			break;
		case 4:					/* one more byte, often the lowest or the highest */
			if (made.length < STRING_ROOM)
				room[made.length++] = rng_below(rng, 2) ? (uint8_t) rng_below(rng, 2) : (uint8_t) rng_next(rng);
			return made;
		case 5:
			made.length = 0;
			break;
		case 6:
			for (; made.length < STRING_ROOM && rng_below(rng, 8) != 0; made.length++)
				room[made.length] = random_byte(rng, kind);
			return made;
		default:
			break;
	}
	if (made.length == 0)
		return made;
	if (rng_below(rng, 4) == 0)
		room[made.length - 1] ^= (uint8_t) (1 << rng_below(rng, 8));
	return made;
}
