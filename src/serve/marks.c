/*
 * marks.c - this backend's copy of the table learnedbtree.marks; see marks.h.
 *
 * The table is read as the server does with its catalogs, without asking for permission on it, and by SnapshotSelf, which
 * takes no predicate locks; a row that changes while it is read is read again, as the writer invalidates the copy when it
 * commits.
 */
#include "serve/marks.h"

#include "access/genam.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/namespace.h"
#include "catalog/partition.h"
#include "catalog/pg_class.h"
#include "commands/defrem.h"
#include "commands/extension.h"
#include "server/compat.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

typedef struct MarkById
{
	Oid			index;			/* hash key */
	LbtIndexOptions options;
} MarkById;

/* This backend's copy, in a context of its own. */
static MemoryContext copy_context = NULL;
static HTAB *by_id = NULL;
static HTAB *by_name = NULL;
static bool copy_valid = false;
static Oid	copied_table = InvalidOid;	/* InvalidOid: there was none */

/* Made by a transaction that may have written rows, which an abort takes back. */
static bool copy_by_writer = false;

/* Raised by invalidations, to notice one that comes while the copy is being made. */
static uint64 invalidations = 0;

static bool extension_known = false;
static bool extension_exists = false;

bool
lbt_marks_invalidated(Oid relid)
{
	if (OidIsValid(relid) && relid != copied_table)
		return false;
	copy_valid = false;
	invalidations++;
	return true;
}

bool
lbt_marks_aborted(void)
{
	if (!copy_by_writer)
		return false;
	return lbt_marks_invalidated(InvalidOid);
}

void
lbt_marks_extension_changed(void)
{
	extension_known = false;
	copy_valid = false;
	invalidations++;
}

bool
lbt_extension_exists(void)
{
	if (unlikely(!extension_known))
	{
		uint64		before = invalidations;
		bool		exists = OidIsValid(get_am_oid("learnedbtree", true));

		extension_exists = exists;
		extension_known = before == invalidations;
		return exists;
	}
	return extension_exists;
}

Oid
lbt_marks_table(void)
{
	Oid			schema = get_namespace_oid("learnedbtree", true);
	Oid			extension = get_extension_oid("learnedbtree", true);
	Oid			table = OidIsValid(schema) && OidIsValid(extension) ? get_relname_relid("marks", schema) : InvalidOid;

	return OidIsValid(table) && getExtensionOfObject(RelationRelationId, table) == extension &&
		get_rel_relkind(table) == RELKIND_RELATION ? table : InvalidOid;
}

static int
get_int(HeapTuple row, int column, TupleDesc desc)
{
	bool		isnull;
	Datum		value = heap_getattr(row, column, desc, &isnull);

	if (isnull)
		return -1;
	return column == COLUMN_LEARNED ? DatumGetBool(value) : DatumGetInt32(value);
}

bool
lbt_mark_read(HeapTuple row, TupleDesc desc, LbtMark *mark)
{
	bool		isnull[3];
	Datum		schema = heap_getattr(row, COLUMN_SCHEMANAME, desc, &isnull[0]);
	Datum		index = heap_getattr(row, COLUMN_INDEXNAME, desc, &isnull[1]);
	Datum		id = heap_getattr(row, COLUMN_INDEXID, desc, &isnull[2]);

	if (isnull[0] || isnull[1])
		return false;
	memset(mark, 0, sizeof(*mark));
	namestrcpy(&mark->name.schema, NameStr(*DatumGetName(schema)));
	namestrcpy(&mark->name.index, NameStr(*DatumGetName(index)));
	mark->index = isnull[2] ? InvalidOid : DatumGetObjectId(id);
	mark->options = (LbtIndexOptions) {.learned = get_int(row, COLUMN_LEARNED, desc) != 0,
		.max_error = get_int(row, COLUMN_MAX_ERROR, desc),
	.retrain_splits = get_int(row, COLUMN_RETRAIN_SPLITS, desc)};
	return true;
}

static void
add_to_copy(const LbtMark *mark)
{
	LbtMark	   *named = hash_search(by_name, &mark->name, HASH_ENTER, NULL);

	*named = *mark;
	if (OidIsValid(mark->index))
	{
		MarkById   *found = hash_search(by_id, &mark->index, HASH_ENTER, NULL);

		found->options = mark->options;
	}
}

static void
copy_rows(Relation table)
{
	SysScanDesc scan = systable_beginscan(table, InvalidOid, false, SnapshotSelf, 0, NULL);
	HeapTuple	row;
	LbtMark		mark;

	while (HeapTupleIsValid(row = systable_getnext(scan)))
		if (lbt_mark_read(row, RelationGetDescr(table), &mark))
			add_to_copy(&mark);
	systable_endscan(scan);
}

