"""Statements timed with cold caches: each sample begins with a restart, or an eviction, and takes keys of its own.

After that all is warm but the leaves of the index and the table's rows; a query may want the one or the other
in memory, too.  The keys of a sample are other ones in each round, and the same for all contenders of a round.
"""

import dataclasses

from . import cold, learned, load
from .contenders import BASELINE
from .measure import (BY_INDEX, Failed, WrongAnswer, WrongPlan, apply_settings, explain, index_node, plan_nodes,
                      server_microseconds)

AGAIN_SHARE = 0.02  # of a sample's pages may be read once more where it counts as being in memory
INDEX, TABLE = "index", "table"
ONE_BY_ONE, ONE_BY_ONE_UNTIL = {"Index Scan", "Index Only Scan"}, 18  # btree's scans; the last version that knows no better

BY_BITMAP = {**BY_INDEX, "enable_bitmapscan": "on", "enable_indexscan": "off", "enable_indexonlyscan": "off",
             "work_mem": "256MB"}  # the bitmap keeps each row


@dataclasses.dataclass
class ColdQuery:
    """A statement over `count` numbered questions, timed as a whole."""

    key: str
    title: str
    unit: str
    per: float  # what the time is divided by
    pages_unit: str
    pages_per: float
    statement: object  # function of (first, last) that gives SQL; and of what to select, where there are `sums`
    first: int  # the question that the first round begins with
    count: int  # questions a sample
    node_type: str = "Index Only Scan"
    backward: bool = False
    settings: dict = dataclasses.field(default_factory=lambda: BY_INDEX)
    sums: str | None = "count(s.k), sum(s.k)"  # what tells a wrong answer from a right one; None: see answer()
    warm: tuple = ()  # of INDEX and TABLE: what is in memory as a whole
    again: bool = True  # is it to be timed once more, in memory?

    def numbers(self, round_number):
        first = self.first + round_number * self.count
        return first, first + self.count - 1

    def check_plan(self, connection, index, statement):
        node = index_node(explain(connection, statement), index, self.node_type)
        if (node.get("Scan Direction") == "Backward") != self.backward:
            raise WrongPlan(f"{self.title}: the scan of {index} runs {node.get('Scan Direction')}")

    def answer(self, connection, numbers):
        """Something that tells a wrong answer from a right one."""
        if self.sums:
            return connection.execute(self.statement(*numbers, what=self.sums)).fetchone()
        # The number of rows that the index gave: a bitmap is complete before the first row is asked for.
        plan = explain(connection, self.statement(*numbers), ", ANALYZE, TIMING OFF")
        return [(node["Actual Rows"], node["Actual Loops"]) for node in plan_nodes(plan) if "Index Name" in node]


class Found:
    """Samples of one query, by contender."""

    def __init__(self, query, contenders):
        self.query = query
        names = [contender.name for contender in contenders]
        self.time, self.pages, self.table_pages, self.again = ({name: [] for name in names} for _ in range(4))
        self.served = {}


def measure(bench, indexes, queries, settings, method=None, warm_inner=True, may_evict=False):
    """All rounds of queries that are compared with each other: they are measured in turn, and must agree.

    may_evict: a sample may do without a restart. Adds their results; returns (title, counters by contender) of each.
    """
    everything = [Found(query, indexes.contenders) for query in queries]
    for round_number in range(bench.options.cold_rounds):
        answers = {}
        for contender in bench.in_turn(indexes.contenders, round_number):
            for found in everything:
                answers[contender.name, found.query.key] = _sample(
                    bench, indexes, contender, found, round_number, settings, warm_inner, may_evict)
        if len(set(map(repr, answers.values()))) > 1:
            raise WrongAnswer(f"{queries[0].title}: the contenders disagree: {answers}")
    return [(_add_results(bench, found, method), found.served) for found in everything]


