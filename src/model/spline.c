/*
 * spline.c - the greedy spline corridor; see spline.h for the contract.
 */
#include "spline.h"

#include <math.h>

/* The slopes that keep every point since the last knot within the error. */
typedef struct Corridor
{
	const LbtLeaf *leaves;
	LbtKnot    *knots;
	uint32_t	nknots;
	uint32_t	max_knots;
	double		max_error;
	uint32_t	last;			/* slot of the last point accepted */
	double		low;			/* slopes */
	double		high;
	bool		full;			/* there was no room for a knot */
} Corridor;

/* Make the last point a knot. */
static void
add_knot(Corridor *c)
{
	LbtKnot    *knot = &c->knots[c->nknots];

	c->full = c->nknots == c->max_knots;
	if (c->full)
		return;
	knot->code = c->leaves[c->last].min_code;
	knot->slot = c->last;
	knot->slope = 0;
	knot->unused = 0;
	if (c->nknots > 0)
		knot[-1].slope = (double) (knot->slot - knot[-1].slot) /
			(double) (knot->code - knot[-1].code);
	c->nknots++;
	c->low = -INFINITY;
	c->high = INFINITY;
}

static void
add_point(Corridor *c, uint32_t slot)
{
	const LbtKnot *base = &c->knots[c->nknots - 1];
	double		dx = (double) (c->leaves[slot].min_code - base->code);
	double		dy = (double) (slot - base->slot);
	double		low;
	double		high;

	if (dy / dx > c->high || dy / dx < c->low)
	{
		add_knot(c);
		base = &c->knots[c->nknots - 1];
		dx = (double) (c->leaves[slot].min_code - base->code);
		dy = (double) (slot - base->slot);
	}
	low = (dy - c->max_error) / dx;
	high = (dy + c->max_error) / dx;
	c->low = low > c->low ? low : c->low;
	c->high = high < c->high ? high : c->high;
	c->last = slot;
}

uint32_t
lbt_spline_fit(const LbtLeaf *leaves, uint32_t nleaves, uint32_t max_error, LbtKnot *knots,
			   uint32_t max_knots)
{
	Corridor	c = {.leaves = leaves,.knots = knots,.max_knots = max_knots,
	.max_error = (double) max_error};

	for (uint32_t i = 1; i < nleaves; i++)
		if (leaves[i].min_code < leaves[i - 1].min_code)
			return 0;
	if (nleaves == 0)
		return 0;
	add_knot(&c);
	for (uint32_t i = 1; i < nleaves && !c.full; i++)
		if (leaves[i].min_code > leaves[c.last].min_code)
			add_point(&c, i);
	if (c.last > knots[c.nknots - 1].slot)
		add_knot(&c);
	return c.nknots + c.full;
}
