/*
 * glimpse.c - stages of a batch that look at leaves unlocked; see predict.h,
 * and src/README, "Looking at pages without a lock".
 *
 *     bounds     a    b    c  ...
 *     round 1    |    |    |     load the items at the guessed places, look
 *     round 2    |    |    |     load and look on: growing steps, then halves
 *     round 3         |    |     a has its place
 *     row        |    |    |     entry's heap TID, the block's buffer, the row
 */
#include "ahead/predict.h"

#include "access/tupmacs.h"
#include "access/xlog.h"
#include "key/sortkey.h"

/* ---- leaves and items ---- */

/* A leaf as seen without a lock: it may be changing, but is always mapped. */
typedef struct Glimpse
{
	const char *page;
	int			first;			/* data items, by offset */
	int			last;
} Glimpse;

/* The target's leaf, if it is still in its last known buffer and has items. */
static inline bool
glimpse_leaf(Relation rel, const LbtTarget *target, Glimpse *leaf)
{
	const PageHeaderData *header;
	const BTPageOpaqueData *opaque;

	if (!lbt_buffer_holds(target->recent, rel, target->block))
		return false;
	leaf->page = (const char *) BufferGetBlock(target->recent);
	header = (const PageHeaderData *) leaf->page;
	opaque = (const BTPageOpaqueData *) (leaf->page + BLCKSZ - MAXALIGN(sizeof(BTPageOpaqueData)));
	leaf->first = opaque->btpo_next == P_NONE ? P_HIKEY : P_FIRSTKEY;
	leaf->last = ((int) header->pd_lower - (int) SizeOfPageHeaderData) / (int) sizeof(ItemIdData);
	leaf->last = Min(leaf->last, (int) MaxIndexTuplesPerPage);
	return leaf->first <= leaf->last;
}

/* Is the item marked dead?  Scans pass it by, but not on a standby. */
static inline bool
is_dead(const Glimpse *leaf, int offset)
{
	return ((const PageHeaderData *) leaf->page)->pd_linp[offset - 1].lp_flags == LP_DEAD &&
		!RecoveryInProgress();
}

/* Where an item lies on the page, with this many bytes there; 0: nowhere. */
static inline uint32
item_place(const Glimpse *leaf, int offset, Size bytes)
{
	uint32		at = ((const PageHeaderData *) leaf->page)->pd_linp[offset - 1].lp_off;

	return at >= SizeOfPageHeaderData && at <= BLCKSZ - bytes && at == MAXALIGN(at) ? at : 0;
}

/*
 * Read the byte string at *at, within room bytes from the entry on, and step
 * over it.  False if it is compressed, out of line, or longer.
 */
static inline bool
next_varlena(const LbtKeyColumn *column, const char *entry, uint32 room, uint32 *at,
			 LbtKeyValue *value)
{
	uint32		header;			/* read once: it may change */
	uint32		header_length;
	uint32		bytes;

	/* Padding precedes only a long header, which is aligned. */
	if (*at < room && entry[*at] == 0)
		*at = TYPEALIGN(sizeof(header), *at);
	if (*at + sizeof(header) > room)
		return false;
	memcpy(&header, entry + *at, sizeof(header));
	bytes = lbt_varlena_bytes(&header, room - *at);
	if (bytes == 0 || VARATT_IS_COMPRESSED(&header))
		return false;
	header_length = VARATT_IS_SHORT(&header) ? VARHDRSZ_SHORT : VARHDRSZ;
	value->bytes = (const uint8_t *) entry + *at + header_length;
	value->length = lbt_length_that_counts(column, value->bytes, bytes - header_length);
	*at += bytes;
	return true;
}

/* A value of fixed length, at this place. */
static inline void
fixed_value(const LbtKeyColumn *column, const char *at, LbtKeyValue *value)
{
	if (column->bytes)
		lbt_stored_bytes(column, at, value);
	else
		value->ordered = lbt_ordered(column, fetch_att(at, column->length <= sizeof(Datum),
													   column->length));
}

