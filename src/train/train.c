/*
 * train.c - from the leaves to a model; see train.h.
 */
#include "train/train.h"

#include "access/xlogrecovery.h"
#include "key/bound.h"
#include "key/sortkey.h"
#include "portability/instr_time.h"
#include "replication/logicalworker.h"
#include "server/guard.h"
#include "train/demand.h"
#include "train/leafwalk.h"

#define KNOTS_MIN 1024

/* A spline's largest error, in leaves.  With 256, joins took the same time. */
#define MAX_ERROR 4

/* The least memory of a training: enough for first use, with separators. */
#define BUDGET_MIN_KB 1024

/* Growth of the file that is worth a new try where there is no model. */
#define GROWTH_SHIFT 2			/* a quarter */

/* Files of this size (1 ms) are trained by the worker on first use. */
#define FIRST_USE_BLOCKS 8192

/*
 * Keys cost too much if the provider has to make the sort key of more than one
 * in PROVIDED_SHARE, and the index has fewer leaves than LEAVES_A_BYTE for
 * each byte of a key that the provider gets, or these exceed LONG_BYTES.
 */
#define PROVIDED_SHARE 4
#define LEAVES_A_BYTE 20
#define LONG_BYTES 256

/* A backend that found no model asks again so much later. */
#define ASK_AGAIN_MS 1000

/* How often the making of codes, at 0.4 us each, looks for a cancel. */
#define INTERRUPT_LEAVES 65536

/* Separators' byte strings are copied into pieces of this size. */
#define STRINGS_BYTES (64 * 1024)

/*
 * The separators and downlinks of level 1, in key order.
 *
 * Memory.  All of it is private and within maintenance_work_mem.  The leaves
 * have to fit.  The separators of all leaves, from which codes are learned,
 * are kept while they fit, too; otherwise the codes come from a second walk,
 * and the model has no separators.
 */
typedef struct Harvest
{
	Relation	rel;
	const LbtKeySpec *spec;
	LbtTrained *trained;		/* the outcome */
	LbtModelHeader *header;		/* of trained */
	Size		capacity;
	LbtLeaf    *leaves;			/* header->nleaves */
	bool		code_known;		/* codes can be made as leaves come */
	MemoryContext separators;	/* NULL: they are not kept */
	LbtKeyValue *values;		/* spec->ncolumns for each leaf */
	uint8	   *nvalues;
	uint8	   *strings;		/* room for more byte strings of separators */
	Size		strings_left;
	MemoryContext passing;		/* for compressed ones */
	LbtBound	separator;		/* left of the next leaf */
	int			cut;			/* LbtLeaf.cut of that leaf */
	LbtKeyLearner learner;
	uint8		scratch[LBT_CODE_COLUMNS * LBT_SCRATCH_BYTES];	/* of the separator */
} Harvest;

/* Bytes for a training. */
static Size
budget(void)
{
	return (Size) Max(maintenance_work_mem, BUDGET_MIN_KB) * 1024;
}

/* What the current context leaves of it. */
static Size
budget_left(void)
{
	return budget() - Min(budget(), MemoryContextMemAllocated(CurrentMemoryContext, true));
}

Size
lbt_max_leaves(void)
{
	Size		bytes = Min((Size) lbt_max_model_memory * 1024, budget());

	return Min(bytes / sizeof(LbtLeaf), PG_UINT32_MAX / 2);
}

/*
 * Make room for leaves, about as many as the file has blocks, and for their
 * separators, if there is memory for both.  Leaves of a file that grows by
 * more during the walk come with the next training.
 */
