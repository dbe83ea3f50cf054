/*
 * leafcache.h - the leaf cache: each leaf's smallest code and block, in order.
 *
 * The next entry's min_code is the leaf's maximum, so the array is a min/max
 * cache of the leaves.  A leaf's place in the array is its slot.  Memory may
 * be shared and change under the reader: every access stays within [0,
 * nleaves), and what is read is only ever a hint.
 */
#ifndef LBT_LEAFCACHE_H
#define LBT_LEAFCACHE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct LbtLeaf
{
	uint64_t	min_code;		/* of the separator to the left; first: 0 */
	uint32_t	block;			/* block number in the index file */
	uint32_t	recent_buffer:30;	/* where it was last seen; 0: unknown */
	uint32_t	cut:2;			/* columns of a separator to the left that was
								 * truncated to these; 0: it has more, or a
								 * heap TID, or nobody knows */
} LbtLeaf;

/* The most columns that LbtLeaf.cut may say. */
#define LBT_MAX_CUT 3

/*
 * The slot of the leaf where a forward scan begins, from its key of so many
 * columns: lbt_leaf_search()'s of the position before the key or, if the key
 * is what the next leaf's separator was truncated to, as far as codes tell,
 * the next one: the separator is before all that begins with its columns.
 */
static inline uint32_t
lbt_leaf_of_first(const LbtLeaf *leaves, uint32_t nleaves, uint32_t slot, uint64_t code,
				  int ncolumns)
{
	const LbtLeaf *next = &leaves[slot + 1];

	return slot + 1 < nleaves && next->min_code == code && next->cut != 0 &&
		next->cut <= ncolumns ? slot + 1 : slot;
}

/*
 * The slot of the last leaf with min_code < code or, with past_equal, <= code;
 * 0 if there is none.  Gallops from guess, so its cost is the logarithm of the
 * guess's error.  nleaves must be at least 1.
 */
static inline uint32_t
lbt_leaf_search(const LbtLeaf *leaves, uint32_t nleaves, uint32_t guess, uint64_t code,
				bool past_equal)
{
	uint32_t	lo;				/* answer in [lo, hi) */
	uint32_t	hi;
	uint32_t	step = 1;

	/* "<= code" is "< code + 1", except at the very top, where it is any. */
	if (past_equal)
	{
		if (code == UINT64_MAX)
			return nleaves - 1;
		code++;
	}
	lo = guess < nleaves ? guess : nleaves - 1;
	hi = lo + 1;
	if (leaves[lo].min_code < code)
		for (; hi < nleaves && leaves[hi].min_code < code; step <<= 1)
		{
			lo = hi;
			hi = nleaves - hi > step ? hi + step : nleaves;
		}
	else
		for (; lo > 0 && leaves[lo].min_code >= code; step <<= 1)
		{
			hi = lo;
			lo = lo > step ? lo - step : 0;
		}
	while (hi - lo > 1)
	{
		uint32_t	mid = lo + (hi - lo) / 2;

		if (leaves[mid].min_code < code)
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}

/*
 * Where in the leaf at this slot to expect a key of this code: 0 at its left
 * end, 1 at its right end; 0.5 if the cache cannot tell.
 */
static inline double
lbt_leaf_fraction(const LbtLeaf *leaves, uint32_t nleaves, uint32_t slot, uint64_t code)
{
	uint64_t	lo = leaves[slot].min_code;
	uint64_t	hi;

	if (slot == 0 || slot + 1 >= nleaves)
		return 0.5;				/* the key space's ends are not known */
	hi = leaves[slot + 1].min_code;
	if (hi <= lo)
		return 0.5;
	if (code <= lo)
		return 0.0;
	if (code >= hi)
		return 1.0;
	return (double) (code - lo) / (double) (hi - lo);
}

#endif							/* LBT_LEAFCACHE_H */
