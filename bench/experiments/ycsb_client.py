"""YCSB's own client: bring it, load by it, run it, and read what it wrote.

YCSB has no warm-up, and a Java program is slow at first.  So it logs a histogram of each operation every second, and a
line with the number of operations: of both, those of the first seconds are left out.
"""

import contextlib
import dataclasses
import datetime
import json
import pathlib
import re
import subprocess
import tempfile
import threading
import urllib.parse

from harness.measure import Failed, WrongAnswer
from harness.server import SERVER_USER

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "ycsb_client"
FETCH_SECONDS = 600
START_STOP_SECONDS = 120  # of a client, beside what it is to run for
LOAD_SECONDS = 4 * 3600
LOAD_STATUS_SECONDS = 10
LOAD_SETTINGS = {"synchronous_commit": "on"}  # see load.loading
FIGURES = ("mean", "p50", "p95", "p99", "p99.9")
PERCENTILES = "50,95,99,99.9"
MAX_RATE = 200_000  # operations/s, above what one client can do
HEAP = "512m"
STATUS = re.compile(r"^(\S+ \S+) +\d+ sec: (\d+) operations; ", re.MULTILINE)
STATUS_TIME = "%Y-%m-%d %H:%M:%S:%f"
HALF = 0.5  # of the second between two entries of a log


@dataclasses.dataclass
class Run:
    throughput: float  # operations/s after the warm-up
    latencies: dict  # {operation: (mean, percentiles...) in µs, after the warm-up}
    counts: dict  # {operation: how many reached the server in all}


