/*
 * check.c - learnedbtree_check(): amcheck's check of the index file, and the model against the tree.
 */
#include "postgres.h"

#include "access/genam.h"
#include "catalog/pg_type.h"
#include "catalog/index.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "funcapi.h"
#include "sql/audit.h"
#include "train/metapage.h"
#include "train/train.h"
#include "server/as_btree.h"
#include "sql/index_arg.h"
#include "sql/inspect.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/snapmgr.h"

PG_FUNCTION_INFO_V1(learnedbtree_check);

/* The call of amcheck's function, schema-qualified; SPI must be connected. */
static char *
amcheck_call(void)
{
	char	   *schema;

	if (SPI_execute("SELECT n.nspname FROM pg_catalog.pg_extension e "
					"JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace "
					"WHERE e.extname = 'amcheck'", true, 1) != SPI_OK_SELECT)
		elog(ERROR, "could not look up the extension amcheck");
	if (SPI_processed == 0)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("extension \"amcheck\" is not installed"),
				 errhint("CREATE EXTENSION amcheck; it comes with PostgreSQL's contrib modules.")));
	schema = SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1);
	return psprintf("SELECT %s.bt_index_parent_check($1, $2, $3)", quote_identifier(schema));
}

/*
 * Check the file of the index that the arguments name.  Returns the index, open; it and its table are locked
 * against writers and VACUUM until the end of the transaction.
 */
static Relation
check_file(FunctionCallInfo fcinfo)
{
	Oid			relid = lbt_index_argument(fcinfo);
	Relation	rel;
	Oid			types[3] = {REGCLASSOID, BOOLOID, BOOLOID};
	Datum		values[3] = {ObjectIdGetDatum(relid),
		BoolGetDatum(!PG_ARGISNULL(1) && PG_GETARG_BOOL(1)),
	BoolGetDatum(!PG_ARGISNULL(2) && PG_GETARG_BOOL(2))};
	Oid			heapid;

	/* Is it ours, and the caller's?  Asked before any lock that others would have to wait for. */
	index_close(lbt_open_index(relid, AccessShareLock, LBT_MAY_CHANGE), AccessShareLock);

	/* amcheck locks the table first, then the index: take both here in that order. */
	heapid = IndexGetRelation(relid, true);
	if (OidIsValid(heapid))
		LockRelationOid(heapid, ShareLock);
	rel = lbt_open_index(relid, ShareLock, LBT_MAY_CHANGE);
	SPI_connect();
	LBT_AS_BTREE_BEGIN(rel);
	{
		int			rc = SPI_execute_with_args(amcheck_call(), 3, types, values, NULL, true, 0);

		if (rc != SPI_OK_SELECT)
			elog(ERROR, "amcheck failed: %s", SPI_result_code_string(rc));
	}
	LBT_AS_BTREE_END(rel);
	SPI_finish();
	return rel;
}

/* The model against the tree; false when there is none, or it went away meanwhile. */
static bool
check_model(Relation rel, LbtIndex *index, LbtAudit *audit)
{
	Size		bytes;
	void	   *copy = lbt_index_copy_model(index, &bytes);	/* that nobody changes or frees */

	if (copy == NULL)
		return false;
	lbt_audit_model(rel, copy, bytes);
	pfree(copy);
	return lbt_audit_lookups(rel, index, GetActiveSnapshot(), audit);
}

#define CHECK_COLUMNS 10
#define CHECK_FIRST_COUNT 2

Datum
learnedbtree_check(PG_FUNCTION_ARGS)
{
	Relation	rel = check_file(fcinfo);
	LbtIndex   *index = lbt_index_get(rel);
	LbtRegistered model;
	LbtAudit	audit;
	const char *reason;
	TupleDesc	tupdesc;
	Datum		values[CHECK_COLUMNS];
	bool		nulls[CHECK_COLUMNS];

	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	memset(nulls, true, sizeof(nulls));
	if (lbt_trainable(rel, index, &reason) && check_model(rel, index, &audit))
	{
		uint64		counts[CHECK_COLUMNS - CHECK_FIRST_COUNT] = {
			audit.separators, audit.landed, audit.moved_right,
			audit.fallback_block + audit.fallback_page + audit.fallback_low + audit.fallback_high,
			audit.fallback_block, audit.fallback_page, audit.fallback_low, audit.fallback_high};

		for (int i = CHECK_FIRST_COUNT; i < CHECK_COLUMNS; i++)
			values[i] = Int64GetDatum((int64) counts[i - CHECK_FIRST_COUNT]);
		memset(nulls + CHECK_FIRST_COUNT, false, CHECK_COLUMNS - CHECK_FIRST_COUNT);
	}

	/* Asked last, so that it tells why there are no counts. */
	values[0] = CStringGetTextDatum(lbt_model_state(rel, index, &model, &reason));
	values[1] = CStringGetTextDatum(lbt_is_btree(rel) ? "none" : lbt_metapage_state(rel, index));
	nulls[0] = nulls[1] = false;
	index_close(rel, NoLock);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(tupdesc, values, nulls)));
}
