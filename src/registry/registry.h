/*
 * registry.h - models and their state in shared memory: entries, which are found by file, and what is done with them.
 *
 * A published model is immutable but for its buffer hints.  See registry.c for the locking protocol.  But for the first
 * ones, which shmem.c calls, and the entry itself, the functions here need lbt_registry_attach() to have succeeded.
 */
#ifndef LBT_REGISTRY_H
#define LBT_REGISTRY_H

#include "registry/control.h"
#include "registry/modelmem.h"

extern dshash_table_handle lbt_entries_create(dsa_area *area, int tranche);
extern dshash_table *lbt_entries_attach(dsa_area *area, int tranche, dshash_table_handle handle);

/* A file's entry, made if need be, with its partition locked exclusively. */
extern LbtEntry *lbt_entry_lock(const LbtFile *file, Oid oid);

/*
 * Publish what a training found; false when there was no memory even to say so.  With new_file the file becomes visible
 * to others only if this transaction commits.  Raises no error.
 */
extern bool lbt_registry_publish(const LbtFile *file, Oid oid, const LbtTrained *trained, bool new_file);

/* How a training that was claimed has ended. */
typedef enum LbtEnding
{
	LBT_ENDED,					/* published, or given up: nothing is known of the index */
	LBT_ENDED_BY_ERROR,			/* a passing one: tried again after a pause, which grows from time to time */
	LBT_ENDED_BY_DAMAGE			/* of the file: not tried again on use */
} LbtEnding;

/*
 * Claim the training of this file; false while another live backend is at it.  Give the claim back in the end.
 * Neither raises an error.
 */
extern bool lbt_registry_claim(const LbtFile *file, Oid oid);
extern void lbt_registry_unclaim(const LbtFile *file);

/* The same while an error is handled, which has left no LWLock of ours behind.  It may raise another. */
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

/* False when the registry has no entry. */
extern bool lbt_registry_describe(const LbtFile *file, LbtRegistered *out);

/* Has it one?  True when that cannot be told. */
extern bool lbt_registry_knows(const LbtFile *file);

/* Copy a model out, palloc'd; NULL when there is none. */
extern void *lbt_registry_copy_model(const LbtFile *file, Size *bytes);

/* Forget models: of one file; of all files of a database, or only those of an index but one file.  No errors. */
extern void lbt_registry_drop_file(const LbtFile *file);
extern void lbt_registry_drop_matching(Oid database, Oid oid, const LbtFile *except);

/* A database's entries, for finding those of indexes that are gone. */
typedef struct LbtListed
{
	LbtFile		file;
	Oid			oid;
	TimestampTz changed_at;
} LbtListed;

/* List them, palloc'd, at most max; returns how many.  Fewer when not all can be reached. */
extern int	lbt_registry_list(Oid database, LbtListed **listed, int max);

#endif							/* LBT_REGISTRY_H */
