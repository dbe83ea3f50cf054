"""Where backends spend their time: perf's samples of their processes, by groups of symbols."""

import shutil
import subprocess
import tempfile
from pathlib import Path

from .measure import Failed

FREQUENCY = 997  # samples a second and process
SPARE_SECONDS = 60
TOP = 12  # symbols that are listed by themselves

# By the beginnings of symbols, the first group that fits; what is in the extension's library is a group of its own.
GROUPS = (
    ("pins and the buffer table", ("PinBuffer", "UnpinBuffer", "ReadBuffer", "ReleaseBuffer", "ReleaseAndReadBuffer",
                                   "StartReadBuffer", "BufferAlloc", "BufTable", "hash_search", "hash_bytes",
                                   "LockBuffer", "ResourceOwner", "GetPrivateRefCount", "StartBufferIO")),
    ("locks of pages and others (LWLock)", ("LWLock", "perform_spin_delay", "s_lock", "PGSemaphore", "ProcWait")),
    ("descent and search in pages", ("_bt_", "btgettuple", "btrescan", "btgetbitmap", "bt", "index_", "heap_compare")),
)
EXTENSION_GROUP, KERNEL_GROUP, OTHERS = "the extension", "the kernel", "all else in the server"


def check_available():
    """Raise SystemExit where there is no perf that may look at other processes."""
    if not shutil.which("perf"):
        raise SystemExit("bench: --perf: there is no perf here: install linux-perf")
    tried = subprocess.run(["perf", "stat", "-e", "cpu-clock", "-p", "1", "true"], capture_output=True, text=True)
    if tried.returncode != 0:
        raise SystemExit("bench: --perf: perf may not look at other processes: be root, or set "
                         f"kernel.perf_event_paranoid to -1\n{tried.stderr.strip()}")


class Samples:
    """Context manager: perf looks at the processes from here for `seconds`; then `symbols` has their shares."""

    def __init__(self, processes, seconds):
        self._processes, self._seconds = processes, seconds
        self.symbols = []  # (per cent, library or program, symbol)

    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory()
        self._file = Path(self._folder.name, "perf.data")
        self._process = subprocess.Popen(
            ["perf", "record", "-q", "-e", "cpu-clock", "-F", str(FREQUENCY), "-o", self._file,
             "-p", ",".join(map(str, self._processes)), "--", "sleep", str(self._seconds)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        return self

    def __exit__(self, kind, *_):
        try:
            if kind is not None:
                self._process.terminate()
            _, errors = self._process.communicate(timeout=self._seconds + SPARE_SECONDS)
            if kind is None:
                if self._process.returncode != 0:
                    raise Failed(f"perf record failed: {errors}")
                self.symbols = self._report()
        finally:
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait()
            self._folder.cleanup()

    def _report(self):
        printed = subprocess.run(
            ["perf", "report", "-i", self._file, "--stdio", "-q", "--no-children", "-F", "overhead,dso,symbol",
             "-t", ";"], capture_output=True, text=True, timeout=SPARE_SECONDS)
        if printed.returncode != 0:
            raise Failed(f"perf report failed: {printed.stderr}")
        found = []
        for line in printed.stdout.splitlines():
            parts = [part.strip() for part in line.split(";")]
            if len(parts) == 3 and parts[0].endswith("%"):
                found.append((float(parts[0].rstrip("%")), parts[1], parts[2].split("] ", 1)[-1]))
        if not found:
            raise Failed("perf has seen nothing")
        return found


def group_of(library, symbol, extension):
    if library.startswith(extension):
        return EXTENSION_GROUP
    if library.startswith("["):
        return KERNEL_GROUP
    return next((name for name, beginnings in GROUPS if symbol.startswith(beginnings)), OTHERS)


def shares(symbols, extension):
    """{group: per cent}, all groups in the same order."""
    found = dict.fromkeys([*(name for name, _ in GROUPS), EXTENSION_GROUP, KERNEL_GROUP, OTHERS], 0.0)
    for share, library, symbol in symbols:
        found[group_of(library, symbol, extension)] += share
    return found


def top(symbols):
    """{symbol: per cent} of the most frequent ones."""
    found = {}
    for share, _, symbol in symbols:
        found[symbol] = found.get(symbol, 0) + share
    return dict(sorted(found.items(), key=lambda entry: -entry[1])[:TOP])
