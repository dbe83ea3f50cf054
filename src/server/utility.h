/*
 * utility.h - COPY, before and after it is executed.
 */
#ifndef LBT_UTILITY_H
#define LBT_UTILITY_H

#include "postgres.h"

#include "nodes/parsenodes.h"

/* In _PG_init: call these before and, without an error, after each COPY. */
extern void lbt_utility_around_copy(void (*before) (const CopyStmt *copy), void (*after) (const CopyStmt *copy));

#endif							/* LBT_UTILITY_H */
