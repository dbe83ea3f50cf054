/*
 * registry.h - where models live: shared memory, and this backend's view of it.
 *
 * Models are found by (database, tablespace, relfilenumber): a rebuilt index starts without one.  A
 * published model is immutable but for its buffer hints.  See registry.c for the locking protocol.
 */
#ifndef LBT_REGISTRY_H
#define LBT_REGISTRY_H

#include "postgres.h"

#include "access/xlogdefs.h"
#include "datatype/timestamp.h"
#include "learn/keyspec.h"
#include "learn/settings.h"
#include "model/model.h"
#include "port/atomics.h"
#include "storage/block.h"

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
	LBT_DAMAGED,				/* separators out of order, or a page that is none: final for this file */
	LBT_FAILED,					/* training ended in another error, and will be tried again */
	LBT_NOT_PAYING				/* predictions failed so often that descents cost less */
} LbtState;

/* What happened to lookups of one index. */
typedef enum LbtEvent
{
	LBT_EV_LOOKUP,				/* searches by our engine */
	LBT_EV_VERIFIED,			/* ... answered by the predicted leaf or a right neighbour */
	LBT_EV_MOVED_RIGHT,			/* ... of these, by a right neighbour */
	LBT_EV_NO_MODEL,			/* ordinary descents: there was no model */
	LBT_EV_BAD_BLOCK,			/* ... predicted block outside the file */
	LBT_EV_BAD_PAGE,			/* ... not a live leaf with data */
	LBT_EV_LOW,					/* ... position may lie left of the leaf */
	LBT_EV_HIGH,				/* ... position too far right of the leaf */
	LBT_EV_DELEGATED,			/* scans given to nbtree's own engine */
	LBT_EV_PREFETCHED,			/* leaves brought in ahead of need */
	LBT_EV_INSERT,				/* inserts that asked the model */
	LBT_EV_INSERT_PLACED,		/* ... put on the predicted leaf or a right neighbour */
	LBT_EV_INSERT_MOVED,		/* ... of these, on a right neighbour */
	LBT_EV_INSERT_FULL,			/* ... left to nbtree: the leaf was right, but had no room */
	LBT_EV_INSERT_EQUAL,		/* ... left to nbtree: an equal key where it has to be unique */
	LBT_EV_INSERT_FALLBACK,		/* ... left to nbtree: not proven */
	LBT_EV_SPLIT,				/* leaves split by inserts that had asked the model */
	LBT_EV_PAGE_DELETED,		/* by VACUUM */
	LBT_EV_TRAINING,
	LBT_NEVENTS
} LbtEvent;

/* The first of them are a scan's doing. */
#define LBT_SCAN_EVENTS (LBT_EV_PREFETCHED + 1)

/* The leaf that this backend inserted into last, and which codes are likely to belong there too. */
typedef struct LbtLastLeaf
{
	BlockNumber block;			/* InvalidBlockNumber: none */
	Buffer		buffer;
	uint64		lo;
	uint64		hi;
} LbtLastLeaf;

/*
 * This backend's view of one index.  Lives at least until the end of the transaction; that of a
 * temporary index in the memory context of the one who asked for it.
 */
typedef struct LbtIndex
{
	LbtFile		file;			/* hash key */
	Oid			oid;			/* the index */
	bool		shareable;		/* models can exist: not temporary, shared memory there */
	bool		dirty;			/* on the list of indexes with events to flush */
	LbtState	state;
	uint64		generation;		/* of the registry, when state and model were looked up */
	LbtModel	model;			/* valid while state is LBT_READY */
	TimestampTz again_at;		/* no use to ask for a training before; 0: it may be */
	BlockNumber nblocks;		/* the file has at least this many; 0 not asked yet */
	BlockNumber trained_blocks; /* the file's size when it was trained */
	Size		model_bytes;	/* of the model, when LBT_READY or LBT_EVICTED */
	TimestampTz changed_at;		/* when the state or model was registered */
	XLogRecPtr	image_lsn;		/* of the metapage when its image was written; 0: not known */
	uint32		misses;			/* fallbacks and right-moves since the last report of a long statement */
	uint32		splits;			/* by this backend, since changed_at */
	uint64		options_at;		/* lbt_index_options_generation when they were looked up; 0: again */
	LbtIndexOptions options;
	bool		learned;		/* use a model in this session */
	const char *why_not;		/* a constant string, when not learned */
	int			retrain_splits; /* splits that ask for a training; -1: the default share */
	uint32		last_slot;		/* predicted by the last lookup; any value is safe */
	LbtLastLeaf last;
	uint16		insert_debt;	/* of late, inserts that nbtree had to do after all; see insert.c */
	uint16		insert_skip;	/* inserts left to nbtree from the start */
	uint16		leaf_items;		/* of the leaf seen last: where to prefetch */
	uint16		leaf_bytes;
	LbtKeySpec	keyspec;
	uint64		events[LBT_NEVENTS];	/* since the view was made */
	uint64		flushed[LBT_NEVENTS];	/* of these, in the shared totals or forgotten */
	struct LbtIndex *next_dirty;
} LbtIndex;

