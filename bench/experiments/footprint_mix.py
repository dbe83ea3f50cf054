"""Half reads, half updates of rows by their primary key, as YCSB's A: log, memory, and the workers' processor time.

pgbench's prepared statements on one table of narrow rows; YCSB's own client is bench/ycsb.
"""

from harness import learned, load
from harness.clients import SERVED_HEAD, Clients, Length, run_pgbench, session_settings
from harness.contenders import EXTENSION
from harness.memory import private_bytes, segments_bytes
from harness.workers import WorkerWatch, wait_for_end

TABLE, INDEX = "usertable", "usertable_pkey"
FIELD_BYTES = 100
BYTES_A_ROW = 450  # table, with dead rows, and index
ZIPF = 1.01  # pgbench wants more than 1; YCSB's constant is 0.99
MEMORY_STATEMENTS = 2_000  # after which a session's memory is read
KEYS = {"text": lambda row: f"'user' || lpad(({load.key_of(row)} & {load.INT8_MAX})::text, 19, '0')",
        "int8": load.key_of}


def run(bench):
    options = bench.options
    _load(bench)
    bench.say(f"mix: {options.minutes:g} minutes, {options.clients} clients")
    mix = Mix(bench)
    bench.run_one(None, mix)
    mix.describe()
    bench.connection.execute(f"DROP TABLE {TABLE}")


def _load(bench):
    options, connection = bench.options, bench.connection
    key = KEYS[options.key]
    load.fill(bench, TABLE, f"k {options.key} NOT NULL, field text NOT NULL",
              f"SELECT {key('i')}, rpad(i::text, {FIELD_BYTES}, 'x') "
              f"FROM generate_series(1::int8, {options.rows}) AS i")
    connection.execute(f"ALTER TABLE {TABLE} ADD PRIMARY KEY (k)")
    load.prewarm(bench, [TABLE, INDEX])
    learned.train_and_check(bench, INDEX)


class Mix(Clients):
    """Operations a second, and what they cost: see describe()."""

    def __init__(self, bench):
        options = bench.options
        super().__init__("mix", f"50 % reads, 50 % updates, {options.key} key, {options.clients} clients",
                         "operations/s", clients=options.clients, program=self._sample, before=self._vacuum)
        self.bench = bench
        self.costs = {contender.name: [] for contender in bench.contenders}
        self.length = Length(max(1, round(options.minutes * 60 / len(bench.contenders) / (options.rounds + 1))))
        key = KEYS[options.key](":i")
        draw = f"\\set r random_zipfian(1, {options.rows}, {ZIPF})\n\\set i 1 + permute(:r - 1, {options.rows})\n"
        self.read, self.write = (f"SELECT field FROM {TABLE} WHERE k = {key};\n",
                                 f"UPDATE {TABLE} SET field = rpad(:r::text, {FIELD_BYTES}, 'y') WHERE k = {key};\n")
        self.scripts = [(draw + self.read, 1), (draw + self.write, 1)]

    def _vacuum(self):
        self.bench.connection.execute(f"VACUUM (INDEX_CLEANUP ON, TRUNCATE OFF) {TABLE}")

    def _sample(self, contender, seed):
        """Until the last worker has ended: it works for this contender."""
        bench, log = self.bench, "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::int8"
        before, = bench.connection.execute(log).fetchone()
        with WorkerWatch(bench.server, INDEX) as watch:
            transactions, rate = run_pgbench(bench, ["-M", "prepared"], session_settings(contender), self.length,
                                             self.clients, seed, self.scripts)
            after, = bench.connection.execute(log).fetchone()
            wait_for_end(bench)
        self.costs[contender.name].append({
            "log": (after - before) / transactions, "cpu": watch.cpu_seconds(), "seconds": transactions / rate,
            "workers": watch.workers, "trainings": len(watch.training_ms),
            "training_ms": sum(watch.training_ms.values())})
        return transactions, rate

    def describe(self):
        bench = self.bench
        measured = {name: samples[1:] for name, samples in self.costs.items()}  # without the warm-up
        names = list(measured)
        bench.add_result("mix_log", "mix: log (WAL)", "bytes an operation",
                         {name: [sample["log"] for sample in measured[name]] for name in names}, timed=False)
        total = lambda name, what: sum(sample[what] for sample in measured[name])  # noqa: E731
        rows = [[title, *(figure(name) for name in names)] for title, figure in (
            ("seconds, without the warm-up", lambda name: total(name, "seconds")),
            ("workers seen", lambda name: total(name, "workers")),
            ("CPU of workers, s", lambda name: total(name, "cpu")),
            ("CPU of workers, % of one core", lambda name: 100 * total(name, "cpu") / total(name, "seconds")),
            ("trainings seen", lambda name: total(name, "trainings")),
            ("trainings, ms together", lambda name: total(name, "training_ms")))]
        memory = [_session_memory(bench, contender, self) for contender in bench.contenders]
        rows += [["memory of a session, kB", *(private / 1024 for private, _ in memory)],
                 ["... in its memory contexts, kB", *(contexts / 1024 for _, contexts in memory)]]
        bench.add_table("What the mix costs", [["", *names], *rows])
        bench.add_chart("Processor time of background workers, by round", "round", "% of one core", {
            name: [(number, 100 * sample["cpu"] / sample["seconds"]) for number, sample in enumerate(samples, 1)]
            for name, samples in measured.items()})
        models, = bench.connection.execute(f"SELECT {EXTENSION}_model_memory()").fetchone()
        size, = bench.connection.execute("SELECT pg_relation_size(%s::regclass)", [INDEX]).fetchone()
        bench.add_table("Shared memory of the mix", [
            ["", "kB"], ["models", models / 1024], ["the index", size / 1024],
            ["dynamic shared memory of the server", segments_bytes(bench) / 1024]])
        bench.add_table("How the extension served the mix", [SERVED_HEAD, *self.served_rows()])


def _session_memory(bench, contender, mix):
    """(bytes of its own, bytes of its memory contexts) of a session that has run both statements for a while."""
    with bench.server.connect(session_settings(contender)) as session:
        for statement in (mix.read, mix.write):
            name = "r" if statement is mix.read else "w"
            session.execute(f"PREPARE {name} (int8) AS {statement.replace(':i', '$1').replace(':r', '$1')}")
            for row in range(1, MEMORY_STATEMENTS + 1):
                session.execute(f"EXECUTE {name}({row})")
        contexts, = session.execute("SELECT sum(total_bytes)::int8 FROM pg_backend_memory_contexts").fetchone()
        return private_bytes(session.info.backend_pid), contexts
