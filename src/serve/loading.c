/*
 * loading.c - will sessions have the library?  Else settings mean nothing.
 */
#include "serve/serve.h"

#include "access/genam.h"
#include "access/table.h"
#include "am/am.h"
#include "catalog/pg_db_role_setting.h"
#include "commands/dbcommands.h"
#include "registry/settings.h"
#include "miscadmin.h"
#include "server/shared.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"

/* Is the library in a list of libraries, with folder and suffix or without? */
static bool
lists_library(const char *libraries)
{
	static const char name[] = "learnedbtree";
	const char *at = libraries;

	while (at != NULL && (at = strstr(at, name)) != NULL)
	{
		char		before = at == libraries ? ',' : at[-1];

		at += strlen(name);
		if (strchr(", \"/=", before) && (*at == '\0' || strchr(", \".", *at)))
			return true;
	}
	return false;
}

/* Set for this database or all, and any role?  Perhaps since we began. */
static bool
set_for_database(void)
{
	static const char prefix[] = "session_preload_libraries=";
	Relation	catalog = table_open(DbRoleSettingRelationId, AccessShareLock);
	SysScanDesc scan = systable_beginscan(catalog, InvalidOid, false, NULL, 0, NULL);
	HeapTuple	tuple;
	bool		found = false;

	while (!found && HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_db_role_setting form = (Form_pg_db_role_setting) GETSTRUCT(tuple);
		Datum		values[Natts_pg_db_role_setting];
		bool		nulls[Natts_pg_db_role_setting];
		Datum	   *elements;
		int			n = 0;

		/* Not heap_getattr(): it calls what only later minors have. */
		heap_deform_tuple(tuple, RelationGetDescr(catalog), values, nulls);
		if (!nulls[Anum_pg_db_role_setting_setconfig - 1] &&
			(form->setdatabase == MyDatabaseId || !OidIsValid(form->setdatabase)))
			deconstruct_array(DatumGetArrayTypeP(values[Anum_pg_db_role_setting_setconfig - 1]),
							  TEXTOID, -1, false, TYPALIGN_INT, &elements, NULL, &n);
		for (int i = 0; i < n && !found; i++)
		{
			char	   *setting = TextDatumGetCString(elements[i]);

			found = strncmp(setting, prefix, strlen(prefix)) == 0 && lists_library(setting);
		}
	}
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	return found;
}

static bool
sessions_load_library(void)
{
	static const char *const lists[] = {
		"shared_preload_libraries", "session_preload_libraries", "local_preload_libraries"
	};

	for (int i = 0; i < lengthof(lists); i++)
		if (lists_library(GetConfigOption(lists[i], true, false)))
			return true;
	return set_for_database();
}

void
lbt_tell_not_loaded(void)
{
	static bool told = false;
	const char *libraries;
	const char *database;

	lbt_tell_no_memory();
	if (told || !lbt_shared_possible() || sessions_load_library())
		return;
	told = true;
	database = get_database_name(MyDatabaseId);
	libraries = superuser() ? GetConfigOption("session_preload_libraries", true, false) : NULL;
	ereport(NOTICE,
			(errmsg("new sessions of database \"%s\" will not load learnedbtree, and so serve no index", database),
			 errhint("As superuser: ALTER DATABASE %s SET session_preload_libraries = %s%slearnedbtree;",
					 quote_identifier(database), libraries && libraries[0] ? libraries : "",
					 libraries && libraries[0] ? ", " : "")));
}
