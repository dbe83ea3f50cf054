/*
 * scan.h - the state of a scan by our own engine, and what the scan*.c files
 * do for each other.
 *
 * A scan reads one leaf at a time: under the share lock it copies the matches
 * of all probes that the leaf serves, then hands them out.
 */
#ifndef LBT_SCAN_H
#define LBT_SCAN_H

#include "access/sdir.h"
#include "proof/locate.h"

/* A match: an entry of the leaf, or one heap TID of a posting list. */
typedef struct LbtItem
{
	ItemPointerData tid;
	OffsetNumber offset;		/* on the page, when it was read */
	uint16		tuple;			/* offset in LbtLeafCopy.tuples */
	bool		dead;			/* its heap tuple is dead to all */
	Buffer		buffer;			/* hint: its block's, if the row is fetched */
} LbtItem;

static inline bool
lbt_same_block(const LbtItem *a, const LbtItem *b)
{
	return ItemPointerGetBlockNumberNoCheck(&a->tid) == ItemPointerGetBlockNumberNoCheck(&b->tid);
}

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
 * What keys leave of a column that is after one without an equality: an
 * interval, of which only this column's values count, or an array's values.
 */
typedef struct LbtFilter
{
	int			column;
	bool		equal;			/* one value, or NULL, or an array */
	LbtArray	array;			/* n is 0: none */
	LbtProbe	range;
} LbtFilter;

/* A bound that the scan goes on from: some columns of a tuple, then values. */
typedef struct LbtPosition
{
	LbtBound	bound;
	int			ncopied;		/* of the tuple; see lbt_position_bound() */
	IndexTuple	tuple;
} LbtPosition;

/* A run of items on a locked leaf that are matches. */
typedef struct LbtRun
{
	OffsetNumber from;
	OffsetNumber to;			/* the first item after */
} LbtRun;

/*
 * What a leaf has for the scan: the matches of one or more consecutive probes.
 * Index pairs by whether the scan goes forward: the left side's comes first.
 */
