/*
 * index_arg.c - opening an index that a user named; see index_arg.h.
 */
#include "sql/index_arg.h"

#include "access/relation.h"
#include "access/xlog.h"
#include "am/am.h"
#include "catalog/catalog.h"
#include "catalog/pg_authid.h"
#include "miscadmin.h"
#include "learn/settings.h"
#include "server/compat.h"
#include "utils/acl.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"

static void
check_kind(Relation rel)
{
	const char *name = RelationGetRelationName(rel);

	if (rel->rd_rel->relkind != RELKIND_INDEX && rel->rd_rel->relkind != RELKIND_PARTITIONED_INDEX)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not an index", name),
				 errhint("Name a btree or learnedbtree index.")));
	if (!lbt_is_btree(rel) && rel->rd_rel->relam != lbt_am_oid())
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a btree or learnedbtree index", name)));
	if (rel->rd_rel->relkind == RELKIND_PARTITIONED_INDEX)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is a partitioned index", name),
				 errdetail("A partitioned index has no pages of its own."),
				 errhint("Name one of its partitions' indexes; pg_partition_tree() lists them.")));
	if (IsCatalogRelation(rel) || IsToastRelation(rel))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("\"%s\" is an index of a system catalog or TOAST table", name),
				 errdetail("These have no model.")));
	if (rel->rd_rel->relpersistence == RELPERSISTENCE_UNLOGGED && RecoveryInProgress())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("index \"%s\" is unlogged, and cannot be read during recovery", name)));
	if (RELATION_IS_OTHER_TEMP(rel))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot access temporary indexes of other sessions")));
	if (!rel->rd_index->indisvalid)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("index \"%s\" is not valid", RelationGetRelationName(rel)),
				 errhint("Its build did not finish; REINDEX it or drop it.")));
}

static void
check_right(Relation rel, LbtRight right)
{
	if (lbt_relation_ownercheck(RelationGetRelid(rel), GetUserId()))
		return;
	if (right == LBT_MAY_SEE && has_privs_of_role(GetUserId(), ROLE_PG_MONITOR))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("permission denied for index \"%s\"", RelationGetRelationName(rel)),
			 right == LBT_MAY_SEE ?
			 errhint("Only its owner and members of pg_monitor may look into it.") :
			 errhint("Only its owner may do this.")));
}

Relation
lbt_open_index(Oid relid, LOCKMODE lock, LbtRight right)
{
	Relation	rel = try_relation_open(relid, lock);

	if (rel == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("relation with OID %u does not exist", relid)));
	check_kind(rel);
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
lbt_forbid_readonly(const char *function)
{
	PreventCommandDuringRecovery(function);
	PreventCommandIfReadOnly(function);
	PreventCommandIfParallelMode(function);
}

Datum
lbt_numeric_from_uint64(uint64 v)
{
	char		digits[24];

	snprintf(digits, sizeof(digits), UINT64_FORMAT, v);
	return DirectFunctionCall3(numeric_in, CStringGetDatum(digits), ObjectIdGetDatum(InvalidOid),
							   Int32GetDatum(-1));
}
