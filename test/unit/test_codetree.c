/*
 * test_codetree.c - subcodes: order, how often separators tie with and without them, memory.
 */
#define _POSIX_C_SOURCE 200809L

#include "contract.h"
#include "realkeys.h"
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
	uint32_t	subcodes = 0;

	for (uint32_t round = 0; round < 300; round++)
	{
		KeyColumns	columns = random_columns(&rng, ncolumns);
		uint32_t	n = 2 + (uint32_t) rng_below(&rng, round % 8 ? 60 : 600);
		Room	   *separator_rooms;
		KeyBound   *separators = random_separators(&rng, &columns, n, &separator_rooms);
		CodeTree	t = make_code_tree(&columns, separators, n, round % 4 ? lbt_codetree_max_bytes(n) :
									   (uint32_t) rng_below(&rng, 4096));
		KeyBound	probes[NPROBES];

		subcodes += lbt_codetree_subcodes(&t.tree);
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
	CHECK(subcodes > 300, "only %u subcodes in all", subcodes);
	free(rooms);
}

/* ---- in memory ---- */

/* A model with subcodes is what went into it, and says how many there are. */
static void
opened_as_assembled(const void *arg)
{
	Rng			rng = {191};

	(void) arg;
	for (int round = 0; round < 50; round++)
	{
		KeyColumns	columns = random_columns(&rng, 1 + round % 3);
		Room	   *rooms;
		KeyBound   *separators = random_separators(&rng, &columns, 400, &rooms);
		CodeTree	t = make_code_tree(&columns, separators, 400, lbt_codetree_max_bytes(400));
		size_t		bytes;
		char	   *memory = make_tree_model(&t, &bytes);
		const LbtModelHeader *header = (const LbtModelHeader *) memory;
		LbtModel	model = open_model(memory, bytes);

		CHECK(header->subcodes == lbt_codetree_subcodes(&t.tree) && header->ties == t.ties &&
			  header->tree_bytes == t.tree.bytes, "the header does not say what is in the model");
		CHECK(model.tree.bytes == 0 || (model.tree.memory >= (const char *) (model.knots + model.nknots) &&
										model.tree.memory + model.tree.bytes <= (const char *) model.leaves),
			  "the tree is not between knots and leaves");
		CHECK((const char *) (model.leaves + model.nleaves) == memory + bytes, "the leaves do not end the memory");
		lbt_codetree_set_columns(&model.tree, columns.order, columns.ncolumns);
		for (uint32_t i = 0; i < 400; i++)
			CHECK(lbt_model_code(&model, separators[i].values, separators[i].nvalues, LBT_MISSING_LOW) ==
				  model.leaves[i].min_code, "leaf %u has another code in the model", i);
		for (size_t less = 1; less < bytes; less += 1 + bytes / 50)
			CHECK(!lbt_model_open(memory, bytes - less, &model), "a model cut by %zu was opened", less);
		free(memory);
		free_code_tree(&t);
		free(separators);
		free(rooms);
	}
}

static void
overwrite(Rng *rng, uint8_t *memory, size_t bytes, uint64_t most)
{
	for (uint64_t n = rng_below(rng, most); n > 0; n--)
	{
		uint8_t    *at = &memory[rng_below(rng, bytes)];

		*at = rng_below(rng, 2) ? (uint8_t) rng_next(rng) : *at ^ 8;
	}
}

/* A tree in memory of exactly its size, bytes of it overwritten. */
static void
use_overwritten_tree(Rng *rng, const CodeTree *t, const KeyBound *keys, int nkeys)
{
	CodeTree	garbage = *t;

	garbage.memory = test_copy(t->memory, t->tree.bytes);
	garbage.tree.memory = garbage.memory;
	overwrite(rng, garbage.memory, t->tree.bytes, 60);
	for (int i = 0; i < nkeys; i++)
		code_in_tree(&garbage, &keys[i]);
	free(garbage.memory);
}

/* Bytes overwritten, in the tree or anywhere: whatever the answers, they stay in bounds, and come. */
static void
garbage_harmless(const void *arg)
{
	Rng			rng = {192};
	uint32_t	opened = 0;

	(void) arg;
	for (int round = 0; round < 40; round++)
	{
		KeyColumns	columns = random_columns(&rng, 1 + round % 3);
		Room	   *rooms;
		KeyBound   *separators = random_separators(&rng, &columns, 200, &rooms);
		CodeTree	t = make_code_tree(&columns, separators, 200, lbt_codetree_max_bytes(200));
		size_t		bytes;
		uint8_t    *sound = make_tree_model(&t, &bytes);

		for (int i = 0; i < 200; i++)
		{
			uint8_t    *memory = test_copy(sound, bytes);
			size_t		from = i % 4 ? sizeof(LbtModelHeader) : 0;
			LbtModel	model;

			if (t.tree.bytes > 0)
				use_overwritten_tree(&rng, &t, separators, 200);
			overwrite(&rng, memory + from, bytes - from, i % 8 ? 60 : 3000);
			if (lbt_model_open(memory, bytes, &model))
			{
				opened++;
				use_tree_model(&model, &columns, separators, 200);
			}
			free(memory);
		}
		free(sound);
		free_code_tree(&t);
		free(separators);
		free(rooms);
	}
	CHECK(opened >= 40 * 150, "only %u of the models were opened", opened);
}

