/*
 * spline.h - a piecewise linear function from code to slot, of bounded error.
 *
 * Fitted in one pass by the greedy spline corridor (Neumann and Michel,
 * "Smooth Interpolating Histograms with Error Guarantees", 2008; as
 * RadixSpline). Knots are data points, so the function is continuous and never
 * decreases.
 *
 * Contract: for the smallest slot of every code fitted, the prediction is
 * within max_error leaves of that slot, and one for rounding; for a code
 * between two of these it lies between their predictions.  Of equal codes only
 * the first slot counts.  No allocation, no globals.
 */
#ifndef LBT_SPLINE_H
#define LBT_SPLINE_H

#include "leafcache.h"

typedef struct LbtKnot
{
	uint64_t	code;
	double		slope;			/* slots per code step up to the next knot */
	uint32_t	slot;
	uint32_t	unused;			/* zero */
} LbtKnot;

/*
 * Fit leaves[0..nleaves) with at most max_error leaves of error at the given
 * points.  knots has room for max_knots, at least 2; nleaves always suffice.
 * Returns how many there are; more than max_knots, with worthless knots, if
 * they do not fit; 0 if codes are not in order, or nleaves is 0.
 */
extern uint32_t lbt_spline_fit(const LbtLeaf *leaves, uint32_t nleaves, uint32_t max_error,
							   LbtKnot *knots, uint32_t max_knots);

/*
 * The predicted slot of a code, within [0, nleaves), whatever knots contain.
 * nknots and nleaves must be at least 1.
 */
static inline uint32_t
lbt_spline_predict(const LbtKnot *knots, uint32_t nknots, uint32_t nleaves, uint64_t code)
{
	uint32_t	base = 0,
				len = nknots;
	double		slot;

	/* last knot with code <= this, or the first; compiles to no branches */
	while (len > 1)
	{
		uint32_t	half = len / 2;

		base = knots[base + half].code <= code ? base + half : base;
		len -= half;
	}
	slot = (double) knots[base].slot;
	if (code > knots[base].code)
		slot += (double) (code - knots[base].code) * knots[base].slope;
	if (!(slot > 0))
		return 0;				/* NaN ends here too */
	if (slot >= (double) nleaves)
		return nleaves - 1;
	return (uint32_t) slot;
}

#endif							/* LBT_SPLINE_H */
