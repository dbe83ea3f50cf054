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
#include "search/locate.h"
#include "registry/registry.h"

typedef struct LbtItem
{
	ItemPointerData tid;
	OffsetNumber offset;		/* on the page, when it was read */
	uint16		tuple;			/* offset of the index tuple's copy, for index-only scans */
	bool		dead;			/* its heap tuple is dead to all */
} LbtItem;

/* The values of an "= ANY" column: distinct, in the index's order. */
typedef struct LbtArray
{
	int			column;
	int			n;
	uint64	   *numbers;		/* ordered values; NULL for a column of byte strings */
	LbtKeyValue *strings;
} LbtArray;

/* One of the scan's intervals. */
typedef struct LbtProbe
{
	int64		number;			/* from 0, in index order */
	int			digit[LBT_CODE_COLUMNS];	/* the place in each array; the last one turns fastest */
	LbtBound	start;
	LbtBound	end;
} LbtProbe;

/* What a leaf has for the scan: the matches of one or more probes that follow each other. */
typedef struct LbtLeafCopy
{
	bool		valid;
	bool		more_left;		/* the first probe's interval may go on on the left sibling */
	bool		more_right;		/* the last one's on the right sibling */
	int64		first_probe;
	int64		last_probe;
	Buffer		buf;			/* pinned, or invalid when the pin could be dropped */
	BlockNumber block;
	BlockNumber left;			/* siblings, as read under the lock */
	BlockNumber right;
	XLogRecPtr	lsn;			/* as read under the lock, when the pin was dropped */
	int			nitems;
	int			capacity;
	int			at;				/* current item */
	LbtItem    *items;			/* in index order */
	char	   *tuples;			/* BLCKSZ bytes, for index-only scans */
} LbtLeafCopy;

typedef struct LbtScan
{
	LbtIndex   *index;
	bool		ours;			/* this rescan is served by our engine, not nbtree's */
	bool		nothing;		/* the keys contradict each other, or one is NULL */
	bool		drop_pin;
	bool		bitmap;			/* all matches will be wanted */
	bool		asked_training; /* once a scan is enough */
	int			narrays;
	int64		nprobes;
	LbtProbe	probe;			/* the one being read */
	LbtArray	array[LBT_CODE_COLUMNS];
	MemoryContext array_context;	/* the arrays' memory, reset at rescan; NULL until first needed */
	struct LbtAhead *ahead;		/* scanahead.c's; NULL until first needed */
	uint64		slot_generation;	/* the registry's when slot was right; 0: slot is not known */
	uint32		slot;			/* in the leaf cache, of the leaf read last or one near it */
	int			steps;			/* to siblings, since a probe was located */
	LbtLeafCopy cur;
	LbtLeafCopy mark;			/* marked position, once the scan has left its leaf */
	int			mark_at;		/* marked item while the scan is still on its leaf, or -1 */
	bool		any_dead;		/* among the items of cur, since the scan came to its leaf */
	uint8	   *room;			/* LBT_KEY_ROOM bytes for each scan key, for encoded values; or NULL */
	void	   *btree;			/* nbtree's scan state; NULL until first needed */
	uint64		counts[LBT_SCAN_EVENTS];	/* what the scan did in instrumented statements */
} LbtScan;

/* A place within a column: before the first value >= (past: >) this one. */
typedef struct LbtEdge
{
	bool		set;
	bool		past;
	LbtKeyValue value;
} LbtEdge;

/*
 * Can a key on this column be ours, with an argument of this type (InvalidOid: the column's own) and under this
 * collation?
 */
static inline bool
lbt_key_served(const LbtKeySpec *spec, int column, Oid argtype, Oid collation)
{
	const LbtKeyColumn *c;

	if (column >= spec->ncolumns)
		return false;
	c = &spec->column[column];
	return lbt_keyspec_takes(c, argtype) && (!c->bytes || c->collation == collation);
}

/*
 * Where a key is, after others: nequal leading columns have an equality, and with range_column >= 0 the one behind
 * them has inequalities.
 */
