/*
 * opclass.c - alias operator classes: every btree operator class under our access method.
 *
 * An alias is one pg_opclass row that names btree's own operator family, so that the planner sees our
 * indexes in the families it reasons about.  It lives in pg_catalog whatever the original's schema:
 * pg_dump would dump an operator class of any other schema, and could not restore this one.  It depends
 * on our access method and on the original, and goes when either goes.
 */
#include "am/am.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/catalog.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/pg_am.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_opclass.h"
#include "commands/defrem.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#define AM_NAME "learnedbtree"

Oid
lbt_am_oid(void)
{
	static Oid	cached = InvalidOid;

	/* DROP and CREATE EXTENSION gives a new one: ask the (cached) catalog, not a variable alone. */
	if (!OidIsValid(cached) || !SearchSysCacheExists1(AMOID, ObjectIdGetDatum(cached)))
		cached = get_am_oid(AM_NAME, true);
	return cached;
}

static void
record_dependency(Oid alias, Oid class, Oid object)
{
	ObjectAddress from,
				to;

	ObjectAddressSet(from, OperatorClassRelationId, alias);
	ObjectAddressSet(to, class, object);
	recordDependencyOn(&from, &to, DEPENDENCY_AUTO);
}

static Oid
find_by_name(Oid am, const char *name)
{
	return GetSysCacheOid3(CLAAMNAMENSP, Anum_pg_opclass_oid, ObjectIdGetDatum(am), CStringGetDatum(name),
						   ObjectIdGetDatum(PG_CATALOG_NAMESPACE));
}

static bool
name_taken(Oid am, const char *name)
{
	return OidIsValid(find_by_name(am, name));
}

/* The operator class that depends on this one, its alias; InvalidOid if there is none. */
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
	ScanKeyInit(&key[1], Anum_pg_depend_refobjid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(opclass));
	scan = systable_beginscan(depend, DependReferenceIndexId, true, NULL, 2, key);
	while (!OidIsValid(found) && HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_depend form = (Form_pg_depend) GETSTRUCT(tuple);

		if (form->classid == OperatorClassRelationId)
			found = form->objid;
	}
	systable_endscan(scan);
	table_close(depend, AccessShareLock);
	return found;
}

/* A built-in operator class is found by its name; any other by the dependency, as it may have been renamed. */
static Oid
find_alias(Form_pg_opclass original, Oid am)
{
	if (IsPinnedObject(OperatorClassRelationId, original->oid))
		return find_by_name(am, NameStr(original->opcname));
	return find_dependent(original->oid);
}

/* The original's name, or where another schema's operator class took it, name and schema, or OID. */
static char *
alias_name(Form_pg_opclass original, Oid am)
{
	char	   *name = NameStr(original->opcname);

	if (name_taken(am, name))
		name = makeObjectName(NameStr(original->opcname),
							  get_namespace_name(original->opcnamespace), NULL);
	if (name_taken(am, name))
		name = makeObjectName(NameStr(original->opcname), psprintf("%u", original->oid), NULL);
	return name;
}

static void
make_alias(Relation catalog, HeapTuple original, Oid am)
{
	Form_pg_opclass form = (Form_pg_opclass) GETSTRUCT(original);
	HeapTuple	alias = heap_copytuple(original);
	Form_pg_opclass to = (Form_pg_opclass) GETSTRUCT(alias);

	namestrcpy(&to->opcname, alias_name(form, am));

	to->oid = GetNewOidWithIndex(catalog, OpclassOidIndexId, Anum_pg_opclass_oid);
	to->opcmethod = am;
	to->opcnamespace = PG_CATALOG_NAMESPACE;
	to->opcowner = BOOTSTRAP_SUPERUSERID;	/* pg_shdepend says nothing of it, so it must not be a role that can go */
	CatalogTupleInsert(catalog, alias);
	record_dependency(to->oid, AccessMethodRelationId, am);
	record_dependency(to->oid, OperatorClassRelationId, form->oid);
	heap_freetuple(alias);
}

int
lbt_sync_opclasses(Oid am)
{
	Relation	catalog = table_open(OperatorClassRelationId, RowExclusiveLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	int			made = 0;

	ScanKeyInit(&key, Anum_pg_opclass_opcmethod, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(BTREE_AM_OID));
	scan = systable_beginscan(catalog, OpclassAmNameNspIndexId, true, NULL, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_opclass form = (Form_pg_opclass) GETSTRUCT(tuple);

		if (OidIsValid(find_alias(form, am)))
			continue;
		make_alias(catalog, tuple, am);
		made++;
		CommandCounterIncrement();
	}
	systable_endscan(scan);
	table_close(catalog, RowExclusiveLock);
	return made;
}
