/*
 * test_codetree.c - segments: order, how often separators tie with and without them, memory.
 */
#include "contract.h"
#include "strings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NPROBES 40

/* ---- keys of directory trees ---- */

static const char *const parts[] = {
	"/", "usr/", "usr/share/doc/", "lib", "lib/x86_64-linux-gnu/", "python3.11/dist-packages/", "a", "b", "~",
	"README.gz", "include/c++/12/bits/", "\377", "index", "0", "locale/de/LC_MESSAGES/", "_", "modules-load.d/", "",
	"the same directory name that is longer than all the digits of a code/", "\1"
};
#define NPARTS (sizeof(parts) / sizeof(parts[0]))

/* Some parts, one after the other; those at the front are mostly the same. */
static LbtKeyValue
random_path(Rng *rng, uint8_t *room)
{
	uint32_t	length = 0;
	uint64_t	nparts = 1 + rng_below(rng, 6);

	for (uint64_t i = 0; i < nparts; i++)
	{
		const char *part = parts[rng_below(rng, i == 0 ? 2 : i < 3 ? 5 : NPARTS)];
		uint32_t	more = (uint32_t) strlen(part);

		if (length + more > STRING_ROOM)
			break;
		memcpy(room + length, part, more);
		length += more;
	}
	return (LbtKeyValue) {.bytes = room,.length = length};
}

typedef uint8_t Room[MAX_COLUMNS][STRING_ROOM];

/* A key whose leading columns repeat another's, so that the next ones count. */
static KeyBound
random_key(Rng *rng, const KeyColumns *columns, const KeyBound *other, Room *room)
{
	KeyBound	key = {.nvalues = columns->ncolumns};
	int			common = other == NULL ? 0 : (int) rng_below(rng, (uint64_t) columns->ncolumns);

	for (int i = 0; i < key.nvalues; i++)
	{
		if (i < common && i < other->nvalues)
			key.values[i] = other->values[i];
		else if (rng_below(rng, 24) == 0)
			key.values[i].isnull = true;
		else if (columns->order[i].bytes)
			key.values[i] = random_path(rng, (*room)[i]);
		else
			key.values[i].ordered = (UINT64_C(1) << 40) + (rng_below(rng, 1000) << rng_below(rng, 40));
	}
	return key;
}

/* The same, or one beside it: cut, longer, another byte, fewer values, another number. */
static KeyBound
probe_near(Rng *rng, const KeyColumns *columns, const KeyBound *other, Room *room)
{
	KeyBound	key = *other;
	int			at = (int) rng_below(rng, (uint64_t) columns->ncolumns);

	if (rng_below(rng, 6) == 0)
		key = random_key(rng, columns, other, room);
	key.missing = rng_below(rng, 2) ? LBT_MISSING_HIGH : LBT_MISSING_LOW;
	if (at < key.nvalues && rng_below(rng, 6) == 0)
		key.nvalues = at;
	if (at >= key.nvalues)
		return key;
	if (!columns->order[at].bytes)
		key.values[at].ordered += rng_below(rng, 3) - 1;
	else if (!key.values[at].isnull)
		key.values[at] = any_string(rng, &string_kinds[rng_below(rng, nstring_kinds)], &key.values[at], (*room)[at]);
	return key;
}

static KeyColumns
random_columns(Rng *rng, int ncolumns)
{
	KeyColumns	columns = {.ncolumns = ncolumns};

	for (int i = 0; i < ncolumns; i++)
	{
		bool		bytes = rng_below(rng, 3) > 0;

		columns.order[i] = (LbtColumnOrder) {.bytes = bytes,.desc = bytes && rng_below(rng, 2),
		.nulls_first = (uint8_t) rng_below(rng, 2)};
	}
	return columns;
}

/* Random separators, in order, the first of them empty; the caller frees both. */
static KeyBound *
random_separators(Rng *rng, const KeyColumns *columns, uint32_t n, Room **rooms)
{
	KeyBound   *separators = test_alloc(n * sizeof(KeyBound));

	*rooms = test_alloc(n * sizeof(Room));
	separators[0] = (KeyBound) {.nvalues = 0};
	for (uint32_t i = 1; i < n; i++)
	{
		separators[i] = random_key(rng, columns, i > 1 ? &separators[1 + rng_below(rng, i - 1)] : NULL, &(*rooms)[i]);
		if (rng_below(rng, 4) == 0)
			separators[i].nvalues = (int) rng_below(rng, (uint64_t) columns->ncolumns + 1);
	}
	sort_bounds(columns, separators, n);
	return separators;
}

