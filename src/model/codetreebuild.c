/*
 * codetreebuild.c - learning the segments of a tree of codes; see codetree.h.
 *
 * Groups wait in a heap, the largest on top.  Each that is taken from it learns a code of its separators, is
 * written behind the segments before it, and puts its own groups into the heap.  Which of these will get
 * segments is not known then, so their widths are given to them before: rooms that nobody uses are no harm.
 * In the end the tables of groups are written.
 */
#include "codetree.h"

#include "codetreelayout.h"

#include <string.h>

/* A tree's memory: so much for a leaf, as the leaf cache, but not less than MIN_BYTES. */
#define BYTES_PER_LEAF 16
#define MIN_BYTES (64 * 1024)

/* A segment needs room for so many codes for every leaf, or it cannot tell its keys apart. */
#define MIN_ROOM_PER_LEAF 256

/* Codes are kept finer by this than it takes to tell the group's separators apart, lest keys next to a separator
 * tie with it; by more while half of the memory is free. */
#define FINER_AT_FIRST (UINT64_C(1) << 32)
#define FINER 256

/* A tie group, and what becomes of it. */
typedef struct Group
{
	uint32_t	first;			/* leaves first .. end - 1 */
	uint32_t	end;
	uint64_t	code;			/* that they share */
	uint64_t	below;			/* widths of the groups before */
	uint64_t	width;
	uint32_t	parent;			/* offset of the segment that it is a group of; 0: the root */
	uint32_t	segment;		/* offset of its own */
	uint32_t	depth;			/* segments above */
} Group;

typedef struct Builder
{
	const LbtSeparators *separators;
	char	   *memory;
	uint32_t	max_bytes;
	uint32_t	used;			/* bytes: segments, and the tables of groups to come */
	uint32_t	segments_end;	/* bytes: segments only */
	Group	   *waiting;		/* a heap, the largest group on top */
	uint32_t	nwaiting;
	Group	   *done;			/* with segments */
	uint32_t	ndone;
	uint64_t   *code;			/* of each leaf, in the segment learned last */
	LbtKeyLearner learner;
} Builder;

typedef bool (*Before) (const Group *a, const Group *b);

static bool
smaller(const Group *a, const Group *b)
{
	uint32_t	a_leaves = a->end - a->first;
	uint32_t	b_leaves = b->end - b->first;

	return a_leaves != b_leaves ? a_leaves < b_leaves : a->first > b->first;
}

static bool
earlier(const Group *a, const Group *b)
{
	return a->parent != b->parent ? a->parent < b->parent : a->first < b->first;
}

/* Let the group at this place sink until nothing below it should come above. */
static void
sink(Group *heap, uint32_t n, uint32_t at, Before before)
{
	Group		group = heap[at];

	for (uint32_t child; (child = 2 * at + 1) < n; at = child)
	{
		if (child + 1 < n && before(&heap[child], &heap[child + 1]))
			child++;
		if (!before(&group, &heap[child]))
			break;
		heap[at] = heap[child];
	}
	heap[at] = group;
}

static void
sort(Group *groups, uint32_t n, Before before)
{
	for (uint32_t at = n / 2; at-- > 0;)
		sink(groups, n, at, before);
	while (n > 1)
	{
		Group		last = groups[0];

		groups[0] = groups[--n];
		groups[n] = last;
		sink(groups, n, 0, before);
	}
}

