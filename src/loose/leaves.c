/*
 * leaves.c - the leaves in which a loose scan's next groups begin, asked for
 * ahead of need.
 *
 *     leaf cache: the first column of separators
 *                  1   1   1   1   2   2   2   3   3   5   5   5 ...
 *     leaves       |   |   |   |   |   |   |   |   |   |   |   |
 *                              ^           ^       ^           ^
 *                              1 ends here, and 2 begins or 3 does, ...
 *
 * The last leaf of those whose separators agree in the groups' columns is the
 * one where a seek after their value lands, in either direction.  The model
 * names it without a page being read.
 *
 * Nothing here decides where a seek lands: a leaf that is named in vain, as
 * another value shares its code or a condition ends the scan, costs a read.
 * Read the model only after a look at the generation, with no dsa call in
 * between.
 */
#include "loose/loose.h"

#include "am/am.h"
#include "registry/settings.h"
#include "server/stream.h"
#include "utils/memutils.h"

struct LbtGroupLeaves
{
	Relation	rel;
	LbtIndex   *index;			/* NULL: nothing is asked for */
	int			ncolumns;		/* that make the groups */
	bool		forward;

	/* since the last rescan */
	int64		at;				/* where the last seek landed; -1: not known */
	bool		missed;			/* it had to read a block */
	LbtTally	tally;
	LbtStream  *stream;			/* or NULL */
	uint64		generation;		/* of the model that it goes by */
	int64		slot;			/* named last */
};

LbtGroupLeaves *
lbt_leaves_open(Relation index, int ncolumns, bool forward)
{
	LbtGroupLeaves *leaves = palloc0(sizeof(LbtGroupLeaves));

	leaves->rel = index;
	leaves->index = lbt_learned_view(index);
	leaves->ncolumns = ncolumns;
	leaves->forward = forward;
	leaves->at = -1;
	return leaves;
}

void
lbt_leaves_reset(LbtGroupLeaves *leaves)
{
	leaves->at = -1;
	lbt_stream_end(&leaves->stream);
	if (leaves->index != NULL)
		lbt_count_tally(leaves->index, LBT_EV_PREFETCHED, &leaves->tally, NULL);
}

void
lbt_leaves_explain(const LbtGroupLeaves *leaves, ExplainState *es)
{
	lbt_explain_tally("Leaves", &leaves->tally, es);
}

/* For the stream: the next leaf in which a group ends. */
static bool
next_leaf(void *state, BlockNumber *block)
{
	LbtGroupLeaves *leaves = state;
	LbtModel   *model = &leaves->index->model;
	int64		slot = leaves->slot + (leaves->forward ? 1 : 0);
	uint64		first;			/* code of the slot's value */
	uint64		last;

	if (!lbt_same_model(leaves->index, leaves->generation) || slot <= 0 || slot >= model->nleaves)
		return false;
	lbt_keycode_range(model->code, model->leaves[slot].min_code, leaves->ncolumns, &first, &last);
	slot = lbt_leaf_search(model->leaves, model->nleaves, (uint32) slot,
						   leaves->forward ? last : first, leaves->forward);
	leaves->slot = slot;
	*block = model->leaves[slot].block;
	return true;
}

void
lbt_leaves_before(LbtGroupLeaves *leaves)
{
	LbtIndex   *index = leaves->index;

	if (leaves->at < 0)
		return;
	if (!lbt_enable || !lbt_enable_prefetch || !lbt_enable_leaf_cache ||
		!lbt_same_model(index, leaves->stream ? leaves->generation : index->generation))
	{
		lbt_stream_end(&leaves->stream);
		return;
	}
	if (leaves->stream != NULL)
	{
		if (leaves->forward ? leaves->at > leaves->slot : leaves->at < leaves->slot)
		{
			leaves->slot = leaves->at;
			lbt_stream_skip(leaves->stream);
		}
		(void) lbt_stream_reach(&leaves->stream, index->model.leaves[leaves->at].block);
	}
	else if (leaves->missed)
	{
		leaves->generation = index->generation;
		leaves->slot = leaves->at;
		leaves->stream = lbt_stream_begin(GetMemoryChunkContext(leaves), leaves->rel, false,
										  next_leaf, leaves, &leaves->tally);
		if (leaves->stream != NULL)
			lbt_stream_start(leaves->stream);
	}
}

void
lbt_leaves_after(LbtGroupLeaves *leaves, bool missed)
{
	const LbtIndex *index = leaves->index;

	leaves->at = index != NULL && index->state == LBT_READY &&
		index->seen.slot < index->model.nleaves ? index->seen.slot : -1;
	leaves->missed = missed;
}
