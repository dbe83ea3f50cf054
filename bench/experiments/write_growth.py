"""A table that doubles by random inserts: does the model keep up, and what does that cost?

Inserts come in batches.  After each batch a sample of lookups, of keys drawn from all that exist by then,
tells how many the model sends to the right leaf; nothing waits for a training that may be due.
"""

import time
from statistics import median

from harness import learned, load
from harness.contenders import EXTENSION
from harness.measure import NESTED_LOOP, Failed, apply_settings, explain, index_node, server_microseconds
from harness.twins import settings_of
from harness.workers import WorkerWatch

from .write_mixes import expect_rows, insert_sql

SAMPLE = 10_000  # lookups after a batch


def run(bench, twins, batches):
    """Double the twins' rows, and report how lookups and inserts fared."""
    series = {contender.name: [] for contender in twins.contenders}
    watched = twins.learned()
    for contender in watched:
        bench.connection.execute(f"SELECT {EXTENSION}_stat_reset(%s::regclass)", [twins.index(contender)])
    began = time.monotonic()
    if watched:
        with WorkerWatch(bench.server, twins.index(watched[0])) as watch:
            _grow(bench, twins, batches, series)
        _describe_training(bench, watched[0], series[watched[0].name], watch, time.monotonic() - began)
    else:
        _grow(bench, twins, batches, series)
    for key, title, unit in (("insert", "growth: random insert", "µs a row"),
                             ("lookup", "growth: lookup after a batch", "µs a lookup")):
        bench.add_result(f"growth_{key}", title, unit,
                         {name: [batch[f"{key}_us"] for batch in found] for name, found in series.items()})
    for contender in watched:
        _describe_lookups(bench, contender, series[contender.name])
    twins.check_contents(bench, "growth")


def _grow(bench, twins, batches, series):
    apply_settings(bench.connection, NESTED_LOOP)
    bench.connection.execute("CHECKPOINT")
    bounds = [twins.rows + twins.rows * batch // batches for batch in range(batches + 1)]
    for number, (before, after) in bench.track(enumerate(zip(bounds, bounds[1:]))):
        found = {contender.name: _batch(bench, twins, contender, before + 1, after)
                 for contender in bench.in_turn(twins.contenders, number)}
        if len({batch["found"] for batch in found.values()}) > 1:
            raise Failed(f"growth: the contenders disagree after {after} rows: {found}")
        for name, batch in found.items():
            series[name].append(batch)
        if (number + 1) % max(batches // 8, 1) == 0:
            bench.say(f"grown to {after:,} rows: "
                      + ", ".join(_in_words(name, batch) for name, batch in found.items()))


def _in_words(name, batch):
    model = f", hit rate {batch['hit_rate']:.1f} %, {batch['trainings']} trainings" if "hit_rate" in batch else ""
    return f"{name} {batch['insert_us']:.3g} µs a row{model}"


def _batch(bench, twins, contender, first, last):
    """Insert rows first to last and look keys up; times, and for a learned index the changes of its counters."""
    apply_settings(bench.connection, settings_of(contender))
    table, counted = twins.table(contender), contender in twins.learned()
    before = learned.counters(bench, twins.index(contender)) if counted else {}
    elapsed, written = server_microseconds(
        bench.connection, insert_sql(table, first, last - first + 1, load.key_of("i")))
    expect_rows("growth", last - first + 1, written)
    between = learned.counters(bench, twins.index(contender)) if counted else {}
    sampling, found = _sample(bench, twins, contender, last)
    batch = {"rows": last, "insert_us": elapsed / written, "seconds": elapsed / 1e6,
             "lookup_us": sampling / SAMPLE, "found": found}
    if counted:
        after = learned.counters(bench, twins.index(contender))
        batch["inserting"] = {name: between[name] - before[name] for name in between}
        batch["sampling"] = sample = {name: after[name] - between[name] for name in after}
        if not sample["lookups"]:
            raise Failed("growth: the sample's lookups were not counted: they did not go through the model")
        batch["hit_rate"] = 100 * sample["verified"] / sample["lookups"]
        batch["straight"] = 100 * (sample["verified"] - sample["moved_right"]) / sample["lookups"]
        batch["moved_right"] = 100 * sample["moved_right"] / sample["lookups"]
        inserting = batch["inserting"]
        batch["placed"] = 100 * inserting["inserts_placed"] / max(inserting["inserts"], 1)
        batch["insert_fallbacks"] = 100 * inserting["inserts_fallback"] / max(inserting["inserts"], 1)
        batch["trainings"] = after["trainings"]
    return batch


def _sample(bench, twins, contender, rows):
    """Look SAMPLE keys up that are drawn from `rows` rows, other ones after each batch."""
    join = (f"SELECT count(t.k) FROM generate_series({rows + 1}::int8, {rows + SAMPLE}) AS j "
            f"JOIN {twins.table(contender)} AS t ON t.k = {load.key_of(load.drawn_row('j', rows))}")
    node_type = "Index Only Scan" if contender.index_only else "Index Scan"
    index_node(explain(bench.connection, join), twins.index(contender), node_type)
    microseconds, ((found,),) = server_microseconds(bench.connection, join)
    if found != SAMPLE:
        raise Failed(f"growth: of {SAMPLE} keys {found} were found in {twins.table(contender)}")
    return microseconds, found


def _describe_lookups(bench, contender, batches):
    rates = [batch["hit_rate"] for batch in batches]
    bench.fact(contender, "growth: hit rate of lookups, lowest, %", min(rates))
    bench.fact(contender, "growth: hit rate of lookups, median, %", median(rates))
    bench.fact(contender, "growth: ... on the predicted leaf itself, lowest, %",
               min(batch["straight"] for batch in batches))
    bench.fact(contender, "growth: ... on the predicted leaf itself, median, %",
               median(batch["straight"] for batch in batches))
    bench.fact(contender, "growth: right-moves, highest, % of lookups",
               max(batch["moved_right"] for batch in batches))
    for name, title in (("inserts_placed", "placed"), ("inserts_full", "on a full leaf"),
                        ("inserts_equal", "next to an equal key"), ("inserts_fallback", "not proven")):
        inserts = sum(batch["inserting"]["inserts"] for batch in batches)
        share = sum(batch["inserting"][name] for batch in batches) / max(inserts, 1)
        bench.fact(contender, f"growth: inserts {title}, %", 100 * share)
    bench.fact(contender, "growth: splits", sum(batch["inserting"]["splits"] for batch in batches))
    bench.fact(contender, "growth: trainings", batches[-1]["trainings"])
    if not batches[-1]["trainings"]:
        bench.warn("nothing was trained while the table grew")


def _describe_training(bench, contender, batches, watch, seconds):
    own = sum(batch["seconds"] for batch in batches)
    bench.fact(contender, "growth: seconds, all contenders and samples", seconds)
    bench.fact(contender, "growth: seconds, own inserts", own)
    bench.fact(contender, "growth: workers seen", watch.workers)
    bench.fact(contender, "growth: CPU of workers, s", watch.cpu_seconds())
    bench.fact(contender, "growth: CPU of workers, % of all the time", 100 * watch.cpu_seconds() / seconds)
    bench.fact(contender, "growth: CPU of workers, % of own inserts' time", 100 * watch.cpu_seconds() / own)
    bench.fact(contender, "growth: trainings timed", len(watch.training_ms))
    bench.fact(contender, "growth: trainings, ms together", sum(watch.training_ms.values()))
    if watch.training_ms and not watch.workers:
        bench.warn("trainings ran, but no background worker was seen: sessions trained by themselves")
