/*
 * view.h - this backend's views of indexes: private memory, found by file, in
 * which a lookup has what it needs without asking shared memory.
 *
 *     registry's generation --compare--> view's: equal, and the pointers lead
 *                               | raised         to a live model
 *                               v
 *     lbt_index_refresh(): looks the entry up under its lock, maps the model
 */
#ifndef LBT_VIEW_H
#define LBT_VIEW_H

#include "postgres.h"

#include "key/keyspec.h"
#include "lib/ilist.h"
#include "registry/models.h"
#include "server/stream.h"
#include "storage/bufmgr.h"

/* A prediction. */
typedef struct LbtTarget
{
	uint64		generation;		/* of the registry; 0: there is none */
	uint32		slot;
	BlockNumber block;
	Buffer		recent;			/* a buffer of this server's, or invalid */
	BlockNumber left;			/* the leaf's left sibling, if it has not
								 * changed; or invalid: nothing is known */
	double		fraction;		/* where in the leaf, from 0 to 1 */
} LbtTarget;

/* The leaf of this backend's last insert, and codes that may belong there. */
typedef struct LbtLastLeaf
{
	BlockNumber block;			/* InvalidBlockNumber: none */
	BlockNumber left;			/* its left sibling then; or invalid */
	uint64		left_end;		/* its keys have no greater code than this */
	Buffer		buffer;
	uint64		lo;
	uint64		hi;
	bool		moved;			/* it is right of the predicted one */
} LbtLastLeaf;

/*
 * A prediction for this backend's next lookup or insert in an index, posted by
 * a feed (ahead/feed.h).  It is taken (proof/locate.c) if the bound or the key
 * has this code.
 */
typedef struct LbtMailbox
{
	LbtTarget	target;			/* of generation 0: empty */
	uint64		code;
	uint64		number;			/* of predictions put in */
	bool		taken;			/* the last of them */
} LbtMailbox;

/* Is the index served in this session? */
typedef struct LbtServing
{
	bool		learned;		/* use a model */
	bool		again;			/* the next scan or insert asks anew */
	uint64		at;				/* lbt_serving_generation */
} LbtServing;

/* What this backend has counted, and not told yet (train/demand.c). */
typedef struct LbtCounts
{
	bool		dirty;			/* on the list of views with events to tell */
	uint32		misses;			/* fallbacks, right-moves, splits; of late */
	uint64		events[LBT_NEVENTS];
	dlist_node	node;
} LbtCounts;

/* What lookups have seen of the tree.  Any values are safe. */
typedef struct LbtSeen
{
	uint32		slot;			/* predicted last */
	uint64		beyond;			/* from this code on, the model's last leaf is
								 * too far left; 0: not known */
	BlockNumber rightmost;		/* the leaf that was; or InvalidBlockNumber */
	Buffer		rightmost_buffer;
	uint16		leaf_items;		/* of the leaf seen last: where to prefetch */
	uint16		leaf_bytes;
} LbtSeen;

/* Where inserts are (am/insert.c, proof/locate.c). */
typedef struct LbtInserting
{
	LbtLastLeaf last;
	uint64		number;			/* of inserts so far */
	LbtPause	pause;			/* in predicting them */
	bool		foreseen;		/* the last one took a feed's prediction */

	/* Leaves of one row's entries, asked for together (am/rowahead.c): */
	bool		asked;			/* the next one's */
	uint64		rows;			/* that came after a read */
	LbtPause	row_pause;		/* ... or are left alone */
	int64		reads;			/* this backend's, at the row before */
} LbtInserting;

/*
 * This backend's view of one index.  Lives at least until the end of the
 * transaction; a temporary index's lives in the caller's memory context.
 */
typedef struct LbtIndex
{
	LbtFile		file;
	bool		shareable;		/* not temporary, shared memory there */

	/* its model, and what the registry says of it */
	LbtState	state;
	uint64		generation;		/* at which state and model were looked up */
	LbtModel	model;			/* valid while state is LBT_READY */
	LbtKeyCode *code;			/* the model's; NULL at first */
	TimestampTz again_at;		/* do not request a training before */
	BlockNumber nblocks;		/* the file has this many or more; 0 unknown */
	BlockNumber trained_blocks; /* the file's size when it was trained */
	Size		model_bytes;	/* when LBT_READY or LBT_EVICTED */
	uint32		scans;			/* since one asked for a training, if any did;
								 * counted while LBT_NOT_PAYING */

	LbtServing	serving;
	LbtSeen		seen;
	LbtMailbox	mailbox;
	LbtInserting inserting;
	LbtCounts	counts;
	uint64		model_since;	/* first generation with this model ... */
	TimestampTz model_of;		/* ... which its entry has got then.  (Here, as
								 * all lookups read what is above.) */
	LbtKeySpec	keyspec;		/* the last, as its end is not allocated */
} LbtIndex;