static void
push(Builder *b, const Group *group)
{
	uint32_t	at = b->nwaiting++;

	while (at > 0 && smaller(&b->waiting[(at - 1) / 2], group))
	{
		b->waiting[at] = b->waiting[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	b->waiting[at] = *group;
}

static Group
pop(Builder *b)
{
	Group		top = b->waiting[0];

	b->waiting[0] = b->waiting[--b->nwaiting];
	if (b->nwaiting > 0)
		sink(b->waiting, b->nwaiting, 0, smaller);
	return top;
}

/* The end of the run of equal codes that begins at this leaf. */
static uint32_t
end_of_run(const uint64_t *code, uint32_t at, uint32_t end)
{
	uint64_t	first = code[at];

	while (at < end && code[at] == first)
		at++;
	return at;
}

/* Put the groups among these leaves into the heap; they share the width in proportion to their leaves. */
static void
push_groups(Builder *b, uint32_t first, uint32_t end, uint64_t width, uint32_t parent, uint32_t depth)
{
	uint64_t	below = 0;
	uint64_t	nleaves = 0;
	uint32_t	run_end;

	for (uint32_t at = first; at < end; at = run_end)
	{
		run_end = end_of_run(b->code, at, end);
		if (run_end - at >= LBT_GROUP_LEAVES)
			nleaves += run_end - at;
	}
	if (nleaves == 0 || width / nleaves < MIN_ROOM_PER_LEAF)
		return;
	for (uint32_t at = first; at < end; at = run_end)
	{
		Group		group = {.first = at,.code = b->code[at],.below = below,.parent = parent,.depth = depth};

		run_end = end_of_run(b->code, at, end);
		if (run_end - at < LBT_GROUP_LEAVES)
			continue;
		group.end = run_end;
		group.width = width / nleaves * (run_end - at);
		below += group.width;
		push(b, &group);
	}
}

static uint64_t
code_of(const Builder *b, const LbtKeyCode *code, uint32_t leaf)
{
	const LbtSeparators *s = b->separators;

	return lbt_keycode_digits(code, &s->values[(size_t) leaf * (size_t) s->ncolumns], s->nvalues[leaf],
							  LBT_MISSING_LOW);
}

/* How many digits tell the group's separators apart, as far as the code does, and are fine enough; 0: none do. */
static int
digits_needed(const Builder *b, const Group *group, const LbtKeyCode *code)
{
	uint64_t	finer = b->used < b->max_bytes / 2 ? FINER_AT_FIRST : FINER;
	int			needed = 0;

	for (uint32_t i = group->first + 1; i < group->end; i++)
	{
		uint64_t	low = b->code[i - 1];
		uint64_t	high = b->code[i];

		if (low == high)
			continue;
		if (needed == 0)
			needed = 1;
		while (needed < code->ndigits &&
			   low / code->digit[needed - 1].weight == high / code->digit[needed - 1].weight)
			needed++;
	}
	for (int last = needed - 1; last >= 0 && needed < code->ndigits; needed++)
		if (code->digit[last].weight / code->digit[needed - 1].weight >= finer)
			break;
	return needed;
}

/* The group's own code; false when it does not tell its separators apart either. */
static bool
learn(Builder *b, const Group *group, LbtKeyCode *code)
{
	const LbtSeparators *s = b->separators;
	int			needed;

	lbt_keycode_begin(&b->learner, s->ncolumns, s->order);
	for (uint32_t i = group->first; i < group->end; i++)
		lbt_keycode_observe(&b->learner, &s->values[(size_t) i * (size_t) s->ncolumns], s->nvalues[i]);
	lbt_keycode_finish_within(&b->learner, group->width / 2, code);
	for (uint32_t i = group->first; i < group->end; i++)
		b->code[i] = code_of(b, code, i);
	needed = digits_needed(b, group, code);
	if (needed == 0)
		return false;
	lbt_keycode_truncate(code, needed);
	for (uint32_t i = group->first; i < group->end; i++)
		b->code[i] = code_of(b, code, i);
	return true;
}

/* A group's entry in its parent's table, and the end of that table for the first one. */
static uint32_t
entry_bytes(const Builder *b, const Group *group)
{
	LbtGroupTable table;

	memcpy(&table, b->memory + group->parent, sizeof(table));
	return (uint32_t) (table.ngroups == 0 ? 2 * sizeof(LbtGroup) : sizeof(LbtGroup));
}

static void
count_entry(const Builder *b, const Group *group)
{
	LbtGroupTable table;

	memcpy(&table, b->memory + group->parent, sizeof(table));
	table.ngroups++;
	memcpy(b->memory + group->parent, &table, sizeof(table));
}

/* Write the group's segment behind the others; false when there is no room. */
static bool
write_segment(Builder *b, Group *group, const LbtKeyCode *code)
{
	LbtSegment	s = {.ncolumns = (uint16_t) code->ncolumns,.ndigits = (uint16_t) code->ndigits};
	char	   *at = b->memory + b->segments_end;
	uint64_t	bytes;
	uint64_t	more;

	for (int i = 0; i < code->ncolumns; i++)
		s.prefix_bytes += code->column[i].prefix_length;
	bytes = lbt_segment_bytes(&s);
	more = bytes + entry_bytes(b, group);
	if (more > b->max_bytes - b->used)
		return false;
	count_entry(b, group);
	group->segment = b->segments_end;
	b->used += (uint32_t) more;
	b->segments_end += (uint32_t) bytes;
	memset(at, 0, bytes);
	memcpy(at, &s, sizeof(s));
	at += sizeof(s);
	memcpy(at, code->digit, s.ndigits * sizeof(LbtKeyDigit));
	at += s.ndigits * sizeof(LbtKeyDigit);
	memcpy(at, code->column, s.ncolumns * sizeof(LbtCodeColumn));
	at += s.ncolumns * sizeof(LbtCodeColumn);
	memcpy(at, code->prefix, s.prefix_bytes);
	return true;
}

/* Write the tables of groups behind the segments.  Returns where they end. */
static uint32_t
write_tables(Builder *b)
{
	uint32_t	at = b->segments_end;
	uint32_t	next;

	sort(b->done, b->ndone, earlier);
	for (uint32_t i = 0; i < b->ndone; i = next)
	{
		LbtGroupTable table = {.offset = at};
		LbtGroup	end = {.code = UINT64_MAX};

		for (next = i; next < b->ndone && b->done[next].parent == b->done[i].parent; next++)
		{
			const Group *group = &b->done[next];
			LbtGroup	entry = {.code = group->code,.below = group->below,.segment = group->segment};

			memcpy(b->memory + at, &entry, sizeof(entry));
			at += (uint32_t) sizeof(entry);
			end.below = group->below + group->width;
		}
		memcpy(b->memory + at, &end, sizeof(end));
		at += (uint32_t) sizeof(end);
		table.ngroups = next - i;
		memcpy(b->memory + b->done[i].parent, &table, sizeof(table));
	}
	memcpy(b->memory + offsetof(LbtTreeHead, nsegments), &b->ndone, sizeof(b->ndone));
	return at;
}

/* The least memory that a segment takes, with its entry in a table. */
static uint32_t
least_segment(void)
{
	return (uint32_t) (sizeof(LbtSegment) + sizeof(LbtKeyDigit) + sizeof(LbtCodeColumn) + sizeof(LbtGroup));
}

uint32_t
lbt_codetree_max_bytes(uint32_t nleaves)
{
	uint64_t	bytes = (uint64_t) nleaves * BYTES_PER_LEAF;

	if (bytes > UINT32_MAX / 2)
		return UINT32_MAX / 2 + 1;
	return bytes > MIN_BYTES ? (uint32_t) bytes : MIN_BYTES;
}

size_t
lbt_codetree_scratch_bytes(uint32_t nleaves, uint32_t max_bytes)
{
	return sizeof(Builder) + (size_t) nleaves * sizeof(uint64_t) +
		((size_t) nleaves / LBT_GROUP_LEAVES + 1 + max_bytes / least_segment()) * sizeof(Group);
}

/* Give the leaves their codes in the finished tree. */
static void
encode_leaves(const Builder *b, uint32_t bytes, LbtLeaf *leaves, uint32_t nleaves)
{
	const LbtSeparators *s = b->separators;
	LbtCodeTree tree;

	lbt_codetree_open(b->memory, bytes, &tree);
	lbt_codetree_set_columns(&tree, s->order, s->ncolumns);
	for (uint32_t i = 0; i < nleaves; i++)
		leaves[i].min_code = lbt_codetree_code(&tree, leaves[i].min_code,
											   &s->values[(size_t) i * (size_t) s->ncolumns], s->nvalues[i],
											   LBT_MISSING_LOW);
}

uint32_t
lbt_codetree_build(const LbtSeparators *separators, LbtLeaf *leaves, uint32_t nleaves, void *memory,
				   uint32_t max_bytes, void *scratch)
{
	Builder    *b = scratch;
	LbtTreeHead head = {.nsegments = 0};
	uint32_t	bytes;

	if (max_bytes < sizeof(head))
		return 0;
	b->separators = separators;
	b->memory = memory;
	b->max_bytes = max_bytes;
	b->used = sizeof(head);
	b->segments_end = sizeof(head);
	b->code = (uint64_t *) (b + 1);
	b->waiting = (Group *) (b->code + nleaves);
	b->nwaiting = 0;
	b->done = b->waiting + nleaves / LBT_GROUP_LEAVES + 1;
	b->ndone = 0;
	for (uint32_t i = 0; i < nleaves; i++)
		b->code[i] = leaves[i].min_code >> 1;
	memcpy(b->memory, &head, sizeof(head));
	push_groups(b, 0, nleaves, UINT64_C(1) << 63, 0, 0);
	while (b->nwaiting > 0 && max_bytes - b->used >= least_segment())
	{
		LbtKeyCode	code;
		Group		group = pop(b);

		if (!learn(b, &group, &code) || !write_segment(b, &group, &code))
			continue;
		b->done[b->ndone++] = group;
		if (group.depth + 1 < LBT_TREE_DEPTH)
			push_groups(b, group.first, group.end, group.width / 2, group.segment, group.depth + 1);
	}
	if (b->ndone == 0)
		return 0;
	bytes = write_tables(b);
	encode_leaves(b, bytes, leaves, nleaves);
	return bytes;
}
