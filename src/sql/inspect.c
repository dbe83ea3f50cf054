/*
 * inspect.c - one index's model: what was learned, what it makes of a key, and training it anew.
 */
#include "postgres.h"

#include "access/genam.h"
#include "am/am.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "registry/settings.h"
#include "proof/locate.h"
#include "serve/serve.h"
#include "sql/functions.h"
#include "train/demand.h"
#include "train/report.h"
#include "train/train.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

PG_FUNCTION_INFO_V1(learnedbtree_train);
PG_FUNCTION_INFO_V1(learnedbtree_model);
PG_FUNCTION_INFO_V1(learnedbtree_leaves);
PG_FUNCTION_INFO_V1(learnedbtree_predict);
PG_FUNCTION_INFO_V1(learnedbtree_model_memory);

static const struct
{
	const char *name;
	const char *reason;
}			state_words[] = {
	[LBT_UNTRAINED] = {"untrained", "the first lookup will train it"},
	[LBT_READY] = {"ready", NULL},
	[LBT_EMPTY] = {"empty", "there was no leaf to learn from; the first lookup after it has grown will train it"},
	[LBT_TOO_LARGE] = {"too large", "the model does not fit into learnedbtree.max_model_memory, or its training into maintenance_work_mem"},
	[LBT_EVICTED] = {"evicted", "dropped to make room for other models; raise learnedbtree.max_model_memory, or call learnedbtree_train()"},
	[LBT_NO_MEMORY] = {"no memory", "shared memory could not be had; it will be tried again"},
	[LBT_DAMAGED] = {"damaged", "level 1 of the tree cannot be read, or is not in order; check the index with amcheck, or rebuild it"},
	[LBT_NOT_PAYING] = {"not paying", NULL},
	[LBT_FAILED] = {"failed", "training ended in an error, and will be tried again; learnedbtree_train() shows it"},
};

/* The width of a range. */
static int
bits(uint64 span)
{
	return span > 0 ? pg_leftmost_one_pos64(span) + 1 : 0;
}

/* The type of a column's values, also where the operator class is for several. */
static Oid
own_type(const LbtKeyColumn *column)
{
	return IsPolymorphicType(column->type) ? column->stored_type : column->type;
}

/* ---- the key code in words ---- */

/*
 * A byte string's part: "prefix 'user' + 19 bytes"; "8 bytes".  What is not printable ASCII is escaped.  The bytes of an
 * encoding say nothing to users: "sort key, 2 bytes in common + 8 bytes".
 */
static void
describe_bytes(StringInfo s, const LbtKeyColumn *c, const LbtCodeColumn *column, const LbtKeyDigit *d,
			   const uint8 *prefix)
{
	int			common = column->prefix_length;
	int			n = 0;

	/* Digits without a span are where strings end, and go on in none. */
	for (int i = 0; i < column->ndigits; i++)
		n += d[i].span >= d[i].ends && (d[i].span > 0 || !d[i].ends);
	if (c->encoded)
		appendStringInfoString(s, c->encoding == LBT_ENCODE_SORT_KEY ? "sort key, " : "encoded, ");
	if (c->encoded && common > 0)
		appendStringInfo(s, "%d byte%s in common + ", common, common == 1 ? "" : "s");
	else if (common > 0)
	{
		appendStringInfoString(s, "prefix '");
		for (int i = 0; i < common; i++)
			appendStringInfo(s, prefix[i] < ' ' || prefix[i] > '~' || prefix[i] == '\'' || prefix[i] == '\\' ?
							 "\\x%02x" : "%c", prefix[i]);
		appendStringInfoString(s, "' + ");
	}
	appendStringInfo(s, "%d byte%s", n, n == 1 ? "" : "s");
}

/* A number's part: the range seen in training; floats and what has lost its low bits show their bits. */
static void
describe_number(StringInfo s, const LbtKeyColumn *c, const LbtKeyDigit *d)
{
	uint64		lo = c->desc ? ~(d->lo + d->span) : d->lo;
	uint64		hi = c->desc ? ~d->lo : d->lo + d->span;

	if (d->shift > 0)
		appendStringInfo(s, ", upper %d of %d bits", bits(d->span >> d->shift), bits(d->span));
	else if (c->kind == LBT_KEY_FLOAT)
		appendStringInfo(s, ", %d bits", bits(d->span));
	else if (d->lo == 0 && d->span == 0)
		;						/* no separator had a value for it */
	else if (c->kind == LBT_KEY_SIGNED)
		appendStringInfo(s, " " INT64_FORMAT ".." INT64_FORMAT,
						 lbt_unorder_signed(lo), lbt_unorder_signed(hi));
	else
		appendStringInfo(s, " " UINT64_FORMAT ".." UINT64_FORMAT, lo, hi);
}

