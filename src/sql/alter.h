/*
 * alter.h - settings of indexes of primary keys and unique constraints, and what ALTER INDEX means for them.
 */
#ifndef LBT_ALTER_H
#define LBT_ALTER_H

#include "postgres.h"

#include "utils/rel.h"

/* In _PG_init. */
extern void lbt_alter_init(void);

/* Delete what learnedbtree_settings has for an index; what that was, in words, or NULL. */
extern char *lbt_forget_settings(Relation index);

#endif							/* LBT_ALTER_H */
