"""Each place where keys to come are known, by btree and served: see bench/README.md.

One list of statements (shapes_list.py), run in one of three ways: with storage of a known latency, cold, or in memory.
A sample has a session of its own.  If its statement writes, it begins with a restart, while which its tables are put back
as they were (harness/saved.py), so that all samples find the same pages.
"""

from statistics import fmean, median

from harness import cold, cold_query, learned, load
from harness.contenders import BASELINE, check_served
from harness.experiment import Experiment
from harness.measure import (BY_INDEX, Failed, Measurement, WrongPlan, apply_settings, explain, microseconds_taken,
                             plan_nodes, server_microseconds)
from harness.saved import Saved
from harness.twins import settings_of

from .shapes_list import COLD, ICU_COLLATION, LATENCY, LOOSE, MEMORY, PARENT_SHARE, SHAPES, WIDE, asked_sql, tables

SERVED = "served"
MIN_ROWS = 100_000
MAX_PROBES, PROBES_SHARE = 1_500, 600  # keys of a cold sample: one in so many rows, and at most
WARM_TIMES = 10  # as many keys in memory
LOOSE_TIMES = 20  # executions of a sample in memory by a loose scan, which takes a millisecond or less
IO_WORKERS = 32
ALIKE = 0.1  # the share by which reads of two contenders may differ without a warning
ONE_BY_ONE_UNTIL = 18  # the last version whose btree scans read one block after the other
EXPLAINED = ("SELECT", "INSERT", "UPDATE", "DELETE")
AHEAD = ("prefetched", "prefetched_used", "rows_prefetched", "rows_prefetched_used")  # counters
FOLDER = "rows"  # in the cluster's folder, for files


