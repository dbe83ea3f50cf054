/*
 * codes.c - the key code of a key, for tests: what a training of an index learns, and what it makes of any key.
 *
 * Not by the index's model, which tells no codes of keys, but by the same functions: rooms key/ and below, and the walk
 * along level 1, are compiled into this module (see Makefile).
 */
#include "postgres.h"

#include "access/genam.h"
#include "fmgr.h"
#include "funcapi.h"
#include "key/bound.h"
#include "key/keyspec.h"
#include "train/leafwalk.h"
#include "utils/builtins.h"

#pragma GCC visibility push(default)
PG_MODULE_MAGIC;
PG_FUNCTION_INFO_V1(key_code);
#pragma GCC visibility pop

typedef struct Learned
{
	Oid			index;
	LbtKeySpec	spec;
	LbtKeyCode	code;
} Learned;

static Learned *
learn(Relation rel)
{
	Learned    *learned = palloc0(sizeof(Learned));
	LbtKeyLearner *learner = palloc(sizeof(LbtKeyLearner));
	uint8	   *scratch = palloc(LBT_CODE_COLUMNS * LBT_SCRATCH_BYTES);
	LbtLeafWalk walk;
	LbtBound	bound;

	learned->index = RelationGetRelid(rel);
	lbt_keyspec_init(&learned->spec, rel);
	lbt_keycode_begin(learner, learned->spec.ncolumns, learned->spec.order);
	lbt_leafwalk_begin(&walk, rel);
	while (lbt_leafwalk_next(&walk))
		if (walk.separator)
		{
			lbt_bound_of_tuple(&learned->spec, RelationGetDescr(rel), walk.separator, scratch, &bound);
			lbt_keycode_observe(learner, bound.value, bound.ncolumns);
		}
	lbt_keycode_finish(learner, &learned->code);
	return learned;
}

/* key_code(index regclass, VARIADIC key "any") RETURNS numeric: of values of the columns' own types, not NULL. */
Datum
key_code(PG_FUNCTION_ARGS)
{
	Relation	rel = index_open(PG_GETARG_OID(0), AccessShareLock);
	Learned    *learned = fcinfo->flinfo->fn_extra;
	LbtKeyValue key[LBT_CODE_COLUMNS];
	Datum	   *values;
	Oid		   *types;
	bool	   *nulls;
	int			n = extract_variadic_args(fcinfo, 1, false, &values, &types, &nulls);
	uint64		code;

	if (learned == NULL || learned->index != RelationGetRelid(rel))
	{
		MemoryContext caller = MemoryContextSwitchTo(fcinfo->flinfo->fn_mcxt);

		fcinfo->flinfo->fn_extra = learned = learn(rel);
		MemoryContextSwitchTo(caller);
	}
	if (n < 1 || n > learned->spec.ncolumns)
		elog(ERROR, "no key of this index");
	for (int i = 0; i < n; i++)
	{
		const LbtKeyColumn *column = &learned->spec.column[i];

		if (nulls[i])
			elog(ERROR, "a key value is NULL");
		if (!lbt_keyspec_plain(column, values[i]))
			values[i] = PointerGetDatum(PG_DETOAST_DATUM_PACKED(values[i]));
		(void) lbt_keyspec_argument(column, InvalidOid, values[i], &key[i], palloc(LBT_SCRATCH_BYTES));
	}
	code = lbt_keycode(&learned->code, key, n, false);
	index_close(rel, AccessShareLock);
	return DirectFunctionCall3(numeric_in, CStringGetDatum(psprintf(UINT64_FORMAT, code)),
							   ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1));
}
