/*
 * predict.c - what the model makes of a key: learnedbtree_predict(regclass, key ...), one lookup, prediction and
 * descent side by side, and learnedbtree_key_code(regclass, key ...).
 */
#include "postgres.h"

#include "access/genam.h"
#include "fmgr.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "registry/counters.h"
#include "search/locate.h"
#include "registry/settings.h"
#include "train/train.h"
#include "sql/index_arg.h"
#include "parser/parse_coerce.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"

PG_FUNCTION_INFO_V1(learnedbtree_predict);
PG_FUNCTION_INFO_V1(learnedbtree_key_code);

/* The type of a column's values, where the operator class is for several. */
static Oid
own_type(const LbtKeyColumn *column)
{
	return IsPolymorphicType(column->type) ? column->stored_type : column->type;
}

/* Bring the next key value into the bound; quoted literals are read as the column's type. */
static void
add_value(Relation rel, const LbtKeyColumn *column, LbtBound *bound, Oid type, Datum value)
{
	LbtKeyValue *to = &bound->value[bound->ncolumns];
	uint8	   *room = palloc(LBT_KEY_ROOM);
	int			side;

	if (type == UNKNOWNOID || type == TEXTOID)
	{
		char	   *literal = type == UNKNOWNOID ? DatumGetCString(value) : TextDatumGetCString(value);
		Oid			input;
		Oid			ioparam;

		getTypeInputInfo(own_type(column), &input, &ioparam);
		value = OidInputFunctionCall(input, literal, ioparam, -1);
		type = own_type(column);
	}
	type = getBaseType(type);
	if (IsPolymorphicType(column->type) ? type == column->stored_type : IsBinaryCoercible(type, column->type))
		type = column->type;
	if (!lbt_keyspec_takes(column, type))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("key value %d of index \"%s\" cannot be of type %s", bound->ncolumns + 1,
						RelationGetRelationName(rel), format_type_be(type)),
				 errhint("The column is of type %s.", format_type_be(own_type(column)))));
	if (!lbt_keyspec_plain(column, value))
		value = PointerGetDatum(PG_DETOAST_DATUM_PACKED(value));
	side = lbt_keyspec_argument(column, type, value, to, room);
	if (side != 0)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("key value %d is out of range for type %s", bound->ncolumns + 1,
						format_type_be(own_type(column)))));
	bound->ncolumns++;
}

static void
read_key(FunctionCallInfo fcinfo, Relation rel, const LbtKeySpec *spec, LbtBound *bound)
{
	Datum	   *values;
	Oid		   *types;
	bool	   *nulls;
	int			nvalues = extract_variadic_args(fcinfo, 1, false, &values, &types, &nulls);

	if (nvalues < 1)
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("the key must not be NULL")));
	if (nvalues > spec->ncolumns)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("too many key values for index \"%s\"", RelationGetRelationName(rel)),
				 errdetail_plural("Its model covers %d key column.", "Its model covers %d key columns.",
								  spec->ncolumns, spec->ncolumns)));
	bound->ncolumns = 0;
	bound->past = false;
	for (int i = 0; i < nvalues; i++)
	{
		if (nulls[i])
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("key value %d must not be NULL", i + 1),
					 errhint("Lookups of NULLs use the ordinary descent.")));
		add_value(rel, &spec->column[i], bound, types[i], values[i]);
	}
}

/*
 * Open the index, which must be one that can have a model, and read the key; trains what was never trained.
 *
 * Both functions tell key values to who asks often enough: where the leaf changes from one key to the next there is a
 * separator, and codes show the learned prefix and ranges.
 */
static Relation
begin(FunctionCallInfo fcinfo, LbtIndex **index, LbtBound *bound)
{
	Relation	rel = lbt_open_index(lbt_index_argument(fcinfo), AccessShareLock, LBT_MAY_SEE_VALUES);
	const char *reason;

	*index = lbt_index_get(rel);
	if (!lbt_trainable(rel, *index, &reason))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("index \"%s\" has no model", RelationGetRelationName(rel)),
				 errdetail_internal("%s.", reason)));
	read_key(fcinfo, rel, &(*index)->keyspec, bound);
	lbt_index_update(*index);
	if ((*index)->state == LBT_UNTRAINED)
		lbt_train_on_use(rel, *index);
	if ((*index)->state == LBT_UNTRAINED)
		(void) lbt_train(rel, *index);	/* it has been left to the worker; whoever asks here can wait */
	return rel;
}

Datum
learnedbtree_key_code(PG_FUNCTION_ARGS)
{
	LbtIndex   *index;
	LbtBound	bound;
	Relation	rel = begin(fcinfo, &index, &bound);
	uint64		code;

	if (index->state != LBT_READY)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("index \"%s\" has no model", RelationGetRelationName(rel)),
				 errhint("learnedbtree_model() tells why.")));
	code = lbt_model_code(&index->model, bound.value, bound.ncolumns, LBT_MISSING_LOW);
	index_close(rel, AccessShareLock);
	PG_RETURN_DATUM(lbt_numeric_from_uint64(code));
}

Datum
learnedbtree_predict(PG_FUNCTION_ARGS)
{
	LbtIndex   *index;
	LbtBound	bound;
	Relation	rel = begin(fcinfo, &index, &bound);
	TupleDesc	tupdesc;
	Datum		values[3];
	bool		nulls[3] = {true, true, true};
	LbtTarget	target = {.generation = 0};
	OffsetNumber offset;
	LbtOutcome	outcome;
	Buffer		buf;

	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	if (index->state == LBT_READY)
	{
		buf = lbt_predict_leaf(rel, index, &bound, GetActiveSnapshot(), &offset, &target, &outcome);
		lbt_count_lookup(index, outcome.event, outcome.moved);
		values[0] = Int64GetDatum(target.block);
		nulls[0] = false;
		if (BufferIsValid(buf))
		{
			values[2] = Int32GetDatum(outcome.moved);
			nulls[2] = false;
			_bt_relbuf(rel, buf);
		}
	}
	buf = lbt_descend(rel, index, &bound, false, GetActiveSnapshot(), &offset);
	if (BufferIsValid(buf))
	{
		values[1] = Int64GetDatum(BufferGetBlockNumber(buf));
		nulls[1] = false;
		_bt_relbuf(rel, buf);
	}
	index_close(rel, AccessShareLock);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(tupdesc, values, nulls)));
}
