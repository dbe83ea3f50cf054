/*
 * imagestream.h - the leaves in an image: range-coded blocks and codes, as exact as the room allows.
 *
 * Private to the image; see image.h.
 */
#ifndef LBT_IMAGESTREAM_H
#define LBT_IMAGESTREAM_H

#include <stddef.h>

#include "leafcache.h"

/*
 * How exactly codes are told: 0 is exactly; anything else is the step in which places between leaves
 * are given, in 65536ths of a leaf.
 */
#define LBT_STREAM_EXACT 0
#define LBT_STREAM_COARSEST (2 * UINT32_C(65536))

/* May a leaf have this block? */
static inline bool
lbt_stream_valid_block(int64_t block)
{
	return block >= 1 && block < UINT32_MAX;
}

/*
 * Write leaves, in key order, to room bytes.  Returns the bytes used; 0 when it does not fit.  *lost
 * is about how many leaves' worth of keys will be looked for in a wrong leaf.  The leaves are not
 * changed, but for the first one's code, which is 0.
 */
extern size_t lbt_stream_write(uint8_t *out, size_t room, LbtLeaf *leaves, uint32_t nleaves,
							   uint32_t step, double *lost);

/* The same with the finest step that fits, which may not be coarser than the given one. */
extern size_t lbt_stream_write_finest(uint8_t *out, size_t room, LbtLeaf *leaves, uint32_t nleaves,
									  uint32_t coarsest, uint32_t *step, double *lost);

/* Read nleaves leaves.  Returns false when the bytes are impossible or too few; the leaves are
 * worthless then. */
extern bool lbt_stream_read(const uint8_t *in, size_t len, LbtLeaf *leaves, uint32_t nleaves,
							uint32_t step);

#endif							/* LBT_IMAGESTREAM_H */
