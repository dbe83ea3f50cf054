"""Tables of identical rows, one a contender, each with that contender's index alone.

A write changes the index, so contenders that write cannot share a table as those that only read do.  All
twins get the same rows in the same order, and the same writes: their trees evolve alike.
"""

import time

from . import load
from .contenders import EXTENSION, Indexes, check_served
from .measure import Failed, WrongAnswer, apply_settings, explain, index_node

WHOLE_INDEX = {"enable_seqscan": "off", "enable_bitmapscan": "off"}


class Twins:
    def __init__(self, name, contenders, rows, numbers=True):
        """`rows`: how many each table begins with; `numbers`: whether its columns are k int8, v int4."""
        self.name = name
        self.contenders = contenders
        self.rows = rows
        self.numbers = numbers
        self._taken = {}

    # ---- names ----

    def table(self, contender):
        return f"{self.name}_{contender.name.replace('-', '_')}"

    def index(self, contender):
        return contender.index_on(self.table(contender))

    def of(self, contender):
        """The contender's table and index, for what wants an Indexes."""
        return Indexes(self.table(contender), "k", [contender])

    def learned(self):
        """The contenders whose index has a model and uses it."""
        return [contender for contender in self.contenders if contender.has_model]

    # ---- life ----

    def make(self, bench, fill, unique=False):
        """Fill every table with `fill(table)`, then build the indexes."""
        for contender in self.contenders:
            fill(self.table(contender))
        for contender in self.contenders:
            table, began = self.table(contender), time.monotonic()
            load.prewarm(bench, [table])
            bench.connection.execute(f"CREATE {'UNIQUE ' if unique else ''}INDEX {self.index(contender)} ON {table} "
                                     f"USING {contender.am} (k)")
            bench.say(f"built {self.index(contender)} in {time.monotonic() - began:.1f} s")
        self._check_indexes(bench)

    def warm(self, bench):
        """Everything into memory, models trained, nothing left to write."""
        for contender in self.contenders:
            load.prewarm(bench, [self.table(contender), self.index(contender)])
        for contender in self.learned():
            index = self.index(contender)
            bench.connection.execute(f"SELECT {EXTENSION}_train(%s::regclass)", [index])
            state, reason = bench.connection.execute(
                f"SELECT state, reason FROM {EXTENSION}_model(%s::regclass)", [index]).fetchone()
            if state != "ready":
                bench.warn(f"{index}: model is {state}: {reason}")
        bench.connection.execute("CHECKPOINT")

    def use(self, bench, contender, settings=None):
        """Apply the contender's settings, which are returned, to the session; begin with no page to be written."""
        apply_settings(bench.connection, {**settings_of(contender), **(settings or {})})
        check_served(bench.connection, contender, self.index(contender))
        bench.connection.execute("CHECKPOINT")
        return settings_of(contender)

    def take_rows(self, use, count):
        """The first of `count` new row numbers, the same ones for every contender that asks for the same use."""
        if use not in self._taken:
            self._taken[use] = self.rows + 1 + sum(taken for _, taken in self._taken.values()), count
        return self._taken[use][0]

    def drop(self, bench):
        for contender in self.contenders:
            bench.connection.execute(f"DROP TABLE {self.table(contender)}")

    # ---- checks ----

    def check_contents(self, bench, when):
        """Raise WrongAnswer unless all tables hold the same, and every index what its table holds.

        Tables are vacuumed before, lest the index-only scans fetch from the table for most of their rows:
        in the order of random keys, that takes as long as all the rest of a run.
        """
        found = {}
        for contender in self.contenders:
            table = self.table(contender)
            bench.connection.execute(f"VACUUM {table}")
            apply_settings(bench.connection, settings_of(contender))
            found[contender.name] = by_table = bench.connection.execute(
                f"SELECT count(*), sum(k), sum(v) FROM {table}").fetchone()
            if not contender.index_only:
                continue
            apply_settings(bench.connection, WHOLE_INDEX)
            whole = f"SELECT count(k), sum(k) FROM {table}"
            index_node(explain(bench.connection, whole), self.index(contender), "Index Only Scan")
            by_index = bench.connection.execute(whole).fetchone()
            for name in WHOLE_INDEX:
                bench.connection.execute(f"RESET {name}")
            if by_index != by_table[:2]:
                raise WrongAnswer(f"after {when}, {table} has count and sum {by_table[:2]}, its index {by_index}")
        if len(set(found.values())) > 1:
            raise WrongAnswer(f"after {when}, the tables differ (count, sum of k, sum of v): {found}")
        bench.say(f"after {when}, tables and indexes agree: {by_table[0]:,} rows")

    def _check_indexes(self, bench):
        for contender in self.contenders:
            found = bench.connection.execute(
                """SELECT i.indexrelid::regclass::text, a.amname FROM pg_index AS i
                   JOIN pg_class AS c ON c.oid = i.indexrelid JOIN pg_am AS a ON a.oid = c.relam
                   WHERE i.indrelid = %s::regclass AND i.indisready""", [self.table(contender)]).fetchall()
            if found != [(self.index(contender), contender.am)]:
                raise Failed(f"{self.table(contender)} should have one index, of {contender.am}, but has {found}")


def settings_of(contender):
    """The contender's settings: one that does not look keys up through the model does not insert through it."""
    settings = dict(contender.settings)
    if f"{EXTENSION}.enable" in settings:
        settings.setdefault(f"{EXTENSION}.enable_insert", settings[f"{EXTENSION}.enable"])
    return settings
