/*
 * marks.c - what the triggers around the table learnedbtree.marks call.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "fmgr.h"
#include "learn/marks.h"
#include "storage/itemptr.h"
#include "utils/array.h"
#include "utils/inval.h"
#include "utils/rel.h"

PG_FUNCTION_INFO_V1(learnedbtree_marks_changed);

PG_FUNCTION_INFO_V1(learnedbtree_follow_marks);
PG_FUNCTION_INFO_V1(learnedbtree_forget_marks);

/* For the event triggers: bring rows up to date with their indexes, above all of objects that a command has changed. */
Datum
learnedbtree_follow_marks(PG_FUNCTION_ARGS)
{
	ArrayType  *changed = PG_GETARG_ARRAYTYPE_P(0);
	Datum	   *values;
	bool	   *nulls;
	int			n;
	Oid		   *oids;

	deconstruct_array(changed, OIDOID, sizeof(Oid), true, TYPALIGN_INT, &values, &nulls, &n);
	oids = palloc(Max(n, 1) * sizeof(Oid));
	for (int i = 0; i < n; i++)
		oids[i] = nulls[i] ? InvalidOid : DatumGetObjectId(values[i]);
	lbt_marks_follow(oids, n);
	PG_RETURN_VOID();
}

/* For the event triggers: delete rows. */
Datum
learnedbtree_forget_marks(PG_FUNCTION_ARGS)
{
	ArrayType  *rows = PG_GETARG_ARRAYTYPE_P(0);
	Datum	   *values;
	bool	   *nulls;
	int			n;

	deconstruct_array(rows, TIDOID, sizeof(ItemPointerData), false, TYPALIGN_SHORT, &values, &nulls, &n);
	for (int i = 0; i < n; i++)
		if (!nulls[i])
			lbt_mark_forget((ItemPointer) DatumGetPointer(values[i]));
	PG_RETURN_VOID();
}

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
