/*
 * executor.h - moments in the life of a statement that the executor runs.
 *
 * Each function is given once, in _PG_init.  The hooks are in every statement's way: they cost a few instructions
 * where nothing is to be done.
 */
#ifndef LBT_EXECUTOR_H
#define LBT_EXECUTOR_H

#include "executor/execdesc.h"

/*
 * Is the innermost statement under way instrumented, as by EXPLAIN ANALYZE?  While a statement starts, that may still
 * be decided by another module, so it counts as instrumented.
 */
extern bool lbt_instrumented;

/*
 * Call this function whenever the outermost run of the executor in this backend returns: its query is done, or is a
 * cursor that may not be asked for more rows for a long time.
 */
extern void lbt_executor_on_return(void (*function) (void));

/* Call this function when an instrumented statement ends without an error, while its plan's state is still there. */
extern void lbt_executor_watch(void (*function) (const QueryDesc *query));

/*
 * Call these functions before the executor opens a statement's relations, if *wanted; and when a statement has ended,
 * with its relations closed, that has routed tuples to partitions: the list of their OIDs.
 */
extern void lbt_executor_prepare(const bool *wanted, void (*prepare) (const PlannedStmt *plan),
								 void (*routed) (List *partitions));

#endif							/* LBT_EXECUTOR_H */
