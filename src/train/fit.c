/*
 * fit.c - a model for leaves; see fit.h.
 */
#include "train/fit.h"

#include "miscadmin.h"
#include "utils/memutils.h"

/* Room for knots that is always taken. */
#define KNOTS_MIN 1024

/* The least memory of a training: the leaves and knots of an index that is trained on its first use, and room for some separators. */
#define BUDGET_MIN_KB 1024

Size
lbt_training_budget(void)
{
	return (Size) Max(maintenance_work_mem, BUDGET_MIN_KB) * 1024;
}

bool
lbt_fit_model(const LbtIndex *index, const LbtLeaf *leaves, uint32 nleaves, LbtTrained *trained)
{
	int			max_error = index->options.max_error > 0 ? index->options.max_error : lbt_max_error;
	Size		taken = MemoryContextMemAllocated(CurrentMemoryContext, true);
	Size		room = lbt_training_budget() > taken ? (lbt_training_budget() - taken) / sizeof(LbtKnot) : 0;
	uint32		max_knots = Min(nleaves, Max(room, KNOTS_MIN));
	LbtModelHeader *header = &trained->header;
	LbtKnot    *knots = MemoryContextAllocHuge(CurrentMemoryContext, (Size) max_knots * sizeof(LbtKnot));
	LbtSplineFit fit;

	/*
	 * Where the knots do not fit into the memory that is left, fewer have to
	 * do.
	 */
	while (!lbt_spline_fit(leaves, nleaves, max_error, knots, max_knots, &fit))
	{
		if (fit.nknots == 0)
			return false;
		max_error *= 2;
	}
	trained->state = LBT_READY;
	trained->knots = knots;
	trained->leaves = leaves;
	header->nleaves = nleaves;
	header->nknots = fit.nknots;
	header->max_error = fit.max_error;
	header->mean_error = fit.mean_error;
	return true;
}
