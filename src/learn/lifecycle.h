/*
 * lifecycle.h - models of files that transactions make and remove.
 *
 * A training within a transaction that has made the file publishes its model before the commit (nobody else knows the
 * file yet).  Here is remembered what has to be forgotten when the transaction ends: at abort the models of new files,
 * at commit those of the files they replace and of dropped indexes and databases.
 */
#ifndef LBT_LIFECYCLE_H
#define LBT_LIFECYCLE_H

#include "learn/registry.h"

/* In _PG_init. */
extern void lbt_lifecycle_init(void);

/* This transaction made the index's file. */
extern void lbt_lifecycle_created(const LbtIndex *index);

/* At this transaction's commit: forget the index's model; ask the worker for a training of it. */
extern void lbt_lifecycle_forget(Oid index);
extern void lbt_lifecycle_want(Oid index);

/*
 * This transaction has dropped these indexes: forget their models and counts when it commits.  Does nothing where the
 * library was loaded before the drop, which has seen to it; otherwise one pass over what is in shared memory of this
 * database.
 */
extern void lbt_lifecycle_dropped(const Oid *oids, int n);

/* The file of an index whose model may be shared; false when there is no such index. */
extern bool lbt_index_file(Oid relid, LbtFile *file);

#endif							/* LBT_LIFECYCLE_H */
