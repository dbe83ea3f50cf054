"""The figures that LearnedStore is published with, of an ordinary primary key: see bench/README.md.

Cold starts, tail latency with inner pages missing, writes, training from parents and from leaves, and every setting of
the extension off in turn.
"""

from functools import partial
from statistics import median

from harness import cold, load
from harness.contenders import Indexes, choose
from harness.experiment import Experiment
from harness.twins import Twins

from . import coldstart_ablation as ablation
from . import coldstart_start as start
from . import coldstart_training as training
from .larger import INDEX_ENTRY_BYTES, TABLE
from .write_mixes import ServerMix, fill_ascending

PARTS = ("start", "missing", "training", "ablation", "writes")  # in the order in which they run
WRITES_IN_100 = (100, 50, 5)
# Kinds of writes: name, title, inserts in 100 of them, key of a row number
KINDS = (("random", "random inserts", 100, load.key_of), ("ascending", "ascending inserts", 100, str),
         ("updates", "updates by key", 0, load.key_of))
MAX_WRITE_ROWS = 10_000_000
MIN_ROWS = 100_000
SPLIT_BYTES = load.HEAP_BYTES_A_ROW + 32  # a row of a table that is written to, and its index entry


class ColdStart(Experiment):
    title = "Cold starts, tails, writes, training, ablation"

    def add_options(self, parser):
        parser.set_defaults(contenders="btree,served")
        parser.add_argument("--only", default=",".join(PARTS), metavar="LIST", help="parts to run")
        parser.add_argument("--cold-rounds", type=int, default=3,
                            help="cold samples of each contender; --rounds is for what is in memory")
        parser.add_argument("--operations", type=int, default=100_000, metavar="N",
                            help="operations of a mix with writes, in a round")
        parser.add_argument("--write-rows", type=int, metavar="N",
                            help=f"rows of the tables that are written to (default: rows, at most {MAX_WRITE_ROWS:,})")
        start.add_options(parser)
        ablation.add_options(parser)

    def check_options(self, options):
        options.parts = {part.strip() for part in options.only.split(",") if part.strip()}
        if not options.parts or not options.parts <= set(PARTS):
            raise SystemExit(f"bench: --only takes some of {','.join(PARTS)}")
        names = {contender.name for contender in choose(options.contenders)}
        if names != {"btree", "served"}:
            raise SystemExit("bench: --contenders takes btree,served: both have one primary key")
        options.write_rows = options.write_rows or min(options.rows, MAX_WRITE_ROWS)
        if min(options.rows, options.write_rows) < MIN_ROWS:
            raise SystemExit(f"bench: --rows and --write-rows must be at least {MIN_ROWS}")
        if options.cold_rounds < 1 or options.operations < 1000:
            raise SystemExit("bench: --cold-rounds must be at least 1, --operations 1000")
        start.check_options(options)

    def bytes_needed(self, options, contenders):
        """The table that is read; beside it, what a part has of its own."""
        own = [ablation.bytes_needed(options) if "ablation" in options.parts else 0]
        if "writes" in options.parts:
            inserted = (options.rounds + 1) * options.operations * sum(WRITES_IN_100) // 100
            own.append((options.write_rows + inserted) * SPLIT_BYTES * len(contenders))
        return options.rows * (load.HEAP_BYTES_A_ROW + INDEX_ENTRY_BYTES) + max(own)

    def load(self, bench):
        self.indexes = Indexes(TABLE, "k", bench.contenders)
        load.random_keys(bench, TABLE, bench.options.rows)
        load.primary_key(bench, self.indexes)
        bench.questions = ablation.load_questions(bench) if "ablation" in bench.options.parts else ()

    def measure(self, bench):
        parts = {"start": lambda: start.measure(bench, self.indexes),
                 "missing": lambda: start.measure_missing(bench, self.indexes),
                 "training": lambda: training.measure(bench, self.indexes),
                 "ablation": lambda: ablation.measure(bench, self.indexes),
                 "writes": lambda: self._writes(bench)}
        for part in PARTS:
            if part in bench.options.parts:
                parts[part]()

    # ---- writes ----

    def _writes(self, bench):
        options = bench.options
        cold.warm_restart(bench)
        rows = [["operations/s", *(f"{writes} % writes: {contender.name}" for writes in WRITES_IN_100
                                   for contender in bench.contenders)]]
        for name, title, inserts, key_of in KINDS:
            twins = Twins(f"w_{name}", bench.contenders, options.write_rows)
            fill = (partial(load.random_keys, bench, rows=twins.rows) if key_of is load.key_of
                    else partial(fill_ascending, bench, twins.rows))
            twins.make(bench, fill, unique=True)
            twins.warm(bench)
            rows.append([title])
            for writes in WRITES_IN_100:
                key = f"write_{name}_{writes}"
                bench.run_one(twins, ServerMix(key, f"{title}, {writes} % writes", reads_in_100=100 - writes,
                                               inserts_in_100=inserts, operations=options.operations, key_of=key_of))
                rows[-1] += [1e6 / median(own) for own in bench.results[-1]["samples"].values()]
            twins.check_contents(bench, title)
            twins.drop(bench)
        bench.add_table("Writes by key, in a PL/pgSQL function; the rest are reads by key", rows)
        bench.add_chart("Throughput by kind and share of writes", "kind of write, and its share of the operations",
                        "operations/s", {contender.name: [
                            (f"{row[0]}, {writes} %", row[1 + len(bench.contenders) * number + column])
                            for row in rows[1:] for number, writes in enumerate(WRITES_IN_100)]
                            for column, contender in enumerate(bench.contenders)}, kind="bars")


EXPERIMENT = ColdStart
