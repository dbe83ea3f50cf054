"""What writes cost with a model, and whether it keeps up: see bench/README.md.

Each contender has tables of its own, with the same rows and the same writes (harness/twins.py).  Parts
have tables of their own where what one part writes would matter to another.
"""

from functools import partial

from harness import cold, learned, load
from harness.experiment import Experiment
from harness.twins import Twins

from . import write_bulk, write_cold, write_growth
from .write_mixes import Inserts, PreparedMix, ServerMix, SetMix, fill_ascending

PARTS = ("cold", "inserts", "server", "prepared", "ascending", "growth", "bulk")  # in the order in which they run
ON_MAIN_TABLES = {"cold", "inserts", "server", "prepared"}
MIXES = (("a", 50), ("b", 95))  # name, reads in 100 operations
SET_MIX = "b"
ASCENDING_SHARE = 10  # the ascending tables begin with one of so many rows
INSERT_SHARE = 100  # a round inserts one of so many rows
MIN_INSERTS = 100_000
MIN_ROWS = 100_000
MAX_ROWS = 100_000_000  # their keys, and those of as many inserts, are without a repetition
MAX_GROWTH_ROWS = 10_000_000
PROBE_BYTES = 40  # a row of a probe table
SPLIT_BYTES_PER_INT8 = 32  # of index, once leaves have split
TEXT_BYTES = 300  # a row of 100-byte text: table and index