class Shapes(Experiment):
    title = "Where keys to come are known"

    def add_options(self, parser):
        parser.set_defaults(rows=1_000_000, rounds=3, contenders=f"{BASELINE},{SERVED}")
        parser.add_argument("--only", metavar="LIST", help=f"of {','.join(shape.name for shape in SHAPES)} "
                                                            "(default: those of interest, see bench/README.md)")
        parser.add_argument("--in-memory", action="store_true",
                            help="nothing is cold; so with --cpu-time (default: cold, on a disk or with --latency)")
        parser.add_argument("--probes", type=int, metavar="N",
                            help=f"keys of a cold sample; in memory {WARM_TIMES} times as many (default: {MAX_PROBES:,}, "
                                 f"at most rows / {PROBES_SHARE})")

    def check_options(self, options):
        options.way = MEMORY if options.in_memory or options.cpu_time else LATENCY if options.latency else COLD
        if options.way == MEMORY and options.latency:
            raise SystemExit("bench: --latency is for cold samples: choose it, or --in-memory and --cpu-time")
        if {name.strip() for name in options.contenders.split(",")} != {BASELINE, SERVED}:
            raise SystemExit(f"bench: --contenders are {BASELINE} and {SERVED} here")
        names = [name.strip() for name in (options.only or "").split(",") if name.strip()]
        if not set(names) <= {shape.name for shape in SHAPES}:
            raise SystemExit(f"bench: --only takes some of {','.join(shape.name for shape in SHAPES)}")
        options.shapes = [shape for shape in SHAPES if (shape.name in names if names else options.way in shape.ways)]
        if options.probes is None:
            options.probes = min(MAX_PROBES, options.rows // PROBES_SHARE)
        options.asked = options.probes * (WARM_TIMES if options.way == MEMORY else 1)
        if options.rows < MIN_ROWS or not 1 <= options.asked * (options.rounds + 1) <= options.rows // PARENT_SHARE:
            raise SystemExit(f"bench: --rows must be at least {MIN_ROWS}, and --probes of all rounds fit into them "
                             f"{PARENT_SHARE} times")

    def bytes_needed(self, options, contenders):
        return sum(size for name, (size, _) in tables(options.rows).items() if self._needs(options, name)) * options.rows

    @staticmethod
    def _needs(options, table):
        return any(table in shape.tables for shape in options.shapes)

    # ---- tables ----

    def load(self, bench):
        options = bench.options
        if not bench.connection.execute("SELECT FROM pg_collation WHERE collname = %s", [ICU_COLLATION]).rowcount:
            bench.warn(f"there is no collation {ICU_COLLATION} here: left out what needs it")
            options.shapes = [shape for shape in options.shapes if "words" not in shape.tables]
        made = {name: sql for name, (_, sql) in tables(options.rows).items() if self._needs(options, name)}
        for name in bench.track(made):
            with load.loading(bench):
                for statement in made[name]:
                    bench.connection.execute(statement)
            load.settle(bench, name)
            bench.say(f"made {name}")
        bench.folder = bench.server.folder / FOLDER
        bench.folder.mkdir()
        bench.folder.chmod(0o777)
        bench.questions = [asked(number) for number in range(options.rounds + 1)]
        for number, name in enumerate(bench.questions):
            load.fill(bench, name, "n int8, k int8, id int8, fresh int8, either int8, device int4",
                      asked_sql(number * options.asked + 1, options.asked, options.rows))
            bench.connection.execute(f"COPY (SELECT fresh, 7, {WIDE} FROM {name} ORDER BY n) TO '{bench.folder / name}'")
        written = {relation: None for shape in options.shapes if shape.writes for of in relations(bench, shape.tables)
                   for relation in of}
        bench.saved = Saved(bench, written) if written else None

    # ---- measurements ----

    def measure(self, bench):
        bench.settings = {} if bench.options.way == MEMORY else cold.sample_settings(bench, IO_WORKERS)
        if bench.settings:
            cold.restart(bench, bench.settings)
            first, _ = relations(bench, bench.options.shapes[0].tables)
            bench.add_table("Cold samples", [["", ""], *cold.disk_rows(bench, {"the disk, reading a table": first}),
                                             *cold.description(bench)])
        samples = [Sample(bench, shape) for shape in bench.options.shapes]
        for sample in bench.track(samples):
            bench.run_one(None, sample)
        if bench.options.way != MEMORY:
            bench.add_table(*self._reads(bench, samples))
        bench.add_table("How the extension served them", [
            ["", "searches by the model", "verified, %", "leaves requested", "used", "blocks of rows requested", "used"],
            *([sample.title, sample.counts["lookups"], 100 * sample.counts["verified"] / max(sample.counts["lookups"], 1),
               *(sample.counts[name] for name in AHEAD)] for sample in samples)])

    @staticmethod
    def _reads(bench, samples):
        """(title, rows): times and blocks read, and with a known latency the time that these take at the least."""
        latency, depth = bench.options.latency, int(bench.server.settings["effective_io_concurrency"])
        times = {result["key"]: {name: median(values) for name, values in result["samples"].items()}
                 for result in bench.results}
        rows = [["", "btree, ms", "served, ms", "speed-up", "blocks read: btree", "served",
                 *(["limit, ms", "served / limit"] if latency else [])]]
        for sample in samples:
            own = times[sample.key]
            reads = {name: round(median(values)) for name, values in sample.reads.items()}
            limit = [reads[SERVED] * latency / 1000 / depth] if latency else []
            rows.append([sample.title, own[BASELINE], own[SERVED], f"{own[BASELINE] / own[SERVED]:.2f}×", reads[BASELINE],
                         reads[SERVED], *limit, *(f"{own[SERVED] / most:.2f}" for most in limit)])
            if sample.shape.node != LOOSE and abs(reads[SERVED] - reads[BASELINE]) > ALIKE * reads[BASELINE]:
                bench.warn(f"{sample.title}: {BASELINE} has read {reads[BASELINE]:,} blocks, {SERVED} {reads[SERVED]:,}")
        if not latency:
            return "Cold", rows
        return f"At {latency / 1000:g} ms a read, {depth} at a time", rows


def asked(number):
    return f"asked_{number}"


def relations(bench, names):
    """(tables, indexes): a partitioned table's are those of its partitions."""
    rows = bench.connection.execute(
        """SELECT c.oid::regclass::text, ARRAY(SELECT indexrelid::regclass::text FROM pg_index WHERE indrelid = c.oid)
             FROM pg_class AS c LEFT JOIN pg_inherits ON inhrelid = c.oid
            WHERE c.relkind = 'r' AND coalesce(inhparent, c.oid) = ANY (%s::text[]::regclass[]) ORDER BY c.oid""",
        [list(names)]).fetchall()
    return [table for table, _ in rows], [index for _, indexes in rows for index in indexes]


class Sample(Measurement):
    """Of one shape."""

    def __init__(self, bench, shape):
        self.shape = shape
        self.count = max(int(bench.options.asked * shape.share), 1)
        super().__init__(shape.name, shape.title.format(count=self.count), unit="ms")
        self.tables, self.indexes = relations(bench, shape.tables)
        self.reads = {contender.name: [] for contender in bench.contenders}
        self.counts = dict.fromkeys(("lookups", "verified", *AHEAD), 0)  # of all rounds, if served
        self.cold = bench.options.way != MEMORY

    def run(self, bench, _indexes, contender, round_number):
        if round_number < 0:
            return 0.0  # each sample warms what it wants warm
        self._begin(bench, contender)
        before, statement = self._sql(bench, bench.options.rounds)
        if not self.cold:  # the session's caches are warm, too
            bench.connection.execute(before)
            bench.connection.execute(statement)
        before, statement = self._sql(bench, round_number)
        self._check_plan(bench, contender, statement)
        counted, reads = self._counters(bench, contender), self._blocks_read(bench)
        bench.connection.execute(before)
        slow = bench.server.slow_reads
        alone = slow and slow.alone()
        take = server_microseconds if self.cold else microseconds_taken(bench)
        times = LOOSE_TIMES if self.shape.node == LOOSE and not self.cold else 1
        taken = [take(bench.connection, statement) for _ in range(times)]
        microseconds, rows = fmean(microseconds for microseconds, _ in taken), taken[-1][1]
        if slow and not contender.has_model and self.shape.node != LOOSE \
                and bench.server.installation.major <= ONE_BY_ONE_UNTIL:
            slow.check(self.title, slow.alone() - alone, microseconds)
        self._check_reads(bench, contender, self._blocks_read(bench) - reads)
        for name, count in self._counters(bench, contender).items():
            self.counts[name] += count - counted[name]
        self.last_answer = self._contents(bench, contender, round_number) if self.shape.writes else rows
        return microseconds / 1000

    def note(self, contender):
        if self.cold and contender.has_model and not self.counts["prefetched"] + self.counts["rows_prefetched"]:
            return "nothing was requested ahead"
        return super().note(contender)

    def _begin(self, bench, contender):
        """A session of the contender's, with all in memory, or all but leaves and rows cold."""
        both = [*self.tables, *self.indexes]
        if self.shape.writes and not self.cold:
            files = cold.files_of(bench, both)
            cold.restart(bench, {}, lambda: bench.saved.put_back(files))
        elif self.shape.writes:
            cold.cold_restart(bench, both, bench.settings, bench.saved.put_back)
        elif self.cold and not cold.evict(bench, both, bench.settings):
            cold.cold_restart(bench, both, bench.settings)
        bench.connection.close()  # a session remembers how an index was served
        bench.connection = bench.server.connect()
        apply_settings(bench.connection, {**settings_of(contender), **(BY_INDEX if self.shape.node != LOOSE else {})})
        load.prewarm(bench, both, forks=(() if self.cold else ("main",)) + ("vm", "fsm"))
        for index in self.indexes:
            cold.warm_inner_pages_of(bench, index, contender)
            check_served(bench.connection, contender, index)
        cold_query.warm_questions(bench)
        for table in self.shape.tables:
            bench.connection.execute(f"EXPLAIN SELECT FROM {table}")  # reads the catalogs

    def _sql(self, bench, number):
        """(what is to be done before, the statement) of a round; in memory, the one after the last warms up."""
        options, keys = bench.options, self.shape.keys
        listed = bench.connection.execute(f"SELECT quote_literal(array_agg({keys} ORDER BY n)) FROM {asked(number)} "
                                          f"WHERE n <= {self.count}").fetchone()[0] if keys else None
        low = load.KEY_SPACE // (options.rounds + 1) * number - load.INT8_MAX
        values = {"asked": asked(number), "list": listed, "count": self.count, "file": bench.folder / asked(number),
                  "first": number * self.count + 1, "last": (number + 1) * self.count, "rows": options.rows,
                  "low": low, "high": low + load.KEY_SPACE // options.rows * self.count}
        return self.shape.before.format(**values), self.shape.statement.format(**values)

    def _check_plan(self, bench, contender, statement):
        """Raise WrongPlan unless the node is there if served, or if a table is read without an index."""
        if not statement.startswith(EXPLAINED):
            return
        nodes = list(plan_nodes(explain(bench.connection, statement)))
        found = {node["Custom Plan Provider"] for node in nodes if "Custom Plan Provider" in node}
        if self.shape.node not in found | {None} if contender.has_model else found:
            raise WrongPlan(f"{self.title}, {contender.name}: nodes of ours in the plan: {found or 'none'}")
        whole = {node["Relation Name"] for node in nodes if node["Node Type"] in ("Seq Scan", "Bitmap Heap Scan")}
        if self.shape.node != LOOSE and whole & set(self.tables):
            raise WrongPlan(f"{self.title}, {contender.name}: the plan reads {whole} without an index")

    def _blocks_read(self, bench):
        """Blocks of tables and indexes that were not in shared_buffers; before version 16, new ones count, too."""
        bench.connection.execute("SELECT pg_stat_force_next_flush()")
        return bench.connection.execute(
            """SELECT sum(heap_blks_read + coalesce(idx_blks_read, 0))::int8 FROM pg_statio_user_tables
                WHERE relid = ANY (%s::text[]::regclass[])""", [self.tables]).fetchone()[0]

    def _check_reads(self, bench, contender, reads):
        if self.cold and not reads:
            raise Failed(f"{self.title}, {contender.name}: no block was read: nothing was cold")
        if not self.cold and not self.shape.writes and reads:
            bench.warn(f"{self.title}, {contender.name}: {reads} blocks were read: not all was in memory")
        self.reads[contender.name].append(reads)

    def _counters(self, bench, contender):
        """Of all indexes together."""
        sums = dict.fromkeys(self.counts, 0)
        for index in self.indexes if contender.has_model else ():
            counts = learned.counters(bench, index)
            for name in sums:
                sums[name] += counts[name]
        return sums

    def _contents(self, bench, contender, round_number):
        """Number and hash of rows in what was written; if served, amcheck looks at the indexes in the last round."""
        with bench.server.reads_at_once():
            if contender.has_model and round_number == bench.options.rounds - 1:
                bench.connection.execute("CREATE EXTENSION IF NOT EXISTS amcheck")
                for index in self.indexes:
                    bench.connection.execute("SELECT bt_index_check(%s::regclass, heapallindexed => true)", [index])
            return [bench.connection.execute(f"SELECT count(*), sum(hash_record_extended(t, 0)) FROM {table} AS t")
                    .fetchone() for table in self.shape.writes]


EXPERIMENT = Shapes