def _add_results(bench, found, method):
    query = found.query
    key, title = (f"{query.key}_{method}", f"{query.title} ({method})") if method else (query.key, query.title)
    bench.add_result(key, title, query.unit, found.time)
    bench.add_result(f"{key}_pages", f"{title}: index pages read", query.pages_unit, found.pages, timed=False)
    if any(map(any, found.table_pages.values())):
        bench.add_result(f"{key}_table_pages", f"{title}: table pages read", query.pages_unit, found.table_pages,
                         timed=False)
    if all(found.again.values()):
        bench.add_result(f"{key}_again", f"{title}: again, in memory", query.unit, found.again)
    bench.say(f"{title}: " + ", ".join(
        f"{name} {sorted(values)[len(values) // 2]:.3g} {query.unit}, "
        f"{sorted(found.pages[name])[len(values) // 2]:.3g} {query.pages_unit}"
        for name, values in found.time.items()))
    return title


def _sample(bench, indexes, contender, found, round_number, settings, warm_inner, may_evict):
    query, index, numbers = found.query, contender.index_on(indexes.table), found.query.numbers(round_number)
    relations = {INDEX: index, TABLE: indexes.table}
    colder = [relation for which, relation in relations.items() if which not in query.warm]
    if not (may_evict and cold.evict(bench, colder, settings)):
        cold.cold_restart(bench, relations.values(), settings)
    connection = bench.connection
    indexes.show_only(connection, contender)
    apply_settings(connection, query.settings)
    if warm_inner:
        cold.warm_inner_pages(bench, indexes, contender)
    cold.warm_visibility(bench, indexes)
    load.prewarm(bench, [relations[which] for which in query.warm])
    warm_questions(bench)
    statement = query.statement(*numbers)
    query.check_plan(connection, index, statement)
    counted = learned.counters(bench, index) if contender.needs_extension else {}
    table_before, before = cold.blocks_read(bench, indexes.table, index)
    slow = bench.server.slow_reads
    alone = slow and slow.alone()
    microseconds, rows = server_microseconds(connection, statement)
    if slow and contender.name == BASELINE and query.node_type in ONE_BY_ONE \
            and bench.server.installation.major <= ONE_BY_ONE_UNTIL:
        slow.check(query.title, slow.alone() - alone, microseconds)
    table_after, after = cold.blocks_read(bench, indexes.table, index)
    if not rows[0][0]:
        raise Failed(f"{query.title}: nothing was found in {index}")
    _check_reads(bench, query, {INDEX: after - before, TABLE: table_after - table_before})
    if counted:
        now = learned.counters(bench, index)
        served = found.served.setdefault(contender.name, {})
        for name in now:
            served[name] = served.get(name, 0) + now[name] - counted.get(name, 0)
    found.time[contender.name].append(microseconds / query.per)
    found.pages[contender.name].append((after - before) / query.pages_per)
    found.table_pages[contender.name].append((table_after - table_before) / query.pages_per)
    if query.again:
        again, rows_again = server_microseconds(connection, statement)
        _, at_last = cold.blocks_read(bench, indexes.table, index)
        if at_last - after <= AGAIN_SHARE * (after - before):  # else shared_buffers were too small for it
            found.again[contender.name].append(again / query.per)
        if rows_again != rows:
            raise WrongAnswer(f"{query.title}: {index} gave {rows}, then {rows_again}")
    return rows, query.answer(connection, numbers)


def _check_reads(bench, query, reads):
    if INDEX not in query.warm and not reads[INDEX]:
        raise Failed(f"{query.title}: no page of the index was read: it was not cold")
    for which in query.warm:
        if reads[which]:
            bench.warn(f"{query.title}: {reads[which]} pages of the {which} were read: it was not all in memory")


def warm_questions(bench):
    for table in bench.questions:
        load.prewarm_with_toast(bench, table)


def served_rows(served):
    """A table of how the extension served each query; `served`: [(title, counters by contender)]."""
    rows = [["", "searches by the model", "verified, %", "left to btree's engine", "leaves brought ahead",
             "rows brought ahead"]]
    for title, by_contender in served:
        for name, counts in by_contender.items():
            lookups = counts.get("lookups", 0)
            rows.append([f"{title}: {name}", lookups, 100 * counts["verified"] / lookups if lookups else None,
                         counts.get("delegated"), counts.get("prefetched"), counts.get("rows_prefetched")])
    return rows
