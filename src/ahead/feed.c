/*
 * feed.c - batches of keys to come; see feed.h.
 */
#include "ahead/feed.h"

#include "server/btree.h"

/* Items of a batch that is begun when none has come before. */
#define FIRST_ITEMS 2

/*
 * A batch in memory is of no use if its keys come to fewer than one place for
 * this many: 200,000 sorted probes, index-only, of 2 M rows take 98 ms with
 * this rule and 107 ms without; random ones never fall under it.
 */
#define PLACE_KEYS 4

/* Pages that the processor's caches hold: 4 MB of index and table. */
#define CACHED_PAGES 512

/*
 * After a batch with no row to ask for, read no leaves for rows in as many
 * items as so many such batches have: the first rows that come again after
 * that are not asked for.
 */
#define NO_ROWS_BATCHES 4

/* ---- blocks on their way ---- */

/* The key needs this block, unless it is beyond the file; keys ascend. */
static void
want(LbtReads *reads, BlockNumber block, int key, BlockNumber nblocks)
{
	for (int i = reads->n - 1; i >= 0; i--)
		if (reads->block[i] == block)
			return;
	if (block >= nblocks || reads->n == lengthof(reads->block))
		return;
	reads->key[reads->n] = key;
	reads->block[reads->n++] = block;
}

/* Ask for the blocks that are needed next, as many as may be under way. */
static void
ask(LbtReads *reads, Relation rel, LbtTally *tally)
{
	int			distance = reads->asked < reads->n ? lbt_read_distance(rel) : 0;

	while (reads->asked < Min(reads->n, reads->come + distance))
	{
		int			which = reads->asked++;

		if (lbt_ask_for(rel, reads->block[which], tally))
			reads->missing |= UINT64CONST(1) << which;
	}
}

void
lbt_ask_for_row(Relation table, BlockNumber block, LbtTally *asked)
{
	if (lbt_enable_row_prefetch && block != asked->last && lbt_read_distance(table) > 0)
		(void) lbt_ask_for(table, block, asked);
}

/* Read a leaf that has been asked for; false after an error. */
static bool
read_leaf(LbtFeed *feed, LbtBatch *keys, int first, BlockNumber block)
{
	const LbtTarget *target = &keys->target[first];
	Buffer		buf = lbt_bt_try_read(feed->rel, block);

	if (!BufferIsValid(buf))
		return false;
	ReleaseBuffer(buf);
	if (lbt_enable_buffer_hint && lbt_of_model(feed->index, target->generation))
		lbt_index_set_hint(feed->index, target->slot, block, buf);
	for (int i = first; i < keys->n; i++)
		if (keys->target[i].slot == target->slot)
			keys->target[i].recent = buf;
	return true;
}

/*
 * What keys up to this one need is needed now.  Leaves are read, because rows
 * are looked for on them, and because the lookup may not come there and its
 * error be none of the statement's.  Rows' blocks are left to the lookup.
 */
static void
bring(LbtFeed *feed, LbtFeedBatch *batch, LbtReads *reads, int key)
{
	bool		leaves = reads == &batch->leaves;

	while (reads->come < reads->n && reads->key[reads->come] <= key)
	{
		int			which = reads->come++;

		CHECK_FOR_INTERRUPTS();
		ask(reads, leaves ? feed->rel : feed->table, leaves ? &feed->leaves : &feed->rows);
		batch->missed |= reads->missing >> which & 1;
		if (leaves && (which >= reads->asked ||
					   !read_leaf(feed, &batch->keys, reads->key[which], reads->block[which])))
			reads->n = reads->come;
	}
}

/*
 * The lookup of this key is over.  A leaf was used if it took a prediction
 * (used), a block of the table if somebody has read it.
 */
static void
judge(LbtReads *reads, int key, LbtTally *tally, Relation table, bool used)
{
	for (; reads->judged < reads->asked && reads->key[reads->judged] <= key; reads->judged++)
	{
		int			which = reads->judged;

		if ((reads->missing >> which & 1) == 0)
			continue;
		tally->judged++;
		tally->used += table != NULL ? lbt_block_is_there(table, reads->block[which]) :
			used && reads->key[which] == key;
	}
}

