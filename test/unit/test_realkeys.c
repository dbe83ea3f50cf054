/*
 * test_realkeys.c - the spline over real key sets, files NAME.txt.xz of one integer a line, in the
 * folder that the environment variable LBT_KEYS names.
 */
#define _POSIX_C_SOURCE 200809L

#include "contract.h"
#include "sample.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The codes of a key set, in order; the caller frees them. */
static uint64_t *
read_codes(const char *name, uint32_t *ncodes)
{
	const char *folder = getenv("LBT_KEYS");
	char		command[4096];
	uint64_t   *codes = NULL;
	uint32_t	room = 0;
	uint32_t	n = 0;
	uint32_t	nothers = 0;
	char		line[256];
	FILE	   *file;

	CHECK(folder != NULL && strchr(folder, '\'') == NULL, "LBT_KEYS names no folder");
	snprintf(command, sizeof(command), "xzcat '%s/%s.txt.xz'", folder, name);
	file = popen(command, "r");
	CHECK(file != NULL, "cannot run %s", command);
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
	CHECK(pclose(file) == 0 && n > 1000, "%s gave %u keys", command, n);
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

const Test	realkeys_tests[] = {
	{"spline and slots keep their contract: real address blocks", keeps_contract, "ipv4_starts"},
	{"spline and slots keep their contract: real commit times", keeps_contract, "commit_times"},
	{NULL, NULL, NULL}
};
