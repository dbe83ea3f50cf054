/*
 * fit.h - from leaves in key order to a model's spline.
 */
#ifndef LBT_FIT_H
#define LBT_FIT_H

#include "registry/registry.h"
#include "registry/view.h"

/*
 * Fit a model to leaves in key order: fills in trained's state, knots, leaves, and what the header says of
 * these.  False when the codes are not in order.  Allocates in the current context.
 */
extern bool lbt_fit_model(const LbtIndex *index, const LbtLeaf *leaves, uint32 nleaves, LbtTrained *trained);

/*
 * What a training may take, in bytes: maintenance_work_mem.  At least what an index needs that is trained on its first
 * use: the outcome is for all sessions, whatever this one's setting is.
 */
extern Size lbt_training_budget(void);

#endif							/* LBT_FIT_H */
