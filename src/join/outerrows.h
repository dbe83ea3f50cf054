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

/* An index that rows are looked up in, and at which bound. */
typedef struct LbtLookedUp
{
	LbtFeed		feed;
	struct LbtOuterRows *rows;
	ExprState  *key[LBT_CODE_COLUMNS];	/* of columns, constants, parameters */
	AttrNumber	old[LBT_CODE_COLUMNS];	/* or columns of the target's old row */
	Oid			type[LBT_CODE_COLUMNS];
	uint32		nulls;			/* keys that may be NULL: the last, a bound */
} LbtLookedUp;

/* A join looks rows up in one index, a write in several. */
typedef struct LbtOuterRows
{
	CustomScanState *node;
	int			nindexes;
	LbtLookedUp *index;

	uint64		at;
	uint64		end;
	uint64		base;			/* the row in the first slot */
	uint64		origin;			/* the first row since the last rescan */
	bool		ended;			/* the outer side has no more rows */
	bool		by_reference;	/* some used column's values are */
	const List *used;			/* columns that the join uses, from 1 on */
	MemoryContext copies;
	TupleTableSlot *slot[LBT_OUTER_ROWS];	/* from base on, NULL: not made yet */

	Relation	target;			/* of an UPDATE, whose old rows are copied: */
	AttrNumber	row_id;			/* ... by this column */
	HeapTuple	old[LBT_OUTER_ROWS];	/* ... as slot; NULL: not known */
} LbtOuterRows;

/*
 * Open what a plan node looks its rows up in, in the query's memory context.
 * None of those that are gone, not valid, or no longer served, or have nothing
 * to look up by: then nindexes may be 0.  Call lbt_outer_close() in any case.
 */
extern void lbt_outer_open(LbtOuterRows *rows, CustomScanState *node);
extern void lbt_outer_close(LbtOuterRows *rows);

/* The place of a row's copy. */
static inline TupleTableSlot **
lbt_outer_slot(LbtOuterRows *rows, uint64 number)
{
	return &rows->slot[(number - rows->base) % LBT_OUTER_ROWS];
}

/* Read and copy a row; false if there is none, or no memory left for it. */
extern bool lbt_outer_read(LbtOuterRows *rows);

/* The next row is asked for: free what the last one's copy points to. */
extern void lbt_outer_passed(LbtOuterRows *rows);

/* Forget all rows: a rescan follows, or the end. */
extern void lbt_outer_restart(LbtOuterRows *rows);

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
