/*
 * scan.h - the state of a scan by our own engine, shared by the scan*.c files.
 *
 * A scan is the interval between two bounds.  It reads one leaf at a time: the matches are copied out
 * under the share lock, the lock is released, and the tuples are handed out from the copy.
 */
#ifndef LBT_SCAN_H
#define LBT_SCAN_H

#include "access/sdir.h"
#include "learn/bound.h"
#include "learn/registry.h"

typedef struct LbtItem
{
	ItemPointerData tid;
	OffsetNumber offset;		/* on the page, when it was read */
	uint16		tuple;			/* offset of the index tuple's copy, for index-only scans */
	bool		dead;			/* its heap tuple is dead to all */
} LbtItem;

/* The part of the interval on one leaf. */
typedef struct LbtLeafCopy
{
	bool		valid;
	bool		more_left;		/* the interval may go on on the left sibling */
	bool		more_right;
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
	bool		asked_training; /* once a scan is enough */
	LbtBound	start;			/* the interval */
	LbtBound	end;
	LbtLeafCopy cur;
	LbtLeafCopy mark;			/* marked position, once the scan has left its leaf */
	int			mark_at;		/* marked item while the scan is still on its leaf, or -1 */
	bool		any_dead;		/* among the items of cur, since the scan came to its leaf */
	uint8	   *room;			/* LBT_KEY_ROOM bytes for each scan key, for encoded values; or NULL */
	void	   *btree;			/* nbtree's scan state; NULL until first needed */
} LbtScan;

/* scankeys.c: the interval of the scan's keys; false when they are not of a shape we serve. */
extern bool lbt_scan_interval(IndexScanDesc scan, LbtScan *so);

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
