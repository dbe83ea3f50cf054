"""Point reads and short scans by primary key, index and table larger than memory: see bench/README.md.

After "Learned Indexes for a Google-scale Disk-based Database" (Abu-Libdeh and others) and "Updatable Learned Indexes
Meet Disk-Resident DBMS" (Lan and others).  shared_buffers are a share of the index, and reads go past all other caches.
"""

import dataclasses
from statistics import median

from harness import cold, latency, learned, load
from harness.contenders import BASELINE, Indexes, choose
from harness.experiment import Experiment
from harness.measure import BY_INDEX, Failed, WrongAnswer, apply_settings, check_prepared

TABLE = "t"
SCAN_ROWS = 20
CHECKED = 100  # questions whose answers are compared
PAGE = 8192
FLOOR_PAGES = 128  # of shared_buffers: sessions keep pages pinned, and look into catalogs
IO_WORKERS = 8
INDEX_ENTRY_BYTES = 23
MIN_ROWS = 100_000
OWN_CONNECTIONS = 8  # beside the clients'


@dataclasses.dataclass(frozen=True)
class Operation:
    name: str
    title: str
    statement: str  # {key} is SQL
    node_type: str


OPERATIONS = (
    Operation("point", "point, index only", f"SELECT k FROM {TABLE} WHERE k = {{key}}", "Index Only Scan"),
    Operation("point_rows", "point, with row", f"SELECT v FROM {TABLE} WHERE k = {{key}}", "Index Scan"),
    Operation("scan", f"scan of {SCAN_ROWS}, index only",
              f"SELECT k FROM {TABLE} WHERE k >= {{key}} ORDER BY k LIMIT {SCAN_ROWS}", "Index Only Scan"),
    Operation("scan_rows", f"scan of {SCAN_ROWS}, with rows",
              f"SELECT k, v FROM {TABLE} WHERE k >= {{key}} ORDER BY k LIMIT {SCAN_ROWS}", "Index Scan"),
)


@dataclasses.dataclass
class Sample:
    rate: float  # operations/s
    p50: float  # µs
    p99: float
    mean: float
    index: float  # blocks read an operation
    table: float
    ahead: float  # blocks of the table asked for ahead of need, an operation


def numbers(text, kind, option):
    try:
        found = [kind(part) for part in text.split(",") if part.strip()]
    except ValueError:
        found = []
    if not found or min(found) <= 0:
        raise SystemExit(f"bench: {option} takes positive numbers, separated by commas")
    return found


