"""The part of bench/joins on the error of the model: a nested loop through models trained with different bounds.

Keys are clustered as bench/distributions' set `osm` is: random ones have a model of two knots with whatever bound.
"""

import dataclasses
from statistics import median

from harness import learned, load
from harness.contenders import EXTENSION, Indexes
from harness.measure import Failed, Query, apply_settings

from .keys_distributions import DISTRIBUTIONS

ERRORS = "1,2,4,8,16,32,64,128,256"
RATIO = 10
TABLE, OUTER = "clustered", "clustered_outer"
MAX_ERROR = f"{EXTENSION}.max_error"


def measure(bench):
    rows, keys = bench.options.rows, next(key_set for key_set in DISTRIBUTIONS if key_set.name == "osm")
    numbers = {TABLE: f"SELECT i, i AS j FROM generate_series(1::int8, {rows}) AS i",
               OUTER: f"SELECT {load.drawn_row('j', rows)} AS i, j FROM generate_series(1::int8, {rows // RATIO}) AS j"}
    for table, source in numbers.items():
        load.fill(bench, table, keys.definitions(), keys.select(source))
    indexes = Indexes(TABLE, "k", bench.contenders, primary_key=True)
    bench.connection.execute(indexes.create_sql(bench.contenders[0]))
    load.prewarm(bench, [*numbers, *indexes.names()])
    bench.connection.execute("CHECKPOINT")
    loops = {error: _Loop(f"error_{error}", f"warm: nested loop, index only, clustered keys, max_error {error}",
                          "µs a probe", index_only=True, per=rows // RATIO, error=error,
                          sql=f"SELECT count(t.k) FROM {OUTER} AS p JOIN {TABLE} AS t ON t.k = p.k")
             for error in bench.options.errors}
    bench.run_all(indexes, loops.values())
    _show(bench, loops)
    bench.connection.execute(f"DROP TABLE {TABLE}, {OUTER}")


@dataclasses.dataclass
class _Loop(Query):
    """A join through a model that is trained before the warm-up."""

    error: int = 0

    def run(self, bench, indexes, contender, round_number):
        index = contender.index_on(indexes.table)
        if contender.has_model and round_number < 0:
            apply_settings(bench.connection, {MAX_ERROR: self.error})
            self.model = learned.train(bench, index)
            bench.connection.execute(f"RESET {MAX_ERROR}")
            if self.model["state"] != "ready":
                raise Failed(f"{index}: no model, but {self.model}")
        with learned.checked(bench, contender, index):
            return super().run(bench, indexes, contender, round_number)


def _show(bench, loops):
    found = {error: result["samples"] for error, loop in loops.items() for result in bench.results
             if result["key"] == loop.key}
    figures = ("knots", "bytes", "training_ms")
    bench.add_table("Models of clustered keys by max_error", [
        ["max_error, leaves", "knots", "model, bytes", "training, ms"],
        *([error, *(loop.model[figure] for figure in figures)] for error, loop in loops.items())])
    bench.add_chart(f"Join time by the model's largest error, clustered keys, 1 : {RATIO}", "max_error, in leaves",
                    "µs a probe", {contender.name: [(error, median(samples[contender.name]))
                                                    for error, samples in found.items()]
                                   for contender in bench.contenders}, log_x=True)
