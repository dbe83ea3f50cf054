"""DISTINCT and GROUP BY with the planner free, by loose index scans and without: see bench/README.md.

A table for each type and number of groups, with an index on k, and one with an index on (k, v) for min(v).
Up to version 17, two with an index on (k, v), for conditions on v alone.  learnedbtree.btree_indexes is `none` and `all`
by turns; what the planner then chooses is measured, with parallel query as the server has it by default.
"""

import dataclasses

from harness import cold, learned, load
from harness.contenders import BASELINE, judged
from harness.experiment import Experiment, numbers
from harness.measure import Measurement, WrongPlan, apply_settings, explain, plan_nodes, server_microseconds

NODE = "Learned Loose Scan"
LAST_SKIPPING = 17  # the last version that has no skip scans of its own
GROUPS = "10,1000,100000"
MIN_ROWS = 100_000
BYTES_A_ROW = 90  # of a table and its index
MISTAKEN = 10  # groups that the planner expects of a unique column, if misled
KEYS = {"int": "int4", "text": "text"}
VALUES = {"int": "{n}::int4", "text": "'group ' || {n}"}
LEAST_GROUPS = 1_000
DISTINCT = "SELECT count(*), max(k) FROM (SELECT DISTINCT k FROM {table}) AS g"
SKIP = "SELECT count(*), sum(k), sum(w) FROM {table} WHERE v = 7"
SKIP_ROWS = 100  # that this gives
SKIP_GROUPS = (10, 1_000)
COUNTED = "SELECT count(DISTINCT k), min(k), max(k) FROM {table}"
LEAST = "SELECT count(*), sum(v) FROM (SELECT k, min(v) AS v FROM {table} GROUP BY k) AS g"


@dataclasses.dataclass
class Grouping(Measurement):
    """Time of a statement, by whatever plan the contender has."""

    sql: str = ""
    table: str = ""
    loose: bool = True  # a loose scan is to be chosen, where there may be one
    cold: bool = False
    unit: str = "ms"

    def run(self, bench, _indexes, contender, _round):
        settings = {name: None for other in bench.contenders for name, _ in other.settings} | dict(contender.settings)
        relations = (self.table, f"{self.table}_btree")
        if self.cold and not cold.evict(bench, relations, {}):
            cold.cold_restart(bench, relations)
        apply_settings(bench.connection, settings)
        plan = explain(bench.connection, self.sql)
        used = any(node.get("Custom Plan Provider") == NODE for node in plan_nodes(plan))
        if used != contender.has_model and self.loose:
            raise WrongPlan(f"{self.title}, {contender.name}: {'a' if used else 'no'} node of ours")
        microseconds, self.last_answer = server_microseconds(bench.connection, self.sql)
        return microseconds / 1000


class Loose(Experiment):
    title = "Loose index scans"

    def add_options(self, parser):
        parser.set_defaults(contenders="btree,served")
        parser.add_argument("--groups", default=GROUPS, metavar="LIST", help="numbers of groups, comma-separated")
        parser.add_argument("--cold-rounds", type=int, default=3, help="cold samples of each contender and query")

    def check_options(self, options):
        options.groups = numbers("--groups", options.groups, options.rows)
        if options.rows < MIN_ROWS or options.cold_rounds < 0:
            raise SystemExit(f"bench: --rows must be at least {MIN_ROWS}, --cold-rounds at least 0")
        if {name.strip() for name in options.contenders.split(",")} != {BASELINE, "served"}:
            raise SystemExit("bench: --contenders are btree and served here")
        self.rows = options.rows
        self.tables = [(f"{kind}_{groups}", kind, groups) for kind in KEYS for groups in options.groups]
        self.tables += [("int_unique", "int", options.rows), ("int_mistaken", "int", options.rows),
                        ("int_least", "int", LEAST_GROUPS)]

    def bytes_needed(self, options, contenders):
        return len(self.tables) * options.rows * BYTES_A_ROW

    def load(self, bench):
        served = judged(bench.contenders)
        if bench.server.installation.major <= LAST_SKIPPING:
            self.tables += [(f"skip_{groups}", "int", groups) for groups in SKIP_GROUPS]
        for table, kind, groups in bench.track(self.tables):
            row = f"mod(hashint8extended(i, {load.KEY_SEED}) & {load.INT8_MAX}, {groups})"
            key = VALUES[kind].format(n="i" if groups == bench.options.rows else row)
            more, value = "", load.value_of("i")
            if table.startswith("skip_"):
                more, value = ", i::int4", f"mod(i, {self.rows // SKIP_ROWS})::int4"
            load.fill(bench, table, f"k {KEYS[kind]} NOT NULL, v int4 NOT NULL" + (", w int4 NOT NULL" if more else ""),
                      f"SELECT {key}, {value}{more} FROM generate_series(1, {bench.options.rows}) AS i")
            columns = "k, v" if table == "int_least" or more else "k"
            bench.connection.execute(f"CREATE INDEX {table}_btree ON {table} ({columns})")
            if table == "int_mistaken":
                bench.connection.execute(f"ALTER TABLE {table} ALTER k SET (n_distinct = {MISTAKEN})")
                bench.connection.execute(f"ANALYZE {table}")
            load.prewarm(bench, [table, f"{table}_btree"])
            apply_settings(bench.connection, dict(served.settings))
            learned.train_and_check(bench, f"{table}_btree")
            bench.say(f"loaded {table}")
        bench.connection.execute("RESET ALL")

    def measure(self, bench):
        measurements = list(self.measurements())
        for measurement in bench.track(measurements):
            bench.run_one(None, measurement)
        rounds, bench.options.rounds = bench.options.rounds, bench.options.cold_rounds
        for measurement in bench.track(measurements if rounds and bench.options.rounds else []):
            bench.run_one(None, dataclasses.replace(measurement, key=f"{measurement.key}_cold", cold=True,
                                                    title=f"{measurement.title}, cold"))
        bench.options.rounds = rounds

    def measurements(self):
        others = {"int_unique": "DISTINCT int, each row another value",
                  "int_mistaken": f"the same, thought to be {MISTAKEN} values",
                  "int_least": f"GROUP BY int with min(), {LEAST_GROUPS:,} values",
                  **{f"skip_{groups}": f"{SKIP_ROWS} rows, {groups:,} values left out" for groups in SKIP_GROUPS}}
        for table, kind, groups in self.tables:
            sql = LEAST if table == "int_least" else SKIP if table.startswith("skip_") else DISTINCT
            yield Grouping(table, others.get(table, f"DISTINCT {kind}, {groups:,} values"), sql=sql.format(table=table),
                           table=table, loose=groups < self.rows and not table.startswith("skip_"))
        table, kind, groups = self.tables[0]
        yield Grouping("counted", f"count(DISTINCT {kind}), {groups:,} values", sql=COUNTED.format(table=table), table=table)


EXPERIMENT = Loose
