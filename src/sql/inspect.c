/*
 * inspect.c - learnedbtree_model(), learnedbtree_knots(): what was learned.
 */
#include "postgres.h"

#include "access/genam.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "registry/counters.h"
#include "registry/settings.h"
#include "train/train.h"
#include "serve/serve.h"
#include "lib/stringinfo.h"
#include "sql/index_arg.h"
#include "sql/inspect.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(learnedbtree_model);
PG_FUNCTION_INFO_V1(learnedbtree_knots);
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
	[LBT_DAMAGED] = {"damaged", "level 1 of the tree cannot be read, or is not in order; check the index with learnedbtree_check()"},
	[LBT_NOT_PAYING] = {"not paying", NULL},	/* see why_not_paying() */
	[LBT_FAILED] = {"failed", "training ended in an error, and will be tried again; learnedbtree_train() shows it"},
};

/* The width in bits of a range. */
static int
bits(uint64 span)
{
	int			n = 0;

	for (; span > 0; span >>= 1)
		n++;
	return n;
}

/* A common prefix, quoted; what is not printable ASCII is escaped. */
static void
describe_prefix(StringInfo s, const uint8 *prefix, int length)
{
	appendStringInfoString(s, "prefix '");
	for (int i = 0; i < length; i++)
	{
		if (prefix[i] < ' ' || prefix[i] > '~' || prefix[i] == '\'' || prefix[i] == '\\')
			appendStringInfo(s, "\\x%02x", prefix[i]);
		else
			appendStringInfoChar(s, (char) prefix[i]);
	}
	appendStringInfoString(s, "' + ");
}

/*
 * A byte string's part: "prefix 'user' + 19 digits"; "8 bytes".  The bytes of an encoding say nothing to users:
 * "sort key, 2 bytes in common + 8 bytes".
 */