/* Read an item's leading columns; false if they cannot be without a lock. */
static pg_attribute_always_inline bool
item_values(const LbtIndex *index, const Glimpse *leaf, int offset, int ncolumns,
			LbtKeyValue *values)
{
	const LbtKeySpec *spec = &index->keyspec;
	uint32		start = item_place(leaf, offset, sizeof(IndexTupleData));
	const char *entry = leaf->page + start;
	uint32		room = BLCKSZ - start;
	uint32		at = MAXALIGN(sizeof(IndexTupleData));

	if (start == 0 || IndexTupleHasNulls((const IndexTupleData *) entry))
		return false;
	for (int i = 0; i < ncolumns; i++)
	{
		const LbtKeyColumn *column = &spec->column[i];

		values[i].isnull = false;
		if (column->length == -1)
		{
			if (!next_varlena(column, entry, room, &at, &values[i]))
				return false;
			continue;
		}
		at = att_align_nominal(at, column->align);
		if (at + column->length > room)
			return false;
		fixed_value(column, entry + at, &values[i]);
		at += column->length;
	}
	return true;
}

/* The item at which the target's fraction points. */
static inline int
item_at(const Glimpse *leaf, double fraction)
{
	int			offset = leaf->first + (int) (fraction * (leaf->last + 1 - leaf->first));

	return Max(leaf->first, Min(offset, leaf->last));
}

/*
 * Load this many bytes of an item: busy processors drop prefetches.  All of
 * them, as strings that have much in common differ near their ends.
 */
static inline void
load_item(const Glimpse *leaf, int offset, uint32 bytes)
{
	const volatile char *page = leaf->page;
	uint32		at = item_place(leaf, offset, sizeof(IndexTupleData));
	uint32		last = Min(at + bytes, BLCKSZ) - 1;

	for (; at < last; at += PG_CACHE_LINE_SIZE / 2)
		(void) page[at];
	(void) page[last];
}

/* Guess a better place by the code of the item at the guess; prefetch it. */
static void
near_by_code(const LbtIndex *index, const Glimpse *leaf, uint64 key_code, LbtTarget *target)
{
	const LbtModel *model = &index->model;
	uint64		width = model->leaves[target->slot + 1].min_code -
		model->leaves[target->slot].min_code;
	int			offset = item_at(leaf, target->fraction);
	LbtKeyValue values[LBT_CODE_COLUMNS];
	uint64		code;
	int			better;
	const char *item;

	if (width == 0 || !item_values(index, leaf, offset, model->code->ncolumns, values))
		return;
	code = lbt_keycode(model->code, values, model->code->ncolumns, false);
	target->fraction += (double) (int64) (key_code - code) / (double) width;
	target->fraction = Max(0.0, Min(target->fraction, 1.0));

	/* Between the two, items most likely have one size, and lie in order. */
	better = item_at(leaf, target->fraction);
	item = leaf->page + item_place(leaf, offset, sizeof(IndexTupleData));
	item -= (better - offset) * (int) MAXALIGN(IndexTupleSize((IndexTuple) item));
	__builtin_prefetch(&((const PageHeaderData *) leaf->page)->pd_linp[better - 1]);
	__builtin_prefetch(item);
	__builtin_prefetch(item - PG_CACHE_LINE_SIZE / 2);
}

/* ---- places ---- */

/* A search on a leaf for the first item not before a bound of the batch. */
typedef struct Seek
{
	Glimpse		leaf;
	int			which;			/* the bound's number */
	int			lo;				/* before the bound, or none */
	int			hi;				/* not before the bound, or none */
	bool		lo_equal;		/* to the key, in the batch's nequal columns */
	bool		hi_equal;
	int			at;				/* looked at next */
	int			step;
} Seek;

typedef enum Side
{
	BEFORE_BOUND,
	AFTER_BOUND,
	NOT_TOLD
} Side;

