/*
 * kept.h - settings of indexes of primary keys and unique constraints, in the table learnedbtree_settings.
 *
 * Other indexes have them among their storage parameters (pg_class.reloptions).  Those of a constraint's index
 * are dumped as part of the constraint, whose index is btree's on restore, and btree would refuse ours.
 */
#ifndef LBT_KEPT_H
#define LBT_KEPT_H

#include "postgres.h"

#include "nodes/pg_list.h"

/* What is set for an index itself; -1: nothing. */
typedef struct LbtIndexOptions
{
	int			learned;		/* use a model for this index */
	int			max_error;		/* leaves */
	int			retrain_splits;
} LbtIndexOptions;

#define LBT_NO_INDEX_OPTIONS ((LbtIndexOptions) {-1, -1, -1})

static inline bool
lbt_any_index_option(const LbtIndexOptions *o)
{
	return o->learned >= 0 || o->max_error >= 0 || o->retrain_splits >= 0;
}

/* The table's OID; InvalidOid where there is none: before version 1.1 of the extension. */
extern Oid	lbt_kept_table(void);

/*
 * Read what is kept for the index of this name on a table.  False when it cannot be read now because the table
 * is locked: settings are not worth waiting for.
 */
extern bool lbt_kept_read(Oid table, const char *index, LbtIndexOptions *options);

/*
 * The same for who has called lbt_kept_lock(): the answer is what there is.  (Without waiting, even a lock weaker than
 * one's own may not be had below 17 while someone waits for a stronger one.)
 */
extern void lbt_kept_read_locked(Oid table, const char *index, LbtIndexOptions *options);

/*
 * Lock the table for writing, and wait for it; the lock stays until the end of the transaction.  False when
 * there is no table.
 */
extern bool lbt_kept_lock(void);

/*
 * Write it, or give its row the index's new name, in a table that is locked; a row that says nothing is deleted.
 * The caller locks the index against others who do the same, has checked permissions, and invalidates the
 * index's relcache entries.  Not twice for an index without incrementing the command counter.
 */
extern void lbt_kept_write(Oid table, const char *index, const LbtIndexOptions *options);
extern void lbt_kept_rename(Oid table, const char *index, const char *renamed);

/* Indexes of these names (char *[2], schema and name) have been dropped: delete the rows of those that are gone. */
extern void lbt_kept_forget(const List *names);

#endif							/* LBT_KEPT_H */
