/*
 * indexoptions.h - what is set for an index itself, wherever it is kept.
 */
#ifndef LBT_INDEXOPTIONS_H
#define LBT_INDEXOPTIONS_H

#include "postgres.h"

#include "learn/kept.h"
#include "learn/settings.h"

/* rd_options of our indexes.  nbtree reads the front of it. */
typedef struct LbtOptions
{
	BTOptions	btree;
	bool		learned;
	int			max_error;		/* -1: unset */
	int			retrain_splits; /* -1: unset */
} LbtOptions;

/* Raised when the options of any index may have changed; what was asked for before may be outdated. */
extern uint64 lbt_index_options_generation;

/*
 * False when this may not be the last word.  Not for every lookup: the options of an index are in its view
 * (LbtIndex), too.
 */
extern bool lbt_index_options(Relation rel, LbtIndexOptions *options);

/* Use a model for this index? */
static inline bool
lbt_index_learned(Relation rel)
{
	LbtIndexOptions options;

	(void) lbt_index_options(rel, &options);
	return options.learned != 0;
}

/* The largest error of its spline, in leaves. */
static inline int
lbt_index_max_error(Relation rel)
{
	LbtIndexOptions options;

	(void) lbt_index_options(rel, &options);
	return options.max_error > 0 ? options.max_error : lbt_max_error;
}

#endif							/* LBT_INDEXOPTIONS_H */
