/*
 * executor.h - moments in the life of a statement that the executor runs.
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
 * Call this function, in _PG_init, whenever the outermost run of the executor in this backend returns: its query
 * is done, or is a cursor that may not be asked for more rows for a long time.
 */
extern void lbt_executor_on_return(void (*function) (void));

/*
 * Call these functions, in _PG_init, when an instrumented statement has been started, and when it ends without an
 * error, while its plan's state is still there.  nested: it is executed by a function of another statement.
 */
extern void lbt_executor_watch(void (*started) (const QueryDesc *query),
							   void (*ended) (const QueryDesc *query, bool nested));

#endif							/* LBT_EXECUTOR_H */
