/*
 * indexoptions.c - an index's options, and whether this session uses a model for it.
 *
 * Indexes of our access method have their options in pg_class.reloptions.  Of btree indexes those are btree's own; a
 * mark (marks.h) has ours, and with learnedbtree.btree_indexes decides whether the session serves the index.
 */
#include "learn/settings.h"

#include "learn/marks.h"
#include "storage/bufmgr.h"

uint64		lbt_index_options_generation = 1;

/* Of a btree index: by its mark and the session's settings. */
static bool
served_options(Relation rel, LbtIndexOptions *options, const char **why_not)
{
	bool		marked;
	bool		sure = lbt_mark_find(rel, options, &marked);

	if (!lbt_extension_exists())
		*why_not = "the extension does not exist in this database";
	else if (!sure)
		*why_not = "its marks cannot be read just now";
	else if (lbt_btree_indexes == LBT_BTREE_NONE)
		*why_not = "learnedbtree.btree_indexes is none";
	else if (marked && !options->learned)
		*why_not = "its mark excludes it (learned is off)";
	else if (!marked && lbt_btree_indexes == LBT_BTREE_ADOPTED)
		*why_not = "it is not adopted";
	else if (!marked && !lbt_is_large(RelationGetNumberOfBlocks(rel)))
		*why_not = "it has fewer leaves than learnedbtree.min_leaves";
	return sure;
}

bool
lbt_index_options(Relation rel, LbtIndexOptions *options, const char **why_not)
{
	const LbtOptions *own;

	*options = LBT_NO_INDEX_OPTIONS;
	*why_not = NULL;
	if (lbt_is_btree(rel))
		return served_options(rel, options, why_not);
	own = (const LbtOptions *) rel->rd_options;
	if (own != NULL)
		*options = (LbtIndexOptions) {.learned = own->learned,.max_error = own->max_error,
		.retrain_splits = own->retrain_splits};
	if (options->learned == 0)
		*why_not = "the index option learned is off";
	return true;
}
