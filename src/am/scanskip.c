/*
 * scanskip.c - skipping what no row is wanted of: entries that filters
 * exclude, and the rest of a group (src/README, "Skipping").
 *
 * Of an index on (a, b), with b = 5, the entries marked are matches:
 *
 *     a   1 1 1 1 1 1 1 1 1 2 2 2 2 2 2 2 2 2 2 3 3 3 3 NULL NULL
 *     b   1 3 5 5 5 6 6 8 9 2 2 4 4 5 5 6 6 7 8 1 2 3 6   1    5
 *             * * *                 * *                        *
 *
 * Any entry tells where to go on from: (1, 1) leads to the bound before
 * (1, 5), and (1, 6) to the one past (1).  A group's rest is skipped by the
 * bound past its columns.
 */

#include "am/scan.h"

/* Entries of one kind to look at one by one, as a bound costs more. */
#define ONE_BY_ONE 4

/* ---- filters ---- */

/* Where a column lies beside what a filter leaves of it. */
typedef struct Beside
{
	int			side;			/* -1: before, 0: in it, 1: after */
	const LbtKeyValue *next;	/* what the scan comes to next there; or NULL */
	bool		past;
} Beside;

static inline Beside
beside_array(const LbtScan *so, TupleDesc tupdesc, const LbtFilter *filter, IndexTuple itup,
			 bool forward)
{
	const LbtArray *array = &filter->array;
	Beside		is = {.past = !forward};
	int			low = 0;
	int			high = array->n;

	while (low < high)
	{
		int			middle = low + (high - low) / 2;
		int			order = lbt_compare_column(&so->index->keyspec, tupdesc, filter->column,
											   &array->values[middle], itup);

		if (order == 0)
			return is;
		if (order > 0)
			high = middle;
		else
			low = middle + 1;
	}
	if (forward)
		is.next = low < array->n ? &array->values[low] : NULL;
	else
		is.next = low > 0 ? &array->values[low - 1] : NULL;
	is.side = (is.next != NULL) == forward ? -1 : 1;
	return is;
}

static inline Beside
beside(const LbtScan *so, TupleDesc tupdesc, const LbtFilter *filter, IndexTuple itup, bool forward)
{
	const LbtKeySpec *spec = &so->index->keyspec;
	const LbtBound *start = &filter->range.start;
	const LbtBound *end = &filter->range.end;
	int			at = filter->column;
	Beside		is = {.side = 0};
	int			order = 1;

	if (filter->array.n > 0)
		return beside_array(so, tupdesc, filter, itup, forward);
	if (lbt_bound_has(start, at))
	{
		order = lbt_compare_column(spec, tupdesc, at, &start->value[at], itup);
		if (order > 0 || (order == 0 && start->past))
			is = (Beside) {-1, forward ? &start->value[at] : NULL, start->past};
	}
	if (is.side < 0 || (order == 0 && filter->equal) || !lbt_bound_has(end, at))
		return is;
	order = lbt_compare_column(spec, tupdesc, at, &end->value[at], itup);
	if (order < 0 || (order == 0 && !end->past))
		is = (Beside) {1, forward ? NULL : &end->value[at], end->past};
	return is;
}

void
lbt_bound_at_filters(const LbtScan *so, int i, bool end, bool forward, LbtBound *bound)
{
	for (; i < so->nfilters && so->filter[i].column == bound->ncolumns; i++)
	{
		const LbtFilter *filter = &so->filter[i];
		const LbtBound *to = end ? &filter->range.end : &filter->range.start;
		int			at = filter->column;

		if (!lbt_bound_has(to, at))
			break;
		bound->value[at] = filter->array.n > 0 ?
			filter->array.values[forward ? 0 : filter->array.n - 1] : to->value[at];
		bound->past = to->past;
		bound->ncolumns++;
		if (!filter->equal)
			break;
	}
}

/* The first filter that a tuple fails by, and how; all: it is a match. */
static inline int
find_failed(const LbtScan *so, TupleDesc tupdesc, IndexTuple itup, bool forward, Beside *is)
{
	int			i = 0;

	for (; i < so->nfilters; i++)
	{
		*is = beside(so, tupdesc, &so->filter[i], itup, forward);
		if (is->side != 0)
			break;
	}
	return i;
}

/*
 * The bound, in the scan's direction, up to which all after the tuple passes
 * or fails as it does.  Its first columns are the tuple's: returns how many.
 */
