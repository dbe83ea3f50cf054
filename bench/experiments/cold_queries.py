"""What is asked of cold indexes: arrays of keys, ranges in all directions, the first rows from a key on.

Arrays and ranges lie in tables, numbered; each sample takes other ones, the same for all contenders of a round.
A sample begins with a restart, after which all is warm but the index's leaves (or nothing, with --inner cold).
"""

import dataclasses

from harness import cold, learned, load
from harness.measure import (NESTED_LOOP, Failed, WrongAnswer, WrongPlan, apply_settings, explain, index_node,
                             plan_nodes, server_microseconds)

ARRAYS = "wanted_arrays"  # (n int4, keys int8[])
RANGES = "wanted_ranges"  # (n int4, lo int8, hi int8)
FIRST_ROWS = 10  # of LIMIT
AGAIN_SHARE = 0.02  # of a sample's pages may be read once more where it counts as being in memory
TARGET = 3.0  # speed-up that is asked for, of arrays and of ranges

BY_INDEX = {**NESTED_LOOP, "enable_seqscan": "off", "enable_sort": "off"}
BY_BITMAP = {**BY_INDEX, "enable_bitmapscan": "on", "enable_indexscan": "off", "enable_indexonlyscan": "off",
             "work_mem": "256MB"}  # the bitmap keeps each row


def array_sql(table, first, last, what="count(s.k)"):
    return (f"SELECT {what} FROM {ARRAYS} AS a JOIN {table} AS s ON s.k = ANY (a.keys) "
            f"WHERE a.n BETWEEN {first} AND {last}")


def range_sql(inner, first, last, what="count(s.k)"):
    return (f"SELECT {what} FROM {RANGES} AS r CROSS JOIN LATERAL ({inner}) AS s "
            f"WHERE r.n BETWEEN {first} AND {last}")


@dataclasses.dataclass
class ColdQuery:
    """A statement over `count` arrays or ranges, timed as a whole."""

    key: str
    title: str
    unit: str
    per: float  # what the time is divided by
    pages_unit: str
    pages_per: float
    statement: object  # function of (first, last, what) that gives SQL
    first: int  # the array or range that the first round begins with
    count: int  # arrays or ranges a sample
    node_type: str = "Index Only Scan"
    backward: bool = False
    settings: dict = dataclasses.field(default_factory=lambda: BY_INDEX)
    counts_rows: bool = True  # the statement's own answer is a number of rows, which can be compared and summed
    target: float | None = None

    def numbers(self, round_number):
        first = self.first + round_number * self.count
        return first, first + self.count - 1

    def check_plan(self, connection, index, statement):
        node = index_node(explain(connection, statement), index, self.node_type)
        if (node.get("Scan Direction") == "Backward") != self.backward:
            raise WrongPlan(f"{self.title}: the scan of {index} runs {node.get('Scan Direction')}")

    def answer(self, connection, index, numbers):
        """Something that tells a wrong answer from a right one."""
        if self.counts_rows:
            return connection.execute(self.statement(*numbers, what="count(s.k), sum(s.k)")).fetchone()
        # The bitmap is complete before the first row is asked for.
        plan = explain(connection, self.statement(*numbers), ", ANALYZE, TIMING OFF")
        return [(node["Actual Rows"], node["Actual Loops"]) for node in plan_nodes(plan) if "Index Name" in node]


def kinds(options, array_table, range_table):
    """Every kind of cold query: (its table, query)."""
    keys = options.cold_arrays * options.array_keys
    rows = f"SELECT k FROM {range_table} AS g WHERE g.k BETWEEN r.lo AND r.hi ORDER BY k"
    arrays = lambda first, last, what="count(s.k)": array_sql(array_table, first, last, what)  # noqa: E731
    ranges = lambda inner: (  # noqa: E731
        lambda first, last, what="count(s.k)": range_sql(inner, first, last, what))
    starts = options.cold_rounds * options.ranges  # behind the ranges
    if "cold-arrays" in options.parts:
        yield array_table, ColdQuery(
            "cold_array", f"cold: = ANY with {options.array_keys:,} keys", "µs a key", keys, "pages a key", keys,
            arrays, options.arrays, options.cold_arrays, target=TARGET)
    if "cold-ranges" not in options.parts:
        return
    of_rows = f"{options.range_rows:,} rows"
    common = {"unit": "ms a range", "per": options.ranges * 1000, "pages_unit": "pages a range",
              "pages_per": options.ranges, "first": 0, "count": options.ranges}
    yield range_table, ColdQuery("cold_range", f"cold: range of {of_rows}, index only", **common, target=TARGET,
                                 statement=ranges(f"{rows} OFFSET 0"))
    yield range_table, ColdQuery("cold_range_backward", f"cold: range of {of_rows}, index only, backward", **common,
                                 statement=ranges(f"{rows} DESC OFFSET 0"), backward=True)
    yield range_table, ColdQuery(
        "cold_bitmap", f"cold: range of {of_rows}, bitmap and one row", **common, node_type="Bitmap Index Scan",
        settings=BY_BITMAP, counts_rows=False,
        statement=ranges(f"SELECT v AS k FROM {range_table} AS g WHERE g.k BETWEEN r.lo AND r.hi LIMIT 1"))
    yield range_table, ColdQuery(
        "cold_limit", f"cold: the first {FIRST_ROWS} rows from a key on", "µs a query", options.starts,
        "pages a query", options.starts,
        ranges(f"SELECT k FROM {range_table} AS g WHERE g.k >= r.lo ORDER BY k LIMIT {FIRST_ROWS}"),
        starts, options.starts)


