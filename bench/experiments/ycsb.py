"""YCSB's workloads A to F by its own client, in memory and larger than memory: see bench/README.md.

One table with an ordinary primary key, for all contenders: the setting of the client's sessions is all that differs.
"""

import dataclasses
import os
import time
from statistics import median

from harness import cold, learned, load
from harness.contenders import BTREE_INDEXES, EXTENSION, check_served
from harness.experiment import Experiment
from harness.measure import NESTED_LOOP, Failed, WrongAnswer, apply_settings, explain, index_node

from . import keys_sets
from .ycsb_client import FIGURES, Client, operations_by_key

TABLE, INDEX, KEY, FIELDS = "usertable", "usertable_pkey", "ycsb_key", 10
PARTS = ("in-memory", "larger")
WORKLOADS = "abcfde"  # the order that YCSB recommends: those that insert come last
DISTRIBUTIONS = ("zipfian", "uniform")
LATEST = "d"  # reads what is new instead
COLLATIONS = {"c": keys_sets.C_COLLATION, "libc": keys_sets.LIBC_COLLATION, "icu": keys_sets.ICU_COLLATION}
MIN_ROWS = 10_000
LARGER = 4  # times shared_buffers: table and index
MOSTLY, MOSTLY_FIGURES = {"c": "READ", "e": "SCAN"}, ("p50", "p99")  # what a workload does, and of this, larger

ROW_BYTES = 1280  # table and index
INSERTS_A_CORE, UPDATES_A_CORE = {"d": 1000, "e": 300}, 5000  # a second, for the size that all of it may reach
BY_MODEL_MIN = 0.9  # of the lookups of a sample, or the report says so
FULL = 0.95  # of shared_buffers
CLIENTS_GONE_SECONDS = 30
CHECKED_ROWS, CHECKED_SCANS = 10_000, 100


@dataclasses.dataclass(frozen=True)
class Case:
    part: str
    workload: str
    distribution: str
    threads: int

    @property
    def key(self):
        return f"{self.part.replace('-', '_')}_{self.workload}_{self.distribution}_{self.threads}"

    @property
    def title(self):
        requests = "latest" if (self.workload, self.distribution) == (LATEST, "zipfian") else self.distribution
        return (f"{self.workload.upper()}, {requests}, {self.threads} thread{'s' * (self.threads > 1)}, "
                f"{self.part.replace('-', ' ')}")

    @property
    def properties(self):
        """YCSB's, beside those of the workload."""
        return {} if self.distribution == "zipfian" else {"requestdistribution": self.distribution}


