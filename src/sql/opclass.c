/*
 * opclass.c - learnedbtree_sync_opclasses(), which an event trigger calls after DDL, too.
 */
#include "postgres.h"

#include "am/am.h"
#include "fmgr.h"

PG_FUNCTION_INFO_V1(learnedbtree_sync_opclasses);

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