/* What happened to an index since its last training, in all backends, as far as they have said. */
typedef struct LbtSince
{
	uint64		predictions;	/* of lookups and inserts */
	uint64		moved;			/* ... that were a right neighbour's */
	uint64		fallbacks;		/* ... that failed */
	uint64		splits;
	uint64		deleted;		/* pages */
} LbtSince;

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
	const LbtLeaf *image_leaves;	/* for the image, which has no tree of codes; NULL: the leaves */
	BlockNumber blocks;			/* the file's size */
	uint32		fingerprint;	/* of the leaves' blocks in order: has anything changed? */
	XLogRecPtr	image_lsn;		/* of the metapage with the model's image */
} LbtTrained;

/* What the registry knows of a file, for display. */
typedef struct LbtRegistered
{
	LbtState	state;
	TimestampTz changed_at;
	LbtSince	since;
	LbtModelHeader header;		/* when LBT_READY */
} LbtRegistered;

/* In _PG_init. */
extern void lbt_registry_declare(void);

/*
 * Attach this backend to the shared memory; false where there is none, or it cannot be had.  Raises no error, and does
 * what lbt_registry_doom() has put off.  Not after the end of a transaction.
 */
extern bool lbt_registry_attach(void);

/* This backend's view of an open index, not yet looked up again. */
extern LbtIndex *lbt_index_get(Relation rel);

/*
 * Look the index up in the registry.  No lock is held on return.  Raises no error: where shared memory cannot be
 * mapped there is no model (LBT_NO_MEMORY), for a while.
 */
extern void lbt_index_refresh(LbtIndex *index);

extern pg_atomic_uint64 *lbt_registry_generation;

/* Bring the view up to date: one read of a rarely written cache line when nothing changed. */
static inline void
lbt_index_update(LbtIndex *index)
{
	if (index->shareable &&
		unlikely(index->generation != pg_atomic_read_u64(lbt_registry_generation)))
		lbt_index_refresh(index);
}

/* Remember in the model which buffer a slot's block is in.  Cheap when the model is superseded. */
extern void lbt_index_set_hint(LbtIndex *index, uint32 slot, int32 buffer);

/*
 * Publish what a training found.  Returns the state registered: LBT_TOO_LARGE or LBT_NO_MEMORY when
 * there was no room.  With new_file the file becomes visible to others only if this transaction commits.
 */
extern LbtState lbt_registry_publish(LbtIndex *index, const LbtTrained *trained, bool new_file);

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
extern bool lbt_registry_claim(LbtIndex *index);
extern void lbt_registry_unclaim(LbtIndex *index);

/* A training has come to nothing: no further one is asked for during a pause, which grows from time to time. */
extern void lbt_registry_postpone(LbtIndex *index);

/* The same while an error is handled, which has left no LWLock of ours behind.  It may raise another. */
extern void lbt_registry_unclaim_after_error(LbtIndex *index, LbtEnding ending);

/*
 * Is there anything in shared memory about this file, or counts of the index of this OID?  Attaches.  True when it
 * cannot be told.
 */
extern bool lbt_registry_knows(const LbtFile *file, Oid oid);

/* False when the registry has no entry. */
extern bool lbt_registry_describe(LbtIndex *index, LbtRegistered *out);

/* Copy a model out, palloc'd; NULL when there is none. */
extern void *lbt_registry_copy_model(LbtIndex *index, Size *bytes);

/* Forget models: of one file; of all files of a database, or only those of an index but one file.  No errors. */
extern void lbt_registry_drop_file(const LbtFile *file);
extern void lbt_registry_drop_matching(Oid database, Oid oid, const LbtFile *except);

/* What is to be forgotten when shared memory may be looked at again. */
typedef struct LbtDoomed
{
	LbtFile		file;			/* its model; a database alone: nothing */
	Oid			oid;			/* the index whose counts go, too, or (InvalidOid) all of the database's */
	bool		counts;
	TimestampTz wanted_since;	/* not that: its model is wanted, made since this time; 0: no */
	struct LbtDoomed *next;
} LbtDoomed;

/*
 * Forget something later, or ask for a training: for the end of transactions, when nothing may be mapped.  Takes over the node, which is in
 * TopMemoryContext.  Done by the next one of this process who attaches, and at its exit.
 */
extern void lbt_registry_doom(LbtDoomed *doomed);

/* A database's entries, for finding those of indexes that are gone. */
typedef struct LbtListed
{
	LbtFile		file;
	Oid			oid;
	TimestampTz changed_at;
} LbtListed;

/* List them, palloc'd, at most max; returns how many.  Fewer when not all can be reached. */
extern int	lbt_registry_list(Oid database, LbtListed **listed, int max);

/* Bytes of all models; and whether as many more would still be within the limit.  No dsa calls. */
extern uint64 lbt_registry_bytes(void);
extern bool lbt_registry_has_room(Size bytes);

/*
 * Has the least recently used model been idle for a minute?  One look through all of them a second, by whichever
 * process asks first; the others are told no.
 */
extern bool lbt_registry_has_idle(void);

/* At the end of a transaction, when no scan is open: forget views if they have become many. */
extern void lbt_views_trim(void);

#endif							/* LBT_REGISTRY_H */
