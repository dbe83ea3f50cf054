"""Tables made by rule: the same rows on every machine, from a seed.

The key of row i is the server's own 64-bit hash of i: uniformly random over int8, not in order, and for
the seed here without a repetition up to 200 million rows.  A probe needs no look at the table: it is
the key of a row number that is drawn by another seed.
"""

import contextlib
import time

from .measure import Failed

KEY_SEED = 2
PROBE_SEED = 7
CHUNK_ROWS = 5_000_000
VACUUM_ATTEMPTS = 4
INT8_MAX = 2**63 - 1
KEY_SPACE = 2**64
HEAP_BYTES_A_ROW = 46  # header 24, line pointer 4, columns 16, and the page's own


def key_of(row):
    """SQL for the key of a row number (SQL too)."""
    return f"hashint8extended({row}, {KEY_SEED})"


def value_of(row):
    """SQL for the value of a row number (SQL too): few, each of many rows."""
    return f"({row} & 1023)::int4"


def drawn_row(number, rows):
    """SQL for the row that probe `number` (SQL too) asks for, drawn with replacement."""
    return f"((hashint8extended({number}, {PROBE_SEED}) & {INT8_MAX}) % {rows} + 1)"


@contextlib.contextmanager
def loading(bench):
    """A transaction to make and fill a table in: the rows of a table that is new in it are not logged.

    Its commit is synchronous: until the commit record has left the log buffers, VACUUM cannot take the
    rows as visible to all.
    """
    with bench.connection.transaction():
        bench.connection.execute("SET LOCAL synchronous_commit = on")
        yield


def random_keys(bench, table, rows):
    """Table (k int8 unique and random, v int4), all-visible and frozen, without an index."""
    connection = bench.connection
    with loading(bench):
        connection.execute(f"CREATE TABLE {table} (k int8 NOT NULL, v int4 NOT NULL)")
        for first in range(1, rows + 1, CHUNK_ROWS):
            last = min(rows, first + CHUNK_ROWS - 1)
            connection.execute(f"INSERT INTO {table} SELECT {key_of('i')}, {value_of('i')} "
                               f"FROM (SELECT generate_series({first}::int8, {last}::int8) AS i) AS s")
            bench.say(f"loaded {last:,} of {rows:,} rows")
    settle(bench, table)


def primary_key(bench, indexes):
    """Make the index that btree's contenders share the table's primary key."""
    index, = indexes.names()
    bench.connection.execute(f"ALTER TABLE {indexes.table} ADD CONSTRAINT {index} PRIMARY KEY ({indexes.columns})")
    bench.say(f"built {index}")
    return index


def probes(bench, table, rows, count, ordered, first=1):
    """Table (k int8) of keys that exist, those of the probes from `first` on, in random or in key order."""
    fill(bench, table, "k int8 NOT NULL",
            f"SELECT {key_of(drawn_row('j', rows))} AS k "
            f"FROM (SELECT generate_series({first}::int8, {first + count - 1}) AS j) AS s"
            + (" ORDER BY k" if ordered else ""))


def range_probes(bench, table, rows, count, keys_a_range):
    """Table (lo, hi int8) of ranges that begin at a key and hold about `keys_a_range` keys."""
    width = KEY_SPACE * keys_a_range // rows
    fill(bench, table, "lo int8 NOT NULL, hi int8 NOT NULL",
            f"SELECT k, CASE WHEN k > {INT8_MAX - width} THEN {INT8_MAX} ELSE k + {width} END "
            f"FROM (SELECT {key_of(drawn_row('j', rows))} AS k "
            f"FROM (SELECT generate_series(1::int8, {count}) AS j) AS s) AS p")


def fill(bench, table, columns, select):
    """A table of what a SELECT gives, all-visible."""
    with loading(bench):
        bench.connection.execute(f"CREATE TABLE {table} ({columns})")
        bench.connection.execute(f"INSERT INTO {table} {select}")
    settle(bench, table)


def settle(bench, table):
    """Freeze the table, and see that all of its pages that hold rows are all-visible.

    A background worker's snapshot may stand in the way for a moment.  COPYs side by side extend a table ahead of their
    need: pages that none of them filled stay new, and VACUUM marks no new page.
    """
    for attempt in range(VACUUM_ATTEMPTS):
        time.sleep(attempt)
        bench.connection.execute(f"VACUUM (FREEZE, ANALYZE) {table}")
        pages, visible = bench.connection.execute(
            "SELECT relpages, relallvisible FROM pg_class WHERE oid = %s::regclass", [table]).fetchone()
        missing = _filled_and_not_visible(bench, table) if visible < pages else 0
        if missing == 0:
            return
    raise Failed(f"{missing} of {pages} pages of {table} are not all-visible after VACUUM")


def _filled_and_not_visible(bench, table):
    """How many pages hold rows without being marked all-visible."""
    bench.connection.execute("CREATE EXTENSION IF NOT EXISTS pg_visibility")
    return bench.connection.execute(
        f"""SELECT count(*) FROM pg_visibility_map(%s::regclass) AS page WHERE NOT all_visible AND EXISTS
            (SELECT FROM {table} WHERE ctid >= format('(%%s,0)', blkno)::tid
                                   AND ctid < format('(%%s,0)', blkno + 1)::tid)""", [table]).fetchone()[0]


def prewarm(bench, relations, forks=("main", "vm")):
    """Read relations into shared_buffers, visibility maps too."""
    bench.connection.execute("CREATE EXTENSION IF NOT EXISTS pg_prewarm")
    with bench.server.reads_at_once():
        for relation in relations:
            for fork in forks:
                if bench.connection.execute("SELECT pg_relation_size(%s::regclass, %s)", [relation, fork]).fetchone()[0]:
                    bench.connection.execute("SELECT pg_prewarm(%s::regclass, 'buffer', %s)", [relation, fork])


def prewarm_with_toast(bench, table):
    """With what is out of line in its rows."""
    toast = bench.connection.execute(
        """SELECT t.oid::regclass::text, i.indexrelid::regclass::text FROM pg_class AS c
           JOIN pg_class AS t ON t.oid = c.reltoastrelid JOIN pg_index AS i ON i.indrelid = t.oid
           WHERE c.oid = %s::regclass""", [table]).fetchone()
    prewarm(bench, [table, *(toast or ())])
