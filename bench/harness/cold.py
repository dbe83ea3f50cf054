"""Restarts with cold caches, and what to warm again after one; cold caches without a restart.

The server comes back with empty shared_buffers, and while it is down the files of the relations that will be read are
dropped from the operating system's cache.  (With direct I/O there would be no advice to read ahead.)  With --latency
their blocks are slow from then on, until each has been read once (slow_reads.py).
"""

import contextlib
import ctypes
import glob
import os
import pathlib

from . import disk, load, slow_reads
from .learned import train

DIRECT_IO = "debug_io_direct"
FIRST_DIRECT = 16  # major version
FIRST_EVICT = 18  # from here on relations can be evicted from shared_buffers
IO_CONCURRENCY = disk.DEPTH
IO_URING_SETUP = 425  # the system call's number, on every architecture
SHOWN = ("shared_buffers", "effective_io_concurrency", "io_workers")  # settings, in the report

# Blocks of a btree's inner pages, from the root down.  Of a page with a right sibling the first item is its high key.
INNER_PAGES = """
    WITH RECURSIVE inner_page AS (
        SELECT root AS block, level FROM bt_metap(%(index)s) WHERE level > 0
        UNION
        SELECT (item.ctid::text::point)[0]::int8, above.level - 1
          FROM inner_page AS above
         CROSS JOIN LATERAL bt_page_stats(%(index)s, above.block) AS page
         CROSS JOIN LATERAL bt_page_items(%(index)s, above.block) AS item
         WHERE above.level > 1 AND (item.itemoffset > 1 OR page.btpo_next = 0))
    SELECT block FROM inner_page"""


def add_options(parser):
    parser.add_argument("--io-methods", metavar="LIST",
                        help="from version 18 on (default: worker, and io_uring where it is to be had)")


def io_methods(bench):
    """How the server can read ahead; one None before version 18, where there is no choice."""
    found = bench.connection.execute("SELECT enumvals FROM pg_settings WHERE name = 'io_method'").fetchone()
    if not found:
        return [None]
    known = [method for method in found[0] if not bench.options.latency or method in slow_reads.IO_METHODS]
    if bench.options.io_methods:
        wanted = [method.strip() for method in bench.options.io_methods.split(",") if method.strip()]
        if not wanted or not set(wanted) <= set(known):
            raise SystemExit(f"bench: --io-methods takes some of {','.join(known)} here")
        return wanted
    if bench.options.latency:
        bench.say("--latency sees no reads by io_uring: io_method worker only")
        return ["worker"]
    if "io_uring" not in found[0]:
        bench.say("this server was built without io_uring: io_method worker only")
        return ["worker"]
    if not _io_uring_allowed():
        bench.warn("the system does not allow io_uring here: io_method worker only")
        return ["worker"]
    return ["worker", "io_uring"]


def _io_uring_allowed():
    with contextlib.suppress(OSError, ValueError):
        if int(pathlib.Path("/proc/sys/kernel/io_uring_disabled").read_text()):
            return False
    parameters = ctypes.create_string_buffer(120)
    descriptor = ctypes.CDLL(None, use_errno=True).syscall(IO_URING_SETUP, 1, parameters)
    if descriptor < 0:
        return False
    os.close(descriptor)
    return True


def sample_settings(bench, workers, **further):
    """Settings of cold samples: how many reads may be under way, and further ones; but for what --set says."""
    settings = {**further, "effective_io_concurrency": str(IO_CONCURRENCY)}
    if bench.server.installation.major >= 18:
        settings["io_workers"] = str(workers)
    if bench.options.latency:
        settings.update(slow_reads.settings(bench.server.installation))
    return {name: value for name, value in settings.items() if not _user_set(bench, name)}


def _user_set(bench, name):
    return any(setting.split("=", 1)[0] == name for setting in bench.options.set)


def disk_rows(bench, titles):
    """Rows for the report on what the disk can do: {title: relations} whose files are read; none with --latency."""
    rows = []
    for title, relations in titles.items() if not bench.options.latency else ():
        files = files_of(bench, relations)
        words = disk.in_words(disk.read_rates(files), sum(pathlib.Path(name).stat().st_size for name in files))
        bench.say(f"the disk, {' and '.join(relations)}: {words}")
        rows.append([title, words])
    return rows


def description(bench):
    """Rows for the report on the samples' circumstances."""
    return [["the operating system's cache", "files dropped from it before each sample (posix_fadvise)"],
            *([["storage", slow_reads.in_words(bench.options.latency)]] if bench.options.latency else []),
            *([name, bench.server.settings[name]] for name in SHOWN if name in bench.server.settings)]


