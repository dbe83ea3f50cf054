/*
 * train.c - from the leaves to a model; see train.h.
 *
 * A leaf that splits during the walk along level 1 (leafwalk.h) is missing
 * until the next training: lookups for its right half move right once.
 */
#include "train/train.h"

#include "key/bound.h"
#include "registry/counters.h"
#include "registry/xact.h"
#include "miscadmin.h"
#include "portability/instr_time.h"
#include "server/compat.h"
#include "server/guard.h"
#include "server/shared.h"
#include "server/sortkey.h"
#include "train/demand.h"
#include "train/leafwalk.h"
#include "train/report.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

/* Room for knots that is always taken. */
#define KNOTS_MIN 1024

/* The least memory of a training: enough for first use, and separators. */
#define BUDGET_MIN_KB 1024

/* Growth of the file that is worth a new try where there is no model. */
#define GROWTH_SHIFT 2			/* a quarter */

/* Splits of a backend after which a long statement reports them at once. */
#define SPLITS_BEFORE_REPORT 16

/* An index of so few leaves is trained in passing. */
#define SMALL_LEAVES 4096

/* The worker, not the query, trains files of this size (1 ms) on first use. */
#define FIRST_USE_BLOCKS 8192

/*
 * Keys are dear if the provider has to make the sort key of more than one in
 * PROVIDED_SHARE, and the index has fewer leaves than LEAVES_A_BYTE for each
 * byte of a key that the provider gets, or these are more than LONG_BYTES.
 */
#define PROVIDED_SHARE 4
#define LEAVES_A_BYTE 20
#define LONG_BYTES 256

/* A backend that found no model asks only so much later again. */
#define ASK_AGAIN_MS 1000

/* Copy separators' byte strings into pieces of memory of this size. */
#define STRINGS_BYTES (64 * 1024)

/*
 * The separators and downlinks of level 1, in key order.
 *
 * Memory.  All of it is private and within maintenance_work_mem.  The leaves
 * have to fit.  The separators of all leaves, from which codes are learned,
 * are kept as long as they fit beside; otherwise the codes come from a second
 * walk, and the model has no separators.
 */
typedef struct Harvest
{
	Relation	rel;
	const LbtKeySpec *spec;
	LbtTrained *trained;		/* the outcome */
	LbtModelHeader *header;		/* of trained */
	uint32		capacity;
	uint32		limit;			/* as many fit into the memory allowed */
	LbtLeaf    *leaves;			/* header->nleaves */
	bool		code_known;		/* codes can be made as leaves come */
	MemoryContext separators;	/* NULL: they are not kept */
	LbtKeyValue *values;		/* spec->ncolumns for each leaf */
	uint8	   *nvalues;
	Size		string_bytes;	/* of byte strings of separators */
	char	   *strings;		/* where there is room for more */
	Size		strings_left;
	char	   *scratch;		/* for those of one separator */
	MemoryContext passing;		/* for compressed ones */
	LbtKeyLearner *learner;
	LbtKeyValue separator[LBT_CODE_COLUMNS];	/* left of the next leaf */
	int			nseparator;
} Harvest;

/* Bytes for a training; never less than first use needs, as all share it. */
static Size
budget(void)
{
	return (Size) Max(maintenance_work_mem, BUDGET_MIN_KB) * 1024;
}

static void *
enlarge(MemoryContext context, void *old, Size bytes)
{
	return old ? repalloc_huge(old, bytes) : MemoryContextAllocHuge(context, bytes);
}

