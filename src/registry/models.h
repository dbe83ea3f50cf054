/*
 * models.h - published models and their indexes' entries; protocol: shmem.h.
 */
#ifndef LBT_MODELS_H
#define LBT_MODELS_H

#include "postgres.h"

#include "model/model.h"
#include "nodes/pg_list.h"
#include "registry/settings.h"
#include "registry/shmem.h"

/* For LbtTrained.blocks: no growth of the file makes up for it. */
#define NO_GROWTH_BLOCKS (MaxBlockNumber / 2)

/* The outcome of a training. */
typedef struct LbtTrained
{
	LbtState	state;			/* LBT_READY: with a model; LBT_UNTRAINED: none */
	LbtModelHeader header;
	const LbtKnot *knots;
	const void *separators;		/* NULL: none */
	const LbtLeaf *leaves;
	BlockNumber blocks;			/* the file's size */
} LbtTrained;

/* Begin a training; false if a live backend is at one of this index. */
extern bool lbt_training_begin(const LbtFile *file);

/*
 * End it, and publish its outcome.  A model that there is stays if its
 * successor would be too large.  False when there was no memory even for that.
 * Interrupts may raise errors.
 */
extern bool lbt_training_end(const LbtFile *file, const LbtTrained *trained);

/*
 * End it without an outcome, also while an error is being handled, but none of
 * our LWLocks is held: LBT_UNTRAINED, given up; or after an error that will be
 * there next time (LBT_DAMAGED), or may be (LBT_FAILED).  May raise errors.
 */
extern void lbt_training_failed(const LbtFile *file, LbtState ending, bool demand_stays);

/*
 * The last training has brought nothing: wait before the next, longer each
 * time, up to this.  The entry is locked.
 */
extern void lbt_entry_pause(LbtEntry *entry, int longest);

/* What is known about a file and its index, for display. */
typedef struct LbtRegistered
{
	LbtTotals	totals;			/* of the index, whatever its file */
	LbtState	state;
	LbtSince	since;
	LbtModelHeader header;		/* when LBT_READY */
} LbtRegistered;

/*
 * Leaves *out alone if there is no entry, and all but the totals if that is of
 * another file; LBT_NO_MEMORY if we cannot tell.
 */
extern void lbt_registry_describe(const LbtFile *file, LbtRegistered *out);

/* Forget an index that is gone, or the model of one that is made anew. */
extern void lbt_registry_forget(const LbtFile *file);
extern void lbt_registry_reset(const LbtFile *file);

/* The files (LbtFile), palloc'd, of all entries; NIL if it cannot tell. */
extern List *lbt_registry_list(void);

/* Bytes of all models; do as many more fit within the limit?  No dsa calls. */
extern uint64 lbt_registry_bytes(void);
extern bool lbt_registry_has_room(Size bytes);

/*
 * Has a model been idle for a minute?  A hint: all sessions together look once
 * a second, at all entries, and then know how many are left of those found.
 */
extern bool lbt_registry_has_idle(void);

/*
 * Find or make the entry of an index, for this file, and lock its partition
 * exclusively.  What it knows of another file is given up.  May raise errors.
 */
extern LbtEntry *lbt_entry_lock(const LbtFile *file);

/*
 * Put a model, or none, into a locked entry, unlock it, and free the old
 * model.
 */
extern void lbt_entry_replace_model(LbtEntry *entry, LbtState state, dsa_pointer memory,
									Size bytes);

/* Zero an index's totals; InvalidOid: the database's.  May raise errors. */
extern void lbt_totals_reset(Oid index);

#endif							/* LBT_MODELS_H */