/* Trees of all sizes, from any separators: every pair of keys is in order. */
static void
keeps_order(const void *arg)
{
	int			ncolumns = *(const int *) arg;
	Rng			rng = {180 + (uint64_t) ncolumns};
	Room	   *rooms = test_alloc(NPROBES * sizeof(Room));
	uint32_t	segments = 0;

	for (uint32_t round = 0; round < 1500; round++)
	{
		KeyColumns	columns = random_columns(&rng, ncolumns);
		uint32_t	n = 2 + (uint32_t) rng_below(&rng, round % 8 ? 60 : 600);
		Room	   *separator_rooms;
		KeyBound   *separators = random_separators(&rng, &columns, n, &separator_rooms);
		CodeTree	t = make_code_tree(&columns, separators, n, round % 4 ? lbt_codetree_max_bytes(n) :
									   (uint32_t) rng_below(&rng, 4096));
		KeyBound	probes[NPROBES];

		segments += lbt_codetree_segments(&t.tree);
		for (int i = 0; i < NPROBES; i++)
		{
			probes[i] = probe_near(&rng, &columns, &separators[rng_below(&rng, n)], &rooms[i]);
			for (int j = 0; j < i; j++)
				check_order(&columns, &probes[i], code_in_tree(&t, &probes[i]), &probes[j],
							code_in_tree(&t, &probes[j]));
			for (uint32_t j = 0; j < n; j += 1 + n / 50)
				check_order(&columns, &probes[i], code_in_tree(&t, &probes[i]), &separators[j],
							t.leaves[j].min_code);
		}
		free_code_tree(&t);
		free(separators);
		free(separator_rooms);
	}
	CHECK(segments > 1500, "only %u segments in all", segments);
	free(rooms);
}

/* ---- how often separators tie ---- */

#define MAX_KEY 400

/* Keys in order, one string column, and every step-th of them a separator. */
typedef struct KeySet
{
	char		(*text)[MAX_KEY];
	uint32_t	nkeys;
	KeyBound   *separators;
	uint32_t	nleaves;
} KeySet;

static const KeyColumns one_text = {.ncolumns = 1,.order = {{.bytes = 1}}};

static KeyBound
text_key(const char *text)
{
	KeyBound	key = {.nvalues = 1};

	key.values[0] = (LbtKeyValue) {.bytes = (const uint8_t *) text,.length = (uint32_t) strlen(text)};
	return key;
}

static int
compare_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Sort the keys, drop equal ones, and take the separators. */
static void
finish_keys(KeySet *set, uint32_t step)
{
	uint32_t	n = 0;

	qsort(set->text, set->nkeys, MAX_KEY, compare_text);
	for (uint32_t i = 0; i < set->nkeys; i++)
		if (i == 0 || strcmp(set->text[n - 1], set->text[i]) != 0)
			memmove(set->text[n++], set->text[i], MAX_KEY);
	set->nkeys = n;
	set->nleaves = n / step;
	set->separators = test_alloc(set->nleaves * sizeof(KeyBound));
	set->separators[0] = (KeyBound) {.nvalues = 0};
	for (uint32_t i = 1; i < set->nleaves; i++)
		set->separators[i] = text_key(set->text[i * step]);
}

static void
free_keys(KeySet *set)
{
	free(set->text);
	free(set->separators);
}

/* Pages of a few sites, most of them in large groups below long common prefixes. */
static void
make_urls(KeySet *set, uint32_t nkeys)
{
	static const char *const hosts[] = {"https://www.example.com", "https://media-archive.example.org/collections",
	"https://media-archive.example.org/collections-of-the-municipal-library", "https://shop.example.net"};
	static const char *const sections[] = {"articles/politics", "articles/science/astronomy", "images/large/originals",
	"users", "products/kitchen/appliances/replacement-parts"};
	static const char *const words[] = {"solar", "night", "city", "market", "river", "old", "new", "council", "report"};
	Rng			rng = {77};

	set->nkeys = nkeys;
	set->text = test_alloc(nkeys * (size_t) MAX_KEY);
	for (uint32_t i = 0; i < nkeys; i++)
		snprintf(set->text[i], MAX_KEY, "%s/%s/%d/%02d/%s-%s-%06d.html", hosts[rng_below(&rng, 4)],
				 sections[rng_below(&rng, 5)], 2005 + (int) rng_below(&rng, 20), 1 + (int) rng_below(&rng, 12),
				 words[rng_below(&rng, 9)], words[rng_below(&rng, 9)], (int) rng_below(&rng, 1000000));
}

/* Paths of a distribution's packages: names of all lengths, few files in most directories, many in some. */
static void
make_paths(KeySet *set, uint32_t nkeys)
{
	static const char *const tops[] = {"/usr/share/doc", "/usr/lib/x86_64-linux-gnu", "/usr/lib/python3/dist-packages",
	"/usr/share/locale", "/usr/include", "/var/lib/dpkg/info"};
	static const char *const names[] = {"lib", "gnome-", "python3-", "kde", "perl-", "x11-", "boost", "qt6-base-"};
	static const char *const files[] = {"changelog.Debian.gz", "copyright", "README", "__init__.py", "messages.mo",
	"config.h", "examples/Makefile.in", "tests/data/input"};
	Rng			rng = {78};

	set->nkeys = nkeys;
	set->text = test_alloc(nkeys * (size_t) MAX_KEY);
	for (uint32_t i = 0; i < nkeys; i++)
		snprintf(set->text[i], MAX_KEY, "%s/%s%s%d/%s%.0d", tops[rng_below(&rng, 6)], names[rng_below(&rng, 8)],
				 names[rng_below(&rng, 8)], (int) (rng_below(&rng, 300) * rng_below(&rng, 300) / 100),
				 files[rng_below(&rng, 8)], (int) rng_below(&rng, 12));
}

