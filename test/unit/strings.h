/*
 * strings.h - byte strings for tests: few enough to meet, and close to each other.
 */
#ifndef LBT_STRINGS_H
#define LBT_STRINGS_H

#include "keycode.h"
#include "test.h"

/* The longest string made. */
#define STRING_ROOM (LBT_CODE_BYTES + 40)

typedef struct StringKind
{
	const char *prefix;			/* most strings begin with this */
	uint32_t	repeat;			/* ... as often */
	const char *alphabet;		/* the bytes of most strings, nbytes of them */
	uint32_t	nbytes;
	uint32_t	shortest;		/* behind the prefix; most strings */
	uint32_t	longest;
} StringKind;

extern const StringKind string_kinds[];
extern const uint32_t nstring_kinds;

/* A string of the kind, as training would have it; written to room, STRING_ROOM bytes. */
extern LbtKeyValue usual_string(Rng *rng, const StringKind *kind, uint8_t *room);

/* The same or, often, one that is not: another's prefix or extension or neighbour, out of the alphabet,
 * empty, longer than a key code looks. */
extern LbtKeyValue any_string(Rng *rng, const StringKind *kind, const LbtKeyValue *other, uint8_t *room);

#endif							/* LBT_STRINGS_H */
