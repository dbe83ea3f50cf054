/*
 * failat.c - make chosen calls of a server process fail, for tests.
 *
 * One shared object in two roles.  Preloaded into the postmaster (LD_PRELOAD) it stands in front of the C
 * library's functions.  Loaded by CREATE FUNCTION ... AS its path, which finds the copy that is there already,
 * it is told which calls are to fail (failat.sql).
 *
 * Two kinds of faults:
 *
 *   Countdowns, of the process that arms them.  The n-th call of a kind from then on fails, and with "repeat" all
 *   later ones, too.  Calls count only below the library under test: the innermost of its frames is nearer to the
 *   call than any of the server's functions that it wraps (else all that a statement does would be below it);
 *   "anywhere" counts all calls.  An armed countdown stays armed while the process exits.
 *
 *   Rules, in memory that all server processes share, so that I/O workers and background workers obey them,
 *   too.  A rule names a kind of call, a part of a file's name, a range of blocks, and what happens; it is valid for
 *   one process or for all.
 *
 * And the time of day may be another one, for all processes.
 *
 * Nothing here allocates or takes a lock after start; without an armed fault each call costs a test or two.  The
 * server's symbols must be functions, bound when called first: the same object is loaded into the shell and pg_ctl.
 */
#include "postgres.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>
#include <unwind.h>

#include "executor/spi.h"
#include "fmgr.h"
#include "utils/builtins.h"

PG_MODULE_MAGIC;

#define LIBRARY "learnedbtree.so"
#define MAX_FRAMES 64
#define MAX_RULES 8
#define MAX_PATH 1024
#define SEGMENT_BLOCKS 131072	/* of a relation's file */

/* The C library's, behind ours. */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *old, size_t size);

/* ---- what all processes share ---- */

typedef enum Kind
{
	READ_CALL = 'r',
	WRITE_CALL = 'w',			/* or make longer */
	OPEN_CALL = 'o',
	MAP_CALL = 'm',				/* below the library; of so many bytes, not blocks, and of any name */
	ALLOCATION_CALL = 'a',		/* likewise */
	SYNC_CALL = 's'
} Kind;

typedef struct Rule
{
	volatile int kind;			/* 0: free; set last, cleared first */
	int			pid;			/* 0: all processes */
	int64		first;			/* blocks */
	int64		last;
	int			error;			/* errno; -signal: send it, and make the call; 0: wait for the rule's end */
	int64		times;			/* so often; 0: always */
	volatile int64 hits;
	char		part[256];		/* of the file's name */
} Rule;

typedef struct Shared
{
	volatile int nrules;		/* as many places have been used */
	Rule		rules[MAX_RULES];
	volatile int64 calls;		/* counted by the process that armed a countdown last */
	volatile int64 failed;
	volatile int64 clock;		/* seconds that the time of day is ahead */
} Shared;

static Shared *shared = NULL;

/* ---- countdowns ---- */

typedef struct Countdown
{
	bool		armed;
	bool		anywhere;
	bool		repeat;
	int64		n;				/* 0: only count */
	int64		calls;			/* since armed */
} Countdown;

typedef struct Range
{
	char	   *start;
	char	   *end;
} Range;

static Countdown mapping;
static Countdown allocation;
static bool tell = false;		/* write the stack of each call that fails to stderr */
static bool busy = false;		/* what we call ourselves does not count */

/*
 * What hooks and builds wrap: a frame of the library outside of these has not made the call.  And what does not
 * survive a failed allocation itself: pgstat_get_entry_ref() leaves an entry without reference, which trips an
 * assertion at exit.
 */
static const char *const wrapped[] = {
	"standard_planner", "standard_ExecutorStart", "standard_ExecutorRun", "standard_ExecutorFinish",
	"standard_ExecutorEnd", "standard_ProcessUtility", "btbuild", "pgstat_get_entry_ref"
};
static Range wrapped_ranges[lengthof(wrapped)];
static Range library;

static bool
in_range(const Range *range, const void *address)
{
	return (char *) address >= range->start && (char *) address < range->end;
}

