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
#include "catalog/pg_constraint.h"
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

bool
lbt_is_our_index(Oid relid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	Oid			am = lbt_am_oid();
	bool		ours;

	if (!HeapTupleIsValid(tuple))
		return false;
	ours = OidIsValid(am) && ((Form_pg_class) GETSTRUCT(tuple))->relam == am;
	ReleaseSysCache(tuple);
	return ours;
}

bool
lbt_is_constraint_index(Oid relid)
{
	HeapTuple	tuple = SearchSysCache1(CONSTROID, ObjectIdGetDatum(get_index_constraint(relid)));
	bool		result;

	if (!HeapTupleIsValid(tuple))
		return false;
	result = ((Form_pg_constraint) GETSTRUCT(tuple))->contype != CONSTRAINT_EXCLUSION;
	ReleaseSysCache(tuple);
	return result;
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

/*
 * The operator class that depends on this one (dependent), or that this one depends on; InvalidOid if there is
 * none.  No operator class depends on another but for aliases.
 */
static Oid
find_by_dependency(Oid opclass, bool dependent)
{
	Relation	depend = table_open(DependRelationId, AccessShareLock);
	ScanKeyData key[2];
	SysScanDesc scan;
	HeapTuple	tuple;
	Oid			found = InvalidOid;

	ScanKeyInit(&key[0], dependent ? Anum_pg_depend_refclassid : Anum_pg_depend_classid,
				BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(OperatorClassRelationId));
	ScanKeyInit(&key[1], dependent ? Anum_pg_depend_refobjid : Anum_pg_depend_objid,
				BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(opclass));
	scan = systable_beginscan(depend, dependent ? DependReferenceIndexId : DependDependerIndexId, true,
							  NULL, 2, key);
	while (!OidIsValid(found) && HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_depend form = (Form_pg_depend) GETSTRUCT(tuple);

		if (dependent && form->classid == OperatorClassRelationId)
			found = form->objid;
		else if (!dependent && form->refclassid == OperatorClassRelationId)
			found = form->refobjid;
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
	return find_by_dependency(original->oid, true);
}

static Form_pg_opclass
get_opclass(Oid opclass, HeapTuple *tuple)
{
	*tuple = SearchSysCache1(CLAOID, ObjectIdGetDatum(opclass));
	if (!HeapTupleIsValid(*tuple))
		elog(ERROR, "cache lookup failed for operator class %u", opclass);
	return (Form_pg_opclass) GETSTRUCT(*tuple);
}

/*
 * pg_dump names operator classes that are not a type's default, those outside of pg_catalog with their schema; of
 * ours there are only aliases in pg_catalog, so that the dump of an index would not restore.
 */
Oid
lbt_adopted_opclass(Oid opclass, Oid type)
{
	HeapTuple	tuple;
	Form_pg_opclass form = get_opclass(opclass, &tuple);
	Oid			alias = InvalidOid;

	if (form->opcnamespace != PG_CATALOG_NAMESPACE && GetDefaultOpClass(type, BTREE_AM_OID) != opclass)
		alias = find_alias(form, lbt_am_oid());
	ReleaseSysCache(tuple);
	return OidIsValid(alias) ? alias : opclass;
}

Oid
lbt_original_opclass(Oid opclass)
{
	HeapTuple	tuple;
	Form_pg_opclass form = get_opclass(opclass, &tuple);
	Oid			original = opclass;

	if (form->opcmethod == lbt_am_oid())
	{
		original = find_by_dependency(opclass, false);
		if (!OidIsValid(original))
			original = find_by_name(BTREE_AM_OID, NameStr(form->opcname));
		if (!OidIsValid(original))
			elog(ERROR, "operator class \"%s\" is an alias of none", NameStr(form->opcname));
	}
	ReleaseSysCache(tuple);
	return original;
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