class Ycsb(Experiment):
    title = "YCSB"

    def add_options(self, parser):
        parser.set_defaults(contenders="btree,served", rows=5_000_000, rounds=3)
        parser.add_argument("--only", default=",".join(PARTS), metavar="LIST", help="parts to run")
        parser.add_argument("--workloads", default=",".join(sorted(WORKLOADS)), metavar="LIST", help="of a to f")
        parser.add_argument("--distributions", default=",".join(DISTRIBUTIONS), metavar="LIST",
                            help="of the keys that are asked for")
        parser.add_argument("--threads", default="1,4,16", metavar="LIST", help="threads of the client")
        parser.add_argument("--seconds", type=int, default=20, metavar="N", help="seconds of a sample")
        parser.add_argument("--warm-up", type=int, default=5, metavar="N",
                            help="seconds before that, which do not count: the client is a Java program")
        parser.add_argument("--operations", type=int, metavar="N", help="end a sample after so many, before its time")
        parser.add_argument("--collation", default="c", choices=COLLATIONS, help="of the key")

    def check_options(self, options):
        for name, known in (("only", PARTS), ("workloads", WORKLOADS), ("distributions", DISTRIBUTIONS)):
            wanted = {value.strip() for value in getattr(options, name).split(",") if value.strip()}
            if not wanted or not wanted <= set(known):
                raise SystemExit(f"bench: --{name} takes some of {','.join(sorted(known))}")
            setattr(options, name, [value for value in known if value in wanted])
        try:
            options.threads = sorted({int(value) for value in options.threads.split(",")})
        except ValueError:
            options.threads = [0]
        if min(*options.threads, options.seconds) < 1 or options.warm_up < 0:
            raise SystemExit("bench: --threads and --seconds must be positive, and --warm-up not negative")
        if options.operations is not None and options.operations < max(options.threads):
            raise SystemExit("bench: --operations must be at least as many as --threads")
        if options.rows < MIN_ROWS:
            raise SystemExit(f"bench: --rows must be at least {MIN_ROWS}")
        if not set(options.contenders.split(",")) <= {"btree", "served", "served-plain"}:
            raise SystemExit("bench: --contenders takes some of btree,served,served-plain")

    def bytes_needed(self, options, contenders):
        """With what the workloads insert, and what their updates leave behind until the next VACUUM."""
        core_seconds = (os.cpu_count() or 1) * (options.seconds + options.warm_up)
        runs = len(contenders) * options.rounds * len(options.distributions) * len(options.threads)
        inserted = runs * core_seconds * sum(INSERTS_A_CORE.get(workload, 0) for workload in options.workloads)
        updated = UPDATES_A_CORE * core_seconds * bool({"a", "b", "f"} & set(options.workloads))
        if "in-memory" in options.only:
            return ROW_BYTES * (options.rows + inserted + updated)
        return ROW_BYTES * options.rows // LARGER

    def settings(self, options):
        return {"max_connections": str(max(options.threads) + 20)}

    # ---- the table ----

    def load(self, bench):
        options, connection = bench.options, bench.connection
        collation = COLLATIONS[options.collation]
        if not keys_sets.has_collation(bench, collation):
            raise SystemExit(f"bench: the server has no collation {collation}: choose another with --collation")
        self.client = Client(bench, TABLE)
        connection.execute(f"CREATE TABLE {TABLE} ({KEY} text COLLATE {collation} PRIMARY KEY, "
                           + ", ".join(f"field{number} text" for number in range(FIELDS)) + ")")
        began = time.monotonic()
        self.client.load(options.rows, threads=max(os.cpu_count() or 1, 1))
        bench.say(f"loaded {options.rows / (time.monotonic() - began):,.0f} rows/s, with the primary key")
        load.settle(bench, TABLE)

    # ---- the order of a run ----

    def measure(self, bench):
        options = bench.options
        self.done = 0
        self.samples = (len(options.only) * len(options.workloads) * len(options.distributions) * len(options.threads)
                        * options.rounds * len(bench.contenders))
        self.began = time.monotonic()
        self.uses = {}  # {(part, workload, contender): {counter: count}}, of all samples
        for part in options.only:
            self._begin(bench, part)
            cases = [Case(part, workload, distribution, threads) for workload in options.workloads
                     for distribution in options.distributions for threads in options.threads]
            found = {case: self._case(bench, case) for case in cases}
            self._add_latencies(bench, part, found)
            self._add_charts(bench, part, found)
            self._check_answers(bench)
        self._add_uses(bench)

    def _begin(self, bench, part):
        """Memory as the part wants it, filled, and the model trained."""
        size = self._size(bench)
        if part == "larger":
            settings = cold.sample_settings(bench, cold.IO_CONCURRENCY,
                                            shared_buffers=f"{max(size // LARGER // 1024, 128)}kB")
            cold.cold_restart(bench, [TABLE, INDEX], settings)
            bench.add_table("Larger than memory", [
                ["", ""], ["table and index, MB", size / 1e6], *cold.description(bench)])
        self._fill_buffers(bench)
        for contender in bench.contenders:
            apply_settings(bench.connection, self._settings_of(contender))
            if contender.has_model:
                learned.train_and_check(bench, INDEX)
            self._check_plans(bench, contender)
        bench.say(f"{part}: table and index have {size / 1e6:,.0f} MB")

    @staticmethod
    def _fill_buffers(bench):
        """The index, and as much of the table as there is room for: no sample finds free buffers."""
        load.prewarm(bench, [INDEX])
        bench.connection.execute(
            """SELECT pg_prewarm(t.oid, 'buffer', 'main', 0, least(t.blocks, b.setting::int8 - i.blocks) - 1)
               FROM pg_settings AS b, (SELECT %(table)s::regclass AS oid, pg_relation_size(%(table)s) / 8192 AS blocks)
               AS t, (SELECT pg_relation_size(%(index)s) / 8192 AS blocks) AS i
               WHERE b.name = 'shared_buffers' AND b.setting::int8 > i.blocks""", {"table": TABLE, "index": INDEX})

    @staticmethod
    def _settings_of(contender):
        """Serving alone: all other settings are left as they are for everybody, min_leaves too."""
        return {name: value for name, value in contender.settings
                if name not in (f"{EXTENSION}.enable", f"{EXTENSION}.min_leaves")}

    def _case(self, bench, case):
        """All rounds; returns {contender: [Run, ...]}, and adds the results."""
        found = {contender.name: [] for contender in bench.contenders}
        for round_number in range(bench.options.rounds):
            for contender in bench.in_turn(bench.contenders, round_number):
                found[contender.name].append(self._sample(bench, case, contender))
                self.done += 1
        bench.add_result(case.key, case.title, "operations/s",
                         {name: [run.throughput for run in runs] for name, runs in found.items()}, rate=True)
        left = (time.monotonic() - self.began) / self.done * (self.samples - self.done)
        bench.say(f"{case.title}: " + ", ".join(f"{name} {median(run.throughput for run in runs):,.0f}"
                                                for name, runs in found.items())
                  + f" operations/s; {self.done} of {self.samples} samples, about {left / 60:.0f} min left")
        if case.part == "larger" and case.workload in MOSTLY:
            operation = MOSTLY[case.workload]
            for figure in MOSTLY_FIGURES:
                bench.add_result(f"{case.key}_{figure}", f"{case.title}: {figure}", "µs",
                                 {name: [run.latencies[operation][FIGURES.index(figure)] for run in runs]
                                  for name, runs in found.items()})
        return found

    def _sample(self, bench, case, contender):
        bench.connection.execute("CHECKPOINT")
        before = self._counters(bench)
        run = self.client.run(case.workload, case.properties, self._settings_of(contender), case.threads)
        self._wait_for_clients(bench)
        counted = {name: count - before[name] for name, count in self._counters(bench).items()}
        self._check_use(bench, case, contender, run, counted)
        if "UPDATE" in run.counts:
            bench.connection.execute(f"VACUUM {TABLE}")
        return run

    # ---- checks ----

    @staticmethod
    def _size(bench):
        return bench.connection.execute("SELECT pg_table_size(%s) + pg_relation_size(%s)", [TABLE, INDEX]).fetchone()[0]

    @staticmethod
    def _check_plans(bench, contender):
        """In a session with the settings, and with a planner that is free to choose."""
        check_served(bench.connection, contender, INDEX)
        where = f"FROM {TABLE} WHERE {KEY} >= 'user5' ORDER BY {KEY} LIMIT 50"
        for statement in (f"SELECT * FROM {TABLE} WHERE {KEY} = 'user5'", f"SELECT * {where}",
                          f"UPDATE {TABLE} SET field0 = '' WHERE {KEY} = 'user5'"):
            index_node(explain(bench.connection, statement), INDEX, "Index Scan")

    @staticmethod
    def _counters(bench):
        """The server's statistics and the extension's, of all sessions that have ended."""
        bench.connection.execute("SELECT pg_stat_force_next_flush()")
        scans, sequential, inserted = bench.connection.execute(
            """SELECT i.idx_scan, t.seq_scan, t.n_tup_ins FROM pg_stat_user_tables AS t
               JOIN pg_stat_user_indexes AS i USING (relid) WHERE i.indexrelid = %s::regclass""", [INDEX]).fetchone()
        table_read, index_read = cold.blocks_read(bench, TABLE, INDEX)
        return {"idx_scan": scans, "seq_scan": sequential, "n_tup_ins": inserted, "table_read": table_read,
                "index_read": index_read, **learned.counters(bench, INDEX)}

    @staticmethod
    def _wait_for_clients(bench):
        """Sessions leave their counts when they end."""
        deadline = time.monotonic() + CLIENTS_GONE_SECONDS
        while bench.connection.execute("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'ycsb'") \
                .fetchone()[0]:
            if time.monotonic() > deadline:
                raise Failed(f"sessions of YCSB's client are still there after {CLIENTS_GONE_SECONDS} s")
            time.sleep(0.05)

    def _check_use(self, bench, case, contender, run, counted):
        """That the sessions had their setting, and used the index for everything."""
        by_key, inserted = operations_by_key(run.counts), run.counts.get("INSERT", 0)
        if counted["idx_scan"] < by_key or counted["seq_scan"] or counted["n_tup_ins"] != inserted:
            raise Failed(f"{case.title}, {contender.name}: YCSB counts {run.counts}, but the server {counted}")
        if not contender.has_model and (counted["lookups"] or counted["inserts"]):
            raise Failed(f"{case.title}: {INDEX} was served for {contender.name}: {counted}")
        if contender.has_model and not counted["lookups"]:
            raise Failed(f"{case.title}: {INDEX} was not served for {contender.name}: {counted}")
        if contender.has_model and counted["lookups"] < BY_MODEL_MIN * by_key:
            bench.warn(f"{case.title}: of {by_key:,} lookups of {contender.name} the model was asked "
                       f"{counted['lookups']:,}")
        uses = self.uses.setdefault((case.part, case.workload, contender), {})
        for name, count in {**counted, "by_key": by_key, "inserted": inserted}.items():
            uses[name] = uses.get(name, 0) + count
        if case.part == "in-memory" and self._size(bench) > FULL * self._shared_buffers(bench):
            bench.warn(f"{case.title}: table and index have outgrown shared_buffers: figures include reads")

    @staticmethod
    def _shared_buffers(bench):
        return bench.connection.execute("SELECT setting::int8 * 8192 FROM pg_settings WHERE name = 'shared_buffers'") \
            .fetchone()[0]

    def _check_answers(self, bench):
        """What the contenders find in the end; that no row was lost; and that the index has them all."""
        connection = bench.connection
        rows = connection.execute(f"SELECT count(*) FROM (SELECT {KEY} FROM {TABLE} OFFSET 0) AS s").fetchone()[0]
        if rows != self.client.records:
            raise WrongAnswer(f"YCSB has inserted {self.client.records} records, but {TABLE} has {rows} rows")
        share = min(100, 100 * CHECKED_ROWS / rows)
        some = f"(SELECT {KEY} FROM {TABLE} TABLESAMPLE SYSTEM ({share}) REPEATABLE (1))"
        answers = {}
        for contender in bench.contenders:
            apply_settings(connection, {**NESTED_LOOP, **self._settings_of(contender)})
            answers[contender.name] = [connection.execute(statement).fetchone() for statement in (
                f"SELECT count(*), sum(hashtextextended(u::text, 0)) FROM {some} AS s JOIN {TABLE} AS u USING ({KEY})",
                f"""SELECT count(*), sum(hashtextextended(r.{KEY}, n)) FROM
                    (SELECT {KEY} FROM {some} AS s LIMIT {CHECKED_SCANS}) AS s CROSS JOIN LATERAL
                    (SELECT u.{KEY}, row_number() OVER () AS n FROM (SELECT {KEY} FROM {TABLE}
                     WHERE {KEY} >= s.{KEY} ORDER BY {KEY} LIMIT 100) AS u) AS r""")]
        if len(set(map(repr, answers.values()))) > 1:
            raise WrongAnswer(f"the contenders disagree: {answers}")
        apply_settings(connection, {BTREE_INDEXES: "none"})
        connection.execute("CREATE EXTENSION IF NOT EXISTS amcheck")
        connection.execute("SELECT bt_index_check(%s, true)", [INDEX])
        connection.execute("RESET ALL")
        bench.say(f"contenders agree, and table and index too: {rows:,} rows")

    # ---- reports ----

    @staticmethod
    def _add_latencies(bench, part, found):
        names = [contender.name for contender in bench.contenders]
        rows = [["", *(f"{name} {figure}" for figure in FIGURES for name in names)]]
        for case, runs in found.items():
            latencies = {name: [run.latencies for run in runs[name]] for name in names}
            for operation in sorted(set.intersection(*(set(one) for every in latencies.values() for one in every))):
                rows.append([f"{case.title.rpartition(',')[0]}: {operation.lower()}",
                             *(median(one[operation][place] for one in latencies[name])
                               for place in range(len(FIGURES)) for name in names)])
        bench.add_table(f"Latency, {part.replace('-', ' ')}, µs", rows)

    @staticmethod
    def _add_charts(bench, part, found):
        for distribution in bench.options.distributions:
            cases = [case for case in found if case.distribution == distribution]
            bench.add_chart(f"YCSB throughput, {distribution} keys, {part.replace('-', ' ')}", "workload and client threads",
                            "operations/s", {contender.name: [
                                (f"{case.workload.upper()} {case.threads}",
                                 median(run.throughput for run in found[case][contender.name])) for case in cases]
                                for contender in bench.contenders}, kind="bars")

    def _add_uses(self, bench):
        percent = lambda count, of: 100 * count / of if of else None  # noqa: E731
        served = [["", "lookups and scans", "model lookups, % of these", "verified, %", "inserts",
                   "placed by the model, %", "trainings"]]
        reads = [["blocks read an operation", "of the index", "of the table"]]
        for (part, workload, contender), uses in self.uses.items():
            title = f"{workload.upper()}, {part.replace('-', ' ')}, {contender.name}"
            operations = uses["by_key"] + uses["inserted"]
            reads.append([title, uses["index_read"] / operations, uses["table_read"] / operations])
            if contender.has_model:
                served.append([title, uses["by_key"], percent(uses["lookups"], uses["by_key"]),
                               percent(uses["verified"], uses["lookups"]), uses["inserted"],
                               percent(uses["inserts_placed"], uses["inserts"]), uses["trainings"]])
        if len(served) > 1:
            bench.add_table("How the index was served", served)
        bench.add_table("Blocks read", reads)


EXPERIMENT = Ycsb
