/*
 * slowreads.c
 *	  Storage of a known latency, for the cold samples of bench/.
 *
 * Preloaded into the scratch server (LD_PRELOAD), this makes the first read of
 * a block take as long as the harness says: from the advice to read it
 * (posix_fadvise) if there was one, else from the read itself.  All later
 * reads are as fast as the operating system has them, until the harness begins
 * a new epoch, in which every block is read for the first time again.
 *
 * Only files with the sticky bit count.  The harness sets it on the files that
 * it makes cold; that leaves out catalogs and the write-ahead log.
 *
 * Harness and processes share the memory whose descriptor is in the
 * environment: a header, and a hash table of the blocks that were advised or
 * read.  A slot of an older epoch is free.  Nothing here takes a lock.
 *
 * Reads by io_uring and direct reads are not seen here.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define BLOCK		8192
#define HEADER		4096			/* bytes */
#define SLOTS		(UINT64_C(1) << 22)
#define BYTES		(HEADER + SLOTS * sizeof(Slot))	/* as in slow_reads.py */
#define MAX_PROBES	4096
#define LOW_BITS	48				/* of a word; above them is the epoch */
#define LOW(word)	((word) & ((UINT64_C(1) << LOW_BITS) - 1))

typedef struct
{
	_Atomic uint64_t epoch;		/* from 1 on */
	_Atomic uint64_t latency;	/* us; 0: reads are fast, now and later */
	_Atomic uint64_t alone;		/* reads that took all of it, without advice */
} Header;

typedef struct
{
	_Atomic uint64_t block;		/* epoch, hash of file and block */
	_Atomic uint64_t ready;		/* epoch, us by the clock */
} Slot;

static Header *header;
static Slot *slots;

__attribute__((constructor)) static void
attach(void)
{
	const char *fd = getenv("LBT_SLOW_READS_FD");
	void	   *memory;

	if (fd == NULL)
		return;
	memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
				  atoi(fd), 0);
	if (memory == MAP_FAILED)
		return;					/* the descriptor has been closed on our way */
	slots = (Slot *) ((char *) memory + HEADER);
	header = memory;
}

static uint64_t
microseconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t) t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void
sleep_until(uint64_t when)
{
	struct timespec t = {when / 1000000, when % 1000000 * 1000};

	/* as a read, this does not end early by a signal */
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

/* mixes all bits, the finalizer of splitmix64 */
static uint64_t
hash(uint64_t x)
{
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

static bool
is_slow(int fd, uint64_t *file)
{
	struct stat st;
	int			saved_errno = errno;
	bool		known = header != NULL && fstat(fd, &st) == 0;

	errno = saved_errno;
	if (!known || !S_ISREG(st.st_mode) || (st.st_mode & S_ISVTX) == 0)
		return false;
	*file = hash(st.st_ino);
	return true;
}

/*
 * When a block is there, us by the clock.  If nobody has asked for it in this
 * epoch, it is asked for now, and *first is set.
 */
static uint64_t
ready_at(uint64_t file, uint64_t number, bool *first)
{
	uint64_t	epoch = header->epoch << LOW_BITS;
	uint64_t	hashed = hash(file + number);
	uint64_t	block = epoch | LOW(hashed);
	uint64_t	ready = microseconds() + header->latency;

	*first = false;
	for (int i = 0; i < MAX_PROBES; i++)
	{
		Slot	   *slot = &slots[(hashed + i) % SLOTS];
		uint64_t	found = slot->block;

		if (found >> LOW_BITS < epoch >> LOW_BITS &&
			atomic_compare_exchange_strong(&slot->block, &found, block))
		{
			*first = true;
			slot->ready = epoch | LOW(ready);
			return ready;
		}
		if (found == block)
		{
			uint64_t	when = slot->ready;

			/* another process, which asks just now, may be about to set it */
			return when >> LOW_BITS == epoch >> LOW_BITS ? LOW(when) : ready;
		}
	}
	return ready;				/* no room: rather too slow than too fast */
}

/* Wait until all blocks of a read are there. */
static void
wait_for(int fd, off_t offset, size_t bytes)
{
	uint64_t	file;
	uint64_t	latest = 0;
	off_t		last;
	bool		alone = false;

	if (bytes == 0 || !is_slow(fd, &file))
		return;
	last = (offset + (off_t) bytes - 1) / BLOCK;
	for (off_t at = offset / BLOCK; at <= last; at++)
	{
		bool		first;
		uint64_t	ready = ready_at(file, at, &first);

		if (ready > latest)
			latest = ready;
		alone |= first;
	}
	if (alone && header->latency > 0)
		header->alone++;
	if (latest > microseconds())
		sleep_until(latest);
}

static void
advised(int fd, off_t offset, off_t bytes)
{
	uint64_t	file;
	bool		first;

	if (bytes <= 0 || !is_slow(fd, &file))
		return;
	for (off_t at = offset / BLOCK; at <= (offset + bytes - 1) / BLOCK; at++)
		ready_at(file, at, &first);
}

static size_t
bytes_of(const struct iovec *parts, int n)
{
	size_t		bytes = 0;

	for (int i = 0; i < n; i++)
		bytes += parts[i].iov_len;
	return bytes;
}

/* The C library's functions, by both of their names. */
#define NEXT(name) \
	static typeof(name) *next; \
	if (next == NULL) \
		next = (typeof(name) *) dlsym(RTLD_NEXT, #name)

#define DEFINE_PREAD(name) \
ssize_t name(int fd, void *to, size_t bytes, off_t offset) \
{ \
	NEXT(name); \
	wait_for(fd, offset, bytes); \
	return next(fd, to, bytes, offset); \
}

#define DEFINE_PREADV(name) \
ssize_t name(int fd, const struct iovec *parts, int n, off_t offset) \
{ \
	NEXT(name); \
	wait_for(fd, offset, bytes_of(parts, n)); \
	return next(fd, parts, n, offset); \
}

#define DEFINE_FADVISE(name) \
int name(int fd, off_t offset, off_t bytes, int advice) \
{ \
	NEXT(name); \
	if (advice == POSIX_FADV_WILLNEED) \
		advised(fd, offset, bytes); \
	return next(fd, offset, bytes, advice); \
}

DEFINE_PREAD(pread)
DEFINE_PREAD(pread64)
DEFINE_PREADV(preadv)
DEFINE_PREADV(preadv64)
DEFINE_FADVISE(posix_fadvise)
DEFINE_FADVISE(posix_fadvise64)
