/*
 * splits.c - learnedbtree_splits(): keys that cut an index into equal parts.
 *
 * The walk along level 1 counts the leaves, and a second one picks those that
 * begin a part.  Separators are truncated, so the key comes from the leaf: it
 * is that of its first entry, be the row visible or not.
 */
#include "sql/functions.h"

#include "catalog/pg_type.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "parser/parse_coerce.h"
#include "train/leafwalk.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
#include "utils/rls.h"
#include "utils/tuplestore.h"

PG_FUNCTION_INFO_V1(learnedbtree_splits);

/* Raise an error if the result is not of the first key columns' types. */
static void
check_result(Relation rel, TupleDesc result)
{
	int			nkeys = IndexRelationGetNumberOfKeyAttributes(rel);
	bool		good = result->natts <= nkeys;
	StringInfoData keys;

	initStringInfo(&keys);
	for (int i = 0; i < nkeys; i++)
	{
		Form_pg_attribute key = TupleDescAttr(RelationGetDescr(rel), i);

		/* btree keeps a name as a cstring */
		Oid			type = key->atttypid == CSTRINGOID ? NAMEOID : key->atttypid;

		if (i < result->natts)
			good = good && IsBinaryCoercible(type, TupleDescAttr(result, i)->atttypid);
		appendStringInfo(&keys, "%s%s %s", i > 0 ? ", " : "",
						 quote_identifier(NameStr(key->attname)), format_type_be(type));
	}
	if (!good)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("column definition list does not fit index \"%s\"", RelationGetRelationName(rel)),
				 errhint("Its key columns are (%s); name all of them or the first ones.", keys.data)));
}

/* Raise an error if the caller may not read the first key columns. */
static void
check_rights(Relation rel, int ncolumns)
{
	Oid			table = rel->rd_index->indrelid;
	Oid			user = GetUserId();

	/* Expressions and predicates may tell of any column. */
	bool		by_column = RelationGetIndexExpressions(rel) == NIL &&
		RelationGetIndexPredicate(rel) == NIL;

	for (int i = 0; i < ncolumns && by_column; i++)
		by_column = pg_attribute_aclcheck(table, rel->rd_index->indkey.values[i], user,
										  ACL_SELECT) == ACLCHECK_OK;
	if (!by_column && pg_class_aclcheck(table, user, ACL_SELECT) != ACLCHECK_OK)
		aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_TABLE, get_rel_name(table));
	if (check_enable_rls(table, InvalidOid, true) == RLS_ENABLED)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("row-level security of table \"%s\" does not let you see all keys of index \"%s\"",
						get_rel_name(table), RelationGetRelationName(rel)),
				 errhint("Let a role call this to which no policy of the table applies.")));
}

/*
 * A copy of the leaf's first tuple with no NULL among its first columns that
 * lies behind the last boundary, if there was one; or NULL.  The leaf may have
 * been split or deleted since the walk saw it, but our snapshot keeps its page
 * from being recycled.
 */
static IndexTuple
boundary_on_leaf(Relation rel, BlockNumber leaf, int ncolumns, BTScanInsert last)
{
	Buffer		buf = _bt_getbuf(rel, leaf, BT_READ);
	Page		page = BufferGetPage(buf);
	BTPageOpaque opaque = BTPageGetOpaque(page);
	OffsetNumber end = P_IGNORE(opaque) ? InvalidOffsetNumber : PageGetMaxOffsetNumber(page);
	IndexTuple	found = NULL;

	for (OffsetNumber off = P_FIRSTDATAKEY(opaque); off <= end && found == NULL; off++)
	{
		IndexTuple	itup = (IndexTuple) PageGetItem(page, PageGetItemId(page, off));
		bool		isnull = false;

		for (int i = 0; i < ncolumns && !isnull; i++)
			(void) index_getattr(itup, i + 1, RelationGetDescr(rel), &isnull);
		if (!isnull && (last == NULL || _bt_compare(rel, last, page, off) < 0))
			found = CopyIndexTuple(itup);
	}
	_bt_relbuf(rel, buf);
	return found;
}

static void
put_boundary(Relation rel, IndexTuple boundary, ReturnSetInfo *rsinfo)
{
	TupleDesc	tupdesc = RelationGetDescr(rel);
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];

	for (int i = 0; i < rsinfo->setDesc->natts; i++)
	{
		values[i] = index_getattr(boundary, i + 1, tupdesc, &isnull[i]);
		if (TupleDescAttr(tupdesc, i)->atttypid == CSTRINGOID)
			values[i] = DirectFunctionCall1(namein, values[i]);
	}
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, isnull);
}

Datum
learnedbtree_splits(PG_FUNCTION_ARGS)
{
	Relation	rel = lbt_open_index(fcinfo, AccessShareLock, "cannot be split");
	int64		parts = PG_GETARG_INT32(1);
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	LbtLeafWalk walk;
	int64		leaves = 0;
	int64		part = 1;
	IndexTuple	boundary = NULL;
	BTScanInsert last = NULL;	/* of the boundary */

	if (parts < 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("number of parts must be at least 1"),
				 errhint("Pass the number of parts, one more than that of boundaries.")));
	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	check_result(rel, rsinfo->setDesc);
	check_rights(rel, rsinfo->setDesc->natts);

	for (lbt_leafwalk_begin(&walk, rel); lbt_leafwalk_next(&walk);)
		leaves++;
	lbt_leafwalk_begin(&walk, rel);
	for (int64 slot = 0; part < parts && lbt_leafwalk_next(&walk); slot++)
	{
		IndexTuple	next;

		/* What begins the first part is no boundary, and none equals it. */
		if (slot > 0 && slot * parts < part * leaves)
			continue;
		part = slot * parts / leaves + 1;
		next = boundary_on_leaf(rel, walk.block, rsinfo->setDesc->natts, last);
		if (next == NULL)
			continue;
		if (slot > 0)
			put_boundary(rel, next, rsinfo);
		if (boundary)
		{
			pfree(last);
			pfree(boundary);
		}
		boundary = next;
		last = _bt_mkscankey(rel, boundary);
		last->keysz = rsinfo->setDesc->natts;
		last->scantid = NULL;
	}
	index_close(rel, AccessShareLock);
	return (Datum) 0;
}
