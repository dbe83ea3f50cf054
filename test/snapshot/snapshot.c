/*
 * snapshot.c - index scans by the snapshot that the planner uses for its own, for tests.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/relscan.h"
#include "access/table.h"
#include "access/tableam.h"
#include "executor/tuptable.h"
#include "fmgr.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

PG_MODULE_MAGIC;
PG_FUNCTION_INFO_V1(rows_not_vacuumable);

#if PG_VERSION_NUM >= 190000
#define BEGIN_SCAN(table, index, snapshot, nkeys) \
	index_beginscan(table, index, snapshot, NULL, nkeys, 0, 0)
#elif PG_VERSION_NUM >= 180000
#define BEGIN_SCAN(table, index, snapshot, nkeys) \
	index_beginscan(table, index, snapshot, NULL, nkeys, 0)
#else
#define BEGIN_SCAN(table, index, snapshot, nkeys) index_beginscan(table, index, snapshot, nkeys, 0)
#endif

/*
 * How many rows that are not dead to all does the index lead to?  backward; key: the planner's, IS NOT NULL on the first
 * column; tuples: those of the index are wanted.
 */
Datum
rows_not_vacuumable(PG_FUNCTION_ARGS)
{
	Relation	index = index_open(PG_GETARG_OID(0), AccessShareLock);
	ScanDirection direction = PG_GETARG_BOOL(1) ? BackwardScanDirection : ForwardScanDirection;
	int			nkeys = PG_GETARG_BOOL(2);
	Relation	table = table_open(index->rd_index->indrelid, AccessShareLock);
	TupleTableSlot *slot = table_slot_create(table, NULL);
	SnapshotData snapshot;
	ScanKeyData key;
	IndexScanDesc scan;
	int64		rows = 0;

	InitNonVacuumableSnapshot(snapshot, GlobalVisTestFor(table));
	ScanKeyEntryInitialize(&key, SK_ISNULL | SK_SEARCHNOTNULL, 1, InvalidStrategy, InvalidOid, InvalidOid, InvalidOid,
						   (Datum) 0);
	scan = BEGIN_SCAN(table, index, &snapshot, nkeys);
	scan->xs_want_itup = PG_GETARG_BOOL(3);
	index_rescan(scan, &key, nkeys, NULL, 0);
	while (index_getnext_tid(scan, direction) != NULL)
	{
		rows += index_fetch_heap(scan, slot);
		ExecClearTuple(slot);
	}
	index_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
	table_close(table, AccessShareLock);
	index_close(index, AccessShareLock);
	PG_RETURN_INT64(rows);
}
