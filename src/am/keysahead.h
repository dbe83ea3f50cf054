/*
 * keysahead.h - foreign keys of new rows, which are checked when their
 * statement ends or, deferred, their transaction; and those that refer to
 * deleted rows, whose actions run when their statement ends (src/README,
 * "Foreign keys").
 *
 *     executor's start   lbt_keys_note(): the table's last block, the command;
 *                        of a DELETE, TIDs of rows as its source returns them
 *     executor's finish  lbt_keys_ahead set, checks and actions run, set back
 *     COPY               lbt_keys_make(); lbt_keys_ahead set, COPY, set back
 */
#ifndef LBT_KEYSAHEAD_H
#define LBT_KEYSAHEAD_H

#include "postgres.h"

#include "key/bound.h"
#include "nodes/execnodes.h"
#include "registry/view.h"

typedef struct LbtKeysAhead LbtKeysAhead;

/* Of the innermost statement whose checks may come now; NULL: none come. */
extern LbtKeysAhead *lbt_keys_ahead;

/* Tables of which deferred checks may come in this transaction. */
extern dlist_head lbt_keys_deferred;

/* Forget what is known of a table for them; of all if InvalidOid. */
extern void lbt_keys_invalidate(Oid relid);

/*
 * A command is about to put rows into the open table.  NULL if it has no
 * foreign keys to look ahead for.  In this memory context.
 */
extern LbtKeysAhead *lbt_keys_make(Relation table, CommandId command, MemoryContext context);
extern void lbt_keys_end(LbtKeysAhead *ahead);

/*
 * The same for a query that is about to run, with one target; or to delete
 * rows from it.  Goes with its memory, if not before.
 */
extern void lbt_keys_note(ModifyTableState *write);

/* What was noted for this query; or NULL. */
extern LbtKeysAhead *lbt_keys_noted(const EState *estate);

/*
 * A scan is about to look for this bound, and checks may come.  Posts a
 * prediction in the index's mailbox if this is the check of a row.  The caller
 * holds no page lock.
 */
extern void lbt_check_comes(IndexScanDesc scan, LbtIndex *index, const LbtBound *bound);

#endif							/* LBT_KEYSAHEAD_H */
