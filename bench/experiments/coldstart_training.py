"""Training from parents, as the extension does it, against reading all leaves, as a model made of them would need."""

from statistics import median

from harness import cold, learned, load
from harness.contenders import BASELINE, EXTENSION
from harness.measure import BY_INDEX, apply_settings, explain, index_node, server_microseconds


def measure(bench, indexes):
    options, connection, index = bench.options, bench.connection, indexes.names()[0]
    connection.execute("CREATE EXTENSION IF NOT EXISTS pgstattuple")
    scan = f"SELECT count(k) FROM {indexes.table}"
    ways = (("model from the parents, by learnedbtree_train()", f"SELECT {EXTENSION}_train('{index}')"),
            ("all leaves, by an index-only scan", scan),
            ("all leaves, by pgstatindex", f"SELECT leaf_pages FROM pgstatindex('{index}')"))
    rows = [["", "in memory", "times the training", "cold", "times the training"]]
    load.prewarm(bench, [index])
    times = {(way, state): [] for way, _ in ways for state in ("warm", "cold")}
    for state, rounds in (("warm", options.rounds), ("cold", options.cold_rounds)):
        for _ in range(rounds):
            for way, statement in ways:
                times[way, state].append(_sample(bench, indexes, statement, state == "cold", scan))
    first = ways[0][0]
    for way, _ in ways:
        row = [way]
        for state in ("warm", "cold"):
            own = median(times[way, state])
            row += [own, None if way == first else own / median(times[first, state])]
        rows.append(row)
    model = learned.train(bench, index)  # the last sample may have restarted the server
    bench.add_table(f"Training from parents, and reading all leaves ({model['leaves']:,}), ms", rows)
    bench.say("training: " + ", ".join(f"{way} {median(times[way, 'warm']):.3g} ms" for way, _ in ways))
    bench.add_chart("Time to train a model, and to read all leaves instead", "", "ms", {
        {"warm": "in memory", "cold": "cold"}[state]: [(way, median(times[way, state])) for way, _ in ways]
        for state in ("warm", "cold")}, kind="bars", log_y=True)


def _sample(bench, indexes, statement, is_cold, scan):
    """ms of a statement, by the server's clock."""
    index = indexes.names()[0]
    if is_cold and not cold.evict(bench, [index], {}):
        cold.cold_restart(bench, [indexes.table, index])
    baseline = next(contender for contender in indexes.contenders if contender.name == BASELINE)
    indexes.show_only(bench.connection, baseline)
    apply_settings(bench.connection, BY_INDEX)
    cold.warm_visibility(bench, indexes)
    if statement == scan:
        index_node(explain(bench.connection, scan), index, "Index Only Scan")
    microseconds, _ = server_microseconds(bench.connection, statement)
    bench.connection.execute("RESET ALL")
    return microseconds / 1000
