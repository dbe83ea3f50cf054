/*
 * lifecycle.h - models of files that transactions make and remove.
 *
 * A build publishes its model before its transaction commits (nobody else knows the file yet).  Here is
 * remembered what has to be forgotten when the transaction ends: at abort the models of new files, at
 * commit those of the files they replace and of dropped indexes and databases.
 */
#ifndef LBT_LIFECYCLE_H
#define LBT_LIFECYCLE_H

#include "learn/registry.h"

/* In _PG_init. */
extern void lbt_lifecycle_init(void);

/* This transaction made the index's file. */
extern void lbt_lifecycle_created(const LbtIndex *index);

/* This transaction drops an index, or with an invalid oid a whole database. */
extern void lbt_lifecycle_dropped(Oid database, Oid oid);

#endif							/* LBT_LIFECYCLE_H */
