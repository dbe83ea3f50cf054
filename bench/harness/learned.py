"""What the extension says of an index: training, model, counters.  All of it becomes facts of the report."""

import contextlib
from statistics import median

import psycopg

from .contenders import EXTENSION
from .measure import Failed


def counters(bench, index):
    """The counters of one index, with or without any counts: {name: count}."""
    bench.connection.execute("SELECT pg_stat_force_next_flush()")
    stat = _as_dict(bench, f"SELECT to_jsonb(s) FROM {EXTENSION}_stat_get(%s::regclass) AS s", index)
    return {name: value for name, value in stat.items() if isinstance(value, int)}


def model_of(bench, index):
    """The row of learnedbtree_model(): {column: value}."""
    return _as_dict(bench, f"SELECT to_jsonb(m) FROM {EXTENSION}_model(%s::regclass) AS m", index)


@contextlib.contextmanager
def checked(bench, contender, index, wanted=True):
    """Raise Failed unless a contender that has a model asks the index's in here (if wanted), and no other does."""
    before = counters(bench, index)["lookups"]
    yield
    asked = counters(bench, index)["lookups"] - before
    if asked and not contender.has_model:
        raise Failed(f"{contender.name} looked {asked} times into the model of {index}")
    if wanted and contender.has_model and not asked:
        raise Failed(f"{contender.name} never asked the model of {index}")


def train(bench, index):
    """Train, and return the model's row; of an index that cannot have a model, state and reason say why."""
    with contextlib.suppress(psycopg.errors.ObjectNotInPrerequisiteState):
        bench.connection.execute(f"SELECT {EXTENSION}_train(%s::regclass)", [index])
    return model_of(bench, index)


def train_and_check(bench, index):
    """Train an index that is to have a model."""
    model = train(bench, index)
    if model["state"] != "ready":
        raise Failed(f"{index} has no model: {model['state']}, {model['reason']}")


def check_used(contender, before, after, scans, what):
    """Raise Failed unless a contender with a model asked it in so many scans, and another one in none.

    `before` and `after` are the index's counters(), without those of sessions that are still in a transaction.
    """
    lookups = after["lookups"] - before["lookups"]
    if lookups < scans if contender.has_model else lookups:
        raise Failed(f"{what}, {contender.name}: {lookups} of {scans} scans asked the model")


def train_and_describe(bench, indexes, contender, rounds):
    """Train a cached index `rounds` times; note the time a leaf and the model's figures."""
    index = contender.index_on(indexes.table)
    milliseconds = []
    for _ in range(rounds + 1):
        model = train(bench, index)
        milliseconds.append(model["training_ms"])
    if model["state"] != "ready":
        bench.warn(f"{index}: model is {model['state']}: {model.get('reason')}")
        return
    training = median(milliseconds[1:])  # the first is the warm-up
    bench.fact(contender, "training, ms", training)
    bench.fact(contender, "training, µs a leaf", training * 1000 / model["leaves"])
    bench.fact(contender, "model size, kB", model["bytes"] / 1000)
    for name in ("leaves", "knots"):
        bench.fact(contender, name, model[name])


def reset_counters(bench):
    bench.connection.execute(f"SELECT {EXTENSION}_stat_reset()")


def describe_counters(bench, indexes, contender):
    """The counters since reset_counters."""
    stat = counters(bench, contender.index_on(indexes.table))
    if stat["lookups"]:
        bench.fact(contender, "verified at the predicted leaf, %", 100 * stat["verified"] / stat["lookups"])
    for name, value in stat.items():
        if value:
            bench.fact(contender, f"counter {name}", value)


def _as_dict(bench, sql, index):
    row = bench.connection.execute(sql, [index]).fetchone()
    return row[0] if row else None