/* A subcode that names itself as the subcode of its groups: the way down ends all the same. */
static void
circle_ends(const void *arg)
{
	KeyColumns	columns = {.ncolumns = 1,.order = {{.bytes = 1}}};
	const char *const texts[] = {"0", "the same beginning 1", "the same beginning 2", "z~~~~~~~~~~~~~~~~~~"};
	KeyBound	separators[5] = {{.nvalues = 0}};
	CodeTree	t;
	uint32_t	root;

	(void) arg;
	for (int i = 0; i < 4; i++)
	{
		separators[i + 1] = (KeyBound) {.nvalues = 1};
		separators[i + 1].values[0] = (LbtKeyValue) {.bytes = (const uint8_t *) texts[i],
		.length = (uint32_t) strlen(texts[i])};
	}
	t = make_code_tree(&columns, separators, 5, 4096);
	CHECK(lbt_codetree_subcodes(&t.tree) == 1 && t.one_code_ties == 2 && t.ties == 1,
		  "%u subcodes, %u ties", lbt_codetree_subcodes(&t.tree), t.ties);

	/* The offset in the root's first group, behind the 16 bytes of a node and two numbers, becomes the root's. */
	memcpy(&root, t.memory, sizeof(root));
	memcpy((char *) t.memory + root + 32, &root, sizeof(root));
	for (int i = 0; i < 5; i++)
		code_in_tree(&t, &separators[i]);
	free_code_tree(&t);
}

/* Keys that are equal, or differ behind all that a code can see, are not worth a subcode. */
static void
equal_keys(const void *arg)
{
	KeyColumns	columns = {.ncolumns = 1,.order = {{.bytes = 1}}};
	uint8_t		text[20][400];
	KeyBound	separators[20] = {{.nvalues = 0}};
	CodeTree	t;

	(void) arg;
	for (int i = 1; i < 20; i++)
	{
		memset(text[i], i < 3 ? 'a' : 'b', sizeof(text[i]));
		text[i][399] = (uint8_t) i;
		separators[i] = (KeyBound) {.nvalues = 1};
		separators[i].values[0] = (LbtKeyValue) {.bytes = text[i],.length = i < 10 ? 350 : 400};
	}
	t = make_code_tree(&columns, separators, 20, 65536);
	CHECK(lbt_codetree_subcodes(&t.tree) == 0 && t.ties > 15 && t.ties == t.one_code_ties,
		  "%u subcodes, %u ties", lbt_codetree_subcodes(&t.tree), t.ties);
	free_code_tree(&t);
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
	printf("# %s: %u keys, %u leaves, %.1f %% tie in one code, %.2f %% with %u subcodes in %u bytes; %.1f %% of keys"
		   " found at once, %.1f %% in 3 steps\n", name, set->nkeys, set->nleaves,
		   100.0 * t.one_code_ties / set->nleaves, ties, lbt_codetree_subcodes(&t.tree), t.tree.bytes,
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

/* Real keys as text.  Those that fit into one code have few ties to begin with, and none more. */
static void
real_keys(const void *arg)
{
	const char *name = arg;
	FILE	   *file = open_real_keys(name);
	uint32_t	room = 500000;
	KeySet		set = {.text = test_alloc(room * (size_t) MAX_KEY)};

	while (set.nkeys < room && fgets(set.text[set.nkeys], MAX_KEY, file) != NULL)
	{
		char	   *text = set.text[set.nkeys++];

		text[strcspn(text, "\r\n")] = '\0';
	}
	CHECK(pclose(file) == 0 && set.nkeys > 1000, "%s gave %u keys", name, set.nkeys);
	check_ties(&set, name, 60, 0, 0.5);
}

static const int column_counts[] = {1, 2, 3, MAX_COLUMNS};
static const uint32_t steps[] = {60, 4};
static const uint32_t depths[] = {100, 250};

const Test	codetree_tests[] = {
	{"codes in subcodes keep the order", keeps_order, &column_counts[0]},
	{"codes in subcodes keep the order: 2 columns", keeps_order, &column_counts[1]},
	{"codes in subcodes keep the order: 3 columns", keeps_order, &column_counts[2]},
	{"codes in subcodes keep the order: more columns than codes have", keeps_order, &column_counts[3]},
	{"a model with subcodes opens as it was assembled", opened_as_assembled, NULL},
	{"garbage in a model with subcodes is harmless", garbage_harmless, NULL},
	{"a subcode within itself is harmless", circle_ends, NULL},
	{"equal keys get no subcode", equal_keys, NULL},
	{"URLs below long common prefixes do not tie", urls, &steps[0]},
	{"many leaves of URLs below long common prefixes do not tie", urls, &steps[1]},
	{"paths of files do not tie", paths, &steps[0]},
	{"keys behind prefixes of 100 bytes do not tie", deep_prefixes, &depths[0]},
	{"keys behind prefixes of 250 bytes do not tie", deep_prefixes, &depths[1]},
	{NULL, NULL, NULL}
};

const Test	codetree_realkeys_tests[] = {
	{"real words tie in no more than a few leaves", real_keys, "english_words"},
	{"real addresses as text tie in no more than a few leaves", real_keys, "ipv4_starts"},
	{"real times as text tie in no more than a few leaves", real_keys, "commit_times"},
	{NULL, NULL, NULL}
};
