"""A session that looks up rows in memory while another one is measured: how long do its lookups take meanwhile?"""

import random
import threading
import time

import numpy

from .measure import Failed

EVERY_SECONDS = 0.002
STOP_SECONDS = 60
SEED = 9


class Reader:
    """Context manager: while it is open, a lookup of a random key from 1 to `keys` is due every 2 ms.

    A lookup's time counts from when it was due, so that one that waits makes the next ones late.
    """

    def __init__(self, bench, table, keys, settings):
        self._sql = f"SELECT v FROM {table} WHERE k = %s"
        self._keys = keys
        self._connection = bench.server.connect(settings)
        self._connection.prepare_threshold = 0
        self._milliseconds = []
        self._ended = threading.Event()
        self._error = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._look_up(1)  # parse and plan, and read the catalogs
        self._thread.start()
        return self

    def __exit__(self, *exception):
        self._ended.set()
        self._thread.join(STOP_SECONDS)
        self._connection.close()
        if self._error and exception[0] is None:
            raise self._error

    def percentile(self, share):
        """In milliseconds."""
        return float(numpy.percentile(self._milliseconds, share))

    def _run(self):
        draw = random.Random(SEED)
        try:
            due = time.perf_counter()
            while True:
                self._look_up(draw.randint(1, self._keys))
                self._milliseconds.append((time.perf_counter() - due) * 1000)
                due += EVERY_SECONDS
                if self._ended.wait(max(due - time.perf_counter(), 0)):
                    break
        except Exception as error:  # handed to whoever closes us
            self._error = error

    def _look_up(self, key):
        if not self._connection.execute(self._sql, [key]).fetchone():
            raise Failed(f"the reader beside finds no row for {key}")
