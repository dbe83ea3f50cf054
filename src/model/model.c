/*
 * model.c - laying out and opening a model; see model.h.
 */
#include "model.h"

#include <string.h>

/* Where the parts of a model are. */
typedef struct Offsets
{
	size_t		knots;
	size_t		tree;
	size_t		leaves;
	size_t		end;
} Offsets;

/* Leaf cache entries must not straddle cache lines, given a piece that starts on one. */
static size_t
align64(size_t n)
{
	return (n + 63) & ~(size_t) 63;
}

static Offsets
lay_out(uint32_t nleaves, uint32_t nknots, uint32_t tree_bytes)
{
	Offsets		at;

	at.knots = align64(sizeof(LbtModelHeader));
	at.tree = align64(at.knots + (size_t) nknots * sizeof(LbtKnot));
	at.leaves = align64(at.tree + tree_bytes);
	at.end = at.leaves + (size_t) nleaves * sizeof(LbtLeaf);
	return at;
}

size_t
lbt_model_bytes(uint32_t nleaves, uint32_t nknots, uint32_t tree_bytes)
{
	return lay_out(nleaves, nknots, tree_bytes).end;
}

void
lbt_model_assemble(void *mem, const LbtModelHeader *header, const LbtKnot *knots, const void *tree,
				   const LbtLeaf *leaves)
{
	const LbtCodeTree opened = {.memory = tree,.bytes = header->tree_bytes};
	Offsets		at = lay_out(header->nleaves, header->nknots, header->tree_bytes);
	LbtModelHeader *h = mem;

	*h = *header;
	h->magic = LBT_MODEL_MAGIC;
	h->version = LBT_MODEL_VERSION;
	h->bytes = at.end;
	h->subcodes = lbt_codetree_subcodes(&opened);
	h->ties = lbt_leaf_ties(leaves, header->nleaves);
	memcpy((char *) mem + at.knots, knots, (size_t) header->nknots * sizeof(LbtKnot));
	if (header->tree_bytes > 0)
		memcpy((char *) mem + at.tree, tree, header->tree_bytes);
	memcpy((char *) mem + at.leaves, leaves, (size_t) header->nleaves * sizeof(LbtLeaf));
}

bool
lbt_model_open(void *mem, size_t bytes, LbtModel *model)
{
	LbtModelHeader copy;		/* checked and used: the original may change */
	Offsets		at;

	if (bytes < sizeof(LbtModelHeader))
		return false;
	memcpy(&copy, mem, sizeof(copy));
	at = lay_out(copy.nleaves, copy.nknots, copy.tree_bytes);
	if (copy.magic != LBT_MODEL_MAGIC || copy.version != LBT_MODEL_VERSION ||
		copy.nleaves < 1 || copy.nknots < 1 || copy.nknots > copy.nleaves ||
		copy.bytes != bytes || at.end != bytes || !lbt_keycode_valid(&copy.code) ||
		!lbt_codetree_open((const char *) mem + at.tree, copy.tree_bytes, &model->tree))
		return false;
	model->nleaves = copy.nleaves;
	model->nknots = copy.nknots;
	model->knots = (const LbtKnot *) ((const char *) mem + at.knots);
	model->leaves = (LbtLeaf *) ((char *) mem + at.leaves);
	model->code = copy.code;
	return true;
}
