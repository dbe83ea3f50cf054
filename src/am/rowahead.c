/*
 * rowahead.c - leaves of all entries of one row; see newrows.h.
 *
 * Nothing is kept for the statement: when to look again, and whether that is
 * of use, is in the indexes' views, where any value is safe.
 */
#include "am/newrows.h"

#include "access/htup_details.h"
#include "am/am.h"
#include "catalog/pg_index.h"
#include "executor/instrument.h"
#include "server/compat.h"

/* Rows to leave alone after one whose leaves were all there. */
#define REST_ROWS 16

typedef struct Row
{
	Relation	table;
	ItemPointer tid;
	HeapTupleData tuple;		/* t_data is NULL: not copied yet */
	PGAlignedBlock data;
	uint8		scratch[LBT_CODE_COLUMNS * LBT_SCRATCH_BYTES];
} Row;

/*
 * Open an index and its view, if all rows of the table enter it by columns,
 * and the statement has it locked and open for that, which keeps DDL away; else
 * NULL.  (CREATE INDEX CONCURRENTLY and the like have one index open.)
 */
static Relation
open_index(Oid oid, LbtIndex **view)
{
	Relation	index;
	bool		fits = false;

	if (!lbt_holds_lock(oid, RowExclusiveLock) ||
		!RelationIsValid(index = RelationIdGetRelation(oid)))
		return NULL;
	if (index->rd_refcnt > 1 && index->rd_index->indisvalid &&
		heap_attisnull(index->rd_indextuple, Anum_pg_index_indpred, NULL) &&
		(*view = lbt_learned_view(index)) != NULL)
	{
		fits = true;
		for (int i = 0; i < (*view)->keyspec.ncolumns; i++)
			fits &= index->rd_index->indkey.values[i] > 0;
	}
	if (fits)
		return index;
	RelationClose(index);
	return NULL;
}

/* What became of the leaf that was asked for last? */
static void
judge(Relation rel, LbtIndex *index)
{
	LbtInserting *inserting = &index->inserting;
	bool		used;

	if (inserting->asked == InvalidBlockNumber)
		return;
	used = lbt_block_is_there(rel, inserting->asked);
	inserting->asked = InvalidBlockNumber;
	inserting->asking.tally.judged++;
	inserting->asking.tally.used += used;
	if (used)
		lbt_count(index, LBT_EV_PREFETCHED_USED);
	(void) lbt_pause_decide(&inserting->asking, inserting->rows, false);
}

/* The key of the row's entry; false if there is none. */
static bool
find_key(Relation rel, const LbtKeySpec *spec, Row *row, LbtBound *key)
{
	Datum		values[LBT_CODE_COLUMNS];
	bool		isnull[LBT_CODE_COLUMNS];

	if (row->tuple.t_data == NULL)
	{
		row->tuple.t_data = (HeapTupleHeader) row->data.data;
		if (!lbt_copy_row(row->table, row->tid, &row->tuple))
			row->tid = NULL;
	}
	if (row->tid == NULL)
		return false;
	for (int i = 0; i < spec->ncolumns; i++)
		values[i] = heap_getattr(&row->tuple, rel->rd_index->indkey.values[i],
								 RelationGetDescr(row->table), &isnull[i]);
	key->ncolumns = spec->ncolumns;
	key->past = false;
	return lbt_key_of(spec, spec->ncolumns, NULL, LBT_ANY_NULL, values, isnull, row->scratch,
					  key->value);
}

/*
 * Ask for the leaf of the row's entry, if it is missing; true if so.  Not if a
 * feed does, or the entry goes where the one before it went.
 */
static bool
ask(Relation rel, LbtIndex *index, Row *row)
{
	LbtInserting *inserting = &index->inserting;
	LbtTarget	target;
	LbtBound	key;
	uint64		code;

	judge(rel, index);
	if (inserting->foreseen || inserting->rows++ < inserting->asking.resume ||
		!find_key(rel, &index->keyspec, row, &key))
		return false;
	lbt_index_update(index);
	if (index->state != LBT_READY)
		return false;
	code = bound_code(index, &key);
	if (inserting->last.block != InvalidBlockNumber && code >= inserting->last.lo &&
		code <= inserting->last.hi)
		return false;
	predict_target(index, &key, code, index->seen.slot, &target);
	if (lbt_slot_cached(rel, index, target.slot))
		return false;
	inserting->asked = target.block;
	lbt_count(index, LBT_EV_PREFETCHED);
	return true;
}

void
lbt_row_ahead(Relation rel, LbtIndex *index, Relation table, ItemPointer tid)
{
	int			distance = lbt_enable_prefetch ? lbt_read_distance(rel) : 0;
	int			asked = 0;
	bool		is_first = false;
	List	   *indexes;
	ListCell   *lc;
	Row			row;

	index->inserting.reads = pgBufferUsage.shared_blks_read;
	if (index->inserting.rest > 0)
	{
		index->inserting.rest--;
		return;
	}
	row.table = table;
	row.tid = tid;
	row.tuple.t_data = NULL;
	indexes = distance > 0 && lbt_is_heap(table) ? RelationGetIndexList(table) : NIL;
	foreach(lc, indexes)
	{
		LbtIndex   *view;
		Relation	other = open_index(lfirst_oid(lc), &view);

		if (other == NULL)
			continue;
		is_first |= other == rel;
		if (is_first && other != rel && asked < distance)
			asked += ask(other, view, &row);
		RelationClose(other);
		if (!is_first)
			break;
	}
	list_free(indexes);
	if (asked > 0)
		(void) ask(rel, index, &row);
	else
		index->inserting.rest = REST_ROWS;
}
