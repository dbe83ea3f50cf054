/*
 * changes.h - being told of indexes that are made, altered and dropped, and of databases that are.
 */
#ifndef LBT_CHANGES_H
#define LBT_CHANGES_H

/* In _PG_init. */
extern void lbt_changes_init(void);

#endif							/* LBT_CHANGES_H */