static void
empty_copy(void)
{
	HASHCTL		ctl = {.keysize = sizeof(Oid),.entrysize = sizeof(MarkById)};

	if (copy_context == NULL)
		copy_context = AllocSetContextCreate(TopMemoryContext, "learnedbtree marks", ALLOCSET_DEFAULT_SIZES);
	by_id = by_name = NULL;
	MemoryContextReset(copy_context);
	ctl.hcxt = copy_context;
	by_id = hash_create("learnedbtree marks by index", 64, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	ctl.keysize = sizeof(LbtMarkName);
	ctl.entrysize = sizeof(LbtMark);
	by_name = hash_create("learnedbtree marks by name", 64, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

/* Bring the copy up to date; false when it cannot be just now. */
static bool
refresh(void)
{
	uint64		before;
	Oid			oid;
	Relation	table = NULL;

	if (likely(copy_valid))
		return true;
	if (!IsTransactionState() || HistoricSnapshotActive())
		return false;
	before = invalidations;
	oid = lbt_extension_exists() ? lbt_marks_table() : InvalidOid;
	copied_table = oid;			/* first, for the callback to know it */
	if (OidIsValid(oid))
	{
		if (!ConditionalLockRelationOid(oid, AccessShareLock))
			return false;
		table = try_table_open(oid, NoLock);
		if (table == NULL)
		{
			UnlockRelationOid(oid, AccessShareLock);
			return false;
		}
	}
	empty_copy();
	copy_by_writer = TransactionIdIsValid(GetTopTransactionIdIfAny());
	if (table != NULL)
	{
		copy_rows(table);
		table_close(table, AccessShareLock);
	}
	/* Without a table there is the middle of CREATE EXTENSION: nothing will tell when the table has come. */
	copy_valid = before == invalidations && (OidIsValid(oid) || !lbt_extension_exists());
	return true;
}

bool
lbt_marks_any(bool *sure)
{
	*sure = refresh() && copy_valid;
	return by_name != NULL && hash_get_num_entries(by_name) > 0;
}

/* The mark of an index in the copy. */
static const LbtIndexOptions *
find_in_copy(Oid index)
{
	const MarkById *found = hash_search(by_id, &index, HASH_FIND, NULL);
	const LbtMark *named;
	LbtMarkName	name = {0};
	char	   *schema;
	char	   *relname;

	if (found)
		return &found->options;
	relname = get_rel_name(index);
	schema = relname ? get_namespace_name(get_rel_namespace(index)) : NULL;
	if (schema == NULL)
		return NULL;
	namestrcpy(&name.schema, schema);
	namestrcpy(&name.index, relname);
	named = by_name ? hash_search(by_name, &name, HASH_FIND, NULL) : NULL;

	/* Of that name once: another index's that has been renamed since. */
	if (named == NULL || (OidIsValid(named->index) && SearchSysCacheExists1(RELOID, ObjectIdGetDatum(named->index))))
		return NULL;
	return &named->options;
}

bool
lbt_mark_find(Relation index, LbtIndexOptions *options, bool *marked)
{
	const LbtIndexOptions *found = NULL;
	LbtIndexOptions copy = LBT_NO_INDEX_OPTIONS;
	uint64		before;
	bool		sure;

	*options = LBT_NO_INDEX_OPTIONS;
	*marked = false;
	if (!refresh())
		return false;
	sure = copy_valid;
	if (hash_get_num_entries(by_name) == 0)
		return sure;

	/* The copy stays what it is, even if what follows receives invalidations. */
	before = invalidations;
	found = find_in_copy(RelationGetRelid(index));
	if (found)
		copy = *found;
	else if (index->rd_rel->relispartition)
	{
		List	   *ancestors = get_partition_ancestors(RelationGetRelid(index));
		ListCell   *lc;

		foreach(lc, ancestors)
			if ((found = find_in_copy(lfirst_oid(lc))) != NULL)
			{
				copy = *found;
				break;
			}
		list_free(ancestors);
	}
	*marked = found != NULL;
	*options = copy;
	return sure && before == invalidations;
}

bool
lbt_mark_options(Relation rel, LbtIndexOptions *options, const char **why_not)
{
	bool		marked;
	bool		sure = lbt_mark_find(rel, options, &marked);

	if (!lbt_extension_exists())
		*why_not = "the extension does not exist in this database";
	else if (!sure)
		*why_not = "its marks cannot be read just now";
	else if (lbt_btree_indexes == LBT_BTREE_NONE)
		*why_not = "learnedbtree.btree_indexes is none";
	else if (marked && !options->learned)
		*why_not = "its mark excludes it (learned is off)";
	else if (!marked && lbt_btree_indexes == LBT_BTREE_ADOPTED)
		*why_not = "it is not adopted";
	else if (!marked && !lbt_is_large(RelationGetNumberOfBlocks(rel)))
		*why_not = "it has fewer leaves than learnedbtree.min_leaves";
	return sure;
}
