/*
 * spline.c - the greedy spline corridor; see spline.h for the contract.
 */
#include "spline.h"

#include <math.h>

/* The slopes that keep every point since the last knot within the error. */
typedef struct Corridor
{
	LbtKnot    *knots;
	uint32_t	nknots;
	uint32_t	max_knots;
	double		max_error;
	uint64_t	prev_code;		/* last point accepted */
	uint32_t	prev_slot;
	double		low;			/* slopes */
	double		high;
	bool		full;			/* there was no room for a knot */
} Corridor;

static void
add_knot(Corridor *c, uint64_t code, uint32_t slot)
{
	LbtKnot    *knot = &c->knots[c->nknots];

	if (c->nknots == c->max_knots)
	{
		c->full = true;			/* the rest only looks at the order */
		return;
	}
	if (c->nknots > 0)
	{
		LbtKnot    *left = knot - 1;

		left->slope = (double) (slot - left->slot) / (double) (code - left->code);
	}
	knot->code = code;
	knot->slot = slot;
	knot->slope = 0;
	knot->unused = 0;
	c->nknots++;
	c->low = -INFINITY;
	c->high = INFINITY;
}

static void
add_point(Corridor *c, uint64_t code, uint32_t slot)
{
	const LbtKnot *base = &c->knots[c->nknots - 1];
	double		dx = (double) (code - base->code);
	double		dy = (double) (slot - base->slot);
	double		low;
	double		high;

	if (dy / dx > c->high || dy / dx < c->low)
	{
		/* Outside the corridor: the previous point becomes a knot. */
		add_knot(c, c->prev_code, c->prev_slot);
		base = &c->knots[c->nknots - 1];
		dx = (double) (code - base->code);
		dy = (double) (slot - base->slot);
	}
	low = (dy - c->max_error) / dx;
	high = (dy + c->max_error) / dx;
	if (low > c->low)
		c->low = low;
	if (high < c->high)
		c->high = high;
	c->prev_code = code;
	c->prev_slot = slot;
}

/* The error that lookups will meet, at every point that was fitted. */
static void
measure_errors(const LbtLeaf *leaves, uint32_t nleaves, const LbtKnot *knots, LbtSplineFit *fit)
{
	double		sum = 0;
	uint32_t	npoints = 0;

	fit->max_error = 0;
	for (uint32_t i = 0; i < nleaves; i++)
	{
		double		error;

		if (lbt_leaf_tied(leaves, i))
			continue;
		error = lbt_spline_error(knots, fit->nknots, leaves, nleaves, i);
		if (error > fit->max_error)
			fit->max_error = error;
		sum += error;
		npoints++;
	}
	fit->mean_error = sum / npoints;
}

bool
lbt_spline_fit(const LbtLeaf *leaves, uint32_t nleaves, uint32_t max_error, LbtKnot *knots,
			   uint32_t max_knots, LbtSplineFit *fit)
{
	Corridor	c = {.knots = knots,.max_knots = max_knots,.max_error = (double) max_error};

	fit->nknots = 0;
	if (nleaves == 0)
		return false;
	add_knot(&c, leaves[0].min_code, 0);
	c.prev_code = leaves[0].min_code;
	c.prev_slot = 0;
	for (uint32_t i = 1; i < nleaves; i++)
	{
		if (leaves[i].min_code < c.prev_code)
			return false;
		if (leaves[i].min_code > c.prev_code)
			add_point(&c, leaves[i].min_code, i);
	}
	if (c.prev_code > knots[c.nknots - 1].code)
		add_knot(&c, c.prev_code, c.prev_slot);
	fit->nknots = c.nknots;
	if (c.full)
		return false;
	measure_errors(leaves, nleaves, knots, fit);
	return true;
}