/*
 * On which side of this bound of the batch is the item?  Sets *equal: does it
 * equal the key in the batch's nequal columns?
 */
static pg_attribute_always_inline Side
item_side(const LbtIndex *index, const Glimpse *leaf, int offset, LbtBatch *batch, int which,
		  bool *equal)
{
	const LbtKeySpec *spec = &index->keyspec;
	const LbtKeyValue *key = batch->key[which].values;
	int			ncolumns = Min(batch->ncolumns, spec->nplaces);
	LbtKeyValue item[LBT_CODE_COLUMNS];

	if (!item_values(index, leaf, offset, ncolumns, item))
		return NOT_TOLD;
	for (int i = 0; i < ncolumns; i++)
	{
		const LbtKeyColumn *column = &spec->column[i];
		int			cmp;

		if (column->encoded && !key[i].isnull)
		{
			cmp = lbt_guess_order(column->collation, key[i].bytes, key[i].length, item[i].bytes,
								  item[i].length);
			if (cmp == 0 && lbt_compare_bytes(column, &key[i], &item[i]) != 0)
				return NOT_TOLD;
			cmp = column->desc ? -cmp : cmp;
		}
		else
			cmp = lbt_compare_value(column, &key[i], &item[i]);
		if (cmp != 0)
		{
			*equal = i >= batch->nequal;
			return cmp > 0 ? BEFORE_BOUND : AFTER_BOUND;
		}
	}
	if (ncolumns < batch->ncolumns)
		return NOT_TOLD;
	*equal = true;
	return batch->past ? BEFORE_BOUND : AFTER_BOUND;
}

/* Look at an item.  Does another follow?  In growing steps, then by halves. */
static pg_attribute_always_inline bool
seek_on(const LbtIndex *index, LbtBatch *batch, Seek *seek)
{
	bool		equal;
	Side		side = item_side(index, &seek->leaf, seek->at, batch, seek->which, &equal);

	if (side == NOT_TOLD)
	{
		/* It most likely equals the key.  The proof needs the one before. */
		if (seek->at > seek->leaf.first)
			load_item(&seek->leaf, seek->at - 1, sizeof(IndexTupleData));
		return false;
	}
	if (side == BEFORE_BOUND)
	{
		seek->lo = seek->at;
		seek->lo_equal = equal;
	}
	else
	{
		seek->hi = seek->at;
		seek->hi_equal = equal;
	}
	if (seek->lo >= seek->leaf.first && seek->hi <= seek->leaf.last)
		seek->at = (seek->lo + seek->hi) / 2;
	else
	{
		seek->at = side == BEFORE_BOUND ? Min(seek->lo + seek->step, seek->hi - 1) :
			Max(seek->hi - seek->step, seek->lo + 1);
		seek->step *= 2;
	}
	if (seek->hi - seek->lo > 1)
		return true;
	seek->at = seek->hi;
	if (batch->backward ? seek->lo_equal : seek->hi_equal)
		batch->entry[seek->which] = batch->backward ? seek->lo : seek->hi;
	return false;
}

/* Load this much of an item; of a short one, that includes the one before. */
#define LEAST_ITEM_BYTES (PG_CACHE_LINE_SIZE / 2 + 1)
#define MOST_ITEM_BYTES 256

/* No leaf has enough items for a search to take more steps. */
#define MAX_SEEK_STEPS 24

