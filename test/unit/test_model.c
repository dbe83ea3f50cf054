/*
 * test_model.c - models in memory: what is laid out can be opened, what is no model is refused, and
 * what cannot be told from a model is at least harmless.
 */
#include "contract.h"
#include "sample.h"

#include <stdlib.h>
#include <string.h>

#define NLEAVES 300
#define MAX_ERROR 2

/* A small sound model; the caller frees it. */
static void *
sound_model(size_t *bytes)
{
	uint64_t   *codes = make_sample(&sample_address_blocks, 41, NLEAVES, MAX_ERROR);
	LbtLeaf    *leaves = make_leaves(codes, NLEAVES);
	void	   *memory = make_model(leaves, NLEAVES, MAX_ERROR, bytes);

	free(codes);
	free(leaves);
	return memory;
}

/* Whether these bytes, in memory of exactly their size, open as a model.  If so, it is used, with no more of its key code than is
 * needed. */
static bool
opens(const void *bytes, size_t nbytes, uint64_t seed)
{
	void	   *memory = test_copy(bytes, nbytes);
	Rng			rng = {seed};
	LbtModel	model;
	LbtKeyCode	code;
	bool		opened = lbt_model_open(memory, nbytes, &model, &code);

	if (opened)
	{
		void	   *needed = test_copy(&code, lbt_keycode_bytes(&code));

		model.code = needed;
		check_in_bounds(&model, seed);
		for (int i = 0; i < 20; i++)
		{
			LbtKeyValue values[LBT_CODE_COLUMNS + 2];

			for (int v = 0; v < LBT_CODE_COLUMNS + 2; v++)
				values[v] = (LbtKeyValue) {
					rng_any_width(&rng), rng_below(&rng, 4) == 0, rng_below(&rng, sizeof(code) + 1),
					(const uint8_t *) &code
				};
			lbt_keycode(model.code, values, i % (LBT_CODE_COLUMNS + 3), i & 1);
		}
		free(needed);
	}
	free(memory);
	return opened;
}

static void
opened_as_assembled(const void *arg)
{
	uint64_t   *codes = make_sample(&sample_gaps, 42, NLEAVES, MAX_ERROR);
	LbtLeaf    *leaves = make_leaves(codes, NLEAVES);
	size_t		bytes;
	void	   *memory = make_model(leaves, NLEAVES, MAX_ERROR, &bytes);
	const LbtModelHeader *header = memory;
	LbtModel	model = open_model(memory, bytes);
	char	   *end = (char *) memory + bytes;

	(void) arg;
	CHECK(header->bytes == bytes, "the header does not say what it heads");
	CHECK(model.nleaves == NLEAVES && model.nknots == header->nknots, "counts differ");
	CHECK((char *) model.knots >= (char *) (header + 1), "the knots are in the header");
	CHECK((char *) model.leaves >= (char *) (model.knots + model.nknots),
		  "the leaves are in the knots");
	CHECK((char *) (model.leaves + model.nleaves) == end, "the leaves do not end the memory");
	CHECK(((char *) model.leaves - (char *) memory) % 16 == 0, "leaves may cross cache lines");
	CHECK(memcmp(model.leaves, leaves, NLEAVES * sizeof(LbtLeaf)) == 0, "the leaves differ");
	model.leaves[NLEAVES - 1].recent_buffer = 17;
	open_model(memory, bytes);
	free(memory);
	free(leaves);
	free(codes);
}

/* In memory aligned to no more than 8 bytes, the least that is promised to be enough. */
static void
little_alignment(const void *arg)
{
	size_t		bytes;
	void	   *model = sound_model(&bytes);
	char	   *room = test_alloc(bytes + 8);
	LbtModel	opened;

	(void) arg;
	memcpy(room + 8, model, bytes);
	opened = open_model(room + 8, bytes);
	check_slots(&opened, 46);
	free(room);
	free(model);
}

