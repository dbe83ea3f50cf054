"""Each setting of the extension off in turn: joins, lists and ranges in memory and cold, and inserts.

A contender for each, beside btree and `served`, which has all of them on.  A model is trained anew before each
sample, so that none finds what another has made of it.  In memory it is then used once with all on, so that it knows
the leaves' buffers, whatever the sample before has left.
"""

import dataclasses
from statistics import median

from harness import cold, cold_query, learned, lists, load
from harness.cold_query import ColdQuery
from harness.contenders import BASELINE, EXTENSION, Indexes
from harness.measure import BY_INDEX, Query, apply_settings
from harness.report import figure
from harness.twins import Twins

from .larger import TABLE
from .write_mixes import Inserts

# Setting: value, and what it turns off of what is measured here.
OFF = {"enable": ("off", "all: scans and inserts are btree's"),
       "enable_insert": ("off", "inserts on the predicted leaf"),
       "enable_prefetch": ("off", "reading leaves ahead, so that of rows in joins, which are known from the leaves"),
       "lookahead_rows": ("0", "look-ahead nodes of joins and writes; not lists and ranges"),
       "enable_row_prefetch": ("off", "reading rows' blocks ahead; in memory, fetching a leaf's next rows into caches"),
       "enable_leaf_cache": ("off", "search among the leaves' smallest keys: the spline's leaf is a few leaves off"),
       "enable_buffer_hint": ("off", "remembered buffers, and fetching them into caches; not reading ahead")}
ALL_ON = "served"
PROBES, RANGES, COLD_RANGES = "ablation_probes", "ablation_ranges", "ablation_cold_ranges"
LIST_KEYS = 1_000
LISTS_SHARE = 5  # keys of lists, one for so many probes
RANGE_ROWS = 100
COLD_SHARE, COLD_KEYS = 100, 5_000  # probes of a cold sample: one for so many rows, and at most
COLD_RANGE_ROWS, COLD_RANGE_COUNT = 1_000, 5  # of a cold sample
MAX_INSERT_ROWS = 500_000  # rows of the tables that are inserted into
INSERT_SHARE = 20  # a round inserts one of so many
IO_WORKERS = 32
SPLIT_BYTES = load.HEAP_BYTES_A_ROW + 32
PROBE_BYTES = 40


def add_options(parser):
    parser.add_argument("--probes", type=int, default=500_000, help="probes of an ablation's join in memory")


