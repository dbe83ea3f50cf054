/*
 * settings.c - learnedbtree.* settings; see settings.h.
 */
#include "registry/settings.h"

#include "access/xact.h"
#include "catalog/partition.h"
#include "common/hashfn.h"
#include "key/sortkey.h"
#include "registry/shmem.h"
#include "tcop/tcopprot.h"
#include "utils/lsyscache.h"

bool		lbt_enable = true;
bool		lbt_enable_leaf_cache = true;
bool		lbt_enable_buffer_hint = true;
bool		lbt_enable_insert = true;
bool		lbt_enable_prefetch = true;
int			lbt_lookahead_rows = LBT_LOOKAHEAD_LIMIT;
bool		lbt_enable_row_prefetch = true;
bool		lbt_enable_loose_scan = true;
bool		lbt_autotrain = true;
LbtBtreeIndexes lbt_btree_indexes = LBT_BTREE_NONE;
char	   *lbt_btree_indexes_list = NULL;
int			lbt_min_leaves = LBT_MIN_LEAVES_DEFAULT;
int			lbt_naptime = 50;
int			lbt_retrain_visits = -1;
int			lbt_max_model_memory = 256 * 1024;

static const LbtNames *btree_names = NULL;	/* lbt_btree_indexes_list */

static const struct config_enum_entry sort_keys_words[] = {
	{"off", LBT_SORT_KEYS_TRUE, false},
	{"scrambled", LBT_SORT_KEYS_SCRAMBLED, false},
	{"always", LBT_SORT_KEYS_ALWAYS, false},
	{NULL, 0, false}
};

uint64		lbt_serving_generation = 1;
uint64		lbt_serving_epoch = 1;

void
lbt_serving_changed(void)
{
	lbt_serving_generation++;
	lbt_serving_epoch++;
}

void
lbt_tell_no_memory(void)
{
	static bool told = false;

	if (lbt_shmem_possible() || told)
		return;
	told = true;
	ereport(NOTICE,
			(errmsg("learnedbtree has no shared memory for models: its indexes work as plain btree"),
			 errhint("Add learnedbtree to shared_preload_libraries and restart the server.")));
}

static LbtBtreeIndexes
kind_of(const LbtNames *names)
{
	/* It decides on all indexes of which no later item does. */
	const LbtNamesItem *last = names->nitems > 0 ? &names->items[names->nitems - 1] : NULL;

	if (last == NULL || (last->everything && last->excludes))
		return LBT_BTREE_NONE;
	return last->everything ? LBT_BTREE_ALL : LBT_BTREE_LIST;
}

/*
 * A list may name what does not exist yet, so what is misspelt is no error.
 * Tell the user what can hardly be meant; not again at each call of a function
 * with such a SET clause.
 */
static void
tell_odd_list(const char *list, const LbtNames *names)
{
	static uint64 told = 0;
	uint64		hash = hash_bytes_extended((const unsigned char *) list, strlen(list), 0);
	bool		includes = names->nitems > 0 && names->items[0].everything;
	const LbtNamesItem *odd = NULL;

	for (uint32 i = 0; i < names->nitems; i++)
	{
		includes |= !names->items[i].excludes;
		if (odd == NULL && names->items[i].odd)
			odd = &names->items[i];
	}
	if ((includes && odd == NULL) || hash == told)
		return;
	told = hash;
	if (!includes)
		ereport(NOTICE,
				(errmsg("learnedbtree.btree_indexes serves no index: the list includes none"),
				 errhint("An item with ! excludes what an item before it includes, as in 'all, !orders_pkey'.")));
	if (odd)
		ereport(NOTICE,
				(errmsg("learnedbtree.btree_indexes takes \"%.*s\" for the name of an index",
						(int) odd->length, list + odd->text),
				 errhint("all serves all large indexes; * stands for any characters, and ? for one. Names that are not plain go into double quotes.")));
}

/*
 * Who sets it for a session, now or to come (ALTER DATABASE, ROLE or SYSTEM),
 * is told what will be of no effect, as all is where there is no shared memory
 * for models.  (ALTER SYSTEM comes as from the file, as a reload does, which
 * happens between statements.)
 */
