/*
 * sortkey.h - sort keys of text: bytes whose order is that of a collation.
 */
#ifndef LBT_SORTKEY_H
#define LBT_SORTKEY_H

#include "postgres.h"

/*
 * Write the first bytes, at most room, of the first level (letters, without
 * accents and case) of a text's sort key under a collation, and return how
 * many.  Cheap for plain text.  By memcmp(), the shorter first, sort keys are
 * in the order of the collation, as far as its provider (libc, ICU) keeps its
 * promises: the server does not trust libc's, as not all versions do.
 */
extern Size lbt_sort_key(Oid collation, const uint8 *text, Size length, uint8 *out, Size room);

/*
 * Can this process make sort keys under the collation without a look at the
 * catalog?  Once it has made one: whoever opens a collation before it compares
 * by it may fail where btree does not.
 */
extern bool lbt_collation_is_open(Oid collation);

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
extern int	lbt_guess_order(Oid collation, const uint8 *a, Size a_length, const uint8 *b,
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
