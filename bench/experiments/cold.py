"""Arrays of keys in memory; arrays, ranges and first rows with cold caches: see bench/README.md.

Two tables of random int8 keys, each with an index for each contender: one freshly built, for arrays, and one grown
to twice its rows by random inserts, for ranges: its leaves are scattered over the file.
"""

import random

from harness import cold, cold_query, learned, lists, load
from harness.contenders import Indexes
from harness.experiment import Experiment
from harness.measure import Query, WrongAnswer

from . import cold_queries
from .cold_queries import RANGES

PARTS = ("arrays", "cold-arrays", "cold-ranges")
ON_FRESH = {"arrays", "cold-arrays"}
FRESH, GROWN = "t", "g"
BATCH_ROWS = 100_000  # of growth
CHECKPOINT_ROWS = 5_000_000  # of growth, lest its log fill the disk
RANGE_ROWS = 100_000
MIN_RANGES = 40  # ranges that the table must have room for, or they are made shorter
MIN_ROWS = 100_000
SEED = 3  # where ranges begin
GROWN_ENTRY_BYTES = 36  # of index a row, leaves having split
COLD_BUFFERS = (64, 256)  # MB of shared_buffers when cold, at least and at most
BUFFERS_SHARE = 8  # ... and one of so many bytes of an index
INDEX_ENTRY_BYTES = 23
IO_WORKERS = 8


