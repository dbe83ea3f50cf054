/*
 * opclass.c - alias operator classes: btree's, under our access method.
 *
 * An alias is one pg_opclass row that names btree's own operator family, so
 * that the planner sees our indexes in the families it reasons about.  It
 * depends on our access method and on the original, and goes when either goes.
 *
 * Sessions do not see each other's aliases before they commit.  So make them
 * under a lock of our access method, held to the end of the transaction: no
 * other session makes one, or drops the method.  Where all have their aliases,
 * lock nothing.
 */
#include "am/am.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/catalog.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_opclass.h"
#include "commands/defrem.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

PG_FUNCTION_INFO_V1(learnedbtree_sync_opclasses);

static Oid
find_by_name(Oid am, const char *name)
{
	return GetSysCacheOid3(CLAAMNAMENSP, Anum_pg_opclass_oid, ObjectIdGetDatum(am),
						   CStringGetDatum(name), ObjectIdGetDatum(PG_CATALOG_NAMESPACE));
}

/* Find the alias, the operator class that depends on this one, if any. */
static Oid
find_dependent(Oid opclass)
{
	Relation	depend = table_open(DependRelationId, AccessShareLock);
	ScanKeyData key[2];
	SysScanDesc scan;
	HeapTuple	tuple;
	Oid			found = InvalidOid;

	ScanKeyInit(&key[0], Anum_pg_depend_refclassid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(OperatorClassRelationId));
	ScanKeyInit(&key[1], Anum_pg_depend_refobjid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(opclass));
	scan = systable_beginscan(depend, DependReferenceIndexId, true, NULL, 2, key);
	while (!OidIsValid(found) && HeapTupleIsValid(tuple = systable_getnext(scan)))
		if (((Form_pg_depend) GETSTRUCT(tuple))->classid == OperatorClassRelationId)
			found = ((Form_pg_depend) GETSTRUCT(tuple))->objid;
	systable_endscan(scan);
	table_close(depend, AccessShareLock);
	return found;
}

/* A free name: the original's, perhaps with its schema, or its OID. */
static const char *
alias_name(Form_pg_opclass original, Oid am)
{
	const char *name = pstrdup(NameStr(original->opcname));
	const char *schema = get_namespace_name(original->opcnamespace);

	if (OidIsValid(find_by_name(am, name)))
		name = makeObjectName(NameStr(original->opcname), schema, NULL);
	if (OidIsValid(find_by_name(am, name)))
		name = makeObjectName(NameStr(original->opcname), psprintf("%u", original->oid), NULL);
	return name;
}

/* False if another session has dropped the original. */
static bool
make_alias(Oid original, Oid am)
{
	HeapTuple	tuple;
	Form_pg_opclass form;
	Relation	catalog;
	ObjectAddress alias;
	ObjectAddress needs[2];

	LockDatabaseObject(OperatorClassRelationId, original, 0, AccessShareLock);
	tuple = SearchSysCacheCopy1(CLAOID, ObjectIdGetDatum(original));
	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_opclass) GETSTRUCT(tuple);
	catalog = table_open(OperatorClassRelationId, RowExclusiveLock);
	namestrcpy(&form->opcname, alias_name(form, am));
	form->oid = GetNewOidWithIndex(catalog, OpclassOidIndexId, Anum_pg_opclass_oid);
	form->opcmethod = am;
	form->opcnamespace = PG_CATALOG_NAMESPACE;

	/* No pg_shdepend entry: take a role that cannot be dropped. */
	form->opcowner = BOOTSTRAP_SUPERUSERID;
	CatalogTupleInsert(catalog, tuple);
	ObjectAddressSet(alias, OperatorClassRelationId, form->oid);
	ObjectAddressSet(needs[0], AccessMethodRelationId, am);
	ObjectAddressSet(needs[1], OperatorClassRelationId, original);
	recordMultipleDependencies(&alias, needs, 2, DEPENDENCY_AUTO);
	heap_freetuple(tuple);
	table_close(catalog, RowExclusiveLock);
	CommandCounterIncrement();
	return true;
}

/* List btree's operator classes that have no alias. */
static List *
without_alias(Oid am)
{
	CatCList   *originals = SearchSysCacheList1(CLAAMNAMENSP, ObjectIdGetDatum(BTREE_AM_OID));
	List	   *found = NIL;

	for (int i = 0; i < originals->n_members; i++)
	{
		Form_pg_opclass form = (Form_pg_opclass) GETSTRUCT(&originals->members[i]->tuple);

		/* Find a built-in's by name; others, maybe renamed, by dependency. */
		if (!OidIsValid(IsPinnedObject(OperatorClassRelationId, form->oid) ?
						find_by_name(am, NameStr(form->opcname)) : find_dependent(form->oid)))
			found = lappend_oid(found, form->oid);
	}
	ReleaseCatCacheList(originals);
	return found;
}

int
lbt_sync_opclasses(Oid am)
{
	ListCell   *cell;
	int			made = 0;

	if (without_alias(am) == NIL)
		return 0;

	/* Then look again: this accepts invalidations. */
	LockDatabaseObject(AccessMethodRelationId, am, 0, ExclusiveLock);
	if (!SearchSysCacheExists1(AMOID, ObjectIdGetDatum(am)))
		return 0;				/* dropped meanwhile */
	foreach(cell, without_alias(am))
		made += make_alias(lfirst_oid(cell), am);
	return made;
}

/* For superusers, and for an event trigger after DDL. */
Datum
learnedbtree_sync_opclasses(PG_FUNCTION_ARGS)
{
	Oid			am = lbt_am_oid();

	if (!OidIsValid(am))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("access method \"learnedbtree\" does not exist"),
				 errhint("CREATE EXTENSION learnedbtree first.")));
	PG_RETURN_INT32(lbt_sync_opclasses(am));
}
