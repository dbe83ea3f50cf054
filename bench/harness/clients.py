"""Clients with sessions of their own, pgbench and sysbench: a contender's settings, and whether they arrived.

The settings go by PGOPTIONS, which libpq hands to each session.  Whether they arrived, and whether an index was used
at all, the database's counters say: no session of btree may have asked a model, and one of the others has to.
"""

import contextlib
import dataclasses
import os
import re
import subprocess
import time

from .contenders import BASELINE, EXTENSION, choose, judged
from .measure import Failed, Measurement, pgbench
from .server import SERVER_USER

LOAD_SECONDS = 6 * 3600
LEAVE_SECONDS = 20  # for sessions to end, and to add their counts
SPARE_SECONDS = 60  # for a client program to connect and to end
MOST_SECONDS = 600  # for one that is not bounded by time
COUNTS = ("lookups", "verified", "delegated", "inserts", "inserts_placed", "trainings")
ASKED_SHARE = 0.5  # of a served contender's operations have to ask a model, at least


def check_contenders(options):
    """For experiments whose contenders are settings of the same btree indexes."""
    chosen = choose(options.contenders)
    if judged(chosen) is None or {contender.am for contender in chosen} != {BASELINE}:
        raise SystemExit(f"bench: --contenders must be {BASELINE},served, or also served-plain")


def session_settings(contender):
    """A contender's settings as a user would have them: small indexes are not served."""
    return {name: value for name, value in contender.settings if name != f"{EXTENSION}.min_leaves"}


@dataclasses.dataclass(frozen=True)
class Length:
    """How long a sample is: in seconds or, if given, in transactions of each client."""

    seconds: int
    transactions: int | None = None

    @property
    def timeout(self):
        return MOST_SECONDS if self.transactions else 2 * self.seconds + SPARE_SECONDS

    def of_pgbench(self):
        return ["-t", str(self.transactions)] if self.transactions else ["-T", str(self.seconds)]

    def of_sysbench(self, clients):
        return (["--time=0", f"--events={self.transactions * clients}"] if self.transactions
                else [f"--time={self.seconds}", "--events=0"])


def run_pgbench(bench, arguments, settings, length, clients, seed, scripts=()):
    """(transactions, transactions a second) of so many clients of pgbench, with (text, weight) of scripts of ours."""
    threads = min(clients, os.cpu_count())
    arguments = ["-c", str(clients), "-j", str(threads), "--random-seed", str(seed), *length.of_pgbench(), *arguments]
    return pgbench(bench, arguments, settings, scripts, length.timeout)


def run_program(bench, command, settings, timeout):
    """What a client program prints; its sessions have the settings."""
    finished = subprocess.run(command, env=bench.server.client_environment(settings), capture_output=True, text=True,
                              timeout=timeout)
    if finished.returncode != 0:
        raise Failed(f"{command[0]} failed:\n{finished.stdout}{finished.stderr}")
    return finished.stdout


def pgbench_load(bench, scale):
    """`pgbench -i`, as it comes."""
    run_program(bench, [bench.server.installation.program("pgbench"), "-i", "-q", "-s", str(scale)], {}, LOAD_SECONDS)


def sysbench(bench, script, settings, further, timeout=LOAD_SECONDS):
    """What sysbench prints of one of its own scripts; `further` are its options and command."""
    return run_program(bench, ["sysbench", script, "--db-driver=pgsql", f"--pgsql-host={bench.server.sockets}",
                               f"--pgsql-user={SERVER_USER}", "--pgsql-db=postgres", *further], settings, timeout)


def sysbench_rate(bench, script, settings, length, clients, seed, further):
    """(transactions, transactions a second) of so many threads of sysbench."""
    printed = sysbench(bench, script, settings, [f"--threads={clients}", f"--rand-seed={seed}",
                                                 *length.of_sysbench(clients), *further, "run"], length.timeout)
    found = re.search(r"^ *transactions: +(\d+) +\(([0-9.]+) per sec", printed, re.MULTILINE)
    if not found:
        raise Failed(f"sysbench {script} said no number of transactions:\n{printed}")
    return int(found.group(1)), float(found.group(2))


def clients_in_words(number):
    return f"{number} clients" if number > 1 else "1 client"


# ---- whether the settings arrived ----

