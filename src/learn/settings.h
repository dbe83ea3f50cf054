/*
 * settings.h - the values of the learnedbtree.* settings and of an index's options.
 *
 * src/sql/init.c registers the settings and documents them for users.  settings.c has the former, indexoptions.c
 * the latter.
 */
#ifndef LBT_SETTINGS_H
#define LBT_SETTINGS_H

#include "postgres.h"

#include "learn/kept.h"
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
	bool		learned;
	int			max_error;		/* -1: unset */
	int			retrain_splits; /* -1: unset */
} LbtOptions;

static inline LbtIndexOptions
lbt_own_options(const LbtOptions *o)
{
	return (LbtIndexOptions) {.learned = o->learned,.max_error = o->max_error,.retrain_splits = o->retrain_splits};
}

/* Raised when the options of any index may have changed; what was asked for before may be outdated. */
extern uint64 lbt_index_options_generation;

/*
 * False when this may not be the last word.  Not for every lookup: the options of an index are in its view
 * (LbtIndex), too.
 */
extern bool lbt_index_options(Relation rel, LbtIndexOptions *options);

/* Use a model for this index? */
static inline bool
lbt_index_learned(Relation rel)
{
	LbtIndexOptions options;

	(void) lbt_index_options(rel, &options);
	return options.learned != 0;
}

/* The largest error of its spline, in leaves. */
static inline int
lbt_index_max_error(Relation rel)
{
	LbtIndexOptions options;

	(void) lbt_index_options(rel, &options);
	return options.max_error > 0 ? options.max_error : lbt_max_error;
}

#endif							/* LBT_SETTINGS_H */
