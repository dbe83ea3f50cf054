/*
 * rowbatch.h - outer rows looked up ahead in the inner index together.
 *
 *    rows   slot[0] ... slot[at - 1]   slot[at]   slot[at + 1] ... slot[n - 1]
 *           joined already             at hand    predicted, lines fetched
 *
 * A batch is made before its first row is passed on.  Its caller adds rows;
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

/* An index that rows are looked up in, and at which bound. */
typedef struct LbtInner
{
	int			nkeys;
	int			nequal;			/* these are equalities; any other is a bound */
	bool		past;			/* the bound is after what is equal to the keys */
	bool		backward;		/* scans go from there */
	ExprState  *key[LBT_CODE_COLUMNS];	/* of columns, constants, parameters */
	Oid			type[LBT_CODE_COLUMNS];
	bool		null_bound;		/* the last key is NULL, and so is the bound */
	Relation	rel;
	Relation	table;			/* its table; NULL if no rows are fetched */
	LbtIndex   *index;
	uint8	   *scratch;		/* for keys' encoded values; or NULL */
	LbtTally	leaves;			/* asked for, of the index */
	LbtTally	rows;			/* ... of the table */
} LbtInner;

/* All that a node looks its rows up in: a join in one, a write in several. */
typedef struct LbtInners
{
	int			n;
	LbtInner   *inner;
	bool		rows;			/* of some, rows are fetched */
	BlockNumber pages;			/* of indexes and tables */
	ExprContext *econtext;		/* that the keys are evaluated in */
	TupleDesc	tupdesc;		/* of outer rows */
	const List *used;			/* their columns that the join uses, from 1 on */
} LbtInners;

/* What a batch knows of one of them. */
typedef struct LbtInnerBatch
{
	LbtReads   *leaves;			/* that are not at hand; or NULL */
	LbtReads   *rows;
	int			posted;			/* the last prediction in the mailbox; or -1 */
	uint64		number;			/* ... its number there */
	int8		prediction[LBT_LOOKAHEAD_LIMIT];	/* in batch; or -1 */
	LbtBatch	batch;
} LbtInnerBatch;

typedef struct LbtRowBatch
{
	int			n;				/* rows */
	int			at;				/* the next one to pass on */
	int			room;			/* slots made */
	int			judged;			/* predictions that lookups came after */
	int			used;			/* ... and took */
	MemoryContext context;		/* of copies' values */
	bool		looked;			/* lbt_rowbatch_look() has been called */
	bool		reads;			/* blocks were missing when it was made */
	bool		missed;			/* blocks had to be read */
	TupleTableSlot *slot[LBT_LOOKAHEAD_LIMIT];
	LbtInnerBatch *of;			/* of each index */
} LbtRowBatch;

/*
 * Open what a plan node looks its rows up in, in the query's memory context.
 * None of those that are gone, not valid, or no longer served, or have nothing
 * to look up by: then inners->n may be 0.  Call lbt_inners_close() in any
 * case.
 */
extern void lbt_inners_open(LbtInners *inners, CustomScanState *node);
extern void lbt_inners_close(LbtInners *inners);

/* Has any of them a model? */
extern bool lbt_inners_ready(LbtInners *inners);

/* An empty batch, in the query's memory context. */
extern LbtRowBatch *lbt_rowbatch_make(const LbtInners *inners, EState *estate);

/* Add a copy of a row; returns about how many bytes all copies take. */
extern Size lbt_rowbatch_add(const LbtInners *inners, LbtRowBatch *rows, EState *estate,
							 TupleTableSlot *row);

/* Predict its rows' leaves, find missing ones; returns how many rows'. */
extern int	lbt_rowbatch_predict(LbtInners *inners, LbtRowBatch *rows);

/*
 * Fetch what the inner scan will look at, as far as it is in memory, and find
 * out which blocks of the table are missing.
 */
extern void lbt_rowbatch_look(LbtInners *inners, LbtRowBatch *rows);

/* Ask for missing leaves, and for missing blocks of the table. */
extern void lbt_rowbatch_start(const LbtInners *inners, LbtRowBatch *rows);

/* Read the leaf that the next row needs, post its prediction; return it. */
extern TupleTableSlot *lbt_rowbatch_next(LbtInners *inners, LbtRowBatch *rows);

/*
 * All rows have been passed on.  Was it worth while?  Not if lookups did not
 * come for most of them (Memoize had their rows), or, with all in memory, if
 * they came to few places, so that each found its leaf in the processor's
 * caches.  Sets *unused in the first case.
 */
extern bool lbt_rowbatch_paid(LbtInners *inners, LbtRowBatch *rows, bool *unused);

extern void lbt_rowbatch_empty(LbtInners *inners, LbtRowBatch *rows);

#endif							/* LBT_ROWBATCH_H */
