/*
 * main.c - runs every unit test in a child process, as many at a time as there are processors, and reports
 * one line for each.
 *
 * An argument keeps only the tests whose name contains it.
 */
#define _DEFAULT_SOURCE			/* wait4() */

#include "test.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_JOBS	16			/* tests at a time */

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

typedef struct Running
{
	const Test *test;			/* NULL: this place is free */
	pid_t		child;
	int			fd;				/* what the child says of a failure */
} Running;

/* Starts the test in a child. */
static void
start_test(Running *running, const Test *test)
{
	int			fds[2];

	fflush(NULL);
	if (pipe(fds) != 0 || (running->child = fork()) < 0)
	{
		perror("cannot start a test");
		exit(2);
	}
	if (running->child == 0)
	{
		close(fds[0]);
		detail_pipe = fds[1];
		test->run(test->arg);
		exit(0);				/* not _exit(): leaks are to be reported */
	}
	close(fds[1]);
	running->test = test;
	running->fd = fds[0];
}

/* Reports a test whose child has ended; false when it has failed or crashed. */
static bool
report_test(Running *running, int status, const struct rusage *usage)
{
	char		detail[512];
	double		seconds = (double) (usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) +
	(double) (usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) / 1e6;
	ssize_t		got = read(running->fd, detail, sizeof(detail) - 1);
	bool		passed = WIFEXITED(status) && WEXITSTATUS(status) == 0;

	close(running->fd);
	detail[got > 0 ? got : 0] = '\0';
	if (got <= 0 && WIFSIGNALED(status))
		snprintf(detail, sizeof(detail), "ended by signal %d", WTERMSIG(status));
	else if (got <= 0)
		snprintf(detail, sizeof(detail), "exit status %d, see the sanitizer's report",
				 WEXITSTATUS(status));
	if (!passed)
		printf("not ok - %s: %s\n", running->test->name, detail);
	else if (seconds >= 0.5)
		printf("ok - %s (%.1f s of a processor)\n", running->test->name, seconds);
	else
		printf("ok - %s\n", running->test->name);
	running->test = NULL;
	return passed;
}

/* Waits for one child to end, and reports its test. */
static bool
finish_one(Running *running, size_t places)
{
	struct rusage usage;
	int			status;
	pid_t		child = wait4(-1, &status, 0, &usage);

	for (size_t i = 0; i < places; i++)
		if (running[i].test != NULL && running[i].child == child)
			return report_test(&running[i], status, &usage);
	perror("cannot wait for a test");
	exit(2);
}

int
main(int argc, char **argv)
{
	const Test *tables[] = {
		keycode_tests, keybytes_tests, separators_tests, leafcache_tests, spline_tests, model_tests,
		saved_tests, realkeys_tests, separators_realkeys_tests
	};
	size_t		ntables = sizeof(tables) / sizeof(tables[0]);
	Running		running[MAX_JOBS] = {0};
	long		processors = sysconf(_SC_NPROCESSORS_ONLN);
	size_t		jobs = processors < 1 ? 1 : processors > MAX_JOBS ? MAX_JOBS : (size_t) processors;
	size_t		started = 0;
	size_t		ended = 0;
	int			failed = 0;

	if (getenv("LBT_KEYS") == NULL)
	{
		ntables -= 2;
		printf("# LBT_KEYS names no folder of real key sets: only generated ones are run\n");
	}
	for (size_t t = 0; t < ntables; t++)
		for (const Test *test = tables[t]; test->name != NULL; test++)
		{
			size_t		place = 0;

			if (argc > 1 && strstr(test->name, argv[1]) == NULL)
				continue;
			if (started - ended == jobs)
			{
				failed += !finish_one(running, jobs);
				ended++;
			}
			while (running[place].test != NULL)
				place++;
			start_test(&running[place], test);
			started++;
		}
	for (; ended < started; ended++)
		failed += !finish_one(running, jobs);
	printf("%zu passed, %d failed\n", started - (size_t) failed, failed);
	return failed > 0 || started == 0;
}
