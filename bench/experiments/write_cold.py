"""The first lookups after a restart with cold caches: how many index pages they read, and how long they take.

The server is restarted before each contender's turn, with cold caches (harness/cold.py).
"""

import time
from statistics import median

from harness import cold, load
from harness.contenders import EXTENSION
from harness.measure import NESTED_LOOP, Failed, WrongAnswer, apply_settings, index_node, plan_nodes
from harness.twins import settings_of

LOOKUPS = 1_000
WORKER_SECONDS = 3  # after the lookups, for what a background worker reads
KEY_BYTES = 100
PREFIX = "user"


def key_of_text(row):
    """SQL for a key of 100 bytes, random after a common prefix."""
    digits = " || ".join(f"md5('{number}:' || {row})" for number in range(KEY_BYTES // 32))
    return f"rpad('{PREFIX}' || {digits}, {KEY_BYTES}, '0')"


def fill_text(bench, table, rows):
    with load.loading(bench):
        bench.connection.execute(f"CREATE TABLE {table} (k text NOT NULL)")
        bench.connection.execute(f"INSERT INTO {table} SELECT {key_of_text('i')} "
                                 f"FROM (SELECT generate_series(1::int8, {rows}) AS i) AS s")
    load.settle(bench, table)


def fill_probes(bench, twins, table, rows):
    """The keys that will be asked for, of `rows` rows."""
    if twins.numbers:
        load.probes(bench, table, rows, LOOKUPS, ordered=False)
        return
    with load.loading(bench):
        bench.connection.execute(f"CREATE TABLE {table} (k text NOT NULL)")
        bench.connection.execute(f"INSERT INTO {table} SELECT {key_of_text(load.drawn_row('j', rows))} "
                                 f"FROM (SELECT generate_series(1::int8, {LOOKUPS}) AS j) AS s")
    load.settle(bench, table)


def run(bench, twins, key, title, rows, rounds):
    """Measure the twins; leaves a server that may be reading directly: cold.warm_restart() before other parts."""
    probes = f"probe_{key}"
    fill_probes(bench, twins, probes, rows)
    samples = {name: {contender.name: [] for contender in twins.contenders} for name in ("own", "all", "us")}
    answers = {}
    for round_number in bench.track(range(rounds)):
        for contender in bench.in_turn(twins.contenders, round_number):
            cold.cold_restart(bench, (twins.table(contender), twins.index(contender)))
            found, answers[contender.name] = _first_lookups(bench, twins, contender, probes)
            for name, value in found.items():
                samples[name][contender.name].append(value)
            if contender in twins.learned():
                _describe_model(bench, twins, contender, title)
        if len(set(answers.values())) > 1:
            raise WrongAnswer(f"cold start, {title}: the contenders disagree: {answers}")
    bench.add_result(f"cold_{key}_pages", f"cold start, {title}: index pages read by lookups", "a lookup",
                     samples["own"], timed=False)
    bench.add_result(f"cold_{key}_all_pages", f"cold start, {title}: read by planner and workers too", "a lookup",
                     samples["all"], timed=False)
    bench.add_result(f"cold_{key}_time", f"cold start, {title}: first {LOOKUPS:,} lookups", "µs a lookup",
                     samples["us"])
    bench.say(f"cold start, {title}: " + ", ".join(
        f"{name} {median(pages):.3f} pages and {median(samples['us'][name]):.3g} µs a lookup"
        for name, pages in samples["own"].items()))


def _describe_model(bench, twins, contender, title):
    state, source = bench.connection.execute(
        f"SELECT state, source FROM {EXTENSION}_model(%s::regclass)", [twins.index(contender)]).fetchone()
    bench.fact(contender, f"cold start, {title}: model after {WORKER_SECONDS} s",
               f"{state}, from {source}" if source else state)


def _first_lookups(bench, twins, contender, probes):
    connection = bench.connection
    table, index = twins.table(contender), twins.index(contender)
    join = f"SELECT count(t.k) FROM {probes} AS p JOIN {table} AS t ON t.k = p.k"
    apply_settings(connection, {**NESTED_LOOP, **settings_of(contender)})
    heap_before, index_before = cold.blocks_read(bench, table, index)
    analyzed = connection.execute(
        f"EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) {join}").fetchone()[0][0]
    heap_after, _ = cold.blocks_read(bench, table, index)
    node = index_node(analyzed["Plan"], index, "Index Only Scan" if contender.index_only else "Index Scan")
    loops = {below["Actual Loops"] for below in plan_nodes(analyzed["Plan"]) if "Index Name" in below}
    if loops != {LOOKUPS}:
        raise Failed(f"cold start: {index} was looked up {loops} times, not {LOOKUPS}")
    time.sleep(WORKER_SECONDS)
    _, index_after = cold.blocks_read(bench, table, index)
    answer = connection.execute(join).fetchone()
    # The index node's buffers include the table's pages and its visibility map.
    return {"own": (node["Shared Read Blocks"] - (heap_after - heap_before)) / LOOKUPS,
            "all": (index_after - index_before) / LOOKUPS,
            "us": analyzed["Execution Time"] * 1000 / LOOKUPS}, answer
