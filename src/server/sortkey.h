/*
 * sortkey.h - sort keys of text: bytes whose order is that of a collation.
 */
#ifndef LBT_SORTKEY_H
#define LBT_SORTKEY_H

#include "postgres.h"

/*
 * The first bytes, at most room, of a text's sort key under a collation: of all its levels, or the first (letters, without
 * accents and case), which is much cheaper for plain text.  Returns how many.  In memcmp()'s order, where a key that
 * another begins with comes first, sort keys are in the order of the collation, as far as its provider (libc, ICU) keeps
 * its promises: not all versions of libc do, which is why the server itself does not use theirs.  Texts that the
 * collation finds equal have equal sort keys; on the first level, also such that differ in accents and case.
 */
extern Size lbt_sort_key(Oid collation, bool all, const char *text, Size length, uint8 *out, Size room);

/*
 * How two texts are ordered by the first level, if that can be told from their characters without asking the provider: -1,
 * 1; or 0.  No more than a guess.
 */
extern int	lbt_guess_order(Oid collation, const char *a, Size a_length, const char *b, Size b_length);

/* For tests: how sort keys are made, and orders guessed. */
typedef enum LbtSortKeys
{
	LBT_SORT_KEYS_TRUE,
	LBT_SORT_KEYS_SCRAMBLED		/* in contradiction to their collation */
} LbtSortKeys;

extern int	lbt_debug_sort_keys;	/* LbtSortKeys */

#endif							/* LBT_SORTKEY_H */
