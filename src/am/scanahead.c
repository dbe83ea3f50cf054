/*
 * scanahead.c - predict a scan's next probes, and read leaves ahead of need
 * (src/README, "Leaves ahead of need"; of groups, "Skipping", "Loose scans").
 *
 * A stream asks for leaves by their slots, which never go back:
 *
 *     slots     ... 17   18   19   20   21   22   23   24 ...
 *                   |    |    |    |    |    |
 *                   read |    |    |    |    slot: asked for last; until: the
 *                        |    asked for      last slot of the stream's probe
 *                        split off, or not needed: passed by
 *
 * Where a scan skips from group to group, they are those that groups end in
 * (with filters, a group is what agrees before the first one's column):
 *
 *     separators    1   1   1   1   2   2   2   3   3   5   5   5 ...
 *     leaves        |   |   |   |   |   |   |   |   |   |   |   |
 *                               ^           ^       ^           ^
 *
 * Read the model only after a look at the generation, with no dsa call in
 * between.  Once it has changed, predictions and the stream by it are dropped.
 */

#include "ahead/feed.h"
#include "am/scan.h"

/* Slots to look for a sibling in. */
#define SLOT_WINDOW 32

/* Give the stream up after this many probes in a row that add no leaf. */
#define MAX_SAME_LEAF 4096

typedef struct LbtAhead
{
	LbtScan    *so;
	LbtFeed		feed;			/* items are probes, in its direction */
	bool		prepared;		/* since the last rescan */

	/* leaves being brought in; NULL: none */
	LbtStream  *stream;
	bool		forward;
	bool		groups;			/* those that groups end in ... */
	uint64		filter[2];		/* near and far code, less a group's first */
	int64		end;			/* the last slot of the scan's probe */
	bool		siblings;		/* ... and the ones after these */
	bool		sibling_next;	/* one of the latter comes next */
	uint64		generation;		/* of the model that it goes by */
	int64		slot;			/* asked for last; -1: none */
	int64		until;			/* the last one of the probe's */
	LbtProbe	probe;
} LbtAhead;

static LbtNext next_probe(void *producer, uint64 number, LbtKeyValue *key, uint8 *scratch);

static LbtAhead *
get_ahead(LbtScan *so)
{
	if (so->ahead == NULL)
	{
		LbtAhead   *ahead = MemoryContextAllocZero(GetMemoryChunkContext(so), sizeof(LbtAhead));

		ahead->so = so;
		ahead->feed.next_key = next_probe;
		ahead->feed.producer = ahead;
		ahead->feed.context = GetMemoryChunkContext(so);
		ahead->feed.index = so->index;
		ahead->feed.all = ahead->feed.no_reads = true;
		so->ahead = ahead;
	}
	return so->ahead;
}

void
lbt_ahead_stop(LbtScan *so)
{
	lbt_feed_restart(&so->ahead->feed, 0);
	so->ahead->prepared = false;
	lbt_stream_end(&so->ahead->stream);
}

void
lbt_ahead_free(LbtScan *so)
{
	lbt_feed_free(&so->ahead->feed);
	pfree(so->ahead);
}

/* ---- the stream ---- */

/* Find the probe's slots after those of the probe before. */
static void
find_slots(LbtAhead *ahead)
{
	const LbtIndex *index = ahead->so->index;
	const LbtBound *near = ahead->forward ? &ahead->probe.start : &ahead->probe.end;
	const LbtBound *far = ahead->forward ? &ahead->probe.end : &ahead->probe.start;
	LbtTarget	first;
	LbtTarget	last;

	predict_target(index, near, bound_code(index, near), ahead->forward,
				   (uint32) Max(ahead->slot, 0), &first);
	predict_target(index, far, bound_code(index, far), !ahead->forward, first.slot, &last);
	ahead->until = last.slot;
	if (ahead->forward)
		ahead->slot = Max(ahead->slot, (int64) first.slot - 1);
	else
		ahead->slot = Min(ahead->slot < 0 ? PG_INT64_MAX : ahead->slot, (int64) first.slot + 1);
}

/* For the stream: the next leaf that the scan will need. */
static bool
next_needed_leaf(void *state, BlockNumber *block)
{
	LbtAhead   *ahead = state;
	int64		step = ahead->forward ? 1 : -1;

	if (!lbt_same_model(ahead->so->index, ahead->generation))
		return false;
	for (int i = 0; i < MAX_SAME_LEAF; i++)
	{
		int64		next = ahead->probe.number + step;

		if (ahead->forward ? ahead->slot < ahead->until : ahead->slot > ahead->until)
		{
			ahead->slot += step;
			*block = ahead->so->index->model.leaves[ahead->slot].block;
			return true;
		}
		if (next < 0 || next >= ahead->so->nprobes)
			return false;
		lbt_probe_go(ahead->so, &ahead->probe, next);
		find_slots(ahead);
	}
	return false;
}

