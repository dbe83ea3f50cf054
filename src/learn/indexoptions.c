/*
 * indexoptions.c - an index's options, from pg_class.reloptions or learnedbtree_settings.
 *
 * The table is read once for each unique index, and again when its relcache entry was invalidated, which
 * is what learnedbtree_set() does.
 */
#include "learn/settings.h"

#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/memutils.h"

typedef struct Cached
{
	Oid			index;			/* hash key */
	LbtIndexOptions options;
} Cached;

uint64		lbt_index_options_generation = 0;

static HTAB *cache = NULL;

static void
forget(Datum arg, Oid relid)
{
	lbt_index_options_generation++;
	if (cache == NULL)
		return;
	if (OidIsValid(relid))
		(void) hash_search(cache, &relid, HASH_REMOVE, NULL);
	else
	{
		hash_destroy(cache);
		cache = NULL;
	}
}

static void
prepare_cache(void)
{
	HASHCTL		ctl = {.keysize = sizeof(Oid),.entrysize = sizeof(Cached),.hcxt = TopMemoryContext};

	if (lbt_index_options_generation == 0)
	{
		CacheRegisterRelcacheCallback(forget, (Datum) 0);
		lbt_index_options_generation = 1;
	}
	if (cache == NULL)
		cache = hash_create("learnedbtree settings of indexes", 64, &ctl,
							HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

/* What learnedbtree_settings says; false when that may not be the last word. */
static bool
get_kept(Relation rel, LbtIndexOptions *options)
{
	Oid			oid = RelationGetRelid(rel);
	Cached	   *cached = hash_search(cache, &oid, HASH_FIND, NULL);
	uint64		generation = lbt_index_options_generation;
	bool		found;

	if (cached)
	{
		*options = cached->options;
		return true;
	}

	/* Logical decoding sees the catalogs of another time, and no table.  Reading may receive invalidations. */
	if (HistoricSnapshotActive() ||
		!lbt_kept_read(rel->rd_index->indrelid, RelationGetRelationName(rel), options) ||
		generation != lbt_index_options_generation)
		return false;
	cached = hash_search(cache, &oid, HASH_ENTER, &found);
	cached->options = *options;
	return true;
}

bool
lbt_index_options(Relation rel, LbtIndexOptions *options)
{
	LbtOptions *own;
	bool		sure = true;

	prepare_cache();
	*options = LBT_NO_INDEX_OPTIONS;
	if (rel->rd_index->indisunique)
		sure = get_kept(rel, options);
	own = (LbtOptions *) rel->rd_options;	/* not before: an invalidation makes them anew */
	if (own != NULL && !lbt_any_index_option(options))
		*options = lbt_own_options(own);
	return sure;
}
