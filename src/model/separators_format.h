/*
 * separators_format.h - separators in memory, as separators_build.c writes and separators.c reads them.
 *
 * Strings are front-coded in blocks:
 *
 *     Head | where each block begins | what all begin with | block 0: string 0, what is new in 1, 2, ... | block 1 | ...
 *
 *     "usr/bin/apt"   as a whole         length, bytes
 *     "usr/bin/ar"    9, "r"             bytes in common with the one before, length of the rest, the rest
 *     "usr/lib/a"     4, "lib/a"
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
