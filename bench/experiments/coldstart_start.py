"""A client's prepared point lookups after a cold start; and with some of the inner pages missing.

Nothing is asked of the index between the restart and the client's first lookup: neither plan nor counters.
"""

import dataclasses

import numpy

from harness import cold, latency, learned, load
from harness.contenders import BASELINE
from harness.measure import check_prepared

from .larger import OPERATIONS

POINTS = OPERATIONS[:2]  # index only, and with the row
PEAK_SHARE = 0.9
WINDOW_SECONDS = 1.0  # over which a rate is taken for the peak
FIRST_EVICT = 17  # major version
INNER_SHARE = 100  # one inner page in so many is missing
LATENCIES = (("mean", "mean", latency.Transactions.mean), ("p50", "p50", lambda run: run.percentile(50)),
             ("p95", "p95", lambda run: run.percentile(95)), ("p99", "p99", lambda run: run.percentile(99)),
             ("first", "the first of all", lambda run: float(run.latency[0])))


def add_options(parser):
    parser.add_argument("--seconds", type=int, default=20, help="s that a client looks up after a cold start")
    parser.add_argument("--bucket", type=int, default=100, help="ms over which its rate is taken")
    parser.add_argument("--evictions", type=int, default=300, metavar="N", help="how often inner pages go missing")


def check_options(options):
    if options.seconds < 1 or not 1 <= options.bucket <= 1000 or options.evictions < 1:
        raise SystemExit("bench: --seconds and --evictions must be at least 1, --bucket between 1 and 1000 ms")


# ---- cold starts ----

@dataclasses.dataclass
class Start:
    run: latency.Transactions
    rates: numpy.ndarray  # lookups/s in each bucket
    means: numpy.ndarray  # the same over a window that begins with each bucket

    def seconds_to(self, rate):
        """The end of the first bucket from which on a window's rate is as high; None if none is."""
        reached = numpy.flatnonzero(self.means >= rate)
        return int(reached[0]) + 1 if len(reached) else None


def measure(bench, indexes):
    options = bench.options
    for operation in POINTS:
        starts = {contender.name: [] for contender in bench.contenders}
        for round_number in range(options.cold_rounds):
            for contender in bench.in_turn(bench.contenders, round_number):
                starts[contender.name].append(_start(bench, indexes, operation, contender, round_number))
        _report(bench, operation, starts)
    bench.add_table("Cold starts", [["", ""], *cold.description(bench)])


def _script(bench, operation):
    return f"\\set i random(1, {bench.options.rows})\n{operation.statement.format(key=load.key_of(':i'))};\n"


def _check_plan(bench, indexes, operation, contender):
    indexes.show_only(bench.connection, contender)
    check_prepared(bench.connection, operation.statement.format(key=load.key_of("$1")), indexes.names()[0],
                   operation.node_type)


