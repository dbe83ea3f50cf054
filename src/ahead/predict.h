/*
 * predict.h - from a bound to a predicted leaf, for locate.c to prove or not.
 *
 *     bound --key code--> code --spline, leaf cache--> slot
 *           slot --leaf cache--> block, buffer hint
 *
 * A model may be garbage while it is read (registry/shmem.h): slots are within
 * the view's bounds, all else is a hint.
 */
#ifndef LBT_PREDICT_H
#define LBT_PREDICT_H

#include "key/bound.h"
#include "registry/view.h"
#include "server/bufferhint.h"

/* Bounds that are predicted together. */
#define LBT_BATCH 64

/*
 * Bounds at which scans will begin, in one direction, or keys of new entries.
 * All have keys of the same columns.  The first entry that a scan reads is in
 * its interval only if it equals the key in the leading columns that the scan
 * compares for equality.
 */
typedef struct LbtBatch
{
	int			n;
	int			ncolumns;		/* of each key */
	int			nequal;			/* ... that are compared for equality */
	bool		past;			/* bounds after what equals their keys */
	bool		backward;		/* scans read what is before their bounds ... */
	bool		ends;			/* ... up to a value of the next column after
								 * nequal, which follows the key's own ... */
	bool		end_past;		/* ... and what equals it is before that end */
	LbtTiedKey	key[LBT_BATCH]; /* its values are in value[] */
	LbtTarget	target[LBT_BATCH];
	int			nblocks;		/* of the table, that lbt_batch_rows() saw; as
								 * bounds go, the same one may come again */
	OffsetNumber entry[LBT_BATCH];	/* that scans read first, as seen on their
									 * leaves; none: not seen, or not theirs */
	LbtKeyValue value[LBT_BATCH * (LBT_CODE_COLUMNS + 1)];
} LbtBatch;

/* The values of a key. */
static inline LbtKeyValue *
lbt_batch_values(LbtBatch *batch, int which)
{
	return &batch->value[which * (batch->ncolumns + batch->ends)];
}

static inline uint64
bound_code(const LbtIndex *index, const LbtBound *bound)
{
	return lbt_keycode(index->model.code, bound->value, bound->ncolumns, bound->past);
}

/*
 * The slot of the leaf that should hold the code.  In ordered probes, near
 * (the slot of the one before; any value is safe) or the next one is likely to
 * be right: then the spline is not asked.
 */
static pg_attribute_always_inline uint32
predict_slot(const LbtModel *model, uint64 code, bool past_equal, uint32 near)
{
	const LbtLeaf *leaf = &model->leaves[near];

	if (!lbt_enable_leaf_cache)
		return lbt_spline_predict(model->knots, model->nknots, model->nleaves, code);
	if ((uint64) near + 2 < model->nleaves && code > leaf[0].min_code && code < leaf[2].min_code)
		return near + (past_equal ? code >= leaf[1].min_code : code > leaf[1].min_code);
	return lbt_model_slot(model, code, past_equal);
}

/*
 * The left sibling, for LbtTarget.left, of a leaf for keys of this code, if
 * the code is beyond its left end.  Codes that are unsure, or a saved model's,
 * may contradict the order of keys.
 */
static inline BlockNumber
left_of(const LbtIndex *index, uint64 code, uint64 left_end, BlockNumber left)
{
	return code > left_end && !index->keyspec.unsure && !index->model.saved ? left :
		InvalidBlockNumber;
}

/* Make the target of a slot whose entry may be garbage: it is only a hint. */
static inline void
target_slot(const LbtIndex *index, uint32 slot, uint64 code, LbtTarget *t)
{
	const LbtLeaf *leaf = &index->model.leaves[slot];

	t->generation = index->generation;
	t->slot = slot;
	t->block = leaf->block;
	t->recent = lbt_enable_buffer_hint ? (Buffer) leaf->recent_buffer : InvalidBuffer;
	if (t->recent < 1 || t->recent > NBuffers)
		t->recent = InvalidBuffer;
	t->left = slot > 0 ? left_of(index, code, leaf->min_code, leaf[-1].block) : InvalidBlockNumber;
	t->fraction = lbt_enable_leaf_cache ?
		lbt_leaf_fraction(index->model.leaves, index->model.nleaves, slot, code) : 0.5;
}

/*
 * The slot of the leaf where a scan begins, if it goes forward (else slot):
 * where there are separators, code alone does not tell.
 */
static inline uint32
first_slot(const LbtModel *model, uint32 slot, uint64 code, int ncolumns, bool past, bool forward)
{
	if (past || !forward || !lbt_enable_leaf_cache || model->separators.bytes > 0)
		return slot;
	return lbt_leaf_of_first(model->leaves, model->nleaves, slot, code, ncolumns);
}

