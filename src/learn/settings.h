/*
 * settings.h - the values of the learnedbtree.* settings and of an index's options.
 *
 * src/sql/init.c registers the settings and documents them for users.
 */
#ifndef LBT_SETTINGS_H
#define LBT_SETTINGS_H

#include "postgres.h"

#include "server/btree.h"

extern bool lbt_enable;
extern bool lbt_enable_leaf_cache;
extern bool lbt_enable_buffer_hint;
extern bool lbt_enable_insert;
extern bool lbt_enable_prefetch;
extern bool lbt_autotrain;
extern int	lbt_naptime;		/* milliseconds */
extern int	lbt_retrain_splits; /* -1: a share of the leaves */
extern int	lbt_debug_sort_keys;	/* LbtSortKeys */
extern int	lbt_max_error;		/* leaves */
extern int	lbt_max_model_memory;	/* kB */
extern int	lbt_stat_save_interval; /* milliseconds */

/* For tests: how sort keys are made. */
typedef enum LbtSortKeys
{
	LBT_SORT_KEYS_TRUE,
	LBT_SORT_KEYS_SCRAMBLED		/* in contradiction to their collation */
} LbtSortKeys;

#define LBT_MAX_ERROR_DEFAULT 4
#define LBT_MAX_ERROR_LIMIT 1024

/* rd_options of our indexes.  nbtree reads the front of it. */
typedef struct LbtOptions
{
	BTOptions	btree;
	bool		learned;		/* use a model for this index */
	int			max_error;		/* leaves; -1: unset, learnedbtree.max_error */
	int			retrain_splits; /* -1: unset, learnedbtree.retrain_splits */
} LbtOptions;

static inline bool
lbt_index_learned(Relation rel)
{
	return rel->rd_options == NULL || ((LbtOptions *) rel->rd_options)->learned;
}

static inline int
lbt_index_max_error(Relation rel)
{
	LbtOptions *options = (LbtOptions *) rel->rd_options;

	return options && options->max_error > 0 ? options->max_error : lbt_max_error;
}

static inline int
lbt_index_retrain_splits(Relation rel)
{
	LbtOptions *options = (LbtOptions *) rel->rd_options;

	return options && options->retrain_splits > 0 ? options->retrain_splits : lbt_retrain_splits;
}

#endif							/* LBT_SETTINGS_H */