class Client:
    """The client of one scratch server; `records` is how many rows it has loaded and inserted."""

    def __init__(self, bench, table):
        self.bench = bench
        self.table = table
        self.records = 0
        fetched = subprocess.run([FOLDER / "fetch"], stdout=subprocess.PIPE, text=True, timeout=FETCH_SECONDS)
        if fetched.returncode != 0:
            raise SystemExit("bench: YCSB's client cannot be had, see above")
        self.classpath = fetched.stdout.strip()

    def load(self, rows, threads):
        """Load so many records, with YCSB's keys."""
        with self._folder() as folder:
            self._java(folder, ["-load", "-s"],
                       {"recordcount": rows, "operationcount": rows, "threadcount": min(threads, rows),
                        "status.interval": LOAD_STATUS_SECONDS}, "c", LOAD_SETTINGS, LOAD_SECONDS,
                       lambda done: self.bench.say(f"loaded {done:,} of {rows:,} rows"))
            loaded = _statuses(folder)
        if loaded != {"INSERT": {"BATCHED_OK": rows}}:
            raise Failed(f"YCSB was to load {rows} records, but says {loaded}")
        self.records = rows

    def run(self, workload, properties, settings, threads):
        """One run of a workload by sessions with these settings."""
        warm_up, seconds = self.bench.options.warm_up, self.bench.options.seconds
        # Of the number of operations YCSB also makes the space of keys that it asks for while it inserts.
        operations = self.bench.options.operations or min(MAX_RATE * (warm_up + seconds), 2**31 - 1)
        own = {"recordcount": self.records, "operationcount": operations,
               "maxexecutiontime": warm_up + seconds, "threadcount": threads, "status.interval": 1,
               "hdrhistogram.fileoutput": "true"}
        with self._folder() as folder:
            # One client and its backend take turns: see one_core.
            with self.bench.server.one_core() if threads == 1 else contextlib.nullcontext():
                said = self._java(folder, ["-t", "-s"], {**own, **properties}, workload, settings,
                                  warm_up + seconds + START_STOP_SECONDS)
            statuses = _statuses(folder)
            began, throughput = _window(said, warm_up)
            latencies = self._latencies(folder, began - HALF)
        if any(set(found) != {"OK"} for found in statuses.values()) or not statuses:
            raise WrongAnswer(f"workload {workload}: not all operations found what they had to: {statuses}\n{said}")
        counts = {operation: found["OK"] for operation, found in statuses.items()}
        self.records += counts.get("INSERT", 0)
        return Run(throughput, latencies, counts)

    @staticmethod
    @contextlib.contextmanager
    def _folder():
        with tempfile.TemporaryDirectory(prefix="learnedbtree-ycsb-") as folder:
            yield pathlib.Path(folder)

    def _url(self, settings):
        options = " ".join(f"-c {name}={value}" for name, value in settings.items())
        return "jdbc:postgresql://localhost/postgres?" + urllib.parse.urlencode(quote_via=urllib.parse.quote, query={
            "user": SERVER_USER, "options": options, "ApplicationName": "ycsb", "prepareThreshold": 1,
            "sslmode": "disable", "gssEncMode": "disable",
            "socketFactory": "org.newsclub.net.unix.AFUNIXSocketFactory$FactoryArg",
            "socketFactoryArg": self.bench.server.sockets / ".s.PGSQL.5432"})

    def _java(self, folder, arguments, properties, workload, settings, limit, progress=lambda done: None):
        """Run the client; returns what it said."""
        properties = {"table": self.table, "db": "PostgresDB", "postgres.url": self._url(settings),
                      "exporter": "site.ycsb.measurements.exporter.JSONArrayMeasurementsExporter",
                      "exportfile": folder / "result.json", "hdrhistogram.output.path": f"{folder}/", **properties}
        command = self._command(folder, f"-Xms{HEAP}", f"-Xmx{HEAP}", "site.ycsb.Client", *arguments,
                                "-P", FOLDER / "workloads" / f"workload{workload}")
        for name, value in properties.items():
            command += ["-p", f"{name}={value}"]
        said = []
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   text=True)
        late = threading.Timer(limit, process.kill)
        late.start()
        try:
            for line in process.stdout:
                said.append(line)
                if found := STATUS.match(line):
                    progress(int(found.group(2)))
            process.wait()
        finally:
            late.cancel()
            process.kill()
            process.wait()
        # It ends with status 0 whatever became of it.
        if process.returncode != 0 or any("Exception" in line for line in said) or not _statuses(folder):
            raise Failed("YCSB's client failed:\n" + "".join(said[-30:]))
        return "".join(said)

    def _command(self, folder, *arguments):
        return ["java", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-Duser.timezone=UTC", f"-Djava.io.tmpdir={folder}",
                "-cp", self.classpath, *arguments]

    def _latencies(self, folder, began):
        finished = subprocess.run(self._command(folder, "Latencies", str(began), PERCENTILES,
                                                *sorted(folder.glob("*.hdr"))),
                                  capture_output=True, text=True, timeout=START_STOP_SECONDS)
        if finished.returncode != 0:
            raise Failed(f"YCSB's histograms cannot be read:\n{finished.stderr}")
        rows = [line.split() for line in finished.stdout.splitlines()]
        return {operation: tuple(map(float, figures)) for operation, count, *figures in rows
                if operation != "CLEANUP" and int(count)}


def _statuses(folder):
    """{operation: {status: how often}}, of what reaches the server: a read-modify-write is a read and an update."""
    try:
        entries = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    found = {}
    for entry in entries:
        if entry["measurement"].startswith("Return="):
            found.setdefault(entry["metric"], {})[entry["measurement"].removeprefix("Return=")] = entry["value"]
    return found


def _window(said, warm_up):
    """(when the warm-up ended, in s since 1970; operations/s from then to the end)."""
    # A line each second, the first at once, and one in the end.
    points = [(datetime.datetime.strptime(f"{at} +0000", f"{STATUS_TIME} %z").timestamp(), int(done))
              for at, done in STATUS.findall(said)]
    if len(points) < warm_up + 2:
        raise Failed("YCSB's client ended before its time: --operations is too small for --warm-up")
    (began, before), (ended, done) = points[warm_up], points[-1]
    if done == before:
        raise Failed("YCSB's client did nothing in its time: more --seconds are needed here")
    return began, (done - before) / (ended - began)


def operations_by_key(counts):
    """How many index scans by key these operations begin."""
    return sum(count for operation, count in counts.items() if operation in ("READ", "SCAN", "UPDATE"))
