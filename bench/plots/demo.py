"""Real keys on a scratch server: half of the rows are there, the others come in random order, and all are looked up."""

import contextlib
import functools
import threading

from experiments import keys_sets
from harness import load
from harness.contenders import EXTENSION
from harness.measure import Failed
from harness.server import Installation, ScratchServer

BATCHES = 200  # of inserts, over the time of watching
PROBES = 1000  # of a lookup statement
STOP_SECONDS = 60
ORDER_SEED = 11
# The index includes it, or so few keys would have too few leaves for a picture.
PAYLOAD = f"'{'x' * 90}'::text"
ENTRY_BYTES = 400  # of the tables and indexes a row, in shared_buffers


def run(bench, cleanup, draw):
    """Draw each key set's index."""
    options = bench.options
    installation = Installation(options.pg_config)
    if not installation.has_extension(EXTENSION):
        raise Failed(f"{EXTENSION} is not installed there: make install PG_CONFIG={installation.pg_config}")
    settings = {"shared_buffers": f"{max(256, (options.rows or 0) * ENTRY_BYTES // 2**20)}MB",
                **installation.loading(EXTENSION)}
    bench.server = cleanup.enter_context(ScratchServer(installation, settings, options.scratch, bench.say))
    bench.connection = cleanup.enter_context(contextlib.closing(bench.server.connect()))
    bench.connection.execute(f"CREATE EXTENSION {EXTENSION}")
    for key_set in keys_sets.choose(options.sets, keys_sets.GROUPS):
        if not key_set.file:
            raise Failed(f"{key_set.name} is no set of real keys")
        if reason := keys_sets.missing(bench, key_set):
            raise Failed(f"{key_set.title}: {reason}")
        _draw_set(bench, key_set, draw)


def _draw_set(bench, key_set, draw):
    table, index = f"{key_set.name}_demo", key_set.name
    rows = _load(bench, key_set, table, index)
    draw(bench, bench.connection, index, key_set.title, functools.partial(_work, bench, table, rows))
    bench.connection.execute(f"DROP TABLE {table}, {table}_all")


def _load(bench, key_set, table, index):
    """Table `table` with half of the rows, and `table`_all with all of them in random order, numbered from 1."""
    size, span, _ = keys_sets.load_base(bench, key_set)
    rows = bench.options.rows or size
    source = f"SELECT i, hashint8extended(i, {ORDER_SEED}) AS j FROM generate_series(1::int8, {rows}) AS i"
    load.fill(bench, f"{table}_all", f"n int8 NOT NULL, {key_set.definitions()}",
              f"SELECT row_number() OVER (), s.* FROM ({key_set.select(source, size, span)}) AS s")
    bench.connection.execute(f"CREATE INDEX ON {table}_all (n)")
    load.fill(bench, table, f"{key_set.definitions()}, payload text",
              f"SELECT k, {PAYLOAD} FROM {table}_all WHERE n <= {rows // 2}")
    bench.connection.execute(f"CREATE INDEX {index} ON {table} USING {EXTENSION} (k) INCLUDE (payload)")
    bench.say(f"{key_set.title}: {rows // 2:,} of {rows:,} rows loaded")
    return rows


@contextlib.contextmanager
def _work(bench, table, rows):
    with contextlib.ExitStack() as workers:
        for work in (_insert, _look_up):
            workers.enter_context(_Worker(bench, functools.partial(work, bench, table=table, rows=rows)))
        yield


class _Worker:
    """Context manager: a thread with a session of its own does `work` until the end, or until it is told to stop."""

    def __init__(self, bench, work):
        self._connection = bench.server.connect()
        self._stop = threading.Event()
        self._work = work
        self._error = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()

    def __exit__(self, *exception):
        self._stop.set()
        self._thread.join(STOP_SECONDS)
        self._connection.close()
        if self._error and exception[0] is None:
            raise self._error

    def _run(self):
        try:
            self._work(self._connection, self._stop)
        except Exception as error:  # handed to whoever closes us
            self._error = error


def _insert(bench, connection, stop, table, rows):
    """The second half of the rows, evenly over nine tenths of the time."""
    first = rows // 2 + 1
    batch = max(1, (rows - first) // BATCHES + 1)
    while first <= rows and not stop.wait(0.9 * bench.options.watch / BATCHES):
        connection.execute(f"INSERT INTO {table} SELECT k, {PAYLOAD} FROM {table}_all "
                           f"WHERE n BETWEEN {first} AND {min(rows, first + batch - 1)}")
        first += batch


def _look_up(_bench, connection, stop, table, rows):
    """Keys of all rows, whether or not they are there yet, one after another."""
    connection.execute("SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_memoize = off")
    first = 1
    while not stop.is_set():
        connection.execute(f"SELECT sum(found) FROM {table}_all AS p, "
                           f"LATERAL (SELECT count(*) AS found FROM {table} AS t WHERE t.k = p.k) AS s "
                           f"WHERE n BETWEEN {first} AND {first + PROBES - 1}")
        first = first + PROBES if first + PROBES <= rows else 1
