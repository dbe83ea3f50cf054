/*
 * marktriggers.c - what the extension's triggers call: those of the table learnedbtree.marks, and the event triggers.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "fmgr.h"
#include "registry/xact.h"
#include "serve/marks.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/rel.h"

PG_FUNCTION_INFO_V1(learnedbtree_marks_changed);

PG_FUNCTION_INFO_V1(learnedbtree_follow_marks);
PG_FUNCTION_INFO_V1(learnedbtree_forget_dropped);

static Oid *
oid_array(ArrayType *array, int *n)
{
	Datum	   *values;
	bool	   *nulls;
	Oid		   *oids;

	deconstruct_array(array, OIDOID, sizeof(Oid), true, TYPALIGN_INT, &values, &nulls, n);
	oids = palloc(Max(*n, 1) * sizeof(Oid));
	for (int i = 0; i < *n; i++)
		oids[i] = nulls[i] ? InvalidOid : DatumGetObjectId(values[i]);
	return oids;
}

static char **
text_array(ArrayType *array, int *n)
{
	Datum	   *values;
	bool	   *nulls;
	char	  **texts;

	deconstruct_array(array, TEXTOID, -1, false, TYPALIGN_INT, &values, &nulls, n);
	texts = palloc(Max(*n, 1) * sizeof(char *));
	for (int i = 0; i < *n; i++)
		texts[i] = nulls[i] ? "" : TextDatumGetCString(values[i]);
	return texts;
}

/* For the event triggers: bring rows up to date with their indexes, above all of objects that a command has changed. */
Datum
learnedbtree_follow_marks(PG_FUNCTION_ARGS)
{
	int			n;
	Oid		   *changed = oid_array(PG_GETARG_ARRAYTYPE_P(0), &n);

	lbt_marks_follow(changed, n);
	PG_RETURN_VOID();
}

/* For the event triggers: forget dropped indexes, whose OIDs, schemas and names these are. */
Datum
learnedbtree_forget_dropped(PG_FUNCTION_ARGS)
{
	int			n;
	int			nschemas;
	int			nnames;
	Oid		   *oids = oid_array(PG_GETARG_ARRAYTYPE_P(0), &n);
	char	  **schemas = text_array(PG_GETARG_ARRAYTYPE_P(1), &nschemas);
	char	  **names = text_array(PG_GETARG_ARRAYTYPE_P(2), &nnames);

	lbt_xact_dropped(oids, n);
	lbt_marks_forget(oids, schemas, names, Min(n, Min(nschemas, nnames)));
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