/* This backend's view of an open index, not yet looked up again. */
extern LbtIndex *lbt_index_get(Relation rel);

/*
 * Ask whether it is served, where serving.at is not the generation any more.
 * Forgets the file's size, too: TRUNCATE makes the file of this transaction's
 * own table anew in place, and invalidates the index's relcache entry.
 */
extern void lbt_update_serving(LbtIndex *index, Relation rel);

/* Look it up.  If memory cannot be mapped, the state is LBT_NO_MEMORY. */
extern void lbt_index_refresh(LbtIndex *index);

/* Update the view: if nothing changed, reads one rarely written cache line. */
static inline void
lbt_index_update(LbtIndex *index)
{
	if (index->shareable &&
		unlikely(index->generation != pg_atomic_read_u64(&lbt_control->generation)))
		lbt_index_refresh(index);
}

/* Is the block in the index's file? */
static inline bool
lbt_in_file(Relation rel, LbtIndex *index, BlockNumber block)
{
	if (block >= index->nblocks)
		index->nblocks = RelationGetNumberOfBlocks(rel);
	return block < index->nblocks;
}

/* Has the view the model that it had at this generation? */
static inline bool
lbt_of_model(const LbtIndex *index, uint64 generation)
{
	return generation >= index->model_since && index->state == LBT_READY;
}

/* ... and is it up to date?  While reclaim is held, the model stays then. */
static inline bool
lbt_same_model(const LbtIndex *index, uint64 generation)
{
	return lbt_of_model(index, generation) &&
		pg_atomic_read_u64(&lbt_control->generation) == index->generation;
}

/*
 * Remember which buffer this block is in, if it is the slot's.  Cheap if
 * superseded.
 */
extern void lbt_index_set_hint(LbtIndex *index, uint32 slot, BlockNumber block, int32 buffer);

/* The leaf is not as the training saw it: what its separator was is moot. */
extern void lbt_index_forget_cut(LbtIndex *index, uint32 slot, BlockNumber block);

/* An index whose model may be shared, and its file; false if there is none. */
extern bool lbt_index_file(Oid relid, LbtFile *file);

/* Views with events to flush.  lbt_mark_dirty() adds one that is not there. */
extern dlist_head lbt_dirty_indexes;
extern void lbt_mark_dirty(LbtIndex *index);

static inline void
lbt_count_many(LbtIndex *index, LbtEvent event, uint64 n)
{
	index->counts.events[event] += n;
	if (unlikely(!index->counts.dirty) && index->shareable)
		lbt_mark_dirty(index);
}

static inline void
lbt_count(LbtIndex *index, LbtEvent event)
{
	lbt_count_many(index, event, 1);
}

/*
 * Count what a tally has come to since the last time: asked for, and the event
 * after it, used.  scan: a scan's own counts, or NULL.
 */
static inline void
lbt_count_tally(LbtIndex *index, LbtEvent asked, LbtTally *tally, uint64 *scan)
{
	uint64		now[] = {tally->asked, tally->used};

	for (int i = 0; i < lengthof(now); i++)
	{
		if (now[i] == tally->told[i])
			continue;
		lbt_count_many(index, asked + i, now[i] - tally->told[i]);
		if (scan != NULL)
			scan[asked + i] += now[i] - tally->told[i];
		tally->told[i] = now[i];
	}
}

/* Count a lookup: LBT_EV_VERIFIED, moved leaves away, or why it descended. */
static inline void
lbt_count_lookup(LbtIndex *index, LbtEvent event, int moved)
{
	index->counts.events[LBT_EV_LOOKUP]++;
	lbt_count(index, event);
	if (event == LBT_EV_NO_MODEL || (event == LBT_EV_VERIFIED && moved == 0))
		return;
	if (event == LBT_EV_VERIFIED)
		lbt_count(index, LBT_EV_MOVED_RIGHT);
	index->counts.misses++;
}

/* At the end of a transaction, with no scan open: forget views if many. */
extern void lbt_views_trim(void);

#endif							/* LBT_VIEW_H */