/* ---- batches ---- */

/* Does the batch know this item, by the present model? */
static inline bool
holds(const LbtFeed *feed, const LbtFeedBatch *batch, uint64 number)
{
	return batch != NULL && number - batch->first < (uint64) batch->nitems &&
		(batch->keys.n == 0 || lbt_of_model(feed->index, batch->keys.target[0].generation));
}

static inline void
clear(LbtFeedBatch *batch)
{
	memset(batch, 0, offsetof(LbtFeedBatch, leaves));
	memset(&batch->leaves, 0, offsetof(LbtReads, key));
	memset(&batch->rows, 0, offsetof(LbtReads, key));
	batch->keys.n = 0;
}

static void
end_batch(LbtFeed *feed, LbtFeedBatch *batch)
{
	judge(&batch->rows, LBT_BATCH, &feed->rows, feed->table, true);
	feed->missed = batch->missed;

	/* Of a list whose items share leaves, most are never reached. */
	if (feed->no_reads && batch->nitems > 0)
		feed->most = Min(LBT_BATCH, Max(FIRST_ITEMS, PLACE_KEYS * batch->nposted));
	clear(batch);
	lbt_count_tally(feed->index, LBT_EV_PREFETCHED, &feed->leaves, NULL);
	lbt_count_tally(feed->index, LBT_EV_ROWS_PREFETCHED, &feed->rows, NULL);
}

static void
end_batches(LbtFeed *feed)
{
	if (feed->next != NULL)
		end_batch(feed, feed->next);
	if (feed->now != NULL)
		end_batch(feed, feed->now);
}

/* Batches are large, and most statements need none. */
static LbtFeedBatch *
make_batch(LbtFeed *feed)
{
	LbtFeedBatch *batch = MemoryContextAlloc(feed->context, sizeof(LbtFeedBatch));

	clear(batch);
	if (feed->index->keyspec.encoded && !feed->no_reads && feed->scratch == NULL)
		feed->scratch = MemoryContextAlloc(feed->context, (Size) LBT_BATCH * feed->ncolumns *
										   LBT_SCRATCH_BYTES);
	return batch;
}

/* Ask for the keys of size items; returns how many it has told. */
static int
ask_producer(LbtFeed *feed, LbtFeedBatch *batch, int size, int *nkeys)
{
	Size		scratch_bytes = (Size) feed->ncolumns * LBT_SCRATCH_BYTES;
	LbtBatch   *keys = &batch->keys;
	int			n = 0;
	int			item = 0;

	keys->ncolumns = feed->ncolumns;
	keys->ends = feed->ends;
	for (; item < size; item++)
	{
		LbtNext		next = feed->next_key(feed->producer, feed->first + item,
										  lbt_batch_values(keys, n),
										  feed->scratch ? feed->scratch + n * scratch_bytes : NULL);

		if (next == LBT_NO_MORE)
			break;
		if (next == LBT_KEY)
			batch->item[n++] = (uint8) item;
	}
	*nkeys = n;
	return item;
}

/* Which of the batch's leaves are not where their hints say? */
static void
find_missing_leaves(LbtFeed *feed, LbtFeedBatch *batch)
{
	LbtIndex   *index = feed->index;

	if (!lbt_enable_prefetch || lbt_read_distance(feed->rel) == 0)
		return;
	for (int i = 0; i < batch->keys.n && !lbt_tally_wasted(&feed->leaves); i++)
	{
		const LbtTarget *target = &batch->keys.target[i];

		if (!lbt_buffer_holds(target->recent, feed->rel, target->block) &&
			lbt_in_file(feed->rel, index, target->block))
			want(&batch->leaves, target->block, i, index->nblocks);
	}
}

/*
 * Which of the table's blocks for its rows are not?  Where all rows of a key
 * are wanted, a batch has as many keys as there is room for those.
 */
