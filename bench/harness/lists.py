"""Queries with lists of keys, `= ANY`: the lists lie in a table, numbered."""

from . import load
from .measure import Query

TABLE = "wanted_lists"  # (n int4, keys int8[])


def make(bench, rows, lists, keys):
    """So many lists of so many keys that exist, drawn at random."""
    connection = bench.connection
    with load.loading(bench):
        connection.execute(f"CREATE TABLE {TABLE} (n int4 NOT NULL, keys int8[] NOT NULL)")
        connection.execute(f"ALTER TABLE {TABLE} ALTER keys SET STORAGE EXTERNAL")
        connection.execute(
            f"INSERT INTO {TABLE} SELECT n, ARRAY(SELECT {load.key_of(load.drawn_row('j', rows))} FROM "
            f"generate_series(n::int8 * {keys} + 1, (n::int8 + 1) * {keys}) AS j) "
            f"FROM generate_series(0, {lists - 1}) AS n")
    load.settle(bench, TABLE)


def sql(table, first, last, what="count(s.k)"):
    """Over lists `first` to `last`; the rows of `table` are `s`."""
    return (f"SELECT {what} FROM {TABLE} AS l JOIN {table} AS s ON s.k = ANY (l.keys) "
            f"WHERE l.n BETWEEN {first} AND {last}")


def query(key, table, count, keys, index_only):
    """A measurement: the first lists, in memory.  A hash index has no such scan."""
    return Query(key, f"= ANY with {keys:,} keys, {'index only' if index_only else 'with rows'}", "µs a key",
                 index_only=index_only, ranges=True, per=count * keys,
                 sql=sql(table, 0, count - 1, "count(s.k)" if index_only else "sum(s.v)"))
