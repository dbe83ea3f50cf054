/*
 * sortkey.h - sort keys of text: bytes whose order is that of a collation.
 */
#ifndef LBT_SORTKEY_H
#define LBT_SORTKEY_H

#include "postgres.h"

/*
 * The first bytes, at most room, of a text's sort key under a collation; returns how many.  In memcmp()'s
 * order, where a key that another begins with comes first, sort keys are in the order of the collation as far
 * as its provider (libc, ICU) keeps its promises: not all versions of libc do, which is why the server itself
 * does not use theirs.  Texts that the collation finds equal have equal sort keys.
 */
extern Size lbt_sort_key(Oid collation, const char *text, Size length, uint8 *out, Size room);

/* For tests: how sort keys are made. */
typedef enum LbtSortKeys
{
	LBT_SORT_KEYS_TRUE,
	LBT_SORT_KEYS_SCRAMBLED		/* in contradiction to their collation */
} LbtSortKeys;

extern int	lbt_debug_sort_keys;	/* LbtSortKeys */

#endif							/* LBT_SORTKEY_H */
