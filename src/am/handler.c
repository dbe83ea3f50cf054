/*
 * handler.c - the access method's routine: btree's, with our callbacks in front.
 */
#include "am/am.h"

#include "miscadmin.h"
#include "fmgr.h"

PG_FUNCTION_INFO_V1(learnedbtree_handler);

Datum
learnedbtree_handler(PG_FUNCTION_ARGS)
{
	IndexAmRoutine *routine = lbt_bt_routine();

	routine->ambuild = lbt_build;
	routine->ambuildphasename = lbt_build_phase_name;
	routine->aminsert = lbt_insert;
	routine->amvacuumcleanup = lbt_vacuumcleanup;
	routine->amcostestimate = lbt_costestimate;
	routine->amoptions = lbt_options;
	routine->ambeginscan = lbt_beginscan;
	routine->amrescan = lbt_rescan;
	routine->amgettuple = lbt_gettuple;
	routine->amgetbitmap = lbt_getbitmap;
	routine->amendscan = lbt_endscan;
	routine->ammarkpos = lbt_markpos;
	routine->amrestrpos = lbt_restrpos;

	/* pg_upgrade restores indexes, but no alias operator classes: make them before they are needed. */
	if (IsBinaryUpgrade && OidIsValid(lbt_am_oid()))
		(void) lbt_sync_opclasses(lbt_am_oid());
	PG_RETURN_POINTER(routine);
}
