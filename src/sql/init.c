/*
 * init.c - loading the module: settings, hooks, shared memory.
 */
#include "postgres.h"

#include "join/join.h"
#include "loose/loose.h"
#include "serve/serve.h"
#include "sql/functions.h"
#include "train/demand.h"

LBT_MODULE_MAGIC;

void		_PG_init(void);

/*
 * Runs again after running out of memory: each step is done once.  Within a
 * step what can fail comes first, and does no harm when it is done twice.
 */
void
_PG_init(void)
{
	static void (*const steps[]) (void) = {
		lbt_shmem_init, lbt_report_init, lbt_explain_init, lbt_serve_init, lbt_join_init,
		lbt_loose_init, lbt_executor_init
	};
	static int	done = 0;

	lbt_settings_define();
	for (; done < lengthof(steps); done++)
		steps[done] ();
}
