/*
 * place.h - from a new index tuple to its place on a leaf: where an insert's prediction is trusted.
 */
#ifndef LBT_PLACE_H
#define LBT_PLACE_H

#include "key/bound.h"
#include "registry/view.h"

typedef enum LbtPlacement
{
	LBT_PLACED,
	LBT_PLACE_FULL,				/* the leaf is right, but has no room, or a
								 * posting list must be split */
	LBT_PLACE_EQUAL,			/* a unique index, and an equal key on the
								 * leaf */
	LBT_PLACE_UNKNOWN			/* not proven */
} LbtPlacement;

typedef struct LbtPlace
{
	Buffer		buf;			/* LBT_PLACED: pinned and exclusively locked */
	OffsetNumber offset;		/* ... the tuple goes in front of this item */
	bool		moved;			/* the leaf is a right neighbour of the
								 * predicted one */

	/*
	 * A leaf that nbtree may be about to split; block is InvalidBlockNumber
	 * when there is none.
	 */
	BlockNumber block;
	BlockNumber next;
} LbtPlace;

/*
 * Find the place of a tuple: the leaf whose key space holds (key, heap TID), and the place among its
 * items.  key is the tuple's key as a bound, not past; itup carries its heap TID.  With unique, success
 * also means that the index holds no equal key, on any page.
 *
 * Anything but LBT_PLACED leaves nothing locked or pinned.  The index's model must be ready, and the
 * caller must hold no lock.
 */
extern LbtPlacement lbt_place(Relation rel, LbtIndex *index, const LbtBound *key, IndexTuple itup,
							  bool unique, LbtPlace *place);

/*
 * After nbtree has inserted what could not be placed: has it split place's leaf (true), and where do
 * further tuples of this code go?  Reads one page.
 */
extern bool lbt_place_after_btree(Relation rel, LbtIndex *index, const LbtBound *key,
								  const LbtPlace *place);

#endif							/* LBT_PLACE_H */
