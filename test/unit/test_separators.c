/*
 * test_separators.c - separators that are kept: the leaf that a key belongs to, memory, garbage.
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
	key.high = rng_below(rng, 2) != 0;
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
			separators[i].nvalues = 1 + (int) rng_below(rng, (uint64_t) columns->ncolumns);
	}
	sort_bounds(columns, separators, n);
	return separators;
}

/* A NULL in a single column, a ninth column, and a string's bytes beyond LBT_CODE_BYTES, are not told apart. */
static bool
is_told(const KeyColumns *columns, const KeyBound *key)
{
	for (int i = 0; i < key->nvalues; i++)
		if ((key->values[i].isnull && columns->ncolumns == 1) || i >= LBT_CODE_COLUMNS ||
			(columns->order[i].bytes && !key->values[i].isnull && key->values[i].length >= LBT_CODE_BYTES / LBT_CODE_COLUMNS))
			return false;

	/* No index has a separator without a value; as a byte string it is the empty one. */
	return columns->ncolumns > 1 || key->nvalues > 0;
}

/*
 * Every key's leaf, by any number of separators in any amount of memory: it, or where some were cut, one left of it; the same
 * alone as together with others.
 */
static void
finds_leaves(const void *arg)
{
	int			ncolumns = *(const int *) arg;
	Rng			rng = {180 + (uint64_t) ncolumns};
	Room	   *rooms = test_alloc(NPROBES * sizeof(Room));
	uint32_t	exact = 0;
	uint32_t	tied = 0;

	for (uint32_t round = 0; round < 300; round++)
	{
		KeyColumns	columns = random_columns(&rng, ncolumns);
		uint32_t	n = 2 + (uint32_t) rng_below(&rng, round % 8 ? 60 : 600);
		bool		ample = round % 4 > 0;
		Room	   *separator_rooms;
		KeyBound   *bounds = random_separators(&rng, &columns, n, &separator_rooms);
		Separated	s = make_separated(&columns, bounds, n, ample ? n * 4096 : (uint32_t) rng_below(&rng, 8192));
		bool		all_told = true;
		KeyBound	keys[NPROBES];
		bool		pasts[NPROBES];
		uint32_t	alone[NPROBES];
		uint32_t	together[NPROBES];

		for (uint32_t i = 1; i < n; i++)
			all_told = all_told && is_told(&columns, &bounds[i]);
		for (int i = 0; i < NPROBES; i++)
		{
			KeyBound	key = probe_near(&rng, &columns, &bounds[rng_below(&rng, n)], &rooms[i]);
			bool		past = key.high;
			uint32_t	found = find_leaf(&s, &key, past);
			uint32_t	naive = naive_leaf(&columns, bounds, n, &key, past);

			keys[i] = key;
			pasts[i] = past;
			alone[i] = found;
			if (!all_told || !is_told(&columns, &key))
				continue;
			exact += found == naive;
			CHECK(ample ? found == naive : found <= naive || s.separators.bytes == 0,
				  "leaf %u of %u, not %u, %s, in %u bytes", found, n, naive, past ? "past" : "before", s.separators.bytes);
		}
		find_leaves(&s, keys, pasts, NPROBES, together);
		for (int i = 0; i < NPROBES; i++)
			CHECK(together[i] == alone[i], "leaf %u of %u together with others, alone %u", together[i], n, alone[i]);
		tied += s.code_ties >= 16;
		free_separated(&s);
		free(bounds);
		free(separator_rooms);
	}
	CHECK(exact > (ncolumns > 3 ? 20 : 1000), "only %u keys were looked for", exact);
	CHECK(tied > 10, "only %u of the trees have many leaves that tie", tied);
	free(rooms);
}

/* ---- in memory ---- */

