/*
 * inspect.h - a model's state in words.
 */
#ifndef LBT_INSPECT_H
#define LBT_INSPECT_H

#include "registry/registry.h"
#include "registry/view.h"

/*
 * The state of the index's model as users see it, and in *reason why it is not ready or not used, or NULL.  Fills in
 * *model where the registry knows the index and it can have a model; otherwise model->state is LBT_UNTRAINED.
 */
extern const char *lbt_model_state(Relation rel, LbtIndex *index, LbtRegistered *model, const char **reason);

#endif							/* LBT_INSPECT_H */
