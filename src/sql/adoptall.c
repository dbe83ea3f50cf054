/*
 * adoptall.c - learnedbtree_adopt_all(), learnedbtree_release_all(): many indexes in one transaction.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/relation.h"
#include "access/table.h"
#include "am/am.h"
#include "catalog/catalog.h"
#include "catalog/dependency.h"
#include "catalog/partition.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "commands/extension.h"
#include "fmgr.h"
#include "funcapi.h"
#include "learn/keyspec.h"
#include "learn/kept.h"
#include "miscadmin.h"
#include "sql/index_arg.h"
#include "sql/pattern.h"
#include "sql/takeover.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

PG_FUNCTION_INFO_V1(learnedbtree_adopt_all);
PG_FUNCTION_INFO_V1(learnedbtree_release_all);

typedef struct Listed
{
	Oid			root;			/* of the table's partition tree, or the table */
	int			depth;
	Oid			table;
	Oid			index;
} Listed;

static int
compare_listed(const ListCell *a, const ListCell *b)
{
	const Listed *x = lfirst(a);
	const Listed *y = lfirst(b);

	if (x->root != y->root)
		return x->root < y->root ? -1 : 1;
	if (x->depth != y->depth)
		return x->depth < y->depth ? -1 : 1;
	if (x->table != y->table)
		return x->table < y->table ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

/* Is it a user's table that the pattern names?  own: the one that is ours. */
static bool
table_matches(Oid table, Oid own, const LbtTablePattern *pattern)
{
	char	   *name = get_rel_name(table);
	char	   *schema = get_namespace_name(get_rel_namespace(table));

	if (name == NULL || schema == NULL || IsCatalogRelationOid(table) || table == own ||
		IsCatalogNamespace(get_rel_namespace(table)) || IsToastNamespace(get_rel_namespace(table)) ||
		strcmp(schema, "information_schema") == 0)
		return false;
	return lbt_glob_matches(&pattern->table, name) &&
		(!pattern->has_schema || lbt_glob_matches(&pattern->schema, schema));
}

/* Is the index in question at all?  Parts of partitioned indexes go along with these. */
static bool
is_candidate(Oid index, LbtTurn turn)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(index));
	Form_pg_class class;
	bool		result;

	if (!HeapTupleIsValid(tuple))
		return false;
	class = (Form_pg_class) GETSTRUCT(tuple);
	result = !class->relispartition && (turn == LBT_ADOPT || class->relam == lbt_am_oid());
	ReleaseSysCache(tuple);
	return result;
}

/*
 * In the order in which they are going to be locked: always the same, and partitioned tables before their partitions,
 * as queries do.
 */
static List *
list_indexes(const LbtTablePattern *pattern, LbtTurn turn)
{
	List	   *list = NIL;
	Oid			own = lbt_kept_table();
	Relation	catalog = table_open(IndexRelationId, AccessShareLock);
	SysScanDesc scan = systable_beginscan(catalog, InvalidOid, false, NULL, 0, NULL);
	HeapTuple	tuple;

	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_index form = (Form_pg_index) GETSTRUCT(tuple);
		List	   *ancestors;
		Listed	   *listed;

		if (!is_candidate(form->indexrelid, turn) || !table_matches(form->indrelid, own, pattern))
			continue;
		listed = palloc(sizeof(Listed));
		ancestors = get_rel_relispartition(form->indrelid) ? get_partition_ancestors(form->indrelid) : NIL;
		*listed = (Listed) {.root = ancestors ? llast_oid(ancestors) : form->indrelid,
		.depth = list_length(ancestors),.table = form->indrelid,.index = form->indexrelid};
		list = lappend(list, listed);
	}
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	list_sort(list, compare_listed);
	return list;
}

/*
 * Why a btree index should not be adopted unless it is named, though it could be; NULL if it may.  Scripts of other
 * extensions may count on their indexes to be btree's.
 */
