"""Kinds of measurement that experiments declare: a query, a prepared statement under pgbench, pages touched.

A measurement answers `applies(contender)` and `run(bench, indexes, contender, round)`, which returns
one sample.  Each checks the plan before it measures and raises WrongPlan unless the contender's index
serves it.  `last_answer` is what the query returned: the experiment loop demands that all contenders agree.
"""

import dataclasses
import pathlib
import re
import subprocess
import tempfile

from .cpu import cpu_microseconds

# Joins are to be nested loops over the index, one probe a row.
NESTED_LOOP = {
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_material": "off",
    "enable_memoize": "off",
    "enable_bitmapscan": "off",
}
BY_INDEX = {**NESTED_LOOP, "enable_seqscan": "off", "enable_sort": "off"}
PGBENCH_SECONDS = 600


class Failed(Exception):
    """A measurement that must not be believed, or could not be taken; the message says which and why."""


class WrongPlan(Failed):
    """The planner did not do what was to be measured."""


class WrongAnswer(Failed):
    """Two contenders returned different results."""


def apply_settings(connection, settings):
    """For the session; None is a setting's default."""
    for name, value in settings.items():
        connection.execute("SELECT set_config(%s, %s, false)", [name, None if value is None else str(value)])


def plan_nodes(plan):
    yield plan
    for child in plan.get("Plans", ()):
        yield from plan_nodes(child)


def explain(connection, statement, options=""):
    """The plan's root node, as EXPLAIN in JSON gives it."""
    return connection.execute(f"EXPLAIN (FORMAT JSON{options}) {statement}").fetchone()[0][0]["Plan"]


def index_node(plan, index, node_type):
    """The one node that reads `index`; raises WrongPlan unless it is the plan's only index access."""
    using = [node for node in plan_nodes(plan) if "Index Name" in node]
    if [(node["Index Name"], node["Node Type"]) for node in using] != [(index, node_type)]:
        found = ", ".join(f"{node['Node Type']} {node.get('Index Name', node.get('Relation Name', ''))}".strip()
                          for node in plan_nodes(plan))
        raise WrongPlan(f"wanted {node_type} on {index}, got: {found}")
    return using[0]


def server_microseconds(connection, statement):
    """Run a statement; returns (microseconds by the server's clock, planning included; its rows, or their number)."""
    cursor = connection.execute(f"SELECT clock_timestamp(); {statement}; SELECT clock_timestamp()")
    began = cursor.fetchone()[0]
    cursor.nextset()
    rows = cursor.fetchall() if cursor.description else cursor.rowcount
    cursor.nextset()
    ended = cursor.fetchone()[0]
    return (ended - began).total_seconds() * 1e6, rows


def microseconds_taken(bench):
    """How this run times queries in memory: a function of (connection, statement)."""
    return cpu_microseconds if bench.options.cpu_time else server_microseconds


def pgbench_microseconds(bench, scripts, transactions, seed, settings, variables=None):
    """Round trip of one pgbench client's prepared statements; `scripts` are (text, weight)."""
    arguments = ["-c", "1", "-j", "1", "-M", "prepared", "-t", str(transactions), "--random-seed", str(seed)]
    arguments += [f"-D{name}={value}" for name, value in (variables or {}).items()]
    with bench.server.one_core():
        _, rate = pgbench(bench, arguments, {**NESTED_LOOP, **settings}, scripts)
    return 1e6 / rate


def pgbench(bench, arguments, settings, scripts=(), timeout=PGBENCH_SECONDS):
    """Run pgbench, with (text, weight) of scripts; returns (transactions, transactions a second)."""
    command = [bench.server.installation.program("pgbench"), "-n", *arguments]
    with tempfile.TemporaryDirectory() as folder:
        for number, (text, weight) in enumerate(scripts):
            path = pathlib.Path(folder, f"{number}.sql")
            path.write_text(text, encoding="utf-8")
            command += ["-f", f"{path}@{weight}"]
        finished = subprocess.run(command, env=bench.server.client_environment(settings),
                                  capture_output=True, text=True, timeout=timeout)
    done = re.search(r"^number of transactions actually processed: (\d+)", finished.stdout, re.MULTILINE)
    rate = re.search(r"^tps = ([0-9.]+) \((?:without initial connection time|including reconnection times)\)",
                     finished.stdout, re.MULTILINE)
    if finished.returncode != 0 or not done or not rate:
        raise Failed(f"pgbench failed:\n{finished.stdout}{finished.stderr}")
    return int(done.group(1)), float(rate.group(1))


