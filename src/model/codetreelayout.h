/*
 * codetreelayout.h - how a tree of codes lies in memory.
 *
 * Private to the model.  In this order: the root's table of groups (its place is at offset 0), the segments,
 * and their tables of groups.  Offsets count from the start of the tree, and are multiples of 8.
 */
#ifndef LBT_CODETREELAYOUT_H
#define LBT_CODETREELAYOUT_H

#include "codetree.h"

/* Where the groups of a code are: in the order of their codes, behind them one that stands for the end. */
typedef struct LbtGroupTable
{
	uint32_t	offset;
	uint32_t	ngroups;
} LbtGroupTable;

typedef struct LbtTreeHead
{
	LbtGroupTable groups;		/* the root's */
	uint32_t	nsegments;
	uint32_t	unused;			/* zero */
} LbtTreeHead;

typedef struct LbtGroup
{
	uint64_t	code;			/* in the code that this is a group of */
	uint64_t	below;			/* widths of the groups before */
	uint32_t	segment;		/* offset */
	uint32_t	unused;			/* zero */
} LbtGroup;

/* Behind it: digits, columns, prefixes. */
typedef struct LbtSegment
{
	LbtGroupTable groups;		/* the segment's own */
	uint16_t	ncolumns;
	uint16_t	ndigits;
	uint32_t	prefix_bytes;
} LbtSegment;

static inline uint64_t
lbt_segment_bytes(const LbtSegment *s)
{
	uint64_t	bytes = sizeof(LbtSegment) + (uint64_t) s->ndigits * sizeof(LbtKeyDigit) +
		(uint64_t) s->ncolumns * sizeof(LbtCodeColumn) + s->prefix_bytes;

	return (bytes + 7) & ~UINT64_C(7);
}

#endif							/* LBT_CODETREELAYOUT_H */
