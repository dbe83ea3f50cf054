/*
 * newrows.h - rows that a statement has put into a table, and whose keys in
 * some index are needed next, in the order of the rows: items of a feed
 * (ahead/feed.h).
 *
 *     table page   r1  r2  r3  r4  r5 ...      all there
 *     needed       k1  k2                      by entries (copyahead.c), or by
 *                       |   |___|___|          checks (keysahead.h)
 *                       |     asked for ahead
 *                       the row at hand
 *
 * A page of the table is share-locked while it is copied, with no other page
 * locked.  Keys are made from the copy, with no lock and no pin.
 */
#ifndef LBT_NEWROWS_H
#define LBT_NEWROWS_H

#include "postgres.h"

#include "ahead/feed.h"
#include "nodes/execnodes.h"

typedef struct LbtNewRows
{
	LbtFeed		feed;
	CommandId	command;		/* that has put them into the table */
	bool		since;			/* or any later one */
	ItemPointerData *deleted;	/* or those that it has deleted; NULL: new ones */
	uint64		ndeleted;
	LbtTally	pages;			/* of these, that were asked for */
	Relation	table;			/* open in each call */
	AttrNumber	attribute[LBT_CODE_COLUMNS];	/* the table's for each key */
	Oid			type[LBT_CODE_COLUMNS]; /* or InvalidOid: the index's own */
	bool		nulls;			/* columns may be NULL in a key */
	uint64		number;			/* of the row that is needed next */

	uint64		end;			/* the item to be told next */
	BlockNumber block;			/* ... where it is looked for */
	OffsetNumber offset;
	ItemPointerData tid[2 * LBT_BATCH]; /* of items before it, by number */
	int			empty;			/* pages without any, one after the other */
	BlockNumber copied;			/* in page; InvalidBlockNumber: none */
	char	   *page;			/* NULL before the first */
	MemoryContext keys;			/* values of the batch that is made */
} LbtNewRows;

/*
 * For feeds: the next row's key, from (block, offset) on, as far as pages
 * follow each other and are in shared buffers.
 */
extern LbtNext lbt_newrows_next(void *rows, uint64 number, LbtKeyValue *key, uint8 *scratch);

/* The row of item end is looked for from here on. */
static inline void
lbt_newrows_go(LbtNewRows *rows, BlockNumber block, OffsetNumber offset)
{
	rows->block = block;
	rows->offset = offset;
	rows->copied = InvalidBlockNumber;
}

/* ... from the next page on; false if that would have to be read. */
extern bool lbt_newrows_next_page(LbtNewRows *rows);

/* Is a new row after this one, on its page or the next?  Reads none. */
extern bool lbt_newrows_any_after(const LbtNewRows *rows, ItemPointer tid);

static inline ItemPointer
lbt_newrows_tid(LbtNewRows *rows, uint64 number)
{
	return &rows->tid[number % lengthof(rows->tid)];
}

/* Values of a row's columns, in the row; false if one is not in it. */
extern bool lbt_row_values(HeapTuple row, TupleDesc desc, int ncolumns, const AttrNumber *columns,
						   Datum *values, bool *isnull);

/* A copy of the row at this TID, or NULL.  The caller holds no page lock. */
extern HeapTuple lbt_copy_row(Relation table, ItemPointer tid);

/*
 * ---- copyahead.c: rows that COPY has put into the table already ----
 *
 * The statement inserts the entry of the row with this TID.  Posts a
 * prediction for it in the index's mailbox if there is one, and looks for rows
 * after it.  The caller holds no lock.  *rows is NULL before the first call.
 */
extern void lbt_copy_ahead(LbtNewRows **rows, Relation rel, LbtIndex *index, Relation table,
						   ItemPointer tid, IndexInfo *info);

/*
 * ---- rowahead.c: the entries of one row ----
 *
 * The statement inserts the row's entry in rel, and this backend has read
 * blocks since it did so for the row before.  If rel is the first of the
 * table's indexes that all rows enter, asks for the leaves of the row's
 * entries in all of them, so that their reads overlap.  The caller holds no
 * lock.
 */
extern void lbt_row_ahead(Relation rel, LbtIndex *index, Relation table, ItemPointer tid);

#endif							/* LBT_NEWROWS_H */
