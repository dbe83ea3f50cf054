/*
 * metapage.h - the model's image in the index's metapage: what is left of a model after a restart.
 *
 * A hint like everything else about models: an image that is missing, outdated or damaged costs time.
 */
#ifndef LBT_METAPAGE_H
#define LBT_METAPAGE_H

#include "learn/registry.h"

/*
 * Write the image of a trained model and log it, unless the one that is there says the same and nobody has
 * logged the metapage since (which may have lost the image where that is replayed).  Fills in
 * trained->image_lsn.  Nothing happens in recovery.  Allocates in the current context.  The metapage is locked
 * for the time of a copy.
 */
extern void lbt_metapage_write(Relation rel, const LbtIndex *index, LbtTrained *trained);

/* Take the image out, if there is one, and log it.  Not in recovery. */
extern void lbt_metapage_clear(Relation rel);

/*
 * Make a model from the image; false when there is none.  An image that cannot be used is reported in the
 * server's log.  Allocates in the current context, where the result stays.
 */
extern bool lbt_metapage_read(Relation rel, const LbtIndex *index, LbtTrained *trained);

#endif							/* LBT_METAPAGE_H */
