"""Lookups in a large table of random int8 keys: joins, prepared statements, ranges; builds, pages, model."""

from harness import learned, lists, load
from harness.contenders import Indexes
from harness.experiment import Experiment
from harness.measure import Pages, Prepared, Query

TABLE = "t"
KEYS_A_RANGE = 100
RANGE_SHARE = 10  # one range for so many probes
LIST_KEYS = 1_000
PROBE_BYTES = 40  # a row of a probe table
MIN_ROWS = 10_000


class Lookup(Experiment):
    title = "Lookups of random int8 keys"

    def add_options(self, parser):
        parser.set_defaults(contenders="btree,served,hash,learnedbtree")
        parser.add_argument("--probes", type=int, default=1_000_000, help="probes of each join")
        parser.add_argument("--prepared", type=int, default=100_000, metavar="N",
                            help="executions of the prepared statement in a round")
        parser.add_argument("--build-rounds", type=int, default=3, help="how often each index is built")

    def check_options(self, options):
        if options.rows < MIN_ROWS:
            raise SystemExit(f"bench: --rows must be at least {MIN_ROWS}")
        if options.probes < LIST_KEYS or options.prepared < 1 or options.build_rounds < 1:
            raise SystemExit(f"bench: --probes must be at least {LIST_KEYS}, --prepared and --build-rounds at least 1")

    def bytes_needed(self, options, contenders):
        row = load.HEAP_BYTES_A_ROW + sum(contender.bytes_per_int8 for contender in contenders)
        return options.rows * row + options.probes * 4 * PROBE_BYTES

    def load(self, bench):
        options = bench.options
        load.random_keys(bench, TABLE, options.rows)
        load.probes(bench, "probe_random", options.rows, options.probes, ordered=False)
        load.probes(bench, "probe_sorted", options.rows, options.probes, ordered=True)
        load.range_probes(bench, "probe_range", options.rows, options.probes // RANGE_SHARE, KEYS_A_RANGE)
        lists.make(bench, options.rows, options.probes // LIST_KEYS, LIST_KEYS)
        self.indexes = Indexes(TABLE, "k", bench.contenders)
        bench.build_indexes(self.indexes, options.build_rounds)
        load.prewarm(bench, [TABLE, *self.indexes.names(), "probe_random", "probe_sorted", "probe_range"])
        load.prewarm_with_toast(bench, lists.TABLE)
        bench.connection.execute("CHECKPOINT")
        bench.say("everything is loaded and in memory")

    def measurements(self, options):
        probes, ranges = options.probes, options.probes // RANGE_SHARE
        join = "SELECT {what} FROM probe_{order} AS p JOIN t ON t.k = p.k"
        for order in ("random", "sorted"):
            yield Query(f"join_index_only_{order}", f"index-only join, {order} probes", "µs a probe", index_only=True,
                        sql=join.format(what="count(t.k)", order=order), per=probes)
        for order in ("random", "sorted"):
            yield Query(f"join_heap_{order}", f"join with table fetch, {order} probes", "µs a probe",
                        sql=join.format(what="sum(t.v)", order=order), per=probes)
        for index_only in (True, False):
            yield lists.query(f"list_{'index_only' if index_only else 'heap'}", TABLE, probes // LIST_KEYS, LIST_KEYS,
                              index_only)
        yield Prepared("prepared", "prepared point lookup, round trip", "µs a lookup",
                       script=f"\\set i random(1, {options.rows})\n"
                              f"SELECT v FROM t WHERE k = {load.key_of(':i')};\n",
                       statement=f"SELECT v FROM t WHERE k = {load.key_of('$1')}", transactions=options.prepared)
        yield Query("range_index_only", f"index-only range of {KEYS_A_RANGE}, random", "µs a range", index_only=True,
                    ranges=True, per=ranges,
                    sql="SELECT count(t.k) FROM probe_range AS p JOIN t ON t.k BETWEEN p.lo AND p.hi")
        yield Pages("pages", "index pages touched", "pages a lookup", index_only=True,
                    sql=join.format(what="count(t.k)", order="random"), per=probes)

    def measure(self, bench):
        trained = [contender for contender in bench.contenders if contender.has_model]
        for contender in trained:
            learned.train_and_describe(bench, self.indexes, contender, bench.options.rounds)
            learned.reset_counters(bench)
        bench.run_all(self.indexes, self.measurements(bench.options))
        for contender in trained:
            learned.describe_counters(bench, self.indexes, contender)


EXPERIMENT = Lookup