class Write(Experiment):
    title = "Writes, and mixes with reads, on int8 keys"

    def add_options(self, parser):
        parser.set_defaults(contenders="btree,served")
        parser.add_argument("--only", default=",".join(PARTS), metavar="LIST", help="parts to run")
        parser.add_argument("--inserts", type=int, metavar="N",
                            help=f"rows inserted in a round (default: rows / {INSERT_SHARE}, at least {MIN_INSERTS})")
        parser.add_argument("--operations", type=int, default=200_000, metavar="N",
                            help="operations of a mix in a function, in a round")
        parser.add_argument("--set-operations", type=int, default=1_000_000, metavar="N",
                            help="operations of the mix by sets, in a round")
        parser.add_argument("--prepared", type=int, default=100_000, metavar="N",
                            help="operations of a mix of prepared statements, in a round")
        parser.add_argument("--growth-rows", type=int, metavar="N",
                            help=f"rows to begin the growth with (default: rows, at most {MAX_GROWTH_ROWS})")
        parser.add_argument("--batches", type=int, default=40, help="batches in which a table doubles")
        parser.add_argument("--text-rows", type=int, default=1_000_000, metavar="N",
                            help=f"rows of {write_cold.KEY_BYTES}-byte text keys")
        parser.add_argument("--cold-rounds", type=int, default=3, help="cold starts of each contender and table")
        parser.add_argument("--unique", action="store_true", help="make the int8 indexes unique")
        write_bulk.add_options(parser)

    def check_options(self, options):
        options.parts = {part.strip() for part in options.only.split(",") if part.strip()}
        if not options.parts or not options.parts <= set(PARTS):
            raise SystemExit(f"bench: --only takes some of {','.join(PARTS)}")
        options.inserts = options.inserts or max(options.rows // INSERT_SHARE, MIN_INSERTS)
        options.growth_rows = options.growth_rows or min(options.rows, MAX_GROWTH_ROWS)
        if not MIN_ROWS <= options.rows <= MAX_ROWS or not MIN_ROWS <= options.growth_rows <= MAX_ROWS:
            raise SystemExit(f"bench: --rows and --growth-rows must be between {MIN_ROWS} and {MAX_ROWS}")
        if min(options.operations, options.set_operations, options.prepared, options.text_rows) < 1000:
            raise SystemExit("bench: --operations, --set-operations, --prepared and --text-rows: at least 1000")
        if options.inserts < 1 or options.cold_rounds < 1 or not 1 <= options.batches <= options.growth_rows:
            raise SystemExit("bench: --inserts, --cold-rounds and --batches must be positive")
        if self.rows_written(options) > MAX_ROWS:
            raise SystemExit(f"bench: for {self.rows_written(options):,} inserts there are too few distinct keys")
        write_bulk.check_options(options)
        if options.unique and "hash" in options.contenders:
            raise SystemExit("bench: a hash index cannot be unique")

    def rows_written(self, options):
        """Row numbers that all rounds on the main tables take, the warm-up's included."""
        reads = dict(MIXES)[SET_MIX]
        a_round = {"inserts": options.inserts, "prepared": len(MIXES) * options.prepared,
                   "server": len(MIXES) * options.operations + options.set_operations * (100 - reads) // 100}
        return (options.rounds + 1) * sum(a_round.get(part, 0) for part in options.parts)

    def bytes_needed(self, options, contenders):
        """The largest part's: tables are dropped before those of the next are made."""
        split = load.HEAP_BYTES_A_ROW + SPLIT_BYTES_PER_INT8
        main = sum(load.HEAP_BYTES_A_ROW + max(contender.bytes_per_int8, 23) for contender in contenders)
        needed = [0]
        if options.parts & ON_MAIN_TABLES:
            needed.append(options.rows * main + self.rows_written(options) * split * len(contenders)
                          + options.set_operations * PROBE_BYTES)
        if "ascending" in options.parts:
            rows = options.rows // ASCENDING_SHARE + (options.rounds + 1) * options.inserts
            needed.append(rows * split * len(contenders))
        if "growth" in options.parts:
            needed.append(2 * options.growth_rows * split * len(contenders))
        if "cold" in options.parts:
            needed.append(options.text_rows * TEXT_BYTES * len(contenders))
        if "bulk" in options.parts:
            needed.append(write_bulk.bytes_needed(options))
        return max(needed)

    # ---- the order of a run ----

    def load(self, bench):
        self.main = None
        if bench.options.parts & ON_MAIN_TABLES:
            self.main = self._random_twins(bench, "t", bench.options.rows)

    def measure(self, bench):
        parts = bench.options.parts
        if self.main:
            self._on_main_tables(bench, parts)
            self.main.drop(bench)
        if "ascending" in parts:
            self._ascending(bench)
        if "growth" in parts:
            self._growth(bench, then_cold="cold" in parts)
        if "cold" in parts:
            self._cold_text(bench)
        if "bulk" in parts:
            write_bulk.Bulk(bench).run()

    def _random_twins(self, bench, name, rows):
        twins = Twins(name, bench.contenders, rows)
        twins.make(bench, lambda table: load.random_keys(bench, table, rows), bench.options.unique)
        return twins

    def _on_main_tables(self, bench, parts):
        options = bench.options
        if "cold" in parts:  # first: of an index that nothing was inserted into
            write_cold.run(bench, self.main, "fresh", "int8, fresh index", options.rows, options.cold_rounds)
            cold.warm_restart(bench)
        if not parts & (ON_MAIN_TABLES - {"cold"}):
            return
        self.main.warm(bench)
        for contender in self.main.learned():
            learned.train_and_describe(bench, self.main.of(contender), contender, options.rounds)
        if self.main.learned():
            learned.reset_counters(bench)
        if "inserts" in parts:
            bench.run_one(self.main, Inserts("inserts", "random inserts", count=options.inserts))
            self.main.check_contents(bench, "random inserts")
            self._describe_inserts(bench, self.main, "random")
        if "server" in parts:
            self._server(bench)
        if "prepared" in parts:
            for name, reads in MIXES:
                bench.run_one(self.main, PreparedMix(f"prepared_{name}", f"{reads} % reads, prepared statements",
                                                     reads_in_100=reads, operations=options.prepared))
            self.main.check_contents(bench, "prepared statements")
        for contender in self.main.contenders:
            self._describe_updates(bench, contender)
        for contender in self.main.learned():
            learned.describe_counters(bench, self.main.of(contender), contender)

    def _server(self, bench):
        options = bench.options
        reads = options.set_operations * dict(MIXES)[SET_MIX] // 100
        load.probes(bench, "probe_mix", options.rows, reads, ordered=False)
        load.prewarm(bench, ["probe_mix"])
        # First: later ones update rows, whose pages are then not all-visible.
        bench.run_one(self.main, SetMix("server_sets", f"{dict(MIXES)[SET_MIX]} % reads, by sets in the server",
                                        probes="probe_mix", reads=reads, writes=options.set_operations - reads))
        for name, reads in MIXES:
            bench.run_one(self.main, ServerMix(f"server_{name}", f"{reads} % reads, PL/pgSQL",
                                               reads_in_100=reads, operations=options.operations))
        self.main.check_contents(bench, "mixes in the server")

    def _ascending(self, bench):
        options = bench.options
        twins = Twins("asc", bench.contenders, options.rows // ASCENDING_SHARE)
        twins.make(bench, partial(fill_ascending, bench, twins.rows), options.unique)
        twins.warm(bench)
        if twins.learned():
            learned.reset_counters(bench)
        bench.run_one(twins, Inserts("ascending", "ascending inserts", count=options.inserts, row_key="i"))
        twins.check_contents(bench, "ascending inserts")
        self._describe_inserts(bench, twins, "ascending")
        twins.drop(bench)

    def _growth(self, bench, then_cold):
        options = bench.options
        twins = self._random_twins(bench, "g", options.growth_rows)
        twins.warm(bench)
        write_growth.run(bench, twins, options.batches)
        if then_cold:
            write_cold.run(bench, twins, "grown", "int8, grown index", 2 * options.growth_rows, options.cold_rounds)
        twins.drop(bench)

    def _cold_text(self, bench):
        options = bench.options
        twins = Twins("x", bench.contenders, options.text_rows, numbers=False)
        twins.make(bench, lambda table: write_cold.fill_text(bench, table, options.text_rows))
        write_cold.run(bench, twins, "text", f"{write_cold.KEY_BYTES}-byte text", options.text_rows,
                       options.cold_rounds)
        twins.drop(bench)

    # ---- facts ----

    @staticmethod
    def _describe_inserts(bench, twins, kind):
        for contender in twins.learned():
            found = learned.counters(bench, twins.index(contender))
            if not found["inserts"]:
                bench.warn(f"{kind} inserts of {contender.name} did not ask the model")
                continue
            for name, title in (("inserts_placed", "placed"), ("inserts_full", "on a full leaf"),
                                ("inserts_equal", "next to an equal key"), ("inserts_fallback", "not proven")):
                bench.fact(contender, f"{kind} inserts {title}, %", 100 * found[name] / found["inserts"])
            bench.fact(contender, f"{kind} inserts: splits", found["splits"])
            bench.fact(contender, f"{kind} inserts: trainings", found["trainings"])

    def _describe_updates(self, bench, contender):
        bench.connection.execute("SELECT pg_stat_force_next_flush()")
        updates, hot = bench.connection.execute(
            "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relid = %s::regclass",
            [self.main.table(contender)]).fetchone()
        if updates:
            bench.fact(contender, "updates that left the index alone (HOT), %", 100 * hot / updates)


EXPERIMENT = Write