/* Make room for one more leaf, and its separator while memory is enough. */
static void
make_room(Harvest *h)
{
	Size		of_leaf = sizeof(LbtLeaf) + h->spec->ncolumns * sizeof(LbtKeyValue) + 1;
	bool		full = h->header->nleaves == h->capacity;

	if (full)
		h->capacity = Min(Max(h->capacity * 2, 1024), h->limit);
	if (h->separators && h->string_bytes + h->capacity * of_leaf > budget())
	{
		MemoryContextDelete(h->separators);
		h->separators = NULL;
	}
	if (!full)
		return;
	h->leaves = enlarge(CurrentMemoryContext, h->leaves, h->capacity * sizeof(LbtLeaf));
	if (h->separators)
	{
		h->values = enlarge(h->separators, h->values,
							h->capacity * h->spec->ncolumns * sizeof(LbtKeyValue));
		h->nvalues = enlarge(h->separators, h->nvalues, h->capacity);
	}
}

/* For pg_stat_activity. */
static void
report_training(void)
{
	static uint32 event = 0;

	pgstat_report_wait_start(lbt_wait_event(&event, "LearnedBtreeTrain"));
}

/* Add a leaf whose left separator is h->separator. */
static void
add_leaf(Harvest *h, BlockNumber block)
{
	uint32		slot = h->header->nleaves++;
	LbtLeaf    *leaf = &h->leaves[slot];

	leaf->block = block;
	leaf->recent_buffer = 0;
	leaf->min_code = 0;
	if (h->separators)
	{
		h->nvalues[slot] = h->nseparator;
		memcpy(&h->values[(Size) slot * h->spec->ncolumns], h->separator,
			   sizeof(LbtKeyValue) * h->nseparator);
	}
	else if (h->code_known && h->nseparator > 0)
		leaf->min_code = lbt_keycode(&h->header->code, h->separator, h->nseparator,
									 LBT_MISSING_LOW);
	lbt_keycode_observe(h->learner, h->separator, h->nseparator);
}

/* Copy as much of a separator's byte string as the column's code can use. */
static const uint8 *
copy_bytes(Harvest *h, int column, const uint8 *bytes, uint32 length)
{
	char	   *copy = h->scratch + column * LBT_CODE_BYTES;

	if (h->separators)
	{
		if (h->strings_left < length)
		{
			h->strings = MemoryContextAlloc(h->separators, STRINGS_BYTES);
			h->string_bytes += STRINGS_BYTES;
			h->strings_left = STRINGS_BYTES;
		}
		copy = h->strings;
		h->strings += length;
		h->strings_left -= length;
	}
	memmove(copy, bytes, length);	/* encoded, it is in the scratch memory */
	return (const uint8 *) copy;
}

static void
set_separator(Harvest *h, IndexTuple pivot)
{
	MemoryContext old = MemoryContextSwitchTo(h->passing);
	LbtBound	bound;

	lbt_bound_of_tuple(h->spec, RelationGetDescr(h->rel), pivot, (uint8 *) h->scratch, &bound);
	MemoryContextSwitchTo(old);
	h->nseparator = bound.ncolumns;
	for (int i = 0; i < h->nseparator; i++)
	{
		LbtKeyValue *value = &h->separator[i];

		*value = bound.value[i];
		if (!h->spec->column[i].bytes || value->isnull)
			continue;
		value->length = Min(value->length, LBT_CODE_BYTES);
		value->bytes = copy_bytes(h, i, value->bytes, value->length);
	}
	MemoryContextReset(h->passing);
}

/* Sort keys may contradict the separators' order: no damage, pages decide. */
static void
straighten(LbtLeaf *leaves, uint32 nleaves)
{
	for (uint32 i = 1; i < nleaves; i++)
		leaves[i].min_code = Max(leaves[i].min_code, leaves[i - 1].min_code);
}

