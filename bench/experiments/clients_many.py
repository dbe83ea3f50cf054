"""Many sessions at once on one table: lookups inside the server, and prepared statements.

pgbench drives all of them: its transactions are a join of many probes, a function of as many lookups, or one
prepared statement.  With --perf, a further sample of each says where the backends spend their time.
"""

import os
from concurrent import futures
from functools import partial
from statistics import median

from harness import learned, load, perf
from harness.clients import Clients, Length, clients_in_words, run_pgbench, session_settings
from harness.contenders import EXTENSION, judged
from harness.measure import NESTED_LOOP, Failed, apply_settings, explain, index_node

TABLE, INDEX, PROBES = "m", "m_pkey", "m_probes"
PROBE_TRANSACTIONS = 100  # about so many different joins
FUNCTION = "m_look_up"
PERF_WARM_SECONDS = 1.0  # sessions have begun, and have made their plans
PERF_SPARE_SECONDS = 3  # that pgbench runs longer than perf looks


def run(bench):
    """Returns the measurements that were taken."""
    options = bench.options
    per_page = _load(bench)
    pages = max(1, options.probes // per_page)  # of a join
    joins = options.probes * PROBE_TRANSACTIONS // per_page // pages
    numbers = _doubling(options.most_clients)
    measured = []
    for kind, make in (("join", partial(_join, joins, pages, per_page)), ("function", _function), ("prepared", _prepared)):
        measurements = [make(bench, clients) for clients in numbers]
        for measurement in measurements:
            bench.run_one(None, measurement)
        _chart(bench, kind, numbers, measurements)
        if options.perf:
            _where_time_goes(bench, measurements[-1])
        measured += measurements
    bench.connection.execute(f"DROP TABLE {TABLE}, {PROBES}")
    return measured


def _doubling(most):
    """1, 2, 4 ... and `most`."""
    return sorted({most, *(2 ** power for power in range(most.bit_length()))})


def _load(bench):
    """The table with its primary key, and probes; returns how many probes there are on a page."""
    options, connection = bench.options, bench.connection
    load.random_keys(bench, TABLE, options.rows)
    connection.execute(f"ALTER TABLE {TABLE} ADD PRIMARY KEY (k)")
    load.probes(bench, PROBES, options.rows, options.probes * PROBE_TRANSACTIONS, ordered=False)
    load.prewarm(bench, [TABLE, INDEX, PROBES])
    learned.train_and_check(bench, INDEX)
    connection.execute(f"""
        CREATE OR REPLACE FUNCTION {FUNCTION}(first int8, times int8) RETURNS int8 LANGUAGE plpgsql AS $$
        DECLARE
            value int4;
            total int8 := 0;
        BEGIN
            FOR i IN first .. first + times - 1 LOOP
                SELECT v INTO STRICT value FROM {TABLE} WHERE k = {load.key_of(load.drawn_row('i', options.rows))};
                total := total + value;
            END LOOP;
            RETURN total;
        END $$""")
    return connection.execute(f"SELECT count(*) FROM {PROBES} WHERE ctid < '(1,0)'").fetchone()[0]


# ---- what clients do ----

def _measurement(bench, kind, title, clients, arguments, script, lookups, settings=None):
    def program(contender, seed, length=bench.options.length):
        return run_pgbench(bench, arguments, {**(settings or {}), **session_settings(contender)}, length, clients, seed,
                           [(script, 1)])

    return Clients(f"many_{kind}_{clients}", f"{title}, {clients_in_words(clients)}", "lookups/s", clients=clients,
                   program=program, per=lookups, operations=lookups)


def _join(joins, pages, per_page, bench, clients):
    """Index-only, of some pages of probes: an error unless each was found."""
    lookups = pages * per_page
    join = (f"SELECT {{what}} FROM {PROBES} AS p JOIN {TABLE} AS t ON t.k = p.k "
            "WHERE p.ctid >= ('(' || {first} || ',0)')::tid AND p.ctid < ('(' || {last} || ',0)')::tid")
    script = (f"\\set first random(0, {joins - 1}) * {pages}\n\\set last :first + {pages}\n"
              + join.format(what=f"1 / (count(t.k) = {lookups})::int4", first=":first", last=":last") + ";\n")
    apply_settings(bench.connection, NESTED_LOOP)
    index_node(explain(bench.connection, join.format(what="count(t.k)", first="'0'", last=f"'{pages}'")), INDEX,
               "Index Only Scan")
    bench.connection.execute("RESET ALL")
    return _measurement(bench, "join", "many: index-only join", clients, ["-M", "simple"], script, lookups, NESTED_LOOP)


def _function(bench, clients):
    times = bench.options.probes
    script = f"\\set first random(1, {bench.options.rows})\nSELECT {FUNCTION}(:first, {times});\n"
    return _measurement(bench, "function", "many: SELECT in a function", clients, ["-M", "simple"], script, times)


def _prepared(bench, clients):
    script = f"\\set i random(1, {bench.options.rows})\nSELECT v FROM {TABLE} WHERE k = {load.key_of(':i')};\n"
    return _measurement(bench, "prepared", "many: SELECT, prepared", clients, ["-M", "prepared"], script, 1)


# ---- what is said of them ----

def _chart(bench, kind, numbers, measurements):
    results = {result["key"]: result["samples"] for result in bench.results}
    what = measurements[0].title.rpartition(",")[0].removeprefix("many: ")
    bench.add_chart(f"Throughput by number of clients: {what} ({os.cpu_count()} cores)",
                    "clients", "lookups/s", {
        contender.name: [(number, median(results[f"many_{kind}_{number}"][contender.name])) for number in numbers]
        for contender in bench.contenders}, kind="bars")


def _where_time_goes(bench, measurement):
    """A sample of each contender under perf, which slows it down: it is no figure."""
    seconds = bench.options.seconds
    groups, symbols = {}, {}
    for contender in (bench.contenders[0], judged(bench.contenders)):
        found = _perf_sample(bench, measurement, contender, seconds)
        groups[contender.name], symbols[contender.name] = perf.shares(found, EXTENSION), perf.top(found)
    names = list(groups)
    bench.add_table(f"Where the time of backends goes, %: {measurement.title}", [
        ["", *names], *([group, *(groups[name][group] for name in names)] for group in groups[names[0]])])
    listed = dict.fromkeys(symbol for name in names for symbol in symbols[name])
    bench.add_table(f"... the most frequent symbols, %: {measurement.title}", [
        ["", *names], *([symbol, *(symbols[name].get(symbol) for name in names)] for symbol in listed)])


def _perf_sample(bench, measurement, contender, seconds):
    """Symbols of the backends while pgbench runs a little longer than perf."""
    length = Length(seconds + PERF_SPARE_SECONDS)
    with futures.ThreadPoolExecutor(1) as pool:
        running = pool.submit(measurement.program, contender, 1, length)
        futures.wait([running], PERF_WARM_SECONDS)
        backends = [process for process, in bench.connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE application_name = 'pgbench'")]
        if not backends:
            running.result(length.timeout)  # tells why
            raise Failed(f"{measurement.title}: no session of pgbench to look at")
        with perf.Samples(backends, seconds) as samples:
            pass
        running.result(length.timeout)
    return samples.symbols
