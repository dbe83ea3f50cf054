/*
 * outerrows.h - the rows that a look-ahead node has read, and what it looks
 * them up in: one feed (ahead/feed.h) for each index.
 *
 *    rows   ... at - 1     at         at + 1 ... end - 1    end ...
 *               passed on  comes now  read and copied       not read yet
 *
 * Rows are numbered from the first one on, across rescans.  A feed that asks
 * for the key of a row that is not read yet makes it be read.  The outer
 * side's slot is good for one row only, so rows are copied: the columns that
 * are used, the others being NULL.
 */
#ifndef LBT_OUTERROWS_H
#define LBT_OUTERROWS_H

#include "postgres.h"

#include "ahead/feed.h"
#include "executor/executor.h"

/* Rows that can be there at a time: of two batches of a feed. */
#define LBT_OUTER_ROWS (2 * LBT_BATCH)

/* The same if they go to partitions, of which so many indexes are opened. */
#define LBT_ROUTED_ROWS 1024
#define LBT_ROUTED_INDEXES 128

/* A partition of what rows are looked up in, or all of it. */
typedef struct LbtPart
{
	Oid			table;			/* InvalidOid: all */
	bool		opened;			/* its indexes are, from this one on: */
	int			first;
	int			nindexes;
	uint64		nrows;			/* that have been read */
	uint64		coming;			/* the next one's item */
} LbtPart;

typedef struct LbtOuterRow
{
	TupleTableSlot *slot;		/* its copy; NULL: not made yet */
	HeapTuple	old;			/* the target's row; NULL: not known */
	LbtPart    *part;			/* where it goes, or NULL ... */
	uint64		item;			/* ... and its number for the feeds there */
} LbtOuterRow;

/* An index that rows are looked up in, and at which bound. */
typedef struct LbtLookedUp
{
	LbtFeed		feed;
	struct LbtOuterRows *rows;
	LbtPart    *part;			/* whose rows are looked up */
	uint64		row;			/* of it, found last */
	ExprState  *key[LBT_CODE_COLUMNS + 1];	/* of columns, constants,
											 * parameters; the end's follows */
	AttrNumber	old[LBT_CODE_COLUMNS];	/* or columns of the target's old row */
	Oid			type[LBT_CODE_COLUMNS + 1];
} LbtLookedUp;

/* A join looks rows up in one index, a write in several. */
typedef struct LbtOuterRows
{
	CustomScanState *node;
	int			nindexes;
	LbtLookedUp *index;
	struct LbtRoute *route;		/* NULL: all rows are of the only part */
	LbtPart    *part;
	int			nparts;
	int			nopened;		/* of these, with indexes */
	uint64		plain;			/* rows that nobody looked at */
	const LimitState *limit;	/* above the node; or NULL */
	LbtPause	nowhere;		/* while rows go to none of the parts with
								 * feeds, or to ones that pause */
	uint64		posted;			/* none of the rows since then, which have been
								 * looked at, is looked up */

	uint64		at;
	uint64		end;
	uint64		base;			/* the row in the first slot */
	uint32		nfilled;		/* slots, since the last rescan, at most */
	uint64		origin;			/* the first row since the last rescan */
	uint64		middle;			/* see move_window_on() */
	uint64		turn;
	bool		ended;			/* the outer side has no more rows */
	bool		by_reference;	/* some used column's values are */
	const List *used;			/* columns that the join uses, from 1 on */
	MemoryContext copies;
	uint32		nrows;			/* a power of 2 */
	LbtOuterRow *row;			/* from base on */

	Relation	target;			/* of an UPDATE, whose old rows are copied: */
	AttrNumber	row_id;			/* ... by this column */
	LbtTally	old_pages;		/* ... those that were asked for */
} LbtOuterRows;

/*
 * Open what a plan node looks its rows up in, in the query's memory context.
 * None of those that are gone, not valid, or no longer served, or have nothing
 * to look up by: then nindexes may be 0.  Call lbt_outer_close() in any case.
 */
extern void lbt_outer_open(LbtOuterRows *rows, CustomScanState *node);
extern void lbt_outer_close(LbtOuterRows *rows);

/*
 * The number by which a part's feeds know the next row, while none is there:
 * of its rows and those that nobody looked at, as pauses count them.
 */
static inline uint64
lbt_outer_item(const LbtOuterRows *rows, const LbtPart *part)
{
	return rows->plain + part->nrows;
}

/*
 * The copy of the row that comes now, looked up ahead; NULL at the end.  Frees
 * what the last one's points to.  Sets *pauses if nobody looks this one up,
 * for now or at all, and none after it is there.
 */
extern TupleTableSlot *lbt_outer_row(LbtOuterRows *rows, bool *pauses);

/* Forget all rows. */
extern void lbt_outer_restart(LbtOuterRows *rows);

/*
 * All rows have come: the first time, free what they took.  There may be a
 * thousand such nodes below an Append, which ends none before the others.
 */
extern void lbt_outer_end(LbtOuterRows *rows);

/* The outer side's next row, not copied; NULL at its end. */
static inline TupleTableSlot *
lbt_outer_next(LbtOuterRows *rows)
{
	TupleTableSlot *row;

	if (unlikely(rows->ended))
		return NULL;
	row = ExecProcNode(outerPlanState(rows->node));
	rows->ended = TupIsNull(row);
	return rows->ended ? NULL : row;
}

#endif							/* LBT_OUTERROWS_H */
