/*
 * settings.c - storage of the learnedbtree.* settings; see settings.h.
 */
#include "learn/settings.h"

bool		lbt_enable = true;
bool		lbt_enable_leaf_cache = true;
bool		lbt_enable_buffer_hint = true;
bool		lbt_enable_insert = true;
bool		lbt_enable_prefetch = true;
bool		lbt_autotrain = true;
int			lbt_btree_indexes = LBT_BTREE_ADOPTED;
int			lbt_min_leaves = LBT_MIN_LEAVES_DEFAULT;
int			lbt_naptime = 1000;
int			lbt_retrain_splits = -1;
int			lbt_debug_sort_keys = LBT_SORT_KEYS_TRUE;
int			lbt_max_error = LBT_MAX_ERROR_DEFAULT;
int			lbt_max_model_memory = 256 * 1024;
int			lbt_max_workers = 1;
int			lbt_stat_save_interval = 10000;
