/*
 * train.h - making a model from the tree's first level above the leaves.
 */
#ifndef LBT_TRAIN_H
#define LBT_TRAIN_H

#include "learn/registry.h"

/*
 * Train the index's model and publish it.  Reads all pages of level 1, no leaf; about 0.1 us a leaf
 * when they are cached.  No lock or pin is held on return.  new_file: this transaction made the file.
 * Returns the state registered; *leaves, if wanted, gets the number of leaves seen.
 */
extern LbtState lbt_train(Relation rel, LbtIndex *index, bool new_file);

/* Can this index have a model at all?  Otherwise the reason, a constant string for users. */
extern bool lbt_trainable(Relation rel, const LbtIndex *index, const char **reason);

/*
 * For a lookup that found no model: train if nobody tried since the file was made or last grew by a
 * quarter, and nobody is at it.
 */
extern void lbt_train_on_use(Relation rel, LbtIndex *index);

/*
 * For lookups whose predictions keep failing (index->misses of them since the last call): train as
 * above, or when this backend alone has missed as often as a training costs and the last one is not
 * just over.
 */
extern void lbt_train_on_misses(Relation rel, LbtIndex *index);

#endif							/* LBT_TRAIN_H */
