/*
 * insert.c - insert on the predicted leaf if proven right, else by nbtree.
 */
#include "am/am.h"

#include "am/newrows.h"
#include "executor/instrument.h"
#include "proof/locate.h"
#include "train/demand.h"
#include "train/train.h"
#include "storage/predicate.h"

/* Leave larger ones to nbtree: it reports those above a third of a page. */
#define SMALL_TUPLE (BLCKSZ / 4)

/* A statement without a model asks for one again after this many rows. */
#define ROWS_BEFORE_ASKING 1024

/* What a statement keeps from row to row, in ii_AmCache. */
typedef struct Inserter
{
	LbtIndex   *index;			/* NULL: no model for this index */
	uint32		rows_without;	/* rows seen without a model */
	bool		several;		/* the statement has inserted a row already */
	LbtNewRows *ahead;			/* NULL before the second row */
	uint8	   *scratch;		/* LBT_SCRATCH_BYTES for each key column, if
								 * encoded */
} Inserter;

/*
 * Fill the relcache entry's caches that nbtree's comparison and search keys
 * use, so that nobody reads catalogs or the metapage under a page lock.
 */
static void
warm_up(Relation rel)
{
	bool		heapkeyspace;
	bool		allequalimage;

	for (int i = 1; i <= IndexRelationGetNumberOfKeyAttributes(rel); i++)
		(void) index_getprocinfo(rel, i, BTORDER_PROC);
	_bt_metaversion(rel, &heapkeyspace, &allequalimage);
}

/*
 * The view lives until the transaction ends, longer than any statement.
 * Without an IndexInfo there is nowhere to keep it.
 */
static Inserter *
get_inserter(Relation rel, IndexInfo *info)
{
	Inserter   *inserter;
	LbtIndex   *index;

	if (info == NULL)
		return NULL;
	if (likely(info->ii_AmCache != NULL))
		return info->ii_AmCache;
	inserter = MemoryContextAllocZero(info->ii_Context, sizeof(Inserter));
	index = lbt_learned_view(rel);
	if (index != NULL && index->shareable && index->keyspec.ncolumns > 0)
	{
		inserter->index = index;
		if (index->keyspec.encoded)
			inserter->scratch = MemoryContextAlloc(info->ii_Context,
												   index->keyspec.ncolumns * LBT_SCRATCH_BYTES);
		warm_up(rel);
	}
	info->ii_AmCache = inserter;
	return inserter;
}

/*
 * Put the tuple on its predicted leaf; false if nbtree has to do it.
 * lbt_place() takes the page lock, held until the tuple is there and logged.
 * An error in between (a serialization failure) changes nothing and releases
 * it.
 */
static bool
insert_predicted(Relation rel, LbtIndex *index, const LbtBound *key, Datum *values, bool *isnull,
				 ItemPointer tid, bool unique, LbtPlace *place)
{
	IndexTuple	itup = index_form_tuple(RelationGetDescr(rel), values, isnull);
	LbtEvent	event = LBT_EV_INSERT_FALLBACK;

	itup->t_tid = *tid;
	place->block = InvalidBlockNumber;
	if (IndexTupleSize(itup) <= SMALL_TUPLE)
	{
		if (unlikely(rel->rd_amcache == NULL))
			warm_up(rel);		/* an invalidation has come since */
		event = lbt_place(rel, index, key, itup, unique, place);
		lbt_count(index, LBT_EV_INSERT);
		lbt_count(index, event);
		if (place->moved)
			lbt_count(index, LBT_EV_INSERT_MOVED);
		index->counts.misses += place->moved || event == LBT_EV_INSERT_FALLBACK;
		if (unlikely(index->inserting.asked) && event != LBT_EV_INSERT_FALLBACK)
			lbt_count(index, LBT_EV_PREFETCHED_USED);
		index->inserting.asked = false;
	}
	if (event == LBT_EV_INSERT_PLACED)
	{
		CheckForSerializableConflictIn(rel, NULL, BufferGetBlockNumber(place->buf));
		lbt_bt_add_to_leaf(rel, place->buf, place->offset, itup);
		_bt_relbuf(rel, place->buf);
	}
	pfree(itup);
	return event == LBT_EV_INSERT_PLACED;
}

/*
 * An insert that falls back to nbtree has wasted its visit of the leaf, unless
 * that is full: making room costs much more.  Where most do (many equal keys),
 * leave some to nbtree.  But try 32 of about 1,000 in any case: else we would
 * not learn that leaves split.
 */
#define LAST_PAUSE_BUT_ONE 256

