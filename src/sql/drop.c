/*
 * drop.c - noticing that indexes and databases are dropped, so that their models and settings go too.
 *
 * The event trigger sees every dropped index, but not those that REINDEX CONCURRENTLY drops, and no
 * databases; the hook (changes.c) sees all, but only in sessions that have loaded the library before.  What both
 * miss is never found again and goes when memory is short.
 */
#include "postgres.h"

#include "commands/event_trigger.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "learn/kept.h"
#include "learn/lifecycle.h"
#include "miscadmin.h"

PG_FUNCTION_INFO_V1(learnedbtree_on_drop);

/* For the event sql_drop.  The catalog no longer tells whose indexes they were: forgetting is harmless. */
Datum
learnedbtree_on_drop(PG_FUNCTION_ARGS)
{
	List	   *names = NIL;

	if (!CALLED_AS_EVENT_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_EVENT_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("learnedbtree_on_drop() can only be called as an event trigger")));
	SPI_connect();
	if (SPI_execute("SELECT objid, schema_name, object_name FROM pg_catalog.pg_event_trigger_dropped_objects() "
					"WHERE object_type = 'index' AND NOT is_temporary", true, 0) != SPI_OK_SELECT)
		elog(ERROR, "could not list the dropped indexes");
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		bool		isnull;
		Datum		oid = SPI_getbinval(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1, &isnull);
		char	  **name = palloc(2 * sizeof(char *));

		name[0] = SPI_getvalue(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 2);
		name[1] = SPI_getvalue(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 3);

		if (!isnull)
			lbt_lifecycle_dropped(MyDatabaseId, DatumGetObjectId(oid));
		if (name[0] && name[1])
			names = lappend(names, name);
	}
	lbt_kept_forget(names);
	SPI_finish();
	PG_RETURN_NULL();
}