def _start(bench, indexes, operation, contender, round_number):
    options, index = bench.options, indexes.names()[0]
    cold.cold_restart(bench, [indexes.table, index])
    # The same keys for every contender of a round.
    run = latency.run(bench, [(_script(bench, operation), 1)], dict(contender.settings), ("-T", options.seconds),
                      seed=round_number + 1)
    # Counters begin anew with the server; lookups before there is a model are counted as well.
    learned.check_used(contender, {"lookups": 0}, learned.counters(bench, index), len(run) // 2, "cold start")
    _check_plan(bench, indexes, operation, contender)
    if contender.has_model:
        model = learned.model_of(bench, index)
        bench.fact(contender, f"cold start, {operation.title}: model afterwards",
                   f"{model['state']}, from {model['source']} of {model['training_ms']:.1f} ms")
    seconds = options.bucket / 1000
    edges = numpy.arange(int(options.seconds / seconds) + 1) * seconds
    rates = numpy.histogram(run.ended, edges)[0] / seconds
    width = max(round(min(WINDOW_SECONDS, options.seconds / 4) / seconds), 1)
    return Start(run, rates, numpy.convolve(rates, numpy.ones(width) / width, "valid"))


def _report(bench, operation, starts):
    options = bench.options
    title = f"cold start, {operation.title}"
    first = int(1000 / options.bucket)
    own_peak = {name: [one.means.max() for one in own] for name, own in starts.items()}
    bench.add_result(f"start_{operation.name}_second", f"{title}: in the first second", "lookups/s", {
        name: [float(one.rates[:first].mean()) for one in own] for name, own in starts.items()}, rate=True)
    bench.add_result(f"start_{operation.name}_peak", f"{title}: at the peak", "lookups/s",
                     {name: list(map(float, peaks)) for name, peaks in own_peak.items()}, rate=True)
    for key, whose, peaks in (("time", "its peak", own_peak),
                              ("time_baseline", f"{BASELINE}'s peak", dict.fromkeys(starts, own_peak[BASELINE]))):
        reached = {name: [one.seconds_to(PEAK_SHARE * peak) for one, peak in zip(own, peaks[name])]
                   for name, own in starts.items()}
        notes = {name: f"not reached within {options.seconds} s in some rounds" for name, own in reached.items()
                 if None in own}
        bench.add_result(f"start_{operation.name}_{key}", f"{title}: to {PEAK_SHARE:.0%} of {whose}", "s",
                         {name: [options.seconds if buckets is None else buckets * options.bucket / 1000
                                 for buckets in own] for name, own in reached.items()}, notes=notes)
    for key, of, value in LATENCIES:
        bench.add_result(f"start_{operation.name}_{key}", f"{title}: {of}", "µs",
                         {name: [value(one.run) for one in own] for name, own in starts.items()})
    bench.add_chart(f"Lookups after a cold start: {operation.title}", "seconds since the client started", "lookups/s", {
        name: [((number + 1) * options.bucket / 1000, float(rate)) for number, rate in
               enumerate(numpy.median([one.rates for one in own], axis=0))] for name, own in starts.items()})
    bench.say(f"{title}: " + ", ".join(f"{name} {numpy.median(peaks):,.0f}/s at the peak"
                                       for name, peaks in own_peak.items()))


# ---- inner pages missing ----

def measure_missing(bench, indexes):
    """Lookups in memory, of which about one in 100 meets an inner page that is not there, if it wants one."""
    if bench.server.installation.major < FIRST_EVICT:
        bench.warn(f"missing inner pages are not measured: pages can be evicted one by one from {FIRST_EVICT} on")
        return
    if bench.options.latency:
        bench.warn("missing inner pages are not measured: --latency does not delay direct reads")
        return
    index, operation = indexes.names()[0], POINTS[0]
    if cold.direct_io(bench):
        cold.restart(bench, {cold.DIRECT_IO: "data"})
    else:
        bench.warn("missing inner pages come from the operating system's cache, not from the disk")
    load.prewarm(bench, [index])
    cold.warm_visibility(bench, indexes)
    inner, evicted = _make_evict(bench, index)
    learned.train_and_check(bench, index)
    lookups = INNER_SHARE * evicted  # between two evictions
    evicting = "\\set n random(1, 1000000000)\nSELECT evict(:n);\n"
    states = (("there", "all inner pages there", []),
              ("missing", "1 % of the inner pages missing", [(evicting, 1)]))
    reads = [["", *(contender.name for contender in bench.contenders)]]
    for key, title, further in states:
        samples = {contender.name: [] for contender in bench.contenders}
        for round_number in range(-1, bench.options.rounds):  # round -1 is the warm-up
            for contender in bench.in_turn(bench.contenders, max(round_number, 0)):
                sample = _missing(bench, indexes, contender, [(_script(bench, operation), lookups), *further],
                                  bench.options.evictions * (lookups + 1), round_number + 2)
                if round_number >= 0:
                    samples[contender.name].append(sample)
        for percentile in (50, 99, 99.9):
            bench.add_result(f"{key}_p{percentile:g}", f"{title}: p{percentile:g} of a lookup", "µs",
                             {name: [run.percentile(percentile) for run, _ in own] for name, own in samples.items()})
        reads.append([f"{title}: index pages read a lookup",
                      *(float(numpy.median([read for _, read in own])) for own in samples.values())])
    reads.append(["inner pages; evicted at a time", *([f"{inner}; {evicted}"] * len(bench.contenders))])
    bench.add_table("Inner pages missing", reads)


def _make_evict(bench, index):
    """A function that evicts some inner pages, drawn by its argument; returns (inner pages, evicted at a time)."""
    connection = bench.connection
    for extension in ("pageinspect", "pg_buffercache"):
        connection.execute(f"CREATE EXTENSION IF NOT EXISTS {extension}")
    connection.execute("CREATE TABLE inner_pages (block int8)")
    connection.execute(f"INSERT INTO inner_pages {cold.INNER_PAGES}", {"index": index})
    inner = connection.execute("SELECT count(*) FROM inner_pages").fetchone()[0]
    evicted = max(round(inner / INNER_SHARE), 1)
    connection.execute(f"""
        CREATE FUNCTION evict(number int8) RETURNS int8 LANGUAGE sql AS $$
            SELECT count(pg_buffercache_evict(bufferid)) FROM pg_buffercache
            WHERE relfilenode = pg_relation_filenode('{index}') AND relforknumber = 0 AND relblocknumber IN (
                SELECT block FROM inner_pages ORDER BY hashint8extended(block, number) LIMIT {evicted}) $$""")
    load.settle(bench, "inner_pages")
    return inner, evicted


def _missing(bench, indexes, contender, scripts, transactions, seed):
    index = indexes.names()[0]
    _check_plan(bench, indexes, POINTS[0], contender)
    load.prewarm(bench, [index])
    counted, (_, before) = learned.counters(bench, index), cold.blocks_read(bench, indexes.table, index)
    run = latency.run(bench, scripts, dict(contender.settings), ("-t", transactions), seed=seed).of_script(0)
    _, after = cold.blocks_read(bench, indexes.table, index)
    learned.check_used(contender, counted, learned.counters(bench, index), len(run), "inner pages missing")
    return run, (after - before) / len(run)
