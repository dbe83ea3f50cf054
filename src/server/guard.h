/*
 * guard.h - doing without what there is no memory for.
 */
#ifndef LBT_GUARD_H
#define LBT_GUARD_H

#include "postgres.h"

/*
 * Run body(arg).  When it fails for lack of memory, disk space or slots (SQLSTATE class 53), swallow the
 * error, release the LWLocks it left behind, and return false; other errors go on.  The caller must hold
 * no LWLock, and body must have nothing else to clean up.
 *
 * For models and counters only: they are never worth failing a user's statement.
 */
extern bool lbt_guarded(void (*body) (void *arg), void *arg);

#endif							/* LBT_GUARD_H */