static bool
check_btree_indexes(char **value, void **extra, GucSource source)
{
	LbtNames   *names;
	const char *problem;
	const char *where;

	names = lbt_names_parse(*value, true, &problem, &where);
	if (names == NULL)
	{
		if (where == NULL)
			GUC_check_errdetail("%s", problem);
		else if (problem)
		{
			GUC_check_errdetail("%s It is at \"%s\".", problem, where);
			GUC_check_errhint("Valid values are none, all, and lists like 'orders_pkey, shop.item_*, !shop.item_log*'.");
		}
		else
			GUC_check_errcode(ERRCODE_OUT_OF_MEMORY);
		return false;
	}
	*extra = names;
	if (MyBackendType == B_BACKEND && OidIsValid(MyDatabaseId) && IsTransactionState() &&
		(source >= PGC_S_TEST || (source == PGC_S_FILE && debug_query_string != NULL)))
	{
		tell_odd_list(*value, names);
		if (kind_of(names) != LBT_BTREE_NONE)
			lbt_tell_no_memory();
	}
	return true;
}

static void
assign_btree_indexes(const char *value, void *extra)
{
	static uint64 assigned = 0;
	uint64		hash = hash_bytes_extended((const unsigned char *) value, strlen(value), 0);

	btree_names = extra;
	lbt_btree_indexes = kind_of(btree_names);

	/* A function's SET clause often says what is set anyway. */
	if (hash != assigned)
		lbt_serving_changed();
	assigned = hash;
}

static void
assign_serving(int value, void *extra)
{
	lbt_serving_changed();
}

/* _PG_init() runs again if memory ran out: define each setting only once. */
static int	ndefined = 0;

#define DEFINE(kind, name, what, more, ...) \
	do { \
		if (++n > ndefined) \
			DefineCustom##kind##Variable("learnedbtree." name, what, more, __VA_ARGS__, NULL); \
		ndefined = Max(n, ndefined); \
	} while (0)
#define DEFINE_BOOL(name, value, context, what, more) \
	DEFINE(Bool, name, what, more, value, *(value), context, 0, NULL, NULL)
#define DEFINE_INT(name, value, min, max, context, flags, assign, what, more) \
	DEFINE(Int, name, what, more, value, *(value), min, max, context, flags, NULL, assign)