/* Find the places of a batch's bounds, or items that cannot be compared. */
static void
seek_all(Relation rel, const LbtIndex *index, LbtBatch *batch)
{
	Seek		seek[LBT_BATCH];
	int			typical = index->seen.leaf_bytes / Max(index->seen.leaf_items, 1);
	uint32		item_bytes = Max(LEAST_ITEM_BYTES, Min(typical, MOST_ITEM_BYTES));
	int			n = 0;

	for (int i = 0; i < batch->n; i++)
	{
		Seek	   *new = &seek[n];

		batch->entry[i] = InvalidOffsetNumber;
		if (!glimpse_leaf(rel, &batch->target[i], &new->leaf))
			continue;
		new->which = i;
		new->lo = new->leaf.first - 1;
		new->hi = new->leaf.last + 1;
		new->lo_equal = new->hi_equal = false;
		new->at = item_at(&new->leaf, batch->target[i].fraction);
		new->step = 1;
		n++;
	}
	for (int steps = 0; n > 0 && steps < MAX_SEEK_STEPS; steps++)
	{
		int			left = 0;

		for (int i = 0; i < n; i++)
			load_item(&seek[i].leaf, seek[i].at, item_bytes);
		for (int i = 0; i < n; i++)
		{
			const Glimpse *leaf = &seek[i].leaf;
			bool		goes_on = seek_on(index, batch, &seek[i]);
			int			nitems = leaf->last + 1 - leaf->first;

			batch->target[seek[i].which].fraction =
				Max(0.0, Min((seek[i].at - leaf->first + 0.5) / nitems, 1.0));
			if (!goes_on)
				continue;
			__builtin_prefetch(&((const PageHeaderData *) leaf->page)->pd_linp[seek[i].at - 1]);
			seek[left++] = seek[i];
		}
		n = left;
	}
}

void
lbt_batch_near(Relation rel, const LbtIndex *index, LbtBatch *batch, bool high_keys)
{
	for (int i = 0; i < batch->n; i++)
	{
		LbtTarget  *target = &batch->target[i];
		Glimpse		leaf;

		if (target->slot + 1 >= index->model.nleaves || !glimpse_leaf(rel, target, &leaf))
			continue;
		if (high_keys)
			__builtin_prefetch(leaf.page + item_place(&leaf, P_HIKEY, sizeof(IndexTupleData)));
		if (!index->keyspec.varies)
			near_by_code(index, &leaf, batch->key[i].code, target);
	}
	if (index->keyspec.varies)
		seek_all(rel, index, batch);
}

/* ---- rows ---- */

/*
 * The row that an item leads to: of a posting list, the nth, or -1, its last
 * one.  False, and an invalid TID, if there is none.
 */
static inline bool
find_row(const Glimpse *leaf, OffsetNumber offset, int nth, ItemPointer row)
{
	uint32		place = item_place(leaf, offset, sizeof(IndexTupleData));
	IndexTupleData item;
	int			n = 1;
	uint32		at = offsetof(IndexTupleData, t_tid);

	ItemPointerSetInvalid(row);
	if (place == 0)
		return false;
	memcpy(&item, leaf->page + place, sizeof(item));
	if (BTreeTupleIsPosting(&item))
	{
		n = BTreeTupleGetNPosting(&item);
		at = BTreeTupleGetPostingOffset(&item) + (nth < 0 ? n - 1 : nth) * sizeof(ItemPointerData);
	}
	if (nth < n && at <= BLCKSZ - place - sizeof(ItemPointerData))
		memcpy(row, leaf->page + place + at, sizeof(ItemPointerData));
	if (!BlockNumberIsValid(ItemPointerGetBlockNumberNoCheck(row)))
		ItemPointerSetInvalid(row);
	return ItemPointerIsValid(row);
}

/* Is there an item that equals the key in the batch's nequal columns? */
static pg_noinline bool
equals_key(const LbtIndex *index, const Glimpse *leaf, int offset, LbtBatch *batch, int which)
{
	bool		equal;

	return offset >= leaf->first && offset <= leaf->last &&
		item_side(index, leaf, offset, batch, which, &equal) != NOT_TOLD && equal;
}

/*
 * Is an item that equals the key beyond the scan's end?  The column of that
 * has a place, and is not encoded.
 */
