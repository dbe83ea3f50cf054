"""Measurements that write: inserts, and YCSB-like mixes of reads and writes; each is a Measurement on Twins.

A mix: of its operations, a share reads v of a key that the table began with; of the others, half insert a
new key and half update v of a key that the table began with.  YCSB's A has 50 % reads, its B 95 %; YCSB
itself only updates, but an update reaches the index only when it finds no room on its heap page, so half of
the writes are made inserts.  Keys are drawn uniformly (YCSB: by a Zipfian distribution), so that the figures
are of lookups in the whole index and not in the processor's caches.
"""

import dataclasses

from harness import load
from harness.measure import (NESTED_LOOP, Failed, Measurement, apply_settings, check_prepared, explain, index_node,
                             pgbench_microseconds, server_microseconds)

CHOICE_SEED = 11  # draws what an operation does
CHOICES = 2**20


def insert_sql(table, first, count, key):
    """`key` is SQL for the key of row number i."""
    return (f"INSERT INTO {table} SELECT {key}, 0 "
            f"FROM (SELECT generate_series({first}::int8, {first + count - 1}) AS i) AS s")


def fill_ascending(bench, rows, table):
    """A table whose keys are its row numbers."""
    with load.loading(bench):
        bench.connection.execute(f"CREATE TABLE {table} (k int8 NOT NULL, v int4 NOT NULL)")
        bench.connection.execute(insert_sql(table, 1, rows, "i"))
    load.settle(bench, table)


def expect_rows(what, wanted, found):
    if found != wanted:
        raise Failed(f"{what}: {wanted} rows were to be written, {found} were")


@dataclasses.dataclass
class Inserts(Measurement):
    """Time of a row in INSERT ... SELECT of `count` rows."""

    unit: str = "µs a row"
    count: int = 1
    row_key: str = load.key_of("i")

    def run(self, bench, twins, contender, round_number):
        first = twins.take_rows((self.key, round_number), self.count)
        twins.use(bench, contender)
        microseconds, self.last_answer = server_microseconds(
            bench.connection, insert_sql(twins.table(contender), first, self.count, self.row_key))
        expect_rows(self.title, self.count, self.last_answer)
        return microseconds / self.count


@dataclasses.dataclass
class SetMix(Measurement):
    """A mix as two statements: INSERT ... SELECT, then an index-only join with `probes` that finds each once."""

    unit: str = "µs an operation"
    probes: str = ""
    reads: int = 1
    writes: int = 1
    index_only: bool = True

    def run(self, bench, twins, contender, round_number):
        first = twins.take_rows((self.key, round_number), self.writes)
        join = f"SELECT count(t.k) FROM {self.probes} AS p JOIN {twins.table(contender)} AS t ON t.k = p.k"
        twins.use(bench, contender, NESTED_LOOP)
        index_node(explain(bench.connection, join), twins.index(contender), self.node_type(contender))
        writing, written = server_microseconds(
            bench.connection, insert_sql(twins.table(contender), first, self.writes, load.key_of("i")))
        expect_rows(self.title, self.writes, written)
        reading, self.last_answer = server_microseconds(bench.connection, join)
        if self.last_answer != [(self.reads,)]:
            raise Failed(f"{self.title}: {self.reads} keys were to be found, {self.last_answer[0][0]} were")
        return (writing + reading) / (self.reads + self.writes)


@dataclasses.dataclass
class Mix(Measurement):
    unit: str = "µs an operation"
    reads_in_100: int = 50
    inserts_in_100: int = 50  # of its writes; the others update
    operations: int = 1
    key_of: object = load.key_of  # function of a row number, both in SQL

    def read_sql(self, table, row):
        return f"SELECT v FROM {table} WHERE k = {self.key_of(row)}"

    def update_sql(self, table, row):
        return f"UPDATE {table} SET v = v + 1 WHERE k = {self.key_of(row)}"

    def check_plans(self, bench, twins, contender):
        for statement in (self.read_sql, self.update_sql):
            check_prepared(bench.connection, statement(twins.table(contender), "$1"), twins.index(contender),
                           self.node_type(contender))


@dataclasses.dataclass
class ServerMix(Mix):
    """A mix in a PL/pgSQL function: one static statement an operation, all in one transaction."""

    def run(self, bench, twins, contender, round_number):
        first = twins.take_rows((self.key, round_number), self.operations)
        self._create(bench.connection, twins, contender)
        twins.use(bench, contender)
        self.check_plans(bench, twins, contender)
        apply_settings(bench.connection, NESTED_LOOP)
        call = f"SELECT * FROM mix({first}, {self.operations}, {self.reads_in_100})"
        microseconds, self.last_answer = server_microseconds(bench.connection, call)
        (reads, inserts, updates, _), = self.last_answer
        expected = self.operations * self.reads_in_100 / 100
        if reads + inserts + updates != self.operations or abs(reads - expected) > 0.05 * self.operations:
            raise Failed(f"{self.title}: {reads} reads, {inserts} inserts, {updates} updates do not make the mix")
        return microseconds / self.operations

    def _create(self, connection, twins, contender):
        """The function, for one table: plans are for a table, and SQL that names it when it runs is not static."""
        table, old_row = twins.table(contender), load.drawn_row("op", twins.rows)
        connection.execute(f"""
            CREATE OR REPLACE FUNCTION mix(first int8, operations int8, reads_in_100 int8,
                                           OUT reads int8, OUT inserts int8, OUT updates int8, OUT total int8)
            LANGUAGE plpgsql AS $$
            DECLARE
                value int4;
            BEGIN
                reads := 0; inserts := 0; updates := 0; total := 0;
                FOR op IN first .. first + operations - 1 LOOP
                    IF (hashint8extended(op, {CHOICE_SEED}) & {CHOICES - 1}) * 100 < reads_in_100 * {CHOICES} THEN
                        -- STRICT: an error unless there is one such row
                        {self.read_sql(table, old_row).replace("SELECT v", "SELECT v INTO STRICT value")};
                        reads := reads + 1; total := total + value;
                    ELSIF (hashint8extended(op, {CHOICE_SEED + 1}) & {CHOICES - 1}) * 100
                          < {self.inserts_in_100 * CHOICES} THEN
                        INSERT INTO {table} VALUES ({self.key_of("op")}, 0);
                        inserts := inserts + 1;
                    ELSE
                        {self.update_sql(table, old_row)};
                        IF NOT FOUND THEN RAISE EXCEPTION 'nothing to update in operation %', op; END IF;
                        updates := updates + 1;
                    END IF;
                END LOOP;
            END $$""")


@dataclasses.dataclass
class PreparedMix(Mix):
    """A mix as prepared statements of one pgbench client, each a transaction."""

    def run(self, bench, twins, contender, round_number):
        table = twins.table(contender)
        first = twins.take_rows((self.key, round_number), self.operations)
        settings = twins.use(bench, contender)
        self.check_plans(bench, twins, contender)
        draw = f"\\set i random(1, {twins.rows})\n"
        writes = 100 - self.reads_in_100
        scripts = [(f"{draw}{self.read_sql(table, ':i')};\n", 100 * self.reads_in_100),
                   (f"\\set n :n + 1\nINSERT INTO {table} VALUES ({self.key_of(':n')}, 0);\n",
                    writes * self.inserts_in_100),
                   (f"{draw}{self.update_sql(table, ':i')};\n", writes * (100 - self.inserts_in_100))]
        # The same operations for every contender of a round.
        return pgbench_microseconds(bench, scripts, self.operations, round_number + 1, settings,
                                    variables={"n": first - 1})