static void
sizes_of_models(const void *arg)
{
	(void) arg;
	for (uint32_t nknots = 1; nknots < 20; nknots++)
		for (uint32_t nleaves = nknots; nleaves < 40; nleaves++)
			CHECK(lbt_model_bytes(nleaves, nknots, 0) >= sizeof(LbtModelHeader) +
				  nknots * sizeof(LbtKnot) + nleaves * sizeof(LbtLeaf),
				  "no room for %u leaves and %u knots", nleaves, nknots);
	CHECK(lbt_model_bytes(UINT32_MAX, UINT32_MAX, 0) >= UINT32_MAX * (uint64_t) 40,
		  "the size of the largest model overflows");
}

static void
other_sizes_refused(const void *arg)
{
	size_t		bytes;
	unsigned char *model = sound_model(&bytes);
	unsigned char *longer = test_alloc(bytes + 64);

	(void) arg;
	memset(longer, 0, bytes + 64);
	memcpy(longer, model, bytes);
	CHECK(opens(model, bytes, 1), "a sound model was refused");
	for (size_t size = 0; size < bytes; size++)
		CHECK(!opens(model, size, 1), "%zu of %zu bytes were opened", size, bytes);
	for (size_t more = 1; more <= 64; more++)
		CHECK(!opens(longer, bytes + more, 1), "%zu bytes too many were opened", more);
	free(longer);
	free(model);
}