/* Keep separators where codes do not tell keys apart, if models have room. */
static void
keep_separators(Harvest *h)
{
	uint32		nleaves = h->header->nleaves;
	Size		room = (Size) lbt_max_model_memory * 1024 - nleaves * sizeof(LbtLeaf);
	uint32		max_bytes = Min(lbt_separators_max_bytes(nleaves), room / 2);
	LbtSeparatorKeys keys = {.values = h->values,.nvalues = h->nvalues,
	.ncolumns = h->spec->ncolumns,.order = h->spec->order,.leaves = h->leaves};
	Size		scratch_bytes = lbt_separators_scratch_bytes(nleaves);
	void	   *separators;
	void	   *scratch;

	if (!lbt_separators_needed(&h->header->code, keys.ncolumns, h->leaves, nleaves) ||
		MemoryContextMemAllocated(CurrentMemoryContext, true) + max_bytes +
		scratch_bytes > budget())
		return;
	separators = MemoryContextAllocHuge(CurrentMemoryContext, max_bytes);
	scratch = MemoryContextAllocHuge(CurrentMemoryContext, scratch_bytes);
	h->header->separator_bytes = lbt_separators_build(&keys, nleaves, separators, max_bytes,
													  scratch, &h->header->ties);
	pfree(scratch);
	h->trained->separators = separators;
}

/* Walk along level 1, and add each leaf. */
static void
walk_leaves(Harvest *h)
{
	LbtLeafWalk walk;

	h->header->nleaves = 0;
	h->nseparator = 0;
	memset(&lbt_sort_keys_provided, 0, sizeof(lbt_sort_keys_provided));
	lbt_leafwalk_begin(&walk, h->rel);
	h->header->height = walk.height;
	h->trained->state = walk.empty ? LBT_EMPTY : LBT_READY;
	while (h->trained->state == LBT_READY && lbt_leafwalk_next(&walk))
	{
		/* Repeat it: reading a page ends it with its own wait event. */
		report_training();
		if (h->header->nleaves >= h->limit)
		{
			h->trained->state = LBT_TOO_LARGE;
			break;
		}
		make_room(h);
		if (walk.separator)
			set_separator(h, walk.separator);
		add_leaf(h, walk.block);
	}
	if (walk.damaged)
		h->trained->state = LBT_DAMAGED;
}

/*
 * Will keys cost more than descents do, going by those of the last walk?  The
 * longer a text, the longer the provider takes for its sort key; the more
 * leaves, the more comparisons a descent makes, and the fewer of its pages are
 * in the processor's caches.
 */
static bool
keys_are_dear(uint32 nleaves)
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
	bool		saves = !lbt_is_btree(h->rel) && !RecoveryInProgress();

	h->learner = palloc(sizeof(LbtKeyLearner));
	h->scratch = palloc(LBT_CODE_COLUMNS * LBT_SCRATCH_BYTES);
	h->passing = AllocSetContextCreate(CurrentMemoryContext, "learnedbtree separator",
									   ALLOCSET_SMALL_SIZES);

	/* A single number is its code. */
	h->code_known = h->spec->ncolumns == 1 && !h->spec->column[0].bytes;
	if (!h->code_known)
		h->separators = AllocSetContextCreate(CurrentMemoryContext, "learnedbtree separators",
											  ALLOCSET_DEFAULT_SIZES);
	lbt_keycode_begin(h->learner, h->spec->ncolumns, h->spec->order);
	lbt_keycode_finish(h->learner, code);	/* all there is to learn of one */
	walk_leaves(h);
	lbt_keycode_finish(h->learner, code);
	if (h->trained->state == LBT_READY && !h->separators && !h->code_known)
	{
		/*
		 * Leaves that appeared since the first walk get codes within what it
		 * has seen.
		 */
		h->code_known = true;
		walk_leaves(h);
	}
	if (h->trained->state != LBT_READY || h->header->nleaves == 0)
		return;
	if (keys_are_dear(h->header->nleaves))
	{
		h->trained->state = LBT_DEAR_KEYS;
		if (saves)
			lbt_metapage_write(h->rel, code, NULL, 0);
		return;
	}
	for (uint32 i = 0; h->separators && i < h->header->nleaves; i++)
		h->leaves[i].min_code = lbt_keycode(code, &h->values[(Size) i * h->spec->ncolumns],
											h->nvalues[i], LBT_MISSING_LOW);
	if (h->spec->sort_keys)
		straighten(h->leaves, h->header->nleaves);
	if (saves)
		lbt_metapage_write(h->rel, code, h->leaves, h->header->nleaves);
	if (h->separators)
		keep_separators(h);		/* not before: a saved model has none */
	h->leaves[0].min_code = 0;
}

