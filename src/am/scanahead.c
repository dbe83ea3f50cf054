/*
 * scanahead.c - what a scan will need next: predictions of the probes that follow, and leaves brought into shared
 * buffers ahead of need.
 *
 * Nothing here decides where a scan goes.  A prediction made ahead is proven like any other, and a leaf brought
 * in ahead is used only where the scan was about to read that very block.
 *
 * The leaves that will be needed are taken from the leaf cache: for each probe from now on, in the scan's
 * direction, the slots from the one that its near bound is predicted in to the one of its far bound.  Slots
 * never go back, so each leaf comes once, and the scan can tell by the slot whether it has passed a leaf by.
 *
 * Shared memory.  The model is read only after a look at the generation, with no dsa call in between; when the
 * model has changed, what was predicted by it is forgotten and its stream ends.
 */
#include "am/scan.h"

#include "learn/counters.h"
#include "learn/settings.h"
#include "server/stream.h"
#include "utils/memutils.h"

/* Steps to siblings before a scan looks whether the next leaf is missing. */
#define STEPS_FIRST 2

/* Slots in which a sibling is looked for, and siblings that are in none of them before the stream is given up. */
#define SLOT_WINDOW 8
#define MAX_UNKNOWN 8

/* Leaves that were there anyway, one after the other, before the stream is given up. */
#define MAX_IDLE 64

/* Probes that add no leaf, one after the other, before the stream is given up. */
#define MAX_SAME_LEAF 4096

/* Predicted leaves for which the buffer table is asked, for each batch. */
#define MAX_ASKED 3

typedef struct LbtAhead
{
	LbtIndex   *index;
	const LbtScan *so;

	/* predictions: of batch.n probes from first on, in the scan's direction */
	bool		batch_forward;
	int64		batch_first;
	LbtBatch	batch;
	LbtProbe	batch_probe;

	/* leaves being brought in; NULL: none */
	LbtStream  *stream;
	bool		forward;
	uint64		generation;		/* of the model that it goes by */
	Buffer		waiting;		/* has come, and is not used yet: pinned, or invalid */
	uint32		waiting_slot;
	int			unknown;		/* siblings in a row that were not in the stream */
	int64		slot;			/* asked for last; -1: none */
	int64		until;			/* the last one of the probe's */
	LbtProbe	probe;
} LbtAhead;

static LbtAhead *
get_ahead(LbtScan *so)
{
	LbtAhead   *ahead = so->ahead;

	if (ahead == NULL)
	{
		ahead = MemoryContextAlloc(GetMemoryChunkContext(so), sizeof(LbtAhead));
		ahead->index = so->index;
		ahead->so = so;
		ahead->batch.n = 0;
		ahead->stream = NULL;
		ahead->waiting = InvalidBuffer;
		so->ahead = ahead;
	}
	return ahead;
}

static void
end_stream(LbtAhead *ahead)
{
	if (ahead->stream == NULL)
		return;
	if (BufferIsValid(ahead->waiting))
		ReleaseBuffer(ahead->waiting);
	ahead->waiting = InvalidBuffer;
	lbt_stream_end(ahead->stream);
	ahead->stream = NULL;
}

void
lbt_ahead_stop(LbtScan *so)
{
	so->slot_generation = 0;
	if (so->ahead)
	{
		so->ahead->batch.n = 0;
		end_stream(so->ahead);
	}
}

/* ---- the stream ---- */

/* Is the view up to date and still that of the model with this generation? */
static inline bool
same_model(LbtIndex *index, uint64 generation)
{
	return index->generation == generation && index->state == LBT_READY &&
		pg_atomic_read_u64(lbt_registry_generation) == generation;
}

/* The slots of the probe that come after those of the probe before. */
static void
find_slots(LbtAhead *ahead)
{
	const LbtBound *start = &ahead->probe.start;
	const LbtBound *end = &ahead->probe.end;
	uint32		near = (uint32) Max(ahead->slot, 0);
	uint32		first = lbt_predict_slot(ahead->index, ahead->forward ? start : end, near);

	ahead->until = lbt_predict_slot(ahead->index, ahead->forward ? end : start, first);
	if (ahead->slot < 0)
		ahead->slot = ahead->forward ? (int64) first - 1 : (int64) first + 1;
	else if (ahead->forward)
		ahead->slot = Max(ahead->slot, (int64) first - 1);
	else
		ahead->slot = Min(ahead->slot, (int64) first + 1);
}