static int
find_library(struct dl_phdr_info *info, size_t size, void *unused)
{
	const char *name = strrchr(info->dlpi_name, '/');

	if (name == NULL || strcmp(name + 1, LIBRARY) != 0)
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD && (info->dlpi_phdr[i].p_flags & PF_X))
		{
			library.start = (char *) info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
			library.end = library.start + info->dlpi_phdr[i].p_memsz;
		}
	return 1;
}

static void
find_wrapped(void)
{
	for (int i = 0; i < lengthof(wrapped); i++)
	{
		void	   *address = dlsym(RTLD_DEFAULT, wrapped[i]);
		const ElfW(Sym) *symbol;
		Dl_info		info;

		if (address == NULL || !dladdr1(address, &info, (void **) &symbol, RTLD_DL_SYMENT) || symbol == NULL)
			continue;
		wrapped_ranges[i].start = address;
		wrapped_ranges[i].end = (char *) address + symbol->st_size;
	}
}

typedef enum Caller
{
	UNKNOWN,
	LIBRARY_ITSELF,
	SERVER
} Caller;

/* Called for each frame, from the innermost on. */
static _Unwind_Reason_Code
look_at_frame(struct _Unwind_Context *context, void *arg)
{
	const void *address = (const void *) _Unwind_GetIP(context);
	Caller	   *caller = arg;

	if (in_range(&library, address))
		*caller = LIBRARY_ITSELF;
	for (int i = 0; i < lengthof(wrapped) && *caller == UNKNOWN; i++)
		if (in_range(&wrapped_ranges[i], address))
			*caller = SERVER;
	return *caller == UNKNOWN ? _URC_NO_REASON : _URC_END_OF_STACK;
}

/* Is the call being made by the library under test, or on its behalf? */
static bool
below_library(void)
{
	Caller		caller = UNKNOWN;

	if (library.start == NULL && dl_iterate_phdr(find_library, NULL) == 0)
		return false;
	_Unwind_Backtrace(look_at_frame, &caller);
	return caller == LIBRARY_ITSELF;
}

static void
tell_stack(const char *what)
{
	void	   *frames[MAX_FRAMES];

	(void) !write(STDERR_FILENO, "failat: ", 8);
	(void) !write(STDERR_FILENO, what, strlen(what));
	(void) !write(STDERR_FILENO, "\n", 1);
	backtrace_symbols_fd(frames, backtrace(frames, MAX_FRAMES), STDERR_FILENO);
}

static bool
fails(Countdown *c, const char *what)
{
	bool		counts;

	if (likely(!c->armed) || busy)
		return false;
	busy = true;
	counts = c->anywhere || below_library();
	if (counts)
		shared->calls = ++c->calls;
	counts = counts && c->n > 0 && (c->calls == c->n || (c->repeat && c->calls > c->n));
	if (counts)
	{
		shared->failed++;
		if (tell)
			tell_stack(what);
	}
	busy = false;
	return counts;
}

static void
arm(Countdown *c, int64 n, bool repeat, bool anywhere)
{
	mapping.armed = allocation.armed = false;
	shared->calls = shared->failed = 0;
	*c = (Countdown) {.armed = true,.anywhere = anywhere,.repeat = repeat,.n = n};
}

/* ---- rules ---- */

