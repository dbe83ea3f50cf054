/*
 * scanprobe.c - from one of a scan's intervals to another.
 *
 * Several array columns multiply: a probe is a combination of their values, and its number counts these as an
 * odometer does, the last column's digit turning fastest.  As each list is in the index's order, so are the probes.
 */
#include "am/scan.h"

void
lbt_probe_go(const LbtScan *so, LbtProbe *probe, int64 number)
{
	uint32		rest = (uint32) number;

	if (number == probe->number)
		return;
	Assert(number >= 0 && number < so->nprobes);
	probe->number = number;
	for (int i = so->narrays - 1; i >= 0; i--)
	{
		const LbtArray *array = &so->array[i];
		uint32		digit = rest;

		if (i > 0)
		{
			rest = digit / (uint32) array->n;
			digit %= (uint32) array->n;
		}
		probe->start.value[array->column] = array->values[digit];
		probe->end.value[array->column] = array->values[digit];
	}
}

/* Gallops: most often the next probes are near, but there may be far more of them than the index has tuples. */
int64
lbt_probe_seek(const LbtScan *so, LbtProbe *probe, TupleDesc tupdesc, IndexTuple itup, bool pivot, bool forward)
{
	int64		from = probe->number;
	int64		passed = 0;		/* probes from there on that end before the
								 * tuple (backward: begin behind it) */
	int64		stop = forward ? so->nprobes - from : from + 1; /* one that does not, or
																 * there is none */

	for (int64 step = 1; stop - passed > 1;)
	{
		int64		at = passed + Min(step, (stop - passed) / 2);

		lbt_probe_go(so, probe, forward ? from + at : from - at);
		if (lbt_before_bound(&so->index->keyspec, tupdesc, forward ? &probe->end : &probe->start, itup, pivot) !=
			forward)
		{
			passed = at;
			step *= 2;
		}
		else
			stop = at;
	}
	return forward ? from + stop : from - stop;
}
