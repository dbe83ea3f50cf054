"""What the library costs where it serves nothing, compared with a server that has not loaded it.

The server restarts between them; pgbench's select-only, and where the processor counts them, instructions a statement.
"""

import contextlib
import pathlib
import shutil
import signal
import subprocess
import time

from harness import cold, load
from harness.clients import Length, pgbench_load, run_pgbench
from harness.contenders import BASELINE, BTREE_INDEXES, EXTENSION, judged
from harness.measure import Failed

TABLES = ("pgbench_accounts", "pgbench_accounts_pkey")
PGBENCH_ROWS = 100_000  # of a scale factor
BYTES_A_ROW = 170
NOTHING_SERVED = {BTREE_INDEXES: "none"}
KINDS = {"prepared": (["-M", "prepared"], "select-only, prepared"), "simple": (["-M", "simple"], "select-only, simple"),
         "connections": (["-M", "simple", "-C"], "select-only, a connection each")}
LIBRARIES = ("shared_preload_libraries", "session_preload_libraries")
EVENT = "instructions:u"
WARM_STATEMENTS, COUNTED_STATEMENTS = 1_000, 10_000
ATTACH_SECONDS = 1.0
PERF_SECONDS = 30


def run(bench):
    options = bench.options
    name = judged(bench.contenders).name
    before = {library: bench.server.settings.get(library, "") for library in LIBRARIES}
    pgbench_load(bench, max(1, options.rows // PGBENCH_ROWS))
    found = {kind: {BASELINE: [], name: []} for kind in KINDS}
    length = Length(options.seconds, options.transactions)
    counting, instructions = _event_works(bench), {BASELINE: [], name: []}
    for round_number in range(options.rounds):
        for contender in bench.in_turn([BASELINE, name], round_number):
            _start(bench, contender != BASELINE)
            for kind, (arguments, _) in KINDS.items():
                found[kind][contender].append(_rate(bench, arguments, length, round_number))
            if counting:
                instructions[contender].append(_instructions(bench))
    cold.restart(bench, before)
    note = f"here: loaded by {LIBRARIES[0]}, nothing served; {BASELINE}: a server without the library"
    for kind, (_, title) in KINDS.items():
        _add(bench, f"unserved_{kind}", f"library alone: {title}", "statements/s", found[kind], {name: note}, rate=True)
    if counting:
        _add(bench, "unserved_instructions", "library alone: select-only, prepared", "instructions a statement",
             instructions, {name: note})
    bench.connection.execute("DROP TABLE pgbench_accounts, pgbench_branches, pgbench_tellers, pgbench_history")


def _add(bench, key, title, unit, samples, notes, rate=False):
    bench.add_result(key, title, unit, samples, notes=notes, rate=rate)


def _start(bench, loaded):
    """A server with the library in each process, or in none; all in memory, and a while of work done."""
    cold.restart(bench, {**dict.fromkeys(LIBRARIES, ""), **({LIBRARIES[0]: EXTENSION} if loaded else {})})
    load.prewarm(bench, TABLES)
    with bench.server.connect(NOTHING_SERVED) as session:  # ours loads it for each CREATE: the extension's triggers
        maps = pathlib.Path(f"/proc/{session.info.backend_pid}/maps").read_text(encoding="utf-8")
    if (f"/{EXTENSION}.so" in maps) != loaded:
        raise Failed(f"a session should have{'' if loaded else ' not'} loaded the library")
    _rate(bench, ["-M", "simple"], Length(1, WARM_STATEMENTS), -1)


def _rate(bench, arguments, length, round_number):
    with bench.server.one_core():
        _, rate = run_pgbench(bench, ["-b", "select-only", *arguments], NOTHING_SERVED, length, 1, round_number + 2)
    return rate


# ---- instructions ----

def _event_works(bench):
    """Virtual machines often have no such counter."""
    if shutil.which("perf"):
        tried = subprocess.run(["perf", "stat", "-x", ";", "-e", EVENT, "true"], capture_output=True, text=True)
        if tried.returncode == 0 and _counts(tried.stderr):
            return True
    bench.say("perf counts no instructions here: statements a second alone")
    return False


def _counts(printed):
    """The number that perf prints in a line with `;` between columns, or none."""
    for line in printed.splitlines():
        with contextlib.suppress(ValueError):
            return float(line.split(";")[0])
    return None


def _instructions(bench):
    """Of one statement, in the backend, by many."""
    rows, = bench.connection.execute("SELECT count(*) FROM pgbench_accounts").fetchone()
    with bench.server.connect(NOTHING_SERVED) as session:
        session.prepare_threshold = 0
        ask = lambda number: session.execute(  # noqa: E731
            "SELECT abalance FROM pgbench_accounts WHERE aid = %s", [number * 7919 % rows + 1]).fetchone()
        for number in range(WARM_STATEMENTS):
            ask(number)
        perf = subprocess.Popen(["perf", "stat", "-x", ";", "-e", EVENT, "-p", str(session.info.backend_pid)],
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            time.sleep(ATTACH_SECONDS)
            for number in range(COUNTED_STATEMENTS):
                ask(number)
            perf.send_signal(signal.SIGINT)
            _, printed = perf.communicate(timeout=PERF_SECONDS)
        finally:
            if perf.poll() is None:
                perf.kill()
                perf.wait()
    count = _counts(printed)
    if not count:
        raise Failed(f"perf stat counted nothing: {printed}")
    return count / COUNTED_STATEMENTS
