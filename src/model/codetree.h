/*
 * codetree.h - key codes for keys that one key code cannot tell apart.
 *
 * Leaves whose separators share a code are a tie group.  A tie group may have a code of its own, a subcode:
 * learned from the group's separators alone, with their own prefix and digits.  Its separators may tie again
 * and make further subcodes, to a limited depth: a tree of codes.
 *
 *   code of a key = half of its code at the root + the widths of the groups before
 *                   + in a group, its subcode there + the widths of the groups before in that, and so on
 *
 *   0        code at the root, halved                                      2^63
 *   |--------*------------------------*------------------------------------|
 *            | group's width |        | group's width |                       inserted behind the group's code
 *            0    subcode, below half of the width, and the groups in that
 *
 * Contract: as the key code's, key1 <= key2 implies code1 <= code2.  A tree is position independent.  It may
 * be read while others overwrite it: the answer is then any number, no byte outside the tree is read, and the
 * way down ends at a fixed depth.  No allocation, no globals.
 */
#ifndef LBT_CODETREE_H
#define LBT_CODETREE_H

#include "keycode.h"
#include "leafcache.h"

/* Subcodes within subcodes. */
#define LBT_TREE_DEPTH 6

/* A tree ready for use: a private copy of what bounds every access, and where the tree is. */
typedef struct LbtCodeTree
{
	const char *memory;
	uint32_t	bytes;			/* 0: no subcodes */
	int			ncolumns;		/* of the keys; not read from the tree */
	LbtColumnOrder order[LBT_CODE_COLUMNS];
} LbtCodeTree;

/* What a tree is learned from: the left separators of all leaves, as many as there are leaves. */
typedef struct LbtSeparators
{
	const LbtKeyValue *values;	/* of leaf i from i * ncolumns on */
	const uint8_t *nvalues;		/* how many of them it has */
	int			ncolumns;		/* at most LBT_CODE_COLUMNS */
	const LbtColumnOrder *order;
	const LbtKeyCode *code;		/* learned from them */
} LbtSeparators;

/* The most memory that the tree of so many leaves may take, and the scratch memory for building it. */
extern uint32_t lbt_codetree_max_bytes(uint32_t nleaves);
extern size_t lbt_codetree_scratch_bytes(uint32_t nleaves);

/*
 * Learn subcodes for the groups of leaves whose codes, which come from the key code, are equal; where max_bytes do
 * not suffice, for the larger groups alone.  Writes the tree to memory, and to min_code the codes with subcodes.
 * Returns the tree's bytes; 0 when there are no subcodes, and then the leaves are unchanged.  memory and scratch
 * are aligned to 8 bytes.
 */
extern uint32_t lbt_codetree_build(const LbtSeparators *separators, LbtLeaf *leaves, uint32_t nleaves,
								   void *memory, uint32_t max_bytes, void *scratch);

/* Use memory that holds a tree of so many bytes; false when that cannot be. */
extern bool lbt_codetree_open(const void *memory, uint32_t bytes, LbtCodeTree *tree);

/* Say how the keys' columns are ordered; until then the tree knows of none. */
extern void lbt_codetree_set_columns(LbtCodeTree *tree, const LbtColumnOrder *order, int ncolumns);

/* How many subcodes it has. */
extern uint32_t lbt_codetree_subcodes(const LbtCodeTree *tree);

/* The code of a key with this code at the root, in a tree below a key code with this alphabet. */
extern uint64_t lbt_codetree_code(const LbtCodeTree *tree, const LbtAlphabet *alphabet, uint64_t root_code,
								  const LbtKeyValue *values, int nvalues, LbtMissing missing);

#endif							/* LBT_CODETREE_H */
