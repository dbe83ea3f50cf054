/*
 * switch.c - an index that is btree's one moment and ours the next, in the catalogs.
 *
 * The file is the same, so pg_class.relam is nearly all there is to change.  What else:
 *
 *   - The dependency on our access method: no index of btree's has one on its own.  Without it DROP EXTENSION
 *     would leave an index without an access method.
 *   - Operator classes: btree's own stay in pg_index.indclass, as all that matters is their family, and below
 *     18 foreign keys insist on them.  An index made by CREATE INDEX ... USING learnedbtree has our aliases,
 *     which a btree index cannot keep.
 *   - Options: btree knows none of ours.
 */
#include "am/am.h"

#include "access/htup_details.h"
#include "access/reloptions.h"
#include "access/table.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_am.h"
#include "catalog/pg_index.h"
#include "catalog/pg_opclass.h"
#include "commands/defrem.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/syscache.h"

/* Record, or delete, the index's dependency on an object. */
static void
add_dependency(Oid index, Oid class, Oid object)
{
	ObjectAddress from,
				to;

	ObjectAddressSet(from, RelationRelationId, index);
	ObjectAddressSet(to, class, object);
	recordDependencyOn(&from, &to, DEPENDENCY_NORMAL);
}

static void
delete_dependency(Oid index, Oid class, Oid object)
{
	(void) deleteDependencyRecordsForSpecific(RelationRelationId, index, DEPENDENCY_NORMAL, class, object);
}

/* Once only: an index may have it from its making. */
void
lbt_depend_on_am(Oid index)
{
	delete_dependency(index, AccessMethodRelationId, lbt_am_oid());
	add_dependency(index, AccessMethodRelationId, lbt_am_oid());
}

/* Take our options out of a pg_class.reloptions; what they were, in words, is appended to dropped. */
static Datum
without_own_options(Datum reloptions, StringInfo dropped)
{
	List	   *kept = NIL;
	ListCell   *lc;

	foreach(lc, untransformRelOptions(reloptions))
	{
		DefElem    *option = lfirst_node(DefElem, lc);

		if (lbt_is_own_option(option->defname))
			appendStringInfo(dropped, "%s%s=%s", dropped->len > 0 ? ", " : "", option->defname,
							 option->arg ? defGetString(option) : "true");
		else
			kept = lappend(kept, option);
	}
	return transformRelOptions((Datum) 0, kept, NULL, NULL, false, false);
}

/* Change pg_class.  Without dropped options stay as they are. */
static void
change_class(Oid index, Oid am, StringInfo dropped)
{
	Relation	catalog = table_open(RelationRelationId, RowExclusiveLock);
	HeapTuple	old = lbt_lock_class_tuple(index);
	ItemPointerData tid;
	HeapTuple	new;
	Datum		values[Natts_pg_class];
	bool		nulls[Natts_pg_class] = {false};
	bool		replace[Natts_pg_class] = {false};
	Datum		options;
	bool		none;

	if (!HeapTupleIsValid(old))
		elog(ERROR, "cache lookup failed for relation %u", index);
	tid = old->t_self;
	values[Anum_pg_class_relam - 1] = ObjectIdGetDatum(am);
	replace[Anum_pg_class_relam - 1] = true;
	options = SysCacheGetAttr(RELOID, old, Anum_pg_class_reloptions, &none);
	if (dropped && !none)
	{
		options = without_own_options(options, dropped);
		values[Anum_pg_class_reloptions - 1] = options;
		nulls[Anum_pg_class_reloptions - 1] = options == (Datum) 0;
		replace[Anum_pg_class_reloptions - 1] = true;
	}
	new = heap_modify_tuple(old, RelationGetDescr(catalog), values, nulls, replace);
	CatalogTupleUpdate(catalog, &tid, new);
	lbt_unlock_class_tuple(catalog, &tid);
	heap_freetuple(new);
	heap_freetuple(old);
	table_close(catalog, RowExclusiveLock);
}

/*
 * Change pg_index.indclass, and the dependencies that go with it.  The index keeps its operator families and
 * input types, so nobody who has looked at these before is wrong now.
 */
static void
change_opclasses(Relation rel, bool adopted)
{
	Oid			index = RelationGetRelid(rel);
	Relation	catalog = table_open(IndexRelationId, RowExclusiveLock);
	HeapTuple	old = SearchSysCacheCopy1(INDEXRELID, ObjectIdGetDatum(index));
	HeapTuple	new;
	Datum		values[Natts_pg_index];
	bool		nulls[Natts_pg_index] = {false};
	bool		replace[Natts_pg_index] = {false};
	bool		isnull;
	oidvector  *before;
	oidvector  *after;
	bool		changed = false;

	if (!HeapTupleIsValid(old))
		elog(ERROR, "cache lookup failed for index %u", index);
	before = (oidvector *) DatumGetPointer(SysCacheGetAttr(INDEXRELID, old, Anum_pg_index_indclass, &isnull));
	after = buildoidvector(before->values, before->dim1);
	for (int i = 0; i < after->dim1; i++)
	{
		after->values[i] = adopted ?
			lbt_adopted_opclass(before->values[i], TupleDescAttr(RelationGetDescr(rel), i)->atttypid) :
			lbt_original_opclass(before->values[i]);
		changed = changed || after->values[i] != before->values[i];
	}
	if (changed)
	{
		values[Anum_pg_index_indclass - 1] = PointerGetDatum(after);
		replace[Anum_pg_index_indclass - 1] = true;
		new = heap_modify_tuple(old, RelationGetDescr(catalog), values, nulls, replace);
		CatalogTupleUpdate(catalog, &old->t_self, new);
		heap_freetuple(new);

		/* All of them, then all of the others: several columns may share one. */
		for (int i = 0; i < before->dim1; i++)
			delete_dependency(index, OperatorClassRelationId, before->values[i]);
		for (int i = 0; i < after->dim1; i++)
		{
			int			j = 0;

			while (after->values[j] != after->values[i])
				j++;
			if (j == i)
				add_dependency(index, OperatorClassRelationId, after->values[i]);
		}
	}
	heap_freetuple(old);
	table_close(catalog, RowExclusiveLock);
}

static void
announce(Relation index)
{
	CacheInvalidateRelcache(index);
	InvokeObjectPostAlterHook(RelationRelationId, RelationGetRelid(index), 0);
}

void
lbt_switch_to_ours(Relation index)
{
	Oid			oid = RelationGetRelid(index);

	change_class(oid, lbt_am_oid(), NULL);
	if (!lbt_is_constraint_index(oid))
		change_opclasses(index, true);
	lbt_depend_on_am(oid);
	announce(index);
}

char *
lbt_switch_to_btree(Relation index)
{
	Oid			oid = RelationGetRelid(index);
	StringInfoData dropped;

	initStringInfo(&dropped);
	change_class(oid, BTREE_AM_OID, &dropped);
	change_opclasses(index, false);
	delete_dependency(oid, AccessMethodRelationId, lbt_am_oid());
	announce(index);
	return dropped.len > 0 ? dropped.data : NULL;
}
