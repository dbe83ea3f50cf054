/*
 * model.c - laying out and opening a model; see model.h.
 */
#include "model.h"

/* Where the parts of a model are. */
typedef struct Offsets
{
	size_t		knots;
	size_t		leaves;
	size_t		separators;
	size_t		end;
} Offsets;

/* No leaf cache entry straddles a cache line if the piece starts on one. */
static size_t
align64(size_t n)
{
	return (n + 63) & ~(size_t) 63;
}

static Offsets
lay_out(uint32_t nleaves, uint32_t nknots, uint32_t separator_bytes)
{
	Offsets		at;

	at.knots = align64(sizeof(LbtModelHeader));
	at.leaves = align64(at.knots + (size_t) nknots * sizeof(LbtKnot));
	at.separators = at.leaves + (size_t) nleaves * sizeof(LbtLeaf);
	at.end = at.separators + separator_bytes;
	return at;
}

size_t
lbt_model_bytes(uint32_t nleaves, uint32_t nknots, uint32_t separator_bytes)
{
	return lay_out(nleaves, nknots, separator_bytes).end;
}

void
lbt_model_assemble(void *mem, const LbtModelHeader *header, const LbtKnot *knots,
				   const LbtLeaf *leaves, const void *separators)
{
	Offsets		at = lay_out(header->nleaves, header->nknots, header->separator_bytes);
	LbtModelHeader *h = mem;

	*h = *header;
	h->bytes = at.end;
	memcpy((char *) mem + at.knots, knots, (size_t) header->nknots * sizeof(LbtKnot));
	memcpy((char *) mem + at.leaves, leaves, (size_t) header->nleaves * sizeof(LbtLeaf));
	if (header->separator_bytes > 0)
		memcpy((char *) mem + at.separators, separators, header->separator_bytes);
}

bool
lbt_model_open(void *mem, size_t bytes, LbtModel *model, LbtKeyCode *code)
{
	LbtModelHeader copy;		/* checked and used: the original may change */
	Offsets		at;

	if (bytes < sizeof(LbtModelHeader))
		return false;
	memcpy(&copy, mem, sizeof(copy));
	at = lay_out(copy.nleaves, copy.nknots, copy.separator_bytes);
	if (copy.nleaves < 1 || copy.nknots < 1 || copy.nknots > copy.nleaves ||
		copy.bytes != bytes || at.end != bytes || lbt_keycode_bytes(&copy.code) == 0 ||
		!lbt_separators_open((const char *) mem + at.separators, copy.separator_bytes,
							 copy.nleaves, &model->separators))
		return false;
	model->nleaves = copy.nleaves;
	model->nknots = copy.nknots;
	model->saved = copy.saved != 0;
	model->lsn = copy.lsn;
	model->without_lsn = copy.without_lsn != 0;
	model->knots = (const LbtKnot *) ((const char *) mem + at.knots);
	model->leaves = (LbtLeaf *) ((char *) mem + at.leaves);
	*code = copy.code;
	model->code = code;
	return true;
}