void
lbt_settings_define(void)
{
	int			n = 0;

	DEFINE(String, "btree_indexes", "Sets the btree indexes that the session serves.",
		   "none, all (those of at least learnedbtree.min_leaves leaves), or a list of names and patterns, of which the last one that matches decides.",
		   &lbt_btree_indexes_list, "none", PGC_USERSET, 0, check_btree_indexes,
		   assign_btree_indexes);
	DEFINE_INT("min_leaves", &lbt_min_leaves, 0, INT_MAX, PGC_USERSET, 0, assign_serving,
			   "Sets the size, in leaf pages, from which \"all\" in learnedbtree.btree_indexes includes an index.",
			   "The descent of a smaller index is short.");
	DEFINE_BOOL("enable", &lbt_enable, PGC_USERSET, "Finds leaves through models.",
				"When off, learnedbtree and served btree indexes work exactly as btree indexes.");
	DEFINE_BOOL("enable_leaf_cache", &lbt_enable_leaf_cache, PGC_USERSET,
				"Looks predictions up in the cache of leaf minima before reading a page.",
				"When off, the spline's prediction is tried as it is, and the page decides.");
	DEFINE_BOOL("enable_buffer_hint", &lbt_enable_buffer_hint, PGC_USERSET,
				"Remembers in which shared buffers leaves and table blocks were last found.",
				"When off, every page is looked up in the buffer table.");
	DEFINE_BOOL("enable_insert", &lbt_enable_insert, PGC_USERSET,
				"Puts inserted keys on the leaf that the model predicts.",
				"When off, inserts descend as in btree.");
	DEFINE_BOOL("enable_prefetch", &lbt_enable_prefetch, PGC_USERSET,
				"Asks the operating system for leaves before they are needed.",
				"When off, leaves are read one by one, as in btree.");
	DEFINE_BOOL("enable_row_prefetch", &lbt_enable_row_prefetch, PGC_USERSET,
				"Asks the operating system for blocks of rows before they are needed.",
				"When off, they are read one by one, as in btree, and ranges in memory gain less.");
	DEFINE_INT("lookahead_rows", &lbt_lookahead_rows, 0, LBT_LOOKAHEAD_LIMIT, PGC_USERSET, 0, NULL,
			   "Sets the number of rows that plans for joins, subqueries and writes look up ahead of time.",
			   "It grows up to this while the statement runs. With 0 or 1, plans get no node that does so.");
	DEFINE_BOOL("enable_loose_scan", &lbt_enable_loose_scan, PGC_USERSET,
				"Plans loose index scans for DISTINCT and GROUP BY, and skip scans.",
				"When off, plans read all rows of all groups.");
	DEFINE_BOOL("autotrain", &lbt_autotrain, PGC_SIGHUP,
				"Trains models again in the background as their indexes change.",
				"When off, a model is trained only by the first use of an index that has none, by learnedbtree_train(), and by builds of indexes made USING learnedbtree.");
	DEFINE_INT("naptime", &lbt_naptime, 10, INT_MAX / 2, PGC_SIGHUP, GUC_UNIT_MS, NULL,
			   "Sets the minimum time between two background trainings of an index.",
			   "Models are trained when their indexes have changed so much that it pays.");
	DEFINE_INT("retrain_visits", &lbt_retrain_visits, -1, INT_MAX, PGC_USERSET, 0, NULL,
			   "Sets the number of lost page visits after which a model is trained again.",
			   "-1 means as many as a training costs. A step to the right or a split leaf counts as one, a failed prediction as a descent.");
	DEFINE_INT("max_model_memory", &lbt_max_model_memory, 64, MAX_KILOBYTES, PGC_SUSET, GUC_UNIT_KB,
			   NULL, "Sets the shared memory that all models together may take.",
			   "When a new model does not fit, the least recently used ones are dropped; a model larger than all of it is not made. A model takes 2.2 kB, 16 bytes a leaf, and with keys of text or of several columns up to 32 bytes a leaf more, or 64 kB in all if that is more.");
	DEFINE(Enum, "debug_sort_keys",
		   "Off except in tests of learnedbtree itself.",
		   "Scrambled contradicts the collation of text: predictions fail, and answers must be right. Always makes models whatever sort keys cost.",
		   &lbt_debug_sort_keys, LBT_SORT_KEYS_TRUE, sort_keys_words, PGC_SUSET,
		   GUC_NO_SHOW_ALL | GUC_NOT_IN_SAMPLE, NULL, NULL);
	MarkGUCPrefixReserved("learnedbtree");
}

/* ---- which item decides on a btree index ---- */

List *
lbt_names_of_index(Oid index)
{
	List	   *oids = get_rel_relispartition(index) ? get_partition_ancestors(index) : NIL;
	List	   *names = NIL;
	ListCell   *lc;

	oids = lcons_oid(index, oids);
	foreach(lc, oids)
	{
		char	   *schema = get_namespace_name(get_rel_namespace(lfirst_oid(lc)));
		char	   *name = get_rel_name(lfirst_oid(lc));

		if (schema && name)
			names = lappend(lappend(names, schema), name);
	}
	list_free(oids);
	return names;
}

const LbtNamesItem *
lbt_deciding_item(Oid index)
{
	uint32		n = btree_names->nitems;
	List	   *names = lbt_btree_indexes == LBT_BTREE_LIST ? lbt_names_of_index(index) : NIL;

	while (n > 0 && !lbt_item_matches_names(btree_names, &btree_names->items[n - 1], names))
		n--;
	list_free_deep(names);
	return n > 0 ? &btree_names->items[n - 1] : NULL;
}

bool
lbt_index_served(Relation rel, const char **why_not)
{
	const LbtNamesItem *item;

	*why_not = NULL;
	if (!lbt_is_btree(rel))
		return true;
	if (lbt_btree_indexes == LBT_BTREE_NONE)
	{
		*why_not = "learnedbtree.btree_indexes is none";
		return true;
	}
	if (!IsTransactionState() || HistoricSnapshotActive())
	{
		*why_not = "its name cannot be read just now";
		return false;
	}
	item = lbt_deciding_item(RelationGetRelid(rel));
	if (item == NULL)
		*why_not = "learnedbtree.btree_indexes does not name it";
	else if (item->excludes)
		*why_not = "learnedbtree.btree_indexes excludes it";
	else if (item->everything && !lbt_is_large(RelationGetNumberOfBlocks(rel)))
	{
		*why_not = "it has fewer leaves than learnedbtree.min_leaves";
		return false;			/* it may grow */
	}
	return true;
}
