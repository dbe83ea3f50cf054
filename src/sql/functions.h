/*
 * functions.h - functions about one index: their argument, and their result.
 */
#ifndef LBT_FUNCTIONS_H
#define LBT_FUNCTIONS_H

#include "postgres.h"

#include "fmgr.h"
#include "registry/view.h"
#include "storage/lockdefs.h"
#include "utils/builtins.h"

/*
 * Open the first argument of a function about the model of the caller's index,
 * under AccessShareLock, or raise an error that says why it has none.  With
 * only_look members of pg_monitor need not own it.
 */
extern Relation lbt_open_argument(FunctionCallInfo fcinfo, bool only_look);

/*
 * The same, by its owner, with a lock on the table until the end of the
 * transaction, which all lock first.  Who drops or rebuilds an index
 * concurrently waits for users of the table alone.
 */
extern Relation lbt_open_with_table(FunctionCallInfo fcinfo, LOCKMODE mode);

/* A result's row: columns are added from the left; those left out are NULL. */
typedef struct LbtRow
{
	int			n;
	Datum		values[24];
	bool		given[24];
} LbtRow;

/* The value; or NULL if not given. */
static inline void
lbt_row_add_if(LbtRow *row, bool given, Datum value)
{
	row->given[row->n] = given;
	row->values[row->n++] = value;
}

static inline void
lbt_row_add(LbtRow *row, Datum value)
{
	lbt_row_add_if(row, true, value);
}

/* NULL where the text is NULL. */
static inline void
lbt_row_add_text(LbtRow *row, const char *text)
{
	lbt_row_add_if(row, text !=NULL, text ? CStringGetTextDatum(text) : (Datum) 0);
}

/* The row as what the function returns. */
extern Datum lbt_row_result(FunctionCallInfo fcinfo, LbtRow *row);

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
