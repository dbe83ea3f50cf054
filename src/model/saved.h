/*
 * saved.h - a model in a few kilobytes: what a metapage has room for.
 *
 *     key code | blocks: runs in key order | codes: of every n-th leaf
 *
 * Blocks are saved as they are: where leaves have been scattered by splits, they may not fit.  Of the codes as many are
 * saved as there is room for.  Those between are put on a straight line, so a key near a leaf's end may be looked for
 * in its neighbour.
 *
 * Contract: leaves decoded have non-decreasing codes, the first of them 0, and block numbers that a leaf may have.
 * Bytes to decode are untrusted: whatever they are, nothing outside them is read, and the work is in proportion to the
 * leaves asked for.  No allocation, no globals.
 */
#ifndef LBT_SAVED_H
#define LBT_SAVED_H

#include <stddef.h>

#include "keycode.h"
#include "leafcache.h"

/*
 * Write key code and leaves, at least one, to at most room bytes.  Returns the bytes used; 0 when it does not fit, when
 * codes decrease, or when more than a quarter of the leaves would share a code or come back with one off by a leaf.
 */
extern size_t lbt_saved_encode(void *out, size_t room, const LbtKeyCode *code, const LbtLeaf *leaves,
							   uint32_t nleaves);

/*
 * Read key code and nleaves leaves, at least one, from exactly len bytes.  False, and both are worthless, when these
 * are not what lbt_saved_encode() writes.
 */
extern bool lbt_saved_decode(const void *in, size_t len, LbtKeyCode *code, LbtLeaf *leaves, uint32_t nleaves);

#endif							/* LBT_SAVED_H */
