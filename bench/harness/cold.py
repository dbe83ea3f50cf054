"""Restarts with cold caches, and what to warm again after one.

The server comes back with empty shared_buffers.  Where it can (version, system and file system), it reads past the
operating system's cache from then on (debug_io_direct); else the files of the relations that will be read are
dropped from that cache while the server is down.
"""

import glob
import os

from . import load
from .learned import train

DIRECT_IO = "debug_io_direct"  # setting, from version 16 on

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


def direct_io(bench):
    """Whether the server, the system and the file system can read past the cache."""
    if bench.server.installation.major < 16 or not hasattr(os, "O_DIRECT"):
        return False
    try:
        os.close(os.open(bench.server.data / "PG_VERSION", os.O_RDONLY | os.O_DIRECT))
    except OSError:
        return False
    return True


def cold_restart(bench, relations, settings=None):
    """Restart, with further settings; nothing of `relations` is cached afterwards."""
    files = files_of(bench, relations)
    direct = direct_io(bench)
    if not direct and not hasattr(os, "posix_fadvise"):
        bench.warn("cold start: the operating system's cache stays warm here: times are not those of a cold start")
    restart(bench, {**(settings or {}), **({DIRECT_IO: "data"} if direct else {})}, lambda: _drop_from_cache(files))


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
    index = contender.index_on(indexes.table)
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


def _drop_from_cache(files):
    for name in files:
        descriptor = os.open(name, os.O_RDONLY)
        try:
            os.fsync(descriptor)  # a page still to be written cannot be dropped
            if hasattr(os, "posix_fadvise"):
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)
