/*
 * settings.h - learnedbtree.* settings: all that DBAs set.
 *
 * settings.c documents them for users, in what it tells the server.
 */
#ifndef LBT_SETTINGS_H
#define LBT_SETTINGS_H

#include "postgres.h"

#include "catalog/pg_am.h"
#include "commands/defrem.h"
#include "registry/names.h"
#include "server/btree.h"

/* Which btree indexes this session serves: learnedbtree.btree_indexes. */
typedef enum LbtBtreeIndexes
{
	LBT_BTREE_NONE,
	LBT_BTREE_LIST,				/* those that the setting's list names */
	LBT_BTREE_ALL				/* those of learnedbtree.min_leaves */
} LbtBtreeIndexes;

extern bool lbt_enable;
extern bool lbt_enable_leaf_cache;
extern bool lbt_enable_buffer_hint;
extern bool lbt_enable_insert;
extern bool lbt_enable_prefetch;
extern int	lbt_lookahead_rows; /* at most LBT_LOOKAHEAD_LIMIT; 0: none */
extern bool lbt_enable_row_prefetch;
extern bool lbt_enable_loose_scan;
extern bool lbt_autotrain;
extern LbtBtreeIndexes lbt_btree_indexes;
extern char *lbt_btree_indexes_list;	/* as registry/names.h reads it */
extern int	lbt_min_leaves;		/* leaf pages */
extern int	lbt_naptime;		/* milliseconds */
extern int	lbt_retrain_visits; /* -1: what a training costs */
extern int	lbt_max_model_memory;	/* kB */

#define LBT_MIN_LEAVES_DEFAULT 16
#define LBT_LOOKAHEAD_LIMIT 64

/* Has it room for min_leaves, a metapage and, from two leaves on, a root? */
static inline bool
lbt_is_large(BlockNumber nblocks)
{
	return nblocks >= (BlockNumber) lbt_min_leaves + (lbt_min_leaves > 1 ? 2 : lbt_min_leaves);
}

/*
 * May its model evict others?  Not that of a file of up to 16 pages: any
 * user's min_leaves may have as many trained as there are indexes.
 */
static inline bool
lbt_may_evict_others(BlockNumber nblocks)
{
	return nblocks > LBT_MIN_LEAVES_DEFAULT;
}

/* The access method's OID; InvalidOid before CREATE EXTENSION. */
#define lbt_am_oid() get_am_oid("learnedbtree", true)

/* Is it btree's?  Then nothing in its file is ours. */
static inline bool
lbt_is_btree(Relation rel)
{
	return rel->rd_rel->relam == BTREE_AM_OID;
}

/*
 * Raised when lbt_index_served() may answer otherwise than before for some
 * index; and when for one that serve/serve.c has looked at.  They start at 1.
 */
extern uint64 lbt_serving_generation;
extern uint64 lbt_serving_epoch;

/* Raise both.  Allocates nothing. */
extern void lbt_serving_changed(void);

/* In _PG_init; may be called again after an error. */
extern void lbt_settings_define(void);

/* NOTICE once a session if models have no shared memory here. */
extern void lbt_tell_no_memory(void);

/*
 * Schema and name of an index, then of each of its partitioned ancestors.
 * Reads catalogs.
 */
extern List *lbt_names_of_index(Oid index);

/*
 * The item of learnedbtree.btree_indexes that decides on a btree index: the
 * last that matches its name, or that of a partitioned index that it is part
 * of.  NULL when none does.  Reads catalogs if the setting is a list.
 */
extern const LbtNamesItem *lbt_deciding_item(Oid index);

/*
 * Why this session uses no model for an index: a constant string that
 * continues "it is not served: ", or NULL.  Returns false when the next answer
 * may be another.  May read catalogs: views keep the result.
 */
extern bool lbt_index_served(Relation rel, const char **why_not);

#endif							/* LBT_SETTINGS_H */