static void
find_rows(LbtFeed *feed, LbtFeedBatch *batch)
{
	bool		read = !feed->no_reads && lbt_enable_row_prefetch &&
		!lbt_tally_wasted(&feed->rows) && lbt_read_distance(feed->table) > 0;
	LbtBatch   *keys = &batch->keys;
	BlockNumber missing[LBT_BATCH];
	BlockNumber block[LBT_BATCH];
	BlockNumber nblocks = 0;
	int			nrows = 0;

	lbt_batch_rows(feed->rel, feed->index, feed->table, keys,
				   read && !feed->every ? missing : NULL);
	for (int i = 0; i < keys->n && read; i++)
	{
		int			n = feed->every ?
			lbt_batch_key_rows(feed->rel, feed->index, keys, i, block) :
			missing[i] != InvalidBlockNumber;

		if (n > 0 && nblocks == 0)
			nblocks = RelationGetNumberOfBlocks(feed->table);
		for (int row = 0; row < n; row++)
			want(&batch->rows, feed->every ? block[row] : missing[i], i, nblocks);
		nrows += n;
	}
	if (feed->every)
		feed->most = Max(LBT_BATCH * keys->n / Max(nrows, keys->n), 1);

	/* To wait for all of a batch's leaves for no row only delays others. */
	if (nrows == 0 && batch->first >= feed->rows_from)
		feed->rows_from = batch->first + (1 + NO_ROWS_BATCHES) * (uint64) batch->nitems;
}

/*
 * Begin an empty batch with this item.  At most as many as have come before,
 * unless all will: that many are of no use if none of these comes.  An error
 * of the producer's leaves it empty.
 */
static void
begin_batch(LbtFeed *feed, LbtFeedBatch *batch, uint64 number, uint64 passed)
{
	LbtIndex   *index = feed->index;
	LbtBatch   *keys = &batch->keys;
	int			most = feed->most > 0 ? feed->most : LBT_BATCH;
	int			nitems;
	int			nkeys;

	if (!feed->all)
		most = (int) Min(Max(passed, FIRST_ITEMS), (uint64) most);
	feed->first = number;
	feed->until = number + most;
	nitems = lbt_enable ? ask_producer(feed, batch, most, &nkeys) : 0;
	if (nitems == 0)
		return;

	/* Whatever the producer has called: look at the model from here on. */
	if (!feed->no_reads)
		lbt_index_update(index);
	batch->first = number;
	batch->nitems = nitems;
	if (nkeys == 0 || index->state != LBT_READY)
		return;
	keys->nequal = feed->nequal;
	keys->past = feed->past;
	keys->backward = feed->backward;
	keys->end_past = feed->end_past;
	keys->nblocks = 0;
	keys->n = nkeys;
	lbt_batch_predict(index, keys);
	if (!feed->no_reads)
		find_missing_leaves(feed, batch);
	feed->batches++;
	feed->predicted += nkeys;
}

/*
 * Fetch what lookups will look at, as far as it is in memory, and find out
 * which blocks of the table are missing: that can be seen on leaves only.
 */
static void
look(LbtFeed *feed, LbtFeedBatch *batch)
{
	LbtIndex   *index = feed->index;
	LbtBatch   *keys = &batch->keys;

	batch->looked = true;
	if (keys->n == 0 || index->keyspec.nplaces == 0)
		return;
	if (!feed->no_reads)
		lbt_index_update(index);
	if (feed->table != NULL && batch->first >= feed->rows_from)
		bring(feed, batch, &batch->leaves, keys->n - 1);
	if (!lbt_of_model(index, keys->target[0].generation))
		return;
	lbt_batch_near(feed->rel, index, keys, feed->no_reads);
	if (feed->table != NULL)
		find_rows(feed, batch);
}

