"""A session that looks up rows in memory while another one is measured: how long do its lookups take meanwhile?"""

import random
import time

import numpy

from .beside import Beside
from .measure import Failed

EVERY_SECONDS = 0.002
SEED = 9


class Reader(Beside):
    """Context manager: while it is open, a lookup of a random key from 1 to `keys` is due every 2 ms.

    A lookup's time counts from when it was due, so that one that waits makes the next ones late.
    """

    def __init__(self, bench, table, keys, settings):
        self._sql = f"SELECT v FROM {table} WHERE k = %s"
        self._keys = keys
        super().__init__(bench.server.connect(settings))
        self._connection.prepare_threshold = 0
        self._milliseconds = []

    def _begin(self):
        self._look_up(1)  # parse and plan, and read the catalogs

    def percentile(self, share):
        """In milliseconds."""
        return float(numpy.percentile(self._milliseconds, share))

    def _watch(self):
        draw = random.Random(SEED)
        due = time.perf_counter()
        while True:
            self._look_up(draw.randint(1, self._keys))
            self._milliseconds.append((time.perf_counter() - due) * 1000)
            due += EVERY_SECONDS
            if self._ended.wait(max(due - time.perf_counter(), 0)):
                break

    def _look_up(self, key):
        if not self._connection.execute(self._sql, [key]).fetchone():
            raise Failed(f"the reader beside finds no row for {key}")
