/*
 * registry.h - what is in shared memory: models, what is known of their indexes, demands for training, and counts.
 *
 *     control block              LbtControl, in the main segment, or (17 and later, where the library is not preloaded)
 *         |                      in a named one of its own
 *         +-- dsa area           grows by DSM segments
 *               +-- entries      LbtFile -> LbtEntry: each file's state, and where its model is
 *               +-- totals       (database, index) -> LbtStats: its counts
 *               +-- models       the bytes that model/model.h describes, within learnedbtree.max_model_memory
 *
 * Generations and reclaim.  A published model is immutable but for its buffer hints.
 *
 *     who replaces it              who reads it (no lock, no write)          who writes a buffer hint
 *       entry changed, locked        view's generation = control's?            reclaim, shared
 *       control's generation + 1       no:  lbt_index_refresh()                view's generation = control's?
 *       reclaim, exclusively           yes: read the model                       no:  leave it
 *       memory freed                 page decides                                yes: write
 *
 * An entry is read and changed under its hash partition's lock.  The generation is raised after every change and before
 * the memory of a superseded model is freed, so a backend whose view carries the current generation holds pointers to a
 * live model.
 *
 * Between comparing generations and reading, a model may be freed and its memory reused.  What a lookup then reads is
 * garbage, but stays mapped and is bounded, and the leaf decides (src/README, "Shared models").  Writers of buffer hints
 * cannot be so careless, hence reclaim.
 *
 * Lock order: hash partition, then dsa's own locks; reclaim, then dsa's own locks.  A partition lock and reclaim are
 * never held together, nor is one of them together with the workers' lock.
 *
 * Functions need lbt_registry_attach() to have succeeded, but for those of lifetime.c.  They
 * raise no error, unless they say so; the caller holds no LWLock.
 */
#ifndef LBT_REGISTRY_H
#define LBT_REGISTRY_H

#include "postgres.h"

#include "datatype/timestamp.h"
#include "lib/dshash.h"
#include "model/model.h"
#include "port/atomics.h"
#include "registry/settings.h"
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
	LBT_NO_MEMORY,				/* shared memory could not be had */
	LBT_DAMAGED,				/* separators out of order: final for the file */
	LBT_FAILED,					/* another error: it will be tried again */
	LBT_NOT_PAYING				/* descents cost less than its failures, or
								 * take less time than its lookups */
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
	LBT_EV_PREFETCHED,			/* leaves brought in ahead of need */
	LBT_EV_ROWS_PREFETCHED,		/* blocks of the table, too */
	LBT_EV_INSERT,				/* inserts that asked the model */
	LBT_EV_INSERT_PLACED,		/* ... put where a prediction led to */
	LBT_EV_INSERT_MOVED,		/* ... of these, on a right neighbour */
	LBT_EV_INSERT_FULL,			/* ... left to nbtree: right leaf, no room */
	LBT_EV_INSERT_EQUAL,		/* ... left to nbtree: equal key in the way */
	LBT_EV_INSERT_FALLBACK,		/* ... left to nbtree: not proven */
	LBT_EV_SPLIT,				/* leaves split by inserts that asked */
	LBT_EV_PAGE_DELETED,		/* by VACUUM */
	LBT_EV_TRAINING,
	LBT_NEVENTS
} LbtEvent;

/* The first of them are a scan's doing. */
#define LBT_SCAN_EVENTS (LBT_EV_ROWS_PREFETCHED + 1)

/* Totals of one index, by (database, oid): they survive REINDEX. */
typedef struct LbtStats
{
	Oid			database;		/* hash key: these two */
	Oid			oid;
	TimestampTz last_trained;	/* 0: never since the last reset */
	TimestampTz reset_at;		/* 0: never */
	uint64		events[LBT_NEVENTS];
} LbtStats;

#define LBT_STATS_KEY_BYTES offsetof(LbtStats, last_trained)