/* For the stream: the next leaf that the scan will need. */
static bool
next_leaf(void *state, BlockNumber *block, uint32 *slot)
{
	LbtAhead   *ahead = state;
	int64		step = ahead->forward ? 1 : -1;

	if (!same_model(ahead->index, ahead->generation))
		return false;
	for (int i = 0; i < MAX_SAME_LEAF; i++)
	{
		int64		next = ahead->probe.number + step;

		if (ahead->forward ? ahead->slot < ahead->until : ahead->slot > ahead->until)
		{
			LbtTarget	target;

			ahead->slot += step;
			*slot = (uint32) ahead->slot;
			lbt_slot_target(ahead->index, *slot, &target);
			*block = target.block;
			lbt_count(ahead->index, LBT_EV_PREFETCHED);
			return true;
		}
		if (next < 0 || next >= ahead->so->nprobes)
			return false;
		lbt_probe_go(ahead->so, &ahead->probe, next);
		find_slots(ahead);
	}
	return false;
}

/*
 * Begin to bring in leaves, from this slot on, or from the probe's first one when it is -1.  The view is up to date.
 */
static void
begin_stream(IndexScanDesc scan, LbtScan *so, LbtAhead *ahead, const LbtProbe *probe, int64 slot,
			 bool forward)
{
	MemoryContext old;

	ahead->forward = forward;
	ahead->generation = so->index->generation;
	ahead->unknown = 0;
	ahead->probe = *probe;
	ahead->slot = -1;
	find_slots(ahead);
	if (slot >= 0)
		ahead->slot = forward ? slot - 1 : slot + 1;
	old = MemoryContextSwitchTo(GetMemoryChunkContext(so));
	ahead->stream = lbt_stream_begin(scan->indexRelation, so->bitmap, next_leaf, ahead);
	MemoryContextSwitchTo(old);
}

/* Is there a stream that serves a scan in this direction?  Ends another. */
static bool
have_stream(LbtAhead *ahead, bool forward)
{
	if (ahead->stream != NULL &&
		(ahead->forward != forward || !lbt_enable_prefetch || ahead->unknown >= MAX_UNKNOWN ||
		 lbt_stream_idle(ahead->stream) >= MAX_IDLE || !same_model(ahead->index, ahead->generation)))
		end_stream(ahead);
	return ahead->stream != NULL;
}

/* Wait for a leaf of the stream; false, and the stream has ended, when there is none. */
static bool
fill_waiting(LbtAhead *ahead)
{
	if (!BufferIsValid(ahead->waiting))
	{
		ahead->waiting = lbt_stream_next(ahead->stream, &ahead->waiting_slot);
		if (!BufferIsValid(ahead->waiting))
		{
			end_stream(ahead);
			return false;
		}
	}
	return true;
}

/* The leaf in this slot, if it is in the stream, pinned; InvalidBuffer if not.  Those before it are passed by. */
static Buffer
take_slot(LbtAhead *ahead, uint32 slot)
{
	while (fill_waiting(ahead))
	{
		Buffer		buf = ahead->waiting;

		if (ahead->forward ? ahead->waiting_slot > slot : ahead->waiting_slot < slot)
			break;
		ahead->waiting = InvalidBuffer;
		if (ahead->waiting_slot == slot)
			return buf;
		ReleaseBuffer(buf);
	}
	return InvalidBuffer;
}

/* ---- probes ---- */

/* Predict this probe and those that follow. */
static void
fill_batch(LbtScan *so, LbtAhead *ahead, int64 number, bool forward)
{
	LbtProbe   *probe = &ahead->batch_probe;
	int64		left = forward ? so->nprobes - number : number + 1;
	int			n = (int) Min(left, LBT_BATCH);

	if (ahead->batch.n == 0)
		*probe = so->probe;
	ahead->batch_first = number;
	ahead->batch_forward = forward;
	ahead->batch.n = 0;
	for (int i = 0; i < n; i++)
	{
		lbt_probe_go(so, probe, forward ? number + i : number - i);
		lbt_batch_add(so->index, &ahead->batch, forward ? &probe->start : &probe->end);
	}
	lbt_batch_finish(so->index, &ahead->batch);
}

