/*
 * train.h - making a model from the tree's first level above the leaves.
 */
#ifndef LBT_TRAIN_H
#define LBT_TRAIN_H

#include "postgres.h"

#include "access/xact.h"
#include "registry/view.h"

/*
 * Train the index's model, save it in the metapage, and publish it.  Reads all
 * of level 1, no leaf, and blocks no writer for longer than a page's copy
 * takes; about 0.1 us a leaf when cached, and some 0.4 us more where
 * separators are kept.  Holds no lock or pin on return.  Returns the state
 * registered.
 */
extern LbtState lbt_train(Relation rel, LbtIndex *index);

/* Why no session can have a model of it: a constant string; or NULL. */
extern const char *lbt_untrainable(Relation rel, const LbtIndex *index);

/*
 * For a lookup or insert that found no model: take the saved model, and have
 * the index trained in the background; or leave a large index to the worker,
 * and go on without a model; or, of a small one or without autotrain, train
 * here, unless another backend does.
 */
extern void lbt_train_on_use(Relation rel, LbtIndex *index);

/* Is there any use in calling that?  Costs next to nothing. */
static inline bool
lbt_may_ask(const LbtIndex *index)
{
	return likely(index->again_at == 0) ||
		lbt_ms_until(index->again_at, GetCurrentStatementStartTimestamp(), LBT_PAUSE_MAX_MS) == 0;
}

/* Is there a model, or will that bring one?  Asks for none.  For planning. */
extern bool lbt_model_comes(LbtIndex *index, BlockNumber nblocks);

/* As many leaves as there may be memory for, in a model and in a training. */
extern Size lbt_max_leaves(void);

/*
 * The saved model in the metapage of an index of our access method, for after
 * a restart.  If it is missing, outdated or damaged, that costs time.
 *
 *     block 0: | page header, nbtree's fields | magic, checksum, ... |
 *              | model/saved.h | zeroes                              |
 *
 * Save leaves, with the codes that the key code alone gives, and log the
 * metapage, unless it says the same already.  Without leaves, and where they
 * do not fit, remove the saved model.  Not for recovery.  Allocates in the
 * current context, and takes the metapage's lock for the time of a copy.
 */
extern void lbt_metapage_write(Relation rel, const LbtKeyCode *code, const LbtLeaf *leaves,
							   uint32 nleaves);

/*
 * Read it: leaves, and what the header says, without the spline; no leaves if
 * there is none.  Returns for users "readable", "none", or what is wrong with
 * it, which the server's log gets, too, unless it is too large.  Allocates in
 * the current context, where the result stays.
 */
extern const char *lbt_metapage_read(Relation rel, const LbtIndex *index, Size max_leaves,
									 LbtTrained *trained);

#endif							/* LBT_TRAIN_H */
