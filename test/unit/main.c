/*
 * main.c - runs every unit test in a child process and reports one line for each.
 *
 * An argument keeps only the tests whose name contains it.
 */
#define _POSIX_C_SOURCE 200809L

#include "test.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int	detail_pipe = -1;	/* in a child: where the reason of a failure goes */

_Noreturn void
test_fail(const char *file, int line, const char *format,...)
{
	const char *base = strrchr(file, '/');
	char		detail[512];
	int			used;
	va_list		args;

	used = snprintf(detail, sizeof(detail), "%s:%d: ", base ? base + 1 : file, line);
	va_start(args, format);
	vsnprintf(detail + used, sizeof(detail) - (size_t) used, format, args);
	va_end(args);
	if (write(detail_pipe, detail, strlen(detail)) < 0)
		fprintf(stderr, "%s\n", detail);
	_exit(1);					/* no leak report on top */
}

/* Runs the test in a child; false, with the reason in detail, when it fails or crashes. */
static bool
run_test(const Test *test, char *detail, size_t size)
{
	int			fds[2];
	int			status;
	size_t		used = 0;
	ssize_t		got;
	pid_t		child;

	fflush(NULL);
	if (pipe(fds) != 0 || (child = fork()) < 0)
	{
		perror("cannot start a test");
		exit(2);
	}
	if (child == 0)
	{
		close(fds[0]);
		detail_pipe = fds[1];
		test->run(test->arg);
		exit(0);				/* not _exit(): leaks are to be reported */
	}
	close(fds[1]);
	while (used + 1 < size && (got = read(fds[0], detail + used, size - used - 1)) > 0)
		used += (size_t) got;
	detail[used] = '\0';
	close(fds[0]);
	if (waitpid(child, &status, 0) != child)
	{
		perror("cannot wait for a test");
		exit(2);
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return true;
	if (used == 0 && WIFSIGNALED(status))
		snprintf(detail, size, "ended by signal %d", WTERMSIG(status));
	else if (used == 0)
		snprintf(detail, size, "exit status %d, see the sanitizer's report",
				 WEXITSTATUS(status));
	return false;
}

int
main(int argc, char **argv)
{
	const Test *tables[] = {
		keycode_tests, keybytes_tests, codetree_tests, leafcache_tests, spline_tests, model_tests,
		saved_tests, realkeys_tests, codetree_realkeys_tests
	};
	size_t		ntables = sizeof(tables) / sizeof(tables[0]);
	int			passed = 0;
	int			failed = 0;

	if (getenv("LBT_KEYS") == NULL)
	{
		ntables -= 2;
		printf("# LBT_KEYS names no folder of real key sets: only generated ones are run\n");
	}
	for (size_t t = 0; t < ntables; t++)
		for (const Test *test = tables[t]; test->name != NULL; test++)
		{
			char		detail[512];

			if (argc > 1 && strstr(test->name, argv[1]) == NULL)
				continue;
			if (run_test(test, detail, sizeof(detail)))
			{
				passed++;
				printf("ok - %s\n", test->name);
			}
			else
			{
				failed++;
				printf("not ok - %s: %s\n", test->name, detail);
			}
		}
	printf("%d passed, %d failed\n", passed, failed);
	return failed > 0 || passed == 0;
}
