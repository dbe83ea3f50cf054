/*
 * inputs.h - what the nodes of loose and skip scans do with their inputs:
 * begin and end them, and give an index scan its keys.
 *
 * The keys of each seek are the plan's own conditions and those of a range:
 * of one column of the groups', those before it being equal to values that
 * were found.
 *
 *     groups by a, b; the last one is (1, 7); NULLs last
 *
 *     a = 1, b > 7          the next groups with a = 1
 *     a = 1, b IS NULL      the last group with a = 1
 *     a > 1                 all groups with a greater a
 *     a IS NULL             all groups without a
 *
 * A range that has no more rows is followed by the next one of these.
 */
#ifndef LBT_INPUTS_H
#define LBT_INPUTS_H

#include "postgres.h"

#include "access/genam.h"
#include "access/skey.h"
#include "nodes/execnodes.h"

/* A column of the groups', as the scan goes through the index. */
typedef struct LbtSeekColumn
{
	int			place;			/* in rows, from 1 on; 0: a condition fixes it */
	bool		nulls_first;
	bool		descends;
	bool		byval;
	int16		length;
	Oid			collation;
	FmgrInfo	compare;
	ScanKeyData equal;
	ScanKeyData beyond;
} LbtSeekColumn;

typedef enum LbtRangeTest
{
	LBT_EQUAL,					/* to the values */
	LBT_BEYOND,					/* after them, and not NULL */
	LBT_NO_NULL,
	LBT_ONLY_NULL
} LbtRangeTest;

typedef struct LbtRange
{
	int			column;			/* from 0 on; -1: there are no more groups */
	LbtRangeTest test;
} LbtRange;

typedef struct LbtSeekKeys
{
	Relation	index;
	IndexScanDesc *scan;		/* NULL there: it has not begun */
	int			ncolumns;
	bool		backward;		/* it goes so through the index */
	int			last_free;		/* the last column that is not fixed */
	LbtSeekColumn *column;		/* one more than ncolumns, if there is one */
	int			nconditions;
	ScanKey		conditions;		/* the plan's */
	int			nruntime;
	IndexRuntimeKeyInfo *runtime;
	ExprContext *runtime_context;
	int			nkeys;
	ScanKey		keys;			/* the scan's: always as many */
	MemoryContext context[2];	/* of the keys, and of those before */
	int			turn;
} LbtSeekKeys;

/* Begin and end all inputs; before a rescan, pass changed parameters on. */
extern void lbt_inputs_begin(CustomScanState *css, EState *estate, int eflags);
extern void lbt_inputs_changed(CustomScanState *css);
extern void lbt_inputs_end(CustomScanState *css);

/*
 * Take over the keys of an index (only) scan that has not begun.  The places
 * are those of the index's first columns in rows of this kind.  extreme: some
 * seeks will want a next column that is not NULL.
 */
extern void lbt_seek_open(LbtSeekKeys *seek, PlanState *scan, const List *places, TupleDesc rows,
						  bool extreme);

/* Evaluate the conditions' values, which stay until the next rescan. */
extern void lbt_seek_evaluate(LbtSeekKeys *seek);

/* Copy a row's columns up to this one into values, by the index's columns. */
extern void lbt_seek_take(const LbtSeekKeys *seek, NullableDatum *values, TupleTableSlot *row,
						  int up_to);

/*
 * Set the scan's keys: a range behind these values, and all conditions on
 * columns up to this one; an extreme must not be NULL.  Then rescan.
 */
extern void lbt_seek_set(LbtSeekKeys *seek, LbtRange range, const NullableDatum *values, int up_to,
						 bool extreme);

/* The range of groups behind the values, by this column or one before it. */
extern LbtRange lbt_range_beyond(const LbtSeekKeys *seek, const NullableDatum *values, int column);

/* The first range by this column or one behind it, of all its groups. */
extern LbtRange lbt_range_into(const LbtSeekKeys *seek, int column);

/* The range after one that has no more rows. */
extern LbtRange lbt_range_after(const LbtSeekKeys *seek, LbtRange range,
								const NullableDatum *values);

#endif							/* LBT_INPUTS_H */
