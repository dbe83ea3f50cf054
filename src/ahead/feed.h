/*
 * feed.h - keys that are known before they are looked up or inserted.
 *
 * A producer knows items in the order in which their keys will be needed, and
 * numbers them: outer rows, rows to be written, probes of a scan.  The feed
 * asks it for their keys in batches, predicts where they are, and brings it
 * in; its consumer says which item comes now.
 *
 *     items    ... 17  18  19  20 | 21  22  23  24 | 25 ...
 *                      |    now   |      next      |  not asked for yet
 *                      |          from now's first item on, its leaves;
 *                      |          from the middle of now on, its rows' blocks
 *                      comes now: what it needs is read, its prediction in the
 *                      index's mailbox
 *
 * The next batch is begun early only while blocks are missing (src/README,
 * "The feed").  Everything here is a hint.  A feed holds no lock and no pin
 * between calls, nor while it asks its producer; and no relation of its own.
 */
#ifndef LBT_FEED_H
#define LBT_FEED_H

#include "ahead/predict.h"

/* What a producer says of an item. */
typedef enum LbtNext
{
	LBT_KEY,					/* its key is this */
	LBT_NO_KEY,					/* it will not be looked up, or nobody knows */
	LBT_NO_MORE					/* no more is known for now */
} LbtNext;

/*
 * Tell the key of an item, for the feed's ncolumns, and after it, if the feed
 * ends, the value at which a scan from there does (NULL: not known).  Items
 * are asked for one after the other, from LbtFeed.first up to LbtFeed.until:
 * of those that come next, or later ones.  Some may have been asked for
 * before.
 * What the key points to, and the scratch (LBT_SCRATCH_BYTES for each column),
 * must stay until the next batch begins.  May do anything: read, execute,
 * raise errors.
 */
typedef LbtNext (*LbtNextKey) (void *producer, uint64 number, LbtKeyValue *key, uint8 *scratch);

/* Blocks of a batch, on their way into shared buffers. */
typedef struct LbtReads
{
	int			n;
	int			asked;			/* asked for */
	int			come;			/* needed until now */
	int			judged;			/* not needed any more */
	uint64		missing;		/* a bit each: it was, when asked for */
	uint8		key[LBT_BATCH]; /* what each is wanted for, ascending */
	BlockNumber block[LBT_BATCH];
} LbtReads;

typedef struct LbtFeedBatch
{
	uint64		first;			/* items */
	int			nitems;			/* 0: empty */
	int			at;				/* the key at hand, or the last one that was */
	int			nposted;		/* or reached */
	bool		looked;			/* at leaves, for rows */
	bool		followed;		/* the next one has been asked for */
	bool		missed;			/* blocks were missing */
	LbtReads	leaves;
	LbtReads	rows;
	uint8		item[LBT_BATCH];	/* of each key, from first on */
	LbtBatch	keys;
} LbtFeedBatch;

typedef struct LbtFeed
{
	/* The producer's, zeroed but for what it sets: */
	LbtNextKey	next_key;
	void	   *producer;
	MemoryContext context;		/* as long as the feed */
	LbtIndex   *index;
	Relation	rel;			/* open in each call */
	Relation	table;			/* ... if rows will be fetched; else NULL */
	int			ncolumns;		/* of keys; as in LbtBatch: */
	int			nequal;
	bool		past;
	bool		backward;
	bool		ends;
	bool		end_past;
	int			most;			/* items in a batch; 0: LBT_BATCH */
	BlockNumber npages;			/* that it brings in, at most; 0: not known */
	bool		all;			/* all items come: begin with large batches */
	bool		steady;			/* go on where keys come to few leaves */
	bool		every;			/* fetch all rows of a key, not its first */
	bool		no_reads;		/* somebody else reads; the view is current */

	/* What it tells: */
	LbtTally	leaves;			/* asked for, of the index */
	LbtTally	rows;			/* ... of the table */
	uint64		batches;
	uint64		predicted;
	LbtPause	pause;
	bool		unused;			/* it is for predictions that nobody took, or
								 * for good */
	uint64		first;			/* the batch that is being made: from here */
	uint64		until;			/* ... to before here */

	/* Its own: */
	uint64		origin;			/* the first item since the start */
	LbtFeedBatch *now;			/* NULL before the first */
	LbtFeedBatch *next;			/* NULL: never needed */
	uint8	   *scratch;
	bool		missed;			/* the batch before missed blocks */
	uint64		rows_from;		/* items for whose rows leaves are read */
	uint64		mail;			/* posted last, by its number; 0: judged */
	int			posted;			/* ... its key's */
} LbtFeed;

/*
 * This item comes now.  Reads what it needs, posts its prediction in the
 * index's mailbox if it has one, and looks at what became of the last one.
 * After each batch a pause may follow (src/README, "Pauses").
 */
extern void lbt_feed_post(LbtFeed *feed, uint64 number);

/*
 * Find the next item from *number on whose key has this code, among those that
 * are known.  Sets *number to it, or beyond what has no keys.
 */
extern bool lbt_feed_find(LbtFeed *feed, uint64 code, uint64 *number);

/*
 * The prediction for this item, whose batch begins if need be; NULL if there
 * is none.  Neither pauses nor posts; where few items of a batch are reached,
 * the next one is small.  May go back.
 */
extern const LbtTarget *lbt_feed_reach(LbtFeed *feed, uint64 number);

/* Are blocks missing, so that the next batch is begun early? */
static inline bool
lbt_feed_misses(const LbtFeed *feed)
{
	return feed->missed || (feed->now != NULL && feed->now->missed);
}

/*
 * For one of several feeds whose items come by turns, this one next: where
 * blocks are missing, begin the next batch, and ask for its leaves; later, for
 * its rows' blocks.  Done for all of them, what they wait for overlaps.
 */
extern void lbt_feed_follow(LbtFeed *feed, uint64 number);
extern void lbt_feed_look(LbtFeed *feed);

/* Blocks turn out to be missing: end a pause that is not for unused ones. */
extern void lbt_feed_wake(LbtFeed *feed);

/* Forget what is known of items; the next one has this number. */
extern void lbt_feed_restart(LbtFeed *feed, uint64 number);

/*
 * For rows that are known without a feed: ask for the block of one that will
 * be read, unless this is off, or it is that of the row before.
 */
extern void lbt_ask_for_row(Relation table, BlockNumber block, LbtTally *asked);

/* Free its batches, after lbt_feed_restart(), if its context goes on. */
extern void lbt_feed_free(LbtFeed *feed);

#endif							/* LBT_FEED_H */
