/*
 * models.h - published models, their files' entries, and totals of counts;
 * protocol: shmem.h.
 */
#ifndef LBT_MODELS_H
#define LBT_MODELS_H

#include "postgres.h"

#include "model/model.h"
#include "nodes/pg_list.h"
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

/* Begin a training; false if a live backend is at one of this file. */
extern bool lbt_training_begin(const LbtFile *file, Oid oid);

/*
 * End it with its outcome: LBT_UNTRAINED if others are to do it, else publish.
 * A model that there is stays if its successor would be too large.  new_file:
 * of this transaction.  False when there was no memory even for that.
 */
extern bool lbt_training_end(const LbtFile *file, Oid oid, const LbtTrained *trained,
							 bool new_file);

/*
 * End it without an outcome, also while an error is being handled, but no
 * LWLock is held: LBT_UNTRAINED, given up; or after an error that will be
 * there next time (LBT_DAMAGED), or may be (LBT_FAILED).  May raise errors.
 */
extern void lbt_training_failed(const LbtFile *file, LbtState ending, bool demand_stays);

/*
 * The last training has brought nothing: wait before the next, longer each
 * time, up to this.  The entry is locked.
 */
extern void lbt_entry_pause(LbtEntry *entry, int longest);

/* What is known about a file, for display. */
typedef struct LbtRegistered
{
	LbtState	state;
	LbtSince	since;
	LbtModelHeader header;		/* when LBT_READY */
} LbtRegistered;

/*
 * Leaves *out alone if there is no entry; LBT_NO_MEMORY if we cannot tell.
 * With copy: the model, palloc'd, of header.bytes; or NULL.
 */
extern void lbt_registry_describe(const LbtFile *file, LbtRegistered *out, void **copy);

/* Forget models: a file's; or a database's or index's, except one file's. */
extern void lbt_registry_drop_file(const LbtFile *file);
extern void lbt_registry_drop_matching(Oid database, Oid oid, const LbtFile *except);

/* Their files (LbtFile), palloc'd; NIL if not all can be reached. */
extern List *lbt_registry_list(Oid database, Oid oid, const LbtFile *except);

/* Bytes of all models; do as many more fit within the limit?  No dsa calls. */
extern uint64 lbt_registry_bytes(void);
extern bool lbt_registry_has_room(Size bytes);

/* Has a model been idle for a minute?  Looks at all entries. */
extern bool lbt_registry_has_idle(void);

/* Find or make an entry, lock its partition exclusively.  May raise errors. */
extern LbtEntry *lbt_entry_lock(const LbtFile *file, Oid oid);

/*
 * Put a model, or none, into a locked entry, unlock it, and free the old
 * model.  May raise errors; then nothing has changed, and the entry is locked.
 */
extern void lbt_entry_replace_model(LbtEntry *entry, LbtState state, dsa_pointer memory,
									Size bytes);

/* Add events of an index to its totals.  May raise errors. */
extern void lbt_stats_add(Oid database, Oid oid, const uint64 *events);

/* Totals of an index of this database; zeroes if none, or none reachable. */
extern void lbt_stats_get(Oid oid, LbtStats *out);

/* Zero an index's totals; InvalidOid: the database's.  May raise errors. */
extern void lbt_stats_reset(Oid oid);

/* Forget the totals of an index that is gone. */
extern void lbt_stats_forget(Oid database, Oid oid);

/* All totals (LbtStats), palloc'd.  May raise errors. */
extern List *lbt_stats_copy(void);

#endif							/* LBT_MODELS_H */
