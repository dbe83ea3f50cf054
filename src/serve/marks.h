/*
 * marks.h - which btree indexes are served in sessions with learnedbtree.btree_indexes = 'adopted', and with which
 * options: the table learnedbtree.marks.
 *
 * A row is an index's mark; that of a partitioned index is of all its partitions that have none of their own.  Rows
 * name the index, so that they survive dump and restore, and have its OID, so that they survive a rename by a session
 * in which the extension's event triggers do not run:
 *
 *   - indexid is an index: the row is that index's, whatever its name is now;
 *   - indexid is none, or 0: the row is that of the index of this name.  So REINDEX CONCURRENTLY, ALTER TYPE and
 *     restores, which make the index anew, keep the mark.
 *
 * indexid is a generated column, which pg_dump does not dump: a restored row finds its index by name.
 *
 *     learnedbtree.marks  --- systable scan, SnapshotSelf --->  this backend's copy
 *        ^        |                                                |          |
 *        |        +-- change: invalidation of the table --> stale  |          +--> lbt_mark_find(): views, the planner
 *        |                                                         v
 *        +------ heap_delete, heap_insert ------  lbt_mark_write(), lbt_marks_follow(), lbt_marks_forget()
 *
 * Each backend copies the whole table when it first needs a mark, and again after an invalidation.  All who read marks read
 * the copy.  A writer finds its rows there, too; it reads each once more before it deletes it, as the copy may be of the
 * past.
 *
 * Who writes                     locks, kept until the end of the transaction            a row that another one is changing
 *   one mark                     the table of marks' object shared, the index's own      is waited for
 *   many (lbt_marks_lock_all())  the table of marks' object alone                        is left alone: LBT_MARK_BUSY
 *   DDL (follow, forget)         neither                                                 is left to that one
 *
 * "Object" is LockDatabaseObject(): nobody else takes these, so DDL never waits for a writer of marks.  All take
 * RowExclusiveLock on the table.  None of these functions checks permissions.
 */
#ifndef LBT_MARKS_H
#define LBT_MARKS_H

#include "postgres.h"

#include "nodes/pg_list.h"
#include "registry/settings.h"

/* ---- reading: no lock is waited for, none is kept; catalogs may be read ---- */

/* Are there any marks?  *exist: the extension is in this database.  *sure: this is the last word, until pg_am changes. */
extern bool lbt_marks_any(bool *exist, bool *sure);

/*
 * The options of an index's mark, its own or that of the partitioned index that it is a part of; without a mark
 * LBT_NO_INDEX_OPTIONS, of which learned is negative.  False when that cannot be told just now (the table is locked, or
 * catalogs of another time are being read): ask again.
 */
extern bool lbt_mark_find(Relation index, LbtIndexOptions *options);

/* The options of a btree index, by its mark and the session's settings: as lbt_index_options(). */
extern bool lbt_mark_options(Relation index, LbtIndexOptions *options, const char **why_not);

/* ---- writing: an error where the table does not exist ---- */

typedef enum LbtMarkChange
{
	LBT_MARK_CHANGED,
	LBT_MARK_AS_BEFORE,
	LBT_MARK_BUSY				/* of many: another transaction is at it */
} LbtMarkChange;

/* Lock out all other writers of marks but DDL.  Before any lock on a table is taken, lest there be a deadlock. */
extern void lbt_marks_lock_all(void);

/*
 * Write an index's mark, or (options are NULL) delete it, and all rows that are of this index.  The caller has locked the
 * index's table against being dropped; with many, it has called lbt_marks_lock_all().  Tells all backends.  Not twice for
 * an index without incrementing the command counter.
 */
extern LbtMarkChange lbt_mark_write(Relation index, const LbtIndexOptions *options, bool many);

/*
 * For DDL that has changed these objects (indexes, their tables, schemas): bring the rows of indexes that belong to them up
 * to date with names and OIDs, and rows of indexes that have been made anew, whoever has done that.
 */
extern void lbt_marks_follow(const Oid *changed, int n);

/*
 * For DDL that has dropped indexes: delete their rows, by OID or, of rows that have found no index, by name (strings:
 * schema.index, quoted).
 */
extern void lbt_marks_forget(const Oid *oids, int n, List *names);

/* ---- what changes: called from callbacks, so they read and allocate nothing ---- */

/* This relation's relcache entry, or (InvalidOid) any, may have changed.  True when marks may have. */
extern bool lbt_marks_invalidated(Oid relid);

/* A transaction or subtransaction is aborted: true when what was read of marks may have been its own. */
extern bool lbt_marks_aborted(void);

#endif							/* LBT_MARKS_H */
