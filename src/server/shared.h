/*
 * shared.h - one block of shared memory, found by all backends.
 *
 * In the main shared memory if the library is in shared_preload_libraries.
 * Else, from 17 on, a named DSM segment, made by the first backend that asks;
 * finding and mapping it costs a session some 80 microseconds and 41 kB.
 */
#ifndef LBT_SHARED_H
#define LBT_SHARED_H

#include "postgres.h"

/* Fills in a zeroed block, under a server lock, perhaps in the postmaster. */
typedef void (*LbtSharedInit) (void *block);

/* Say once, in _PG_init, how large the block is and who fills it in. */
extern void lbt_shared_declare(Size size, LbtSharedInit init);

/* The block, or NULL where there is none: 15 or 16 without preloading. */
extern void *lbt_shared_block(void);

/* Will models work here?  As lbt_shared_block() != NULL, but makes none. */
extern bool lbt_shared_possible(void);

#endif							/* LBT_SHARED_H */
