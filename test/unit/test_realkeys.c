/*
 * test_realkeys.c - spline and key code over real key sets, files NAME.txt.xz of one integer or word a
 * line, in the folder that the environment variable LBT_KEYS names.
 */
#define _POSIX_C_SOURCE 200809L

#include "contract.h"
#include "realkeys.h"
#include "sample.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

FILE *
open_real_keys(const char *name)
{
	const char *folder = getenv("LBT_KEYS");
	char		command[4096];
	FILE	   *file;

	CHECK(folder != NULL && strchr(folder, '\'') == NULL, "LBT_KEYS names no folder");
	snprintf(command, sizeof(command), "xzcat '%s/%s.txt.xz'", folder, name);
	file = popen(command, "r");
	CHECK(file != NULL, "cannot run %s", command);
	return file;
}

/* The codes of a key set, in order; the caller frees them. */
static uint64_t *
read_codes(const char *name, uint32_t *ncodes)
{
	uint64_t   *codes = NULL;
	uint32_t	room = 0;
	uint32_t	n = 0;
	uint32_t	nothers = 0;
	char		line[256];
	FILE	   *file = open_real_keys(name);

	while (fgets(line, sizeof(line), file) != NULL)
	{
		char	   *end;
		long long	key;

		errno = 0;
		key = strtoll(line, &end, 10);
		if (errno != 0 || end == line || (*end != '\n' && *end != '\0'))
		{
			nothers++;			/* a rounded number, say, would not be a real key */
			continue;
		}
		if (n == room)
		{
			room = room ? 2 * room : 1024;
			codes = realloc(codes, room * sizeof(uint64_t));
			CHECK(codes != NULL, "out of memory");
		}
		codes[n++] = lbt_order_signed(key);
	}
	CHECK(pclose(file) == 0 && n > 1000, "%s gave %u keys", name, n);
	if (nothers > 0)
		printf("# %s: %u lines are no integers and left out, %u are used\n", name, nothers, n);
	sort_codes(codes, n);
	*ncodes = n;
	return codes;
}

/* Every key a leaf's first, and one key in 50, as leaves of 50 keys would have it. */
static void
keeps_contract(const void *arg)
{
	static const uint32_t errors[] = {1, 2, 4, 8, 32, 128};
	static const uint32_t strides[] = {1, 50};
	uint32_t	ncodes;
	uint64_t   *codes = read_codes(arg, &ncodes);

	for (int s = 0; s < 2; s++)
	{
		uint32_t	nleaves = ncodes / strides[s];
		LbtLeaf    *leaves;

		for (uint32_t i = 0; i < nleaves; i++)
			codes[i] = codes[i * strides[s]];
		leaves = make_leaves(codes, nleaves);
		for (size_t e = 0; e < sizeof(errors) / sizeof(errors[0]); e++)
		{
			size_t		bytes;
			void	   *memory = make_model(leaves, nleaves, errors[e], &bytes);
			LbtModel	model = open_model(memory, bytes);

			check_spline(leaves, nleaves, errors[e]);
			check_slots(&model, e);
			free(memory);
		}
		free(leaves);
	}
	free(codes);
}

static int
compare_words(const void *a, const void *b)
{
	const LbtKeyValue *x = a;
	const LbtKeyValue *y = b;
	int			cmp = memcmp(x->bytes, y->bytes, x->length < y->length ? x->length : y->length);

	return cmp != 0 ? cmp : (x->length > y->length) - (x->length < y->length);
}

/* Words in byte order; the caller frees them, and *text. */
static LbtKeyValue *
read_words(const char *name, uint32_t *nwords, char **text)
{
	FILE	   *file = open_real_keys(name);
	size_t		room = 8 * 1024 * 1024;
	size_t		used = 0;
	LbtKeyValue *words = test_alloc(500000 * sizeof(LbtKeyValue));
	uint32_t	n = 0;

	*text = test_alloc(room);
	while (n < 500000 && used + 256 < room && fgets(*text + used, 256, file) != NULL)
	{
		words[n] = (LbtKeyValue) {.bytes = (const uint8_t *) *text + used,
		.length = (uint32_t) strcspn(*text + used, "\n")};
		used += words[n++].length;
	}
	CHECK(pclose(file) == 0 && n > 1000, "%s gave %u words", name, n);
	qsort(words, n, sizeof(LbtKeyValue), compare_words);
	*nwords = n;
	return words;
}

/* The codes of words, learned from one in 300, as separators would be, are in order; few tie. */
static void
words_keep_order(const void *arg)
{
	char	   *text;
	uint32_t	nwords;
	LbtKeyValue *words = read_words(arg, &nwords, &text);
	LbtKeyLearner learner;
	LbtKeyCode	code;
	uint64_t	previous = 0;
	uint32_t	nties = 0;

	lbt_keycode_begin(&learner, 1, (LbtColumnOrder[]) {{.bytes = 1}});
	for (uint32_t i = 0; i < nwords; i += 300)
		lbt_keycode_observe(&learner, &words[i], 1);
	lbt_keycode_finish(&learner, &code);
	for (uint32_t i = 0; i < nwords; i++)
	{
		uint64_t	now = lbt_keycode(&code, &words[i], 1, false);

		CHECK(now >= previous, "word %u, %.*s, is out of order", i, (int) words[i].length, words[i].bytes);
		nties += i > 0 && now == previous;
		previous = now;
	}
	printf("# %s: %u of %u words share their code with the one before\n", (const char *) arg, nties, nwords);
	CHECK(nties < nwords / 4, "%u of %u words tie", nties, nwords);
	free(words);
	free(text);
}

const Test	realkeys_tests[] = {
	{"spline and slots keep their contract: real address blocks", keeps_contract, "ipv4_starts"},
	{"spline and slots keep their contract: real commit times", keeps_contract, "commit_times"},
	{"codes keep the order of real words, and few tie", words_keep_order, "english_words"},
	{NULL, NULL, NULL}
};