def _sessions(bench):
    """Process numbers of all sessions."""
    return {process for process, in bench.connection.execute(
        "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'")}


def counted(bench):
    """The database's counts: scans of indexes, and what the extension counts, of all indexes together."""
    bench.connection.execute("SELECT pg_stat_force_next_flush()")
    sums = ", ".join(f"coalesce(sum({name}), 0)::int8" for name in COUNTS)
    scans, = bench.connection.execute("SELECT coalesce(sum(idx_scan), 0)::int8 FROM pg_stat_user_indexes").fetchone()
    found = bench.connection.execute(f"SELECT {sums} FROM {EXTENSION}_stat").fetchone()
    return {"scans": scans, **dict(zip(COUNTS, found))}


class Asked:
    """Context manager: what the sessions that begin and end in here do to the counts; then `counts` has it."""

    def __init__(self, bench, contender, title):
        self.bench, self.contender, self.title = bench, contender, title

    def __enter__(self):
        self._there = _sessions(self.bench)
        self._before = counted(self.bench)
        return self

    def __exit__(self, kind, *_):
        if kind is not None:
            return
        deadline = time.monotonic() + LEAVE_SECONDS
        while _sessions(self.bench) - self._there:
            if time.monotonic() > deadline:
                raise Failed(f"{self.title}: sessions are still there {LEAVE_SECONDS} s after their client")
            time.sleep(0.02)
        after = counted(self.bench)
        self.counts = {name: after[name] - before for name, before in self._before.items()}

    def check(self, operations, scans=True):
        """Raise Failed unless so many operations used an index, and asked a model if they were to.

        `scans`: whether they look something up; an INSERT alone does not.
        """
        asked = self.counts["lookups"] + self.counts["delegated"] + self.counts["inserts"]
        if not self.contender.has_model and asked:
            raise Failed(f"{self.title}, {self.contender.name}: a model was asked {asked} times: the setting has not "
                         "reached the sessions")
        if self.contender.has_model and asked < ASKED_SHARE * operations:
            raise Failed(f"{self.title}, {self.contender.name}: a model was asked {asked} times in {operations} "
                         "operations: the setting has not reached the sessions, or the index is not used")
        if scans and self.counts["scans"] < ASKED_SHARE * operations:
            raise Failed(f"{self.title}: only {self.counts['scans']} index scans in {operations} operations")


# ---- samples ----

@dataclasses.dataclass
class Clients(Measurement):
    """Transactions a second of a client program, whose sessions have a contender's settings."""

    unit: str = "transactions/s"
    rate: bool = True
    clients: int = 1
    program: object = None  # function (contender, seed) that gives (transactions, transactions a second)
    before: object = None  # called before each sample: the state that it begins with
    after: object = None  # called after each sample with the number of transactions: raises if they are not there
    per: float = 1  # what is counted, a transaction
    operations: float = 1  # that use an index, a transaction
    scans: bool = True  # they look something up

    def run(self, bench, _indexes, contender, round_number):
        if self.before:
            self.before()
        bench.connection.execute("CHECKPOINT")
        alone = bench.server.one_core() if self.clients == 1 else contextlib.nullcontext()
        with alone, Asked(bench, contender, self.title) as asked:
            # The same keys for every contender of a round.
            transactions, rate = self.program(contender, round_number + 2)
        asked.check(transactions * self.operations, self.scans)
        if self.after:
            self.after(transactions)
        if round_number >= 0 and contender.has_model:
            self.__dict__.setdefault("found", {}).setdefault(contender.name, []).append(asked.counts)
        return rate * self.per

    def served_rows(self):
        """For a table of how the extension served the samples; see SERVED_HEAD."""
        rows = []
        for name, samples in self.__dict__.get("found", {}).items():
            total = {count: sum(sample[count] for sample in samples) for count in samples[0]}
            share = lambda part, whole: 100 * total[part] / total[whole] if total[whole] else None  # noqa: E731
            rows.append([f"{self.title}: {name}", total["scans"], total["lookups"], share("verified", "lookups"),
                         total["delegated"], total["inserts"], share("inserts_placed", "inserts"), total["trainings"]])
        return rows


SERVED_HEAD = ["", "index scans", "searches by a model", "verified, %", "scans left to btree's engine",
               "inserts that asked", "placed, %", "trainings"]
