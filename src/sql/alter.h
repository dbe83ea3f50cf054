/*
 * alter.h - settings of indexes of primary keys and unique constraints, and what ALTER INDEX means for them.
 */
#ifndef LBT_ALTER_H
#define LBT_ALTER_H

#include "postgres.h"

#include "utils/rel.h"

/* A relation has been made, or altered, by a command that goes on; for changes.c. */
extern void lbt_note_create(Oid relid);
extern void lbt_note_alter(Oid relid);

/* Delete what learnedbtree_settings has for an index; what that was, in words, or NULL. */
extern char *lbt_forget_settings(Relation index);

#endif							/* LBT_ALTER_H */
