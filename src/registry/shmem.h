/*
 * shmem.h - what is in shared memory: models, what is known of their indexes,
 * demands for training, and counts.
 *
 *     control block           LbtControl, in the main segment, or (from 17
 *         |                   on, if the library is not preloaded) a named one
 *         +-- dsa area        grows by DSM segments
 *               +-- entries   (database, index) -> LbtEntry: its file's state
 *               |             and model, its counts
 *               +-- models    the bytes that model/model.h describes, within
 *                             learnedbtree.max_model_memory
 *
 * Generations and reclaim.  Only buffer hints of a published model change.
 *
 *     replacing it               reading (no lock,       writing a buffer hint
 *                                no write)
 *       entry changed, locked      current?                reclaim, shared
 *       control's generation + 1     no:  refresh          current?
 *       reclaim, exclusively         yes: read the model     no:  leave it
 *       memory freed               page decides              yes: write
 *
 *     (current: view's generation = control's; refresh: lbt_index_refresh())
 *
 * An entry is read and changed under its hash partition's lock.  The
 * generation is raised after every change and before the memory of a
 * superseded model is freed, so a backend whose view carries the current
 * generation holds pointers to a live model.
 *
 * src/README, "Shared models", says why a model may be freed while it is read,
 * and in which order locks are taken.
 *
 * models.h and view.h have the functions.  They need lbt_registry_attach() to
 * have succeeded.  They raise no error unless they say so; the caller holds no
 * LWLock.
 */
#ifndef LBT_SHMEM_H
#define LBT_SHMEM_H

#include "postgres.h"

#include "lib/dshash.h"
#include "port/atomics.h"
#include "storage/block.h"
#include "storage/lwlock.h"
#include "utils/dsa.h"
#include "utils/timestamp.h"

/*
 * An index and its file.  A model is of a file, and an entry knows one: so a
 * rebuilt index starts anew, and keeps its counts.  So does the index of a
 * database that comes, copied as files, under the OID of one that was dropped.
 */
typedef struct LbtFile
{
	Oid			database;		/* hash key of entries: these two */
	Oid			index;
	Oid			tablespace;
	Oid			number;			/* relfilenumber */
	uint32		made;			/* tells the database from earlier ones */
} LbtFile;

#define LBT_FILE_KEY_BYTES offsetof(LbtFile, tablespace)

static inline bool
lbt_same_file(const LbtFile *a, const LbtFile *b)
{
	return memcmp(a, b, sizeof(LbtFile)) == 0;
}

typedef enum LbtState
{
	LBT_UNTRAINED = 0,			/* nobody has tried yet */
	LBT_READY,
	LBT_EMPTY,					/* there was no leaf to learn from */
	LBT_TOO_LARGE,				/* over learnedbtree.max_model_memory */
	LBT_EVICTED,				/* dropped to make room for others' models */
	LBT_NO_MEMORY,				/* shared memory was not available */
	LBT_DAMAGED,				/* separators out of order: final for a file */
	LBT_FAILED,					/* another error: it will be tried again */
	LBT_NOT_PAYING,				/* descents cost less than its failures */
	LBT_DEAR_KEYS				/* ... than the sort keys of its texts */
} LbtState;

/* What happened to lookups of one index. */
typedef enum LbtEvent
{
	LBT_EV_LOOKUP,				/* searches by our engine */
	LBT_EV_VERIFIED,			/* ... answered by a prediction */
	LBT_EV_MOVED_RIGHT,			/* ... of these, by a right neighbour */
	LBT_EV_NO_MODEL,			/* ordinary descents: there was no model */
	LBT_EV_BAD_BLOCK,			/* ... predicted block outside the file */
	LBT_EV_BAD_PAGE,			/* ... not a live leaf with data */
	LBT_EV_LOW,					/* ... position may lie left of the leaf */
	LBT_EV_HIGH,				/* ... position too far right of the leaf */
	LBT_EV_DELEGATED,			/* scans given to nbtree's own engine */
	LBT_EV_PREFETCHED,			/* leaves that were missing, asked for ahead */
	LBT_EV_PREFETCHED_USED,		/* ... and then read */
	LBT_EV_ROWS_PREFETCHED,		/* the same of the table's blocks */
	LBT_EV_ROWS_PREFETCHED_USED,
	LBT_EV_INSERT,				/* inserts that asked the model */
	LBT_EV_INSERT_PLACED,		/* ... put where a prediction led to */
	LBT_EV_INSERT_MOVED,		/* ... of these, on a right neighbour */
	LBT_EV_INSERT_FULL,			/* ... left to nbtree: right leaf, no room */
	LBT_EV_INSERT_EQUAL,		/* ... left to nbtree: equal key in the way */
	LBT_EV_INSERT_FALLBACK,		/* ... left to nbtree: not proven */
	LBT_EV_SPLIT,				/* leaves split by inserts that asked */
	LBT_EV_TRAINING,
	LBT_NEVENTS
} LbtEvent;

/* The first of them are a scan's doing. */
#define LBT_SCAN_EVENTS (LBT_EV_ROWS_PREFETCHED_USED + 1)