/* Go on with the batch that holds this item, which is begun if need be. */
static void
turn(LbtFeed *feed, uint64 number)
{
	LbtFeedBatch *done = feed->now;

	if (done == NULL)
		done = feed->now = make_batch(feed);
	end_batch(feed, done);
	if (holds(feed, feed->next, number))
	{
		feed->now = feed->next;
		feed->next = done;
	}
	else
	{
		if (feed->next != NULL && feed->next->nitems > 0)
			end_batch(feed, feed->next);
		begin_batch(feed, done, number, number - feed->origin);
	}
	if (!feed->now->looked)
		look(feed, feed->now);
}

/* Begin the next batch, and ask for its leaves. */
static void
begin_next(LbtFeed *feed, uint64 passed)
{
	LbtFeedBatch *now = feed->now;

	if (feed->next == NULL)
		feed->next = make_batch(feed);
	now->followed = true;
	begin_batch(feed, feed->next, now->first + now->nitems, passed);
	ask(&feed->next->leaves, feed->rel, &feed->leaves);
}

void
lbt_feed_look(LbtFeed *feed)
{
	LbtFeedBatch *next = feed->next;

	if (next == NULL || next->nitems == 0 || next->looked || feed->table == NULL)
		return;
	look(feed, next);
	ask(&next->rows, feed->table, &feed->rows);
}

/* Where blocks are missing, move the next batch on. */
static void
move_next_on(LbtFeed *feed, uint64 number)
{
	LbtFeedBatch *now = feed->now;

	if (!now->followed)
		begin_next(feed, number - feed->origin);
	else if (number - now->first >= (uint64) now->nitems / 2)
		lbt_feed_look(feed);
}

/* ---- pauses ---- */

/* Do the batch's keys come to few places, one after the other? */
static bool
comes_to_few(const LbtFeed *feed, const LbtFeedBatch *batch)
{
	const LbtBatch *keys = &batch->keys;
	int			places = 1;

	if (batch->missed || feed->steady || keys->n < 2 * PLACE_KEYS)
		return false;
	for (int i = 1; i < keys->n; i++)
		places += keys->target[i].slot != keys->target[i - 1].slot;
	if (feed->table != NULL)
		places = Max(places, keys->nblocks);
	return places * PLACE_KEYS < keys->n;
}

/*
 * The batch at hand, if there is one, does not know this item: does a pause
 * follow?  If none of its items has come, as these come in another order, none
 * of its predictions was used.
 */
static bool
pauses(LbtFeed *feed, uint64 number)
{
	LbtFeedBatch *done = feed->now;
	bool		is_done = done != NULL && done->nitems > 0;
	bool		missed = is_done ? done->missed : feed->missed;

	if (is_done && done->nposted == 0)
		feed->pause.tally.judged += done->keys.n;
	feed->unused = lbt_tally_wasted(&feed->pause.tally);
	if (!lbt_pause_decide(&feed->pause, number, is_done && comes_to_few(feed, done)) &&
		feed->npages > 0 && feed->npages < CACHED_PAGES && !missed)
		feed->pause.resume = PG_UINT64_MAX;
	if (number >= feed->pause.resume)
		return false;
	end_batches(feed);
	return true;
}

/* ---- for consumers ---- */

/* The lookup after the last posted prediction is over: has it taken that? */
static inline void
judge_posted(LbtFeed *feed)
{
	LbtFeedBatch *now = feed->now;
	bool		used;

	if (feed->mail == 0)
		return;

	/* Where another one has come since, nobody knows. */
	used = feed->index->mailbox.taken || feed->index->mailbox.number != feed->mail;
	feed->pause.tally.judged++;
	feed->pause.tally.used += used;
	if (unlikely(now->leaves.n > 0))
		judge(&now->leaves, feed->posted, &feed->leaves, NULL, used);
	if (unlikely(now->rows.n > 0))
		judge(&now->rows, feed->posted, &feed->rows, feed->table, true);
	feed->mail = 0;
}