/* The last slot, in the stream's direction, of what has this code. */
static inline int64
last_slot(const LbtAhead *ahead, const LbtModel *model, uint64 code)
{
	return lbt_leaf_search(model->leaves, model->nleaves, ahead->slot, code, ahead->forward);
}

/* For the stream: the next leaf that a group needs, or the one after that. */
static bool
next_group_leaf(void *state, BlockNumber *block)
{
	LbtAhead   *ahead = state;
	const LbtScan *so = ahead->so;
	const LbtModel *model = &so->index->model;
	int			ncolumns = so->group_columns > 0 ? so->group_columns : so->filter[0].column;
	int64		step = ahead->forward ? 1 : -1;
	int64		slot = ahead->slot + (ahead->forward ? 1 : 0);
	uint64		first;			/* code of the slot's value */
	uint64		last;

	if (!lbt_same_model(so->index, ahead->generation) || slot <= 0 || slot >= model->nleaves)
		return false;
	if (ahead->sibling_next || (ahead->until - ahead->slot) * step > 0)
		ahead->slot += step;
	else
	{
		lbt_keycode_range(model->code, model->leaves[slot].min_code, ncolumns, &first, &last);
		if (so->group_columns == 0)
			ahead->until = last_slot(ahead, model, first + ahead->filter[1]);
		slot = last_slot(ahead, model, (ahead->until - ahead->slot) * step > 0 ?
						 first + ahead->filter[0] : ahead->forward ? last : first);
		ahead->slot += Max((slot - ahead->slot) * step, 1) * step;
		if ((ahead->slot - ahead->end) * step > 0)
			return false;
	}
	ahead->sibling_next = ahead->siblings && !ahead->sibling_next;
	*block = model->leaves[ahead->slot].block;
	return true;
}

/* Begin a stream, in place of another one.  The view is current. */
static LbtAhead *
begin_stream(IndexScanDesc scan, LbtScan *so, int64 slot, bool forward, LbtNextBlock next)
{
	LbtAhead   *ahead = get_ahead(so);

	lbt_stream_end(&ahead->stream);
	ahead->forward = forward;
	ahead->groups = next == next_group_leaf;
	ahead->sibling_next = false;
	ahead->generation = so->index->generation;
	ahead->slot = ahead->until = slot;
	ahead->stream = lbt_stream_begin(GetMemoryChunkContext(so), scan->indexRelation,
									 so->bitmap && !ahead->groups, next, ahead,
									 &so->leaves_ahead);
	return ahead;
}

/* Read ahead from this slot (-1: the probe's first). */
static void
begin_leaves(IndexScanDesc scan, LbtScan *so, const LbtWalk *walk, int64 slot, bool forward)
{
	LbtAhead   *ahead = begin_stream(scan, so, -1, forward, next_needed_leaf);

	ahead->probe = walk->probe;
	find_slots(ahead);
	if (slot >= 0)
		ahead->slot = forward ? slot - 1 : slot + 1;
}

/* Does a stream serve this direction?  End any other.  ahead may be NULL. */
static bool
have_stream(LbtAhead *ahead, bool forward)
{
	if (ahead == NULL || ahead->stream == NULL)
		return false;
	if (ahead->forward != forward || !lbt_enable_prefetch ||
		!lbt_same_model(ahead->so->index, ahead->generation))
		lbt_stream_end(&ahead->stream);
	return ahead->stream != NULL;
}

/*
 * The walk has reached the leaf in this slot; true if it was asked for before.
 * Where the walk has skipped all that has been, go on from here.
 */
static bool
reach_slot(LbtAhead *ahead, uint32 slot)
{
	if (ahead->forward ? slot > ahead->slot : slot < ahead->slot)
	{
		ahead->slot = (int64) slot + (ahead->forward ? -1 : 1);
		lbt_stream_skip(ahead->stream);
	}
	return lbt_stream_reach(&ahead->stream, ahead->so->index->model.leaves[slot].block);
}

/* ---- probes ---- */