static inline void
count_attempt(LbtInserting *inserting, bool useful)
{
	inserting->pause.tally.judged++;
	inserting->pause.tally.used += useful;
	if (lbt_pause_decide(&inserting->pause, inserting->number, false))
		inserting->pause.length = Min(inserting->pause.length, LAST_PAUSE_BUT_ONE);
}

/*
 * nbtree inserts the entry, without an Inserter.  It may be the row's first,
 * and what was brought in for it is of use.
 */
static void
leave_to_btree(Relation rel, Relation heap, ItemPointer tid)
{
	LbtIndex   *index = lbt_learned_view(rel);

	if (index == NULL)
		return;
	if (unlikely(index->inserting.reads != pgBufferUsage.shared_blks_read))
		lbt_row_ahead(rel, index, heap, tid);
	if (unlikely(index->inserting.asked))
		lbt_count(index, LBT_EV_PREFETCHED_USED);
	index->inserting.asked = false;
	index->inserting.foreseen = index->mailbox.target.generation != 0;
	index->mailbox.taken |= index->inserting.foreseen;
	index->mailbox.target.generation = 0;
}

/*
 * The view of the index whose model shall place this tuple, with the tuple's
 * key; NULL if nbtree has to insert it.
 *
 * A deferred check looks for the tuple that is there already; and where an
 * UPDATE leaves a unique index's key as it was, an equal key is certain to be
 * there.  Leave both to nbtree.
 */
static inline LbtIndex *
index_to_predict(Relation rel, const Datum *values, const bool *isnull, ItemPointer tid,
				 Relation heap, IndexUniqueCheck check_unique, bool unchanged, IndexInfo *info,
				 LbtBound *key)
{
	Inserter   *inserter;
	LbtIndex   *index;

	if (!lbt_enable || !lbt_enable_insert || check_unique == UNIQUE_CHECK_EXISTING)
		return NULL;
	if (check_unique != UNIQUE_CHECK_NO && unchanged)
	{
		leave_to_btree(rel, heap, tid);
		return NULL;
	}
	if ((inserter = get_inserter(rel, info)) == NULL || inserter->index == NULL)
		return NULL;
	index = inserter->index;
	if (unlikely(index->inserting.reads != pgBufferUsage.shared_blks_read))
		lbt_row_ahead(rel, index, heap, tid);
	lbt_index_update(index);
	if (unlikely(index->state != LBT_READY) &&
		inserter->rows_without++ % ROWS_BEFORE_ASKING == 0)
		lbt_train_on_use(rel, index);
	if (unlikely(index->state != LBT_READY))
		return NULL;
	if (unlikely(index->inserting.number++ < index->inserting.pause.resume))
		return NULL;
	key->ncolumns = index->keyspec.ncolumns;
	key->past = false;
	if (!lbt_key_of(&index->keyspec, key->ncolumns, NULL, true, values, isnull,
					inserter->scratch, key->value))
		return NULL;
	if (inserter->several)
		lbt_copy_ahead(&inserter->ahead, rel, index, heap, tid, info);
	inserter->several = true;

	/* It may have found the model gone. */
	return index->state == LBT_READY ? index : NULL;
}

bool
lbt_insert(Relation rel, Datum *values, bool *isnull, ItemPointer tid, Relation heap,
		   IndexUniqueCheck check_unique, bool unchanged, IndexInfo *info)
{
	bool		unique = check_unique != UNIQUE_CHECK_NO;
	LbtPlace	place;
	LbtBound	key;
	LbtIndex   *index = index_to_predict(rel, values, isnull, tid, heap, check_unique, unchanged,
										 info, &key);
	volatile bool result;

	if (index != NULL)
	{
		bool		placed = insert_predicted(rel, index, &key, values, isnull, tid, unique,
											  &place);

		count_attempt(&index->inserting, placed || place.block != InvalidBlockNumber);
		if (placed)
		{
			if (unlikely(place.moved))
				lbt_report_misses(index);
			return unique;
		}
	}
	if (LBT_INSERT_NEEDS_MASK)
		LBT_AS_BTREE(rel, result = btinsert(rel, values, isnull, tid, heap, check_unique,
											unchanged, info));
	else
		result = btinsert(rel, values, isnull, tid, heap, check_unique, unchanged, info);
	if (index == NULL)
		return result;
	if (lbt_place_after_btree(rel, index, &key, &place))
	{
		lbt_count(index, LBT_EV_SPLIT);
		index->counts.misses++;
	}
	lbt_report_misses(index);
	return result;
}
