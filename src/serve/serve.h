/*
 * serve.h - serving btree indexes as they are, by a routine of ours in this
 * backend's relcache entries (src/README, "Serving btree indexes"):
 *
 *     relcache entry  rd_indam -> btree's    scans and inserts are nbtree's
 *          | nobody else here has it open, and it is to be served
 *          v
 *     relcache entry  rd_indam -> ours       scans and inserts ask the model;
 *          |                                 nbtree's functions do the rest
 *          | an invalidation throws the entry away, or the session ends
 *          v
 *     btree's again, until the next exchange
 */
#ifndef LBT_SERVE_H
#define LBT_SERVE_H

#include "postgres.h"

#include "utils/rel.h"

/*
 * Why a relation is not a btree index to be served, whatever the settings say,
 * or (looking_into) not a btree or learnedbtree index to look into: a constant
 * string that continues "it is not served: ", or NULL.
 */
extern const char *lbt_index_unfit(Relation index, bool looking_into);

/* The same with this session's settings.  Reads catalogs and the metapage. */
extern const char *lbt_serve_refusal(Relation index);

/* In _PG_init. */
extern void lbt_serve_init(void);

#endif							/* LBT_SERVE_H */