/* The header with one thing wrong, which must be refused. */
static void
broken_headers_refused(const void *arg)
{
	size_t		bytes;
	void	   *memory = sound_model(&bytes);
	LbtModelHeader *header = memory;
	const LbtModelHeader sound = *header;

	(void) arg;
#define REFUSED(change) \
	do { \
		change; \
		CHECK(!opens(memory, bytes, 2), "opened with " #change); \
		*header = sound; \
	} while (0)

	REFUSED(header->bytes = 0);
	REFUSED(header->bytes--);
	REFUSED(header->bytes++);
	REFUSED(header->bytes = UINT64_MAX);
	REFUSED(header->nleaves = 0);
	REFUSED(header->nleaves--);
	REFUSED(header->nleaves++);
	REFUSED(header->nleaves = UINT32_MAX);
	REFUSED(header->nknots = 0);
	REFUSED(header->nknots += 3);
	REFUSED(header->nknots -= 3);
	REFUSED(header->nknots = UINT32_MAX);
	REFUSED(header->nleaves = 0; header->nknots = 0);
	REFUSED(header->code.ndigits = 0);
	REFUSED(header->code.ndigits = -1);
	REFUSED(header->code.ndigits = INT32_MIN);
	REFUSED(header->code.ndigits = LBT_CODE_DIGITS + 1);
	REFUSED(header->code.ncolumns = 0);
	REFUSED(header->code.ncolumns = LBT_CODE_COLUMNS + 1);
	REFUSED(header->code.column[0].ndigits = 0);
	REFUSED(header->code.column[0].ndigits = 2);
	REFUSED(header->code.order[0].bytes = 1);
#undef REFUSED
	CHECK(opens(memory, bytes, 2), "the sound model was refused in the end");
	free(memory);
}

/* Counts that make no model, in memory of the size that they make. */
static void
impossible_counts_refused(const void *arg)
{
	static const struct
	{
		uint32_t	nleaves;
		uint32_t	nknots;
		bool		possible;
	}			counts[] = {{2, 3, false}, {0, 0, false}, {0, 1, false}, {5, 0, false}, {1, 1, true}};

	(void) arg;
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
	{
		size_t		bytes = lbt_model_bytes(counts[i].nleaves, counts[i].nknots, 0);
		LbtModelHeader *header = test_alloc(bytes);
		LbtModel	model;
		LbtKeyCode	code;

		memset(header, 0, bytes);
		header->bytes = bytes;
		header->nleaves = counts[i].nleaves;
		header->nknots = counts[i].nknots;
		header->code.ndigits = header->code.ncolumns = 1;
		header->code.column[0].ndigits = 1;
		CHECK(lbt_model_open(header, bytes, &model, &code) == counts[i].possible,
			  "%u leaves and %u knots", counts[i].nleaves, counts[i].nknots);
		free(header);
	}
}

/* Every bit of the header flipped, every byte replaced: refused, or still harmless. */
static void
mutated_headers_harmless(const void *arg)
{
	size_t		bytes;
	unsigned char *model = sound_model(&bytes);
	Rng			rng = {43};

	(void) arg;
	for (size_t at = 0; at < sizeof(LbtModelHeader); at++)
	{
		unsigned char sound = model[at];

		for (int bit = 0; bit < 8; bit++)
		{
			model[at] = sound ^ (unsigned char) (1 << bit);
			opens(model, bytes, at);
		}
		model[at] = (unsigned char) rng_next(&rng);
		opens(model, bytes, at);
		model[at] = sound;
	}
	for (int round = 0; round < 3000; round++)
	{
		unsigned char *mutant = test_copy(model, bytes);

		for (uint64_t i = 0; i <= rng_below(&rng, 6); i++)
			mutant[rng_below(&rng, sizeof(LbtModelHeader))] = (unsigned char) rng_next(&rng);
		opens(mutant, bytes, (uint64_t) round);
		free(mutant);
	}
	free(model);
}

/* A key code of many digits, as memory may hold it: refused, or still harmless. */
static void
garbage_code_harmless(const void *arg)
{
	size_t		bytes;
	void	   *model = sound_model(&bytes);
	LbtModelHeader *header = model;
	Rng			rng = {45};
	int			opened = 0;

	(void) arg;
	for (int round = 0; round < 4000; round++)
	{
		unsigned char *code = (unsigned char *) &header->code;

		for (size_t at = 0; at < sizeof(LbtKeyCode); at++)
			code[at] = (unsigned char) rng_next(&rng);
		header->code.ncolumns = 1 + round % LBT_CODE_COLUMNS;
		header->code.raw &= header->code.ncolumns == 1;
		header->code.ndigits = 0;
		for (int i = 0; i < header->code.ncolumns; i++)
		{
			LbtCodeColumn *column = &header->code.column[i];

			header->code.order[i].bytes = rng_below(&rng, 2) && !header->code.raw;
			column->ndigits = header->code.order[i].bytes ? 1 + rng_below(&rng, 4) : 1;
			column->prefix_length &= round % 16 ? 31 : 63;
			header->code.ndigits += column->ndigits;
		}
		for (int i = 0; i < LBT_CODE_DIGITS; i++)
		{
			header->code.digit[i].ends &= 1;
			header->code.digit[i].lo &= round % 2 ? UINT64_MAX : UINT8_MAX;
			header->code.digit[i].span &= round % 2 ? UINT64_MAX : UINT8_MAX;
			header->code.digit[i].shift &= round % 16 ? 63 : 255;
		}
		opened += opens(model, bytes, (uint64_t) round);
	}
	CHECK(opened >= 1500, "only %d were opened", opened);
	free(model);
}

/* A sound header, with anything behind it. */
static void
garbage_behind_header(const void *arg)
{
	size_t		bytes;
	unsigned char *model = sound_model(&bytes);
	Rng			rng = {44};

	(void) arg;
	for (int round = 0; round < 1000; round++)
	{
		unsigned char *garbage = test_copy(model, bytes);

		for (size_t at = sizeof(LbtModelHeader); at < bytes; at++)
			if (round % 4 == 0)
				garbage[at] = 0xff;		/* slopes are NaN, slots beyond all leaves */
			else if (rng_below(&rng, 1 + (uint64_t) round / 8) == 0)
				garbage[at] = (unsigned char) rng_next(&rng);
		CHECK(opens(garbage, bytes, (uint64_t) round), "a sound header was refused");
		free(garbage);
	}
	free(model);
}

const Test	model_tests[] = {
	{"a model opens as it was assembled", opened_as_assembled, NULL},
	{"a model works in memory aligned to 8 bytes", little_alignment, NULL},
	{"a model's size holds its parts, up to the largest", sizes_of_models, NULL},
	{"a truncated or longer model is refused", other_sizes_refused, NULL},
	{"a broken header is refused", broken_headers_refused, NULL},
	{"no leaves, no knots and more knots than leaves are refused", impossible_counts_refused, NULL},
	{"a mutated header is refused or harmless", mutated_headers_harmless, NULL},
	{"a garbage key code is refused or harmless", garbage_code_harmless, NULL},
	{"garbage behind a sound header is harmless", garbage_behind_header, NULL},
	{NULL, NULL, NULL}
};
