/*
 * test.h - what every unit test shares: the test table, the check macro, random numbers, memory.
 *
 * A test runs in a process of its own (main.c), so a failed check ends the test at once, and a crash
 * or a sanitizer report fails that test only.  The fuzz targets use the same checks with their own
 * test_fail().
 */
#ifndef LBT_TEST_H
#define LBT_TEST_H

#include <stddef.h>
#include <stdint.h>

typedef struct Test
{
	const char *name;			/* says the behaviour; NULL ends a table */
	void		(*run) (const void *arg);
	const void *arg;
} Test;

extern const Test keycode_tests[];
extern const Test keybytes_tests[];
extern const Test separators_tests[];
extern const Test leafcache_tests[];
extern const Test spline_tests[];
extern const Test model_tests[];
extern const Test saved_tests[];

/* These need the folder in the environment variable LBT_KEYS. */
extern const Test realkeys_tests[];
extern const Test separators_realkeys_tests[];

/* End the test as failed. */
extern _Noreturn void test_fail(const char *file, int line, const char *format,...)
			__attribute__((format(printf, 3, 4)));

/* The condition must hold; otherwise the test fails with this message. */
#define CHECK(condition, ...) \
	do { if (!(condition)) test_fail(__FILE__, __LINE__, __VA_ARGS__); } while (0)

/* Random numbers: splitmix64, the same on every machine for the same seed. */
typedef struct Rng
{
	uint64_t	state;
} Rng;

static inline uint64_t
rng_next(Rng *rng)
{
	uint64_t	z = (rng->state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* In [0, bound); bound must not be 0. */
static inline uint64_t
rng_below(Rng *rng, uint64_t bound)
{
	return rng_next(rng) % bound;
}

/* In (0, 1]. */
static inline double
rng_unit(Rng *rng)
{
	return (double) ((rng_next(rng) >> 11) + 1) / 9007199254740992.0;
}

/* Any number of bits, all widths equally likely: small and huge numbers are both common. */
static inline uint64_t
rng_any_width(Rng *rng)
{
	uint64_t	width = rng_below(rng, 65);

	return width == 0 ? 0 : rng_next(rng) >> (64 - width);
}

/* Exactly this many bytes from the heap, so that the address sanitizer sees the first byte too far.
 * Never NULL; the caller frees it. */
extern void *test_alloc(size_t bytes);
extern void *test_copy(const void *from, size_t bytes);

#endif							/* LBT_TEST_H */
