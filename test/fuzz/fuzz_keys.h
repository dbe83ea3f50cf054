/*
 * fuzz_keys.h - columns and keys from a fuzzer's bytes.
 */
#ifndef LBT_FUZZ_KEYS_H
#define LBT_FUZZ_KEYS_H

#include "contract.h"
#include "fuzz.h"

/* Where strings are, one after the other; what has no room is empty. */
typedef struct Strings
{
	uint8_t		bytes[65536];
	size_t		used;
} Strings;

extern KeyColumns read_columns(Input *input);

/* A key, or the end of those with a prefix; often like the one seen before it, which it becomes. */
extern KeyBound read_bound(Input *input, const KeyColumns *columns, KeyBound *seen, Strings *strings);

#endif							/* LBT_FUZZ_KEYS_H */
