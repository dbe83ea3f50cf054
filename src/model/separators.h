/*
 * separators.h - the leaves' separators, for keys whose code is that of one.
 *
 * A key code of 64 bits cannot tell all keys apart: of byte strings it takes in some ten bytes behind what all have in
 * common.  Keys that share a code with a separator may lie on either side of it, and leaves whose separators share one are
 * a tie run.  There the separators themselves decide, kept as byte strings in the order of keys:
 *
 *     leaf cache    ... | 17 | 23 | 23 | 23 | 31 | ...          a key of code 23 belongs to one of four leaves
 *     separators    ... "lib/a"  "lib/bc"  "lib/bd"  "man" ...  its bytes tell which
 *
 * Where strings are too long for the memory allowed, they are cut, some bytes behind those that tell them from their
 * neighbours, or where that does not suffice, before.
 *
 * Contract: with codes in order and no string cut, the answer is the leaf that the key belongs to.  A key that agrees with
 * a string that was cut is taken to be left of it.  The memory may be overwritten while it is read: then the answer is any
 * slot, and no byte outside is read.  No allocation, no globals.
 */
#ifndef LBT_SEPARATORS_H
#define LBT_SEPARATORS_H

#include "keycode.h"
#include "leafcache.h"

/* What they are made from: the left separators of all leaves; the first leaf's is not looked at. */
typedef struct LbtSeparatorKeys
{
	const LbtKeyValue *values;	/* of leaf i from i * ncolumns on */
	const uint8_t *nvalues;		/* how many of them it has */
	int			ncolumns;		/* at most LBT_CODE_COLUMNS */
	const LbtColumnOrder *order;
} LbtSeparatorKeys;

/* A tie run that was asked about of late: the leaves from first to end - 1 have this code as their smallest. */
typedef struct LbtTieRun
{
	uint64_t	code;
	uint32_t	first;
	uint32_t	end;			/* 0: none is remembered here */
} LbtTieRun;

/* Room for so many: keys with parts in common ("https://host/") have few long runs, and most keys are in these. */
#define LBT_TIE_RUNS_BITS 5
#define LBT_TIE_RUNS (1 << LBT_TIE_RUNS_BITS)

/* Separators ready for use: a private copy of what bounds every access, and where they are. */
typedef struct LbtSeparators
{
	const char *memory;
	uint32_t	bytes;			/* 0: none are kept */
	int			ncolumns;		/* of the keys; not read from memory */
	LbtColumnOrder order[LBT_CODE_COLUMNS];
	LbtTieRun  *runs;			/* private memory, LBT_TIE_RUNS of them; NULL:
								 * none are remembered */
} LbtSeparators;

/* The most memory that those of so many leaves may take. */
extern uint32_t lbt_separators_max_bytes(uint32_t nleaves);

/* Are there so many separators with whose codes keys of so many columns may tie that it is worth keeping them? */
extern bool lbt_separators_needed(const LbtKeyCode *code, int ncolumns, const LbtLeaf *leaves, uint32_t nleaves);

/*
 * Write the separators of so many leaves to memory, which is aligned to 4 bytes, as is the scratch memory.  Returns the
 * bytes used; 0 where max_bytes do not suffice for some of each.
 */
extern size_t lbt_separators_scratch_bytes(uint32_t nleaves);
extern uint32_t lbt_separators_build(const LbtSeparatorKeys *keys, uint32_t nleaves, void *memory, uint32_t max_bytes,
									 void *scratch);

/* Use memory, aligned to 4 bytes, that holds so many bytes of separators; false when that cannot be. */
extern bool lbt_separators_open(const void *memory, uint32_t bytes, LbtSeparators *separators);

/*
 * Say how the keys' columns are ordered; until then all keys are equal.  runs is room to remember tie runs in, which is
 * cleared, or NULL.
 */
extern void lbt_separators_set_columns(LbtSeparators *separators, const LbtColumnOrder *order, int ncolumns,
									   LbtTieRun *runs);

/* How many leaves have neither another code than the one before nor, as far as it is kept, another separator? */
extern uint32_t lbt_separators_ties(const LbtSeparators *separators, const LbtLeaf *leaves, uint32_t nleaves);

/* A key whose leaf is looked for. */
typedef struct LbtTiedKey
{
	const LbtKeyValue *values;
	int			nvalues;
	bool		past;			/* as for lbt_leaf_search(); else before it */
	uint64_t	code;			/* the key's */
	uint32_t	slot;			/* what lbt_leaf_search() found; becomes where
								 * the key belongs */
	double		fraction;		/* becomes where in that leaf it is to be
								 * expected, from 0 to 1, if that can be told */
} LbtTiedKey;

/* So many keys at most are looked for together: about as many as a processor can wait for. */
#define LBT_SEPARATORS_GROUP 16

/* Find the leaves that keys, at least one, belong to. */
extern void lbt_separators_find(const LbtSeparators *separators, const LbtLeaf *leaves, uint32_t nleaves,
								LbtTiedKey *keys, int nkeys);

#endif							/* LBT_SEPARATORS_H */
