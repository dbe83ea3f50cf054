/*
 * check.c - learnedbtree_check(): amcheck's check of the index file.
 */
#include "postgres.h"

#include "access/genam.h"
#include "catalog/pg_type.h"
#include "catalog/index.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "server/as_btree.h"
#include "sql/index_arg.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"

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

Datum
learnedbtree_check(PG_FUNCTION_ARGS)
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
	index_close(rel, NoLock);
	PG_RETURN_VOID();
}
