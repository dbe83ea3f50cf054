/*
 * fail.c - what a broken contract does in a fuzz target: say so, and stop where the fuzzer sees it.
 */
#include "test.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

_Noreturn void
test_fail(const char *file, int line, const char *format,...)
{
	va_list		args;

	fprintf(stderr, "%s:%d: ", file, line);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	abort();
}
