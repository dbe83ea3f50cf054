/*
 * xact.h - models of files that transactions make and remove.
 */
#ifndef LBT_XACT_H
#define LBT_XACT_H

#include "registry/shmem.h"

/* In _PG_init: see the ends of transactions, and what they drop. */
extern void lbt_xact_init(void);

/*
 * This transaction made the index's file.  A training publishes its model
 * before the commit (nobody else knows the file yet).  An abort forgets it, a
 * commit those of the files that it replaces.  May raise errors.
 */
extern void lbt_xact_created(const LbtFile *file, Oid oid);

/*
 * Forget what ended transactions have left, at the next statement; and at
 * exit, while shared memory is mapped, what this one leaves, too.
 */
extern void lbt_xact_clean_up(void);
extern void lbt_xact_exit(void);

#endif							/* LBT_XACT_H */