static void
make_room(Harvest *h)
{
	Size		of_separator = h->spec->ncolumns * sizeof(LbtKeyValue);
	Size		nblocks = RelationGetNumberOfBlocks(h->rel);

	h->capacity = Min(lbt_max_leaves(), nblocks + nblocks / 8 + 1024);
	h->leaves = MemoryContextAllocHuge(CurrentMemoryContext, h->capacity * sizeof(LbtLeaf));

	/* A single number is its code. */
	h->code_known = h->spec->ncolumns == 1 && !h->spec->column[0].bytes;
	if (h->code_known || h->capacity * (of_separator + 1) > budget_left())
		return;
	h->separators = AllocSetContextCreate(CurrentMemoryContext, "learnedbtree separators",
										  ALLOCSET_DEFAULT_SIZES);
	h->values = MemoryContextAllocHuge(h->separators, h->capacity * of_separator);
	h->nvalues = MemoryContextAllocHuge(h->separators, h->capacity);
}

/* Add a leaf whose left separator is h->separator. */
static void
add_leaf(Harvest *h, BlockNumber block)
{
	uint32		slot = h->header->nleaves++;
	LbtLeaf    *leaf = &h->leaves[slot];
	const LbtKeyValue *values = h->separator.value;
	int			nvalues = h->separator.ncolumns;

	*leaf = (LbtLeaf) {.block = block,.cut = h->cut};
	if (h->separators)
	{
		h->nvalues[slot] = nvalues;
		memcpy(&h->values[(Size) slot * h->spec->ncolumns], values, sizeof(LbtKeyValue) * nvalues);
	}
	else if (h->code_known && nvalues > 0)
		leaf->min_code = lbt_keycode(&h->header->code, values, nvalues, false);
	lbt_keycode_observe(&h->learner, values, nvalues);
}

/* Copy as much of a separator's byte string as the column's code can use. */
static const uint8 *
copy_bytes(Harvest *h, int column, const uint8 *bytes, uint32 length)
{
	uint8	   *copy = h->scratch + column * LBT_SCRATCH_BYTES;

	if (h->separators)
	{
		if (h->strings_left < length || h->strings == NULL)
		{
			h->strings = MemoryContextAlloc(h->separators, STRINGS_BYTES);
			h->strings_left = STRINGS_BYTES;
		}
		copy = h->strings;
		h->strings += length;
		h->strings_left -= length;
	}
	memmove(copy, bytes, length);	/* encoded, it is in the scratch memory */
	return copy;
}

/* LbtLeaf.cut of the leaf right of a separator.  Only an LSN can prove it. */
static int
columns_if_cut(const Harvest *h, const LbtLeafWalk *walk)
{
	IndexTuple	pivot = walk->separator;
	int			n;

	if (!walk->own || !walk->heap_tids || h->header->lsn == 0 || !BTreeTupleIsPivot(pivot) ||
		BTreeTupleGetHeapTID(pivot) != NULL)
		return 0;
	n = BTreeTupleGetNAtts(pivot, h->rel);
	return n <= Min(h->spec->ncolumns, LBT_MAX_CUT) ? n : 0;
}

static void
set_separator(Harvest *h, IndexTuple pivot)
{
	MemoryContext old = MemoryContextSwitchTo(h->passing);

	lbt_bound_of_tuple(h->spec, RelationGetDescr(h->rel), pivot, h->scratch, &h->separator);
	MemoryContextSwitchTo(old);
	for (int i = 0; i < h->separator.ncolumns; i++)
	{
		LbtKeyValue *value = &h->separator.value[i];

		if (!h->spec->column[i].bytes || value->isnull)
			continue;
		value->length = Min(value->length, LBT_CODE_BYTES);
		value->bytes = copy_bytes(h, i, value->bytes, value->length);
	}
	MemoryContextReset(h->passing);
}

