/*
 * registry_internal.h - the registry's shared memory, for the files that share it: registry.c (entries and
 * views), modelmem.c (the models' memory), demand.c (what wants training), statfile.c (counts in a file).
 */
#ifndef LBT_REGISTRY_INTERNAL_H
#define LBT_REGISTRY_INTERNAL_H

#include "learn/registry.h"

#include "lib/dshash.h"
#include "storage/lwlock.h"
#include "utils/dsa.h"

typedef struct LbtControl
{
	int			tranche;
	LWLock		reclaim;
	pg_atomic_uint64 generation;	/* starts at 1 */
	pg_atomic_uint64 model_bytes;
	pg_atomic_uint64 unreachable_told;	/* TimestampTz of the last word in the log about it (server/guard.h) */
	dshash_table_handle entries;
	dshash_table_handle stats;
	dshash_table_handle workercounts;

	pg_atomic_uint64 idle_looked_at;	/* TimestampTz of the last look for a model that nobody uses */

	/* demand.c's: the launcher of training workers */
	pg_atomic_uint32 launcher;	/* its pid, or 0 */
	pg_atomic_uint32 launcher_proc; /* where its latch is; valid while there is a pid */
	pg_atomic_uint64 launch_tried;	/* TimestampTz of the last attempt to start one */
	pg_atomic_uint32 told_no_worker;	/* said in the log that there was no slot; none since */
	pg_atomic_uint32 workers_connected;
	pg_atomic_uint32 databases_wait;	/* for a worker to be free */

	/* statfile.c's */
	LWLock		stat_file;		/* held to read or write it */
	pg_atomic_uint32 stats_loaded;	/* 0: nobody has read it; 1: somebody does; 2: that is over */
	pg_atomic_uint32 stats_users;	/* processes that may have counts to add */
	pg_atomic_uint64 stats_changes; /* number of changes of the shared totals */
	pg_atomic_uint64 stats_saved;	/* stats_changes, when the file was written last */
	pg_atomic_uint64 stats_tried;	/* TimestampTz of the last attempt to write it */
	pg_atomic_uint32 stats_told;	/* said in the log that it cannot be written; no success since */
} LbtControl;

/* Predictions of late: halved when they have become many, so that what was long ago does not count. */
typedef struct LbtWindow
{
	uint32		predictions;
	uint32		moved;
	uint32		fallbacks;
} LbtWindow;

typedef struct LbtEntry
{
	LbtFile		file;			/* hash key */
	Oid			oid;
	LbtState	state;
	BlockNumber trained_blocks;
	int			trainer;		/* pid of the backend training it now, or 0 */
	dsa_pointer memory;			/* the model, when LBT_READY */
	Size		bytes;
	TimestampTz changed_at;
	pg_atomic_uint64 used_at;	/* TimestampTz; written under the shared partition lock */

	/* demand.c's */
	bool		wanted;			/* the worker is asked to train it */
	TimestampTz attempted_at;	/* when it was trained last, or taken for it */
	TimestampTz not_before;		/* no use to try before this time */
	XLogRecPtr	image_lsn;		/* of the metapage when its image was written; 0: not known */
	uint32		nleaves;		/* of the last model */
	uint32		height;			/* pages on the way of a descent, when it was trained */
	uint32		fingerprint;	/* of the last training's leaves */
	uint8		futile;			/* trainings in a row that found nothing new */
	uint8		failures;		/* trainings in a row that ended in an error, or found no memory */
	uint8		strikes;		/* models in a row that did not pay */
	LbtSince	since;
	LbtWindow	window;
} LbtEntry;

extern LbtControl *lbt_control;
extern dsa_area *lbt_area;
extern dshash_table *lbt_entries;

/*
 * A file's entry, made if need be, with its partition locked exclusively; NULL when there is no memory.
 */
extern LbtEntry *lbt_entry_lock(LbtIndex *index);
extern LbtEntry *lbt_entry_lock_file(const LbtFile *file, Oid oid);

/* modelmem.c */

/*
 * The memory of a locked entry's model, which is about to be taken from it and freed.  Maps it: if that cannot be done,
 * the error comes while nothing has been changed, and the model stays where others find it.
 */
extern dsa_pointer lbt_model_of(const LbtEntry *entry);

/*
 * Free the memory of a model that no entry names any more; without one only the generation is raised.
 * The caller holds no partition lock.
 */
extern void lbt_model_free(dsa_pointer memory, Size bytes);

/*
 * Shared memory for a model, filled in, others evicted if need be; invalid, with the reason in *state,
 * when there is no room.
 */
extern dsa_pointer lbt_model_store(const LbtFile *file, const LbtTrained *trained, Size bytes, LbtState *state);

/* Take a file's model away; its entry stays, to say why.  Nothing happens when there is none. */
extern void lbt_model_evict(const LbtFile *file);

/* demand.c */

/* A training of this locked entry has failed: pause, the longer the more often in a row. */
extern void lbt_demand_pause(LbtEntry *entry);

/* Ask for a training if there has been none since this time. */
extern void lbt_demand_renew(const LbtFile *file, Oid oid, TimestampTz since);

/* A training has been published in this locked entry: what was counted before is settled. */
extern void lbt_demand_settle(LbtEntry *entry, const LbtModelHeader *header, uint32 fingerprint);

#endif							/* LBT_REGISTRY_INTERNAL_H */
