/*
 * separators.h - the leaves' separators, as byte strings in key order, for
 * keys that share a code with one (src/README, "Separators").
 *
 *     leaf cache   ... | 17 | 23 | 23 | 23 | 31 | ...   a key of code 23 is
 *     separators   ... "lib/a" "lib/bc" "lib/bd" ...    in one of four leaves:
 *                                                       its bytes tell which
 *
 * Contract: with codes in order and no string cut, the answer is the leaf that
 * the key belongs to.  A key that agrees with a cut string counts as left of
 * it.  The memory may be overwritten while it is read: then the answer is any
 * slot, and no byte outside is read.  No allocation, no globals.
 *
 * In memory, strings are front-coded in blocks:
 *
 *     head | where each block begins | what all begin with | block 0 | ...
 *
 * A block has its first string whole, and what is new in the others:
 *
 *     "usr/bin/apt"   whole        length, bytes
 *     "usr/bin/ar"    9, "r"       bytes shared with the one before, length
 *     "usr/lib/a"     4, "lib/a"   of the rest, the rest
 *
 * A number is a byte, or two if the first one's highest bit is set; a length
 * is doubled, and odd if the string is cut.
 */
#ifndef LBT_SEPARATORS_H
#define LBT_SEPARATORS_H

#include "keycode.h"
#include "leafcache.h"

typedef struct LbtSeparatorsHead
{
	uint32_t	shift;			/* a block has 1 << shift strings */
	uint32_t	prefix_length;	/* bytes that all but the first leaf's begin
								 * with; not in the blocks */
} LbtSeparatorsHead;

#define LBT_SEPARATORS_MAX_SHIFT 6

/* Separators ready for use: where they are, and a private copy of bounds. */
typedef struct LbtSeparators
{
	const uint8_t *memory;
	uint32_t	bytes;			/* 0: none are kept */
	LbtSeparatorsHead head;
	const uint8_t *prefix;

	/* The user sets these before the first search. */
	int			ncolumns;		/* of the keys */
	const LbtColumnOrder *order;
} LbtSeparators;

/* The left separators of all leaves; the first leaf's is not looked at. */
typedef struct LbtSeparatorKeys
{
	const LbtKeyValue *values;	/* of leaf i from i * ncolumns on */
	const uint8_t *nvalues;		/* how many of them it has */
	int			ncolumns;		/* at most LBT_CODE_COLUMNS */
	const LbtColumnOrder *order;
} LbtSeparatorKeys;

/* The most bytes that the separators of nleaves leaves may take. */
extern uint32_t lbt_separators_max_bytes(uint32_t nleaves);

/* Are they worth keeping: may keys of ncolumns tie with many of them? */
extern bool lbt_separators_needed(const LbtKeyCode *code, int ncolumns, const LbtLeaf *leaves,
								  uint32_t nleaves);

/*
 * Write the separators of nleaves, at least one, to memory, aligned to 4
 * bytes.  Returns the bytes used; 0 if max_bytes do not suffice for some of
 * each.
 */
extern uint32_t lbt_separators_build(const LbtSeparatorKeys *keys, uint32_t nleaves, void *memory,
									 uint32_t max_bytes);

/* Use separators of nleaves leaves, aligned to 4 bytes; false if garbage. */
extern bool lbt_separators_open(const void *memory, uint32_t bytes, uint32_t nleaves,
								LbtSeparators *separators);

/* A key whose leaf is searched for. */
typedef struct LbtTiedKey
{
	const LbtKeyValue *values;
	int			nvalues;
	bool		past;			/* as for lbt_leaf_search(); else before it */
	uint64_t	code;			/* the key's */
	uint32_t	slot;			/* lbt_leaf_search()'s; becomes the key's */
	double		fraction;		/* becomes where in it, 0 to 1, if known */
} LbtTiedKey;

/* Search for at most this many at once: misses that a CPU can overlap. */
#define LBT_SEPARATORS_GROUP 16

/* Find the leaves that keys belong to; only where there are separators. */
extern void lbt_separators_find(const LbtSeparators *separators, const LbtLeaf *leaves,
								uint32_t nleaves, LbtTiedKey *keys, int nkeys);

#endif							/* LBT_SEPARATORS_H */
