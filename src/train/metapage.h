/*
 * metapage.h - the saved model in the index's metapage: what is left of a model after a restart.
 *
 * A hint like everything else about models: one that is missing, outdated or damaged costs time.
 *
 *     block 0: | page header, nbtree's fields | magic, version, length, checksum, ... | model/saved.h | zeroes |
 */
#ifndef LBT_METAPAGE_H
#define LBT_METAPAGE_H

#include "registry/registry.h"
#include "registry/view.h"

/*
 * Save what a training has found, with the codes that the key code alone gives, and log the metapage, unless it says the
 * same already.  What does not fit is not saved, and what was there goes.  Not for recovery.  Allocates in the current
 * context, and takes the metapage's lock for the time of a copy.
 */
extern void lbt_metapage_write(Relation rel, const LbtKeyCode *code, const LbtLeaf *leaves, uint32 nleaves);

/*
 * Make a model from the saved one; false when there is none.  One that cannot be used is reported in the server's log.
 * Allocates in the current context, where the result stays.
 */
extern bool lbt_metapage_read(Relation rel, const LbtIndex *index, LbtTrained *trained);

/* For users, a constant string: "readable", "none", or what is wrong with the saved model. */
extern const char *lbt_metapage_state(Relation rel, const LbtIndex *index);

#endif							/* LBT_METAPAGE_H */