static int
bound_after(const LbtScan *so, TupleDesc tupdesc, IndexTuple itup, int failed, const Beside *is,
			bool forward, LbtBound *bound)
{
	const LbtFilter *filter = &so->filter[Min(failed, so->nfilters - 1)];
	const LbtBound *ends = forward ? &filter->range.end : &filter->range.start;
	int			at;

	/* Past the last value of a column, so is the one value before it. */
	if (failed < so->nfilters && is->next == NULL)
		while (filter > so->filter && filter[-1].equal && filter[-1].array.n == 0 &&
			   filter[-1].column == filter->column - 1)
			filter--;
	at = filter->column;
	bound->ncolumns = at;
	bound->past = forward;
	if (is->next != NULL)
	{
		/* Where that is one value, before what the next filter begins with. */
		bound->value[bound->ncolumns++] = *is->next;
		bound->past = is->past;
		if (filter->equal)
			lbt_bound_at_filters(so, failed + 1, !forward, forward, bound);
	}
	else if (failed == so->nfilters && filter->array.n > 0)
		bound->ncolumns = ++at;
	else if (failed == so->nfilters && lbt_bound_has(ends, at))
	{
		bound->value[at] = ends->value[at];
		bound->ncolumns = at + 1;
		bound->past = ends->past;
	}
	lbt_bound_take(&so->index->keyspec, tupdesc, itup, at, NULL, bound);
	return at;
}

/* ---- positions ---- */

LbtPosition *
lbt_make_position(const LbtScan *so, IndexTuple itup, int ncopied, const LbtBound *bound)
{
	Size		size = BTreeTupleIsPosting(itup) ? BTreeTupleGetPostingOffset(itup) :
		IndexTupleSize(itup);
	LbtPosition *position = MemoryContextAlloc(GetMemoryChunkContext((void *) so),
											   MAXALIGN(sizeof(LbtPosition)) + size);

	position->bound = *bound;
	position->ncopied = ncopied;
	position->tuple = (IndexTuple) ((char *) position + MAXALIGN(sizeof(LbtPosition)));
	memcpy(position->tuple, itup, size);
	return position;
}

MemoryContext
lbt_go_context(LbtScan *so)
{
	if (so->go_context == NULL)
		so->go_context = AllocSetContextCreate(GetMemoryChunkContext(so), "learnedbtree position",
											   ALLOCSET_SMALL_SIZES);
	MemoryContextReset(so->go_context);
	return so->go_context;
}

void
lbt_position_bound(IndexScanDesc scan, LbtScan *so, LbtBound *bound)
{
	const LbtKeySpec *spec = &so->index->keyspec;
	MemoryContext old = MemoryContextSwitchTo(lbt_go_context(so));

	*bound = so->go->bound;
	lbt_bound_take(spec, RelationGetDescr(scan->indexRelation), so->go->tuple, so->go->ncopied,
				   spec->encoded ? palloc(so->go->ncopied * LBT_SCRATCH_BYTES) : NULL, bound);
	MemoryContextSwitchTo(old);
}

bool
lbt_position_advances(IndexScanDesc scan, LbtScan *so, bool forward)
{
	LbtPosition *last = so->gone;
	bool		advances = last == NULL || so->gone_forward != forward;

	if (!advances)
	{
		MemoryContext old = MemoryContextSwitchTo(lbt_go_context(so));
		TupleDesc	tupdesc = RelationGetDescr(scan->indexRelation);
		LbtBound	from = last->bound;
		LbtBound	to = so->go->bound;
		int			order;

		lbt_bound_take(&so->index->keyspec, tupdesc, last->tuple, last->ncopied, NULL, &from);
		lbt_bound_take(&so->index->keyspec, tupdesc, so->go->tuple, so->go->ncopied, NULL, &to);
		order = lbt_compare_bounds(&so->index->keyspec, 0, &to, &from);
		advances = forward ? order > 0 : order < 0;
		MemoryContextSwitchTo(old);
	}
	if (!advances)
		return false;
	so->gone = lbt_make_position(so, so->go->tuple, so->go->ncopied, &so->go->bound);
	so->gone_forward = forward;
	if (last != NULL)
		pfree(last);
	return true;
}

LbtPosition *
lbt_position_beyond(const LbtScan *so, bool forward)
{
	const LbtLeafCopy *cur = &so->cur;
	const LbtPosition *from = cur->beyond[forward];

	if (cur->cut && cur->beyond[!forward] != NULL)
		from = cur->beyond[!forward];
	return from ? lbt_make_position(so, from->tuple, from->ncopied, &from->bound) : NULL;
}

/* ---- on a leaf ---- */

/* What is looked at on a locked leaf: items from at on, up to stop. */
typedef struct Leaf
{
	const LbtScan *so;
	TupleDesc	tupdesc;
	Page		page;
	bool		forward;
	int			at;
	int			stop;			/* the first item not to look at */
	bool		jumped;			/* the last items were skipped by a bound */
} Leaf;

