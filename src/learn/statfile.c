/*
 * statfile.c - the statistics file; see statfile.h, and src/README, "Counts that last".
 *
 * A header and the totals as they are in memory, written to a temporary file that then takes the old one's name.
 * Nobody reads the file but the first process that attaches to fresh shared memory.  It is believed only whole, and
 * only when it is this server's: of the same layout and cluster, of the length it says, with the right checksum.
 * Otherwise counting starts from zero.
 */
#include "learn/statfile.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "access/xlog.h"
#include "learn/counters.h"
#include "learn/registry_internal.h"
#include "learn/settings.h"
#include "pgstat.h"
#include "port/pg_crc32c.h"
#include "server/guard.h"
#include "storage/fd.h"
#include "utils/timestamp.h"

/* The one folder for statistics that neither base backups nor pg_rewind copy. */
#define STAT_FILE PG_STAT_TMP_DIR "/learnedbtree.stat"
#define STAT_FILE_TEMPORARY STAT_FILE ".tmp"

#define STAT_MAGIC 0x4c625374	/* "LbSt" */
#define STAT_LAYOUT 1			/* to be raised whenever LbtStats changes */

/* More than so many indexes are not looked for in a file. */
#define STATS_MAX 1000000

typedef struct StatHeader
{
	uint32		magic;
	uint32		layout;
	uint64		cluster;		/* its system identifier */
	uint32		stats_bytes;	/* of each */
	uint32		nstats;
	uint32		reserved;
	pg_crc32c	crc;			/* of the header up to here and of all that follows */
} StatHeader;

enum
{
	NOT_LOADED,
	LOADING,
	LOADED
};

static pg_crc32c
checksum(const StatHeader *header, const LbtStats *stats)
{
	pg_crc32c	crc;

	INIT_CRC32C(crc);
	COMP_CRC32C(crc, header, offsetof(StatHeader, crc));
	COMP_CRC32C(crc, stats, header->nstats * sizeof(LbtStats));
	FIN_CRC32C(crc);
	return crc;
}

/* ---- reading ---- */

/* What is wrong with the file's contents?  NULL: nothing. */
static const char *
examine(const char *bytes, Size size)
{
	const StatHeader *header = (const StatHeader *) bytes;

	if (size < sizeof(StatHeader) || header->magic != STAT_MAGIC)
		return "It is not a statistics file.";
	if (header->layout != STAT_LAYOUT || header->stats_bytes != sizeof(LbtStats))
		return "It was written by another version of learnedbtree.";
	if (header->cluster != GetSystemIdentifier())
		return "It was written by another database cluster.";
	if (header->nstats > STATS_MAX ||
		size != sizeof(StatHeader) + header->nstats * sizeof(LbtStats))
		return "Its length is wrong.";
	if (!EQ_CRC32C(header->crc, checksum(header, (const LbtStats *) (bytes + sizeof(StatHeader)))))
		return "Its checksum is wrong.";
	return NULL;
}

/* The file's bytes, palloc'd; NULL when there are none to be had. */
static char *
read_file(Size *size)
{
	struct stat st;
	char	   *bytes = NULL;
	int			fd = BasicOpenFile(STAT_FILE, O_RDONLY | PG_BINARY);

	if (fd < 0)
	{
		if (errno != ENOENT)
			ereport(LOG,
					(errcode_for_file_access(),
					 errmsg("could not open file \"%s\": %m", STAT_FILE),
					 errhint("The counts of learnedbtree_stat start from zero.")));
		return NULL;
	}
	*size = 0;
	if (fstat(fd, &st) == 0 && st.st_size > 0 &&
		st.st_size <= sizeof(StatHeader) + STATS_MAX * sizeof(LbtStats))
		bytes = MemoryContextAllocExtended(CurrentMemoryContext, st.st_size,
										   MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);
	while (bytes && *size < st.st_size)
	{
		ssize_t		n = read(fd, bytes + *size, st.st_size - *size);

		if (n <= 0)
			break;
		*size += n;
	}
	close(fd);
	return bytes;
}

static pg_noinline void
load(void)
{
	Size		size;
	char	   *bytes;

	LWLockAcquire(&lbt_control->stat_file, LW_EXCLUSIVE);
	if (pg_atomic_read_u32(&lbt_control->stats_loaded) != NOT_LOADED)
	{
		LWLockRelease(&lbt_control->stat_file);
		return;
	}
	pg_atomic_write_u32(&lbt_control->stats_loaded, LOADING);
	bytes = read_file(&size);
	if (bytes)
	{
		const char *fault = examine(bytes, size);
		const StatHeader *header = (const StatHeader *) bytes;
		const LbtStats *stats = (const LbtStats *) (bytes + sizeof(StatHeader));

		if (fault)
			ereport(LOG,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("ignoring the statistics file \"%s\"", STAT_FILE),
					 errdetail_internal("%s", fault),
					 errhint("The counts of learnedbtree_stat start from zero.")));
		for (uint32 i = 0; fault == NULL && i < header->nstats; i++)
			lbt_stats_restore(&stats[i]);
		pfree(bytes);
	}
	pg_atomic_write_u32(&lbt_control->stats_loaded, LOADED);
	LWLockRelease(&lbt_control->stat_file);
}