/* Refine *t, a target for the slot of lbt_leaf_search(), by separators. */
extern void lbt_target_separated(const LbtIndex *index, const LbtBound *bound, uint64 code,
								 LbtTarget *t);

/*
 * Make the target for a bound of this code; near as for predict_slot().
 * forward: a scan will begin there, and go forward.
 */
static inline void
predict_target(const LbtIndex *index, const LbtBound *bound, uint64 code, bool forward,
			   uint32 near, LbtTarget *t)
{
	const LbtModel *model = &index->model;
	uint32		slot = predict_slot(model, code, bound->past, near);

	slot = first_slot(model, slot, code, bound->ncolumns, bound->past, forward);
	target_slot(index, slot, code, t);
	if (unlikely(index->model.separators.bytes > 0) && lbt_enable_leaf_cache)
		lbt_target_separated(index, bound, code, t);
}

/*
 * Prefetch the lines that the visit will need, all at once.  Items of a page
 * fresh from a build or split lie in key order, from the special space
 * downwards.  An insert also needs the ends of line pointers and items.
 */
static inline void
prefetch_target(const LbtIndex *index, const LbtTarget *t, bool inserting)
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
	item -= (int) (t->fraction * index->seen.leaf_bytes);
	__builtin_prefetch(item);
	__builtin_prefetch(item - PG_CACHE_LINE_SIZE / 2);
	__builtin_prefetch(page + SizeOfPageHeaderData +
					   (int) (t->fraction * index->seen.leaf_items) * sizeof(ItemIdData));
	if (inserting)
	{
		__builtin_prefetch(page + SizeOfPageHeaderData +
						   index->seen.leaf_items * sizeof(ItemIdData), 1);
		__builtin_prefetch(page + BLCKSZ - MAXALIGN(sizeof(BTPageOpaqueData)) -
						   index->seen.leaf_bytes - 1, 1);
	}
	/* GCC 12 drops calls of functions that do nothing but prefetch. */
	__asm__ __volatile__("");
}

/*
 * Stages of a batch.  Each makes one step for all bounds, and prefetches for
 * the next one, so that misses overlap.
 *
 *     predict  key code, spline                -> leaf cache
 *              the leaf's slot, block, buffer  -> page header, key's place
 *     near     an item close by; from its code -> the item there; with
 *              a better place                     high_keys, the high key
 *              (varying length: search steps)  -> its items
 *     rows     item, row's block, its buffer   -> the row
 *
 * Fill in the keys: n, what is above them, and value.  The other
 * stages may follow lbt_batch_predict(), for an index whose entries tell where
 * a first column is (LbtKeySpec.nplaces > 0).  What values point to must stay
 * until then; their encodings need not.
 *
 * Between the lbt_index_update() before these calls and their end there must
 * be no dsa call, and the index must have a model.  Later stages may run after
 * another lbt_index_update(), if it is still that model: that of the targets'
 * generation.  They look at leaves without a lock or pin.
 */
extern void lbt_batch_predict(const LbtIndex *index, LbtBatch *batch);
extern void lbt_batch_near(Relation rel, const LbtIndex *index, LbtBatch *batch, bool high_keys);

/*
 * With missing, sets for each bound the row's block, if that is not where its
 * hint says, else InvalidBlockNumber.
 */
extern void lbt_batch_rows(Relation rel, const LbtIndex *index, Relation table, LbtBatch *batch,
						   BlockNumber *missing);

/*
 * After that, of a bound that scans read forward from: blocks of all rows on
 * its leaf whose entries equal the key, up to LBT_BATCH.  Returns how many.
 */
extern int	lbt_batch_key_rows(Relation rel, const LbtIndex *index, LbtBatch *batch, int which,
							   BlockNumber *block);

/*
 * Empty the mailbox.  Sets *target to the prediction that was in it if that is
 * for a bound of this code, by the present model; else returns false, and
 * *target may be anything.
 */
static inline bool
lbt_take_prediction(LbtIndex *index, uint64 code, LbtTarget *target)
{
	uint64		generation = index->mailbox.target.generation;

	index->mailbox.target.generation = 0;
	if (likely(generation == 0) || index->mailbox.code != code)
		return false;
	index->mailbox.taken = true;
	*target = index->mailbox.target;
	target->generation = generation;
	return lbt_of_model(index, generation);
}

/*
 * Is the leaf in this slot, which a prediction named, in shared buffers: by
 * its hint, else by a lookup in the table?  As for lbt_batch_predict().
 */
extern bool lbt_slot_cached(Relation rel, LbtIndex *index, uint32 slot);

#endif							/* LBT_PREDICT_H */
