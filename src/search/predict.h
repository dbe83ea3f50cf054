/*
 * predict.h - from a bound to a predicted leaf, and landing on it.  Nothing here is believed: verify.h has the proofs.
 *
 *     bound --key code--> code --spline, leaf cache--> slot --leaf cache--> block, buffer hint --land()--> locked page
 */
#ifndef LBT_PREDICT_H
#define LBT_PREDICT_H

#include "key/bound.h"
#include "registry/settings.h"
#include "registry/view.h"
#include "server/stream.h"

/* A buffer used less often (of BM_MAX_USAGE_COUNT) is not pinned through its hint. */
#define HINT_MIN_USAGE 3

/* A prediction. */
typedef struct LbtTarget
{
	uint64		generation;		/* of the registry, when it was made; 0: there
								 * is none */
	uint32		slot;
	BlockNumber block;
	Buffer		recent;			/* a buffer of this server's, or invalid */
	Buffer		pinned;			/* the block's, pinned by us; or invalid */
	double		fraction;		/* where in the leaf, from 0 to 1 */
} LbtTarget;

static inline uint64
bound_code(const LbtIndex *index, const LbtBound *bound)
{
	return lbt_model_code(&index->model, bound->value, bound->ncolumns,
						  bound->past ? LBT_MISSING_HIGH : LBT_MISSING_LOW);
}

/* The slot of the leaf that should hold the code, as lbt_model_slot(). */
static inline uint32
predict_slot(const LbtModel *model, uint64 code, bool past_equal)
{
	return lbt_enable_leaf_cache ? lbt_model_slot(model, code, past_equal) :
		lbt_spline_predict(model->knots, model->nknots, model->nleaves, code);
}

/*
 * The same when a slot is known that may well be near: in ordered probes the last one's leaf or the next one
 * is likely to be right, and the spline is not asked.  Any value of near is safe.
 */
static inline uint32
predict_slot_near(const LbtModel *model, uint64 code, bool past_equal, uint32 near)
{
	const LbtLeaf *leaf = &model->leaves[near];

	if (!lbt_enable_leaf_cache || model->nleaves < 3 || near >= model->nleaves - 2 ||
		code <= leaf[0].min_code || code >= leaf[2].min_code)
		return predict_slot(model, code, past_equal);
	return near + (past_equal ? code >= leaf[1].min_code : code > leaf[1].min_code);
}

/* Leaf cache entries may be garbage (registry.h): nothing read here is more than a hint. */
static inline void
target_slot(const LbtIndex *index, uint32 slot, uint64 code, LbtTarget *t)
{
	const LbtLeaf *leaf = &index->model.leaves[slot];

	t->generation = index->generation;
	t->pinned = InvalidBuffer;
	t->slot = slot;
	t->block = leaf->block;
	t->recent = lbt_enable_buffer_hint ? (Buffer) leaf->recent_buffer : InvalidBuffer;
	if (t->recent < 1 || t->recent > NBuffers)
		t->recent = InvalidBuffer;
	t->fraction = lbt_enable_leaf_cache ?
		lbt_leaf_fraction(index->model.leaves, index->model.nleaves, slot, code) : 0.5;
}

/*
 * Compilers take a function that does nothing but prefetch for one that does nothing, and drop the call.  (GCC
 * 12 does.)
 */
#define LBT_KEEP_PREFETCHES() __asm__ __volatile__("")

/*
 * Ask for the cache lines that the visit will need, all at once: the buffer's header, the page's
 * header, line pointers and special space, and the place where the key should be.  Items of a page
 * fresh from a build or split lie in key order, from the special space downwards.
 */