def bytes_needed(options):
    rows = min(options.rows, MAX_INSERT_ROWS)
    return ((rows + (options.rounds + 1) * rows // INSERT_SHARE) * SPLIT_BYTES * (len(OFF) + 2)
            + options.probes * 2 * PROBE_BYTES)


def _contenders(bench):
    """btree, served with all on, and served without each."""
    by_name = {contender.name: contender for contender in bench.contenders}
    served = by_name[ALL_ON]
    yield from (by_name[BASELINE], served)
    for name, (value, _) in OFF.items():
        setting = f"{EXTENSION}.{name}"
        kept = tuple(pair for pair in served.settings if pair[0] != setting)
        yield dataclasses.replace(served, name=f"no-{name.replace('_', '-')}", settings=(*kept, (setting, value)))


# ---- questions ----

def _sizes(options):
    """(lists in memory, lists cold, probes cold) of a sample."""
    probes = min(options.rows // COLD_SHARE, COLD_KEYS)
    return max(options.probes // LISTS_SHARE // LIST_KEYS, 1), max(probes // LIST_KEYS, 1), probes


def load_questions(bench):
    """Makes them; returns their tables' names."""
    options = bench.options
    in_memory, cold_lists, cold_probes = _sizes(options)
    count = options.probes + options.cold_rounds * cold_probes
    load.fill(bench, PROBES, "n int4 NOT NULL, k int8 NOT NULL",
              f"SELECT n, {load.key_of(load.drawn_row('n', options.rows))} FROM generate_series(1, {count}) AS n")
    lists.make(bench, options.rows, in_memory + options.cold_rounds * cold_lists, LIST_KEYS)
    load.range_probes(bench, RANGES, options.rows, max(options.probes // RANGE_ROWS, 1), RANGE_ROWS)
    load.range_probes(bench, COLD_RANGES, options.rows, options.cold_rounds * COLD_RANGE_COUNT, COLD_RANGE_ROWS)
    bench.connection.execute(f"ALTER TABLE {COLD_RANGES} ADD n serial")
    load.settle(bench, COLD_RANGES)
    return PROBES, lists.TABLE, RANGES, COLD_RANGES


def _join(first, last, what):
    return f"SELECT {what} FROM {PROBES} AS p JOIN {TABLE} AS s ON s.k = p.k WHERE p.n BETWEEN {first} AND {last}"


@dataclasses.dataclass
class Trained(Query):
    unit: str = "µs"
    all_on: object = None  # the contender
    states: dict = dataclasses.field(default_factory=dict)  # of the model after the sample, by contender

    def run(self, bench, indexes, contender, round_number):
        index = contender.index_on(indexes.table)
        indexes.show_only(bench.connection, self.all_on)
        apply_settings(bench.connection, self.settings)
        learned.train_and_check(bench, index)
        bench.connection.execute(self.sql)
        value = super().run(bench, indexes, contender, round_number)
        self.states[contender.name] = learned.model_of(bench, index)["state"]
        return value

    def note(self, contender):
        state = self.states[contender.name]
        return super().note(contender) if state == "ready" else f"{contender.name}: the model at the end is {state}"


@dataclasses.dataclass
class TrainedInserts(Inserts):
    def run(self, bench, twins, contender, round_number):
        if contender.has_model:
            learned.train_and_check(bench, twins.index(contender))
        return super().run(bench, twins, contender, round_number)


def _in_memory(options, all_on):
    count, ranges = _sizes(options)[0], max(options.probes // RANGE_ROWS, 1)
    yield Trained("ablation_join", "join, with rows", per=options.probes, sql=_join(1, options.probes, "sum(s.v)"),
                  all_on=all_on)
    yield Trained("ablation_list", f"= ANY with {LIST_KEYS:,} keys, index only", index_only=True, per=count * LIST_KEYS,
                  sql=lists.sql(TABLE, 0, count - 1), all_on=all_on)
    yield Trained("ablation_range", f"ranges of {RANGE_ROWS} rows, with rows", per=ranges, settings=BY_INDEX,
                  sql=f"SELECT sum(s.v) FROM {RANGES} AS r JOIN {TABLE} AS s ON s.k BETWEEN r.lo AND r.hi",
                  all_on=all_on)


def _cold(options):
    in_memory, cold_lists, probes = _sizes(options)
    unit = {"unit": "µs", "again": False}
    yield ColdQuery("ablation_cold_join", "cold: join, with rows", per=probes, pages_unit="pages a probe",
                    pages_per=probes, statement=lambda first, last, what="sum(s.v)": _join(first, last, what),
                    first=options.probes + 1, count=probes, node_type="Index Scan", sums="count(*), sum(s.v)", **unit)
    keys = cold_lists * LIST_KEYS
    yield ColdQuery("ablation_cold_list", f"cold: = ANY with {LIST_KEYS:,} keys, index only", per=keys,
                    pages_unit="pages a key", pages_per=keys,
                    statement=lambda first, last, what="count(s.k)": lists.sql(TABLE, first, last, what),
                    first=in_memory, count=cold_lists, **unit)
    yield ColdQuery("ablation_cold_range", f"cold: ranges of {COLD_RANGE_ROWS:,} rows, with rows", per=COLD_RANGE_COUNT,
                    pages_unit="pages a range", pages_per=COLD_RANGE_COUNT,
                    statement=lambda first, last, what="sum(s.v)": (
                        f"SELECT {what} FROM {COLD_RANGES} AS r JOIN {TABLE} AS s ON s.k BETWEEN r.lo AND r.hi "
                        f"WHERE r.n BETWEEN {first} AND {last}"),
                    first=1, count=COLD_RANGE_COUNT, node_type="Index Scan", sums="count(*), sum(s.v)", **unit)


# ---- measurements ----

def measure(bench, indexes):
    options = bench.options
    contenders = list(_contenders(bench))
    of_all = Indexes(TABLE, "k", contenders)
    load.prewarm(bench, [TABLE, *of_all.names()])
    cold_query.warm_questions(bench)
    first = len(bench.results)
    all_on = next(contender for contender in contenders if contender.name == ALL_ON)
    bench.run_all(of_all, list(_in_memory(options, all_on)))
    settings = cold.sample_settings(bench, IO_WORKERS)
    for query in _cold(options):
        cold_query.measure(bench, of_all, [query], settings, may_evict=True)
    _inserts(bench, contenders)
    results = [result for result in bench.results[first:] if result["timed"]]
    _report(bench, results, contenders)


def _inserts(bench, contenders):
    rows = min(bench.options.rows, MAX_INSERT_ROWS)
    twins = Twins("ablation", contenders, rows)
    twins.make(bench, lambda table: load.random_keys(bench, table, rows), unique=True)
    twins.warm(bench)
    bench.run_one(twins, TrainedInserts("ablation_inserts", "random inserts", "µs", count=rows // INSERT_SHARE))
    twins.check_contents(bench, "the ablation's inserts")
    twins.drop(bench)


def _report(bench, results, contenders):
    titles = {BASELINE: BASELINE, ALL_ON: "served, all on"}
    titles.update({f"no-{name.replace('_', '-')}": f"{name} = {value}" for name, (value, _) in OFF.items()})
    what = {f"no-{name.replace('_', '-')}": words for name, (_, words) in OFF.items()}
    medians = [{name: median(own) for name, own in result["samples"].items()} for result in results]
    rows = [["", "what is off", *(f"{result['title']}, {result['unit']}" for result in results)]]
    for contender in contenders:
        rows.append([titles[contender.name], what.get(contender.name, "–"), *(
            f"{figure(own[contender.name])} ({own[BASELINE] / own[contender.name]:.2f}×)" for own in medians)])
    bench.add_table(f"Each setting off in turn; in brackets the speed-up over {BASELINE}", rows)
    bench.add_chart("Speed-up with one setting off at a time", "", f"times as fast as {BASELINE}", {
        titles[contender.name]: [(result["title"], own[BASELINE] / own[contender.name])
                                 for result, own in zip(results, medians)]
        for contender in contenders if contender.name != BASELINE}, kind="bars")
