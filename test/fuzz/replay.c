/*
 * replay.c - instead of libFuzzer: give the files named as arguments to a target, each once.
 */
#include <stdio.h>
#include <stdlib.h>

#include "fuzz.h"

int
main(int argc, char **argv)
{
	static uint8_t bytes[1 << 16];

	for (int i = 1; i < argc; i++)
	{
		FILE	   *file = fopen(argv[i], "rb");

		if (file == NULL)
		{
			perror(argv[i]);
			return 1;
		}
		(void) LLVMFuzzerTestOneInput(bytes, fread(bytes, 1, sizeof(bytes), file));
		fclose(file);
	}
	printf("%d inputs\n", argc - 1);
	return argc == 1;
}
