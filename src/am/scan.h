/*
 * scan.h - the state of a scan by our own engine, shared by the scan*.c files.
 *
 * A scan is a sequence of disjoint intervals in index order, one for each probe: one, or with "= ANY" columns
 * one for each combination of their values.  It reads one leaf at a time: the matches of all probes that the
 * leaf serves are copied out under the share lock, the lock is released, and the tuples are handed out from
 * the copy.
 */
#ifndef LBT_SCAN_H
#define LBT_SCAN_H

#include "access/sdir.h"
#include "key/bound.h"
#include "proof/locate.h"

/* A match: an entry of the leaf, or one heap TID of a posting list. */
typedef struct LbtItem
{
	ItemPointerData tid;
	OffsetNumber offset;		/* on the page, when it was read */
	uint16		tuple;			/* offset in LbtLeafCopy.tuples */
	bool		dead;			/* its heap tuple is dead to all */
	Buffer		buffer;			/* its block's, if the row is being fetched: a
								 * hint */
} LbtItem;

/* The values of an "= ANY" column: distinct, in the index's order. */
typedef struct LbtArray
{
	int			column;
	int			n;
	LbtKeyValue *values;
} LbtArray;

/* One of the scan's intervals. */
typedef struct LbtProbe
{
	int64		number;			/* from 0, in index order */
	LbtBound	start;
	LbtBound	end;
} LbtProbe;

/*
 * What a leaf has for the scan: the matches of one or more probes that follow each other.  Of pairs the first is
 * the left side's, the second the right side's: they are indexed by whether the scan goes forward.
 */
typedef struct LbtLeafCopy
{
	bool		valid;
	bool		more[2];		/* may the outermost probe go on there? */
	int64		probe[2];		/* the outermost one served */
	BlockNumber sibling[2];		/* as read under the lock */
	BlockNumber block;
	Buffer		buf;			/* pinned, or invalid: the pin was dropped */
	XLogRecPtr	lsn;			/* as read under the lock, if dropped */
	int			nitems;
	int			capacity;
	int			at;				/* current item */
	LbtItem    *items;			/* in index order */
	char	   *tuples;			/* BLCKSZ bytes, for index-only scans */
} LbtLeafCopy;

/* A way from leaf to leaf: the scan's own, or that of what reads its rows ahead. */
typedef struct LbtWalk
{
	bool		for_rows;
	uint32		slot;			/* a guess: near the leaf read last */
	uint64		searched;		/* the generation of the model that it is of,
								 * or was looked for in */
	int			steps;			/* to siblings, since a probe was located */
	LbtProbe   *probe;			/* the one being read */
} LbtWalk;

typedef struct LbtScan
{
	LbtIndex   *index;
	bool		predicts;		/* served by our engine until the next rescan */
	bool		bitmap;			/* all matches will be wanted */
	bool		asked_training; /* once a scan is enough */
	bool		hands_over;		/* the blocks of rows */
	uint32		hint_start;		/* of the table, when it does */
	bool		any_dead;		/* among the items of cur */
	int			narrays;
	MemoryContext array_context;	/* reset at rescan; or NULL */
	uint8	   *scratch;		/* for keys' encoded values; or NULL */
	void	   *btree;			/* nbtree's scan state; or NULL */
	struct LbtAhead *ahead;		/* scanahead.c's; or NULL */
	LbtWalk		walk;
	struct LbtRows *rows;		/* scanrows.c's; or NULL */
	int64		reads_seen;		/* pgBufferUsage's, at the row handed out
								 * last; or LBT_ROWS_ACTIVE */
	uint64		counts[LBT_SCAN_EVENTS];	/* what became of its lookups */
	LbtLeafCopy cur;
	LbtLeafCopy mark;			/* the marked position, if on another leaf */
	int			mark_at;		/* the marked item, if on this leaf; or -1 */

	/* of use when predicts */
	int64		nprobes;		/* 0 when no tuple can satisfy the keys */
	int			row_column;		/* see lbt_row_matches(); or -1 */
	LbtProbe	probe;			/* the one being read */
	LbtArray	array[LBT_CODE_COLUMNS];
} LbtScan;

/* scankeys.c: the intervals of the scan's keys; false when they are not of a shape we serve. */
extern bool lbt_scan_interval(IndexScanDesc scan, LbtScan *so);

/*
 * scankeys.c: with row_column >= 0, does a tuple between the probe's bounds satisfy the row comparisons that begin with this
 * column?  Only one that has NULLs may not: (2, NULL) is neither above (2, 9) nor below, where (3, NULL) is above.
 */