/* Keys that have this much in common, and then differ in little. */
static void
make_deep(KeySet *set, uint32_t nkeys, uint32_t depth)
{
	Rng			rng = {79};

	set->nkeys = nkeys;
	set->text = test_alloc(nkeys * (size_t) MAX_KEY);
	for (uint32_t i = 0; i < nkeys; i++)
	{
		memset(set->text[i], 'd', depth);
		if (rng_below(&rng, 8) == 0)	/* or the prefix is all keys' */
			set->text[i][rng_below(&rng, 20)] = 'e';
		snprintf(set->text[i] + depth, MAX_KEY - depth, "%08d", (int) rng_below(&rng, 100000000));
	}
}

/* How many keys are looked for in their leaf, or at most that many leaves to the left of it. */
static uint32_t
count_found(const KeySet *set, const CodeTree *t, uint32_t step, uint32_t hops)
{
	uint32_t	found = 0;

	for (uint32_t i = 0; i < set->nkeys; i++)
	{
		KeyBound	key = text_key(set->text[i]);
		uint32_t	leaf = i / step < t->nleaves ? i / step : t->nleaves - 1;
		uint32_t	slot = lbt_leaf_search(t->leaves, t->nleaves, leaf, code_in_tree(t, &key), false);

		/* A separator's own key lies at the left end of its leaf, where it is looked for from the left. */
		CHECK(slot <= leaf, "key %u of leaf %u is looked for in %u", i, leaf, slot);
		found += slot + hops >= leaf;
	}
	return found;
}

static void
check_ties(KeySet *set, const char *name, uint32_t step, double least_without, double most_with)
{
	CodeTree	t;
	double		ties;

	finish_keys(set, step);
	t = make_code_tree(&one_text, set->separators, set->nleaves, lbt_codetree_max_bytes(set->nleaves));
	ties = 100.0 * t.ties / set->nleaves;
	printf("# %s: %u keys, %u leaves, %.1f %% tie in one code, %.2f %% with %u segments in %u bytes; %.1f %% of keys"
		   " found at once, %.1f %% in 3 steps\n", name, set->nkeys, set->nleaves,
		   100.0 * t.one_code_ties / set->nleaves, ties, lbt_codetree_segments(&t.tree), t.tree.bytes,
		   100.0 * count_found(set, &t, step, 0) / set->nkeys, 100.0 * count_found(set, &t, step, 3) / set->nkeys);
	fflush(stdout);				/* a failed check exits at once */
	CHECK(100.0 * t.one_code_ties / set->nleaves >= least_without, "only %u of %u leaves tie in one code",
		  t.one_code_ties, set->nleaves);
	CHECK(ties <= most_with, "%u of %u leaves tie", t.ties, set->nleaves);
	CHECK(count_found(set, &t, step, 3) >= 0.99 * set->nkeys, "too few keys are found in three steps");
	free_code_tree(&t);
	free_keys(set);
}

static void
urls(const void *arg)
{
	KeySet		set;

	make_urls(&set, 300000);
	check_ties(&set, "URLs", *(const uint32_t *) arg, 50, 1);
}

static void
paths(const void *arg)
{
	KeySet		set;

	make_paths(&set, 300000);
	check_ties(&set, "paths", *(const uint32_t *) arg, 50, 1);
}

static void
deep_prefixes(const void *arg)
{
	KeySet		set;

	make_deep(&set, 100000, *(const uint32_t *) arg);
	check_ties(&set, "long prefixes", 50, 50, 1);
}

static const int column_counts[] = {1, 2, 3, MAX_COLUMNS};
static const uint32_t steps[] = {60, 4};
static const uint32_t depths[] = {100, 250};

const Test	codetree_tests[] = {
	{"codes in segments keep the order", keeps_order, &column_counts[0]},
	{"codes in segments keep the order: 2 columns", keeps_order, &column_counts[1]},
	{"codes in segments keep the order: 3 columns", keeps_order, &column_counts[2]},
	{"codes in segments keep the order: more columns than codes have", keeps_order, &column_counts[3]},
	{"URLs below long common prefixes do not tie", urls, &steps[0]},
	{"many leaves of URLs below long common prefixes do not tie", urls, &steps[1]},
	{"paths of files do not tie", paths, &steps[0]},
	{"keys behind prefixes of 100 bytes do not tie", deep_prefixes, &depths[0]},
	{"keys behind prefixes of 250 bytes do not tie", deep_prefixes, &depths[1]},
	{NULL, NULL, NULL}
};