static const char *
why_not(Oid index)
{
	Relation	rel = try_relation_open(index, AccessShareLock);
	const char *reason = NULL;
	LbtKeySpec	spec;
	Oid			extension;

	if (rel == NULL)
		return NULL;
	if (rel->rd_rel->relam == BTREE_AM_OID)
	{
		lbt_keyspec_init(&spec, rel);
		extension = getExtensionOfObject(RelationRelationId, rel->rd_index->indrelid);
		if (OidIsValid(extension))
			reason = psprintf("its table belongs to the extension \"%s\"", get_extension_name(extension));
		else if (RelationUsesLocalBuffers(rel))
			reason = "it would have no model: it is temporary";
		else if (spec.ncolumns == 0)
			reason = "it would have no model: the type of its first key column has no key code";
	}
	relation_close(rel, AccessShareLock);
	return reason;
}

/* Turn one; what the result's columns say of it. */
static const char *
turn_listed(Oid index, LbtTurn turn, bool force, const char **reason)
{
	LbtVerdict	verdict;
	LbtOutcome	outcome = lbt_look_at_index(index, turn, force, &verdict);

	*reason = NULL;
	if (outcome == LBT_TURNED && turn == LBT_ADOPT && (verdict.reason = why_not(index)) != NULL)
		outcome = LBT_REFUSED;
	else if (outcome == LBT_TURNED)
		outcome = lbt_turn_index(index, turn, force, &verdict);
	switch (outcome)
	{
		case LBT_TURNED:
			*reason = verdict.losses;
			return turn == LBT_ADOPT ? "adopted" : "released";
		case LBT_ALREADY:
			*reason = "it is a learnedbtree index already";
			break;
		case LBT_GONE:
			*reason = "it has been dropped meanwhile";
			break;
		case LBT_REFUSED:
			*reason = verdict.reason;
			break;
	}
	return "skipped";
}

static void
turn_all(FunctionCallInfo fcinfo, LbtTurn turn, bool force)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	LbtTablePattern pattern;
	int			lossy = 0;
	ListCell   *lc;

	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("the pattern must not be NULL"),
				 errhint("Leave it out, or give '*', for all tables.")));
	lbt_pattern_parse(text_to_cstring(PG_GETARG_TEXT_PP(0)), &pattern);
	InitMaterializedSRF(fcinfo, 0);
	foreach(lc, list_indexes(&pattern, turn))
	{
		Oid			index = ((Listed *) lfirst(lc))->index;
		const char *reason;
		const char *outcome;
		Datum		values[3];
		bool		nulls[3] = {false};

		CHECK_FOR_INTERRUPTS();
		outcome = turn_listed(index, turn, force, &reason);
		if (reason && strcmp(outcome, "adopted") == 0)
			lossy++;
		values[0] = ObjectIdGetDatum(index);
		values[1] = CStringGetTextDatum(outcome);
		nulls[2] = reason == NULL;
		values[2] = reason ? CStringGetTextDatum(reason) : (Datum) 0;
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	if (lossy > 0)
		ereport(WARNING,
				(errmsg_plural("%d adopted index loses what this server version has for btree only",
							   "%d adopted indexes lose what this server version has for btree only",
							   lossy, lossy),
				 errdetail("The result's column reason says what.")));
}

Datum
learnedbtree_adopt_all(PG_FUNCTION_ARGS)
{
	lbt_forbid_readonly("learnedbtree_adopt_all()");
	turn_all(fcinfo, LBT_ADOPT, !PG_ARGISNULL(1) && PG_GETARG_BOOL(1));
	lbt_tell_no_memory();
	return (Datum) 0;
}

Datum
learnedbtree_release_all(PG_FUNCTION_ARGS)
{
	lbt_forbid_readonly("learnedbtree_release_all()");
	turn_all(fcinfo, LBT_RELEASE, false);
	return (Datum) 0;
}