@dataclasses.dataclass
class Found:
    """Samples of one kind of query, by contender."""

    time: dict
    pages: dict
    again: dict
    served: dict


def measure(bench, indexes, query, settings, method=None):
    """All rounds of a query over one table's indexes; adds its results, and returns the counters by contender."""
    names = [contender.name for contender in bench.contenders]
    found = Found(*({name: [] for name in names} for _ in range(3)), {})
    for round_number in range(bench.options.cold_rounds):
        answers = {}
        for contender in bench.in_turn(bench.contenders, round_number):
            answers[contender.name] = _sample(bench, indexes, contender, query, round_number, settings, found)
        if len(set(map(repr, answers.values()))) > 1:
            raise WrongAnswer(f"{query.title}: the contenders disagree: {answers}")
    key, title = (f"{query.key}_{method}", f"{query.title} ({method})") if method else (query.key, query.title)
    bench.add_result(key, title, query.unit, found.time)
    bench.add_result(f"{key}_pages", f"{title}: index pages read", query.pages_unit, found.pages, timed=False)
    if all(found.again.values()):
        bench.add_result(f"{key}_again", f"{title}: again, in memory", query.unit, found.again)
    bench.targets[key] = query.target
    bench.say(f"{title}: " + ", ".join(
        f"{name} {sorted(values)[len(values) // 2]:.3g} {query.unit}, "
        f"{sorted(found.pages[name])[len(values) // 2]:.3g} {query.pages_unit}"
        for name, values in found.time.items()))
    return title, found.served


def _sample(bench, indexes, contender, query, round_number, settings, found):
    index, numbers = contender.index_on(indexes.table), query.numbers(round_number)
    cold.cold_restart(bench, (indexes.table, index), settings)
    connection = bench.connection
    indexes.show_only(connection, contender)
    apply_settings(connection, query.settings)
    if bench.options.inner == "warm":
        cold.warm_inner_pages(bench, indexes, contender)
    cold.warm_visibility(bench, indexes)
    warm_questions(bench)
    statement = query.statement(*numbers)
    query.check_plan(connection, index, statement)
    counted = learned.counters(bench, index) if contender.needs_extension else {}
    _, before = cold.blocks_read(bench, indexes.table, index)
    microseconds, rows = server_microseconds(connection, statement)
    _, after = cold.blocks_read(bench, indexes.table, index)
    if not rows[0][0]:
        raise Failed(f"{query.title}: nothing was found in {index}")
    if counted:
        now = learned.counters(bench, index)
        served = found.served.setdefault(contender.name, {})
        for name in now:
            served[name] = served.get(name, 0) + now[name] - counted.get(name, 0)
    found.time[contender.name].append(microseconds / query.per)
    found.pages[contender.name].append((after - before) / query.pages_per)
    again, rows_again = server_microseconds(connection, statement)
    _, at_last = cold.blocks_read(bench, indexes.table, index)
    if at_last - after <= AGAIN_SHARE * (after - before):  # else shared_buffers were too small for it
        found.again[contender.name].append(again / query.per)
    if rows_again != rows:
        raise WrongAnswer(f"{query.title}: {index} gave {rows}, then {rows_again}")
    return rows, query.answer(connection, index, numbers)


def warm_questions(bench):
    """The tables with arrays and ranges into memory, with what is out of line in them."""
    connection = bench.connection
    for table in (ARRAYS, RANGES):
        load.prewarm(bench, [table])
        toast, toast_index = connection.execute(
            """SELECT t.oid::regclass::text, i.indexrelid::regclass::text FROM pg_class AS c
               JOIN pg_class AS t ON t.oid = c.reltoastrelid JOIN pg_index AS i ON i.indrelid = t.oid
               WHERE c.oid = %s::regclass""", [table]).fetchone() or (None, None)
        if toast:
            load.prewarm(bench, [toast, toast_index])


def served_rows(served):
    """A table of how the extension served each kind; `served`: [(title, counters by contender)]."""
    rows = [["", "searches by the model", "verified, %", "left to btree's engine", "leaves brought ahead"]]
    for title, by_contender in served:
        for name, counts in by_contender.items():
            lookups = counts.get("lookups", 0)
            rows.append([f"{title}: {name}", lookups, 100 * counts["verified"] / lookups if lookups else None,
                         counts.get("delegated"), counts.get("prefetched")])
    return rows
