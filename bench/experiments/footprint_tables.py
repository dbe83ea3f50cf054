"""Many indexes in one database: those that are served and trained, and those that are too small for a model.

Each has a table of its own, (k int8 primary key, v int4).  Sessions touch all of them, one lookup each, the first time
and once more; then nothing happens, or next to nothing, and the workers' processor time is watched.
"""

import time
from statistics import median

from harness import load
from harness.clients import Length, run_pgbench, session_settings
from harness.contenders import EXTENSION, judged
from harness.cpu import cpu_microseconds, cpu_seconds
from harness.measure import Failed
from harness.memory import private_bytes, segments_bytes
from harness.workers import WorkerWatch, wait_for_end

SERVED, SMALL = "s", "l"  # tables are s1, s2 ...
SERVED_ROWS, SMALL_ROWS = 7_300, 100  # 20 leaves, and one
TABLE_BYTES = {SERVED: 620_000, SMALL: 32_768}
BATCH = 50  # tables of a transaction: it holds their locks
TRAINING_SECONDS = 600
SESSIONS = 11  # whose first statements are timed, a sample
TRICKLE_RATE = 10  # transactions a second
BY_INDEX = {"enable_seqscan": "off", "enable_bitmapscan": "off"}


def bytes_needed(options):
    return ((options.indexes * TABLE_BYTES[SERVED] if "indexes" in options.parts else 0)
            + (options.small_indexes * TABLE_BYTES[SMALL] if "small" in options.parts else 0))


def run_served(bench):
    count = bench.options.indexes
    title = f"{count:,} served indexes"
    _make(bench, SERVED, count, SERVED_ROWS)
    training = _train(bench, title, count)
    idle = _touch_and_idle(bench, SERVED, count, title)
    trickle, processed = _trickle(bench, count)
    _table(bench, title, [
        *training, *idle, [f"CPU of workers at {TRICKLE_RATE} reads or inserts a second, % of one core", trickle],
        ["... of which there were", processed]])


def run_small(bench):
    count = bench.options.small_indexes
    title = f"{count:,} small indexes"
    _make(bench, SMALL, count, SMALL_ROWS)
    before = _models(bench)
    idle = _touch_and_idle(bench, SMALL, count, title)
    models = _models(bench) - before
    if models:
        bench.warn(f"{title}: {models} have a model, though they are smaller than {EXTENSION}.min_leaves")
    _table(bench, title, [["models", models], *idle])


def _table(bench, title, rows):
    bench.add_table(title, [["", "found"], *rows])


def _make(bench, prefix, count, rows):
    bench.say(f"making {count:,} tables of {rows:,} rows")
    for first in range(1, count + 1, BATCH):
        bench.connection.execute(f"""
            DO $$
            BEGIN
                FOR n IN {first} .. {min(count, first + BATCH - 1)} LOOP
                    EXECUTE 'CREATE TABLE {prefix}' || n || ' (k int8 NOT NULL, v int4 NOT NULL)';
                    EXECUTE 'INSERT INTO {prefix}' || n || ' SELECT {load.key_of("i")}, {load.value_of("i")} '
                            'FROM (SELECT generate_series(1::int8, {rows}) AS i) AS s';
                    EXECUTE 'ALTER TABLE {prefix}' || n || ' ADD PRIMARY KEY (k)';
                END LOOP;
            END $$""")
    bench.connection.execute("CHECKPOINT")


def _touch(session, prefix, count):
    """One lookup in each table; returns CPU time, microseconds.  A transaction holds the locks of a batch of tables."""
    microseconds, _ = cpu_microseconds(session, f"""
        DO $$
        DECLARE
            found int8;
        BEGIN
            FOR n IN 1 .. {count} LOOP
                EXECUTE 'SELECT count(v) FROM {prefix}' || n || ' WHERE k = {load.key_of(1)}' INTO found;
                IF found <> 1 THEN RAISE EXCEPTION '% rows in table %', found, n; END IF;
                IF n % {BATCH} = 0 THEN COMMIT; END IF;
            END LOOP;
        END $$""")
    return microseconds


def _session(bench, contender):
    return bench.server.connect({**BY_INDEX, **session_settings(contender)})


def _models(bench):
    return bench.connection.execute(f"SELECT count(*) FROM {EXTENSION}_indexes WHERE model = 'ready'").fetchone()[0]


def _memory(bench):
    """(bytes of models, bytes of dynamic shared memory)"""
    models, = bench.connection.execute(f"SELECT {EXTENSION}_model_memory()").fetchone()
    return models, segments_bytes(bench)


# ---- training ----

