/*
 * shared.h - one block of shared memory, found by all backends.
 *
 * 17 and later: a named DSM segment, made by the first backend that asks.  Below: part of the main
 * shared memory, which must be asked for while the server starts, hence shared_preload_libraries.
 */
#ifndef LBT_SHARED_H
#define LBT_SHARED_H

#include "postgres.h"

/* Fills in a fresh, zeroed block.  Runs under a server lock, perhaps in the postmaster. */
typedef void (*LbtSharedInit) (void *block);

/* Say once, in _PG_init, how large the block is and who fills it in. */
extern void lbt_shared_declare(Size size, LbtSharedInit init);

/* The block, or NULL where there is none: 15 or 16 without preloading. */
extern void *lbt_shared_block(void);

/* As lbt_shared_block() != NULL, without making it: will models work on this server? */
extern bool lbt_shared_possible(void);

#endif							/* LBT_SHARED_H */
