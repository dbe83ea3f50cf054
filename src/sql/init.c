/*
 * init.c - loading the module: settings, options, hooks, shared memory.
 */
#include "postgres.h"

#include "access/parallel.h"
#include "access/xact.h"
#include "am/am.h"
#include "fmgr.h"
#include "learn/lifecycle.h"
#include "learn/registry.h"
#include "learn/settings.h"
#include "miscadmin.h"
#include "serve/serve.h"
#include "sql/explain.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"

PG_MODULE_MAGIC;

void		_PG_init(void);

static const struct config_enum_entry sort_keys_words[] = {
	{"true", LBT_SORT_KEYS_TRUE, false},
	{"scrambled", LBT_SORT_KEYS_SCRAMBLED, false},
	{NULL, 0, false}
};

static const struct config_enum_entry btree_indexes_words[] = {
	{"none", LBT_BTREE_NONE, false},
	{"adopted", LBT_BTREE_ADOPTED, false},
	{"all", LBT_BTREE_ALL, false},
	{NULL, 0, false}
};

/*
 * A setting for future sessions (ALTER DATABASE, ALTER ROLE, ALTER SYSTEM) means nothing to those without the library.
 * This session has it.  (ALTER SYSTEM comes as from the file, as a reload does, which happens between statements.)
 */
static bool
check_btree_indexes(int *value, void **extra, GucSource source)
{
	if (*value == LBT_BTREE_ALL && IsUnderPostmaster && OidIsValid(MyDatabaseId) && IsTransactionState() &&
		!InitializingParallelWorker &&
		(source == PGC_S_TEST || (source == PGC_S_FILE && debug_query_string != NULL)))
		lbt_tell_not_loaded();
	return true;
}

static void
assign_serving(int value, void *extra)
{
	lbt_serve_changed();
}

/*
 * _PG_init() runs again when it has failed before, for want of memory: each step is done once.  Within a step what can
 * fail comes first, and does no harm when it is done twice.
 */
static int	steps_done = 0;

#define ONCE(action) \
	do { \
		if (++step > steps_done) \
		{ \
			action; \
			steps_done = step; \
		} \
	} while (0)