/*
 * The key code in words, column for column: "id bigint"; "tenant integer 0..999 x id bigint 0..4000000";
 * "key text: prefix 'user' + 19 bytes"; "path text: prefix '/usr/' + 11 bytes, separators".
 */
static char *
describe_code(Relation rel, const LbtKeySpec *spec, const LbtModelHeader *header)
{
	const LbtKeyCode *code = &header->code;
	const LbtKeyDigit *d = code->digit;
	const uint8 *prefix = code->prefix;
	StringInfoData s;

	initStringInfo(&s);
	for (int i = 0; i < code->ncolumns; i++)
	{
		const LbtKeyColumn *c = &spec->column[i];

		appendStringInfo(&s, "%s%s %s%s", i > 0 ? " x " : "",
						 NameStr(TupleDescAttr(RelationGetDescr(rel), i)->attname),
						 format_type_be(own_type(c)),
						 c->desc ? " desc" : "");
		if (c->bytes)
		{
			appendStringInfoString(&s, ": ");
			describe_bytes(&s, c, &code->column[i], d, prefix);
		}
		else if (!code->raw)
			describe_number(&s, c, d);
		d += code->column[i].ndigits;
		prefix += code->column[i].prefix_length;
	}
	if (code->ncolumns < spec->nkeyatts)
		appendStringInfoString(&s, header->separator_bytes > 0 ? " (further columns count in separators only)" :
							   " (further columns tie)");
	if (header->separator_bytes > 0)
		appendStringInfoString(&s, ", separators");
	return s.data;
}

/* ---- the model ---- */

static inline double
mean_us(const LbtSince *since, LbtWay way)
{
	return lbt_mean_ns(&since->times[way]) / 1000;
}

const char *
lbt_model_state(Relation rel, LbtIndex *index, LbtRegistered *model, const char **reason)
{
	const char *refusal = NULL;

	memset(model, 0, sizeof(*model));
	if (!lbt_trainable(rel, index, reason))
		return index->keyspec.ncolumns == 0 && index->serving.options.learned != 0 ? "unsupported" : "off";
	if (index->shareable)
		lbt_registry_describe(&index->file, model);
	if (lbt_is_btree(rel))
		refusal = lbt_serve_refusal(rel, NULL);
	*reason = refusal ? psprintf("not served in this session: %s", refusal) :
		!lbt_enable && model->state == LBT_READY ? "not used: learnedbtree.enable is off" :
		model->state == LBT_NOT_PAYING && lbt_policy_slow(&model->since) ?
		psprintf("by the clock: a lookup takes %.2f us through the model, and %.2f us by a descent; the next training "
				 "tries again", mean_us(&model->since, LBT_BY_MODEL), mean_us(&model->since, LBT_BY_DESCENT)) :
		model->state == LBT_NOT_PAYING ?
		psprintf("of " UINT64_FORMAT " predictions since the training " UINT64_FORMAT " failed and " UINT64_FORMAT
				 " were a neighbour's: descents cost less; the next training tries again",
				 model->since.predictions, model->since.fallbacks, model->since.moved) :
		state_words[model->state].reason;
	return state_words[model->state].name;
}

