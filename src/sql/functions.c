/*
 * functions.c - opening a named index, and rows of results; see functions.h.
 */
#include "sql/functions.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "catalog/pg_authid.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "serve/serve.h"
#include "server/compat.h"
#include "utils/acl.h"
#include "utils/builtins.h"

static void
check_right(Relation rel, LbtRight right)
{
	if (!lbt_relation_ownercheck(RelationGetRelid(rel), GetUserId()) &&
		(right == LBT_MAY_CHANGE || !has_privs_of_role(GetUserId(), ROLE_PG_MONITOR)))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for index \"%s\"", RelationGetRelationName(rel)),
				 right == LBT_MAY_CHANGE ?
				 errhint("Only its owner may do this.") :
				 errhint("Only its owner and members of pg_monitor may look into it.")));
}

Relation
lbt_open_index(Oid relid, LOCKMODE lock, LbtRight right)
{
	Relation	rel = try_relation_open(relid, lock);
	LbtRefusal	refusal;

	if (rel == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("relation with OID %u does not exist", relid)));
	refusal = lbt_index_unfit(rel, true);
	if (refusal.reason)
		ereport(ERROR,
				(errcode(refusal.sqlstate),
				 errmsg("\"%s\" has no model: %s", RelationGetRelationName(rel), refusal.reason),
				 refusal.hint ? errhint("%s", refusal.hint) : 0));
	check_right(rel, right);
	return rel;
}

Oid
lbt_index_argument(FunctionCallInfo fcinfo)
{
	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("the index must not be NULL"),
				 errhint("Name a learnedbtree index.")));
	return PG_GETARG_OID(0);
}

void
lbt_row_add_text(LbtRow *row, const char *text)
{
	if (text)
		lbt_row_add(row, CStringGetTextDatum(text));
	else
		lbt_row_add_nulls(row, 1);
}

Datum
lbt_row_result(FunctionCallInfo fcinfo, LbtRow *row)
{
	TupleDesc	tupdesc;

	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	Assert(row->n <= tupdesc->natts && tupdesc->natts <= lengthof(row->values));
	lbt_row_add_nulls(row, tupdesc->natts - row->n);
	return HeapTupleGetDatum(heap_form_tuple(tupdesc, row->values, row->nulls));
}