static int
define_settings(int step)
{
	ONCE(DefineCustomEnumVariable("learnedbtree.btree_indexes",
							 "Which btree indexes are served, as they are.",
							 "none; adopted: those that learnedbtree_adopt() has marked; all: those of at least "
							 "learnedbtree.min_leaves leaves, and adopted ones, unless a mark excludes them.",
							 &lbt_btree_indexes, LBT_BTREE_ADOPTED, btree_indexes_words, PGC_USERSET, 0,
							 check_btree_indexes, assign_serving, NULL));
	ONCE(DefineCustomIntVariable("learnedbtree.min_leaves",
							"Leaf pages from which btree indexes are served where learnedbtree.btree_indexes is all.",
							"Smaller ones have too few pages on the way to a leaf.",
							&lbt_min_leaves, LBT_MIN_LEAVES_DEFAULT, 0, INT_MAX, PGC_USERSET, 0,
							NULL, assign_serving, NULL));
	ONCE(DefineCustomBoolVariable("learnedbtree.enable",
							 "Finds leaves through models.",
							 "When off, learnedbtree and served btree indexes work exactly as btree indexes.",
							 &lbt_enable, true, PGC_USERSET, 0, NULL, NULL, NULL));
	ONCE(DefineCustomBoolVariable("learnedbtree.enable_leaf_cache",
							 "Looks predictions up in the cache of leaf minima before reading a page.",
							 "When off, the spline's prediction is tried as it is, and the page decides.",
							 &lbt_enable_leaf_cache, true, PGC_USERSET, 0, NULL, NULL, NULL));
	ONCE(DefineCustomBoolVariable("learnedbtree.enable_buffer_hint",
							 "Remembers with every leaf the shared buffer it was last found in.",
							 "When off, every predicted page is looked up in the buffer table.",
							 &lbt_enable_buffer_hint, true, PGC_USERSET, 0, NULL, NULL, NULL));
	ONCE(DefineCustomBoolVariable("learnedbtree.enable_insert",
							 "Puts inserted keys on the leaf that the model predicts.",
							 "When off, inserts descend as in btree.",
							 &lbt_enable_insert, true, PGC_USERSET, 0, NULL, NULL, NULL));
	ONCE(DefineCustomBoolVariable("learnedbtree.enable_prefetch",
							 "Brings leaves that a scan will need into shared buffers ahead of time.",
							 "When off, scans read their leaves one by one, as in btree.",
							 &lbt_enable_prefetch, true, PGC_USERSET, 0, NULL, NULL, NULL));
	ONCE(DefineCustomBoolVariable("learnedbtree.autotrain",
							 "Trains models again in the background as their indexes change.",
							 "When off, a model is trained by the build of its index, by the first use "
							 "where there is none, and by learnedbtree_train().",
							 &lbt_autotrain, true, PGC_SIGHUP, 0, NULL, NULL, NULL));
	ONCE(DefineCustomIntVariable("learnedbtree.naptime",
							"Least time between two trainings of an index in the background.",
							"The launcher and its workers look for work this often, too.",
							&lbt_naptime, 1000, 10, INT_MAX / 2,
							PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL));
	ONCE(DefineCustomIntVariable("learnedbtree.retrain_splits",
							"Leaf splits since the last training after which a model is trained again.",
							"-1 takes 2 per cent of the leaves, at least 64 of them or a quarter. "
							"The index option retrain_splits overrides it.",
							&lbt_retrain_splits, -1, -1, INT_MAX, PGC_USERSET, 0, NULL, NULL, NULL));
	ONCE(DefineCustomIntVariable("learnedbtree.max_error",
							"Largest error of a model's spline, in leaves.",
							"Takes effect with the next training; smaller means more knots. The index "
							"option max_error overrides it.",
							&lbt_max_error, LBT_MAX_ERROR_DEFAULT, 1, LBT_MAX_ERROR_LIMIT,
							PGC_USERSET, 0, NULL, NULL, NULL));
	ONCE(DefineCustomIntVariable("learnedbtree.max_model_memory",
							"Shared memory that all models together may take.",
							"When a new model does not fit, the least recently used ones are dropped; "
							"a model larger than all of it is not made. 16 bytes a leaf.",
							&lbt_max_model_memory, 256 * 1024, 64, MAX_KILOBYTES,
							PGC_SUSET, GUC_UNIT_KB, NULL, NULL, NULL));
	ONCE(DefineCustomIntVariable("learnedbtree.max_workers",
							"Processes that train models in the background at a time, each in another database.",
							"They and their launcher are among max_worker_processes. More databases are visited in turn.",
							&lbt_max_workers, 1, 1, LBT_WORKERS_LIMIT, PGC_SIGHUP, 0, NULL, NULL, NULL));
	ONCE(DefineCustomIntVariable("learnedbtree.stat_save_interval",
							"Time between two writes of the statistics file.",
							"A crash of the server loses the counts of so much time at most; "
							"0 writes the file whenever a session adds its counts.",
							&lbt_stat_save_interval, 10000, 0, INT_MAX / 2,
							PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL));
	ONCE(DefineCustomEnumVariable("learnedbtree.debug_sort_keys",
							 "For tests: makes the sort keys of text contradict its collation.",
							 "Then most predictions fail, and answers have to be right nevertheless.",
							 &lbt_debug_sort_keys, LBT_SORT_KEYS_TRUE, sort_keys_words,
							 PGC_SUSET, GUC_NOT_IN_SAMPLE, NULL, NULL, NULL));
	ONCE(MarkGUCPrefixReserved("learnedbtree"));
	return step;
}

void
_PG_init(void)
{
	int			step = define_settings(0);

	ONCE(lbt_options_init());
	ONCE(lbt_registry_declare());
	ONCE(lbt_lifecycle_init());
	ONCE(lbt_ahead_init());
	ONCE(lbt_explain_init());
	ONCE(lbt_serve_init());
}