Datum
learnedbtree_model(PG_FUNCTION_ARGS)
{
	Relation	rel = lbt_open_index(lbt_index_argument(fcinfo), AccessShareLock, LBT_MAY_SEE);
	LbtIndex   *index = lbt_index_get(rel);
	LbtRow		row = {0};
	LbtRegistered model;
	const LbtModelHeader *header = &model.header;
	const LbtSince *since = &model.since;
	const char *reason;

	lbt_report_all();
	lbt_row_add_text(&row, lbt_model_state(rel, index, &model, &reason));
	lbt_row_add_text(&row, reason);
	if (model.state == LBT_READY)
	{
		lbt_row_add(&row, Int64GetDatum(header->nleaves));
		lbt_row_add(&row, Int32GetDatum(header->nknots));
		lbt_row_add(&row, Float8GetDatum(header->max_error));
		lbt_row_add(&row, Float8GetDatum(header->mean_error));
		lbt_row_add(&row, Int64GetDatum(header->bytes));
		lbt_row_add_text(&row, lbt_may_see_values(rel) ? describe_code(rel, &index->keyspec, header) : NULL);
		lbt_row_add(&row, Int64GetDatum(header->separator_bytes));
		lbt_row_add(&row, Int64GetDatum(header->ties));
		lbt_row_add(&row, TimestampTzGetDatum(header->trained_at));
		if (header->source == LBT_FROM_SAVED)
			lbt_row_add_nulls(&row, 1);
		else
			lbt_row_add(&row, Float8GetDatum(header->training_ms));
		lbt_row_add_text(&row, header->source == LBT_FROM_SAVED ? "metapage" : "training");
	}
	else
		lbt_row_add_nulls(&row, 11);
	if (model.state == LBT_READY || model.state == LBT_NOT_PAYING)
	{
		lbt_row_add(&row, Int64GetDatum(since->splits));
		lbt_row_add(&row, Int64GetDatum(since->deleted));
		lbt_row_add(&row, Int64GetDatum(since->predictions));
		lbt_row_add(&row, Int64GetDatum(since->moved));
		lbt_row_add(&row, Int64GetDatum(since->fallbacks));
		for (int way = 0; way < LBT_NWAYS; way++)
			if (since->times[way].n > 0)
				lbt_row_add(&row, Float8GetDatum(mean_us(since, way)));
			else
				lbt_row_add_nulls(&row, 1);
	}
	index_close(rel, AccessShareLock);
	PG_RETURN_DATUM(lbt_row_result(fcinfo, &row));
}

/* A key code for users: numeric, as bigint is too small for codes. */
static Datum
code_datum(uint64 code)
{
	return DirectFunctionCall3(numeric_in, CStringGetDatum(psprintf(UINT64_FORMAT, code)),
							   ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1));
}

/* The rows of learnedbtree_leaves(), from a copy of the model; without codes for who may not see them. */
static void
put_leaves(ReturnSetInfo *rsinfo, const LbtModel *model, bool codes)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "learnedbtree leaf", ALLOCSET_SMALL_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	uint32		knot = 0;

	for (uint32 slot = 0; slot < model->nleaves; slot++)
	{
		bool		tied = lbt_leaf_tied(model->leaves, slot);
		bool		bends = knot < model->nknots && model->knots[knot].slot == slot;
		Datum		values[] = {Int64GetDatum(slot), codes ? code_datum(model->leaves[slot].min_code) : 0,
			BoolGetDatum(bends), tied ? 0 :
		Float8GetDatum(lbt_spline_error(model->knots, model->nknots, model->leaves, model->nleaves, slot))};
		bool		nulls[] = {false, !codes, false, tied};

		CHECK_FOR_INTERRUPTS();
		knot += bends;
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
		MemoryContextReset(context);
	}
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(context);
}

Datum
learnedbtree_leaves(PG_FUNCTION_ARGS)
{
	Relation	rel = lbt_open_index(lbt_index_argument(fcinfo), AccessShareLock, LBT_MAY_SEE);
	Size		bytes;
	void	   *copy = lbt_index_copy_model(lbt_index_get(rel), &bytes);
	LbtModel	model;
	LbtKeyCode	code;

	InitMaterializedSRF(fcinfo, 0);
	if (copy && lbt_model_open(copy, bytes, &model, &code))
		put_leaves((ReturnSetInfo *) fcinfo->resultinfo, &model, lbt_may_see_values(rel));
	index_close(rel, AccessShareLock);
	return (Datum) 0;
}

Datum
learnedbtree_model_memory(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64((int64) lbt_registry_bytes());
}

/* ---- one lookup ---- */

/* A key value of any type: what its text is as a value of the column's own type. */
static Datum
column_value(const LbtKeyColumn *column, Oid type, Datum value)
{
	char	   *text;
	Oid			function;
	Oid			ioparam;
	bool		varlena;

	if (type == own_type(column))
		return value;
	getTypeOutputInfo(type, &function, &varlena);
	text = type == UNKNOWNOID ? DatumGetCString(value) : OidOutputFunctionCall(function, value);

	getTypeInputInfo(own_type(column), &function, &ioparam);
	return OidInputFunctionCall(function, text, ioparam, -1);
}

