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
#include "registry/settings.h"
#include "registry/view.h"
#include "server/bufferhint.h"
#include "server/stream.h"

/* Bounds that are predicted together. */
#define LBT_BATCH 64

/* Bytes kept of each one's byte strings: most paths and URLs are shorter. */
#define LBT_BATCH_BYTES 192

/*
 * Bounds at which scans will begin, in one direction.  The first entry that a
 * scan reads is in its interval only if it equals the bound's key in the
 * leading columns that the scan compares for equality.
 */
typedef struct LbtBatch
{
	int			n;
	int			nequal;			/* such columns */
	bool		backward;		/* scans read what is before their bounds */
	LbtTiedKey	key[LBT_BATCH]; /* its values are in value[] */
	LbtTarget	target[LBT_BATCH];
	int			nblocks;		/* of the table, that lbt_batch_rows() saw; as
								 * bounds go, the same one may come again */
	OffsetNumber entry[LBT_BATCH];	/* that scans read first, as seen on their
									 * leaves; none: not seen, or not theirs */
	LbtKeyValue value[LBT_BATCH * LBT_CODE_COLUMNS];
	uint8		bytes[LBT_BATCH][LBT_BATCH_BYTES];	/* to look at entries */
} LbtBatch;

static inline void
lbt_batch_begin(LbtBatch *batch, int nequal, bool backward)
{
	batch->n = 0;
	batch->nequal = nequal;
	batch->backward = backward;
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
	t->fraction = lbt_enable_leaf_cache ?
		lbt_leaf_fraction(index->model.leaves, index->model.nleaves, slot, code) : 0.5;
}

/* Refine *t, a target for the slot of lbt_leaf_search(), by separators. */
extern void lbt_target_separated(const LbtIndex *index, const LbtBound *bound, uint64 code,
								 LbtTarget *t);

/* Make the target for a bound of this code; near as for predict_slot(). */
static inline void
predict_target(const LbtIndex *index, const LbtBound *bound, uint64 code, uint32 near, LbtTarget *t)
{
	target_slot(index, predict_slot(&index->model, code, bound->past, near), code, t);
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

/* Blocks that a batch misses, on their way into shared buffers. */
typedef struct LbtReads LbtReads;

/*
 * Predictions ahead of their use.  Each stage makes one step for all bounds,
 * and prefetches for the next one, so that misses overlap.
 *
 *     add     key code, spline                 -> leaf cache
 *     finish  the leaf's slot, block, buffer   -> page header, key's place
 *     read    leaves not in shared buffers     -> their reads
 *     near    an item close by; from its code  -> the item there; with
 *             a better place                      high_keys, the high key
 *             (varying length: search steps)   -> its items
 *     rows    item, row's block, its buffer    -> the row, or its block's read
 *
 * Begin a batch.  Add keys of leading columns (past: the bound after what is
 * equal to them), all of the same ones, then finish it.  Their byte strings
 * must stay until then.  The other stages may follow, for an index whose
 * entries tell where a first column is (LbtKeySpec.nplaces > 0).
 *
 * Between the lbt_index_update() before the first and the last of these calls
 * there must be no dsa call, and the index must have a model.  Later stages
 * may run after another lbt_index_update(), if it is still that model: that of
 * the targets' generation.  Leaves are looked at without a lock or pin: all
 * reads are bounded, and lead only to cache lines and to places to search at.
 */
/* Put the prediction for this bound into the index's mailbox. */
static inline void
lbt_post_prediction(LbtIndex *index, const LbtBatch *batch, int number)
{
	index->mailbox.target = batch->target[number];
	index->mailbox.code = batch->key[number].code;
	index->mailbox.past = batch->key[number].past;
	index->mailbox.number++;
	index->mailbox.taken = false;
}

/*
 * Has the prediction of this number, of lbt_post_prediction(), been taken?
 * Yes, if another one has come since: then nobody knows.
 */
static inline bool
lbt_prediction_taken(const LbtIndex *index, uint64 number)
{
	return index->mailbox.taken || index->mailbox.number != number;
}

extern void lbt_batch_add(const LbtIndex *index, LbtBatch *batch, const LbtKeyValue *values,
						  int nvalues, bool past);
extern void lbt_batch_finish(const LbtIndex *index, LbtBatch *batch);
extern LbtReads *lbt_batch_read(Relation rel, LbtIndex *index, LbtBatch *batch, LbtTally *tally);
extern void lbt_batch_near(Relation rel, LbtIndex *index, LbtBatch *batch, bool high_keys);
extern LbtReads *lbt_batch_rows(Relation rel, LbtIndex *index, Relation table, LbtBatch *batch,
								LbtTally *tally);

/*
 * lbt_batch_read() and lbt_batch_rows() return the blocks that are not where
 * their hints say, in the current memory context; NULL if there are none, or
 * by the tally it is no use to ask for them.  Without a tally, rows are only
 * fetched into the processor's caches.  A stream (server/stream.h) asks:
 *
 *     _want()   adds a block for the bound of this number, if it is not wanted
 *               yet; reads is NULL before the first
 *     _start()  asks for the first ones
 *     _come()   passes by what the bounds up to number last need; true if one
 *               was missing when asked for.  Reads leaves, and notes where
 *               they are (view up to date); after an error, gives up the rest
 *     _judge()  of leaves: the lookup of the bound of this number is over, and
 *               has used its prediction, or not.  (Rows' blocks need no such
 *               call: see LbtTally.)
 *     _end()    sets *reads to NULL
 */
extern LbtReads *lbt_reads_want(LbtReads *reads, Relation rel, BlockNumber block, int of,
								LbtTally *tally);
extern void lbt_reads_start(LbtReads *reads);
extern bool lbt_reads_come(LbtReads *reads, int last);
extern void lbt_reads_judge(LbtReads *reads, int number, bool used);
extern void lbt_reads_end(LbtReads **reads);

/*
 * The blocks are of this relation: for who keeps reads, or NULL, while it is
 * not open.  Call it before the others then.
 */
extern void lbt_reads_of(LbtReads *reads, Relation rel);

/*
 * Is the leaf in this slot, which a prediction named, in shared buffers: by
 * its hint, else by a lookup in the table?  As for lbt_batch_add().
 */
extern bool lbt_slot_cached(Relation rel, LbtIndex *index, uint32 slot);

#endif							/* LBT_PREDICT_H */
