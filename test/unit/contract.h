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

/* How many leaves have the code of the one before. */
extern uint32_t count_ties(const LbtLeaf *leaves, uint32_t nleaves);

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
	bool		high;
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

/* A key code and separators, learned from bounds; the memory is of exactly their size. */
typedef struct Separated
{
	const KeyColumns *columns;
	LbtKeyCode	code;
	LbtSeparators separators;
	void	   *memory;			/* the separators'; NULL: none */
	LbtLeaf    *leaves;			/* with their codes */
	uint32_t	nleaves;
	uint32_t	code_ties;		/* leaves with the code of the one before */
	bool		needed;			/* a server would keep them */
} Separated;

/* Say how keys' columns are ordered. */
extern void set_columns(LbtSeparators *separators, const KeyColumns *columns);

/* Learn from bounds in order, the first of which stands for minus infinity and should have no values. */
extern Separated make_separated(const KeyColumns *columns, const KeyBound *bounds, uint32_t nleaves,
								uint32_t max_bytes);
extern void free_separated(Separated *s);

/*
 * The leaf of a key, or of all that begins with it, past it or not: by codes and separators; the same of many; and by
 * comparing all.
 */
extern uint32_t find_leaf(const Separated *s, const KeyBound *key, bool past);
extern void find_leaves(const Separated *s, const KeyBound *keys, const bool *past, int nkeys, uint32_t *slots);
extern uint32_t naive_leaf(const KeyColumns *columns, const KeyBound *bounds, uint32_t nleaves, const KeyBound *key,
						   bool past);

/* A piece of memory of exactly *bytes holding a model of these leaves and codes; the caller frees it. */
extern void *make_separated_model(const Separated *s, size_t *bytes);

/* Predict keys by an open model that may hold garbage: every answer is in bounds.  Keys are of these columns. */
extern void use_separated_model(LbtModel *model, const KeyColumns *columns, const KeyBound *keys, int nkeys);

/* Put bounds in the order of the index. */
extern void sort_bounds(const KeyColumns *columns, KeyBound *bounds, uint32_t n);

#endif							/* LBT_CONTRACT_H */
