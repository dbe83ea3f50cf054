"""pgbench of any number of clients, and its log: how long each transaction took, and when it ended."""

import contextlib
import dataclasses
import os
import pathlib
import subprocess
import tempfile
import time

import numpy

from .measure import BY_INDEX, PGBENCH_SECONDS, Failed

LEAVE_SECONDS = 30  # for sessions to end


@dataclasses.dataclass
class Transactions:
    """What a run did: arrays with an entry for each transaction, in the order of their ends."""

    latency: numpy.ndarray  # µs
    script: numpy.ndarray  # number of the script that it ran
    ended: numpy.ndarray  # s since pgbench was started

    def __len__(self):
        return len(self.latency)

    def percentile(self, share):
        return float(numpy.percentile(self.latency, share))

    def mean(self):
        return float(self.latency.mean())

    def rate(self):
        """Transactions/s, without the time that connections take to be made."""
        return len(self) / float(self.ended[-1] - (self.ended - self.latency / 1e6).min())

    def of_script(self, number):
        chosen = self.script == number
        return Transactions(self.latency[chosen], self.script[chosen], self.ended[chosen])


def run(bench, scripts, settings, length, clients=1, seed=1):
    """Prepared statements of `clients`; `scripts` are (text, weight), `length` pgbench's ("-T", s) or ("-t", number).

    `settings` are those of the clients' sessions.  A single client and its backend share one core, as elsewhere.
    Returns when all sessions have ended, and with it added to the server's statistics.
    """
    command = [bench.server.installation.program("pgbench"), "-n", "-M", "prepared", "-c", str(clients),
               "-j", str(min(clients, os.cpu_count() or 1)), *map(str, length), "--random-seed", str(seed), "-l"]
    seconds = PGBENCH_SECONDS + (length[1] if length[0] == "-T" else 0)
    pinned = bench.server.one_core() if clients == 1 else contextlib.nullcontext()
    with tempfile.TemporaryDirectory() as folder, pinned:
        for number, (text, weight) in enumerate(scripts):
            path = pathlib.Path(folder, f"{number}.sql")
            path.write_text(text, encoding="utf-8")
            command += ["-f", f"{path}@{weight}"]
        began = time.time()
        finished = subprocess.run([*command, f"--log-prefix={folder}/log"], capture_output=True, text=True,
                                  env=bench.server.client_environment({**BY_INDEX, **settings}), timeout=seconds)
        if finished.returncode != 0:
            raise Failed(f"pgbench failed:\n{finished.stdout}{finished.stderr}")
        found = _read(pathlib.Path(folder).glob("log.*"), began)
    _wait_for_ends(bench)
    return found


def _read(logs, began):
    # client, number, latency in µs, script, end in s and µs since 1970
    lines = numpy.concatenate([numpy.loadtxt(log, dtype=numpy.int64, usecols=(2, 3, 4, 5), ndmin=2) for log in logs
                               if log.stat().st_size] or [numpy.empty((0, 4), numpy.int64)])
    if not len(lines):
        raise Failed("pgbench did no transaction: give it more time")
    ended = (lines[:, 2] - int(began)) + lines[:, 3] / 1e6 - (began - int(began))
    order = numpy.argsort(ended)
    return Transactions(lines[order, 0], lines[order, 1], ended[order])


def _wait_for_ends(bench):
    """Sessions add to the statistics before they leave pg_stat_activity."""
    deadline = time.monotonic() + LEAVE_SECONDS
    while bench.connection.execute("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' "
                                   "AND pid <> pg_backend_pid()").fetchone()[0]:
        if time.monotonic() > deadline:
            raise Failed(f"sessions of pgbench have not ended after {LEAVE_SECONDS} s")
        time.sleep(0.02)
