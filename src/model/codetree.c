/*
 * codetree.c - a tree of codes: its layout, computing codes in it, and learning it; see codetree.h.
 *
 * The tree is a Head, and behind it Nodes: a node for each subcode and, as the last, one for the root, which has
 * groups only.  A node's parts follow it in the order of NodeParts.  Offsets count from the start of the tree, and
 * are multiples of 8.
 *
 * What says how much may be read is copied first, through volatile, so that it is read once: the memory may
 * change between a check and the use.  What is left to be garbage is codes, digits, and prefixes' bytes.
 */
#include "codetree.h"

#include <string.h>

typedef struct Head
{
	uint32_t	root;			/* offset */
	uint32_t	nsubcodes;
} Head;

typedef struct Node
{
	uint32_t	ngroups;
	uint32_t	prefix_bytes;
	uint16_t	ncolumns;
	uint16_t	ndigits;
	uint32_t	unused;			/* zero */
} Node;

/* A tie group that has a subcode.  Where there are any, one more behind them stands for the end. */
typedef struct Group
{
	uint64_t	code;			/* in the code that this is a group of */
	uint64_t	below;			/* widths of the groups before */
	uint32_t	subcode;		/* offset */
	uint32_t	unused;			/* zero */
} Group;

/* A copy of what says how much may be read, and where a node's parts are. */
typedef struct NodeParts
{
	Node		sizes;
	const Group *groups;
	LbtCodeParts code;			/* but for order and alphabet */
	uint64_t	bytes;			/* of the node and its parts */
} NodeParts;

static NodeParts
lay_out(const char *at, const Node *sizes)
{
	NodeParts	p = {.sizes = *sizes,.groups = (const Group *) (at + sizeof(Node))};

	p.code.digit = (const LbtKeyDigit *) (p.groups + sizes->ngroups + (sizes->ngroups > 0));
	p.code.end = p.code.digit + sizes->ndigits;
	p.code.column = (const LbtCodeColumn *) p.code.end;
	p.code.ncolumns = sizes->ncolumns;
	p.code.prefix = (const uint8_t *) (p.code.column + sizes->ncolumns);
	p.code.prefix_bytes = sizes->prefix_bytes;
	p.bytes = ((uint64_t) ((const char *) p.code.prefix - at) + sizes->prefix_bytes + 7) & ~UINT64_C(7);
	return p;
}

/* ---- use ---- */

