/*
 * statfile.h - the totals of counters.h in a file, so that they outlast a restart of the server.
 */
#ifndef LBT_STATFILE_H
#define LBT_STATFILE_H

#include "postgres.h"

#include "datatype/timestamp.h"

/* For registry.c: prepare the shared part; this process has attached, and needs the counts there are. */
struct LbtControl;
extern void lbt_statfile_init(struct LbtControl *control);
extern void lbt_statfile_enter(void);

/* This process has added its last counts.  The last one of all writes the file, if it may. */
extern void lbt_statfile_leave(bool may_save);

/* The totals have changed. */
extern void lbt_statfile_changed(void);

/*
 * Write the file, if the totals have changed and the last time is long enough ago, and nobody else is at it.  A file
 * that cannot be written is a matter for the log, never an error.  The caller is not in a critical section, and the
 * transaction has not committed yet.
 */
extern void lbt_statfile_save_if_due(TimestampTz now);

/* The same at once. */
extern void lbt_statfile_save(void);

#endif							/* LBT_STATFILE_H */