typedef enum LbtKeyPlace
{
	LBT_KEY_NEXT,				/* on the column behind the equalities */
	LBT_KEY_AGAIN,				/* on the last column with an equality: leaves fewer of its values */
	LBT_KEY_ELSEWHERE			/* where we do not serve it */
} LbtKeyPlace;

static inline LbtKeyPlace
lbt_key_place(int nequal, int range_column, int column)
{
	if (column == nequal)
		return LBT_KEY_NEXT;
	return column == nequal - 1 && range_column < 0 ? LBT_KEY_AGAIN : LBT_KEY_ELSEWHERE;
}

/* scankeys.c: the intervals of the scan's keys; false when they are not of a shape we serve. */
extern bool lbt_scan_interval(IndexScanDesc scan, LbtScan *so);

/*
 * scanarray.c.  Take in an array argument: false when it has elements that we do not serve.  The values live in
 * so->array_context.
 */
extern bool lbt_array_take(LbtScan *so, ScanKey key, LbtArray *array);

/* A list of one value. */
extern void lbt_array_of_one(LbtScan *so, int column, const LbtKeyValue *value, LbtArray *array);

/* Keep the values that are in the other list, too; that lie between the edges, where these are set. */
extern void lbt_array_intersect(const LbtKeyColumn *column, LbtArray *array, const LbtArray *other);
extern void lbt_array_narrow(const LbtKeyColumn *column, LbtArray *array, const LbtEdge *lower,
							 const LbtEdge *upper);

extern void lbt_array_value(const LbtArray *array, int at, LbtKeyValue *value);

/*
 * The first probe whose values are not before a tuple's (backward: the last whose are not behind it); nprobes
 * (-1) when there is none.  Those on the way there have no match on the tuple's side of it.
 */
extern int64 lbt_probe_seek(const LbtScan *so, TupleDesc tupdesc, IndexTuple itup, bool pivot, bool forward);

/* Make this the scan's probe of that number, from any other of its probes. */
extern void lbt_probe_go(const LbtScan *so, LbtProbe *probe, int64 number);

/*
 * scanahead.c: what the scan will need next.  The caller holds no page lock.
 *
 * Predict the leaf of a probe that is about to be located, and of some that follow, and fetch their cache
 * lines; perhaps bring leaves into shared buffers.  What is not known is left to lbt_locate().  The target
 * may carry a pin, which lbt_locate() takes over.
 */
extern void lbt_ahead_predict(IndexScanDesc scan, LbtScan *so, int64 number, ScanDirection dir,
							  LbtTarget *target);

/*
 * A sibling that the scan steps to: its buffer, pinned and not locked, when it has been brought in ahead, else
 * InvalidBuffer.  Begins to bring in those behind it where that looks useful.
 */
extern Buffer lbt_ahead_sibling(IndexScanDesc scan, LbtScan *so, BlockNumber block, ScanDirection dir);

/* The sibling is in this buffer, which is locked: where the scan is, and a hint for the next one. */
extern void lbt_ahead_note(IndexScanDesc scan, LbtScan *so, BlockNumber block, Buffer buf);

/* The scan goes elsewhere, or ends: nothing is needed ahead any more; gives back all pins. */
extern void lbt_ahead_stop(LbtScan *so);

/* The same for good: frees so->ahead. */
extern void lbt_ahead_free(LbtScan *so);

/*
 * scanleaf.c.  Both read the first (next) leaf with matches in that direction into so->cur, no lock
 * held, pin as so->drop_pin says; false, so->cur invalid, when there is none.
 */
extern bool lbt_scan_first(IndexScanDesc scan, LbtScan *so, ScanDirection dir);
extern bool lbt_scan_step(IndexScanDesc scan, LbtScan *so, ScanDirection dir);

/* Leave so->cur: mark dead items, keep the leaf if it holds the mark, else drop its pin. */
extern void lbt_scan_leave(IndexScanDesc scan, LbtScan *so);

extern void lbt_leafcopy_release(LbtLeafCopy *copy);

/* scankill.c: set LP_DEAD on the entries of so->cur whose items are dead, where that is still safe. */
extern void lbt_scan_kill(IndexScanDesc scan, LbtScan *so);

#endif							/* LBT_SCAN_H */