/* Keep separators where codes do not tell keys apart, if models have room. */
static void
keep_separators(Harvest *h)
{
	uint32		nleaves = h->header->nleaves;
	Size		room = (Size) lbt_max_model_memory * 1024 - nleaves * sizeof(LbtLeaf);
	uint32		max_bytes = Min(lbt_separators_max_bytes(nleaves), room / 2);
	LbtSeparatorKeys keys = {.values = h->values,.nvalues = h->nvalues,
	.ncolumns = h->spec->ncolumns,.order = h->spec->order};
	void	   *separators;

	if (!lbt_separators_needed(&h->header->code, keys.ncolumns, h->leaves, nleaves) ||
		max_bytes > budget_left())
		return;
	separators = MemoryContextAllocHuge(CurrentMemoryContext, max_bytes);
	h->header->separator_bytes = lbt_separators_build(&keys, nleaves, separators, max_bytes);
	h->trained->separators = separators;
}

/* Walk along level 1, and add each leaf. */
static void
walk_leaves(Harvest *h)
{
	static uint32 event = 0;
	LbtLeafWalk walk;

	h->header->nleaves = 0;
	h->separator.ncolumns = 0;
	h->cut = 0;
	memset(&lbt_sort_keys_provided, 0, sizeof(lbt_sort_keys_provided));
	lbt_leafwalk_begin(&walk, h->rel);
	h->header->height = walk.height;
	h->trained->state = walk.empty ? LBT_EMPTY : LBT_READY;
	while (h->trained->state == LBT_READY && lbt_leafwalk_next(&walk))
	{
		/* Again: reading a page has ended it with its own wait event. */
		pgstat_report_wait_start(lbt_wait_event(&event, "LearnedBtreeTrain"));
		if (h->header->nleaves >= h->capacity)
		{
			if (h->capacity == lbt_max_leaves())
				h->trained->state = LBT_TOO_LARGE;
			break;
		}
		if (h->separators && MemoryContextMemAllocated(h->separators, false) +
			h->capacity * sizeof(LbtLeaf) > budget())
		{
			MemoryContextDelete(h->separators);
			h->separators = NULL;
		}
		if (walk.separator)
		{
			set_separator(h, walk.separator);
			h->cut = columns_if_cut(h, &walk);
		}
		add_leaf(h, walk.block);
	}
	if (walk.damaged)
		h->trained->state = LBT_DAMAGED;
	h->header->without_lsn |= walk.without_lsn;
}

/*
 * Will keys cost more than descents do, going by those of the last walk?  A
 * long text's sort key takes the provider long; a descent takes long among
 * many leaves.  src/README has figures.
 */
static bool
keys_cost_too_much(uint32 nleaves)
{
	double		bytes = (double) lbt_sort_keys_provided.bytes / nleaves;

	return lbt_debug_sort_keys == LBT_SORT_KEYS_TRUE &&
		lbt_sort_keys_provided.texts * PROVIDED_SHARE > nleaves &&
		(nleaves < bytes * LEAVES_A_BYTE || bytes > LONG_BYTES);
}

static void
harvest(Harvest *h)
{
	LbtKeyCode *code = &h->header->code;
	LbtLeaf    *leaves;
	uint32		nleaves;
	bool		saves = !lbt_is_btree(h->rel) && !RecoveryInProgress();

	h->passing = AllocSetContextCreate(CurrentMemoryContext, "learnedbtree separator",
									   ALLOCSET_SMALL_SIZES);
	make_room(h);
	lbt_keycode_begin(&h->learner, h->spec->ncolumns, h->spec->order);
	lbt_keycode_finish(&h->learner, code);	/* all there is to learn of one */
	walk_leaves(h);
	lbt_keycode_finish(&h->learner, code);
	if (h->trained->state == LBT_READY && !h->separators && !h->code_known)
	{
		/* New leaves get codes within what the first walk has seen. */
		h->code_known = true;
		walk_leaves(h);
	}
	leaves = h->leaves;
	nleaves = h->header->nleaves;
	if (h->trained->state != LBT_READY || nleaves == 0)
		return;
	if (keys_cost_too_much(nleaves))
	{
		h->trained->state = LBT_DEAR_KEYS;
		if (saves)
			lbt_metapage_write(h->rel, code, NULL, 0);
		return;
	}
	for (uint32 i = 0; h->separators && i < nleaves; i++)
	{
		if (i % INTERRUPT_LEAVES == 0)
			lbt_guard_check_interrupts();
		leaves[i].min_code = lbt_keycode(code, &h->values[(Size) i * h->spec->ncolumns],
										 h->nvalues[i], false);
	}

	/* Encodings may contradict the separators' order: no damage. */
	for (uint32 i = 1; h->spec->unsure && i < nleaves; i++)
		leaves[i].min_code = Max(leaves[i].min_code, leaves[i - 1].min_code);
	if (saves)
		lbt_metapage_write(h->rel, code, leaves, nleaves);
	if (h->separators)
		keep_separators(h);		/* not before: a saved model has none */
	leaves[0].min_code = 0;
}

