/*
 * control.h - what is in shared memory: the layout that the files of this room share.
 *
 *     control block              LbtControl, in the main segment, or (17 and later, where the library is not preloaded)
 *         |                      in a named one of its own
 *         +-- dsa area           grows by DSM segments
 *               +-- entries      LbtFile -> LbtEntry: each file's state, and where its model is
 *               +-- totals       (database, index) -> LbtStats: its counts
 *               +-- models       the bytes that model/model.h describes
 *
 * registry.c has the protocol: who locks what, and why readers of models need not.
 */
#ifndef LBT_CONTROL_H
#define LBT_CONTROL_H

#include "postgres.h"

#include "access/xlogdefs.h"
#include "datatype/timestamp.h"
#include "lib/dshash.h"
#include "port/atomics.h"
#include "storage/block.h"
#include "storage/lwlock.h"
#include "utils/dsa.h"

/* Models are found by their index's file: a rebuilt index starts without one. */
typedef struct LbtFile
{
	Oid			database;
	Oid			tablespace;
	Oid			number;			/* relfilenumber */
} LbtFile;

typedef enum LbtState
{
	LBT_UNTRAINED = 0,			/* nobody has tried yet */
	LBT_READY,
	LBT_EMPTY,					/* there was no leaf to learn from */
	LBT_TOO_LARGE,				/* over learnedbtree.max_model_memory */
	LBT_EVICTED,				/* dropped to make room for others' models */
	LBT_NO_MEMORY,				/* shared memory could not be had */
	LBT_DAMAGED,				/* separators out of order, or a page that is
								 * none: final for this file */
	LBT_FAILED,					/* training ended in another error, and will
								 * be tried again */
	LBT_NOT_PAYING				/* predictions failed so often that descents
								 * cost less */
} LbtState;

/* What happened to lookups of one index. */
typedef enum LbtEvent
{
	LBT_EV_LOOKUP,				/* searches by our engine */
	LBT_EV_VERIFIED,			/* ... answered by the predicted leaf or a
								 * right neighbour */
	LBT_EV_MOVED_RIGHT,			/* ... of these, by a right neighbour */
	LBT_EV_NO_MODEL,			/* ordinary descents: there was no model */
	LBT_EV_BAD_BLOCK,			/* ... predicted block outside the file */
	LBT_EV_BAD_PAGE,			/* ... not a live leaf with data */
	LBT_EV_LOW,					/* ... position may lie left of the leaf */
	LBT_EV_HIGH,				/* ... position too far right of the leaf */
	LBT_EV_DELEGATED,			/* scans given to nbtree's own engine */
	LBT_EV_PREFETCHED,			/* leaves brought in ahead of need */
	LBT_EV_INSERT,				/* inserts that asked the model */
	LBT_EV_INSERT_PLACED,		/* ... put on the predicted leaf or a right
								 * neighbour */
	LBT_EV_INSERT_MOVED,		/* ... of these, on a right neighbour */
	LBT_EV_INSERT_FULL,			/* ... left to nbtree: the leaf was right, but
								 * had no room */
	LBT_EV_INSERT_EQUAL,		/* ... left to nbtree: an equal key where it
								 * has to be unique */
	LBT_EV_INSERT_FALLBACK,		/* ... left to nbtree: not proven */
	LBT_EV_SPLIT,				/* leaves split by inserts that had asked the
								 * model */
	LBT_EV_PAGE_DELETED,		/* by VACUUM */
	LBT_EV_TRAINING,
	LBT_NEVENTS
} LbtEvent;

/* The first of them are a scan's doing. */
#define LBT_SCAN_EVENTS (LBT_EV_PREFETCHED + 1)

/*
 * Totals of one index, by (database, oid): they survive REINDEX.  Those without an oid say when all of the database's
 * were reset.
 */
typedef struct LbtStats
{
	Oid			database;		/* hash key: these two */
	Oid			oid;
	TimestampTz last_trained;	/* 0: never since the last reset */
	TimestampTz reset_at;		/* 0: never */
	uint64		events[LBT_NEVENTS];
} LbtStats;

#define LBT_STATS_KEY_BYTES offsetof(LbtStats, last_trained)

typedef struct LbtControl
{
	int			tranche;
	LWLock		reclaim;		/* held shared to write into a model,
								 * exclusively to free one */
	pg_atomic_uint64 generation;	/* starts at 1 */
	pg_atomic_uint64 model_bytes;
	pg_atomic_uint64 unreachable_told;	/* TimestampTz of the last word in the
										 * log about it (server/guard.h) */
	pg_atomic_uint64 idle_looked_at;	/* TimestampTz of the last look for a
										 * model that nobody uses */
	dshash_table_handle entries;
	dshash_table_handle totals;

	/* demand.c's: the launcher of training workers */
	pg_atomic_uint32 launcher;	/* its pid, or 0 */
	pg_atomic_uint32 launcher_proc; /* where its latch is; valid while there
									 * is a pid */
	pg_atomic_uint64 launch_tried;	/* TimestampTz of the last attempt to
									 * start one */
	pg_atomic_uint32 told_no_worker;	/* said in the log that there was no
										 * slot; none since */
	pg_atomic_uint32 workers_connected;
	pg_atomic_uint32 databases_wait;	/* for a worker to be free */
} LbtControl;

/* What happened to an index since its last training, in all backends, as far as they have said. */
typedef struct LbtSince
{
	uint64		predictions;	/* of lookups and inserts */
	uint64		moved;			/* ... that were a right neighbour's */
	uint64		fallbacks;		/* ... that failed */
	uint64		splits;
	uint64		deleted;		/* pages */
} LbtSince;

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
	BlockNumber trained_blocks; /* the file's size when it was trained */
	int			trainer;		/* pid of the backend training it now, or 0 */
	dsa_pointer memory;			/* the model, when LBT_READY */
	Size		bytes;
	TimestampTz changed_at;
	pg_atomic_uint64 used_at;	/* TimestampTz; written under the shared
								 * partition lock */

	/* policy.c's */
	bool		wanted;			/* the worker is asked to train it */
	TimestampTz attempted_at;	/* when it was trained last, or taken for it */
	TimestampTz not_before;		/* no use to try before this time */
	uint32		nleaves;		/* of the last model */
	uint32		height;			/* pages on the way of a descent, when it was
								 * trained */
	uint32		fingerprint;	/* of the last training's leaves */
	uint8		futile;			/* trainings in a row that found nothing new */
	uint8		failures;		/* trainings in a row that ended in an error,
								 * or found no memory */
	uint8		strikes;		/* models in a row that did not pay */
	LbtSince	since;
	LbtWindow	window;
} LbtEntry;

/* NULL until this process has attached. */
extern LbtControl *lbt_control;
extern dsa_area *lbt_area;
extern dshash_table *lbt_entries;
extern dshash_table *lbt_totals;

/* In _PG_init: ask the server for the shared memory. */
extern void lbt_shmem_init(void);

/*
 * Attach this backend to the shared memory; false where there is none, or it cannot be had.  Raises no error, and does
 * what ended transactions have put off (xact.h).  Not after the end of a transaction.
 */
extern bool lbt_registry_attach(void);

#endif							/* LBT_CONTROL_H */
