/*
 * modelmem.h - the memory of models: allocation within learnedbtree.max_model_memory, eviction, freeing.
 */
#ifndef LBT_MODELMEM_H
#define LBT_MODELMEM_H

#include "model/model.h"
#include "registry/control.h"

/* For LbtTrained.blocks: no growth of the file makes up for it. */
#define NO_GROWTH_BLOCKS (MaxBlockNumber / 2)

/* The outcome of a training. */
typedef struct LbtTrained
{
	LbtState	state;			/* LBT_READY: with a model */
	LbtModelHeader header;
	const LbtKnot *knots;
	const void *tree;			/* of codes, header.tree_bytes; NULL: none */
	const LbtLeaf *leaves;
	const LbtLeaf *image_leaves;	/* for the image, which has no tree of codes; NULL: the leaves */
	BlockNumber blocks;			/* the file's size */
	uint32		fingerprint;	/* of the leaves' blocks in order: has anything changed? */
	XLogRecPtr	image_lsn;		/* of the metapage with the model's image */
} LbtTrained;

/*
 * The memory of a locked entry's model, which is about to be taken from it and freed.  Maps it: if that cannot be done,
 * the error comes while nothing has been changed, and the model stays where others find it.
 */
extern dsa_pointer lbt_model_of(const LbtEntry *entry);

/*
 * Free the memory of a model that no entry names any more; without one only the generation is raised.
 * The caller holds no partition lock.
 */
extern void lbt_model_free(dsa_pointer memory, Size bytes);

/*
 * Shared memory for a model, filled in, others evicted if need be; invalid, with the reason in *state,
 * when there is no room.
 */
extern dsa_pointer lbt_model_store(const LbtFile *file, const LbtTrained *trained, Size bytes, LbtState *state);

/* Take a file's model away; its entry stays, to say why.  Nothing happens when there is none. */
extern void lbt_model_evict(const LbtFile *file);

/* Bytes of all models; and whether as many more would still be within the limit.  No dsa calls. */
extern uint64 lbt_registry_bytes(void);
extern bool lbt_registry_has_room(Size bytes);

/*
 * Has the least recently used model been idle for a minute?  One look through all of them a second, by whichever
 * process asks first; the others are told no.
 */
extern bool lbt_registry_has_idle(void);

#endif							/* LBT_MODELMEM_H */
