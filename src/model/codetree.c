/*
 * codetree.c - computing codes in a tree of codes; see codetree.h for the contract.
 *
 * What says how much may be read is copied first, through volatile, so that it is read once: the memory may
 * change between a check and the use.  What is left to be garbage is codes, digits, and prefixes' bytes.
 */
#include "codetree.h"

#include "codedigits.h"
#include "codetreelayout.h"

/* A segment, or, without one, the root: what bounds the reading of its parts. */
typedef struct SegmentView
{
	const LbtKeyDigit *digit;
	const LbtKeyDigit *end;
	const LbtCodeColumn *column;
	int			ncolumns;
	const uint8_t *prefix;
	uint32_t	prefix_bytes;
} SegmentView;

static LbtGroupTable
read_table(const LbtCodeTree *tree, uint32_t offset)
{
	const volatile LbtGroupTable *t = (const volatile LbtGroupTable *) (tree->memory + offset);

	return (LbtGroupTable) {t->offset, t->ngroups};
}

/* The groups that a table has, and one more; NULL when they are not within the tree. */
static const LbtGroup *
groups_of(const LbtCodeTree *tree, LbtGroupTable table)
{
	if (table.offset % 8 != 0 || table.offset > tree->bytes ||
		(uint64_t) table.ngroups + 1 > (tree->bytes - table.offset) / sizeof(LbtGroup))
		return NULL;
	return (const LbtGroup *) (tree->memory + table.offset);
}

/* The first group whose code is not below, or the end. */
static const LbtGroup *
find_group(const LbtGroup *groups, uint32_t ngroups, uint64_t code)
{
	uint32_t	lo = 0;

	while (ngroups > 0)
	{
		uint32_t	half = ngroups / 2;

		if (groups[lo + half].code < code)
		{
			lo += half + 1;
			ngroups -= half + 1;
		}
		else
			ngroups = half;
	}
	return &groups[lo];
}

/* False when there is no segment at this offset. */
static bool
view_segment(const LbtCodeTree *tree, uint32_t offset, SegmentView *view)
{
	const volatile LbtSegment *s;
	LbtSegment	copy = {{0, 0}, 0, 0, 0};

	if (offset % 8 != 0 || offset < sizeof(LbtTreeHead) || offset > tree->bytes ||
		tree->bytes - offset < sizeof(LbtSegment))
		return false;
	s = (const volatile LbtSegment *) (tree->memory + offset);
	copy.ncolumns = s->ncolumns;
	copy.ndigits = s->ndigits;
	copy.prefix_bytes = s->prefix_bytes;
	if (lbt_segment_bytes(&copy) > tree->bytes - offset)
		return false;
	view->digit = (const LbtKeyDigit *) (tree->memory + offset + sizeof(LbtSegment));
	view->end = view->digit + copy.ndigits;
	view->column = (const LbtCodeColumn *) view->end;
	view->ncolumns = copy.ncolumns < tree->ncolumns ? copy.ncolumns : tree->ncolumns;
	view->prefix = (const uint8_t *) (view->column + copy.ncolumns);
	view->prefix_bytes = copy.prefix_bytes;
	return true;
}

static uint64_t
segment_code(const LbtCodeTree *tree, const SegmentView *view, const LbtKeyValue *values, int nvalues,
			 LbtMissing missing)
{
	const LbtKeyDigit *d = view->digit;
	uint64_t	code = 0;

	for (int i = 0; i < view->ncolumns && d < view->end; i++)
	{
		const volatile LbtCodeColumn *column = &view->column[i];
		ptrdiff_t	ndigits = column->ndigits;
		uint32_t	prefix = column->prefix;
		uint32_t	prefix_length = column->prefix_length;
		LbtColumnOrder order = tree->order[i];

		if (ndigits > view->end - d || !order.bytes)
			ndigits = order.bytes ? view->end - d : 1;
		if (prefix + prefix_length > view->prefix_bytes)
			prefix = prefix_length = 0;
		if (i >= nvalues)
			return lbt_rest_of_code(code, d, view->end, missing == LBT_MISSING_HIGH);
		if (!lbt_add_column(order, NULL, view->prefix + prefix, prefix_length, &values[i], d, d + ndigits, view->end,
							&code))
			return code;
		d += ndigits;
	}
	return code;
}

bool
lbt_codetree_open(const void *memory, uint32_t bytes, LbtCodeTree *tree)
{
	if (bytes % 8 != 0 || (bytes > 0 && bytes < sizeof(LbtTreeHead)))
		return false;
	tree->memory = memory;
	tree->bytes = bytes;
	tree->ncolumns = 0;
	return true;
}

void
lbt_codetree_set_columns(LbtCodeTree *tree, const LbtColumnOrder *order, int ncolumns)
{
	tree->ncolumns = ncolumns < LBT_CODE_COLUMNS ? ncolumns : LBT_CODE_COLUMNS;
	memcpy(tree->order, order, sizeof(LbtColumnOrder) * (size_t) tree->ncolumns);
}

uint32_t
lbt_codetree_segments(const LbtCodeTree *tree)
{
	return tree->bytes > 0 ? ((const LbtTreeHead *) tree->memory)->nsegments : 0;
}

uint64_t
lbt_codetree_code(const LbtCodeTree *tree, uint64_t root_code, const LbtKeyValue *values, int nvalues,
				  LbtMissing missing)
{
	uint64_t	code = root_code >> 1;	/* at the root, or in a segment */
	uint64_t	base = 0;		/* what the way down adds to it */
	uint32_t	at = 0;

	if (tree->bytes == 0)
		return root_code;
	for (int depth = 0; depth < LBT_TREE_DEPTH; depth++)
	{
		LbtGroupTable table = read_table(tree, at);
		const LbtGroup *groups = groups_of(tree, table);
		const volatile LbtGroup *group;
		SegmentView view;

		if (groups == NULL || table.ngroups == 0)
			break;
		group = find_group(groups, table.ngroups, code);
		base += code + group->below;
		if (group == groups + table.ngroups || group->code != code)
			return base;
		at = group->segment;
		if (!view_segment(tree, at, &view))
			return base;
		code = segment_code(tree, &view, values, nvalues, missing);
	}
	return base + code;
}
