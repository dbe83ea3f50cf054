/*
 * codetree.h - key codes local to a segment, for keys that one key code cannot tell apart.
 *
 * Leaves whose separators share a code are a tie group.  A tie group may have a code of its own, a segment:
 * learned from the group's separators alone, with their own prefix and digits.  Its separators may tie again
 * and make further segments, to a limited depth: a tree of codes.
 *
 *   code of a key = half of its code at the root + the widths of the segments before
 *                   + in a segment, its code there + the widths of the segments in that before, and so on
 *
 * A segment's own codes take one half of its width, as the root's do of all, and its segments the other.
 *
 * Contract: as the key code's, key1 <= key2 implies code1 <= code2.  A tree is position independent.  It may
 * be read while others overwrite it: the answer is then any number, no byte outside the tree is read, and the
 * way down ends at a fixed depth.  No allocation, no globals.
 */
#ifndef LBT_CODETREE_H
#define LBT_CODETREE_H

#include <stddef.h>

#include "keycode.h"
#include "leafcache.h"

/* Segments within segments. */
#define LBT_TREE_DEPTH 6

/* A tie group of fewer leaves gets no segment. */
#define LBT_GROUP_LEAVES 2

/* A tree ready for use: a private copy of what bounds every access, and where the tree is. */
typedef struct LbtCodeTree
{
	const char *memory;
	uint32_t	bytes;			/* 0: no segments */
	int			ncolumns;		/* of the keys; how they are ordered is not read from the tree */
	LbtColumnOrder order[LBT_CODE_COLUMNS];
} LbtCodeTree;

/* What a tree is learned from: the left separators of all leaves, as many as there are leaves. */
typedef struct LbtSeparators
{
	const LbtKeyValue *values;	/* of leaf i from i * ncolumns on */
	const uint8_t *nvalues;		/* how many of them it has */
	int			ncolumns;		/* at most LBT_CODE_COLUMNS */
	const LbtColumnOrder *order;
} LbtSeparators;

/* The most memory that the tree of so many leaves may take, and the scratch memory for building it. */
extern uint32_t lbt_codetree_max_bytes(uint32_t nleaves);
extern size_t lbt_codetree_scratch_bytes(uint32_t nleaves, uint32_t max_bytes);

/*
 * Learn segments for those leaves whose codes, from the code at the root, are equal; the largest groups first,
 * until max_bytes are full.  Writes the tree to memory, and to min_code the codes with segments.  Returns the
 * tree's bytes; 0 when there are no segments, and then the leaves are unchanged.  memory and scratch are
 * aligned to 8 bytes.
 */
extern uint32_t lbt_codetree_build(const LbtSeparators *separators, LbtLeaf *leaves, uint32_t nleaves,
								   void *memory, uint32_t max_bytes, void *scratch);

/* Use memory that holds a tree of so many bytes; false when that cannot be. */
extern bool lbt_codetree_open(const void *memory, uint32_t bytes, LbtCodeTree *tree);

/* Say how the keys' columns are ordered; until then the tree knows of none. */
extern void lbt_codetree_set_columns(LbtCodeTree *tree, const LbtColumnOrder *order, int ncolumns);

/* How many segments it has. */
extern uint32_t lbt_codetree_segments(const LbtCodeTree *tree);

/* The code of a key with this code at the root. */
extern uint64_t lbt_codetree_code(const LbtCodeTree *tree, uint64_t root_code, const LbtKeyValue *values,
								  int nvalues, LbtMissing missing);

#endif							/* LBT_CODETREE_H */