/* What has been counted of an index, of all its files. */
typedef struct LbtTotals
{
	TimestampTz last_trained;	/* 0: never since the last reset */
	TimestampTz reset_at;		/* 0: never */
	uint64		events[LBT_NEVENTS];
} LbtTotals;

/* Background workers at a time, each of another database. */
#define LBT_WORKERS_LIMIT 64

/* A background worker's place; see train/demand.c. */
typedef struct LbtWorker
{
	Oid			database;
	int			pid;			/* 0: no process */
	TimestampTz until;			/* taken, without a process */
	bool		sweeps;			/* shall look which entries are gone */
} LbtWorker;

typedef struct LbtControl
{
	int			tranche;
	LWLock		reclaim;		/* exclusively: to change the area */
	int			segments;		/* no segment from this on was there before */
	LWLock		workers_lock;	/* of workers */
	LbtWorker	workers[LBT_WORKERS_LIMIT];
	pg_atomic_uint64 generation;	/* starts at 1 */
	pg_atomic_uint64 model_bytes;

	/* Times; 0: never. */
	pg_atomic_uint64 unreachable_told;	/* said in the log (server/guard.h) */
	pg_atomic_uint64 no_slot_told;	/* for a worker: said in the log */
	pg_atomic_uint64 looked_at; /* for idle models */

	pg_atomic_uint32 unswept;	/* entries made since a worker looked last
								 * which of them are gone; ... */
	pg_atomic_uint32 unswept_database;	/* ... of which the last one is */
	pg_atomic_uint32 idle;		/* as many were found, less those evicted
								 * since: may be negative */
	dshash_table_handle entries;
} LbtControl;

/*
 * What all backends have reported of an index since its last training.  What
 * was predicted right, but nbtree had to insert, is no prediction here.
 */
typedef struct LbtSince
{
	uint64		predictions;	/* of lookups and inserts */
	uint64		moved;			/* ... that were a right neighbour's */
	uint64		fallbacks;		/* ... that failed */
	uint64		splits;
} LbtSince;

typedef struct LbtEntry
{
	LbtFile		file;			/* of all below but the totals */
	LbtState	state;
	BlockNumber trained_blocks; /* the file's size when it was trained */
	int			trainer;		/* pid of the process that trains it, or 0 */
	dsa_pointer memory;			/* the model, when LBT_READY */
	Size		bytes;
	TimestampTz changed_at;
	pg_atomic_uint64 used_at;	/* written under the shared partition lock */

	/* when to train it again (train/demand.c) */
	bool		wanted;			/* the worker is asked to train it */
	TimestampTz attempted_at;	/* when it was trained, or taken for it */
	TimestampTz not_before;		/* do not train it before this time */
	uint8		wasted;			/* trainings in a row that brought nothing */
	uint32		nleaves;		/* of the last model */
	uint32		height;			/* pages on the way of a descent */
	LbtSince	since;

	LbtTotals	totals;			/* the last: all else goes with the file */
} LbtEntry;

/* The longest pause after trainings that failed, or brought nothing. */
#define LBT_PAUSE_MAX_MS (60 * 60 * 1000)
#define LBT_PAUSE_WASTED_MS (60 * 1000)

/*
 * Milliseconds until a time that was at most this far ahead when it was
 * stored; 0: it has passed.  One that is further ahead was stored before the
 * clock was set back: it has passed, too.
 */
static inline int64
lbt_ms_until(TimestampTz until, TimestampTz now, int64 longest)
{
	int64		left = TimestampDifferenceMilliseconds(now, until);

	return left <= longest ? left : 0;
}

/* Have ms milliseconds passed since a time that was stored? */
static inline bool
lbt_is_over(TimestampTz since, TimestampTz now, int64 ms)
{
	return lbt_ms_until(TimestampTzPlusMilliseconds(since, ms), now, ms) == 0;
}

/* NULL until this process has attached. */
extern LbtControl *lbt_control;
extern dsa_area *lbt_area;
extern dshash_table *lbt_entries;

/* In _PG_init: ask the server for the shared memory, if it is preloaded. */
extern void lbt_shmem_init(void);

/* Will models work here?  Not if 15 or 16 have not preloaded the library. */
extern bool lbt_shmem_possible(void);

/*
 * Attach this backend to the shared memory; false where none is available.
 * Must not run in commit or abort callbacks.
 */
extern bool lbt_registry_attach(void);

/*
 * Lock the area before memory in it is allocated or freed, an entry added or
 * deleted, with all its segments mapped.  Errors that a change raises are then
 * of making another segment: they leave the area as it was.  May raise errors,
 * too.  Not while the process exits, nor while it holds an entry locked.
 */
extern void lbt_area_lock(void);
extern void lbt_area_unlock(void);

/*
 * A before_shmem_exit() callback, while DSM segments are still mapped.  What
 * comes next in the exit needs the locks.
 */
extern void lbt_registry_leave(int code, Datum arg);

#endif							/* LBT_SHMEM_H */
