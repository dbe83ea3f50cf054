/*
 * rowbatch.h - outer rows looked up ahead in the inner index together.
 *
 *    rows   slot[0] ... slot[at - 1]   slot[at]   slot[at + 1] ... slot[n - 1]
 *           joined already             at hand    predicted, lines fetched
 *
 * A batch is made before its first row is handed on.  Its caller adds rows;
 * then come the values of the keys, and the stages of ahead/predict.h.  The
 * outer side's slot is good for one row only, so rows are copied: the columns
 * that the join uses, the others being NULL.
 *
 * Missing blocks are asked for.  A leaf is read when the row that wants it is
 * at hand, or when rows are looked for on it.
 */
#ifndef LBT_ROWBATCH_H
#define LBT_ROWBATCH_H

#include "postgres.h"

#include "executor/execdesc.h"
#include "nodes/execnodes.h"
#include "registry/settings.h"
#include "ahead/predict.h"

/* What a node looks its rows up in. */
typedef struct LbtInner
{
	int			nkeys;
	bool		safe;			/* no key can fail */
	ExprState  *key[LBT_CODE_COLUMNS];
	Oid			type[LBT_CODE_COLUMNS];
	Relation	rel;			/* the inner index */
	Relation	table;			/* inner table; NULL if no rows are fetched */
	BlockNumber pages;			/* of both */
	LbtIndex   *index;
	ExprContext *econtext;		/* that the keys are evaluated in */
	LbtKeyValue *values;		/* of each row's keys */
	uint8	   *scratch;		/* for keys' encoded values; or NULL */
	TupleDesc	tupdesc;		/* of outer rows */
	const List *used;			/* their columns that the join uses, from 1 on */
} LbtInner;

typedef struct LbtRowBatch
{
	int			n;				/* rows */
	int			at;				/* the next one to hand on */
	int			room;			/* slots made */
	int			unused;			/* predictions not used: Memoize had the row */
	MemoryContext context;		/* of copies' values */
	bool		looked;			/* lbt_rowbatch_look() has been called */
	bool		missed;			/* blocks had to be read */
	TupleTableSlot *slot[LBT_LOOKAHEAD_LIMIT];
	int8		prediction[LBT_LOOKAHEAD_LIMIT];	/* in batch; or -1 */
	LbtBatch	batch;
	LbtReads   *leaves;			/* that are not at hand; or NULL */
	LbtReads   *rows;
} LbtRowBatch;

/*
 * Open what a plan node looks its rows up in, in the query's memory context.
 * False if it is no longer served, or there is nothing to look up by.  Call
 * lbt_inner_close() in any case.
 */
extern bool lbt_inner_open(LbtInner *inner, CustomScanState *node);
extern void lbt_inner_close(LbtInner *inner);

/* An empty batch, in the query's memory context. */
extern LbtRowBatch *lbt_rowbatch_make(EState *estate);

/* Add a copy of a row; returns about how many bytes all copies take. */
extern Size lbt_rowbatch_add(const LbtInner *inner, LbtRowBatch *rows, EState *estate,
							 TupleTableSlot *row);

/* Predict its rows' leaves, find missing ones; returns how many it did. */
extern int	lbt_rowbatch_predict(LbtInner *inner, LbtRowBatch *rows);

/*
 * Fetch what the inner scan will look at, as far as it is in memory, and find
 * out which blocks of the table are missing.
 */
extern void lbt_rowbatch_look(LbtInner *inner, LbtRowBatch *rows);

/* Hand on the next row with its prediction, having read the leaf it needs. */
extern TupleTableSlot *lbt_rowbatch_next(LbtInner *inner, LbtRowBatch *rows);

extern void lbt_rowbatch_empty(LbtInner *inner, LbtRowBatch *rows);

#endif							/* LBT_ROWBATCH_H */
