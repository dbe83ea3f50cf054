"""pgbench, sysbench, and many clients at once, on ordinary primary keys: see bench/README.md.

Scripts and schemas of pgbench and sysbench are their own; both contenders use the same tables, in turn.
"""

import os
import shutil
from functools import partial

from harness import learned, load, perf
from harness.clients import (SERVED_HEAD, Clients, Length, check_contenders, clients_in_words, pgbench_load,
                             run_pgbench, session_settings, sysbench, sysbench_rate)
from harness.contenders import BASELINE
from harness.experiment import Experiment
from harness.measure import WrongAnswer

from . import clients_many

PARTS = ("pgbench", "sysbench", "many")
PGBENCH_ROWS = 100_000  # of a scale factor
# Script: operations of a transaction that use a large index.
PGBENCH_SCRIPTS = {"select-only": 1, "simple-update": 2, "tpcb-like": 2}
PROTOCOLS = ("simple", "prepared")
SYSBENCH_SCRIPTS = {"oltp_point_select": 1, "oltp_read_only": 14, "oltp_read_write": 17, "oltp_insert": 1}
SYSBENCH_READS = ("oltp_point_select", "oltp_read_only")
BYTES_A_ROW = {"pgbench": 170, "sysbench": 300, "many": 75}  # table and indexes, with room for what is written
MIN_ROWS = 20_000  # fewer make no index of learnedbtree.min_leaves leaves