static void
describe_bytes(StringInfo s, const LbtKeyCode *code, const LbtKeyColumn *c, const LbtCodeColumn *column,
			   const LbtKeyDigit *d)
{
	const char *unit = c->encoded ? "byte" : "digit";
	int			n = 0;

	if (c->encoded)
		appendStringInfoString(s, c->encoding == LBT_ENCODE_SORT_KEY ? "sort key, " : "encoded, ");
	if (c->encoded && column->prefix_length > 0)
		appendStringInfo(s, "%d byte%s in common + ", column->prefix_length, column->prefix_length == 1 ? "" : "s");
	else if (column->prefix_length > 0)
		describe_prefix(s, code->prefix + column->prefix, column->prefix_length);
	for (int i = 0; i < column->ndigits; i++)
	{
		if (d[i].span < d[i].ends || (d[i].span == 0 && d[i].ends))
			continue;			/* strings end here, and go on in none */
		if (d[i].lo < '0' || d[i].lo + d[i].span - d[i].ends > '9' || d[i].alphabet > 0)
			unit = "byte";
		n++;
	}
	appendStringInfo(s, "%d %s%s", n, unit, n == 1 ? "" : "s");
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
 * "key text: prefix 'user' + 19 digits"; "path text: prefix '/usr/' + 11 bytes, 37 segments".
 */
static char *
describe_code(Relation rel, const LbtKeySpec *spec, const LbtModelHeader *header)
{
	const LbtKeyCode *code = &header->code;
	const LbtKeyDigit *d = code->digit;
	StringInfoData s;

	initStringInfo(&s);
	for (int i = 0; i < code->ncolumns; i++)
	{
		const LbtKeyColumn *c = &spec->column[i];

		appendStringInfo(&s, "%s%s %s%s", i > 0 ? " x " : "",
						 NameStr(TupleDescAttr(RelationGetDescr(rel), i)->attname),
						 format_type_be(IsPolymorphicType(c->type) ? c->stored_type : c->type),
						 c->desc ? " desc" : "");
		if (c->bytes)
		{
			appendStringInfoString(&s, ": ");
			describe_bytes(&s, code, c, &code->column[i], d);
		}
		else if (!code->raw)
			describe_number(&s, c, d);
		d += code->column[i].ndigits;
	}
	if (code->ncolumns < spec->nkeyatts)
		appendStringInfo(&s, header->segments > 0 ? " (further columns count in segments only)" :
						 " (further columns tie)");
	if (header->segments > 0)
		appendStringInfo(&s, ", %u segment%s", header->segments, header->segments == 1 ? "" : "s");
	return s.data;
}

/* What led to the decision; the numbers are those of all since the training, not only of late. */
static const char *
why_not_paying(const LbtSince *since)
{
	return psprintf("of " UINT64_FORMAT " predictions since the training " UINT64_FORMAT " failed and "
					UINT64_FORMAT " were a neighbour's: descents cost less; the next training tries again",
					since->predictions, since->fallbacks, since->moved);
}

const char *
lbt_model_state(Relation rel, LbtIndex *index, LbtRegistered *model, const char **reason)
{
	const char *refusal = NULL;

	memset(model, 0, sizeof(*model));
	if (!lbt_trainable(rel, index, reason))
		return index->keyspec.ncolumns == 0 && index->options.learned != 0 ? "unsupported" : "off";
	(void) (index->shareable && lbt_registry_describe(&index->file, model));
	if (lbt_is_btree(rel))
		refusal = lbt_serve_refusal(rel, NULL);
	*reason = refusal ? psprintf("not served in this session: %s", refusal) : !lbt_enable && model->state == LBT_READY ? "not used: learnedbtree.enable is off" :
		model->state == LBT_NOT_PAYING ? why_not_paying(&model->since) : state_words[model->state].reason;
	return state_words[model->state].name;
}

#define MODEL_COLUMNS 18
#define MODEL_FIRST_MEASURE 2
#define MODEL_KEY_CODE 7
#define MODEL_TRAINING_MS 11
#define MODEL_FIRST_SINCE 13

static void
model_measures(Relation rel, const LbtIndex *index, const LbtModelHeader *header, Datum *values,
			   bool *nulls)
{
	values[2] = Int64GetDatum(header->nleaves);
	values[3] = Int32GetDatum(header->nknots);
	values[4] = Float8GetDatum(header->max_error);
	values[5] = Float8GetDatum(header->mean_error);
	values[6] = Int64GetDatum(header->bytes);
	values[8] = Int64GetDatum(header->segments);
	values[9] = Int64GetDatum(header->ties);
	values[10] = TimestampTzGetDatum(header->trained_at);
	values[MODEL_TRAINING_MS] = Float8GetDatum(header->training_ms);
	values[12] = CStringGetTextDatum(header->source == LBT_FROM_IMAGE ? "metapage" : "training");
	memset(nulls + MODEL_FIRST_MEASURE, false, MODEL_FIRST_SINCE - MODEL_FIRST_MEASURE);
	nulls[MODEL_TRAINING_MS] = header->source == LBT_FROM_IMAGE;
	nulls[MODEL_KEY_CODE] = !lbt_may_see_values(rel);
	if (!nulls[MODEL_KEY_CODE])
		values[MODEL_KEY_CODE] = CStringGetTextDatum(describe_code(rel, &index->keyspec, header));
}

static void
model_since(const LbtSince *since, Datum *values, bool *nulls)
{
	values[13] = Int64GetDatum(since->splits);
	values[14] = Int64GetDatum(since->deleted);
	values[15] = Int64GetDatum(since->predictions);
	values[16] = Int64GetDatum(since->moved);
	values[17] = Int64GetDatum(since->fallbacks);
	memset(nulls + MODEL_FIRST_SINCE, false, MODEL_COLUMNS - MODEL_FIRST_SINCE);
}

Datum
learnedbtree_model(PG_FUNCTION_ARGS)
{
	Relation	rel = lbt_open_index(lbt_index_argument(fcinfo), AccessShareLock, LBT_MAY_SEE);
	LbtIndex   *index = lbt_index_get(rel);
	LbtRegistered model;
	const char *reason;
	TupleDesc	tupdesc;
	Datum		values[MODEL_COLUMNS];
	bool		nulls[MODEL_COLUMNS];

	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	memset(nulls, true, sizeof(nulls));
	lbt_counters_flush();
	values[0] = CStringGetTextDatum(lbt_model_state(rel, index, &model, &reason));
	nulls[0] = false;
	if (reason)
		values[1] = CStringGetTextDatum(reason);
	nulls[1] = reason == NULL;
	if (model.state == LBT_READY)
		model_measures(rel, index, &model.header, values, nulls);
	if (model.state == LBT_READY || model.state == LBT_NOT_PAYING)
		model_since(&model.since, values, nulls);
	index_close(rel, AccessShareLock);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(tupdesc, values, nulls)));
}

Datum
learnedbtree_knots(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Relation	rel = lbt_open_index(lbt_index_argument(fcinfo), AccessShareLock, LBT_MAY_SEE);
	LbtIndex   *index = lbt_index_get(rel);
	bool		hide_code = !lbt_may_see_values(rel);
	Size		bytes;
	void	   *copy = lbt_index_copy_model(index, &bytes);
	LbtModel	model;

	InitMaterializedSRF(fcinfo, 0);
	if (copy && lbt_model_open(copy, bytes, &model))
		for (uint32 i = 0; i < model.nknots; i++)
		{
			Datum		values[2] = {hide_code ? (Datum) 0 : lbt_numeric_from_uint64(model.knots[i].code),
			Int64GetDatum(model.knots[i].slot)};
			bool		nulls[2] = {hide_code, false};

			tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
		}
	index_close(rel, AccessShareLock);
	return (Datum) 0;
}

Datum
learnedbtree_model_memory(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64((int64) lbt_registry_bytes());
}
