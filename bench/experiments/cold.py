"""Arrays of keys in memory; arrays, ranges and first rows with cold caches: see bench/README.md.

Two tables of random int8 keys, each with an index for each contender: one freshly built, for arrays, and one grown
to twice its rows by random inserts, for ranges: its leaves are scattered over the file.
"""

import contextlib
import ctypes
import os
import pathlib
import random

from harness import cold, disk, learned, load
from harness.contenders import Indexes
from harness.experiment import Experiment
from harness.measure import Query, WrongAnswer

from . import cold_queries
from .cold_queries import ARRAYS, RANGES

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
COLD_SETTINGS = ("shared_buffers", "effective_io_concurrency", "io_workers")  # shown in the report
IO_WORKERS = 8
IO_CONCURRENCY = 32
IO_URING_SETUP = 425  # the system call's number, on every architecture


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
        parser.add_argument("--io-methods", metavar="LIST",
                            help="from version 18 on (default: worker, and io_uring where it is to be had)")

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
        self.io_methods = _io_methods(bench) if options.parts - {"arrays"} else []
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
            bench.connection.execute(f"INSERT INTO {GROWN} SELECT {load.key_of('i')}, (i & 1023)::int4 "
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
        with load.loading(bench):
            connection.execute(f"CREATE TABLE {ARRAYS} (n int4 NOT NULL, keys int8[] NOT NULL)")
            connection.execute(f"ALTER TABLE {ARRAYS} ALTER keys SET STORAGE EXTERNAL")
            connection.execute(
                f"INSERT INTO {ARRAYS} SELECT n, ARRAY(SELECT {load.key_of(load.drawn_row('j', options.rows))} FROM "
                f"generate_series(n::int8 * {options.array_keys} + 1, (n::int8 + 1) * {options.array_keys}) AS j) "
                f"FROM generate_series(0, {arrays - 1}) AS n")
            connection.execute(f"CREATE TABLE {RANGES} (n int4 NOT NULL, lo int8 NOT NULL, hi int8 NOT NULL)")
            with connection.cursor() as cursor, cursor.copy(f"COPY {RANGES} FROM STDIN") as copy:
                for number, bounds in enumerate(_bounds(options)):
                    copy.write_row((number, *bounds))
        for table in (ARRAYS, RANGES):
            connection.execute(f"VACUUM (FREEZE, ANALYZE) {table}")

    # ---- measurements ----

    def measure(self, bench):
        options = bench.options
        served = []
        if "arrays" in options.parts:
            served.append(self._in_memory(bench))
        queries = list(cold_queries.kinds(options, FRESH, GROWN))
        if queries:
            settings = self._cold_settings(bench)
            self._describe_disk(bench, settings)
            for method in self.io_methods:
                chosen = {**settings, **({"io_method": method} if method else {})}
                for table, query in queries:
                    indexes = self.fresh if table == FRESH else self.grown
                    served.append(cold_queries.measure(bench, indexes, query, chosen, method))
        if any(by_contender for _, by_contender in served):
            bench.add_table("How the extension served them", cold_queries.served_rows(served))

    def _in_memory(self, bench):
        options = bench.options
        load.prewarm(bench, [FRESH], forks=("vm",))
        load.prewarm(bench, self.fresh.names())
        cold_queries.warm_questions(bench)
        learning = [contender for contender in bench.contenders if contender.has_model]
        for contender in learning:
            learned.train_and_describe(bench, self.fresh, contender, options.rounds)
        if learning:
            learned.reset_counters(bench)
        title = f"in memory: = ANY with {options.array_keys:,} keys"
        bench.run_all(self.fresh, [
            Query("array", title, "µs a key", index_only=True, per=options.arrays * options.array_keys,
                  sql=cold_queries.array_sql(FRESH, 0, options.arrays - 1))])
        bench.targets["array"] = cold_queries.TARGET
        served = {contender.name: learned.counters(bench, contender.index_on(FRESH)) for contender in learning}
        self._compare_sums(bench)
        return title, served

    def _compare_sums(self, bench):
        """Not while the clock runs: a sum takes time of its own."""
        sums = {}
        for contender in bench.contenders:
            self.fresh.show_only(bench.connection, contender)
            sums[contender.name] = bench.connection.execute(
                cold_queries.array_sql(FRESH, 0, bench.options.arrays - 1, "count(s.k), sum(s.k)")).fetchone()
        self.fresh.show_all(bench.connection)
        bench.connection.execute("RESET ALL")
        if len(set(sums.values())) > 1:
            raise WrongAnswer(f"arrays: the contenders disagree: {sums}")

    def _cold_settings(self, bench):
        options = bench.options
        least, most = COLD_BUFFERS
        megabytes = min(max(options.rows * INDEX_ENTRY_BYTES // BUFFERS_SHARE // 2**20, least), most)
        settings = {"shared_buffers": options.cold_buffers or f"{megabytes}MB",
                    "effective_io_concurrency": str(IO_CONCURRENCY)}
        if bench.server.installation.major >= 18:
            settings["io_workers"] = str(IO_WORKERS)
        named = {setting.split("=", 1)[0] for setting in options.set}  # these hold for cold samples, too
        return {name: value for name, value in settings.items() if name not in named}

    def _describe_disk(self, bench, settings):
        """Restarts with cold caches, and asks the disk for pages of an index."""
        table = FRESH if "cold-arrays" in bench.options.parts else GROWN
        index = bench.contenders[0].index_on(table)
        cold.cold_restart(bench, (table, index), settings)
        files = cold.files_of(bench, [index])
        rates = disk.read_rates(files)
        words = disk.in_words(rates, sum(pathlib.Path(name).stat().st_size for name in files))
        bench.say(f"the disk: {words}")
        rows = [["", ""], ["the disk", words], ["the operating system's cache", "read past (debug_io_direct)"
                if cold.direct_io(bench) else "files dropped from it before each sample (posix_fadvise)"]]
        rows += [[name, bench.server.settings[name]] for name in COLD_SETTINGS if name in bench.server.settings]
        rows.append(["inner pages and model", bench.options.inner])
        bench.add_table("Cold samples", rows)


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


def _io_methods(bench):
    """How the server can read ahead; one None before version 18, where there is no choice."""
    found = bench.connection.execute("SELECT enumvals FROM pg_settings WHERE name = 'io_method'").fetchone()
    if not found:
        return [None]
    if bench.options.io_methods:
        wanted = [method.strip() for method in bench.options.io_methods.split(",") if method.strip()]
        if not wanted or not set(wanted) <= set(found[0]):
            raise SystemExit(f"bench: --io-methods: this server has {','.join(found[0])}")
        return wanted
    if "io_uring" not in found[0]:
        bench.say("this server was built without io_uring: io_method worker only")
        return ["worker"]
    if not _io_uring_allowed():
        bench.warn("the system does not allow io_uring here: io_method worker only")
        return ["worker"]
    return ["worker", "io_uring"]


def _io_uring_allowed():
    with contextlib.suppress(OSError, ValueError):
        if int(pathlib.Path("/proc/sys/kernel/io_uring_disabled").read_text()):
            return False
    parameters = ctypes.create_string_buffer(120)
    descriptor = ctypes.CDLL(None, use_errno=True).syscall(IO_URING_SETUP, 1, parameters)
    if descriptor < 0:
        return False
    os.close(descriptor)
    return True


EXPERIMENT = Cold
