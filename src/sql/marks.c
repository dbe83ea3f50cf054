/*
 * marks.c - the trigger of the table learnedbtree.marks: rows that SQL has inserted, as a restore does.
 */
#include "postgres.h"

#include "commands/trigger.h"
#include "fmgr.h"
#include "utils/inval.h"
#include "utils/rel.h"

PG_FUNCTION_INFO_V1(learnedbtree_marks_changed);

/* After each statement that has changed rows: backends copy the table anew. */
Datum
learnedbtree_marks_changed(PG_FUNCTION_ARGS)
{
	TriggerData *data = (TriggerData *) fcinfo->context;

	if (!CALLED_AS_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("learnedbtree_marks_changed() can only be called as a trigger")));
	CacheInvalidateRelcache(data->tg_relation);
	return PointerGetDatum(NULL);
}