/* Skip to the first item, in the scan's direction, after the bound. */
static void
skip_on_leaf(Leaf *leaf, LbtBound *bound)
{
	const LbtKeySpec *spec = &leaf->so->index->keyspec;

	if (leaf->forward)
		leaf->at = lbt_page_search(spec, leaf->tupdesc, bound, leaf->page, leaf->at + 1,
								   leaf->stop - 1, leaf->at + 1);
	else
		leaf->at = (int) lbt_page_search(spec, leaf->tupdesc, bound, leaf->page, leaf->stop + 1,
										 leaf->at, leaf->at) - 1;
}

/* Append the runs of matches to n of them; returns how many there are. */
static int
find_runs(Leaf *leaf, LbtRun *run, int n)
{
	const LbtScan *so = leaf->so;
	int			step = leaf->forward ? 1 : -1;
	int			patience = ONE_BY_ONE;
	bool		was = false;
	int			alike = 0;

	while (leaf->at != leaf->stop)
	{
		int			from = leaf->at;
		IndexTuple	itup = lbt_page_tuple(leaf->page, from);
		Beside		is;
		int			failed = find_failed(so, leaf->tupdesc, itup, leaf->forward, &is);
		bool		match = failed == so->nfilters;

		alike = match == was ? alike + 1 : 1;
		was = match;
		leaf->jumped = alike >= patience;
		if (leaf->jumped)
		{
			LbtBound	bound;

			(void) bound_after(so, leaf->tupdesc, itup, failed, &is, leaf->forward, &bound);
			skip_on_leaf(leaf, &bound);
			alike = 0;

			/* Where bounds lead nowhere, make fewer. */
			patience = (leaf->at - from) * step > patience ? ONE_BY_ONE : patience * 2;
		}
		else
			leaf->at += step;
		if (!match)
			continue;
		if (n == 0 || (leaf->forward ? run[n - 1].to : run[n - 1].from - 1) != from)
		{
			run[n].from = run[n].to = leaf->forward ? from : from + 1;
			n++;
		}
		if (leaf->forward)
			run[n - 1].to = leaf->at;
		else
			run[n - 1].from = leaf->at + 1;
	}
	return n;
}

/*
 * The probe goes on after this item, the leaf's last in the scan's direction:
 * on the sibling (NULL), or at a position that is not there.  Backward nothing
 * tells what is on the sibling, unless a bound has led off the leaf.
 */
static LbtPosition *
find_beyond(const Leaf *leaf, IndexTuple itup)
{
	const LbtScan *so = leaf->so;
	const LbtKeySpec *spec = &so->index->keyspec;
	LbtBound	bound;
	Beside		is;
	int			failed = find_failed(so, leaf->tupdesc, itup, leaf->forward, &is);
	int			ncopied = bound_after(so, leaf->tupdesc, itup, failed, &is, leaf->forward,
									  &bound);

	if (failed == so->nfilters)
	{
		const LbtFilter *last = &so->filter[so->nfilters - 1];

		/* More matches may be there, or another value of a list. */
		if (!leaf->forward || last->array.n > 0 ||
			lbt_bound_beyond_page(spec, leaf->tupdesc, &bound, leaf->page))
			return NULL;
		ncopied = bound.ncolumns = last->column;
		bound.past = true;
		lbt_bound_take(spec, leaf->tupdesc, itup, ncopied, NULL, &bound);
	}
	if (leaf->forward ? lbt_bound_beyond_page(spec, leaf->tupdesc, &bound, leaf->page) :
		leaf->jumped)
		return lbt_make_position(so, itup, ncopied, &bound);
	return NULL;
}

int
lbt_filter_runs(const LbtScan *so, LbtLeafCopy *copy, TupleDesc tupdesc, Page page, LbtRun *run,
				int n, bool forward)
{
	OffsetNumber edge = forward ? PageGetMaxOffsetNumber(page) :
		P_FIRSTDATAKEY(BTPageGetOpaque(page));
	Leaf		leaf = {so, tupdesc, page, forward};
	MemoryContext old = MemoryContextSwitchTo(lbt_go_context(unconstify(LbtScan *, so)));
	LbtRun		from[MaxIndexTuplesPerPage];
	int			found = 0;

	memcpy(from, run, n * sizeof(LbtRun));
	for (int i = 0; i < n; i++)
	{
		leaf.at = forward ? from[i].from : from[i].to - 1;
		leaf.stop = forward ? from[i].to : from[i].from - 1;
		found = find_runs(&leaf, run, found);
	}
	if (n > 0 && copy->more[forward] &&
		edge == (forward ? from[n - 1].to - 1 : from[n - 1].from))
		copy->beyond[forward] = find_beyond(&leaf, lbt_page_tuple(page, edge));
	MemoryContextSwitchTo(old);
	return found;
}