def direct_io(bench):
    """Whether server, system and file system can read past the cache, and --set and --latency leave that open."""
    if bench.server.installation.major < FIRST_DIRECT or not hasattr(os, "O_DIRECT") or _user_set(bench, DIRECT_IO) \
            or bench.options.latency:
        return False
    try:
        os.close(os.open(bench.server.data / "PG_VERSION", os.O_RDONLY | os.O_DIRECT))
    except OSError:
        return False
    return True


def cold_restart(bench, relations, settings=None, stopped=lambda files: None):
    """Restart, with further settings; nothing of `relations` is cached afterwards.

    While the server is down, `stopped` is called with their files.
    """
    files = files_of(bench, relations)
    if not hasattr(os, "posix_fadvise"):
        bench.warn("cold start: the operating system's cache stays warm here: times are not those of a cold start")
    restart(bench, settings or {}, lambda: (stopped(files), drop_from_cache(bench, files)))


def evict(bench, relations, settings):
    """The same of a server that runs with these settings already, where it can: all else that is cached stays.

    Returns whether it could.
    """
    running = bench.server.settings
    if bench.server.installation.major < FIRST_EVICT or any(running.get(name) != value for name, value in settings.items()):
        return False
    bench.connection.execute("RESET ALL")
    bench.connection.execute("CREATE EXTENSION IF NOT EXISTS pg_buffercache")
    evicted = all(bench.connection.execute("SELECT buffers_skipped = 0 FROM pg_buffercache_evict_relation(%s::regclass)",
                                           [relation]).fetchone()[0] for relation in relations)
    drop_from_cache(bench, files_of(bench, relations))
    return evicted


def warm_restart(bench):
    """Back to reading through the operating system's cache."""
    if DIRECT_IO in bench.server.settings:
        restart(bench, {DIRECT_IO: ""})


def restart(bench, settings, stopped=lambda: None):
    """Restart, and connect anew."""
    bench.connection.execute("CHECKPOINT")  # so that the shutdown is short
    bench.connection.close()
    bench.server.restart(settings, stopped)
    bench.connection = bench.server.connect()


def warm_inner_pages(bench, indexes, contender):
    """Bring the index's inner pages into memory, and have a model trained on them: all but the leaves is warm.

    Training reads all pages of level 1; pageinspect does not look into the extension's own indexes.
    """
    warm_inner_pages_of(bench, contender.index_on(indexes.table), contender)


def warm_inner_pages_of(bench, index, contender):
    with bench.server.reads_at_once():
        _read_inner_pages(bench, index, contender)


def _read_inner_pages(bench, index, contender):
    if contender.needs_extension:
        model = train(bench, index)
        if model["state"] != "ready":
            bench.warn(f"{index}: model is {model['state']}: {model['reason']}")
        return
    bench.connection.execute("CREATE EXTENSION IF NOT EXISTS pageinspect")
    bench.connection.execute("CREATE EXTENSION IF NOT EXISTS pg_prewarm")
    bench.connection.execute(f"SELECT sum(pg_prewarm(%(index)s::regclass, 'buffer', 'main', block, block)) "
                             f"FROM ({INNER_PAGES}) AS p", {"index": index})


def warm_visibility(bench, indexes):
    """Index-only scans look into the table's visibility map: a few pages, the same for every contender."""
    load.prewarm(bench, [indexes.table], forks=("vm",))


def blocks_read(bench, table, index):
    """Blocks of table and index that were not in shared_buffers, by the statistics of all processes."""
    bench.connection.execute("SELECT pg_stat_force_next_flush()")
    return bench.connection.execute(
        """SELECT heap_blks_read, i.idx_blks_read FROM pg_statio_user_tables AS t
           JOIN pg_statio_user_indexes AS i USING (relid)
           WHERE t.relid = %s::regclass AND i.indexrelid = %s::regclass""", [table, index]).fetchone()


def files_of(bench, relations):
    """The files of relations: all forks, all segments."""
    found = []
    for relation in relations:
        path = bench.connection.execute("SELECT pg_relation_filepath(%s::regclass)", [relation]).fetchone()[0]
        found += [name for tail in ("", ".*", "_*") for name in glob.glob(f"{bench.server.data}/{path}{tail}")]
    return found


def drop_from_cache(bench, files):
    """Out of the operating system's cache; with --latency, their blocks are slow to read now."""
    for name in files:
        descriptor = os.open(name, os.O_RDONLY)
        try:
            os.fsync(descriptor)  # a page still to be written cannot be dropped
            if hasattr(os, "posix_fadvise"):
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)
    if bench.server.slow_reads:
        bench.server.slow_reads.all_cold(files)