/* For the feed: the bound at which the scan reaches a probe. */
static LbtNext
next_probe(void *producer, uint64 number, LbtKeyValue *key, uint8 *scratch)
{
	LbtAhead   *ahead = producer;
	LbtScan    *so = ahead->so;
	LbtProbe   *probe = &so->walk.probe;
	bool		backward = ahead->feed.backward;
	const LbtBound *bound = backward ? &probe->end : &probe->start;

	if (number >= (uint64) so->nprobes)
		return LBT_NO_MORE;
	lbt_probe_go(so, probe, backward ? so->nprobes - 1 - (int64) number : (int64) number);
	memcpy(key, bound->value, bound->ncolumns * sizeof(LbtKeyValue));
	return LBT_KEY;
}

/* Probes come in this direction from now on. */
static void
prepare_feed(IndexScanDesc scan, LbtScan *so, bool forward)
{
	LbtAhead   *ahead = so->ahead;
	LbtFeed    *feed = &ahead->feed;
	const LbtBound *bound = forward ? &so->walk.probe.start : &so->walk.probe.end;

	lbt_feed_restart(feed, 0);
	ahead->prepared = true;
	feed->rel = scan->indexRelation;
	feed->table = so->pins_heap_block ? scan->heapRelation : NULL;
	feed->ncolumns = bound->ncolumns;
	feed->nequal = so->array[so->narrays - 1].column + 1;
	feed->past = bound->past;
	feed->backward = !forward;
}

/* The prediction for a probe without a feed; the walk goes to it. */
static void
predict_probe(const LbtScan *so, LbtWalk *walk, int64 number, bool forward, LbtTarget *target)
{
	const LbtBound *bound = forward ? &walk->probe.start : &walk->probe.end;

	lbt_probe_go(so, &walk->probe, number);
	predict_target(so->index, bound, bound_code(so->index, bound), forward, walk->slot, target);
}

/*
 * Are all probes from this one on on one leaf, as predicted?  Then one visit
 * serves them.
 */
static bool
on_one_leaf(const LbtScan *so, LbtWalk *walk, int64 number, bool forward)
{
	LbtTarget	next;
	LbtTarget	last;

	predict_probe(so, walk, forward ? so->nprobes - 1 : 0, forward, &last);
	predict_probe(so, walk, number, forward, &next);
	return next.slot == last.slot;
}

/*
 * Is a leaf missing that is predicted for the probes after this one, or where
 * those after the batch go on, if all of it is on one leaf?
 */
static bool
will_miss_leaves(IndexScanDesc scan, LbtScan *so, const LbtFeedBatch *batch, bool forward)
{
	const LbtTarget *target = batch->keys.target;
	int			n = batch->keys.n;
	uint32		next;

	for (int i = 1; i < n; i++)
		if (target[i].slot != target[i - 1].slot &&
			!lbt_slot_cached(scan->indexRelation, so->index, target[i].slot))
			return true;
	if (n == 0 || target[0].slot != target[n - 1].slot ||
		batch->first + batch->nitems >= (uint64) so->nprobes)
		return false;
	next = forward ? target[0].slot + 1 : target[0].slot - 1;
	return next < so->index->model.nleaves &&
		!lbt_slot_cached(scan->indexRelation, so->index, next);
}

bool
lbt_ahead_predict(IndexScanDesc scan, LbtScan *so, LbtWalk *walk, int64 number, bool forward,
				  LbtTarget *target)
{
	LbtIndex   *index = so->index;
	LbtAhead   *ahead;
	const LbtTarget *predicted;
	uint64		batches;

	memset(target, 0, sizeof(*target));
	if (so->nprobes == 1)
	{
		if (so->ahead)
			lbt_stream_end(&so->ahead->stream);
		return false;
	}
	if (walk == &so->walk)
		lbt_index_update(index);
	if (!lbt_same_model(index, index->generation))
		return false;
	if (walk == &so->walk && (so->ahead == NULL || !so->ahead->prepared) &&
		on_one_leaf(so, walk, number, forward))
		return false;
	ahead = get_ahead(so);
	if (walk != &so->walk)
		predict_probe(so, walk, number, forward, target);
	else
	{
		if (unlikely(!ahead->prepared || ahead->feed.backward == forward))
			prepare_feed(scan, so, forward);
		batches = ahead->feed.batches;
		predicted = lbt_feed_reach(&ahead->feed, forward ? number : so->nprobes - 1 - number);
		if (ahead->feed.batches != batches && lbt_enable_prefetch &&
			!have_stream(ahead, forward) && !lbt_tally_wasted(&so->leaves_ahead) &&
			will_miss_leaves(scan, so, ahead->feed.now, forward) &&
			lbt_same_model(index, index->generation))
		{
			lbt_probe_go(so, &walk->probe, number);
			begin_leaves(scan, so, walk, -1, forward);
		}
		if (predicted == NULL)
			return false;
		*target = *predicted;
	}
	return have_stream(ahead, forward) && reach_slot(ahead, target->slot);
}

