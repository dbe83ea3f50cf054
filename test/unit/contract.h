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

/* The order of the codes agrees with the order of the bounds. */
extern void check_code_order(const LbtKeyCode *code, const KeyColumns *columns, const KeyBound *a,
							 const KeyBound *b);

#endif							/* LBT_CONTRACT_H */
