/*
 * model.c - laying out and opening a model; see model.h.
 */
#include "model.h"

#include <string.h>

/* Leaf cache entries must not straddle cache lines, given a piece that starts on one. */
static size_t
align64(size_t n)
{
	return (n + 63) & ~(size_t) 63;
}

static size_t
knots_offset(void)
{
	return align64(sizeof(LbtModelHeader));
}

static size_t
tree_offset(uint32_t nknots)
{
	return align64(knots_offset() + (size_t) nknots * sizeof(LbtKnot));
}

static size_t
leaves_offset(uint32_t nknots, uint32_t tree_bytes)
{
	return align64(tree_offset(nknots) + tree_bytes);
}

size_t
lbt_model_bytes(uint32_t nleaves, uint32_t nknots, uint32_t tree_bytes)
{
	return leaves_offset(nknots, tree_bytes) + (size_t) nleaves * sizeof(LbtLeaf);
}

static uint32_t
count_segments(const void *tree, uint32_t bytes)
{
	LbtCodeTree opened;

	return lbt_codetree_open(tree, bytes, &opened) ? lbt_codetree_subcodes(&opened) : 0;
}

void
lbt_model_assemble(void *mem, const LbtModelHeader *header, const LbtKnot *knots, const void *tree,
				   const LbtLeaf *leaves)
{
	LbtModelHeader *h = mem;

	*h = *header;
	h->magic = LBT_MODEL_MAGIC;
	h->version = LBT_MODEL_VERSION;
	h->bytes = lbt_model_bytes(header->nleaves, header->nknots, header->tree_bytes);
	h->segments = count_segments(tree, header->tree_bytes);
	h->ties = lbt_leaf_ties(leaves, header->nleaves);
	memcpy((char *) mem + knots_offset(), knots, (size_t) header->nknots * sizeof(LbtKnot));
	if (header->tree_bytes > 0)
		memcpy((char *) mem + tree_offset(header->nknots), tree, header->tree_bytes);
	memcpy((char *) mem + leaves_offset(header->nknots, header->tree_bytes), leaves,
		   (size_t) header->nleaves * sizeof(LbtLeaf));
}

bool
lbt_model_open(void *mem, size_t bytes, LbtModel *model)
{
	const LbtModelHeader *h = mem;
	LbtModelHeader copy;

	if (bytes < sizeof(LbtModelHeader))
		return false;
	copy = *h;					/* checked and used from here: the original
								 * may change */
	if (copy.magic != LBT_MODEL_MAGIC || copy.version != LBT_MODEL_VERSION ||
		copy.nleaves < 1 || copy.nknots < 1 || copy.nknots > copy.nleaves ||
		copy.bytes != bytes || lbt_model_bytes(copy.nleaves, copy.nknots, copy.tree_bytes) != bytes ||
		!lbt_keycode_valid(&copy.code) ||
		!lbt_codetree_open((const char *) mem + tree_offset(copy.nknots), copy.tree_bytes, &model->tree))
		return false;
	model->nleaves = copy.nleaves;
	model->nknots = copy.nknots;
	model->knots = (const LbtKnot *) ((const char *) mem + knots_offset());
	model->leaves = (LbtLeaf *) ((char *) mem + leaves_offset(copy.nknots, copy.tree_bytes));
	model->code = copy.code;
	return true;
}