/*
 * Fit a spline to leaves in key order, within MAX_ERROR or, where its knots do
 * not fit into the memory left, a larger one.  False when the codes are not in
 * order.
 */
static bool
fit(const LbtLeaf *leaves, uint32 nleaves, LbtTrained *trained)
{
	int			max_error = MAX_ERROR;
	uint32		max_knots = Min(nleaves, Max(budget_left() / sizeof(LbtKnot), KNOTS_MIN));
	LbtKnot    *knots = MemoryContextAllocHuge(CurrentMemoryContext,
											   (Size) max_knots * sizeof(LbtKnot));
	uint32		nknots;

	while ((nknots = lbt_spline_fit(leaves, nleaves, max_error, knots, max_knots)) > max_knots)
	{
		max_error *= 2;
		lbt_guard_check_interrupts();
	}
	if (nknots == 0)
		return false;
	trained->state = LBT_READY;
	trained->knots = knots;
	trained->leaves = leaves;
	trained->header.nleaves = nleaves;
	trained->header.nknots = nknots;
	return true;
}

/* Do not ask again for a while: without a model, cost no more than btree. */
static void
ask_later(LbtIndex *index)
{
	index->again_at = Max(index->again_at,
						  TimestampTzPlusMilliseconds(GetCurrentStatementStartTimestamp(),
													  ASK_AGAIN_MS));
}

/*
 * Walk along level 1, and fit.  False when the codes are not in order: the
 * tree may be damaged; or a page of level 1 and its leaves were deleted after
 * the walk had copied it, which then came to leaves made since from the key
 * space that was theirs.
 */
static bool
walk_and_fit(Relation rel, const LbtIndex *index, LbtTrained *trained)
{
	LbtModelHeader *header = &trained->header;
	Harvest		h = {.rel = rel,.spec = &index->keyspec,.trained = trained,.header = header};

	memset(trained, 0, sizeof(*trained));
	header->without_lsn = !RelationNeedsWAL(rel);
	if (RelationNeedsWAL(rel))
		header->lsn = RecoveryInProgress() ? GetXLogReplayRecPtr(NULL) : GetXLogInsertRecPtr();
	harvest(&h);
	return trained->state != LBT_READY || fit(h.leaves, header->nleaves, trained);
}

/* Make a model from the tree, in the current context, which may be reset. */
static void
train(Relation rel, LbtIndex *index, LbtTrained *trained)
{
	LbtModelHeader *header = &trained->header;
	instr_time	start,
				end;

	INSTR_TIME_SET_CURRENT(start);
	if (!walk_and_fit(rel, index, trained))
	{
		MemoryContextReset(CurrentMemoryContext);
		if (!walk_and_fit(rel, index, trained))
			trained->state = LBT_DAMAGED;
	}
	pgstat_report_wait_end();
	INSTR_TIME_SET_CURRENT(end);
	INSTR_TIME_SUBTRACT(end, start);
	header->training_ms = INSTR_TIME_GET_MILLISEC(end);

	/* A model without separators is better than none. */
	if (trained->state == LBT_READY && lbt_model_bytes(header->nleaves, header->nknots,
													   header->separator_bytes) >
		(Size) lbt_max_model_memory * 1024)
		header->separator_bytes = 0;
	header->trained_at = GetCurrentTimestamp();
	trained->blocks = trained->state == LBT_DAMAGED ? NO_GROWTH_BLOCKS :
		RelationGetNumberOfBlocks(rel);
	lbt_index_update(index);
	lbt_count(index, LBT_EV_TRAINING);
}

