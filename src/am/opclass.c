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
#include "catalog/pg_namespace.h"
#include "catalog/pg_opclass.h"
#include "commands/defrem.h"
#include "utils/fmgroids.h"
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

static void
record_dependency(Oid alias, Oid class, Oid object)
{
	ObjectAddress from,
				to;

	ObjectAddressSet(from, OperatorClassRelationId, alias);
	ObjectAddressSet(to, class, object);
	recordDependencyOn(&from, &to, DEPENDENCY_AUTO);
}

static void
make_alias(Relation catalog, HeapTuple original, Oid am)
{
	Form_pg_opclass form = (Form_pg_opclass) GETSTRUCT(original);
	HeapTuple	alias = heap_copytuple(original);
	Form_pg_opclass to = (Form_pg_opclass) GETSTRUCT(alias);

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

		if (SearchSysCacheExists3(CLAAMNAMENSP, ObjectIdGetDatum(am), NameGetDatum(&form->opcname),
								  ObjectIdGetDatum(PG_CATALOG_NAMESPACE)))
			continue;
		make_alias(catalog, tuple, am);
		made++;
		CommandCounterIncrement();
	}
	systable_endscan(scan);
	table_close(catalog, RowExclusiveLock);
	return made;
}
