/*
 * sortkey.h - sort keys of text: bytes whose order is that of a collation.
 */
#ifndef LBT_SORTKEY_H
#define LBT_SORTKEY_H

#include "postgres.h"

/*
 * The first bytes, at most room, of the first level (letters, without accents
 * and case) of a text's sort key under a collation, which is cheap for plain
 * text.  Returns how many.  In memcmp()'s order, where a key that another
 * begins with comes first, sort keys are in the order of the collation, as far
 * as its provider (libc, ICU) keeps its promises: not all versions of libc do,
 * which is why the server itself does not use theirs.  Texts that the
 * collation finds equal, and such that differ in accents and case, have the
 * same.
 */
extern Size lbt_sort_key(Oid collation, const char *text, Size length, uint8 *out, Size room);

/* Texts whose sort keys the provider made, and their bytes, since set to 0. */
typedef struct LbtProvided
{
	uint64		texts;
	uint64		bytes;
} LbtProvided;

extern LbtProvided lbt_sort_keys_provided;

/*
 * How the first level orders two texts, if their characters tell without
 * asking the provider: -1 or 1; else 0.  Only a guess.
 */
extern int	lbt_guess_order(Oid collation, const char *a, Size a_length, const char *b,
							Size b_length);

/* For tests: how sort keys are made, and orders guessed. */
typedef enum LbtSortKeys
{
	LBT_SORT_KEYS_TRUE,
	LBT_SORT_KEYS_SCRAMBLED,	/* in contradiction to their collation */
	LBT_SORT_KEYS_ALWAYS		/* as they are, and whatever they cost */
} LbtSortKeys;

extern int	lbt_debug_sort_keys;	/* LbtSortKeys */

#endif							/* LBT_SORTKEY_H */
