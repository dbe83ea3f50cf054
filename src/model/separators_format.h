/*
 * separators_format.h - separators in memory; see separators.h.
 *
 * Strings are front-coded in blocks:
 *
 *     head | where each block begins | what all begin with | block 0 | ...
 *
 * A block has its first string whole, and what is new in the others:
 *
 *     "usr/bin/apt"   whole        length, bytes
 *     "usr/bin/ar"    9, "r"       bytes shared with the one before, length
 *     "usr/lib/a"     4, "lib/a"   of the rest, the rest
 *
 * A number is a byte, or two if the first one's highest bit is set.
 */
#ifndef LBT_SEPARATORS_FORMAT_H
#define LBT_SEPARATORS_FORMAT_H

#include <stdint.h>

typedef struct LbtSeparatorsHead
{
	uint32_t	shift;			/* a block has so many strings: 1 << shift */
	uint32_t	nblocks;
	uint32_t	prefix;			/* bytes that all but the first leaf's begin
								 * with; not in the blocks */
} LbtSeparatorsHead;

#define LBT_SEPARATORS_MAX_SHIFT 6

#endif							/* LBT_SEPARATORS_FORMAT_H */