/* The blocks in order (FNV-1a): trainings that agree found the same leaves. */
static uint32
fingerprint(const LbtLeaf *leaves, uint32 nleaves)
{
	uint32		hash = 2166136261u;

	for (uint32 i = 0; i < nleaves; i++)
		hash = (hash ^ leaves[i].block) * 16777619u;
	return hash;
}

/*
 * Fit a spline to leaves in key order, within max_error or, where its knots do
 * not fit into the memory left, a larger one.  Fills in what trained says of
 * leaves and knots.  False when the codes are not in order.
 */
static bool
fit(const LbtIndex *index, const LbtLeaf *leaves, uint32 nleaves, LbtTrained *trained)
{
	int			max_error = index->serving.options.max_error > 0 ?
		index->serving.options.max_error : lbt_max_error;
	Size		taken = MemoryContextMemAllocated(CurrentMemoryContext, true);
	Size		room = budget() > taken ? (budget() - taken) / sizeof(LbtKnot) : 0;
	uint32		max_knots = Min(nleaves, Max(room, KNOTS_MIN));
	LbtKnot    *knots = MemoryContextAllocHuge(CurrentMemoryContext,
											   (Size) max_knots * sizeof(LbtKnot));
	LbtSplineFit spline;

	while (!lbt_spline_fit(leaves, nleaves, max_error, knots, max_knots, &spline))
	{
		if (spline.nknots == 0)
			return false;
		max_error *= 2;
	}
	trained->state = LBT_READY;
	trained->knots = knots;
	trained->leaves = leaves;
	trained->header.nleaves = nleaves;
	trained->header.nknots = spline.nknots;
	trained->header.max_error = spline.max_error;
	trained->header.mean_error = spline.mean_error;
	return true;
}

static LbtState
publish(LbtIndex *index, const LbtTrained *trained, bool new_file)
{
	bool		published = lbt_registry_publish(&index->file, index->oid, trained, new_file,
												 lbt_policy_settle);

	lbt_index_refresh(index);
	return published ? index->state : LBT_NO_MEMORY;
}

