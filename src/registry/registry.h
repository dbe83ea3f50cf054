/*
 * registry.h - models and their state in shared memory: entries, found by file, and the memory of their models, which
 * is within learnedbtree.max_model_memory.
 *
 * A published model is immutable but for its buffer hints; registry.c has the locking protocol.  The functions here need
 * lbt_registry_attach() to have succeeded, and raise no error unless they say so.
 */
#ifndef LBT_REGISTRY_H
#define LBT_REGISTRY_H

#include "model/model.h"
#include "registry/control.h"

/* For LbtTrained.blocks: no growth of the file makes up for it. */
#define NO_GROWTH_BLOCKS (MaxBlockNumber / 2)

/* The outcome of a training. */
typedef struct LbtTrained
{
	LbtState	state;			/* LBT_READY: with a model */
	LbtModelHeader header;
	const LbtKnot *knots;
	const void *tree;			/* of codes, header.tree_bytes; NULL: none */
	const LbtLeaf *leaves;
	BlockNumber blocks;			/* the file's size */
	uint32		fingerprint;	/* of the leaves' blocks in order: has
								 * anything changed? */
} LbtTrained;

/*
 * Publish what a training found; false when there was no memory even to say so.  With new_file the file becomes visible
 * to others only if this transaction commits.
 */
extern bool lbt_registry_publish(const LbtFile *file, Oid oid, const LbtTrained *trained, bool new_file);

/* How a training that was claimed has ended. */
typedef enum LbtEnding
{
	LBT_ENDED,					/* published, or given up: nothing is known of
								 * the index */
	LBT_ENDED_BY_ERROR,			/* a passing one: tried again after a pause,
								 * which grows from time to time */
	LBT_ENDED_BY_DAMAGE			/* of the file: not tried again on use */
} LbtEnding;

/* Claim the training of this file; false while another live backend has it.  Give the claim back in the end. */
extern bool lbt_registry_claim(const LbtFile *file, Oid oid);
extern void lbt_registry_unclaim(const LbtFile *file);

/* The same while an error is handled, which has left no LWLock of ours behind.  May raise another. */
extern void lbt_registry_unclaim_after_error(const LbtFile *file, LbtEnding ending);

/* A training has come to nothing: no further one is asked for during a pause, which grows from time to time. */
extern void lbt_registry_postpone(const LbtFile *file, Oid oid);

/* What the registry knows of a file, for display. */
typedef struct LbtRegistered
{
	LbtState	state;
	TimestampTz changed_at;
	LbtSince	since;
	LbtModelHeader header;		/* when LBT_READY */
} LbtRegistered;

/* False when the registry has no entry, or (state LBT_NO_MEMORY) that cannot be told. */
extern bool lbt_registry_describe(const LbtFile *file, LbtRegistered *out);

/* Copy a model out, palloc'd; NULL when there is none. */
extern void *lbt_registry_copy_model(const LbtFile *file, Size *bytes);

/* Forget models: of one file; of all files of a database, or only those of an index but one file. */
extern void lbt_registry_drop_file(const LbtFile *file);
extern void lbt_registry_drop_matching(Oid database, Oid oid, const LbtFile *except);

/* A database's entries, for finding those of indexes that are gone. */
typedef struct LbtListed
{
	LbtFile		file;
	Oid			oid;
	TimestampTz changed_at;
} LbtListed;

/* List them, palloc'd, at most max; returns how many: none when not all can be reached. */
extern int	lbt_registry_list(Oid database, LbtListed **listed, int max);

/* Bytes of all models; and whether as many more would still be within the limit.  No dsa calls. */
extern uint64 lbt_registry_bytes(void);
extern bool lbt_registry_has_room(Size bytes);

/*
 * Has the least recently used model been idle for a minute?  One look through all of them a second, by whichever
 * process asks first; the others are told no.
 */
extern bool lbt_registry_has_idle(void);

/* ---- for demand.c; these may raise errors ---- */

/* A file's entry, made if need be, with its partition locked exclusively. */
extern LbtEntry *lbt_entry_lock(const LbtFile *file, Oid oid);

/*
 * The memory of a locked entry's model, which is about to be taken from it and freed.  Maps it: if that cannot be done,
 * the error comes while nothing has been changed, and the model stays where others find it.
 */
extern dsa_pointer lbt_model_of(const LbtEntry *entry);

/*
 * Free the memory of a model that no entry names any more; without one only raise the generation.  The caller holds no
 * partition lock.
 */
extern void lbt_model_free(dsa_pointer memory, Size bytes);

#endif							/* LBT_REGISTRY_H */