/* A model with separators is what went into it. */
static void
opened_as_assembled(const void *arg)
{
	Rng			rng = {191};

	(void) arg;
	for (int round = 0; round < 50; round++)
	{
		KeyColumns	columns = random_columns(&rng, 1 + round % 3);
		Room	   *rooms;
		KeyBound   *bounds = random_separators(&rng, &columns, 400, &rooms);
		Separated	s = make_separated(&columns, bounds, 400, lbt_separators_max_bytes(400));
		size_t		bytes;
		char	   *memory = make_separated_model(&s, &bytes);
		const LbtModelHeader *header = (const LbtModelHeader *) memory;
		LbtModel	model = open_model(memory, bytes);
		LbtKeyCode	code;

		CHECK(header->separator_bytes == s.separators.bytes,
			  "the header does not say what is in the model");
		CHECK(model.separators.memory == (const uint8_t *) (model.leaves + model.nleaves) &&
			  model.separators.memory + model.separators.bytes == (uint8_t *) memory + bytes,
			  "the separators do not end the memory");
		CHECK(memcmp(model.separators.memory, s.memory, s.separators.bytes) == 0, "separators have changed");
		for (size_t less = 1; less < bytes; less += 1 + bytes / 50)
			CHECK(!lbt_model_open(memory, bytes - less, &model, &code), "a model cut by %zu was opened", less);
		free(memory);
		free_separated(&s);
		free(bounds);
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

/* Separators in memory of exactly their size, bytes of it overwritten. */
static void
use_overwritten(Rng *rng, const Separated *s, const KeyBound *keys, int nkeys)
{
	Separated	garbage = *s;

	garbage.memory = test_copy(s->memory, s->separators.bytes);
	CHECK(lbt_separators_open(garbage.memory, s->separators.bytes, s->nleaves, &garbage.separators), "refused");
	set_columns(&garbage.separators, s->columns);
	overwrite(rng, garbage.memory, s->separators.bytes, 60);
	for (int i = 0; i < nkeys; i++)
	{
		bool		past = i & 1;
		uint32_t	slot;

		find_leaf(&garbage, &keys[i], past);
		find_leaves(&garbage, &keys[i], &past, 1, &slot);
	}
	free(garbage.memory);
}

/* Bytes overwritten, in the separators or anywhere: whatever the answers, they stay in bounds, and come. */
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
		KeyBound   *bounds = random_separators(&rng, &columns, 200, &rooms);
		Separated	s = make_separated(&columns, bounds, 200, lbt_separators_max_bytes(200));
		size_t		bytes;
		uint8_t    *sound = make_separated_model(&s, &bytes);

		for (int i = 0; i < 200; i++)
		{
			uint8_t    *memory = test_copy(sound, bytes);
			size_t		from = i % 4 ? sizeof(LbtModelHeader) : 0;
			LbtModel	model;
			LbtKeyCode	code;

			use_overwritten(&rng, &s, bounds, 200);
			overwrite(&rng, memory + from, bytes - from, i % 8 ? 60 : 3000);
			if (lbt_model_open(memory, bytes, &model, &code))
			{
				opened++;
				use_separated_model(&model, &columns, bounds, 200);
			}
			free(memory);
		}
		free(sound);
		free_separated(&s);
		free(bounds);
		free(rooms);
	}
	CHECK(opened >= 40 * 150, "only %u of the models were opened", opened);
}