/* Harvest, fit and publish.  Allocates in the current context. */
static LbtState
train(Relation rel, LbtIndex *index, bool new_file)
{
	LbtTrained	trained = {0};
	LbtModelHeader *header = &trained.header;
	Harvest		h = {.rel = rel,.spec = &index->keyspec,.trained = &trained,.header = header};
	instr_time	start,
				end;

	INSTR_TIME_SET_CURRENT(start);
	h.limit = Min(Min((Size) lbt_max_model_memory * 1024, budget()) / sizeof(LbtLeaf),
				  PG_UINT32_MAX / 2);
	harvest(&h);
	if (trained.state == LBT_READY && !fit(index, h.leaves, header->nleaves, &trained))
		trained.state = LBT_DAMAGED;
	pgstat_report_wait_end();
	INSTR_TIME_SET_CURRENT(end);
	INSTR_TIME_SUBTRACT(end, start);
	header->training_ms = INSTR_TIME_GET_MILLISEC(end);

	/* A model without separators is better than none. */
	if (trained.state == LBT_READY && lbt_model_bytes(header->nleaves, header->nknots,
													  header->separator_bytes) >
		(Size) lbt_max_model_memory * 1024)
		header->separator_bytes = 0;
	header->trained_at = GetCurrentTimestamp();
	header->source = LBT_FROM_TRAINING;
	trained.blocks = trained.state == LBT_DAMAGED ? NO_GROWTH_BLOCKS :
		RelationGetNumberOfBlocks(rel);
	if (trained.state == LBT_READY)
	{
		trained.fingerprint = fingerprint(h.leaves, header->nleaves);
		if (MemoryContextMemAllocated(CurrentMemoryContext, true) +
			(Size) trained.blocks * sizeof(int32) <= budget())
			lbt_index_take_hints(index, h.leaves, header->nleaves, trained.blocks);
	}
	if (trained.state == LBT_TOO_LARGE && index->state == LBT_READY)
	{
		/* An old model is better than none; pause. */
		lbt_registry_unclaim(&index->file, LBT_ENDED_BY_ERROR);
		return LBT_TOO_LARGE;
	}
	lbt_count(index, LBT_EV_TRAINING);
	return publish(index, &trained, new_file);
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
 * For an index without a model: take the saved one, and have it trained; or
 * leave a large index's first training to a worker; or, where there is none,
 * train it.  A new file can only be trained here.
 */
static LbtState
train_first(Relation rel, LbtIndex *index, bool new_file)
{
	bool		large = RelationGetNumberOfBlocks(rel) >= FIRST_USE_BLOCKS;
	LbtTrained	saved;

	if (index->state == LBT_UNTRAINED && !lbt_is_btree(rel) &&
		lbt_metapage_read(rel, index, &saved) &&
		fit(index, saved.leaves, saved.header.nleaves, &saved) &&
		publish(index, &saved, new_file) == LBT_READY)
	{
		bool		served = lbt_autotrain && lbt_worker_start(index->file.database, true);

		if (served || large)
			return LBT_READY;
	}
	if (large && !new_file && lbt_demand_raise(&index->file, index->oid))
	{
		ask_later(index);
		return index->state;
	}
	return train(rel, index, new_file);
}

/*
 * How has a training ended by this error?  A query cancelled by its user or a
 * time limit says nothing of the index, damage will be there again next time,
 * and anything else may be over in a moment.
 */
static LbtEnding
ending_of(int code)
{
	if (code == ERRCODE_INDEX_CORRUPTED || code == ERRCODE_DATA_CORRUPTED)
		return LBT_ENDED_BY_DAMAGE;
	if (ERRCODE_TO_CATEGORY(code) == ERRCODE_TO_CATEGORY(ERRCODE_OPERATOR_INTERVENTION))
		return LBT_ENDED;
	return LBT_ENDED_BY_ERROR;
}

/* Run one of these under the claim to the file, in its own memory context. */
static LbtState
run_claimed(Relation rel, LbtIndex *index, LbtState (*body) (Relation, LbtIndex *, bool))
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "learnedbtree training",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	bool		new_file = lbt_relation_is_new_file(rel);
	LbtState	state;

	PG_TRY();
	{
		if (new_file)
			lbt_xact_created(&index->file, index->oid);
		state = body(rel, index, new_file);
	}
	PG_CATCH();
	{
		lbt_registry_unclaim_after_error(&index->file, ending_of(geterrcode()));

		/* The context goes with the caller's: reads may still refer to it. */
		PG_RE_THROW();
	}
	PG_END_TRY();
	lbt_registry_unclaim(&index->file, LBT_ENDED);
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(context);
	return state;
}

/*
 * The same for a lookup or insert, which can do without: an error does not
 * fail the user's statement.  Training a large index here, where there is no
 * worker, may take long, so it can be cancelled, and then errors are errors.
 */
static void
run_quietly(Relation rel, LbtIndex *index, LbtState (*body) (Relation, LbtIndex *, bool))
{
	if (RelationGetNumberOfBlocks(rel) >= FIRST_USE_BLOCKS)
		(void) run_claimed(rel, index, body);
	else
		LBT_GUARDED((void) run_claimed(rel, index, body),
					lbt_registry_unclaim(&index->file, LBT_ENDED));
}

