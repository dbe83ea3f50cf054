"""From how many leaves on serving a btree index pays, for learnedbtree.min_leaves: see bench/README.md.

Small int8 primary keys, one a size, each with and without being served.  Inserts have tables of their own, whose leaves
are half full: there is room for as many rows again, so that no leaf splits; they are rolled back, and vacuumed away.

What is to be found are a few per cent, so time is the backend's CPU time, which other work on the machine disturbs less.
"""

import dataclasses
from statistics import median

import psycopg

from harness import learned, load
from harness.contenders import BASELINE, Indexes, choose, judged
from harness.cpu import cpu_microseconds
from harness.experiment import Experiment
from harness.measure import (NESTED_LOOP, Failed, Measurement, Prepared, Query, apply_settings, check_prepared)

SIZES = "1,2,4,8,16,32,64,128,256,512,1024"
KEYS_A_LEAF = 366  # of int8, leaves 90 % full
HALF_FULL = 202  # ... and 50 %
INSERTS_A_LEAF = 150  # into a half full one: too few for any to be filled
INSERTED_ROWS = 10_000  # of a sample, in as many statements as that takes
MIN_STATEMENTS = 1
IN_TURN = 16  # tables of one size


def rows_of(leaves, keys_a_leaf=KEYS_A_LEAF):
    """As many as fill all leaves but the last, and half of that."""
    return leaves * keys_a_leaf - (keys_a_leaf // 2 if leaves > 1 else 0)


class Leaves(Experiment):
    title = "Small primary keys, served or not"

    def add_options(self, parser):
        parser.set_defaults(contenders="btree,served", rounds=21)
        parser.add_argument("--sizes", default=SIZES, metavar="LIST", help="leaves of the indexes")
        parser.add_argument("--probes", type=int, default=100_000, help="probes of each join")
        parser.add_argument("--prepared", type=int, default=10_000, metavar="N",
                            help="executions of the prepared statement in a round")
        parser.add_argument("--calls", type=int, default=20_000, metavar="N",
                            help="executions of a statement in a function in a round")

    def check_options(self, options):
        try:
            options.leaves = sorted({int(size) for size in options.sizes.split(",")})
        except ValueError:
            raise SystemExit("bench: --sizes wants numbers") from None
        if not options.leaves or min(options.leaves) < 1:
            raise SystemExit("bench: --sizes must be positive")
        chosen = choose(options.contenders)
        if judged(chosen) is None or {contender.am for contender in chosen} != {BASELINE}:
            raise SystemExit("bench: --contenders must be btree,served")
        if min(options.probes, options.prepared, options.calls) < 1:
            raise SystemExit("bench: all numbers must be positive")
        options.rows = options.leaves[-1] * KEYS_A_LEAF

    def bytes_needed(self, options, contenders):
        return sum(options.leaves) * KEYS_A_LEAF * 100 * (IN_TURN + 3) // 2 + len(options.leaves) * options.probes * 40

    def settings(self, options):
        """A small table is else read as a whole."""
        return {"enable_seqscan": "off"}

    # ---- tables ----

    def load(self, bench):
        for leaves in bench.options.leaves:
            rows = rows_of(leaves)
            self._table(bench, f"t{leaves}", rows, leaves)
            self._table(bench, f"w{leaves}", rows_of(leaves, HALF_FULL), leaves, "WITH (fillfactor = 50)")
            load.probes(bench, f"probe{leaves}", rows, bench.options.probes, ordered=False)
            load.prewarm(bench, [f"probe{leaves}"])
            self._function(bench, f"look_up{leaves}", [f"t{leaves}"], rows)
        bench.connection.execute("CHECKPOINT")

    @staticmethod
    def _table(bench, table, rows, leaves, options=""):
        """The primary key's index is named as Indexes want it."""
        connection = bench.connection
        with load.loading(bench):
            connection.execute(f"CREATE TABLE {table} (k int8 NOT NULL, v int4 NOT NULL)")
            connection.execute(f"INSERT INTO {table} SELECT {load.key_of('i')}, {load.value_of('i')} "
                               f"FROM (SELECT generate_series(1::int8, {rows}) AS i) AS s")
        connection.execute(f"ALTER TABLE {table} ADD CONSTRAINT {table}_{BASELINE} PRIMARY KEY (k) {options}")
        load.settle(bench, table)
        load.prewarm(bench, [table, f"{table}_{BASELINE}"])
        found = learned.train(bench, f"{table}_{BASELINE}")["leaves"]
        if found != leaves:
            raise Failed(f"{table}_{BASELINE} has {found} leaves, not {leaves}")

    @staticmethod
    def _function(bench, name, tables, rows):
        """A function that looks keys up, one a static statement, in one table after another."""
        lookups = "".join(f"SELECT v INTO STRICT value FROM {table} WHERE k = {load.key_of(load.drawn_row('i', rows))};\n"
                          for table in tables)
        bench.connection.execute(f"""
            CREATE FUNCTION {name}(times int8) RETURNS int8 LANGUAGE plpgsql AS $$
            DECLARE
                value int4;
                total int8 := 0;
            BEGIN
                FOR i IN 1 .. times LOOP
                    {lookups}
                    total := total + value;
                END LOOP;
                RETURN total;
            END $$""")

    # ---- measurements ----

    def measure(self, bench):
        options = bench.options
        name = judged(bench.contenders).name
        head = ["leaves", "index-only join", "SELECT in a function", f"... of {IN_TURN} indexes in turn",
                "SELECT, prepared, round trip", "INSERT ... SELECT"]
        medians, faster = [head], [head]
        for leaves in bench.track(options.leaves):
            first = len(bench.results)
            self._measure_size(bench, leaves)
            # Of each round by itself: the machine does not change as much within one as from one to another.
            ratios = [[before / after for before, after in zip(result["samples"][BASELINE], result["samples"][name])]
                      for result in bench.results[first:]]
            medians.append([leaves, *(f"{median(own):.2f}×" for own in ratios)])
            faster.append([leaves, *(f"{sum(ratio > 1 for ratio in own)} of {len(own)}" for own in ratios)])
        bench.add_table(f"Speed-up over {BASELINE}, median of the rounds' own", medians)
        bench.add_table(f"Rounds in which {name} was faster", faster)

    def _measure_size(self, bench, leaves):
        options, rows = bench.options, rows_of(leaves)
        read, written = (Indexes(f"{letter}{leaves}", "k", bench.contenders) for letter in "tw")
        title = f"{leaves:,} leaves: " if leaves > 1 else "1 leaf: "
        bench.run_all(read, [
            Join(f"join_{leaves}", f"{title}index-only join", index_only=True, per=options.probes,
                 sql=f"SELECT count(t.k) FROM probe{leaves} AS p JOIN t{leaves} AS t ON t.k = p.k"),
            Calls(f"call_{leaves}", f"{title}SELECT in a function", function=f"look_up{leaves}", tables=[f"t{leaves}"],
                  calls=options.calls)])
        copies = [f"c{leaves}_{number}" for number in range(IN_TURN)]
        for copy in copies:
            self._table(bench, copy, rows, leaves)
        self._function(bench, f"look_up{leaves}_in_turn", copies, rows)
        bench.run_one(read, Calls(f"turns_{leaves}", f"{title}... of {IN_TURN} indexes in turn", tables=copies,
                                  function=f"look_up{leaves}_in_turn", calls=options.calls // IN_TURN + 1))
        bench.connection.execute(f"DROP TABLE {', '.join(copies)}")
        bench.run_all(read, [Prepared(
            f"prepared_{leaves}", f"{title}SELECT, prepared, round trip", "µs a lookup", transactions=options.prepared,
            script=f"\\set i random(1, {rows})\nSELECT v FROM t{leaves} WHERE k = {load.key_of(':i')};\n",
            statement=f"SELECT v FROM t{leaves} WHERE k = {load.key_of('$1')}")])
        bench.run_all(written, [Inserts(f"insert_{leaves}", f"{title}INSERT ... SELECT", "µs a row",
                                        rows=rows_of(leaves, HALF_FULL), count=leaves * INSERTS_A_LEAF)])


@dataclasses.dataclass
class Join(Query):
    """Time of a probe."""

    unit: str = "µs a probe"
    cpu: bool = True


@dataclasses.dataclass
class Calls(Measurement):
    """Time of a lookup in a function that does `calls` in each of `tables`."""

    unit: str = "µs a lookup"
    function: str = ""
    tables: list = dataclasses.field(default_factory=list)
    calls: int = 1

    def run(self, bench, _indexes, contender, _round):
        for table in self.tables:
            Indexes(table, "k", bench.contenders).show_only(bench.connection, contender)
        apply_settings(bench.connection, NESTED_LOOP)
        check_prepared(bench.connection, f"SELECT v FROM {self.tables[0]} WHERE k = $1",
                       contender.index_on(self.tables[0]), self.node_type(contender))
        bench.connection.execute(f"SELECT {self.function}(10)")  # its plans are made anew
        microseconds, self.last_answer = cpu_microseconds(
            bench.connection, f"SELECT {self.function}({self.calls})")
        return microseconds / self.calls / len(self.tables)


@dataclasses.dataclass
class Inserts(Measurement):
    """Time of a row in INSERT ... SELECT of `count` random keys, that is rolled back, over and over."""

    rows: int = 1  # that the table has
    count: int = 1

    def run(self, bench, indexes, contender, round_number):
        connection, table = bench.connection, indexes.table
        indexes.show_only(connection, contender)
        statements = max(MIN_STATEMENTS, INSERTED_ROWS // self.count)
        sql = "INSERT INTO {table} SELECT {key}, 0 FROM generate_series({first}::int8, {last}) AS i"
        microseconds, next_row = 0, self.rows + 1 + (round_number + 1) * statements * self.count
        for _ in range(statements):
            with connection.transaction():
                # What the vacuum made this session forget is found again by an insert of no time.
                connection.execute(f"INSERT INTO {table} VALUES ({load.key_of(-1)}, 0)")
                elapsed, _ = cpu_microseconds(connection, sql.format(
                    table=table, key=load.key_of("i"), first=next_row, last=next_row + self.count - 1))
                microseconds += elapsed
                next_row += self.count
                raise psycopg.Rollback
            connection.execute(f"VACUUM (INDEX_CLEANUP ON, TRUNCATE OFF) {table}")
        self.last_answer = connection.execute(f"SELECT count(*), sum(k), sum(v) FROM {table}").fetchall()
        return microseconds / statements / self.count


EXPERIMENT = Leaves
