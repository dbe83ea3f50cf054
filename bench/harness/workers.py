"""CPU time of the extension's background workers, which is what training costs, and how long each training took.

Workers live for seconds, so a thread looks at them several times a second; what one does between the last
look and its end is missed.
"""

import time

from .beside import Beside
from .contenders import EXTENSION
from .cpu import cpu_seconds
from .measure import Failed

LOOK_SECONDS = 0.2
END_SECONDS = 120  # a worker lingers for two seconds


class WorkerWatch(Beside):
    """Context manager: watches all workers, and the trainings of one index (or none), while it is open."""

    STOP_SECONDS = 30

    def __init__(self, server, index=None):
        super().__init__(server.connect())
        self.index = index
        self.training_ms = {}  # time of a training -> its duration
        self._trained_before = None
        self._cpu = {}  # (pid, start) -> (seconds at the first look, seconds at the last)

    def _begin(self):
        self._look(first=True)

    @property
    def workers(self):
        return len(self._cpu)

    def cpu_seconds(self):
        return sum(last - first for first, last in self._cpu.values())

    def _watch(self):
        while not self._ended.wait(LOOK_SECONDS):
            self._look()
        self._look()

    def _look(self, first=False):
        # A worker that was not there at the first look has spent all of its time while we watched.
        for process, started in self._connection.execute(
                "SELECT pid, backend_start FROM pg_stat_activity WHERE backend_type LIKE %s",
                [f"{EXTENSION} %"]).fetchall():
            seconds = cpu_seconds(process)
            if seconds is not None:
                at_first = self._cpu.get((process, started), (seconds if first else 0, 0))[0]
                self._cpu[process, started] = at_first, seconds
        if self.index is None:
            return
        trained_at, milliseconds = self._connection.execute(
            f"SELECT trained_at, training_ms FROM {EXTENSION}_model(%s::regclass)", [self.index]).fetchone()
        if first:
            self._trained_before = trained_at
        if trained_at not in (None, self._trained_before):
            self.training_ms[trained_at] = milliseconds


def wait_for_end(bench):
    """Wait until the extension's workers have ended: what was asked of them has been done."""
    deadline = time.monotonic() + END_SECONDS
    while bench.connection.execute("SELECT count(*) FROM pg_stat_activity WHERE backend_type LIKE %s",
                                   [f"{EXTENSION} %"]).fetchone()[0]:
        if time.monotonic() > deadline:
            raise Failed(f"workers are still there after {END_SECONDS} s")
        time.sleep(LOOK_SECONDS)