/*
 * How has a training ended by this error?  Nothing is said about the index by
 * a query that is cancelled (by its user, a time limit, or recovery), nor by
 * an error of a parallel worker.
 */
static LbtState
ending_of(int code)
{
	int			category = ERRCODE_TO_CATEGORY(code);

	if (lbt_guard_interrupted || category == ERRCODE_TO_CATEGORY(ERRCODE_OPERATOR_INTERVENTION) ||
		category == ERRCODE_TO_CATEGORY(ERRCODE_TRANSACTION_ROLLBACK))
		return LBT_UNTRAINED;
	if (code == ERRCODE_INDEX_CORRUPTED || code == ERRCODE_DATA_CORRUPTED)
		return LBT_DAMAGED;
	return LBT_FAILED;
}

/*
 * For an index that had no model when it was used first: take the saved one
 * until the worker has trained, or leave a large index to the worker, even if
 * there is no slot for one yet: a statement must not wait that long.  False if
 * it is to be trained here, as is a file that only this transaction sees.
 */
static bool
take_or_leave(Relation rel, LbtIndex *index, LbtTrained *trained)
{
	bool		large = RelationGetNumberOfBlocks(rel) >= FIRST_USE_BLOCKS;

	memset(trained, 0, sizeof(*trained));
	if (index->state == LBT_UNTRAINED && !lbt_is_btree(rel))
		(void) lbt_metapage_read(rel, index, lbt_max_leaves(), trained);
	if (trained->leaves != NULL && fit(trained->leaves, trained->header.nleaves, trained) &&
		(lbt_demand_raise(&index->file) || large))
		return true;
	trained->state = LBT_UNTRAINED;
	if (!large || !lbt_autotrain || lbt_relation_is_new_file(rel))
		return false;
	(void) lbt_demand_raise(&index->file);
	return true;
}

/* Nothing has come of a training that has begun: leave it to others. */
static void
end_without(const LbtIndex *index)
{
	LBT_GUARDED(lbt_training_failed(&index->file, LBT_UNTRAINED, true), (void) 0);
}

/*
 * From lbt_training_begin() to its end, in a memory context of its own.
 * Returns the state registered.
 */
static LbtState
train_begun(Relation rel, LbtIndex *index, bool first)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "learnedbtree training",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	LbtTrained	trained;
	bool		registered = true;

	PG_TRY();
	{
		if (!first || !take_or_leave(rel, index, &trained))
			train(rel, index, &trained);

		/* Another session may have more memory for a training. */
		if (first && trained.state == LBT_TOO_LARGE &&
			budget() < (Size) lbt_max_model_memory * 1024)
			trained.state = LBT_NO_MEMORY;
		if (trained.state == LBT_UNTRAINED)
			end_without(index);
		else
			registered = lbt_training_end(&index->file, &trained);
	}
	PG_CATCH();
	{
		LbtState	ending = ending_of(geterrcode());

		/* If a statement's time is too short for it, so is the next one's. */
		if (first && geterrcode() == ERRCODE_QUERY_CANCELED)
			ending = LBT_FAILED;
		lbt_training_failed(&index->file, ending, false);

		/* The context goes with the caller's: reads may still refer to it. */
		PG_RE_THROW();
	}
	PG_END_TRY();
	if (trained.state == LBT_UNTRAINED)
		ask_later(index);
	else
		lbt_index_refresh(index);
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(context);
	return trained.state == LBT_TOO_LARGE ? LBT_TOO_LARGE :
		registered ? index->state : LBT_NO_MEMORY;
}