/* A background worker's place, taken while it has a process, or until a time. */
typedef struct LbtWorker
{
	Oid			database;
	int			pid;			/* 0: no process */
	struct Latch *latch;		/* its process's */
	TimestampTz until;
	bool		refused;		/* its process could not connect */
} LbtWorker;

typedef struct LbtControl
{
	int			tranche;
	LWLock		reclaim;
	LWLock		workers_lock;	/* of workers */
	LbtWorker	workers[LBT_WORKERS_LIMIT];
	pg_atomic_uint64 generation;	/* starts at 1 */
	pg_atomic_uint64 model_bytes;

	/* Times; 0: never. */
	pg_atomic_uint64 unreachable_told;	/* said in the log (server/guard.h) */
	pg_atomic_uint64 no_slot_at;	/* for a worker; none has come since */
	dshash_table_handle entries;
	dshash_table_handle totals;
} LbtControl;

/* The two ways to a leaf, which are compared by the clock. */
typedef enum LbtWay
{
	LBT_BY_MODEL,				/* predicted, and descended where that failed */
	LBT_BY_DESCENT,
	LBT_NWAYS
} LbtWay;

/* How long samples took, each of some lookups: nanoseconds a lookup. */
typedef struct LbtTimes
{
	double		n;
	double		sum;
	double		squares;
} LbtTimes;

/* What happened to an index since its last training, in all backends, as far as they have said. */
typedef struct LbtSince
{
	uint64		predictions;	/* of lookups and inserts */
	uint64		moved;			/* ... that were a right neighbour's */
	uint64		fallbacks;		/* ... that failed */
	uint64		useless;		/* ... right, but nbtree had to insert */
	uint64		splits;
	uint64		deleted;		/* pages */
	LbtTimes	times[LBT_NWAYS];	/* of lookups by the one model */
} LbtSince;

typedef struct LbtEntry
{
	LbtFile		file;			/* hash key */
	Oid			oid;
	LbtState	state;
	BlockNumber trained_blocks; /* the file's size when it was trained */
	int			trainer;		/* pid of who is training it now, or 0 */
	dsa_pointer memory;			/* the model, when LBT_READY */
	Size		bytes;
	TimestampTz changed_at;
	pg_atomic_uint64 used_at;	/* written under the shared partition lock */

	/* demand.c's */
	bool		wanted;			/* the worker is asked to train it */
	TimestampTz attempted_at;	/* when it was trained, or taken for it */
	int			rest_ms;		/* until the next one, after what it took */
	TimestampTz not_before;		/* no use to try before this time */
	uint32		nleaves;		/* of the last model */
	uint32		height;			/* pages on the way of a descent */
	uint32		fingerprint;	/* of the last training's leaves */
	uint8		futile;			/* trainings in a row that found nothing new */
	uint8		failures;		/* trainings in a row that failed */
	uint8		strikes;		/* models in a row that did not pay */
	uint8		slow;			/* ... by the clock */
	LbtSince	since;
} LbtEntry;

/* NULL until this process has attached. */
extern LbtControl *lbt_control;
extern dsa_area *lbt_area;
extern dshash_table *lbt_entries;
extern dshash_table *lbt_totals;

/* ---- lifetime.c: shared memory, and models of files that transactions make and remove ---- */

/* In _PG_init: ask the server for the shared memory; see the ends of transactions. */
extern void lbt_shmem_init(void);
extern void lbt_xact_init(void);

/*
 * Attach this backend to the shared memory; false where there is none, or it cannot be had.  Does what ended
 * transactions have put off.  Not after the end of a transaction.
 */
extern bool lbt_registry_attach(void);

/*
 * This transaction made the index's file.  A training publishes its model before the commit (nobody else knows the file
 * yet).  An abort forgets it, a commit those of the files that it replaces.  May raise errors, as those below.
 */
extern void lbt_xact_created(const LbtFile *file, Oid oid);

/* ---- registry.c: models ---- */

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

