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
 * Each backend has a copy of the whole table.  Writers invalidate the table's relcache entry; the relcache callback
 * (serve/hooks.c) says so to lbt_marks_invalidated(), and the copy is made anew when it is next needed.
 */
#ifndef LBT_MARKS_H
#define LBT_MARKS_H

#include "registry/settings.h"

/* Does the extension exist in this database?  Cached until pg_am changes. */
extern bool lbt_extension_exists(void);

/* Are there any marks?  False also where there is no extension.  *sure: this is the last word. */
extern bool lbt_marks_any(bool *sure);

/*
 * The options of an index's mark, its own or that of the partitioned index that it is a part of; *marked: there is one.
 * False when that cannot be told just now (the table is locked, or catalogs of another time are being read): it is not
 * worth waiting for.  Takes and releases a lock on the table; may read catalogs.
 */
extern bool lbt_mark_find(Relation index, LbtIndexOptions *options, bool *marked);

/* The options of a btree index, by its mark and the session's settings: as lbt_index_options(). */
extern bool lbt_mark_options(Relation index, LbtIndexOptions *options, const char **why_not);

/*
 * A writer of marks.  Of one index's mark: others may write other indexes' meanwhile.  Of many: no other writer may write
 * any, and the table is read once.  (DDL that makes marks follow is no such writer: it waits for nobody, and nobody keeps
 * it waiting.)  Locks are kept until the end of the transaction; the memory is the current context's.
 */
typedef struct LbtMarkWriter LbtMarkWriter;

extern LbtMarkWriter *lbt_marks_open(bool many);
extern void lbt_marks_close(LbtMarkWriter *writer);

/* For a writer of many: has the index a mark of its own? */
extern bool lbt_mark_exists(const LbtMarkWriter *writer, Oid index);

typedef enum LbtMarkChange
{
	LBT_MARK_CHANGED,
	LBT_MARK_AS_BEFORE,
	LBT_MARK_BUSY				/* another transaction is changing it: of many, that is not waited for */
} LbtMarkChange;

/*
 * Write an index's mark, or (options are NULL) delete it.  Not twice for an index without incrementing the command
 * counter.  The caller has locked the index's table against being dropped, and has checked permissions.  Tells all
 * backends.
 */
extern LbtMarkChange lbt_mark_write(LbtMarkWriter *writer, Relation index, const LbtIndexOptions *options);

/*
 * For DDL.  Bring rows up to date with the names and OIDs of their indexes: where the index has been made anew, and of
 * objects (indexes, their tables, constraints, schemas) that a command has changed.  Delete those of dropped indexes, by
 * OID or, of rows that have found no index, by name.  Rows that another transaction is at are left to it.
 */
extern void lbt_marks_follow(const Oid *changed, int nchanged);
extern void lbt_marks_forget(const Oid *oids, char *const *schemas, char *const *names, int n);

/*
 * Names (char *, qualified) of marks whose index is not there, of tables that matches(arg, schema, table) names.  With
 * forget they are deleted.
 */
extern List *lbt_marks_lost(bool (*matches) (void *arg, const char *schema, const char *table), void *arg, bool forget);

/*
 * From the relcache callback: this relation's entry, or (InvalidOid) any, may have changed.  True when marks may have.
 */
extern bool lbt_marks_invalidated(Oid relid);

/* From the callback for pg_am. */
extern void lbt_marks_extension_changed(void);

/* A transaction or subtransaction is aborted: true when what was read of marks may have been its own. */
extern bool lbt_marks_aborted(void);

/* ---- between marks.c, which copies rows, and markwrite.c, which writes them ---- */

/* The table's columns. */
enum
{
	COLUMN_SCHEMANAME = 1,
	COLUMN_TABLENAME,
	COLUMN_INDEXNAME,
	COLUMN_LEARNED,
	COLUMN_MAX_ERROR,
	COLUMN_RETRAIN_SPLITS,
	COLUMN_INDEXID
};

typedef struct LbtMarkName
{
	NameData	schema;
	NameData	index;
} LbtMarkName;

typedef struct LbtMark
{
	LbtMarkName	name;			/* key of by_name */
	Oid			index;			/* as the row has it; InvalidOid: none */
	LbtIndexOptions options;
} LbtMark;

/* The table's OID; InvalidOid when there is none, or it is not the extension's. */
extern Oid	lbt_marks_table(void);

/* What a row says; false when it lacks a name, as only a superuser's hand can make it. */
extern bool lbt_mark_read(HeapTuple row, TupleDesc desc, LbtMark *mark);

#endif							/* LBT_MARKS_H */
