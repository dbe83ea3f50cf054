/*
 * views.c - this backend's views of indexes: private memory, found by file.
 *
 * A view holds what a lookup needs without asking shared memory; registry.c fills in the shared part.
 */
#include "learn/counters.h"
#include "learn/lifecycle.h"
#include "learn/registry.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"

/* Views that a backend keeps beyond the end of a transaction. */
#define MAX_VIEWS 4096

/* Views from which on those of files that are gone are looked for, each time that their number has doubled. */
#define SWEEP_VIEWS 256

static HTAB *views = NULL;
static long sweep_at = SWEEP_VIEWS;

static void
view_init(LbtIndex *index, Relation rel)
{
	LbtFile		file = index->file;

	memset(index, 0, sizeof(LbtIndex));
	index->file = file;
	index->leaf_items = 1;
	index->last.block = InvalidBlockNumber;
	lbt_keyspec_init(&index->keyspec, rel);
	index->oid = RelationGetRelid(rel); /* last: what an error leaves is not a view of this index */
}

/*
 * Options change seldom, and the setting behind them at any time.  The file's size is asked for again, too: TRUNCATE
 * makes the file of a table of this transaction anew in place, and invalidates the index's relcache entry.
 */
static inline void
update_options(LbtIndex *index, Relation rel)
{
	if (unlikely(index->options_at != lbt_index_options_generation))
	{
		uint64		generation = lbt_index_options_generation;

		index->options_at = lbt_index_options(rel, &index->options, &index->why_not) ? generation : 0;
		index->learned = index->why_not == NULL;
		index->nblocks = 0;
	}
	index->retrain_splits = index->options.retrain_splits > 0 ? index->options.retrain_splits :
		lbt_retrain_splits;
}

/* Nobody holds a view of a file that is gone: who uses an index keeps it from being dropped or made anew. */
static void
sweep(void)
{
	HASH_SEQ_STATUS status;
	LbtIndex   *index;
	LbtFile		now;

	hash_seq_init(&status, views);
	while ((index = hash_seq_search(&status)) != NULL)
		if (!lbt_index_file(index->oid, &now) || memcmp(&now, &index->file, sizeof(LbtFile)) != 0)
		{
			lbt_counters_forget(index);
			(void) hash_search(views, &index->file, HASH_REMOVE, NULL);
		}
	sweep_at = Max(SWEEP_VIEWS, 2 * hash_get_num_entries(views));
}

LbtIndex *
lbt_index_get(Relation rel)
{
	LbtFile		file = {LbtRelDatabase(rel), LbtRelTablespace(rel), LbtRelNumber(rel)};
	LbtIndex   *index;
	bool		found;

	if (RelationUsesLocalBuffers(rel))
	{
		/* Never shared, never counted: temporary indexes may come by the million. */
		index = palloc(sizeof(LbtIndex));
		index->file = file;
		view_init(index, rel);
		update_options(index, rel);
		return index;
	}
	if (views == NULL)
	{
		HASHCTL		ctl = {.keysize = sizeof(LbtFile),.entrysize = sizeof(LbtIndex),
			.hcxt = TopMemoryContext};

		views = hash_create("learnedbtree indexes", 64, &ctl,
							HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	}
	if (unlikely(hash_get_num_entries(views) >= sweep_at))
		sweep();
	index = hash_search(views, &file, HASH_ENTER, &found);
	if (!found)
		index->oid = InvalidOid;
	if (index->oid != RelationGetRelid(rel))
	{
		/* New, or the number of a file long gone has come round again. */
		if (found)
			lbt_counters_forget(index);
		view_init(index, rel);
	}
	update_options(index, rel);
	index->shareable = lbt_registry_attach();
	return index;
}

void
lbt_views_trim(void)
{
	if (views == NULL || hash_get_num_entries(views) <= MAX_VIEWS)
		return;
	lbt_counters_forget(NULL);
	hash_destroy(views);
	views = NULL;
	sweep_at = SWEEP_VIEWS;
}