class Cold(Experiment):
    title = "Arrays of int8 keys, and cold reads"

    def add_options(self, parser):
        parser.set_defaults(contenders="btree,learnedbtree")
        parser.add_argument("--only", default=",".join(PARTS), metavar="LIST", help="parts to run")
        parser.add_argument("--array-keys", type=int, default=1_000, help="keys of an array")
        parser.add_argument("--arrays", type=int, default=500, help="arrays of a round in memory")
        parser.add_argument("--cold-arrays", type=int, default=5, help="arrays of a cold sample")
        parser.add_argument("--range-rows", type=int, metavar="N",
                            help=f"rows of a range (default: {RANGE_ROWS:,}, at most rows / {MIN_RANGES})")
        parser.add_argument("--ranges", type=int, default=5, help="ranges of a cold sample")
        parser.add_argument("--starts", type=int, default=100, help="queries with LIMIT of a cold sample")
        parser.add_argument("--cold-rounds", type=int, default=5, help="cold samples of each contender and query")
        parser.add_argument("--inner", choices=("warm", "cold"), default="warm",
                            help="whether inner pages and the model are in memory when a cold sample begins")
        parser.add_argument("--cold-buffers", metavar="SIZE", help="shared_buffers of cold samples "
                            f"(default: an eighth of an index, {COLD_BUFFERS[0]} to {COLD_BUFFERS[1]} MB)")
        cold.add_options(parser)

    def check_options(self, options):
        options.parts = {part.strip() for part in options.only.split(",") if part.strip()}
        if not options.parts or not options.parts <= set(PARTS):
            raise SystemExit(f"bench: --only takes some of {','.join(PARTS)}")
        if "hash" in options.contenders:
            raise SystemExit("bench: a hash index has neither ranges nor index-only scans")
        if options.rows < MIN_ROWS:
            raise SystemExit(f"bench: --rows must be at least {MIN_ROWS}")
        options.range_rows = options.range_rows or min(RANGE_ROWS, options.rows // MIN_RANGES)
        if options.range_rows * options.ranges * 2 > options.rows:
            raise SystemExit("bench: --ranges times --range-rows must be at most half of --rows")
        if min(options.array_keys, options.arrays, options.cold_arrays, options.range_rows, options.ranges,
               options.starts, options.cold_rounds) < 1:
            raise SystemExit("bench: all numbers must be positive")

    def bytes_needed(self, options, contenders):
        """The larger table's: they need not be in memory at the same time.

        Of the fresh table, index-only scans read the visibility map alone.
        """
        indexes = sum(contender.builds for contender in contenders)
        fresh = options.rows * INDEX_ENTRY_BYTES * indexes if options.parts & ON_FRESH else 0
        grown = options.rows * (load.HEAP_BYTES_A_ROW + GROWN_ENTRY_BYTES * indexes)
        return max(fresh, grown if "cold-ranges" in options.parts else 0) + options.arrays * options.array_keys * 10

    # ---- tables ----

    def load(self, bench):
        options = bench.options
        self.fresh, self.grown = (Indexes(table, "k", bench.contenders) for table in (FRESH, GROWN))
        self.io_methods = cold.io_methods(bench) if options.parts - {"arrays"} else []
        self._load_questions(bench)
        if options.parts & ON_FRESH:
            load.random_keys(bench, FRESH, options.rows)
            self._build(bench, self.fresh)
        if "cold-ranges" in options.parts:
            load.random_keys(bench, GROWN, options.rows // 2)
            self._build(bench, self.grown)
            self._grow(bench)
        bench.connection.execute("CHECKPOINT")

    @staticmethod
    def _build(bench, indexes):
        for contender in bench.contenders:
            if contender.builds:
                bench.connection.execute(indexes.create_sql(contender))
                bench.say(f"built {contender.index_on(indexes.table)}")

    @staticmethod
    def _grow(bench):
        rows = bench.options.rows
        for first in range(rows // 2 + 1, rows + 1, BATCH_ROWS):
            last = min(rows, first + BATCH_ROWS - 1)
            bench.connection.execute(f"INSERT INTO {GROWN} SELECT {load.key_of('i')}, {load.value_of('i')} "
                                     f"FROM (SELECT generate_series({first}::int8, {last}) AS i) AS s")
            if last == rows or (last - rows // 2) % CHECKPOINT_ROWS == 0:
                bench.connection.execute("CHECKPOINT")  # writes the log of all commits, too
                bench.say(f"grown to {last:,} rows")
        load.settle(bench, GROWN)

    @staticmethod
    def _load_questions(bench):
        """Arrays of keys that exist; ranges that do not meet within a sample; starts for LIMIT behind them."""
        options, connection = bench.options, bench.connection
        arrays = options.arrays + options.cold_rounds * options.cold_arrays
        lists.make(bench, options.rows, arrays, options.array_keys)
        with load.loading(bench):
            connection.execute(f"CREATE TABLE {RANGES} (n int4 NOT NULL, lo int8 NOT NULL, hi int8 NOT NULL)")
            with connection.cursor() as cursor, cursor.copy(f"COPY {RANGES} FROM STDIN") as copy:
                for number, bounds in enumerate(_bounds(options)):
                    copy.write_row((number, *bounds))
        load.settle(bench, RANGES)
        bench.questions = (lists.TABLE, RANGES)

    # ---- measurements ----

    def measure(self, bench):
        options = bench.options
        served = []
        if "arrays" in options.parts:
            served.append(self._in_memory(bench))
        queries = list(cold_queries.kinds(options, FRESH, GROWN))
        if queries:
            settings = self._cold_settings(bench)
            self._describe(bench, settings)
            for method in bench.track(self.io_methods):
                chosen = {**settings, **({"io_method": method} if method else {})}
                for table, query in bench.track(queries):
                    indexes = self.fresh if table == FRESH else self.grown
                    served += cold_query.measure(bench, indexes, [query], chosen, method, options.inner == "warm")
        if any(by_contender for _, by_contender in served):
            bench.add_table("How the extension served them", cold_query.served_rows(served))

    def _in_memory(self, bench):
        options = bench.options
        load.prewarm(bench, [FRESH], forks=("vm",))
        load.prewarm(bench, self.fresh.names())
        cold_query.warm_questions(bench)
        learning = [contender for contender in bench.contenders if contender.has_model]
        for contender in learning:
            learned.train_and_describe(bench, self.fresh, contender, options.rounds)
        if learning:
            learned.reset_counters(bench)
        title = f"in memory: = ANY with {options.array_keys:,} keys"
        bench.run_all(self.fresh, [
            Query("array", title, "µs a key", index_only=True, per=options.arrays * options.array_keys,
                  sql=lists.sql(FRESH, 0, options.arrays - 1))])
        served = {contender.name: learned.counters(bench, contender.index_on(FRESH)) for contender in learning}
        self._compare_sums(bench)
        return title, served

    def _compare_sums(self, bench):
        """Not while the clock runs: a sum takes time of its own."""
        sums = {}
        for contender in bench.contenders:
            self.fresh.show_only(bench.connection, contender)
            sums[contender.name] = bench.connection.execute(
                lists.sql(FRESH, 0, bench.options.arrays - 1, "count(s.k), sum(s.k)")).fetchone()
        self.fresh.show_all(bench.connection)
        bench.connection.execute("RESET ALL")
        if len(set(sums.values())) > 1:
            raise WrongAnswer(f"arrays: the contenders disagree: {sums}")

    def _cold_settings(self, bench):
        options = bench.options
        least, most = COLD_BUFFERS
        megabytes = min(max(options.rows * INDEX_ENTRY_BYTES // BUFFERS_SHARE // 2**20, least), most)
        return cold.sample_settings(bench, IO_WORKERS, shared_buffers=options.cold_buffers or f"{megabytes}MB")

    def _describe(self, bench, settings):
        """Restarts with cold caches, and asks the disk for pages of an index."""
        table = FRESH if "cold-arrays" in bench.options.parts else GROWN
        index = bench.contenders[0].index_on(table)
        cold.cold_restart(bench, (table, index), settings)
        rows = [["", ""], *cold.disk_rows(bench, {"the disk": [index]}), *cold.description(bench)]
        bench.add_table("Cold samples", [*rows, ["inner pages and model", bench.options.inner]])


def _bounds(options):
    """(lo, hi) of every range and start.  The ranges of a sample each lie in a part of the key space of their own."""
    draw = random.Random(SEED)
    part, width = load.KEY_SPACE // options.ranges, load.KEY_SPACE * options.range_rows // options.rows
    for _ in range(options.cold_rounds):
        for number in range(options.ranges):
            low = number * part + draw.randrange(part - width + 1) - load.KEY_SPACE // 2
            yield low, low + width - 1
    for _ in range(options.cold_rounds * options.starts):
        low = draw.randrange(load.KEY_SPACE) - load.KEY_SPACE // 2
        yield low, low


EXPERIMENT = Cold
