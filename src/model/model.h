/*
 * model.h - a whole model in one piece: header, knots, leaf cache, separators.
 *
 * The piece is position independent and immutable once assembled, except the
 * leaf cache's buffer hints.  lbt_model_open() checks all that readers rely on
 * to stay in bounds, except where separators are, which is checked each time.
 */
#ifndef LBT_MODEL_H
#define LBT_MODEL_H

#include <stddef.h>

#include "separators.h"
#include "spline.h"

typedef struct LbtModelHeader
{
	uint64_t	bytes;			/* the whole piece */
	uint32_t	nleaves;
	uint32_t	nknots;
	uint32_t	saved;			/* 1: the metapage's, with codes not exact */
	uint32_t	without_lsn;	/* 1: leaves may have none */
	uint32_t	height;			/* pages a descent reads */
	uint32_t	separator_bytes;	/* 0: none are kept */
	uint64_t	lsn;			/* where the training began; 0: unknown */
	int64_t		trained_at;		/* microseconds, the server's timestamp */
	double		training_ms;
	LbtKeyCode	code;
} LbtModelHeader;

/* A model ready for use: private copies of all bounds, and the arrays. */
typedef struct LbtModel
{
	uint32_t	nleaves;
	uint32_t	nknots;
	bool		saved;			/* these three as in the header */
	uint64_t	lsn;
	bool		without_lsn;
	const LbtKnot *knots;
	LbtLeaf    *leaves;
	const LbtKeyCode *code;		/* at least lbt_keycode_bytes() of it */
	LbtSeparators separators;
} LbtModel;

extern size_t lbt_model_bytes(uint32_t nleaves, uint32_t nknots, uint32_t separator_bytes);

/*
 * Lay out a model in mem, which must hold lbt_model_bytes() and be aligned to
 * 8 bytes (64 is faster).  The header is copied, and its bytes are filled in;
 * separators, of header->separator_bytes, are lbt_separators_build()'s.
 */
extern void lbt_model_assemble(void *mem, const LbtModelHeader *header, const LbtKnot *knots,
							   const LbtLeaf *leaves, const void *separators);

/*
 * Open a piece of memory of this size as a model; false if it is none.  code
 * becomes a copy of the key code, for the model; it may be put elsewhere.
 */
extern bool lbt_model_open(void *mem, size_t bytes, LbtModel *model, LbtKeyCode *code);

/* The slot of the leaf that should hold a code: lbt_leaf_search()'s. */
static inline uint32_t
lbt_model_slot(const LbtModel *m, uint64_t code, bool past_equal)
{
	uint32_t	guess = lbt_spline_predict(m->knots, m->nknots, m->nleaves, code);

	return lbt_leaf_search(m->leaves, m->nleaves, guess, code, past_equal);
}

#endif							/* LBT_MODEL_H */
