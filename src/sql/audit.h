/*
 * audit.h - the model against the tree: what learnedbtree_check() does beyond amcheck.
 */
#ifndef LBT_AUDIT_H
#define LBT_AUDIT_H

#include "registry/view.h"
#include "utils/snapshot.h"

/* How the predictions for the tree's separators ended. */
typedef struct LbtAudit
{
	uint64		separators;
	uint64		landed;			/* proven on the predicted leaf */
	uint64		moved_right;	/* proven on a neighbour */
	uint64		fallback_block; /* not proven, for the reasons of LbtEvent */
	uint64		fallback_page;
	uint64		fallback_low;
	uint64		fallback_high;
} LbtAudit;

/*
 * Look at a copy of a model by itself: is it in order, and within itself and the file?  Raises an error that says
 * what is wrong.  An outdated model is in order.
 */
extern void lbt_audit_model(Relation rel, void *copy, Size bytes);

/*
 * Predict every separator's place in the tree as a lookup does, and see where it lands.  What is proven must be
 * where the descent leads, otherwise an error is raised.  False, and the counts are worthless, when the model went
 * away meanwhile.  Nothing is counted in the index's statistics.
 *
 * The caller holds a lock on the table that keeps writers and VACUUM out: prediction and descent have to see the
 * same tree.
 */
extern bool lbt_audit_lookups(Relation rel, LbtIndex *index, Snapshot snapshot, LbtAudit *audit);

#endif							/* LBT_AUDIT_H */