/* The bound in front of the key that is in the arguments from the second on. */
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
	memset(bound, 0, sizeof(*bound));
	bound->ncolumns = nvalues;
	for (int i = 0; i < nvalues; i++)
	{
		const LbtKeyColumn *column = &spec->column[i];
		Datum		value;

		if (nulls[i])
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("key value %d must not be NULL", i + 1),
					 errhint("Lookups of NULLs use the ordinary descent.")));
		value = column_value(column, types[i], values[i]);
		if (!lbt_keyspec_plain(column, value))
			value = PointerGetDatum(PG_DETOAST_DATUM_PACKED(value));
		(void) lbt_keyspec_argument(column, InvalidOid, value, &bound->value[i], palloc(LBT_SCRATCH_BYTES));
	}
}

/*
 * This tells key values to who asks often enough: where the leaf changes from one key to the next there is a separator,
 * and codes show the learned prefix and ranges.  Nothing is counted: statistics and the retrain policy are about users'
 * lookups.
 */
Datum
learnedbtree_predict(PG_FUNCTION_ARGS)
{
	Relation	rel = lbt_open_index(lbt_index_argument(fcinfo), AccessShareLock, LBT_MAY_SEE_VALUES);
	LbtIndex   *index = lbt_index_get(rel);
	const char *reason;
	LbtRow		row = {0};
	LbtBound	bound;
	LbtTarget	target = {.generation = 0};
	OffsetNumber offset;
	LbtOutcome	outcome;
	Buffer		proven = InvalidBuffer;
	Buffer		found;

	if (!lbt_trainable(rel, index, &reason))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("index \"%s\" has no model", RelationGetRelationName(rel)),
				 errdetail_internal("%s.", reason)));
	read_key(fcinfo, rel, &index->keyspec, &bound);
	lbt_index_update(index);
	if (index->state == LBT_UNTRAINED)
		lbt_train_on_use(rel, index);
	if (index->state == LBT_READY)
	{
		lbt_row_add(&row, code_datum(lbt_keycode(index->model.code, bound.value, bound.ncolumns, LBT_MISSING_LOW)));
		proven = lbt_locate(rel, index, &bound, GetActiveSnapshot(), &offset, &target, &outcome);
		lbt_row_add(&row, Int64GetDatum(target.block));
		if (BufferIsValid(proven))
			_bt_relbuf(rel, proven);
	}
	else
		lbt_row_add_nulls(&row, 2);
	found = lbt_descend(rel, index, &bound, false, GetActiveSnapshot(), &offset);
	if (BufferIsValid(found))
	{
		lbt_row_add(&row, Int64GetDatum(BufferGetBlockNumber(found)));
		_bt_relbuf(rel, found);
	}
	else
		lbt_row_add_nulls(&row, 1);
	if (BufferIsValid(proven))
		lbt_row_add(&row, Int32GetDatum(outcome.moved));
	index_close(rel, AccessShareLock);
	PG_RETURN_DATUM(lbt_row_result(fcinfo, &row));
}

/* ---- training ---- */

Datum
learnedbtree_train(PG_FUNCTION_ARGS)
{
	/* No writer is blocked: training reads what it needs page by page. */
	Relation	rel = lbt_open_index(lbt_index_argument(fcinfo), AccessShareLock, LBT_MAY_CHANGE);
	LbtIndex   *index = lbt_index_get(rel);
	const char *reason;
	LbtState	state;

	if (!lbt_trainable(rel, index, &reason))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("index \"%s\" cannot have a model", RelationGetRelationName(rel)),
				 errdetail_internal("%s.", reason),
				 errhint("It works as a plain btree; see learnedbtree_model().")));
	state = lbt_train(rel, index);
	if (state != LBT_EMPTY && state_words[state].reason)
		ereport(WARNING,
				(errcode(state == LBT_NO_MEMORY ? ERRCODE_OUT_OF_MEMORY :
						 state == LBT_DAMAGED ? ERRCODE_INDEX_CORRUPTED : ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("index \"%s\" has no model: %s", RelationGetRelationName(rel), state_words[state].reason),
				 state == LBT_TOO_LARGE ?
				 errhint("A model takes 16 bytes a leaf and 24 bytes a knot, a training as much; raise the settings and train again.") : 0));
	index_close(rel, AccessShareLock);
	PG_RETURN_VOID();
}