class ClientsExperiment(Experiment):
    title = "Clients: pgbench, sysbench, many sessions"

    def add_options(self, parser):
        cores = os.cpu_count()
        parser.set_defaults(contenders="btree,served")
        parser.add_argument("--only", default=",".join(PARTS), metavar="LIST", help="parts to run")
        parser.add_argument("--clients", default=f"1,{2 * cores}", metavar="LIST",
                            help="numbers of clients of pgbench and sysbench")
        parser.add_argument("--most-clients", type=int, default=2 * cores, metavar="N",
                            help="`many` goes from 1 to so many, doubling")
        parser.add_argument("--seconds", type=int, default=10, help="length of a sample, seconds")
        parser.add_argument("--transactions", type=int, metavar="N",
                            help="length of a sample, transactions of each client, instead of --seconds")
        parser.add_argument("--scripts", default=",".join(PGBENCH_SCRIPTS), metavar="LIST", help="of pgbench")
        parser.add_argument("--protocols", default=",".join(PROTOCOLS), metavar="LIST", help="of pgbench")
        parser.add_argument("--sysbench-scripts", default=",".join(SYSBENCH_SCRIPTS), metavar="LIST")
        parser.add_argument("--rand-type", default="special", help="how sysbench draws keys; its own default")
        parser.add_argument("--probes", type=int, default=10_000, help="lookups of a transaction of `many`")
        parser.add_argument("--perf", action="store_true",
                            help="say where time goes, by perf, at the largest number of clients of `many`")

    def check_options(self, options):
        check_contenders(options)
        options.parts = _chosen("--only", options.only, PARTS)
        options.scripts = _chosen("--scripts", options.scripts, PGBENCH_SCRIPTS)
        options.protocols = _chosen("--protocols", options.protocols, PROTOCOLS)
        options.sysbench_scripts = _chosen("--sysbench-scripts", options.sysbench_scripts, SYSBENCH_SCRIPTS)
        try:
            options.clients = sorted({int(number) for number in options.clients.split(",")})
        except ValueError:
            raise SystemExit("bench: --clients wants numbers") from None
        if min(*options.clients, options.most_clients, options.seconds, options.probes,
               options.transactions or 1) < 1:
            raise SystemExit("bench: all numbers must be positive")
        if options.rows < MIN_ROWS:
            raise SystemExit(f"bench: --rows must be at least {MIN_ROWS}")
        options.scale = max(1, options.rows // PGBENCH_ROWS)
        options.length = Length(options.seconds, options.transactions)
        if options.perf:
            perf.check_available()
        options.no_sysbench = "sysbench" in options.parts and not shutil.which("sysbench")
        if options.no_sysbench:
            options.parts.remove("sysbench")

    def bytes_needed(self, options, _contenders):
        """Parts follow each other, and drop their tables."""
        rows = {"pgbench": options.scale * PGBENCH_ROWS}
        return max((rows.get(part, options.rows) * BYTES_A_ROW[part] for part in options.parts), default=0)

    def settings(self, options):
        return {"max_connections": str(max(*options.clients, options.most_clients) + 20)}

    def load(self, bench):
        """Each part loads its own."""

    # ---- measurements ----

    def measure(self, bench):
        options = bench.options
        if options.no_sysbench:
            bench.warn("sysbench is not installed: its part is left out (Debian's package is called sysbench)")
        measured = []
        if "pgbench" in options.parts:
            measured += Pgbench(bench).run()
        if "sysbench" in options.parts:
            measured += Sysbench(bench).run()
        if "many" in options.parts:
            measured += clients_many.run(bench)
        if measured:
            bench.add_table("How the extension served them",
                            [SERVED_HEAD, *(row for measurement in measured for row in measurement.served_rows())])


def _chosen(option, text, known):
    """Of a comma-separated list, in the order of `known`."""
    wanted = {name.strip() for name in text.split(",") if name.strip()}
    if not wanted or not wanted <= set(known):
        raise SystemExit(f"bench: {option} takes some of {','.join(known)}")
    return [name for name in known if name in wanted]


def prepare(bench, tables, index):
    """Tables are loaded: all into memory, nothing left to write; the large index has a model."""
    for table in tables:
        bench.connection.execute(f"VACUUM (FREEZE, ANALYZE) {table}")
        load.prewarm(bench, [table, *_indexes_of(bench, table)])
    learned.train_and_check(bench, index)
    bench.say(f"{', '.join(tables)}: loaded, in memory, {index} trained")


def vacuum(bench, tables):
    """What a sample has left behind makes room for the next one's."""
    for table in tables:
        bench.connection.execute(f"VACUUM (INDEX_CLEANUP ON, TRUNCATE OFF) {table}")


def check_indexes(bench, tables):
    """amcheck: each index in order, and each row of its table in it."""
    bench.connection.execute("CREATE EXTENSION IF NOT EXISTS amcheck")
    for index in (index for table in tables for index in _indexes_of(bench, table)):
        bench.connection.execute("SELECT bt_index_check(%s::regclass, heapallindexed => true)", [index])
        bench.say(f"{index}: amcheck finds nothing wrong")


def _indexes_of(bench, table):
    return [name for name, in bench.connection.execute(
        "SELECT indexrelid::regclass::text FROM pg_index WHERE indrelid = %s::regclass", [table])]


class Pgbench:
    """pgbench's own scripts on its own tables."""

    TABLES = ("pgbench_accounts", "pgbench_branches", "pgbench_tellers", "pgbench_history")

    def __init__(self, bench):
        self.bench = bench
        self.balances = {"accounts": 0, "tellers": 0, "branches": 0}

    def run(self):
        bench, options = self.bench, self.bench.options
        bench.say(f"pgbench: loading scale {options.scale}")
        pgbench_load(bench, options.scale)
        prepare(bench, self.TABLES, "pgbench_accounts_pkey")
        measured = [self._measurement(script, protocol, clients) for script in options.scripts
                    for protocol in options.protocols for clients in options.clients]
        for measurement in measured:
            bench.run_one(None, measurement)
        check_indexes(bench, self.TABLES)
        bench.connection.execute(f"DROP TABLE {', '.join(self.TABLES)}")
        return measured

    def _measurement(self, script, protocol, clients):
        writes = script != "select-only"

        def program(contender, seed):
            return run_pgbench(self.bench, ["-b", script, "-M", protocol], session_settings(contender),
                               self.bench.options.length, clients, seed)

        return Clients(f"pgbench_{script}_{protocol}_{clients}",
                       f"pgbench {script}, {protocol}, {clients_in_words(clients)}", clients=clients, program=program,
                       before=partial(vacuum, self.bench, self.TABLES) if writes else None,
                       after=partial(self._check_history, script) if writes else None,
                       operations=PGBENCH_SCRIPTS[script])

    def _check_history(self, script, transactions):
        """Each transaction has its row of history, and the balances have grown by what these say."""
        connection = self.bench.connection
        rows, delta = connection.execute("SELECT count(*), coalesce(sum(delta), 0) FROM pgbench_history").fetchone()
        for table in ("accounts", "tellers", "branches") if script == "tpcb-like" else ("accounts",):
            balance, = connection.execute(f"SELECT sum({table[0]}balance) FROM pgbench_{table}").fetchone()
            change = balance - self.balances[table]
            if change != delta or rows != transactions:
                raise WrongAnswer(f"pgbench {script}: after {transactions} transactions there are {rows} rows of "
                                  f"history that sum up to {delta}, but {table} changed by {change}")
            self.balances[table] = balance
        connection.execute("TRUNCATE pgbench_history")


class Sysbench:
    """sysbench's own scripts on its own table."""

    TABLE = "sbtest1"

    def __init__(self, bench):
        self.bench = bench
        self.options = [f"--table-size={bench.options.rows}", "--tables=1", f"--rand-type={bench.options.rand_type}"]

    def run(self):
        bench, options = self.bench, self.bench.options
        bench.say(f"sysbench: loading {options.rows:,} rows")
        settings = session_settings(next(one for one in bench.contenders if one.name == BASELINE))
        sysbench(bench, "oltp_read_write", settings, ["--rand-seed=1", *self.options, "prepare"])
        prepare(bench, [self.TABLE], f"{self.TABLE}_pkey")
        measured = [self._measurement(script, clients) for script in options.sysbench_scripts
                    for clients in options.clients]
        for measurement in measured:
            bench.run_one(None, measurement)
        check_indexes(bench, [self.TABLE])
        bench.connection.execute(f"DROP TABLE {self.TABLE}")
        return measured

    def _measurement(self, script, clients):

        def program(contender, seed):
            return sysbench_rate(self.bench, script, session_settings(contender), self.bench.options.length, clients,
                                 seed, self.options)

        return Clients(f"sysbench_{script}_{clients}", f"sysbench {script}, {clients_in_words(clients)}", clients=clients, program=program,
                       before=partial(vacuum, self.bench, [self.TABLE]) if script not in SYSBENCH_READS else None,
                       operations=SYSBENCH_SCRIPTS[script], scans=script != "oltp_insert")


EXPERIMENT = ClientsExperiment