static pg_noinline bool
is_beyond_end(const LbtIndex *index, const Glimpse *leaf, int offset, LbtBatch *batch, int which)
{
	const LbtKeyValue *end = &batch->key[which].values[batch->ncolumns];
	LbtKeyValue item[LBT_CODE_COLUMNS];
	int			cmp;

	if (end->isnull)
		return false;
	if (!item_values(index, leaf, offset, batch->nequal + 1, item))
		return true;
	cmp = lbt_compare_value(&index->keyspec.column[batch->nequal], end, &item[batch->nequal]);
	return (cmp != 0 ? cmp > 0 : batch->end_past) == batch->backward;
}

/*
 * The item that the scan will return first, of those that are equal to the
 * key, from the batch's entry on; InvalidOffsetNumber if there is none.
 */
static inline OffsetNumber
first_entry(Relation rel, const LbtIndex *index, LbtBatch *batch, int which, Glimpse *leaf)
{
	int			offset = batch->entry[which];

	if (offset == InvalidOffsetNumber || !glimpse_leaf(rel, &batch->target[which], leaf) ||
		offset > leaf->last)
		return InvalidOffsetNumber;
	while (unlikely(is_dead(leaf, offset)))
	{
		offset += batch->backward ? -1 : 1;
		if (!equals_key(index, leaf, offset, batch, which))
			return InvalidOffsetNumber;
	}
	return batch->ends && is_beyond_end(index, leaf, offset, batch, which) ? InvalidOffsetNumber :
		offset;
}

void
lbt_batch_rows(Relation rel, const LbtIndex *index, Relation table, LbtBatch *batch,
			   BlockNumber *missing)
{
	ItemPointerData row[LBT_BATCH];
	Buffer		buffer[LBT_BATCH];

	if (!index->keyspec.varies)
		seek_all(rel, index, batch);
	batch->nblocks = 0;
	for (int i = 0; i < batch->n; i++)
	{
		Glimpse		leaf;
		OffsetNumber entry = first_entry(rel, index, batch, i, &leaf);

		ItemPointerSetInvalid(&row[i]);
		if (entry == InvalidOffsetNumber ||
			!find_row(&leaf, entry, batch->backward ? -1 : 0, &row[i]))
			continue;
		batch->nblocks += i == 0 || ItemPointerGetBlockNumberNoCheck(&row[i]) !=
			ItemPointerGetBlockNumberNoCheck(&row[i - 1]);
		__builtin_prefetch(lbt_block_hint(table, ItemPointerGetBlockNumber(&row[i])));
	}
	for (int i = 0; i < batch->n; i++)
	{
		buffer[i] = ItemPointerIsValid(&row[i]) ?
			*lbt_block_hint(table, ItemPointerGetBlockNumber(&row[i])) : InvalidBuffer;
		if (buffer[i] < 1 || buffer[i] > NBuffers)
			buffer[i] = InvalidBuffer;
		else
			lbt_prefetch_page(buffer[i], &row[i]);
	}
	for (int i = 0; i < batch->n; i++)
	{
		BlockNumber block = ItemPointerGetBlockNumberNoCheck(&row[i]);
		bool		at_hand = buffer[i] != InvalidBuffer &&
			(missing == NULL || lbt_buffer_holds(buffer[i], table, block));

		if (at_hand)
			lbt_prefetch_row(buffer[i], &row[i]);
		if (missing != NULL)
			missing[i] = !at_hand && ItemPointerIsValid(&row[i]) ? block : InvalidBlockNumber;
	}
}

int
lbt_batch_key_rows(Relation rel, const LbtIndex *index, LbtBatch *batch, int which,
				   BlockNumber *block)
{
	Glimpse		leaf;
	int			offset = first_entry(rel, index, batch, which, &leaf);
	int			n = 0;
	ItemPointerData row;

	if (offset == InvalidOffsetNumber)
		return 0;
	do
	{
		for (int i = 0; n < LBT_BATCH && !is_dead(&leaf, offset) &&
			 find_row(&leaf, offset, i, &row); i++)
			block[n++] = ItemPointerGetBlockNumber(&row);
	} while (n < LBT_BATCH && equals_key(index, &leaf, ++offset, batch, which));
	return n;
}