/* Keys that are equal, or differ behind all that is looked at, tie in any memory; whole codes need no separators. */
static void
equal_keys(const void *arg)
{
	KeyColumns	columns = {.ncolumns = 1,.order = {{.bytes = 1}}};
	uint8_t		text[20][LBT_CODE_BYTES + 50];
	KeyBound	bounds[20] = {{.nvalues = 0}};
	Separated	s;

	(void) arg;
	for (int i = 1; i < 20; i++)
	{
		memset(text[i], i < 3 ? 'a' : 'b', sizeof(text[i]));
		text[i][sizeof(text[i]) - 1] = (uint8_t) i;
		bounds[i] = (KeyBound) {.nvalues = 1};
		bounds[i].values[0] = (LbtKeyValue) {.bytes = text[i],.length = i < 10 ? LBT_CODE_BYTES : sizeof(text[i])};
	}
	s = make_separated(&columns, bounds, 20, 65536);
	CHECK(s.needed && s.code_ties >= 15, "%u ties", s.code_ties);
	free_separated(&s);
	for (int i = 1; i < 20; i++)
		bounds[i].values[0] = (LbtKeyValue) {.bytes = text[1],.length = 1 + (uint32_t) i / 10};
	s = make_separated(&columns, bounds, 20, 65536);
	CHECK(!s.needed && s.code_ties >= 15, "%u ties", s.code_ties);
	free_separated(&s);
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

/* How many keys are looked for in their leaf. */
static uint32_t
count_found(const KeySet *set, const Separated *s, uint32_t step)
{
	uint32_t	found = 0;

	for (uint32_t i = 0; i < set->nkeys; i++)
	{
		KeyBound	key = text_key(set->text[i]);
		uint32_t	leaf = i / step < s->nleaves ? i / step : s->nleaves - 1;
		uint32_t	slot = find_leaf(s, &key, false);

		/* A separator's own key lies at the left end of its leaf, where it is looked for from the left. */
		CHECK(slot <= leaf, "key %u of leaf %u is looked for in %u", i, leaf, slot);
		found += slot == leaf || (i % step == 0 && slot + 1 == leaf);
	}
	return found;
}

static void
check_ties(KeySet *set, const char *name, uint32_t step, double least_without, double least_found)
{
	Separated	s;
	double		found;

	finish_keys(set, step);
	s = make_separated(&one_text, set->separators, set->nleaves, lbt_separators_max_bytes(set->nleaves));
	found = 100.0 * count_found(set, &s, step) / set->nkeys;
	printf("# %s: %u keys, %u leaves, codes of %.1f %% tie, %.1f bytes a leaf%s; %.2f %% of keys"
		   " found at once\n", name, set->nkeys, set->nleaves, 100.0 * s.code_ties / set->nleaves,
		   (double) s.separators.bytes / set->nleaves, s.needed ? "" : " (not needed)",
		   found);
	fflush(stdout);				/* a failed check exits at once */
	CHECK(100.0 * s.code_ties / set->nleaves >= least_without, "only %u of %u leaves tie in their code", s.code_ties,
		  set->nleaves);
	CHECK(found >= least_found, "too few keys are found at once");
	free_separated(&s);
	free_keys(set);
}

static void
urls(const void *arg)
{
	KeySet		set;

	make_urls(&set, 300000);
	check_ties(&set, "URLs", *(const uint32_t *) arg, 50, 99);
}

static void
paths(const void *arg)
{
	KeySet		set;

	make_paths(&set, 300000);
	check_ties(&set, "paths", *(const uint32_t *) arg, 50, 99);
}

static void
deep_prefixes(const void *arg)
{
	KeySet		set;

	make_deep(&set, 100000, *(const uint32_t *) arg);
	check_ties(&set, "long prefixes", 50, 50, 99);
}

/* Real keys as text.   */
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
	check_ties(&set, name, 60, 0, 99);
}

static const int column_counts[] = {1, 2, 3, MAX_COLUMNS};
static const uint32_t steps[] = {60, 4};
static const uint32_t depths[] = {100, 250};

const Test	separators_tests[] = {
	{"keys' leaves by their separators", finds_leaves, &column_counts[0]},
	{"keys' leaves by their separators: 2 columns", finds_leaves, &column_counts[1]},
	{"keys' leaves by their separators: 3 columns", finds_leaves, &column_counts[2]},
	{"keys' leaves by their separators: more columns than codes have", finds_leaves, &column_counts[3]},
	{"a model with separators opens as it was assembled", opened_as_assembled, NULL},
	{"garbage in a model with separators is harmless", garbage_harmless, NULL},
	{"equal keys tie, and whole codes need no separators", equal_keys, NULL},
	{"URLs below long common prefixes are found at once", urls, &steps[0]},
	{"many leaves of URLs below long common prefixes are told apart", urls, &steps[1]},
	{"paths of files are found at once", paths, &steps[0]},
	{"keys behind prefixes of 100 bytes are found at once", deep_prefixes, &depths[0]},
	{"keys behind prefixes of 250 bytes are found at once", deep_prefixes, &depths[1]},
	{NULL, NULL, NULL}
};

const Test	separators_realkeys_tests[] = {
	{"real words are found at once", real_keys, "english_words"},
	{"real addresses as text are found at once", real_keys, "ipv4_starts"},
	{"real times as text are found at once", real_keys, "commit_times"},
	{NULL, NULL, NULL}
};