/* ---- siblings ---- */

/* Find the block's slot among n from this one on; -1 if in none of them. */
static int64
find_block(const LbtModel *model, BlockNumber block, int64 slot, uint32 n, int step)
{
	for (; n > 0 && slot >= 0 && slot < model->nleaves; n--, slot += step)
		if (model->leaves[slot].block == block)
			return slot;
	return -1;
}

/*
 * Find the slot of the leaf that the walk steps to, among those that should
 * come next; -1 if it was split off since the training.  walk->slot may be
 * another model's, or none, if there was no model when the walk began: so
 * search all slots, once for each model.
 */
static int64
slot_of_sibling(LbtIndex *index, LbtWalk *walk, BlockNumber block, bool forward)
{
	int64		slot;

	if (!lbt_same_model(index, index->generation))
		return -1;
	slot = find_block(&index->model, block, walk->slot, SLOT_WINDOW, forward ? 1 : -1);
	if (slot < 0 && walk->searched < index->model_since)
	{
		walk->searched = index->generation;
		slot = find_block(&index->model, block, 0, index->model.nleaves, 1);
	}
	if (slot >= 0)
		walk->slot = (uint32) slot;
	return slot;
}

void
lbt_ahead_sibling(IndexScanDesc scan, LbtScan *so, LbtWalk *walk, BlockNumber block, bool forward)
{
	LbtIndex   *index = so->index;
	int64		slot;

	if (walk == &so->walk)
		lbt_index_update(index);
	walk->steps++;
	if (!lbt_enable_prefetch || (slot = slot_of_sibling(index, walk, block, forward)) < 0)
		return;
	/* After one step a scan may have come to its end. */
	if (walk->steps > 1 && !have_stream(so->ahead, forward) &&
		!lbt_slot_cached(scan->indexRelation, index, (uint32) slot) &&
		lbt_same_model(index, index->generation))
		begin_leaves(scan, so, walk, slot, forward);
	if (have_stream(so->ahead, forward))
		(void) reach_slot(so->ahead, (uint32) slot);
}

/* ---- groups ---- */

/*
 * Find where filters leave something of a group, by the one that the bound is
 * in: of the first column, and while that is one value, of those behind it.
 */
static void
find_filter(LbtAhead *ahead, const LbtScan *so, const LbtBound *at)
{
	const int	ncolumns = so->filter[0].column;

	for (int far = 0; far < 2; far++)
	{
		bool		end = far == ahead->forward;
		LbtBound	bound = {.ncolumns = ncolumns,.past = end};

		memcpy(bound.value, at->value, ncolumns * sizeof(LbtKeyValue));
		lbt_bound_at_filters(so, 0, end, ahead->forward, &bound);
		ahead->filter[far] = bound_code(so->index, &bound) -
			lbt_keycode(so->index->model.code, bound.value, ncolumns, false);
	}
}

void
lbt_ahead_group(IndexScanDesc scan, LbtScan *so, const LbtBound *at, bool forward)
{
	LbtAhead   *ahead = so->ahead;
	const LbtProbe *probe = &so->walk.probe;

	/* What comes next is neither the next probe nor the sibling. */
	if (ahead != NULL && (ahead->prepared || !ahead->groups))
		lbt_ahead_stop(so);
	if (!lbt_same_model(so->index, so->walk.searched) ||
		so->walk.slot >= so->index->model.nleaves)
		return;
	if (!have_stream(ahead, forward))
	{
		if (so->reads_seen == so->group_reads || !lbt_enable_prefetch || !lbt_enable_leaf_cache)
			return;
		ahead = begin_stream(scan, so, so->walk.slot, forward, next_group_leaf);
		if (ahead->stream == NULL)
			return;
		ahead->end = last_slot(ahead, &so->index->model,
							   bound_code(so->index, forward ? &probe->end : &probe->start));
	}
	if (at != NULL)				/* each time: no code may tell of this group */
		find_filter(ahead, so, at);
	ahead->siblings = at == NULL && so->walk.steps > 0;
	(void) reach_slot(ahead, so->walk.slot);
}
