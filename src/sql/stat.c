/*
 * stat.c - the functions behind the view learnedbtree_stat.
 */
#include "postgres.h"

#include "am/am.h"
#include "fmgr.h"
#include "funcapi.h"
#include "registry/counters.h"
#include "registry/xact.h"
#include "miscadmin.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(learnedbtree_stat_get);
PG_FUNCTION_INFO_V1(learnedbtree_stat_reset);

#define STAT_COLUMNS (LBT_NEVENTS + 2)

/* One index's counts, in the order of LbtEvent, then the times of the last training and reset. */
Datum
learnedbtree_stat_get(PG_FUNCTION_ARGS)
{
	TupleDesc	tupdesc;
	LbtStats	stats;
	Datum		values[STAT_COLUMNS];
	bool		nulls[STAT_COLUMNS] = {false};

	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	lbt_registry_attach();
	lbt_counters_flush();
	lbt_stats_get(PG_GETARG_OID(0), &stats);
	for (int i = 0; i < LBT_NEVENTS; i++)
		values[i] = Int64GetDatum((int64) stats.events[i]);
	values[LBT_NEVENTS] = TimestampTzGetDatum(stats.last_trained);
	nulls[LBT_NEVENTS] = stats.last_trained == 0;
	values[LBT_NEVENTS + 1] = TimestampTzGetDatum(stats.reset_at);
	nulls[LBT_NEVENTS + 1] = stats.reset_at == 0;
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(tupdesc, values, nulls)));
}

Datum
learnedbtree_stat_reset(PG_FUNCTION_ARGS)
{
	LbtFile		file;

	lbt_registry_attach();
	lbt_counters_flush();
	if (PG_ARGISNULL(0))
		lbt_stats_reset(InvalidOid);
	else if (lbt_index_file(PG_GETARG_OID(0), &file))
		lbt_stats_reset(PG_GETARG_OID(0));
	PG_RETURN_VOID();
}
