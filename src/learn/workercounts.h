/*
 * workercounts.h - what scans in parallel workers did, on its way to the leader of an instrumented statement.
 *
 * A scan is named by its leader, its statement (a hash of the text, for statements nest) and its plan node.
 */
#ifndef LBT_WORKERCOUNTS_H
#define LBT_WORKERCOUNTS_H

#include "learn/registry.h"
#include "lib/dshash.h"
#include "utils/dsa.h"

/* For registry.c, which owns the shared memory. */
extern dshash_table_handle lbt_workercounts_create(dsa_area *area, int tranche);
extern void lbt_workercounts_attach(dsa_area *area, int tranche, dshash_table_handle handle);

/* In a worker: hand over a scan's events.  What there is no memory for is not handed over. */
extern void lbt_workercounts_add(const char *statement, int node, const uint64 *events);

/* In the leader: add what its workers have handed over. */
extern void lbt_workercounts_collect(const char *statement, int node, uint64 *events);

/*
 * In the leader: forget what is there of a statement, which is about to begin or has ended.  This is also what says
 * that there may be something to collect, until the end of the transaction.
 */
extern void lbt_workercounts_forget(const char *statement);

/* Before a commit and at exit: forget what failed statements have left. */
extern void lbt_workercounts_forget_all(void);

#endif							/* LBT_WORKERCOUNTS_H */
