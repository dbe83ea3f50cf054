"""The part `cold-bounds` of bench/ahead: lookups that begin inside a group, and keys that are not there, with caches empty.

What is asked for ahead has to be what is read: the newest row before a time is not at the edge of its series, and a
key that is not there has no row.  Tables of their own, with an index for each contender: readings of series by time,
and those of `ahead`, in which keys are looked for that it does not have.
"""

from harness import cold, cold_query, load
from harness.cold_query import ColdQuery
from harness.contenders import Indexes

PART = "cold-bounds"
READING, SERIES, ABSENT = "reading", "series", "absent"
READINGS_A_SERIES = 7_000  # some 25 leaves
MAX_SERIES = 3_000
IO_WORKERS = 32


def number_of_series(options):
    return min(MAX_SERIES, max(options.rows // READINGS_A_SERIES, 10))


def make_tables(bench):
    """Returns the tables of questions, which a sample has in memory."""
    series = number_of_series(bench.options)
    load.fill(bench, READING, "id int4 NOT NULL, at int8 NOT NULL, v int4, pad text",
              f"SELECT s, m, m % 97, repeat('r', 60) FROM generate_series(1, {series}) AS s, "
              f"generate_series(1, {READINGS_A_SERIES}) AS m ORDER BY m, s")
    load.fill(bench, SERIES, "id int4 NOT NULL, since int8 NOT NULL",
              f"SELECT s, 100 + s % 90 * {READINGS_A_SERIES // 100} FROM generate_series(1, {series}) AS s")
    for number in range(bench.options.cold_rounds):
        first = 1 + number * bench.options.cold_probes
        load.fill(bench, _absent(number), "k int8 NOT NULL",
                  f"SELECT {load.key_of(load.drawn_row('j', bench.options.rows))} + 1 AS k "
                  f"FROM generate_series({first}::int8, {first + bench.options.cold_probes - 1}) AS j")
    return [SERIES, *map(_absent, range(bench.options.cold_rounds))]


def _absent(number):
    return f"{ABSENT}_{number}"


def readings(bench):
    return Indexes(READING, "id, at", [contender for contender in bench.contenders if contender.ranges])


def measure(bench, table):
    settings = cold.sample_settings(bench, IO_WORKERS)
    series = number_of_series(bench.options)
    served = []
    for what, title, where, backward in (
            ("before", "newest row before a time", f"at < {READINGS_A_SERIES // 3} ORDER BY at DESC", True),
            ("newest", "newest row of all", "true ORDER BY at DESC", True),
            ("since", "first row since a column's time", "at >= s.since ORDER BY at", False)):
        served += cold_query.measure(bench, readings(bench), [ColdQuery(
            f"cold_bound_{what}", f"cold: {title}, {series:,} series", "µs a series", series, "pages a series", series,
            lambda _first, _last, where=where, what="sum(r.v)": (
                f"SELECT {what} FROM {SERIES} AS s, LATERAL "
                f"(SELECT at, v FROM {READING} WHERE id = s.id AND {where} LIMIT 1) AS r"),
            0, 1, node_type="Index Scan", backward=backward, sums="count(*), sum(r.v)", again=False)], settings)
    indexes = Indexes(table, "k", [contender for contender in bench.contenders if contender.ranges])
    probes = bench.options.cold_probes
    served += cold_query.measure(bench, indexes, [ColdQuery(
        "cold_absent", "cold: anti join, keys that are not there", "µs a probe", probes, "pages a probe", probes,
        lambda number, _last, what="count(*)": (
            f"SELECT {what} FROM {_absent(number)} AS p "
            f"WHERE NOT EXISTS (SELECT FROM {table} AS t WHERE t.k = p.k AND t.v > 0)"),
        0, 1, node_type="Index Scan", sums="count(*), sum(p.k)", again=False)], settings)
    bench.add_table("How the extension served bounds and absent keys", cold_query.served_rows(served))