extern bool lbt_row_matches(const LbtScan *so, TupleDesc tupdesc, IndexTuple itup);

/* scankeys.c: make this the scan's probe of that number, from any other of its probes. */
extern void lbt_probe_go(const LbtScan *so, LbtProbe *probe, int64 number);

/*
 * The number of the first probe behind this one in the scan's direction that may have matches behind a tuple (or
 * be it); nprobes (-1) when there is none.  This one has none there, and the tuple is the next item behind its
 * interval, or the page's high key (pivot).  The probe is left at any.
 */
extern int64 lbt_probe_seek(const LbtScan *so, LbtProbe *probe, TupleDesc tupdesc, IndexTuple itup, bool pivot,
							bool forward);

/*
 * scanahead.c: what a walk will need next.  The caller holds no page lock.  A walk for rows reads by the scan's present
 * view of the index: where the model has changed since, nothing is known.
 *
 * Predict the leaf of a probe that is about to be located, and of some that follow, and fetch their cache
 * lines; perhaps ask for leaves.  What is not known is left to lbt_locate().  True if the predicted leaf has been asked
 * for before.
 */
extern bool lbt_ahead_predict(IndexScanDesc scan, LbtScan *so, LbtWalk *walk, int64 number, bool forward,
							  LbtTarget *target);

/* The walk steps to this sibling: ask for those behind it where that looks useful. */
extern void lbt_ahead_sibling(IndexScanDesc scan, LbtScan *so, LbtWalk *walk, BlockNumber block, bool forward);

/* The scan, which has so->ahead, goes elsewhere, or ends: no leaf is needed ahead any more. */
extern void lbt_ahead_stop(LbtScan *so);

/* The same for good: frees so->ahead, if any. */
extern void lbt_ahead_free(LbtScan *so);

/* The LIMIT of a scan, where its plan has one. */
typedef struct LbtLimit
{
	bool		asked;			/* the plan has been looked through */
	bool		merged;			/* other scans' rows may come instead */
	struct LimitState *state;	/* or NULL; it lasts as long as the scan */
} LbtLimit;

#define LBT_NO_LIMIT PG_INT64_MAX

/*
 * scanlimit.c: how many rows will still be asked of the scan at most, the one that it is about to hand out included;
 * LBT_NO_LIMIT where that is not known.  A hint.  *limit is the scan's, all zero at first.
 */
extern int64 lbt_limit_left(LbtLimit *limit, IndexScanDesc scan);

/* LbtScan.reads_seen while rows are read ahead. */
#define LBT_ROWS_ACTIVE INT64_C(-1)

/*
 * scanrows.c: the scan is about to hand out its current item, and to fetch the row before a block had to be read; or
 * rows are read ahead, and this one's block may be among them.  Sets so->reads_seen.
 */
extern void lbt_rows_ahead(IndexScanDesc scan, LbtScan *so, bool forward);

/* Read no more rows ahead for the scan, which has so->rows. */
extern void lbt_rows_stop(LbtScan *so);

/* The same for good: frees so->rows. */
extern void lbt_rows_free(LbtScan *so);

/*
 * scanleaf.c: read the next leaf with matches in that direction, the first one when so->cur is not valid, into
 * so->cur: no lock held, the pin only where the server's nbtree would keep it.  False, so->cur invalid, when there
 * is none.
 */
extern bool lbt_scan_next_leaf(IndexScanDesc scan, LbtScan *so, ScanDirection dir);

/*
 * scanleaf.c: for the walk's probe and those behind it, what a leaf would give to the scan, into a copy that has no
 * tuples and keeps no pin.  The buffer is pinned and not locked, and given back.  stepped: from a sibling.  False when
 * it is no leaf with items.  Neither the leaf nor what is found there may be right: a hint.
 */
extern bool lbt_scan_look_at_leaf(IndexScanDesc scan, const LbtScan *so, LbtProbe *probe, LbtLeafCopy *copy,
								  Buffer buf, bool stepped, bool forward);

/* Change the current leaf and the marked one over, copies, pins and all. */
static inline void
lbt_scan_swap_mark(LbtScan *so)
{
	LbtLeafCopy cur = so->cur;

	so->cur = so->mark;
	so->mark = cur;
}

/* Leave so->cur, if it is valid: mark dead items, keep the leaf if it holds the mark, else drop its pin. */
extern void lbt_scan_leave(IndexScanDesc scan, LbtScan *so);

extern void lbt_leafcopy_release(LbtLeafCopy *copy);

#endif							/* LBT_SCAN_H */