/*
 * Have comparisons in this process opened the index's collations?  A guard
 * cannot, and a statement must not fail on one that it does not compare by.
 */
static bool
collations_are_open(const LbtKeySpec *spec)
{
	for (int i = 0; i < spec->ncolumns; i++)
		if (spec->column[i].kind == LBT_KEY_TEXT &&
			!lbt_collation_is_open(spec->column[i].collation))
			return false;
	return true;
}

/*
 * The same for a lookup or insert: the statement can be cancelled meanwhile,
 * but no error of the training's own fails it.  The worker opens collations.
 */
static void
train_quietly(Relation rel, LbtIndex *index)
{
	if (collations_are_open(&index->keyspec))
	{
		LBT_GUARDED((void) train_begun(rel, index, true), end_without(index));
		return;
	}
	end_without(index);
	if (!lbt_relation_is_new_file(rel))
		(void) lbt_demand_raise(&index->file);
	ask_later(index);
}

LbtState
lbt_train(Relation rel, LbtIndex *index)
{
	if (!index->shareable)
		return LBT_NO_MEMORY;
	(void) lbt_training_begin(&index->file);
	return train_begun(rel, index, false);
}

const char *
lbt_untrainable(Relation rel, const LbtIndex *index)
{
	if (RelationUsesLocalBuffers(rel))
		return "temporary indexes have no model";
	if (!lbt_shmem_possible())
		return "there is no shared memory for models: learnedbtree is not in shared_preload_libraries";
	if (index->keyspec.ncolumns == 0)
		return "the type of the first key column has no key code";
	return NULL;
}

/* Is training this index on use worth it, and fair to other indexes? */
static bool
should_train(const LbtIndex *index, BlockNumber nblocks)
{
	LbtState	state = index->state;

	if (state == LBT_READY)
		return false;
	if (state == LBT_UNTRAINED || state == LBT_FAILED || state == LBT_NO_MEMORY)
		return true;			/* of the last two, the pause is over */
	if (state == LBT_EVICTED)
		return lbt_registry_has_room(index->model_bytes) ||
			(lbt_may_evict_others(nblocks) && lbt_registry_has_idle());
	return nblocks > index->trained_blocks + (index->trained_blocks >> GROWTH_SHIFT);
}

bool
lbt_model_comes(LbtIndex *index, BlockNumber nblocks)
{
	lbt_index_update(index);
	if (!index->shareable || index->state == LBT_READY || index->state == LBT_UNTRAINED)
		return index->shareable;
	return lbt_may_ask(index) && should_train(index, nblocks);
}

void
lbt_train_on_use(Relation rel, LbtIndex *index)
{
	BlockNumber nblocks;
	bool		wanted;
	bool		mine;

	if (!index->shareable || !lbt_may_ask(index) || lbt_untrainable(rel, index) != NULL)
		return;

	/* No hook tells when a further TRUNCATE makes the file anew in place. */
	if (IsLogicalWorker() && lbt_relation_is_new_file(rel))
		return;

	/* It may be only this process that could not reach it. */
	if (index->state == LBT_NO_MEMORY)
		lbt_index_refresh(index);
	nblocks = RelationGetNumberOfBlocks(rel);
	wanted = should_train(index, nblocks);
	mine = wanted && lbt_training_begin(&index->file);
	if (mine)
	{
		/* Look it up again: another backend may just have finished. */
		lbt_index_refresh(index);
		if (lbt_may_ask(index) && should_train(index, nblocks))
			train_quietly(rel, index);
		else
			end_without(index);
	}
	if (index->state == LBT_EVICTED || index->state == LBT_DEAR_KEYS ||
		index->state == LBT_TOO_LARGE || index->state == LBT_DAMAGED || wanted != mine)
		ask_later(index);
}
