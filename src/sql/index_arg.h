/*
 * index_arg.h - SQL functions' argument, an index, opened and checked; and their results.
 */
#ifndef LBT_INDEX_ARG_H
#define LBT_INDEX_ARG_H

#include "postgres.h"

#include "fmgr.h"
#include "storage/lockdefs.h"
#include "utils/rel.h"

/* What the caller must be allowed to. */
typedef enum LbtRight
{
	LBT_MAY_SEE,				/* the index's owner, or pg_monitor */
	LBT_MAY_SEE_VALUES,			/* one of these for whom lbt_may_see_values() */
	LBT_MAY_CHANGE				/* the index's owner */
} LbtRight;

/*
 * Open a btree or learnedbtree index under this lock, or raise an error that names what is wrong: no such relation,
 * not an index, a catalog's, another access method's, partitioned, invalid, another session's temporary one, or not
 * the caller's.
 */
extern Relation lbt_open_index(Oid relid, LOCKMODE lock, LbtRight right);

/*
 * May the current user see what tells key values: codes, ranges, prefixes, and which leaf a key belongs to?  Only who
 * may read the key columns of all of the table's rows.
 */
extern bool lbt_may_see_values(Relation index);

/* The first argument of a function, a regclass; an error when it is NULL. */
extern Oid	lbt_index_argument(FunctionCallInfo fcinfo);

/* For functions that change catalogs: an error on standbys and in read-only transactions. */
extern void lbt_forbid_readonly(const char *function);

/* A key code for users: numeric, as bigint is too small for codes. */
extern Datum lbt_numeric_from_uint64(uint64 v);

#endif							/* LBT_INDEX_ARG_H */
