/*
 * init.c - loading the module: settings, options, hooks, shared memory.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "am/am.h"
#include "catalog/pg_db_role_setting.h"
#include "catalog/pg_type.h"
#include "join/join.h"
#include "miscadmin.h"
#include "registry/settings.h"
#include "registry/xact.h"
#include "serve/serve.h"
#include "server/executor.h"
#include "server/shared.h"
#include "sql/functions.h"
#include "tcop/tcopprot.h"
#include "train/demand.h"
#include "utils/array.h"
#include "utils/builtins.h"

PG_MODULE_MAGIC;

void		_PG_init(void);

static bool by_statement;		/* the library was loaded, not at the start */

/* Does a setting have sessions of this database load the library? */
static bool
will_be_loaded(void)
{
	static const char prefix[] = "session_preload_libraries=";
	Relation	catalog = table_open(DbRoleSettingRelationId, AccessShareLock);
	SysScanDesc scan = systable_beginscan(catalog, InvalidOid, false, NULL, 0, NULL);
	bool		found = strstr(session_preload_libraries_string, "learnedbtree") != NULL;
	HeapTuple	tuple;

	while (!found && HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Oid			database = ((Form_pg_db_role_setting) GETSTRUCT(tuple))->setdatabase;
		Datum		values[Natts_pg_db_role_setting];
		bool		nulls[Natts_pg_db_role_setting];
		Datum	   *settings;
		int			n = 0;

		/* Not heap_getattr(): it calls what only later minors have. */
		heap_deform_tuple(tuple, RelationGetDescr(catalog), values, nulls);
		if (!nulls[Anum_pg_db_role_setting_setconfig - 1] &&
			(database == MyDatabaseId || !OidIsValid(database)))
			deconstruct_array(DatumGetArrayTypeP(values[Anum_pg_db_role_setting_setconfig - 1]),
							  TEXTOID, -1, false, TYPALIGN_INT, &settings, NULL, &n);
		for (int i = 0; i < n; i++)
		{
			const char *setting = TextDatumGetCString(settings[i]);

			found |= strncmp(setting, prefix, strlen(prefix)) == 0 &&
				strstr(setting, "learnedbtree") != NULL;
		}
	}
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	return found;
}

/* A setting tells future sessions to serve indexes: will they be able to? */
static void
tell_not_loaded(void)
{
	static bool told = false;

	lbt_tell_no_memory();
	if (told || !by_statement || !lbt_shared_possible() || will_be_loaded())
		return;
	told = true;
	ereport(NOTICE,
			(errmsg("sessions that do not load learnedbtree when they begin, as this one did not, serve no index"),
			 errhint("Add learnedbtree to session_preload_libraries, by ALTER DATABASE, ALTER ROLE or ALTER SYSTEM.")));
}

/*
 * Runs again after running out of memory: each step is done once.  Within a
 * step what can fail comes first, and does no harm when it is done twice.
 */
void
_PG_init(void)
{
	static void (*const steps[]) (void) = {
		lbt_options_define, lbt_shmem_init, lbt_xact_init, lbt_report_init, lbt_explain_init,
		lbt_serve_init, lbt_join_init, lbt_executor_init
	};
	static int	done = 0;

	by_statement = debug_query_string != NULL;
	lbt_settings_define(lbt_serve_changed, tell_not_loaded);
	for (; done < lengthof(steps); done++)
		steps[done] ();
}
