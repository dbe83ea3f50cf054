/*
 * newrows.h - rows that a statement has put into a table, and whose keys in
 * some index are needed next, in the order of the rows.
 *
 *     table page   r1  r2  r3  r4  r5 ...      all there
 *     needed       k1  k2                      by entries (copyahead.c), or by
 *                       |   |___|___|          checks (keysahead.h)
 *                       |     keys, predictions; missing leaves asked for
 *                       the row at hand
 *
 * There are two batches: when half of one has been needed, the next one is
 * begun.  Everything here is a hint.  A page of the table is share-locked
 * while it is copied, with no other page locked.  Keys are made from the copy,
 * so nothing is computed and no catalog read under the lock.  No pin is kept.
 */
#ifndef LBT_NEWROWS_H
#define LBT_NEWROWS_H

#include "postgres.h"

#include "ahead/predict.h"
#include "nodes/execnodes.h"

typedef struct LbtNewBatch
{
	int			n;
	int			at;				/* the next one to be needed */
	uint64		number;			/* of the prediction posted last */
	ItemPointerData tid[LBT_BATCH];
	LbtReads   *leaves;			/* that are not at hand; or NULL */
	LbtReads   *rows;			/* that a check looks for; or NULL */
	LbtBatch	batch;			/* of batch.n = n keys, of a model */
} LbtNewBatch;

typedef struct LbtNewRows
{
	CommandId	command;		/* that has put them into the table */
	int			ncolumns;		/* of the index's key, the leading ones */
	AttrNumber	attribute[LBT_CODE_COLUMNS];	/* the table's for each */
	Oid			type[LBT_CODE_COLUMNS]; /* or InvalidOid: the index's own */
	bool		skip_nulls;		/* rows with NULLs have no key */
	LbtTally	leaves;			/* asked for */
	LbtTally	rows;
	ItemPointerData end;		/* where the last batch ends */

	/* From lbt_newrows_make() on: */
	MemoryContext context;		/* of batches and reads */
	MemoryContext keys;			/* of keys' copies while a batch is made */
	char	   *page;			/* a copy of the page at hand */
	uint8	   *scratch;		/* for keys' encoded values; or NULL */
	LbtNewBatch *now;			/* NULL before */
	LbtNewBatch *next;
} LbtNewRows;

/* Make room for batches: they are large, and most statements need none. */
extern void lbt_newrows_make(LbtNewRows *new, const LbtIndex *index, MemoryContext context);

/*
 * Make a batch of the rows from new->end on, as far as their pages follow each
 * other and are in shared buffers, and ask for missing leaves.  Moves new->end
 * to the batch's end.  command, attribute and type are set, and are the open
 * table's; the view is up to date and has a model; the caller holds no lock.
 */
extern void lbt_newrows_begin(LbtNewRows *new, Relation rel, LbtIndex *index, Relation table,
							  LbtNewBatch *batch);

/* Forget a batch, if there is one. */
extern void lbt_newrows_end(LbtNewRows *new, LbtIndex *index, LbtNewBatch *batch);

/* Go on with the next batch, if there is one. */
extern void lbt_newrows_turn(LbtNewRows *new, LbtIndex *index);

/* Post the prediction for the batch's next row in the index's mailbox. */
static inline void
lbt_newrows_post_prediction(LbtIndex *index, LbtNewBatch *batch)
{
	if (batch->leaves != NULL)
	{
		lbt_reads_judge(batch->leaves, batch->at - 1, lbt_prediction_taken(index, batch->number));
		(void) lbt_reads_come(batch->leaves, batch->at);
	}
	lbt_post_prediction(index, &batch->batch, batch->at);
	batch->number = index->mailbox.number;
}

/*
 * ---- copyahead.c: rows that COPY has put into the table already ----
 *
 * COPY puts up to a thousand rows into the table before it inserts their
 * entries, in the same order.  A key is columns of the table: for an index of
 * expressions, or with a condition, nothing is looked ahead.
 *
 * What a statement knows of them is in the IndexInfo's context.
 */
typedef struct LbtCopyAhead LbtCopyAhead;

/*
 * The statement inserts the entry of the row with this TID.  Posts a
 * prediction for it in the index's mailbox if there is one, and looks for rows
 * after it.  The index's view is up to date and has a model; the caller holds
 * no lock.  *ahead is NULL before the first call.
 */
extern void lbt_copy_ahead(LbtCopyAhead **ahead, Relation rel, LbtIndex *index, Relation table,
						   ItemPointer tid, IndexInfo *info);

#endif							/* LBT_NEWROWS_H */