LbtState
lbt_train(Relation rel, LbtIndex *index)
{
	LbtState	state;

	if (!index->shareable)
		return LBT_NO_MEMORY;
	(void) lbt_registry_claim(&index->file, index->oid);
	state = run_claimed(rel, index, train);

	/*
	 * Race: REINDEX CONCURRENTLY drops the old index under a lock that a
	 * worker's does not conflict with (one that did would deadlock: it waits
	 * for our snapshot).  Either the drop's commit forgets the model that we
	 * have published, or we see here that the index is gone.
	 */
	AcceptInvalidationMessages();
	if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(RelationGetRelid(rel))))
		lbt_registry_drop_file(&index->file);
	return state;
}

bool
lbt_trainable(Relation rel, const LbtIndex *index, const char **reason)
{
	*reason = NULL;
	if (index->serving.options.learned == 0)
		*reason = "the index option learned is off";
	else if (RelationUsesLocalBuffers(rel))
		*reason = "temporary indexes have no model";
	else if (!lbt_shared_possible())
		*reason = "there is no shared memory for models: learnedbtree is not in shared_preload_libraries";
	else if (index->keyspec.ncolumns == 0)
		*reason = "the type of the first key column has no key code";
	return *reason == NULL;
}

/* Is training this index on use worth it, and fair to other indexes? */
static bool
should_train(const LbtIndex *index, BlockNumber nblocks)
{
	switch (index->state)
	{
		case LBT_READY:
			return false;
		case LBT_UNTRAINED:
		case LBT_FAILED:
		case LBT_NO_MEMORY:
			return true;		/* of the last two, the pause is over */
		case LBT_EVICTED:
			return lbt_registry_has_room(index->model_bytes) ||
				(lbt_may_evict_others(nblocks) && lbt_registry_has_idle());
		case LBT_EMPTY:
		case LBT_TOO_LARGE:
		case LBT_DAMAGED:
		case LBT_NOT_PAYING:
		case LBT_DEAR_KEYS:
			break;
	}
	return nblocks > index->trained_blocks + (index->trained_blocks >> GROWTH_SHIFT);
}

void
lbt_train_on_use(Relation rel, LbtIndex *index)
{
	const char *reason;
	BlockNumber nblocks;

	if (!index->shareable || !lbt_may_ask(index) || !lbt_trainable(rel, index, &reason))
		return;

	/* It may be only this process that could not reach it. */
	if (index->state == LBT_NO_MEMORY)
		lbt_index_refresh(index);
	nblocks = RelationGetNumberOfBlocks(rel);
	if (!should_train(index, nblocks))
	{
		/* Others are asked about their growth, which is quick. */
		if (index->state == LBT_EVICTED)
			ask_later(index);
		return;
	}

	/*
	 * Look it up again under the claim: another backend may just have
	 * finished.  If it has not, its outcome raises the generation, which
	 * makes us look again at once.
	 */
	if (!lbt_registry_claim(&index->file, index->oid))
	{
		ask_later(index);
		return;
	}
	lbt_index_refresh(index);
	if (lbt_may_ask(index) && should_train(index, nblocks))
		run_quietly(rel, index, train_first);
	else
		lbt_registry_unclaim(&index->file, LBT_ENDED);
	if (index->state == LBT_EVICTED)
		ask_later(index);
}

/* A model is wanted now, and nobody else is at it. */
static void
train_here(Relation rel, LbtIndex *index)
{
	if (lbt_registry_claim(&index->file, index->oid))
		run_quietly(rel, index, train);
}

void
lbt_train_on_misses(Relation rel, LbtIndex *index)
{
	index->counts.misses = 0;
	if (lbt_report(index))
		train_here(rel, index);
}

void
lbt_train_on_split(Relation rel, LbtIndex *index)
{
	index->counts.splits++;
	if (lbt_autotrain && index->state == LBT_READY && index->model.nleaves <= SMALL_LEAVES &&
		index->counts.splits >= index->model.nleaves)
		train_here(rel, index);
	else if (lbt_count_unflushed(index, LBT_EV_SPLIT) >= SPLITS_BEFORE_REPORT)
		lbt_train_on_misses(rel, index);
}
