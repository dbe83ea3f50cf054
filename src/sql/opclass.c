/*
 * opclass.c - learnedbtree_sync_opclasses(), and the event trigger that calls it after DDL.
 */
#include "postgres.h"

#include "am/am.h"
#include "commands/event_trigger.h"
#include "fmgr.h"

PG_FUNCTION_INFO_V1(learnedbtree_sync_opclasses);
PG_FUNCTION_INFO_V1(learnedbtree_on_ddl);

Datum
learnedbtree_sync_opclasses(PG_FUNCTION_ARGS)
{
	Oid			am = lbt_am_oid();

	if (!OidIsValid(am))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("access method \"learnedbtree\" does not exist"),
				 errhint("CREATE EXTENSION learnedbtree first.")));
	PG_RETURN_INT32(lbt_sync_opclasses(am));
}

Datum
learnedbtree_on_ddl(PG_FUNCTION_ARGS)
{
	Oid			am = lbt_am_oid();

	if (!CALLED_AS_EVENT_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_EVENT_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("learnedbtree_on_ddl() can only be called as an event trigger")));
	if (OidIsValid(am))
		(void) lbt_sync_opclasses(am);
	PG_RETURN_NULL();
}