static inline void
prefetch_target(const LbtIndex *index, const LbtTarget *t)
{
	char	   *page;
	char	   *item;

	if (t->recent == InvalidBuffer)
		return;
	page = (char *) BufferGetBlock(t->recent);
	__builtin_prefetch(GetBufferDescriptor(t->recent - 1), 1);
	__builtin_prefetch(page);
	item = page + BLCKSZ - sizeof(BTPageOpaqueData);
	__builtin_prefetch(item);
	item -= (int) (t->fraction * index->leaf_bytes);
	__builtin_prefetch(item);
	__builtin_prefetch(item - PG_CACHE_LINE_SIZE / 2);
	__builtin_prefetch(page + SizeOfPageHeaderData +
					   (int) (t->fraction * index->leaf_items) * sizeof(ItemIdData));
	LBT_KEEP_PREFETCHES();
}

/*
 * May the buffer be pinned through the hint?  That leaves its usage count alone, so one that the clock
 * sweep has worn down goes through the buffer table, which counts the use: leaves that are looked up
 * often must not look idle to the buffer manager.
 */
static inline bool
hint_usable(const LbtTarget *t)
{
	uint32		state;

	if (t->recent == InvalidBuffer)
		return false;
	state = pg_atomic_read_u32(&GetBufferDescriptor(t->recent - 1)->state);
	return BUF_STATE_GET_USAGECOUNT(state) >= HINT_MIN_USAGE;
}

/* Does the buffer of the hint hold the block just now?  Looks without a pin. */
static inline bool
hint_valid(Relation rel, const LbtTarget *t)
{
	return t->recent != InvalidBuffer &&
		lbt_buffer_holds(GetBufferDescriptor(t->recent - 1), rel, t->block);
}

/*
 * Pin and lock the target, or lock it where it is pinned; InvalidBuffer when the block cannot be in the
 * file.
 */
static inline Buffer
land(Relation rel, LbtIndex *index, const LbtTarget *t, int lockmode)
{
	Buffer		buf;

	if (BufferIsValid(t->pinned))
	{
		buf = t->pinned;
		if (lbt_enable_buffer_hint && buf != t->recent)
			lbt_index_set_hint(index, t->slot, buf);
	}
	else if (hint_usable(t) && lbt_read_recent_buffer(rel, t->block, t->recent))
	{
		pgstat_count_buffer_read(rel);
		pgstat_count_buffer_hit(rel);
		buf = t->recent;
	}
	else
	{
		if (t->block == BTREE_METAPAGE)
			return InvalidBuffer;
		if (t->block >= index->nblocks)
			index->nblocks = RelationGetNumberOfBlocks(rel);
		if (t->block >= index->nblocks)
			return InvalidBuffer;
		buf = ReadBuffer(rel, t->block);
		if (lbt_enable_buffer_hint && buf != t->recent)
			lbt_index_set_hint(index, t->slot, buf);
	}
	_bt_lockbuf(rel, buf, lockmode);
	return buf;
}

/* Bounds that are predicted together. */
#define LBT_BATCH 16

typedef struct LbtBatch
{
	int			n;
	uint64		code[LBT_BATCH];
	uint32		guess[LBT_BATCH];
	bool		past[LBT_BATCH];
	LbtTarget	target[LBT_BATCH];
} LbtBatch;

/*
 * Predictions ahead of their use, all at once, so that their cache misses overlap: add the bounds to an empty
 * batch, then finish it.  Between the lbt_index_update() before the first and the finish there must be no dsa
 * call, and the index must have a model.
 */
extern void lbt_batch_add(const LbtIndex *index, LbtBatch *batch, const LbtBound *bound);
extern void lbt_batch_finish(const LbtIndex *index, LbtBatch *batch);

/* The leaf in a slot of the leaf cache, as for lbt_batch_add().  The slot is one that a prediction named. */
extern void lbt_slot_target(const LbtIndex *index, uint32 slot, LbtTarget *target);

/* Is the target in shared buffers, by its hint, or if that does not say so and we may ask, by a lookup? */
extern bool lbt_target_cached(Relation rel, LbtIndex *index, const LbtTarget *target, bool ask);

/* The slot that the model predicts for a bound; near: one that may be near.  As for lbt_batch_add(). */
extern uint32 lbt_predict_slot(const LbtIndex *index, const LbtBound *bound, uint32 near);

#endif							/* LBT_PREDICT_H */
