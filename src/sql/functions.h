/*
 * functions.h - functions about one index: their argument, and their result.
 */
#ifndef LBT_FUNCTIONS_H
#define LBT_FUNCTIONS_H

#include "postgres.h"

#include "fmgr.h"
#include "registry/view.h"
#include "storage/lockdefs.h"
#include "utils/rel.h"

/* What the caller must be allowed to. */
typedef enum LbtRight
{
	LBT_MAY_SEE,				/* the index's owner, or pg_monitor */
	LBT_MAY_CHANGE				/* the index's owner */
} LbtRight;

/*
 * Open a btree or learnedbtree index under this lock, or raise an error that
 * names what is wrong: no such relation, not an index, a catalog's, of another
 * access method, partitioned, invalid, temporary in another session, or not
 * the caller's.
 */
extern Relation lbt_open_index(Oid relid, LOCKMODE lock, LbtRight right);

/* The first argument of a function, a regclass; an error when it is NULL. */
extern Oid	lbt_index_argument(FunctionCallInfo fcinfo);

/* A result's row: columns are added from the left, the rest are NULL. */
typedef struct LbtRow
{
	int			n;
	Datum		values[24];
	bool		nulls[24];
} LbtRow;

static inline void
lbt_row_add(LbtRow *row, Datum value)
{
	row->nulls[row->n] = false;
	row->values[row->n++] = value;
}

static inline void
lbt_row_add_nulls(LbtRow *row, int n)
{
	for (; n > 0; n--)
		row->nulls[row->n++] = true;
}

/* NULL where the text is NULL. */
extern void lbt_row_add_text(LbtRow *row, const char *text);

/* The row as what the function returns. */
extern Datum lbt_row_result(FunctionCallInfo fcinfo, LbtRow *row);

/* inspect.c */

/*
 * The state of the index's model as users see it, and in *reason why it is not
 * ready or not used, or NULL.  Fills in *model where the registry knows the
 * index and it can have a model; otherwise model->state is LBT_UNTRAINED.
 */
extern const char *lbt_model_state(Relation rel, LbtIndex *index, LbtRegistered *model,
								   const char **reason);

/* explain.c: in _PG_init */
extern void lbt_explain_init(void);

#endif							/* LBT_FUNCTIONS_H */