/* begin() where the batch at hand does not know the item. */
static pg_noinline bool
begin_item(LbtFeed *feed, uint64 number)
{
	if (number < feed->pause.resume)
	{
		/* What its keys point to goes as its items pass. */
		if (holds(feed, feed->next, number))
			end_batch(feed, feed->next);
		return false;
	}
	if (pauses(feed, number))
		return false;
	turn(feed, number);
	if (feed->now->keys.n > 0)
		return true;
	lbt_pause_begin(&feed->pause, number);
	return false;
}

/* Get ready for this item, which comes next; false in a pause. */
static inline bool
begin(LbtFeed *feed, uint64 number)
{
	judge_posted(feed);
	return likely(holds(feed, feed->now, number)) || begin_item(feed, number);
}

/* The batch's key for this item or, if it has none, the first one after it. */
static inline int
key_from(LbtFeedBatch *batch, uint64 number)
{
	int			item = (int) (number - batch->first);
	int			key = batch->at;

	if (key >= batch->keys.n || batch->item[key] > item)
		key = 0;
	while (key < batch->keys.n && batch->item[key] < item)
		key++;
	batch->at = key;
	return key;
}

static inline bool
is_key_of(const LbtFeedBatch *batch, int key, uint64 number)
{
	return key < batch->keys.n && batch->first + batch->item[key] == number;
}

void
lbt_feed_post(LbtFeed *feed, uint64 number)
{
	LbtFeedBatch *now;
	LbtMailbox *mailbox;
	int			key;

	if (!begin(feed, number))
		return;
	now = feed->now;
	if (unlikely(lbt_feed_misses(feed)))
		move_next_on(feed, number);
	key = key_from(now, number);
	if (!is_key_of(now, key, number))
		return;
	if (unlikely(now->leaves.n > 0))
	{
		lbt_index_update(feed->index);
		bring(feed, now, &now->leaves, key);
	}
	if (unlikely(now->rows.n > 0))
		bring(feed, now, &now->rows, key);
	mailbox = &feed->index->mailbox;
	mailbox->target = now->keys.target[key];
	mailbox->code = now->keys.key[key].code;
	mailbox->taken = false;
	now->nposted++;
	feed->posted = key;
	feed->mail = ++mailbox->number;
}

bool
lbt_feed_find(LbtFeed *feed, uint64 code, uint64 *number)
{
	while (begin(feed, *number))
	{
		LbtFeedBatch *now = feed->now;
		int			first = key_from(now, *number);

		for (int key = first; key < now->keys.n; key++)
			if (now->keys.key[key].code == code)
			{
				*number = now->first + now->item[key];
				return true;
			}
		if (first < now->keys.n)
			return false;
		*number = now->first + now->nitems;
	}
	return false;
}

void
lbt_feed_follow(LbtFeed *feed, uint64 number)
{
	if (feed->now == NULL || feed->now->nitems == 0 || !lbt_feed_misses(feed))
		return;
	if (!holds(feed, feed->now, number) && holds(feed, feed->next, number) &&
		!begin(feed, number))
		return;
	if (!feed->now->followed || feed->next->nitems == 0)
		begin_next(feed, number - feed->origin);
}

const LbtTarget *
lbt_feed_reach(LbtFeed *feed, uint64 number)
{
	int			key;

	if (!holds(feed, feed->now, number))
		turn(feed, number);
	key = key_from(feed->now, number);
	if (!is_key_of(feed->now, key, number))
		return NULL;
	feed->now->nposted++;
	return &feed->now->keys.target[key];
}

void
lbt_feed_wake(LbtFeed *feed)
{
	if (feed->unused)
		return;
	feed->pause.resume = 0;
	feed->missed = true;
}

void
lbt_feed_restart(LbtFeed *feed, uint64 number)
{
	judge_posted(feed);
	end_batches(feed);
	feed->origin = number;
	feed->missed = false;
}

void
lbt_feed_free(LbtFeed *feed)
{
	if (feed->now != NULL)
		pfree(feed->now);
	if (feed->next != NULL)
		pfree(feed->next);
	if (feed->scratch != NULL)
		pfree(feed->scratch);
	feed->now = feed->next = NULL;
	feed->scratch = NULL;
}
