/*
 * models.h - published models, and the entries of their files; see shmem.h for the protocol.
 */
#ifndef LBT_MODELS_H
#define LBT_MODELS_H

#include "model/model.h"
#include "registry/shmem.h"

/* For LbtTrained.blocks: no growth of the file makes up for it. */
#define NO_GROWTH_BLOCKS (MaxBlockNumber / 2)

/* The outcome of a training. */
typedef struct LbtTrained
{
	LbtState	state;			/* LBT_READY: with a model */
	LbtModelHeader header;
	const LbtKnot *knots;
	const void *separators;		/* NULL: none */
	const LbtLeaf *leaves;
	BlockNumber blocks;			/* the file's size */
	uint32		fingerprint;	/* of the leaves' blocks in order */
} LbtTrained;

/* Settles what a locked entry says of trainings, while the outcome of one, in this state, is put into it.  Raises no error. */
typedef void (*LbtSettle) (LbtEntry *entry, LbtState state, const LbtTrained *trained);

/*
 * Publish what a training found; false when there was no memory even to say
 * so.  With new_file the file becomes visible to others only if this
 * transaction commits.
 */
extern bool lbt_registry_publish(const LbtFile *file, Oid oid, const LbtTrained *trained, bool new_file,
								 LbtSettle settle);

/* What the registry knows of a file, for display. */
typedef struct LbtRegistered
{
	LbtState	state;
	LbtSince	since;
	LbtModelHeader header;		/* when LBT_READY */
} LbtRegistered;

/* Leaves *out alone when the registry has no entry; the state is LBT_NO_MEMORY when that cannot be told. */
extern void lbt_registry_describe(const LbtFile *file, LbtRegistered *out);

/* Forget models: of one file; of all files of a database, or of an index, but one file. */
extern void lbt_registry_drop_file(const LbtFile *file);
extern void lbt_registry_drop_matching(Oid database, Oid oid, const LbtFile *except);

typedef struct LbtListed
{
	LbtFile		file;
	Oid			oid;
} LbtListed;

/* List a database's entries, or an index's, palloc'd; returns how many: none when not all can be reached. */
extern int	lbt_registry_list(Oid database, Oid oid, LbtListed **listed);

/* Bytes of all models; and whether as many more would still be within the limit.  No dsa calls. */
extern uint64 lbt_registry_bytes(void);
extern bool lbt_registry_has_room(Size bytes);

/* Has the least recently used model been idle for a minute?  The answer may be a second old. */
extern bool lbt_registry_has_idle(void);

/* A file's entry, made if need be, with its partition locked exclusively.  May raise errors. */
extern LbtEntry *lbt_entry_lock(const LbtFile *file, Oid oid);

/*
 * Put a model, or none, into a locked entry, unlock it, and free the model that was there.  May raise errors; then nothing
 * has been changed, and the entry is locked.
 */
extern void lbt_entry_replace_model(LbtEntry *entry, LbtState state, dsa_pointer memory, Size bytes);

#endif							/* LBT_MODELS_H */
