/*
 * executor.h - the moment at which the executor hands back to the client.
 */
#ifndef LBT_EXECUTOR_H
#define LBT_EXECUTOR_H

/*
 * Call this function, in _PG_init, whenever the outermost run of the executor in this backend returns: its query
 * is done, or is a cursor that may not be asked for more rows for a long time.
 */
extern void lbt_executor_on_return(void (*function) (void));

#endif							/* LBT_EXECUTOR_H */
