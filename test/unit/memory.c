/*
 * memory.c - heap memory of an exact size; shared by the unit tests and the fuzz targets.
 */
#include "test.h"

#include <stdlib.h>
#include <string.h>

void *
test_alloc(size_t bytes)
{
	void	   *memory = malloc(bytes);

	if (memory == NULL && bytes > 0)
		test_fail(__FILE__, __LINE__, "out of memory for %zu bytes", bytes);
	return memory;
}

void *
test_copy(const void *from, size_t bytes)
{
	void	   *to = test_alloc(bytes);

	if (bytes > 0)
		memcpy(to, from, bytes);
	return to;
}
