/*
 * contract.h - what the model promises, as checks against naive answers.
 *
 * Every check ends in test_fail() when the promise is broken.
 */
#ifndef LBT_CONTRACT_H
#define LBT_CONTRACT_H

#include "model.h"

/* Leaves with these codes, blocks numbered from 1; the caller frees them. */
extern LbtLeaf *make_leaves(const uint64_t *codes, uint32_t nleaves);

/* A piece of memory of exactly *bytes holding a model of one unsigned column with this fit; the
 * caller frees it. */
extern void *make_model(const LbtLeaf *leaves, uint32_t nleaves, uint32_t max_error, size_t *bytes);

/* Open what must be a model. */
extern LbtModel open_model(void *memory, size_t bytes);

/* The fit of these leaves keeps the contract of spline.h, and wastes no knot. */
extern void check_spline(const LbtLeaf *leaves, uint32_t nleaves, uint32_t max_error);

/* lbt_model_slot() finds the slot a naive search finds: for every leaf's code, its neighbours, the
 * middle between two leaves, both ends of the code space, and some random codes. */
extern void check_slots(const LbtModel *model, uint64_t seed);

/* Whatever the memory holds, every answer of an open model stays in bounds. */
extern void check_in_bounds(const LbtModel *model, uint64_t seed);

/* A position in the key space: a key, or the low or high end of all keys with a prefix. */
#define MAX_COLUMNS (LBT_CODE_COLUMNS + 2)

typedef struct KeyBound
{
	LbtKeyValue values[MAX_COLUMNS];
	int			nvalues;
	LbtMissing	missing;
} KeyBound;

typedef struct KeyColumns
{
	int			ncolumns;
	LbtColumnOrder order[MAX_COLUMNS];
} KeyColumns;

/* <0, 0, >0, column by column, as the index orders them. */
extern int	compare_bounds(const KeyColumns *columns, const KeyBound *a, const KeyBound *b);

/* The order of these codes agrees with the order of the bounds. */
extern void check_order(const KeyColumns *columns, const KeyBound *a, uint64_t a_code, const KeyBound *b,
						uint64_t b_code);

/* The order of the codes that the key code gives agrees with the order of the bounds. */
extern void check_code_order(const LbtKeyCode *code, const KeyColumns *columns, const KeyBound *a,
							 const KeyBound *b);

/* A key code and its tree, learned from separators; tree.memory is of exactly its size. */
typedef struct CodeTree
{
	const KeyColumns *columns;
	LbtKeyCode	code;
	LbtCodeTree tree;
	void	   *memory;			/* the tree's; NULL: none */
	LbtLeaf    *leaves;			/* of the separators, with their codes */
	uint32_t	nleaves;
	uint32_t	one_code_ties;	/* leaves with the code of the one before: without the tree, and with it */
	uint32_t	ties;
} CodeTree;

/*
 * Learn from separators in order, the first of which stands for minus infinity and should have no values.
 * Checks that the leaves' codes are in order, are what a key gets, and tie no more often than without the tree.
 */
extern CodeTree make_code_tree(const KeyColumns *columns, const KeyBound *separators, uint32_t nleaves,
							   uint32_t max_bytes);
extern uint64_t code_in_tree(const CodeTree *t, const KeyBound *key);
extern void free_code_tree(CodeTree *t);

/* A piece of memory of exactly *bytes holding a model of these leaves and codes; the caller frees it. */
extern void *make_tree_model(const CodeTree *t, size_t *bytes);

/* Predict keys by an open model that may hold garbage: every answer is in bounds.  Keys are of these columns. */
extern void use_tree_model(LbtModel *model, const KeyColumns *columns, const KeyBound *keys, int nkeys);

/* Put bounds in the order of the index. */
extern void sort_bounds(const KeyColumns *columns, KeyBound *bounds, uint32_t n);

#endif							/* LBT_CONTRACT_H */
