/*
 * marks_internal.h - rows of learnedbtree.marks, for marks.c, which copies them, and markwrite.c, which writes them.
 */
#ifndef LBT_MARKS_INTERNAL_H
#define LBT_MARKS_INTERNAL_H

#include "learn/marks.h"

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

#endif							/* LBT_MARKS_INTERNAL_H */
