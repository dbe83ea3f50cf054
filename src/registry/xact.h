/*
 * xact.h - models of files that transactions make and remove.
 *
 * A training within a transaction that has made the file publishes its model before the commit (nobody else knows the
 * file yet).  Here is remembered what has to be forgotten when the transaction ends: at abort the models of new files,
 * at commit those of the files they replace and of dropped indexes and databases.
 */
#ifndef LBT_XACT_H
#define LBT_XACT_H

#include "registry/view.h"

/* In _PG_init. */
extern void lbt_xact_init(void);

/* This transaction made the index's file. */
extern void lbt_xact_created(const LbtIndex *index);

/* At this transaction's commit: forget the index's model; ask the worker for a training of it. */
extern void lbt_xact_forget(Oid index);
extern void lbt_xact_want(Oid index);

/*
 * This transaction has dropped these indexes: forget their models and counts when it commits.  Does nothing where the
 * library was loaded before this statement, and has seen each drop; otherwise one pass over what is in shared memory of
 * this database.
 */
extern void lbt_xact_dropped(const Oid *oids, int n);

/*
 * What ended transactions have left to forget, when nothing could be mapped; done by lbt_registry_attach(), and at exit.
 * Raises no error.
 */
extern bool lbt_something_to_forget;
extern void lbt_forget_now(void);

#endif							/* LBT_XACT_H */