def _train(bench, title, count):
    """A session's first lookups have all models made; rows on how long that takes, and what it leaves."""
    before, had = _memory(bench), _models(bench)
    with WorkerWatch(bench.server) as watch, _session(bench, judged(bench.contenders)) as session:
        began = time.monotonic()
        touching = _touch(session, SERVED, count)
        while (ready := _models(bench) - had) < count:
            if time.monotonic() - began > TRAINING_SECONDS:
                raise Failed(f"{title}: only {ready} are trained after {TRAINING_SECONDS} s")
            time.sleep(0.2)
        seconds = time.monotonic() - began
        wait_for_end(bench)
        after = _memory(bench)
    bench.say(f"{title}: trained in {seconds:.1f} s")
    return [["time to train all, by a session's first lookups, s", seconds],
            ["... CPU of the session, s", touching / 1e6], ["... CPU of workers, s", watch.cpu_seconds()],
            ["models, kB", (after[0] - before[0]) / 1024],
            ["dynamic shared memory, more than before, kB", (after[1] - before[1]) / 1024]]


# ---- sessions, and idleness ----

def _touch_and_idle(bench, prefix, count, title):
    """Results of sessions that touch all; rows on memory, and on the workers while nothing happens."""
    first, again, begin, memory = ({contender.name: [] for contender in bench.contenders} for _ in range(4))
    for round_number in range(-1, bench.options.rounds):
        for contender in bench.in_turn(bench.contenders, max(round_number, 0)):
            with _session(bench, contender) as session:
                microseconds = [_touch(session, prefix, count) for _ in range(2)]
                used = private_bytes(session.info.backend_pid)
            begun = [_begin(bench, contender, prefix) for _ in range(SESSIONS)]
            if round_number >= 0:
                for samples, value in zip((first, again, begin, memory), (
                        microseconds[0] / count, microseconds[1] / count, median(begun), used / 1024)):
                    samples[contender.name].append(value)
    for key, what, unit, samples in (("begin", "first statement of a session, a lookup", "µs of CPU", begin),
                                     ("first", "first lookup in each, one session", "µs of CPU an index", first),
                                     ("again", "second lookup in each", "µs of CPU an index", again)):
        bench.add_result(f"tables_{prefix}_{key}", f"{title}: {what}", unit, samples)
    bench.add_result(f"tables_{prefix}_memory", f"{title}: memory of a session that has used all", "kB", memory,
                     timed=False)
    return _idle(bench, prefix, count, title)


def _begin(bench, contender, prefix):
    with _session(bench, contender) as session:
        return cpu_microseconds(session, f"SELECT v FROM {prefix}1 WHERE k = {load.key_of(1)}")[0]


def _idle(bench, prefix, count, title):
    with _session(bench, judged(bench.contenders)) as session:
        _touch(session, prefix, count)
        wait_for_end(bench)
        watched = {"the postmaster": bench.server.process.pid, "an idle session": session.info.backend_pid}
        before = {name: cpu_seconds(process) for name, process in watched.items()}
        with WorkerWatch(bench.server) as watch:
            bench.say(f"{title}: idle for {bench.options.idle_seconds} s")
            time.sleep(bench.options.idle_seconds)
        share = lambda seconds: 100 * seconds / bench.options.idle_seconds  # noqa: E731
        rows = [["idle: workers seen", watch.workers], ["idle: CPU of workers, % of one core", share(watch.cpu_seconds())],
                *([f"idle: CPU of {name}, % of one core", share(cpu_seconds(process) - before[name])]
                  for name, process in watched.items())]
        models, segments = _memory(bench)
        return [*rows, ["all models at the end, kB", models / 1024], ["all dynamic shared memory, kB", segments / 1024]]


def _trickle(bench, count):
    """Next to nothing happens, anywhere: (CPU of workers in % of one core, transactions)"""
    contender = judged(bench.contenders)
    key = f"hashint8extended(:i, {load.PROBE_SEED})"
    scripts = [(f"\\set n random(1, {count})\nSELECT v FROM {SERVED}:n WHERE k = {load.key_of(1)};\n", 1),
               (f"\\set n random(1, {count})\n\\set i random(1, {10**12})\nINSERT INTO {SERVED}:n VALUES ({key}, 0) "
                "ON CONFLICT DO NOTHING;\n", 1)]
    seconds = bench.options.idle_seconds
    with WorkerWatch(bench.server) as watch:
        processed, _ = run_pgbench(bench, ["-M", "simple", "-R", str(TRICKLE_RATE)], session_settings(contender),
                                   Length(seconds), 1, 1, scripts)
        wait_for_end(bench)
    return 100 * watch.cpu_seconds() / seconds, processed
