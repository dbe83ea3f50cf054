/*
 * rowahead.c - leaves of all entries of one row; see newrows.h.
 */
#include "am/newrows.h"

#include "access/htup_details.h"
#include "am/am.h"
#include "catalog/pg_index.h"
#include "executor/instrument.h"

/* Rows to leave alone after one whose leaves were all there. */
#define REST_ROWS 16

/*
 * Open an index and its view, if all rows of the table enter it by columns,
 * and this backend has it open and locked as a writer, which keeps DDL away;
 * else NULL.  (CREATE INDEX CONCURRENTLY and the like have one index open.)
 */
static Relation
open_index(Oid oid, LbtIndex **view)
{
	Relation	index = lbt_holds_lock(oid, RowExclusiveLock) ? RelationIdGetRelation(oid) : NULL;
	bool		fits;

	if (!RelationIsValid(index))
		return NULL;
	fits = index->rd_refcnt > 1 && index->rd_index->indisvalid &&
		heap_attisnull(index->rd_indextuple, Anum_pg_index_indpred, NULL) &&
		(*view = lbt_learned_view(index)) != NULL;
	for (int i = 0; fits && i < (*view)->keyspec.ncolumns; i++)
		fits = index->rd_index->indkey.values[i] > 0;
	if (fits)
		return index;
	RelationClose(index);
	return NULL;
}

/*
 * Ask for the leaf of the row's entry, if it is missing; true if so.  Not if a
 * feed does, or predictions fail, or the last entry's leaf may be this one's.
 */
static bool
ask(Relation rel, LbtIndex *index, Relation table, HeapTuple row)
{
	LbtInserting *inserting = &index->inserting;
	const LbtKeySpec *spec = &index->keyspec;
	uint8		scratch[LBT_CODE_COLUMNS * LBT_SCRATCH_BYTES];
	Datum		values[LBT_CODE_COLUMNS];
	bool		isnull[LBT_CODE_COLUMNS];
	LbtBound	key = {.ncolumns = spec->ncolumns};
	LbtTarget	target;
	uint64		code;

	if (inserting->foreseen || inserting->number < inserting->pause.resume ||
		!lbt_row_values(row, RelationGetDescr(table), spec->ncolumns,
						rel->rd_index->indkey.values, values, isnull) ||
		!lbt_key_of(spec, spec->ncolumns, NULL, true, values, isnull, scratch, key.value))
		return false;
	lbt_index_update(index);
	if (index->state != LBT_READY)
		return false;
	code = bound_code(index, &key);
	if (inserting->last.block != InvalidBlockNumber && code >= inserting->last.lo &&
		code <= inserting->last.hi)
		return false;
	predict_target(index, &key, code, true, index->seen.slot, &target);
	if (lbt_buffer_holds(target.recent, rel, target.block) ||
		!lbt_in_file(rel, index, target.block) ||
		BufferIsValid(PrefetchBuffer(rel, MAIN_FORKNUM, target.block).recent_buffer))
		return false;
	inserting->asked = true;
	lbt_count(index, LBT_EV_PREFETCHED);
	return true;
}

/*
 * Ask for the leaves of the other indexes if this one is the first.  Where
 * that is still to be used, the row before has not come so far: it has failed.
 */
static int
ask_others(Relation rel, LbtTally *tally, Relation table, HeapTuple row)
{
	List	   *indexes = RelationGetIndexList(table);
	int			most = lbt_read_distance(rel) - 1;
	int			asked = 0;
	bool		is_first = false;
	ListCell   *lc;

	foreach(lc, indexes)
	{
		LbtIndex   *view;
		Relation	other = open_index(lfirst_oid(lc), &view);

		if (other == NULL)
			continue;
		is_first |= other == rel;
		tally->used -= Min(tally->used, view->inserting.asked);
		view->inserting.asked = false;
		if (is_first && other != rel && asked < most)
			asked += ask(other, view, table, row);
		RelationClose(other);
		if (!is_first)
			break;
	}
	list_free(indexes);
	return asked;
}

void
lbt_row_ahead(Relation rel, LbtIndex *index, Relation table, ItemPointer tid)
{
	LbtInserting *inserting = &index->inserting;
	LbtPause   *pause = &inserting->row_pause;
	HeapTuple	row = NULL;
	int			asked = 0;

	inserting->reads = pgBufferUsage.shared_blks_read;
	if (inserting->rows++ < pause->resume)
		return;
	if (lbt_enable_prefetch && lbt_is_heap(table))
		row = lbt_copy_row(table, tid);
	if (row != NULL)
	{
		asked = ask_others(rel, &pause->tally, table, row);
		if (asked > 0)
			asked += ask(rel, index, table, row);
		heap_freetuple(row);
	}
	if (asked == 0)
		pause->resume = inserting->rows + REST_ROWS;
	else if (!lbt_pause_decide(pause, inserting->rows, false))
	{
		/* All of it will be used, as far as is known. */
		pause->tally.judged += asked;
		pause->tally.used += asked;
	}
}
