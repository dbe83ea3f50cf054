/*
 * policy.h - the retrain policy: when a model is worth training again, and whether it pays at all.  Costs and benefits
 * are counted in an index's entry, which the caller has locked; nothing here looks further.
 */
#ifndef LBT_POLICY_H
#define LBT_POLICY_H

#include "model/model.h"
#include "registry/control.h"

/*
 * Add events that have not been reported before to what is known of the index since its training, and ask for a new
 * one (entry->wanted) where it is worth its cost.  False: the model costs more than it saves.
 */
extern bool lbt_policy_report(LbtEntry *entry, const uint64 *events, int retrain_splits);

/*
 * Switch a model off that does not pay; the caller frees its memory, which the entry names no more.  If the tree has
 * changed since it was made, a new one gets a chance; and so it does where one is wanted already, because this one came
 * from a saved model.
 */
extern void lbt_policy_switch_off(LbtEntry *entry);

/* A training has been published in this entry: what was counted before is settled. */
extern void lbt_policy_settle(LbtEntry *entry, const LbtModelHeader *header, uint32 fingerprint);

/* A training has failed: pause, the longer the more often in a row. */
extern void lbt_policy_pause(LbtEntry *entry);

#endif							/* LBT_POLICY_H */