/* Is a leaf missing that is predicted for the probes after this one? */
static bool
will_miss(IndexScanDesc scan, LbtScan *so, const LbtBatch *batch)
{
	int			asked = 0;

	for (int i = 1; i < batch->n; i++)
	{
		const LbtTarget *target = &batch->target[i];

		if (target->slot != target[-1].slot &&
			!lbt_target_cached(scan->indexRelation, so->index, target, false))
		{
			if (!lbt_target_cached(scan->indexRelation, so->index, target, true))
				return true;
			if (++asked == MAX_ASKED)
				break;
		}
	}
	return false;
}

void
lbt_ahead_predict(IndexScanDesc scan, LbtScan *so, int64 number, ScanDirection dir, LbtTarget *target)
{
	LbtIndex   *index = so->index;
	bool		forward = ScanDirectionIsForward(dir);
	LbtAhead   *ahead;
	int64		at;

	*target = (LbtTarget) {.generation = 0};
	if (so->nprobes == 1)
	{
		if (so->ahead)
			end_stream(so->ahead);
		return;
	}
	lbt_index_update(index);
	if (index->state != LBT_READY)
		return;
	ahead = get_ahead(so);
	at = forward ? number - ahead->batch_first : ahead->batch_first - number;
	if (ahead->batch.n == 0 || ahead->batch_forward != forward || at < 0 || at >= ahead->batch.n ||
		ahead->batch.target[0].generation != index->generation)
	{
		fill_batch(so, ahead, number, forward);
		at = 0;
		if (lbt_enable_prefetch && !have_stream(ahead, forward) && will_miss(scan, so, &ahead->batch) &&
			same_model(index, ahead->batch.target[0].generation))
		{
			lbt_probe_go(so, &so->probe, number);
			begin_stream(scan, so, ahead, &so->probe, -1, forward);
		}
	}
	*target = ahead->batch.target[at];
	if (have_stream(ahead, forward))
		target->pinned = take_slot(ahead, target->slot);
}

/* ---- siblings ---- */

/*
 * The slot of the leaf that the scan steps to, looked for among those that should come next; -1 when it is none
 * of them: it has been split off since the training.
 */
static int64
slot_of_sibling(LbtScan *so, BlockNumber block, bool forward)
{
	LbtIndex   *index = so->index;

	if (!same_model(index, so->slot_generation))
		return -1;
	for (int i = 1; i <= SLOT_WINDOW; i++)
	{
		int64		slot = forward ? (int64) so->slot + i : (int64) so->slot - i;

		if (slot < 0 || slot >= index->model.nleaves)
			break;
		if (index->model.leaves[slot].block == block)
		{
			so->slot = (uint32) slot;
			return slot;
		}
	}
	return -1;
}

Buffer
lbt_ahead_sibling(IndexScanDesc scan, LbtScan *so, BlockNumber block, ScanDirection dir)
{
	bool		forward = ScanDirectionIsForward(dir);
	LbtAhead   *ahead = so->ahead;
	int64		slot;
	Buffer		buf;

	if (!lbt_enable_prefetch || so->slot_generation == 0)
		return InvalidBuffer;
	so->steps++;
	slot = slot_of_sibling(so, block, forward);
	if (slot >= 0 && so->steps >= STEPS_FIRST && (ahead == NULL || !have_stream(ahead, forward)))
	{
		LbtTarget	target;

		lbt_slot_target(so->index, (uint32) slot, &target);
		if (!lbt_target_cached(scan->indexRelation, so->index, &target, true) &&
			same_model(so->index, so->slot_generation))
		{
			ahead = get_ahead(so);
			begin_stream(scan, so, ahead, &so->probe, slot, forward);
		}
	}
	if (ahead == NULL || !have_stream(ahead, forward))
		return InvalidBuffer;
	if (slot < 0)
	{
		ahead->unknown++;
		return InvalidBuffer;
	}
	ahead->unknown = 0;
	buf = take_slot(ahead, (uint32) slot);
	if (BufferIsValid(buf) && BufferGetBlockNumber(buf) != block)
	{
		/* The leaf cache was garbage when one of the two was read from it. */
		ReleaseBuffer(buf);
		buf = InvalidBuffer;
	}
	return buf;
}

void
lbt_ahead_note(LbtScan *so, BlockNumber block, Buffer buf)
{
	if (lbt_enable_buffer_hint && same_model(so->index, so->slot_generation) &&
		so->slot < so->index->model.nleaves)
	{
		const LbtLeaf *leaf = &so->index->model.leaves[so->slot];

		if (leaf->block == block && leaf->recent_buffer != buf)
			lbt_index_set_hint(so->index, so->slot, buf);
	}
}