void
lbt_statfile_enter(void)
{
	volatile bool loaded = false;

	pg_atomic_fetch_add_u32(&lbt_control->stats_users, 1);
	if (pg_atomic_read_u32(&lbt_control->stats_loaded) == LOADED)
		return;
	LBT_GUARD_BEGIN();
	{
		load();
		loaded = true;
	}
	LBT_GUARD_END((void) 0);
	if (loaded)
		return;

	/* Part of it may be there: to read it again would count that twice. */
	pg_atomic_write_u32(&lbt_control->stats_loaded, LOADED);
	ereport(LOG,
			(errcode(ERRCODE_OUT_OF_MEMORY),
			 errmsg("not all counts of the statistics file \"%s\" could be restored", STAT_FILE),
			 errhint("Shared memory could not be had: the operating system refused a segment (/dev/shm).")));
}

/* ---- writing ---- */

static bool
write_all(int fd, const void *bytes, Size size)
{
	Size		done = 0;

	while (done < size)
	{
		ssize_t		n;

		errno = 0;
		n = write(fd, (const char *) bytes + done, size - done);
		if (n <= 0)
		{
			if (errno == 0)
				errno = ENOSPC; /* nothing written, and no word why */
			return false;
		}
		done += n;
	}
	return true;
}

/* Write and rename, no sync: what a crash of the machine leaves is checked when it is read.  False: see errno. */
static bool
write_file(const LbtStats *stats, uint32 nstats)
{
	StatHeader	header = {.magic = STAT_MAGIC,.layout = STAT_LAYOUT,.cluster = GetSystemIdentifier(),
	.stats_bytes = sizeof(LbtStats),.nstats = nstats};
	int			fd = BasicOpenFile(STAT_FILE_TEMPORARY, O_CREAT | O_TRUNC | O_WRONLY | PG_BINARY);
	bool		good;

	if (fd < 0)
		return false;
	header.crc = checksum(&header, stats);
	good = write_all(fd, &header, sizeof(header)) && write_all(fd, stats, nstats * sizeof(LbtStats));
	if (!good)
	{
		int			reason = errno;

		close(fd);
		unlink(STAT_FILE_TEMPORARY);
		errno = reason;
		return false;
	}
	return close(fd) == 0 && rename(STAT_FILE_TEMPORARY, STAT_FILE) == 0;
}

/* The caller holds the lock. */
static void
save_locked(void)
{
	uint64		changes = pg_atomic_read_u64(&lbt_control->stats_changes);
	LbtStats   *stats;
	uint32		n;

	if (changes == pg_atomic_read_u64(&lbt_control->stats_saved))
		return;
	pg_atomic_write_u64(&lbt_control->stats_tried, (uint64) GetCurrentTimestamp());
	n = lbt_stats_copy(&stats);
	if (write_file(stats, n))
	{
		pg_atomic_write_u64(&lbt_control->stats_saved, changes);
		pg_atomic_write_u32(&lbt_control->stats_told, 0);
	}
	else if (pg_atomic_exchange_u32(&lbt_control->stats_told, 1) == 0)
		ereport(LOG,
				(errcode_for_file_access(),
				 errmsg("could not write the statistics file \"%s\": %m", STAT_FILE),
				 errhint("The counts of learnedbtree_stat are in memory only, and will be lost when the server stops.")));
	pfree(stats);
}

static void
save(bool wait)
{
	LBT_GUARD_BEGIN();
	{
		if (wait)
			LWLockAcquire(&lbt_control->stat_file, LW_EXCLUSIVE);
		if (wait || LWLockConditionalAcquire(&lbt_control->stat_file, LW_EXCLUSIVE))
		{
			save_locked();
			LWLockRelease(&lbt_control->stat_file);
		}
	}
	LBT_GUARD_END((void) 0);
}

void
lbt_statfile_save(void)
{
	save(true);
}

void
lbt_statfile_save_if_due(TimestampTz now)
{
	TimestampTz tried;

	if (lbt_control == NULL || pg_atomic_read_u64(&lbt_control->stats_changes) ==
		pg_atomic_read_u64(&lbt_control->stats_saved))
		return;
	tried = (TimestampTz) pg_atomic_read_u64(&lbt_control->stats_tried);
	if (now < tried || TimestampDifferenceExceeds(tried, now, lbt_stat_save_interval))
		save(false);
}

void
lbt_statfile_changed(void)
{
	pg_atomic_fetch_add_u64(&lbt_control->stats_changes, 1);
}

void
lbt_statfile_leave(bool may_save)
{
	if (pg_atomic_fetch_sub_u32(&lbt_control->stats_users, 1) == 1 && may_save)
		lbt_statfile_save();
}

void
lbt_statfile_init(LbtControl *control)
{
	LWLockInitialize(&control->stat_file, control->tranche);
	pg_atomic_init_u32(&control->stats_loaded, NOT_LOADED);
	pg_atomic_init_u32(&control->stats_users, 0);
	pg_atomic_init_u64(&control->stats_changes, 0);
	pg_atomic_init_u64(&control->stats_saved, 0);
	pg_atomic_init_u64(&control->stats_tried, 0);
	pg_atomic_init_u32(&control->stats_told, 0);
}
