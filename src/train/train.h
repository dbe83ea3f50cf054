/*
 * train.h - making a model from the tree's first level above the leaves.
 */
#ifndef LBT_TRAIN_H
#define LBT_TRAIN_H

#include "postgres.h"

#include "access/xact.h"
#include "registry/view.h"

/*
 * Train the index's model, save it in the metapage, and publish it.  Reads all pages of level 1,
 * no leaf, and blocks no writer for longer than the copy of a page takes; about 0.1 us a leaf when they
 * are cached, and some 0.4 us more where separators are kept.  No lock or pin is held on return.
 * Returns the state registered.
 */
extern LbtState lbt_train(Relation rel, LbtIndex *index);

/*
 * Can this index have a model at all?  Otherwise the reason, a constant string for users.  Whether this session is to
 * use it is another question: index->learned.
 */
extern bool lbt_trainable(Relation rel, const LbtIndex *index, const char **reason);

/*
 * For a lookup or insert that found no model: take the metapage's saved model, and have it trained in the background; or
 * train here, if nobody tried since the file was made or last grew by a quarter, and nobody is at it.  A large index is
 * left to the worker, where there is one, and the caller goes on without a model.
 */
extern void lbt_train_on_use(Relation rel, LbtIndex *index);

/* Is there any use in calling that?  Costs next to nothing. */
static inline bool
lbt_may_ask(const LbtIndex *index)
{
	return likely(index->again_at == 0) || GetCurrentStatementStartTimestamp() >= index->again_at;
}

/*
 * For lookups and inserts whose predictions keep failing: report it.  Where a training is wanted, but no
 * worker can be had for it, train here.  The caller holds no lock, and what it has read from shared memory
 * is not good any more.
 */
extern void lbt_train_on_misses(Relation rel, LbtIndex *index);

/* Failed predictions and right-moves of a backend after which a long statement says what it has counted. */
#define MISSES_BEFORE_LOOK 64

static inline void
lbt_look_at_misses(Relation rel, LbtIndex *index)
{
	if (unlikely(index->counts.misses >= MISSES_BEFORE_LOOK))
		lbt_train_on_misses(rel, index);
}

/*
 * For an insert that has split a leaf: report it now and then; a small index that has doubled is trained
 * at once, which costs less than asking for it.  The caller holds no lock.
 */
extern void lbt_train_on_split(Relation rel, LbtIndex *index);

/*
 * The saved model in the metapage of an index of our access method: what is left of a model after a restart.  A hint like
 * everything else about models: one that is missing, outdated or damaged costs time.
 *
 *     block 0: | page header, nbtree's fields | magic, version, length, checksum, ... | model/saved.h | zeroes |
 *
 * Save what a training has found, with the codes that the key code alone gives, and log the metapage, unless it says the
 * same already.  What does not fit is not saved, and what was there goes.  Not for recovery.  Allocates in the current
 * context, and takes the metapage's lock for the time of a copy.
 */
extern void lbt_metapage_write(Relation rel, const LbtKeyCode *code, const LbtLeaf *leaves, uint32 nleaves);

/*
 * Read it: leaves, and what the header says, without the spline; false when there is none.  One that cannot be used is
 * reported in the server's log.  Allocates in the current context, where the result stays.
 */
extern bool lbt_metapage_read(Relation rel, const LbtIndex *index, LbtTrained *trained);

/* For users, a constant string: "readable", "none", or what is wrong with it.  Allocates in the current context. */
extern const char *lbt_metapage_state(Relation rel, const LbtIndex *index);

#endif							/* LBT_TRAIN_H */