bool
lbt_codetree_open(const void *memory, uint32_t bytes, LbtCodeTree *tree)
{
	if (bytes % 8 != 0 || (bytes > 0 && bytes < sizeof(Head)))
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
lbt_codetree_subcodes(const LbtCodeTree *tree)
{
	return tree->bytes > 0 ? ((const Head *) tree->memory)->nsubcodes : 0;
}

/* False when there is no node at this offset. */
static bool
open_node(const LbtCodeTree *tree, uint32_t offset, NodeParts *parts)
{
	const volatile Node *node = (const volatile Node *) (tree->memory + offset);
	Node		sizes;

	if (offset % 8 != 0 || offset > tree->bytes || tree->bytes - offset < sizeof(Node))
		return false;
	sizes.ngroups = node->ngroups;
	sizes.prefix_bytes = node->prefix_bytes;
	sizes.ncolumns = node->ncolumns;
	sizes.ndigits = node->ndigits;
	sizes.unused = 0;
	if (sizes.ngroups > tree->bytes / sizeof(Group))
		return false;
	*parts = lay_out(tree->memory + offset, &sizes);
	return parts->bytes <= tree->bytes - offset;
}

/* The first group whose code is not below, or the end. */
static const Group *
find_group(const Group *groups, uint32_t ngroups, uint64_t code)
{
	while (ngroups > 0)
	{
		uint32_t	half = ngroups / 2;

		if (groups[half].code < code)
		{
			groups += half + 1;
			ngroups -= half + 1;
		}
		else
			ngroups = half;
	}
	return groups;
}

uint64_t
lbt_codetree_code(const LbtCodeTree *tree, const LbtAlphabet *alphabet, uint64_t root_code,
				  const LbtKeyValue *values, int nvalues, LbtMissing missing)
{
	uint64_t	code = root_code >> 1;	/* at the root, or a subcode */
	uint64_t	base = 0;		/* what the way down adds to it */
	uint32_t	at;
	NodeParts	node;

	if (tree->bytes == 0)
		return root_code;
	at = ((const volatile Head *) tree->memory)->root;
	for (int depth = 0; open_node(tree, at, &node); depth++)
	{
		const volatile Group *group;
		uint32_t	ngroups = node.sizes.ngroups;

		if (depth > 0)
		{
			node.code.order = tree->order;
			node.code.alphabet = alphabet;
			if (node.code.ncolumns > tree->ncolumns)
				node.code.ncolumns = tree->ncolumns;
			code = lbt_code_of_parts(&node.code, values, nvalues, missing);
		}
		if (ngroups == 0 || depth == LBT_TREE_DEPTH)
			return base + code;
		group = find_group(node.groups, ngroups, code);
		base += code + group->below;
		if (group == node.groups + ngroups || group->code != code)
			break;
		at = group->subcode;
	}
	return base;
}

/* ---- learning ---- */

/* A tree's memory: so much for a leaf, as the leaf cache, but not less than MIN_BYTES. */
#define BYTES_PER_LEAF 16
#define MIN_BYTES (64 * 1024)

/* A tie group of fewer leaves gets no subcode. */
#define GROUP_LEAVES 2

/* A subcode needs space for so many codes for every leaf, or it cannot tell its keys apart. */
#define MIN_CODES_PER_LEAF 256

/*
 * Digits that count for less than such a part of the smallest distance between separators' codes are dropped.  The rest
 * is fine enough that few keys next to a separator tie with it.  FINER_AT_FIRST, as long as all subcodes fit.
 */
#define FINER_AT_FIRST (UINT64_C(1) << 32)
#define FINER 256

typedef struct Builder
{
	const LbtSeparators *separators;
	char	   *memory;
	uint32_t	max_bytes;
	uint32_t	used;
	bool		full;			/* a node had no space */
	uint32_t	nsubcodes;
	uint32_t	group_leaves;	/* a group of fewer gets no subcode */
	uint64_t	finer;
	uint64_t   *code;			/* of each leaf, in the code learned last */
	Group	   *groups;			/* a stack: of nodes not written yet */
	uint32_t	ngroups;
	LbtKeyLearner learner;
} Builder;

uint32_t
lbt_codetree_max_bytes(uint32_t nleaves)
{
	uint64_t	bytes = (uint64_t) nleaves * BYTES_PER_LEAF;

	if (bytes > UINT32_MAX / 2)
		return UINT32_MAX / 2 + 1;
	return bytes > MIN_BYTES ? (uint32_t) bytes : MIN_BYTES;
}

size_t
lbt_codetree_scratch_bytes(uint32_t nleaves)
{
	/* The groups of all nodes on the way to a leaf: each of other leaves. */
	size_t		max_groups = (size_t) nleaves / GROUP_LEAVES + 1;

	return sizeof(Builder) + (size_t) nleaves * sizeof(uint64_t) + max_groups * sizeof(Group);
}

static const LbtKeyValue *
separator(const LbtSeparators *s, uint32_t leaf)
{
	return &s->values[(size_t) leaf * (size_t) s->ncolumns];
}

/* Encode a group's leaves.  Returns the smallest distance of codes that differ; 0 where none do. */
static uint64_t
encode_leaves(const Builder *b, const LbtKeyCode *code, uint32_t first, uint32_t end)
{
	const LbtSeparators *s = b->separators;
	uint64_t	smallest = 0;

	for (uint32_t i = first; i < end; i++)
	{
		b->code[i] = lbt_keycode(code, separator(s, i), s->nvalues[i], LBT_MISSING_LOW);
		/* Less 1, so that none stands for more than any. */
		if (i > first && b->code[i] - b->code[i - 1] - 1 < smallest - 1)
			smallest = b->code[i] - b->code[i - 1];
	}
	return smallest;
}

/* Learn the code of a group's separators; false when it does not tell them apart either. */
static bool
learn(Builder *b, uint32_t first, uint32_t end, uint64_t width, LbtKeyCode *code)
{
	const LbtSeparators *s = b->separators;
	uint64_t	distance;
	int			ndigits = 1;

	lbt_keycode_begin(&b->learner, s->ncolumns, s->order);
	for (uint32_t i = first; i < end; i++)
		lbt_keycode_observe(&b->learner, separator(s, i), s->nvalues[i]);
	lbt_keycode_finish_within(&b->learner, &s->code->alphabet, width / 2, code);
	distance = encode_leaves(b, code, first, end);
	while (ndigits < code->ndigits && code->digit[ndigits - 1].weight > distance / b->finer)
		ndigits++;
	lbt_keycode_truncate(code, ndigits);
	return distance > 0 && encode_leaves(b, code, first, end) > 0;
}

/* Write a node, with the groups from first_group on, whose widths these are; returns its offset, 0 if there is no space. */
static uint32_t
write_node(Builder *b, const LbtKeyCode *code, uint32_t first_group, uint64_t widths)
{
	Node		sizes = {.ngroups = b->ngroups - first_group,.ncolumns = (uint16_t) code->ncolumns,
	.ndigits = (uint16_t) code->ndigits};
	uint32_t	offset = b->used;
	NodeParts	p;

	for (int i = 0; i < code->ncolumns; i++)
		sizes.prefix_bytes += code->column[i].prefix_length;
	p = lay_out(b->memory + offset, &sizes);
	b->ngroups = first_group;
	if (p.bytes > b->max_bytes - b->used)
	{
		b->full = true;
		return 0;
	}
	b->used += (uint32_t) p.bytes;
	memset(b->memory + offset, 0, p.bytes);
	memcpy(b->memory + offset, &sizes, sizeof(sizes));
	if (sizes.ngroups > 0)
	{
		Group	   *groups = (Group *) p.groups;

		memcpy(groups, &b->groups[first_group], sizes.ngroups * sizeof(Group));
		groups[sizes.ngroups].code = UINT64_MAX;
		groups[sizes.ngroups].below = widths;
	}
	memcpy((void *) p.code.digit, code->digit, sizes.ndigits * sizeof(LbtKeyDigit));
	memcpy((void *) p.code.column, code->column, sizes.ncolumns * sizeof(LbtCodeColumn));
	memcpy((void *) p.code.prefix, code->prefix, sizes.prefix_bytes);
	return offset;
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

/*
 * Write the subcodes of the groups among these leaves, and push the groups.  They share the width in proportion to
 * their leaves.  Returns the widths of those that have a subcode.
 */
static uint64_t
add_groups(Builder *b, uint32_t first, uint32_t end, uint64_t width, int depth)
{
	uint64_t	below = 0;
	uint64_t	nleaves = 0;
	uint32_t	run_end;

	for (uint32_t at = first; at < end; at = run_end)
	{
		run_end = end_of_run(b->code, at, end);
		if (run_end - at >= b->group_leaves)
			nleaves += run_end - at;
	}
	if (nleaves == 0 || width / nleaves < MIN_CODES_PER_LEAF)
		return 0;
	for (uint32_t at = first; at < end && !b->full; at = run_end)
	{
		Group		group = {.code = b->code[at],.below = below};
		uint32_t	first_inside = b->ngroups;
		uint64_t	inside = 0;
		uint64_t	share;
		LbtKeyCode	code;

		run_end = end_of_run(b->code, at, end);
		share = width / nleaves * (run_end - at);
		if (run_end - at < b->group_leaves || !learn(b, at, run_end, share, &code))
			continue;
		if (depth + 1 < LBT_TREE_DEPTH)
			inside = add_groups(b, at, run_end, share / 2, depth + 1);
		group.subcode = write_node(b, &code, first_inside, inside);
		b->nsubcodes++;
		b->groups[b->ngroups++] = group;
		below += share;
	}
	return below;
}

/* The tree of groups of group_leaves and more; returns its bytes, 0 if there is none or it does not fit. */
static uint32_t
build(Builder *b, const LbtLeaf *leaves, uint32_t nleaves)
{
	static const LbtKeyCode no_digits;
	Head		head;
	uint64_t	widths;

	b->used = sizeof(head);
	b->full = false;
	b->nsubcodes = 0;
	b->ngroups = 0;
	for (uint32_t i = 0; i < nleaves; i++)
		b->code[i] = leaves[i].min_code >> 1;
	widths = add_groups(b, 0, nleaves, UINT64_C(1) << 63, 0);
	head.nsubcodes = b->nsubcodes;
	head.root = write_node(b, &no_digits, 0, widths);
	memcpy(b->memory, &head, sizeof(head));
	return b->full || b->nsubcodes == 0 ? 0 : b->used;
}

uint32_t
lbt_codetree_build(const LbtSeparators *separators, LbtLeaf *leaves, uint32_t nleaves, void *memory,
				   uint32_t max_bytes, void *scratch)
{
	Builder    *b = scratch;
	LbtCodeTree tree;
	uint32_t	bytes;

	if (max_bytes < sizeof(Head))
		return 0;
	b->separators = separators;
	b->memory = memory;
	b->max_bytes = max_bytes;
	b->code = (uint64_t *) (b + 1);
	b->groups = (Group *) (b->code + nleaves);
	b->group_leaves = GROUP_LEAVES;
	b->finer = FINER_AT_FIRST;
	bytes = build(b, leaves, nleaves);
	for (b->finer = FINER; b->full && b->group_leaves <= nleaves; b->group_leaves *= 2)
		bytes = build(b, leaves, nleaves);
	if (bytes == 0)
		return 0;
	lbt_codetree_open(memory, bytes, &tree);
	lbt_codetree_set_columns(&tree, separators->order, separators->ncolumns);
	for (uint32_t i = 0; i < nleaves; i++)
		leaves[i].min_code = lbt_codetree_code(&tree, &separators->code->alphabet, leaves[i].min_code,
											   separator(separators, i), separators->nvalues[i], LBT_MISSING_LOW);
	return bytes;
}
