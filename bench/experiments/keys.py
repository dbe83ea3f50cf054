"""Index-only nested-loop joins by keys of many types and shapes, and inserts, in memory: see bench/README.md.

Each key set has a table with an index for each contender and a table of probes, keys that exist, drawn by rule.
It is loaded, measured and dropped before the next one.
"""

import dataclasses
import os

from harness import learned, load
from harness.contenders import BASELINE, Indexes, judged
from harness.experiment import Experiment, ratio_to_baseline
from harness.measure import Failed, Measurement, Query, microseconds_taken

from . import keys_sets

PROBE_BYTES = 40  # a row of a probe table, without its key
MIN_ROWS = 10_000
MOST_INSERTS = 40_000  # of a round, but no more than one in so many rows:
INSERT_SHARE = 25
STRIDE = 1_000_003  # a prime, larger than a file's groups of lines; no divisor of a file's number of lines
INSERTED_ENTRIES = 4  # a row inserted takes as much as so many entries: leaves that have split, the table, its source
FIGURES = ("speed-up", "by the model, % of probes", "verified, % of lookups", "at the predicted leaf, %", "leaves",
           "knots", "separators, kB", "model, kB", "index, MB", "height", "state",
           "why there is no model")


class Keys(Experiment):
    title = "Index-only joins by key type"
    groups = keys_sets.GROUPS
    usual_sets = "main,real"

    def add_options(self, parser):
        parser.set_defaults(contenders="btree,served")
        parser.add_argument("--probes", type=int, default=1_000_000, help="probes of each join")
        parser.add_argument("--inserts", type=int, metavar="N",
                            help="rows inserted in a round; 0: none")
        parser.add_argument("--sets", default=self.usual_sets, metavar="LIST",
                            help=f"key sets, by name or by group ({', '.join(self.groups)})")
        parser.add_argument("--keys", default=os.environ.get("LBT_KEYS"), metavar="DIR",
                            help="folder with the files of the real key sets (default: LBT_KEYS)")

    def check_options(self, options):
        options.key_sets = keys_sets.choose(options.sets, self.groups)
        if options.rows < MIN_ROWS or options.probes < 1:
            raise SystemExit(f"bench: --rows must be at least {MIN_ROWS}, --probes at least 1")
        if options.inserts is None:
            options.inserts = min(options.rows // INSERT_SHARE, MOST_INSERTS)
        if options.inserts < 0:
            raise SystemExit("bench: --inserts must not be negative")
        contenders = {name.strip() for name in options.contenders.split(",")}
        if "hash" in contenders or BASELINE not in contenders:
            raise SystemExit(f"bench: --contenders must name {BASELINE}, and not hash, which has no index-only scans")

    def bytes_needed(self, options, contenders):
        """The largest set's indexes and probes; of its table, index-only joins read the visibility map alone."""
        entry = max(key_set.entry_bytes for key_set in options.key_sets)
        indexes = sum(contender.builds for contender in contenders)
        inserted = options.inserts * (options.rounds + 1) * len(contenders)
        return (options.rows * indexes + inserted * INSERTED_ENTRIES) * entry + options.probes * (PROBE_BYTES + entry)

    def load(self, bench):
        """Nothing yet: sets have their turn one after another."""
        bench.connection.execute("CREATE EXTENSION IF NOT EXISTS pageinspect")

    def measure(self, bench):
        figures = []
        for key_set in bench.track(bench.options.key_sets):
            if reason := keys_sets.missing(bench, key_set):
                bench.warn(f"{key_set.title}: skipped, {reason}")
                continue
            figures.append(self._measure_set(bench, key_set))
        if not figures:
            raise Failed("none of the key sets could be measured")
        bench.add_table("Key sets", [["", *FIGURES]] + figures)

    # ---- one set ----

    def _measure_set(self, bench, key_set):
        table, probes = f"t_{key_set.name}", f"probe_{key_set.name}"
        self._fill(bench, key_set, table, probes)
        indexes = Indexes(table, key_set.column_list(), bench.contenders, primary_key=key_set.unique)
        for contender in bench.contenders:
            if contender.builds:
                bench.connection.execute(indexes.create_sql(contender))
        load.prewarm(bench, [table], forks=("vm",))
        load.prewarm(bench, [*indexes.names(), probes])
        bench.connection.execute("CHECKPOINT")
        learning = judged(bench.contenders)
        model = self.train(bench, key_set, learning.index_on(table)) if learning else {}
        if learning:
            learned.reset_counters(bench)
        condition = " AND ".join(f"t.{name} = p.{name}" for name, _ in key_set.columns)
        join = f"SELECT count(t.{key_set.columns[-1][0]}) FROM {probes} AS p JOIN {table} AS t ON {condition}"
        bench.run_all(indexes, [_Join(key_set.name, key_set.title, "µs a probe", index_only=True,
                                      per=bench.options.probes, sql=join, asked=model.get("state") == "ready")])
        row = self._figures(bench, key_set, learning, table, model)
        self.afterwards(bench, key_set, indexes, join)
        bench.connection.execute(f"DROP TABLE {table}, {probes}")
        return row

    def train(self, bench, key_set, index):
        """The row of the model that the join is measured with."""
        return learned.train(bench, index)

    def afterwards(self, bench, key_set, indexes, join):
        """What else is measured of a set: inserts, where there is one index, which contenders take turns at."""
        if bench.options.inserts and len(indexes.names()) == 1:
            inserts = _Inserts(f"inserts_{key_set.name}", f"{key_set.title}: inserts", key_set=key_set, base=self.base,
                               count=bench.options.inserts, loaded=bench.options.rows)
            bench.run_all(indexes, [inserts])

    def _fill(self, bench, key_set, table, probes):
        options = bench.options
        bench.connection.execute("RESET ALL")  # a measurement before had its joins forced
        base = self.base = {}
        if key_set.file:
            size, span, others = keys_sets.load_base(bench, key_set)
            base.update(base_size=size, span=span)
            bench.say(f"{key_set.title}: {size:,} keys in the file, {others:,} lines that are none")
        with load.loading(bench):
            bench.connection.execute(f"CREATE TABLE {table} ({key_set.definitions()})")
            for first in range(1, options.rows + 1, load.CHUNK_ROWS):
                last = min(options.rows, first + load.CHUNK_ROWS - 1)
                numbers = f"SELECT i, i AS j FROM generate_series({first}::int8, {last}::int8) AS i"
                bench.connection.execute(f"INSERT INTO {table} {key_set.select(numbers, **base)}")
        load.settle(bench, table)
        drawn = (f"SELECT {load.drawn_row('j', options.rows)} AS i, j "
                 f"FROM generate_series(1::int8, {options.probes}) AS j")
        load.fill(bench, probes, key_set.definitions(), key_set.select(drawn, **base))
        bench.say(f"{key_set.title}: loaded {options.rows:,} rows")

    @staticmethod
    def _figures(bench, key_set, learning, table, model):
        """The set's row of the table of figures."""
        connection = bench.connection
        index, baseline_index = learning and learning.index_on(table), f"{table}_{BASELINE}"
        ratio = learning and ratio_to_baseline(bench.results[-1], learning.name)
        height = connection.execute("SELECT level + 1 FROM bt_metap(%s)", [baseline_index]).fetchone()[0]
        size = connection.execute("SELECT pg_relation_size(%s::regclass)", [baseline_index]).fetchone()[0] / 1e6
        stat = learned.counters(bench, index) if index else {}
        lookups = stat.get("lookups", 0)
        probes = bench.options.probes * (bench.options.rounds + 1)
        share = lambda count, of: 100 * count / of if of else None  # noqa: E731
        verified = stat.get("verified", 0)
        return [key_set.title, ratio and f"{ratio:.2f}×",
                share(verified, probes) if index else None,
                share(verified, lookups),
                share(verified - stat.get("moved_right", 0), lookups),
                *(model.get(name) for name in ("leaves", "knots")),
                (model.get("separator_bytes") or 0) / 1000 or None,
                (model.get("bytes") or 0) / 1000 or None, size, height,
                learned.model_of(bench, index)["state"] if index else None,
                model.get("reason")]


@dataclasses.dataclass
class _Join(Query):
    """Each probe finds a key: at least as many rows as probes."""

    asked: bool = True  # will the model be asked?

    def run(self, bench, indexes, contender, round_number):
        with learned.checked(bench, contender, contender.index_on(indexes.table), self.asked):
            value = super().run(bench, indexes, contender, round_number)
        if self.last_answer[0][0] < self.per:
            raise Failed(f"{self.title}: {contender.name} found {self.last_answer[0][0]} of {self.per} keys")
        return value


@dataclasses.dataclass
class _Inserts(Measurement):
    """Time of a row in INSERT ... SELECT of `count` new rows of a set, from a table that has just been filled.

    They come in no order of theirs: those made by rule are random anyway; of a file's lines, copies are taken with a stride.
    """

    unit: str = "µs a row"
    key_set: keys_sets.KeySet = None
    base: dict = None
    count: int = 1
    loaded: int = 0  # rows of the table before
    taken: int = 0  # ... that are new

    def run(self, bench, indexes, contender, _round):
        connection = bench.connection
        numbers = (f"SELECT {self._row('j')} AS i, j "
                   f"FROM generate_series({self.taken}::int8, {self.taken + self.count - 1}) AS j")
        self.taken += self.count
        connection.execute("RESET ALL")
        load.fill(bench, "fresh", self.key_set.definitions(), self.key_set.select(numbers, **self.base))
        load.prewarm(bench, ["fresh"])
        indexes.show_only(connection, contender)
        microseconds, self.last_answer = microseconds_taken(bench)(
            connection, f"INSERT INTO {indexes.table} SELECT * FROM fresh")
        connection.execute("DROP TABLE fresh")
        return microseconds / self.count

    def _row(self, new):
        """SQL for the row of the set that a new one is, by its number from 0 (SQL too)."""
        if not self.base:
            return f"{self.loaded} + {new} + 1"
        size = self.base["base_size"]
        copies = -(-self.loaded // size)  # of the last one loaded some lines may be missing
        return f"({copies} + {new} / {size}) * {size} + {new} % {size} * {STRIDE} % {size} + 1"


EXPERIMENT = Keys
