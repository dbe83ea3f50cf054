/*
 * init.c - loading the module: settings, options, hooks, shared memory.
 */
#include "postgres.h"

#include "am/am.h"
#include "join/join.h"
#include "registry/settings.h"
#include "registry/xact.h"
#include "serve/serve.h"
#include "server/executor.h"
#include "server/shared.h"
#include "sql/functions.h"
#include "tcop/tcopprot.h"
#include "train/demand.h"

PG_MODULE_MAGIC;

void		_PG_init(void);

static bool by_statement;		/* the library was loaded, not at the start */

/* A setting tells future sessions to serve indexes: will they be able to? */
static void
tell_not_loaded(void)
{
	static bool told = false;

	lbt_tell_no_memory();
	if (told || !by_statement || !lbt_shared_possible())
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