class Larger(Experiment):
    title = "Point reads and short scans, larger than memory"

    def add_options(self, parser):
        parser.set_defaults(contenders="btree,served", rounds=3)
        parser.add_argument("--only", default=",".join(operation.name for operation in OPERATIONS), metavar="LIST",
                            help="operations to run")
        parser.add_argument("--shares", default="1,10,100", metavar="LIST",
                            help=f"shared_buffers in %% of the index, at least {FLOOR_PAGES * PAGE // 2**20} MB")
        parser.add_argument("--clients", default="1,16", metavar="LIST", help="numbers of clients")
        parser.add_argument("--seconds", type=int, default=10, help="s of a sample")
        parser.add_argument("--warm-up", type=int, default=3, help="s before each sample")
        parser.add_argument("--equal-memory", action="store_true",
                            help="give btree what the model takes, in shared_buffers (a restart before each sample)")

    def check_options(self, options):
        wanted = {part.strip() for part in options.only.split(",") if part.strip()}
        options.operations = [operation for operation in OPERATIONS if operation.name in wanted]
        if not wanted or len(options.operations) < len(wanted):
            raise SystemExit(f"bench: --only takes some of {','.join(operation.name for operation in OPERATIONS)}")
        if any(contender.am != BASELINE for contender in choose(options.contenders)):
            raise SystemExit("bench: --contenders takes btree, served and served-plain: all have one primary key")
        options.shares = numbers(options.shares, float, "--shares")
        options.clients = numbers(options.clients, int, "--clients")
        if options.latency:
            raise SystemExit("bench: --latency is of a block's first read alone, and here blocks are read again and again")
        if options.rows < MIN_ROWS or options.seconds < 1 or options.warm_up < 0:
            raise SystemExit(f"bench: --rows must be at least {MIN_ROWS}, --seconds 1, --warm-up 0")

    def bytes_needed(self, options, contenders):
        """While loading."""
        return options.rows * (load.HEAP_BYTES_A_ROW + INDEX_ENTRY_BYTES)

    def settings(self, options):
        return {"max_connections": str(max(options.clients) + OWN_CONNECTIONS)}

    def load(self, bench):
        self.indexes = Indexes(TABLE, "k", bench.contenders)
        load.random_keys(bench, TABLE, bench.options.rows)
        self.index = load.primary_key(bench, self.indexes)
        self.index_bytes = bench.connection.execute("SELECT pg_relation_size(%s::regclass)", [self.index]).fetchone()[0]
        bench.connection.execute("CREATE EXTENSION IF NOT EXISTS pg_prewarm")
        self.model_bytes = 0
        if any(contender.has_model for contender in bench.contenders):
            learned.train_and_check(bench, self.index)
            self.model_bytes = learned.model_of(bench, self.index)["bytes"]

    # ---- memory ----

    def _pages(self, bench, share, contender):
        """Pages of shared_buffers."""
        extra = self.model_bytes if bench.options.equal_memory and not contender.has_model else 0
        return max(int(self.index_bytes * share / 100 + extra) // PAGE, FLOOR_PAGES)

    def _run_with(self, bench, pages):
        """A server with so many pages of shared_buffers; a model that it makes is ready."""
        settings = cold.sample_settings(bench, IO_WORKERS, shared_buffers=f"{pages * PAGE // 1024}kB")
        if cold.direct_io(bench):
            settings[cold.DIRECT_IO] = "data"
        if any(bench.server.settings.get(name) != value for name, value in settings.items()):
            cold.cold_restart(bench, (TABLE, self.index), settings)
            if self.model_bytes:
                learned.train_and_check(bench, self.index)

    def _describe(self, bench):
        rows = [["", ""], ["index, MB", self.index_bytes / 1e6],
                ["table, MB", bench.connection.execute("SELECT pg_table_size(%s::regclass)",
                                                       [TABLE]).fetchone()[0] / 1e6],
                ["model, MB", self.model_bytes / 1e6]]
        for share in bench.options.shares:
            pages = self._pages(bench, share, self.indexes.contenders[-1])
            rows.append([f"shared_buffers, {share:g} %", f"{pages * PAGE / 1e6:.3g} MB; the model is "
                         f"{100 * self.model_bytes / pages / PAGE:.2g} % of it"])
            if pages * PAGE > 1.01 * self.index_bytes * share / 100:
                bench.warn(f"shared_buffers are {100 * pages * PAGE / self.index_bytes:.0f} % of the index, not "
                           f"{share:g} %: less than {FLOOR_PAGES * PAGE // 2**20} MB are not enough for the sessions")
        direct = cold.direct_io(bench)
        rows.append(["reads", "past the operating system's cache (debug_io_direct)" if direct else "through it"])
        if not direct:
            bench.warn("reads go through the operating system's cache, which may hold all: latencies are not a disk's")
        bench.add_table("Memory", rows)

    # ---- measurements ----

    def measure(self, bench):
        self._describe(bench)
        found = {}  # (share, clients, operation) -> {contender: [samples]}
        for share in bench.options.shares:
            self._check_answers(bench, share)
            for clients in bench.options.clients:
                for operation in bench.options.operations:
                    found[share, clients, operation] = self._one(bench, share, clients, operation)
        self._report(bench, found)

    def _one(self, bench, share, clients, operation):
        samples = {contender.name: [] for contender in bench.contenders}
        for round_number in range(bench.options.rounds):
            for contender in bench.in_turn(bench.contenders, round_number):
                samples[contender.name].append(self._sample(bench, share, clients, operation, contender, round_number))
        bench.say(f"{_title(share, clients, operation)}: " + ", ".join(
            f"{name} {median(sample.rate for sample in own):,.0f}/s" for name, own in samples.items()))
        return samples

    def _sample(self, bench, share, clients, operation, contender, round_number):
        options, pages = bench.options, self._pages(bench, share, contender)
        self._run_with(bench, pages)
        self.indexes.show_only(bench.connection, contender)
        check_prepared(bench.connection, operation.statement.format(key=load.key_of("$1")), self.index,
                       operation.node_type)
        scripts = [(f"\\set i random(1, {options.rows})\n{operation.statement.format(key=load.key_of(':i'))};\n", 1)]
        settings = dict(contender.settings)
        # As much of the index as there is room for; then what the operation itself keeps in memory.
        bench.connection.execute("SELECT pg_prewarm(%s::regclass, 'buffer', 'main', 0, %s)",
                                 [self.index, min(pages, self.index_bytes // PAGE) - 1])
        if options.warm_up:
            latency.run(bench, scripts, settings, ("-T", options.warm_up), clients, seed=2 * round_number + 1)
        counted, before = self._counters(bench), cold.blocks_read(bench, TABLE, self.index)
        # The same keys for every contender of a round.
        run = latency.run(bench, scripts, settings, ("-T", options.seconds), clients, seed=2 * round_number + 2)
        after = cold.blocks_read(bench, TABLE, self.index)
        now_counted = self._counters(bench)
        learned.check_used(contender, counted, now_counted, len(run), _title(share, clients, operation))
        table, index = ((now - then) / len(run) for now, then in zip(after, before))
        ahead = (now_counted["rows_prefetched"] - counted["rows_prefetched"]) / len(run)
        return Sample(run.rate(), run.percentile(50), run.percentile(99), run.mean(), index, table, ahead)

    def _counters(self, bench):
        """Without the extension, none of these can move."""
        return learned.counters(bench, self.index) if self.model_bytes else {"lookups": 0, "rows_prefetched": 0}

    def _check_answers(self, bench, share):
        for operation in bench.options.operations:
            answers = {}
            key = load.key_of(load.drawn_row("n", bench.options.rows))
            for contender in bench.contenders:
                self._run_with(bench, self._pages(bench, share, contender))
                self.indexes.show_only(bench.connection, contender)
                apply_settings(bench.connection, BY_INDEX)
                answers[contender.name] = bench.connection.execute(
                    f"SELECT count(*), sum(hashtextextended(s::text, 0)) FROM generate_series(1, {CHECKED}) AS n "
                    f"CROSS JOIN LATERAL ({operation.statement.format(key=key)}) AS s").fetchone()
            if len(set(answers.values())) > 1:
                raise WrongAnswer(f"{operation.title}: the contenders disagree: {answers}")
            if answers[bench.contenders[0].name][0] < CHECKED:
                raise Failed(f"{operation.title}: rows are missing: {answers}")

    # ---- report ----

    def _report(self, bench, found):
        names = [contender.name for contender in bench.contenders]
        figures = {"index": "index", "table": "table", "ahead": "of these ahead", "mean": "mean, µs"}
        blocks = [["", *(f"{name}: {title}" for name in names for title in figures.values())]]
        for (share, clients, operation), samples in found.items():
            key, title = f"{operation.name}_{share:g}_{clients}", _title(share, clients, operation)
            of = lambda what: {name: [getattr(sample, what) for sample in own]  # noqa: E731
                               for name, own in samples.items()}
            bench.add_result(key, title, "operations/s", of("rate"), rate=True)
            for percentile in ("p50", "p99"):
                bench.add_result(f"{key}_{percentile}", f"{title}, {percentile}", "µs", of(percentile))
            blocks.append([title, *(median(of(what)[name]) for name in names for what in figures)])
        bench.add_table("Blocks read an operation, and its mean latency", blocks)
        for clients in bench.options.clients:
            for title, y, value in (("Latency at the 99th percentile", "µs", lambda sample: sample.p99),
                                    ("Blocks read in an operation", "blocks of 8 kB, index and table",
                                     lambda sample: sample.index + sample.table)):
                bench.add_chart(f"{title}, {_of_clients(clients)}", "operation, shared_buffers in % of the index", y, {
                    name: [(f"{operation.title}, {share:g} %", median(map(value, samples[name])))
                           for (share, number, operation), samples in found.items() if number == clients]
                    for name in names}, kind="bars", log_y=y == "µs")


def _of_clients(clients):
    return f"{clients} client{'s' if clients > 1 else ''}"


def _title(share, clients, operation):
    return f"{operation.title}; {share:g} % of the index, {_of_clients(clients)}"


EXPERIMENT = Larger