/*
 * Publish what a training found; false when there was no memory even to say so.  With new_file the file becomes visible
 * to others only if this transaction commits.
 */
extern bool lbt_registry_publish(const LbtFile *file, Oid oid, const LbtTrained *trained, bool new_file);

/* How a training that was claimed has ended. */
typedef enum LbtEnding
{
	LBT_ENDED,					/* published, or given up */
	LBT_ENDED_BY_ERROR,			/* tried again after a pause, which grows */
	LBT_ENDED_BY_DAMAGE			/* of the file: not tried again on use */
} LbtEnding;

/* Claim the training of this file; false while another live backend has it.  Give the claim back in the end. */
extern bool lbt_registry_claim(const LbtFile *file, Oid oid);
extern void lbt_registry_unclaim(const LbtFile *file, LbtEnding ending);

/* The same while an error is handled, which has left no LWLock of ours behind.  May raise another. */
extern void lbt_registry_unclaim_after_error(const LbtFile *file, LbtEnding ending);

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

/* ---- demand.c: when to train again, and by whom ---- */

/* Of a locked entry: a training is being published, and what was counted before is settled; or one has failed. */
extern void lbt_policy_settle(LbtEntry *entry, LbtState state, const LbtModelHeader *header,
							  uint32 fingerprint);
extern void lbt_policy_pause(LbtEntry *entry);

/*
 * Report an index's events, which have not been reported before, to the retrain policy, mark the index as used, and have
 * a worker started where a training is wanted.  True when there is none to be had: train here, or do without.  May raise
 * errors.  The index is told, as its model may be that of another's file, which an extension has given to it.  times are
 * those of lookups by the model that was registered at changed_at, and are left out where it is another one by now.
 */
extern bool lbt_demand_report(const LbtFile *file, Oid oid, const uint64 *events, const LbtTimes *times,
							  TimestampTz changed_at, int retrain_splits);

/* Do lookups by the model take longer than descents, beyond doubt? */
extern bool lbt_policy_slow(const LbtSince *since);

/* Mean time, or 0 when there was no sample. */
static inline double
lbt_mean_ns(const LbtTimes *times)
{
	return times->n > 0 ? times->sum / times->n : 0;
}

/*
 * Ask for a training of an index that may have no model yet.  It waits for the pause after a failed training.  False when
 * no worker is available.
 */
extern bool lbt_demand_raise(const LbtFile *file, Oid oid);

/*
 * For a worker: take the demand of one index of its database.  It is not given out again before learnedbtree.naptime has
 * passed, and a multiple of what the training takes.  False when there is nothing to do now: in *next_in milliseconds there
 * will be; -1: not for a few seconds.
 */
extern bool lbt_demand_take(LbtFile *file, Oid *oid, int *next_in);

/* What was taken could not be served: raise it again for so many milliseconds from now.  May raise errors. */
extern void lbt_demand_defer(const LbtFile *file, int ms);

/* Of the databases with demands the next one in turn; the first after InvalidOid, the last is this process's own. */
extern Oid	lbt_demand_next(Oid database);

typedef enum LbtService
{
	LBT_STARTED,				/* there will be a worker */
	LBT_SERVED,					/* there is one, or will be */
	LBT_WAITS,					/* learnedbtree.max_workers serve others */
	LBT_NO_SLOT,				/* for a worker that asks: no background
								 * worker slot is free now */
	LBT_UNSERVED				/* none can be started, or could connect */
} LbtService;

/* Have a worker serve a database.  wake: one that is there already looks for demands at once. */
extern LbtService lbt_worker_start(Oid database, bool wake);

/* For a worker: take the place prepared for it (false: it is not), say that it has connected, and leave: the place's number. */
extern bool lbt_worker_enter(Oid database);
extern void lbt_worker_connected(void);
extern int	lbt_worker_leave(void);

#endif							/* LBT_REGISTRY_H */
