/*
 * metapage.h - the model's image in the index's metapage: what is left of a model after a restart.
 *
 * A hint like everything else about models: an image that is missing, outdated or damaged costs time.
 */
#ifndef LBT_METAPAGE_H
#define LBT_METAPAGE_H

#include "registry/registry.h"
#include "registry/view.h"

/*
 * Write the image of a trained model and log it, unless the one that is there says the same and nobody has
 * logged the metapage since (which may have lost the image where that is replayed).  Fills in
 * trained->image_lsn.  Nothing happens in recovery.  Allocates in the current context.  The metapage is locked
 * for the time of a copy.
 */
extern void lbt_metapage_write(Relation rel, const LbtIndex *index, LbtTrained *trained);

/*
 * Make a model from the image; false when there is none.  An image that cannot be used is reported in the
 * server's log.  Allocates in the current context, where the result stays.
 */
extern bool lbt_metapage_read(Relation rel, const LbtIndex *index, LbtTrained *trained);

/* For users, a constant string: "readable", "none", or what is wrong with the image. */
extern const char *lbt_metapage_state(Relation rel, const LbtIndex *index);

#endif							/* LBT_METAPAGE_H */