typedef struct LbtLeafCopy
{
	bool		valid;
	bool		cut;			/* few of its matches were copied */
	bool		more[2];		/* may the outermost probe go on there? */
	LbtPosition *beyond[2];		/* ... only from here on; or NULL */
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

/* A way from leaf to leaf: the scan's own, or another's, of rows ahead. */
typedef struct LbtWalk
{
	uint32		slot;			/* a guess: near the leaf read last */
	uint64		searched;		/* generation of slot, or of the search */
	int			steps;			/* to siblings, since a probe was located */
	LbtProbe	probe;			/* the one being read */
} LbtWalk;

/* What a scan by groups may spend on its next row, in the planner's units. */
typedef struct LbtBudget
{
	double		cost;
	double		page_cost;		/* of a page read */
	int64		hits;			/* pgBufferUsage's, before */
	int64		reads;
	bool		exceeded;		/* it has given up */
} LbtBudget;

typedef struct LbtScan
{
	LbtIndex   *index;
	bool		predicts;		/* our engine serves it until the rescan */
	bool		bitmap;			/* all matches will be wanted */
	bool		asked_training; /* once a scan is enough */
	int			group_columns;	/* by which groups agree, of each of which few
								 * entries will be wanted; or 0 */
	LbtBudget	budget;			/* ... for each of these */
	int64		group_reads;	/* pgBufferUsage's, before its last seek */
	bool		few;			/* copy few matches of the leaf read next */
	bool		short_groups;	/* a skip ended on its leaf since the last one */
	BlockNumber landed[2];		/* the leaf that a position was on last */
	bool		pins_heap_block;	/* the next row's, for the executor */
	uint32		hint_start;		/* of the table, when it does */
	bool		any_dead;		/* among the items of cur */
	int			narrays;
	MemoryContext array_context;	/* reset at rescan; or NULL */
	uint8	   *scratch;		/* for keys' encoded values; or NULL */
	LbtPosition *go;			/* to go on from; or NULL */
	MemoryContext go_context;	/* values of its bound; or NULL */
	LbtPosition *gone;			/* the last one that filters led to; or NULL */
	bool		gone_forward;	/* ... in this direction */
	LbtFilter  *filter;			/* or NULL */
	void	   *btree;			/* nbtree's scan state; or NULL */
	struct LbtAhead *ahead;		/* scanahead.c's; or NULL */
	struct LbtRows *rows;		/* scanrows.c's, one chunk; or NULL */
	int64		reads_seen;		/* pgBufferUsage's, at the row handed out
								 * last; or LBT_ROWS_ACTIVE */
	uint64		counts[LBT_SCAN_EVENTS];	/* what became of its lookups */
	LbtTally	leaves_ahead;	/* ... and of blocks asked for ahead */
	LbtTally	rows_ahead;
	LbtLeafCopy cur;
	LbtLeafCopy mark;			/* the marked position, if on another leaf */
	int			mark_at;		/* the marked item, if on this leaf; or -1 */

	/* of use when predicts */
	int64		nprobes;		/* 0 when no tuple can satisfy the keys */
	int			row_column;		/* see lbt_row_matches(); or -1 */
	int			nfilters;
	LbtWalk		walk;
	LbtArray	array[LBT_CODE_COLUMNS];
} LbtScan;

/* Count what has become of blocks that were asked for. */
static inline void
lbt_scan_count_ahead(LbtScan *so)
{
	lbt_count_tally(so->index, LBT_EV_PREFETCHED, &so->leaves_ahead, so->counts);
	lbt_count_tally(so->index, LBT_EV_ROWS_PREFETCHED, &so->rows_ahead, so->counts);
}

/* Swap the current leaf and the marked one, with copies and pins. */
static inline void
lbt_scan_swap_mark(LbtScan *so)
{
	LbtLeafCopy cur = so->cur;

	so->cur = so->mark;
	so->mark = cur;
}

/* Does the bound have a value for this column? */
static inline bool
lbt_bound_has(const LbtBound *bound, int column)
{
	return bound->ncolumns > column;
}

/* ---- scankeys.c ---- */

/* Make the keys' intervals; false if we do not serve the keys. */
extern bool lbt_scan_interval(IndexScanDesc scan, LbtScan *so);

/*
 * With row_column >= 0, does a tuple between the probe's bounds satisfy the
 * row comparisons that begin with this column?  One with NULLs may not:
 * (2, NULL) is neither above nor below (2, 9); (3, NULL) is above.
 */
extern bool lbt_row_matches(const LbtScan *so, TupleDesc tupdesc, IndexTuple itup);

/* Compare the places of two bounds that both have column at, equal before. */
extern int	lbt_compare_bounds(const LbtKeySpec *spec, int at, const LbtBound *a,
							   const LbtBound *b);

/* Turn any of the scan's probes into the one with this number. */
extern void lbt_probe_go(const LbtScan *so, LbtProbe *probe, int64 number);

/*
 * Turn it into the first one, in the scan's direction, that has a part after
 * the bound; false if there is none.  *cuts: the bound is within it.
 */
extern bool lbt_probe_after(const LbtScan *so, LbtProbe *probe, const LbtBound *bound,
							 bool forward, bool *cuts);

/*
 * A probe ends on a locked leaf: far is its first item not before the probe's
 * far bound.  Find the first probe after it, in the scan's direction, that may
 * match what comes next there, or is beyond; returns its number, or nprobes
 * (-1) if nothing is.  Leaves the probe at any number.
 */
extern int64 lbt_probe_seek(const LbtScan *so, LbtProbe *probe, TupleDesc tupdesc, Page page,
							OffsetNumber far, bool forward);

/*
 * ---- scanahead.c: the leaves that a walk will need next ----
 *
 * The caller holds no page lock.  A walk for rows uses the scan's present view
 * of the index; once the model has changed, nothing is known.
 */

/*
 * Predict the leaf of a probe about to be located, and of some that follow;
 * fetch their cache lines, and perhaps ask for leaves.  Leaves the unknown to
 * lbt_locate().  True if the predicted leaf was asked for before.
 */
extern bool lbt_ahead_predict(IndexScanDesc scan, LbtScan *so, LbtWalk *walk, int64 number,
							  bool forward, LbtTarget *target);

/* The walk steps to this sibling: ask for those after it if useful. */
extern void lbt_ahead_sibling(IndexScanDesc scan, LbtScan *so, LbtWalk *walk, BlockNumber block,
							  bool forward);

/*
 * The scan is about to look for its next group, or for this bound, which
 * filters have led to: ask for the leaf, and for those of groups after it, if
 * finding the last one has read a block.
 */
extern void lbt_ahead_group(IndexScanDesc scan, LbtScan *so, const LbtBound *at, bool forward);

/* Ask for no more leaves: the scan, which has so->ahead, moves on or ends. */
extern void lbt_ahead_stop(LbtScan *so);

/* Free so->ahead, which has been stopped. */
extern void lbt_ahead_free(LbtScan *so);

/* ---- scanrows.c: the blocks of its next rows ---- */

/* LbtScan.reads_seen while rows are read ahead. */
#define LBT_ROWS_ACTIVE INT64_C(-1)

/*
 * Call this before the scan hands out its current item, if fetching the row
 * before read a block, or if rows are read ahead, as this row's block may be
 * among them.  Sets so->reads_seen.
 */
extern void lbt_rows_ahead(IndexScanDesc scan, LbtScan *so, bool forward);

/* Read no more rows ahead: the scan, which has so->rows, moves on or ends. */
extern void lbt_rows_stop(LbtScan *so);

/* ---- scanskip.c: see there ---- */

/*
 * Reduce n runs on a locked leaf, those of find_matches() in scanleaf.c, to
 * what filters leave of them; returns how many these are.
 */
extern int	lbt_filter_runs(const LbtScan *so, LbtLeafCopy *copy, TupleDesc tupdesc, Page page,
							LbtRun *run, int n, bool forward);

/*
 * A copy of the position that the scan goes on from after so->cur; or NULL.
 * Of a leaf that was cut it is the one that led there, to copy all of it: what
 * was copied comes again.
 */
extern LbtPosition *lbt_position_beyond(const LbtScan *so, bool forward);

/* Keep a bound of which the first columns are the tuple's. */
extern LbtPosition *lbt_make_position(const LbtScan *so, IndexTuple itup, int ncopied,
									  const LbtBound *bound);

/* The context for values that have to be decompressed, emptied. */
extern MemoryContext lbt_go_context(LbtScan *so);

/* The bound of so->go, until the next call.  No lock is held. */
extern void lbt_position_bound(IndexScanDesc scan, LbtScan *so, LbtBound *bound);

/*
 * Extend a bound of the columns before this filter's to where that begins, or
 * ends; while it is one value, by those of the columns behind.  Of a list, by
 * the value that the scan comes to first.
 */
extern void lbt_bound_at_filters(const LbtScan *so, int i, bool end, bool forward,
								 LbtBound *bound);

/*
 * Is so->go after the last position that filters have led to, in the scan's
 * direction?  If not, the index is not in the order of comparisons, as after a
 * change of its collation: by such positions the scan may never end.
 */
extern bool lbt_position_advances(IndexScanDesc scan, LbtScan *so, bool forward);

/* ---- scanleaf.c ---- */

/* What a scan by groups has spent since its budget was set. */
extern double lbt_scan_spent(const LbtScan *so);

/* Is that more than it may?  Then there is no next row. */
extern bool lbt_scan_gives_up(LbtScan *so);

/*
 * Read into so->cur the next leaf with matches in that direction, the first
 * one if so->cur is not valid.  Leaves no lock, and a pin only where the
 * server's nbtree would.  False, so->cur invalid, if there is none.
 */
extern bool lbt_scan_next_leaf(IndexScanDesc scan, LbtScan *so, ScanDirection dir);

/*
 * Copy what a leaf would give to the scan for the walk's probe and those
 * after it; the copy has no tuples and keeps no pin.  Takes the buffer pinned
 * and unlocked, and releases it.  stepped: from a sibling.  False if it is no
 * leaf with items.  A hint: the leaf, or what is there, may be wrong.
 */
extern bool lbt_scan_look_at_leaf(IndexScanDesc scan, const LbtScan *so, LbtProbe *probe,
								  LbtLeafCopy *copy, Buffer buf, bool stepped, bool forward);

/* Leave so->cur, if valid: mark dead items, unpin it or keep it as a mark. */
extern void lbt_scan_leave(IndexScanDesc scan, LbtScan *so);
extern void lbt_leafcopy_release(LbtLeafCopy *copy);

#endif							/* LBT_SCAN_H */
