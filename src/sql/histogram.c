/*
 * histogram.c - learnedbtree_histogram(): the model in parts of equally many leaves, in key order.
 */
#include "postgres.h"

#include <math.h>

#include "access/genam.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "registry/view.h"
#include "sql/index_arg.h"
#include "utils/builtins.h"

PG_FUNCTION_INFO_V1(learnedbtree_histogram);

/* Characters of the longest bar. */
#define BAR_LENGTH 30

typedef struct Bucket
{
	uint32		leaves;
	uint32		knots;
	uint32		ties;
	double		sum_error;		/* of the leaves that do not tie */
	double		max_error;
} Bucket;

static double
mean_error(const Bucket *b)
{
	return b->leaves > b->ties ? b->sum_error / (b->leaves - b->ties) : 0;
}

/* The first slot of a bucket, and behind the last one the number of leaves. */
static uint32
first_slot(const LbtModel *model, uint32 bucket, uint32 nbuckets)
{
	return (uint32) ((uint64) bucket * model->nleaves / nbuckets);
}

/* Fill in a bucket.  *knot is the first knot that is not left of it, and moves on. */
static void
measure(const LbtModel *model, uint32 first, uint32 end, uint32 *knot, Bucket *b)
{
	*b = (Bucket) {.leaves = end - first};
	for (; *knot < model->nknots && model->knots[*knot].slot < end; (*knot)++)
		b->knots++;
	for (uint32 slot = first; slot < end; slot++)
	{
		double		error;

		if (lbt_leaf_tied(model->leaves, slot))
		{
			b->ties++;
			continue;
		}
		error = lbt_spline_error(model->knots, model->nknots, model->leaves, model->nleaves, slot);
		b->sum_error += error;
		b->max_error = Max(b->max_error, error);
	}
}

/* min_code is NULL where the caller may not see it. */
static void
put_row(ReturnSetInfo *rsinfo, uint32 bucket, uint32 first, const uint64 *min_code, const Bucket *b,
		double largest_mean)
{
	bool		tied = b->ties == b->leaves;	/* nothing to measure */
	int			length = largest_mean > 0 ? (int) ceil(mean_error(b) / largest_mean * BAR_LENGTH) : 0;
	char		bar[BAR_LENGTH + 1];
	Datum		values[] = {Int32GetDatum(bucket + 1), Int64GetDatum(first), Int64GetDatum(b->leaves),
		min_code ? lbt_numeric_from_uint64(*min_code) : (Datum) 0, Int32GetDatum(b->knots), Int64GetDatum(b->ties),
		Float8GetDatum(mean_error(b)), Float8GetDatum(b->max_error), (Datum) 0};
	bool		nulls[lengthof(values)] = {[3] = min_code == NULL,[6] = tied,[7] = tied};

	memset(bar, '#', length);
	bar[length] = '\0';
	values[8] = CStringGetTextDatum(bar);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

static void
put_histogram(ReturnSetInfo *rsinfo, const LbtModel *model, uint32 nbuckets, bool see_values)
{
	double		largest_mean = 0;

	/* Bars are in proportion to the longest one, so look at all buckets twice. */
	for (int pass = 0; pass < 2; pass++)
	{
		uint32		knot = 0;

		for (uint32 i = 0; i < nbuckets; i++)
		{
			uint32		first = first_slot(model, i, nbuckets);
			Bucket		b;

			CHECK_FOR_INTERRUPTS();
			measure(model, first, first_slot(model, i + 1, nbuckets), &knot, &b);
			if (pass == 0)
				largest_mean = Max(largest_mean, mean_error(&b));
			else
				put_row(rsinfo, i, first, see_values ? &model->leaves[first].min_code : NULL, &b, largest_mean);
		}
	}
}

static int32
buckets_argument(FunctionCallInfo fcinfo)
{
	int32		buckets;

	if (PG_ARGISNULL(1))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("the number of buckets must not be NULL")));
	buckets = PG_GETARG_INT32(1);
	if (buckets < 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the number of buckets must be at least 1"),
				 errhint("Where there are more buckets than leaves, each leaf gets one.")));
	return buckets;
}

Datum
learnedbtree_histogram(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Relation	rel = lbt_open_index(lbt_index_argument(fcinfo), AccessShareLock, LBT_MAY_SEE);
	uint32		nbuckets = (uint32) buckets_argument(fcinfo);
	Size		bytes;
	void	   *copy = lbt_index_copy_model(lbt_index_get(rel), &bytes);
	LbtModel	model;

	InitMaterializedSRF(fcinfo, 0);
	if (copy && lbt_model_open(copy, bytes, &model))
		put_histogram(rsinfo, &model, Min(nbuckets, model.nleaves), lbt_may_see_values(rel));
	index_close(rel, AccessShareLock);
	return (Datum) 0;
}
