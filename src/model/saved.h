/*
 * saved.h - a model in a few kilobytes: what a metapage has room for
 * (src/README, "The saved model in the metapage").
 *
 *     key code | knots: code and block of leaves at even distances
 *
 * Contract: decoded leaves have non-decreasing codes, the first 0, and block
 * numbers that a leaf may have.  Bytes to decode are untrusted: whatever they
 * are, nothing outside them is read, and the work is proportional to the
 * leaves asked for.  No allocation, no globals.
 */
#ifndef LBT_SAVED_H
#define LBT_SAVED_H

#include <stddef.h>

#include "keycode.h"
#include "leafcache.h"

/*
 * Write key code and leaves, at least one, to at most room bytes.  Returns the
 * bytes used; 0 if they do not fit, if codes decrease, or if over half of the
 * leaves would share a code, or come back with a distant block or with a code
 * off by a leaf.
 */
extern size_t lbt_saved_encode(void *out, size_t room, const LbtKeyCode *code,
							   const LbtLeaf *leaves, uint32_t nleaves);

/*
 * Read key code and nleaves leaves, at least one, from len bytes.  Returns
 * false, with worthless results, if lbt_saved_encode() cannot have written
 * these.
 */
extern bool lbt_saved_decode(const void *in, size_t len, LbtKeyCode *code, LbtLeaf *leaves,
							 uint32_t nleaves);

#endif							/* LBT_SAVED_H */