def check_prepared(connection, statement, index, node_type, parameter_type="int8", sample_parameter="1"):
    """Raise WrongPlan unless the generic plan of a statement with $1 in it reads `index`."""
    apply_settings(connection, {**NESTED_LOOP, "plan_cache_mode": "force_generic_plan"})
    connection.execute(f"PREPARE checked ({parameter_type}) AS {statement}")
    try:
        index_node(explain(connection, f"EXECUTE checked ({sample_parameter})"), index, node_type)
    finally:
        connection.execute("DEALLOCATE checked")
        connection.execute("RESET plan_cache_mode")


@dataclasses.dataclass
class Measurement:
    key: str
    title: str
    unit: str = "µs"
    index_only: bool = False
    ranges: bool = False
    timed: bool = True  # false: a count, for which one sample is enough and speed-up means nothing
    rate: bool = False  # more is better

    last_answer = None

    def applies(self, contender):
        return contender.ranges or not self.ranges

    def node_type(self, contender):
        return "Index Only Scan" if self.index_only and contender.index_only else "Index Scan"

    def note(self, contender):
        """A word on how this contender had to do it, or None."""
        if self.index_only and not contender.index_only:
            return "cannot answer from the index alone: fetches from the table"
        return None


@dataclasses.dataclass
class Query(Measurement):
    """Time of one query, divided by `per` (its number of probes)."""

    sql: str = ""
    per: int = 1
    settings: dict = dataclasses.field(default_factory=lambda: NESTED_LOOP)
    cpu: bool = False  # by CPU time

    def run(self, bench, indexes, contender, _round):
        indexes.show_only(bench.connection, contender)
        apply_settings(bench.connection, self.settings)
        self.check_plan(bench.connection, indexes, contender)
        take = cpu_microseconds if self.cpu else microseconds_taken(bench)
        microseconds, self.last_answer = take(bench.connection, self.sql)
        return microseconds / self.per

    def check_plan(self, connection, indexes, contender):
        index_node(explain(connection, self.sql), contender.index_on(indexes.table), self.node_type(contender))


@dataclasses.dataclass
class Pages(Measurement):
    """Index pages touched a probe, whether or not they were in shared_buffers.

    The index node's buffer count includes the table's pages and its visibility map; what the
    statistics of the table alone counted in the meantime is taken off.
    """

    sql: str = ""
    per: int = 1
    unit: str = "pages"
    timed: bool = False

    def run(self, bench, indexes, contender, _round):
        connection = bench.connection
        indexes.show_only(connection, contender)
        apply_settings(connection, NESTED_LOOP)
        before = self._table_blocks(connection, indexes.table)
        plan = explain(connection, self.sql, ", ANALYZE, BUFFERS, TIMING OFF")
        after = self._table_blocks(connection, indexes.table)
        node = index_node(plan, contender.index_on(indexes.table), self.node_type(contender))
        if node["Shared Read Blocks"] > 0:
            bench.warn(f"{self.title}, {contender.name}: {node['Shared Read Blocks']} pages were not in shared_buffers")
        if node.get("Heap Fetches", 0) > 0:
            bench.warn(f"{self.title}, {contender.name}: {node['Heap Fetches']} fetches from the table")
        touched = node["Shared Hit Blocks"] + node["Shared Read Blocks"]
        return (touched - (after - before)) / self.per

    @staticmethod
    def _table_blocks(connection, table):
        connection.execute("SELECT pg_stat_force_next_flush()")
        return connection.execute(
            "SELECT heap_blks_hit + heap_blks_read FROM pg_statio_user_tables WHERE relid = %s::regclass",
            [table]).fetchone()[0]


@dataclasses.dataclass
class Prepared(Measurement):
    """Round trip of a prepared statement: one pgbench client, `transactions` of them.

    `script` is pgbench's; `statement` is the same with $1 for its variable, to check the plan.
    """

    script: str = ""
    statement: str = ""
    parameter_type: str = "int8"
    sample_parameter: str = "1"
    transactions: int = 1

    def run(self, bench, indexes, contender, round_number):
        indexes.show_only(bench.connection, contender)
        self._check_plan(bench.connection, indexes, contender)
        # The same keys for every contender of a round.
        return pgbench_microseconds(bench, [(self.script, 1)], self.transactions, round_number + 1,
                                    dict(contender.settings))

    def _check_plan(self, connection, indexes, contender):
        check_prepared(connection, self.statement, contender.index_on(indexes.table), self.node_type(contender),
                       self.parameter_type, self.sample_parameter)
