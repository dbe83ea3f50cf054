/*
 * drop.h - noticing that indexes and databases are dropped.
 */
#ifndef LBT_DROP_H
#define LBT_DROP_H

/* In _PG_init. */
extern void lbt_drop_init(void);

#endif							/* LBT_DROP_H */