__attribute__((constructor)) static void
start(void)
{
	void	   *frames[4];
	void	   *memory;

	(void) backtrace(frames, 4);	/* loads what it needs: later it must not allocate */
	busy = true;
	memory = mmap(NULL, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	busy = false;
	if (memory == MAP_FAILED)
		abort();
	shared = memory;
	find_wrapped();
}

/*
 * The part must be followed by the name's end, a dot (a segment's number) or a slash, unless it ends in a slash
 * itself.  *base: the first block of the segment.
 */
static bool
part_of(const char *part, const char *path, int64 *base)
{
	const char *found = strstr(path, part);
	size_t		length = strlen(part);

	*base = 0;
	if (found == NULL)
		return false;
	if (length == 0 || part[length - 1] == '/')
		return true;
	found += length;
	if (*found == '.' && found[1] >= '0' && found[1] <= '9')
		*base = (int64) atoi(found + 1) * SEGMENT_BLOCKS;
	return *found == '\0' || *found == '.' || *found == '/';
}

/* A rule applies to a call: the errno, or 0 when the call is to be made. */
static int
apply(Rule *rule, const char *what)
{
	int64		hits = __atomic_add_fetch(&rule->hits, 1, __ATOMIC_RELAXED);
	int			kind = rule->kind;

	if (rule->times > 0 && hits > rule->times)
		return 0;
	if (tell)
		tell_stack(what);
	if (rule->error < 0)
		kill(getpid(), -rule->error);
	while (rule->error == 0 && rule->kind == kind)
		usleep(1000);
	return Max(rule->error, 0);
}

static bool
is_for_us(const Rule *rule, Kind kind)
{
	return rule->kind == kind && (rule->pid == 0 || rule->pid == getpid());
}

/* The errno for a call with a file's name; 0: let it be made. */
static int
error_for_path(Kind kind, const char *path, int64 offset, int64 bytes)
{
	for (int i = 0; i < shared->nrules; i++)
	{
		Rule	   *rule = &shared->rules[i];
		int64		base;
		int			error;

		if (!is_for_us(rule, kind) || !part_of(rule->part, path, &base))
			continue;
		if (offset >= 0 &&
			(base + offset / BLCKSZ > rule->last || base + (offset + Max(bytes, 1) - 1) / BLCKSZ < rule->first))
			continue;
		error = apply(rule, path);
		if (error)
			return error;
	}
	return 0;
}

/* The errno for a call below the library that has no file; bytes: what it asks for. */
static int
error_for_memory(Kind kind, int64 bytes)
{
	int			error = 0;

	if (likely(shared == NULL || shared->nrules == 0) || busy)
		return 0;
	busy = true;
	for (int i = 0; i < shared->nrules && error == 0; i++)
	{
		Rule	   *rule = &shared->rules[i];

		if (is_for_us(rule, kind) && bytes >= rule->first && bytes <= rule->last && below_library())
			error = apply(rule, kind == MAP_CALL ? "mapping" : "allocation");
	}
	busy = false;
	return error;
}

static void
path_of(int fd, char *path)
{
	char		link[32] = "/proc/self/fd/";
	char		digits[12];
	char	   *to = link + strlen(link);
	int			n = 0;
	ssize_t		length;

	do
		digits[n++] = '0' + fd % 10;
	while ((fd /= 10) > 0);
	while (n > 0)
		*to++ = digits[--n];
	*to = '\0';
	length = readlink(link, path, MAX_PATH - 1);
	path[Max(length, 0)] = '\0';
}

/* Is a call with an open file to fail?  Sets errno. */
static bool
file_fails(Kind kind, int fd, int64 offset, int64 bytes)
{
	char		path[MAX_PATH];
	int			saved = errno;
	int			error;

	if (likely(shared == NULL || shared->nrules == 0) || fd < 0)
		return false;
	path_of(fd, path);
	error = error_for_path(kind, path, offset, bytes);
	errno = error ? error : saved;
	return error != 0;
}

static bool
open_fails(const char *path)
{
	int			error;

	if (likely(shared == NULL || shared->nrules == 0))
		return false;
	error = error_for_path(OPEN_CALL, path, -1, 0);
	if (error)
		errno = error;
	return error != 0;
}

static bool
mapping_fails(const char *what, int64 bytes)
{
	return fails(&mapping, what) || error_for_memory(MAP_CALL, bytes) != 0;
}

static bool
allocation_fails(const char *what, size_t bytes)
{
	if (!fails(&allocation, what) && error_for_memory(ALLOCATION_CALL, bytes) == 0)
		return false;
	errno = ENOMEM;
	return true;
}

static int64
iov_bytes(const struct iovec *iov, int n)
{
	int64		bytes = 0;

	for (int i = 0; i < n; i++)
		bytes += iov[i].iov_len;
	return bytes;
}

/* ---- the calls ---- */

/* The C library's function of this name. */
#define NEXT(name) \
	static __typeof__(name) *next_##name = NULL; \
	if (unlikely(next_##name == NULL)) \
		next_##name = (__typeof__(name) *) dlsym(RTLD_NEXT, #name)

void *
malloc(size_t size)
{
	if (allocation_fails("malloc", size))
		return NULL;
	return __libc_malloc(size);
}

void *
calloc(size_t n, size_t size)
{
	if (allocation_fails("calloc", n * size))
		return NULL;
	return __libc_calloc(n, size);
}

void *
realloc(void *old, size_t size)
{
	if (allocation_fails("realloc", size))
		return NULL;
	return __libc_realloc(old, size);
}

void *
mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
	NEXT(mmap);

	if (mapping_fails("mmap", length))
	{
		errno = ENOMEM;
		return MAP_FAILED;
	}
	return next_mmap(address, length, protection, flags, fd, offset);
}

int
shm_open(const char *name, int flags, mode_t mode)
{
	NEXT(shm_open);

	if (mapping_fails("shm_open", 0))
	{
		errno = ENFILE;
		return -1;
	}
	return next_shm_open(name, flags, mode);
}

/* Gives the error instead of setting errno. */
int
posix_fallocate(int fd, off_t offset, off_t length)
{
	NEXT(posix_fallocate);

	if (mapping_fails("posix_fallocate", length))
		return ENOSPC;
	if (file_fails(WRITE_CALL, fd, offset, length))
		return errno;
	return next_posix_fallocate(fd, offset, length);
}

int
ftruncate(int fd, off_t length)
{
	NEXT(ftruncate);
	struct stat st;

	if (likely(shared == NULL || shared->nrules == 0))
		return next_ftruncate(fd, length);
	if (fstat(fd, &st) == 0 && length > st.st_size &&
		file_fails(WRITE_CALL, fd, st.st_size, length - st.st_size))
		return -1;
	return next_ftruncate(fd, length);
}

int
gettimeofday(struct timeval *restrict now, void *restrict zone)
{
	NEXT(gettimeofday);
	int			result = next_gettimeofday(now, zone);

	if (shared != NULL)
		now->tv_sec += shared->clock;
	return result;
}

#define READ_WRITE(name, kind, buffer) \
ssize_t \
name(int fd, buffer data, size_t bytes) \
{ \
	NEXT(name); \
	return file_fails(kind, fd, -1, bytes) ? -1 : next_##name(fd, data, bytes); \
}

#define READ_WRITE_AT(name, kind, buffer) \
ssize_t \
name(int fd, buffer data, size_t bytes, off_t offset) \
{ \
	NEXT(name); \
	return file_fails(kind, fd, offset, bytes) ? -1 : next_##name(fd, data, bytes, offset); \
}

#define READ_WRITE_VECTOR(name, kind) \
ssize_t \
name(int fd, const struct iovec *iov, int n, off_t offset) \
{ \
	NEXT(name); \
	return file_fails(kind, fd, offset, iov_bytes(iov, n)) ? -1 : next_##name(fd, iov, n, offset); \
}

#define SYNC(name) \
int \
name(int fd) \
{ \
	NEXT(name); \
	return file_fails(SYNC_CALL, fd, -1, 0) ? -1 : next_##name(fd); \
}

#define OPEN(name) \
int \
name(const char *path, int flags, ...) \
{ \
	NEXT(name); \
	va_list		args; \
	mode_t		mode; \
	va_start(args, flags); \
	mode = (flags & O_CREAT) ? va_arg(args, mode_t) : 0; \
	va_end(args); \
	return open_fails(path) ? -1 : next_##name(path, flags, mode); \
}

READ_WRITE(read, READ_CALL, void *)
READ_WRITE(write, WRITE_CALL, const void *)
READ_WRITE_AT(pread, READ_CALL, void *)
READ_WRITE_AT(pread64, READ_CALL, void *)
READ_WRITE_AT(pwrite, WRITE_CALL, const void *)
READ_WRITE_AT(pwrite64, WRITE_CALL, const void *)
READ_WRITE_VECTOR(preadv, READ_CALL)
READ_WRITE_VECTOR(preadv64, READ_CALL)
READ_WRITE_VECTOR(pwritev, WRITE_CALL)
READ_WRITE_VECTOR(pwritev64, WRITE_CALL)
SYNC(fsync)
SYNC(fdatasync)
OPEN(open)
OPEN(open64)

/* ---- what tests call ---- */

PG_FUNCTION_INFO_V1(failat_mapping);
PG_FUNCTION_INFO_V1(failat_malloc);
PG_FUNCTION_INFO_V1(failat_calls);
PG_FUNCTION_INFO_V1(failat_failed);
PG_FUNCTION_INFO_V1(failat_tell);
PG_FUNCTION_INFO_V1(failat_rule);
PG_FUNCTION_INFO_V1(failat_hits);
PG_FUNCTION_INFO_V1(failat_off);
PG_FUNCTION_INFO_V1(failat_clock);
PG_FUNCTION_INFO_V1(failat_execute);
PG_FUNCTION_INFO_V1(failat_preloaded);

/* (n int, repeat boolean, anywhere boolean) */
Datum
failat_mapping(PG_FUNCTION_ARGS)
{
	arm(&mapping, PG_GETARG_INT32(0), PG_GETARG_BOOL(1), PG_GETARG_BOOL(2));
	PG_RETURN_VOID();
}

Datum
failat_malloc(PG_FUNCTION_ARGS)
{
	arm(&allocation, PG_GETARG_INT32(0), PG_GETARG_BOOL(1), PG_GETARG_BOOL(2));
	PG_RETURN_VOID();
}

/* Calls counted since a countdown was armed last, by the process that did so; it may be gone by now. */
Datum
failat_calls(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(shared->calls);
}

Datum
failat_failed(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(shared->failed);
}

Datum
failat_tell(PG_FUNCTION_ARGS)
{
	tell = PG_GETARG_BOOL(0);
	PG_RETURN_VOID();
}

/*
 * (kind cstring, part cstring, first int8, last int8, error int, everybody boolean, times int8) returns boolean: was
 * there a place?
 */
Datum
failat_rule(PG_FUNCTION_ARGS)
{
	const char *part = PG_GETARG_CSTRING(1);

	for (int i = 0; i < MAX_RULES; i++)
	{
		Rule	   *rule = &shared->rules[i];

		if (rule->kind != 0 || strlen(part) >= sizeof(rule->part))
			continue;
		strcpy(rule->part, part);
		rule->first = PG_GETARG_INT64(2);
		rule->last = PG_GETARG_INT64(3);
		rule->error = PG_GETARG_INT32(4);
		rule->pid = PG_GETARG_BOOL(5) ? 0 : getpid();
		rule->times = PG_GETARG_INT64(6);
		rule->hits = 0;
		__atomic_store_n(&rule->kind, PG_GETARG_CSTRING(0)[0], __ATOMIC_RELEASE);
		shared->nrules = Max(shared->nrules, i + 1);
		PG_RETURN_BOOL(true);
	}
	PG_RETURN_BOOL(false);
}

/* Calls that rules have made fail, in all processes. */
Datum
failat_hits(PG_FUNCTION_ARGS)
{
	int64		hits = 0;

	for (int i = 0; i < MAX_RULES; i++)
		hits += shared->rules[i].hits;
	PG_RETURN_INT64(hits);
}

/* Disarm this process, and forget all rules, those of others, too. */
Datum
failat_off(PG_FUNCTION_ARGS)
{
	mapping.armed = allocation.armed = false;
	shared->nrules = 0;
	for (int i = 0; i < MAX_RULES; i++)
		shared->rules[i].kind = shared->rules[i].hits = 0;
	PG_RETURN_VOID();
}

/* (seconds int8): set the clock that far ahead, or back, of the machine's. */
Datum
failat_clock(PG_FUNCTION_ARGS)
{
	shared->clock = PG_GETARG_INT64(0);
	PG_RETURN_VOID();
}

/* (query text, rows int8): execute it until it has returned so many rows, as functions of other languages can. */
Datum
failat_execute(PG_FUNCTION_ARGS)
{
	SPI_connect();
	SPI_execute(text_to_cstring(PG_GETARG_TEXT_PP(0)), false, PG_GETARG_INT64(1));
	SPI_finish();
	PG_RETURN_VOID();
}

/* Do the C library's functions come here first?  Not where this object was not preloaded. */
Datum
failat_preloaded(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(dlsym(RTLD_DEFAULT, "mmap") == (void *) mmap);
}
