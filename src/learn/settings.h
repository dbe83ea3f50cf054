/*
 * settings.h - the values of the learnedbtree.* settings.
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

/* For tests: how sort keys are made. */
typedef enum LbtSortKeys
{
	LBT_SORT_KEYS_TRUE,
	LBT_SORT_KEYS_SCRAMBLED		/* in contradiction to their collation */
} LbtSortKeys;

#define LBT_MAX_ERROR_DEFAULT 4
#define LBT_MAX_ERROR_LIMIT 1024

#endif							/* LBT_SETTINGS_H */
