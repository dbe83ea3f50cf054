"""Storage of a known latency for cold samples, by a library that is preloaded into the server: see shim/slowreads.c."""

import contextlib
import mmap
import os
import pathlib
import stat
import struct
import subprocess

from .measure import Failed

SOURCE = pathlib.Path(__file__).parent.parent / "shim" / "slowreads.c"
BYTES = 4096 + 2**22 * 16  # of the shared memory: header and slots; the kernel gives what is used
EPOCH, LATENCY, ALONE = 0, 8, 16  # where these are in the header
FD_VARIABLE = "LBT_SLOW_READS_FD"
IO_CONCURRENCY, IO_WORKERS = 64, 32  # so that a batch's reads are under way together; of workers, the server's most
IO_METHODS = ("worker", "sync")  # those whose reads the library sees


def add_options(parser):
    parser.add_argument("--latency", type=int, metavar="US",
                        help="in cold samples, the first read of a block takes this long, counted from the advice")


def check_options(options, parser):
    """With what --set says."""
    if options.latency is None:
        return
    if options.latency < 1:
        parser.error("--latency must be at least 1")
    given = dict(setting.split("=", 1) for setting in options.set)
    if given.get("io_method", IO_METHODS[0]) not in IO_METHODS:
        parser.error(f"--latency delays reads of the I/O methods {' and '.join(IO_METHODS)} only")
    if given.get("debug_io_direct"):
        parser.error("--latency does not delay direct reads")


def settings(installation):
    """The server's, while reads are slow."""
    workers = {"io_workers": str(IO_WORKERS)} if installation.major >= 18 else {}
    return {"effective_io_concurrency": str(IO_CONCURRENCY), **workers}


def in_words(latency):
    return f"each block's first read takes {latency:,} µs, counted from the advice"


class SlowReads:
    """The library and its memory, of one run."""

    def __init__(self, latency, folder):
        if not hasattr(os, "memfd_create"):
            raise SystemExit("bench: --latency needs Linux")
        self.latency = latency
        self._library = folder / "slowreads.so"
        compile_library(self._library)
        self.descriptor = os.memfd_create("slowreads")
        os.ftruncate(self.descriptor, BYTES)
        self._header = mmap.mmap(self.descriptor, mmap.PAGESIZE)
        self._set(EPOCH, 1)
        self._set(LATENCY, latency)

    def environment(self):
        """For the server."""
        others = os.environ.get("LD_PRELOAD")
        return {"LD_PRELOAD": f"{self._library}:{others}" if others else str(self._library),
                FD_VARIABLE: str(self.descriptor)}

    def all_cold(self, files):
        """Every block of these, and of those before, will be read for the first time."""
        for name in files:
            os.chmod(name, stat.S_IMODE(os.stat(name).st_mode) | stat.S_ISVTX)
        self._set(EPOCH, self._get(EPOCH) + 1)

    @contextlib.contextmanager
    def paused(self):
        """What is read in here is fast, then and later."""
        self._set(LATENCY, 0)
        try:
            yield
        finally:
            self._set(LATENCY, self.latency)

    def alone(self):
        """How many reads have come without advice."""
        return self._get(ALONE)

    def check(self, what, reads, microseconds):
        """Raise Failed unless something that reads one block after the other has waited for so many reads."""
        if not reads:
            raise Failed(f"{what}: no read was delayed")
        if microseconds < reads * self.latency:
            raise Failed(f"{what}: {reads} reads of {self.latency} µs took {microseconds:.0f} µs")

    # Of native size: other processes see a value or the next one, nothing between.

    def _get(self, where):
        return struct.unpack_from("Q", self._header, where)[0]

    def _set(self, where, value):
        struct.pack_into("Q", self._header, where, value)


def compile_library(library):
    compiler = os.environ.get("CC", "cc")
    try:
        done = subprocess.run([compiler, "-std=gnu11", "-O2", "-fPIC", "-shared", "-o", library, SOURCE, "-ldl"],
                              capture_output=True, text=True)
    except OSError as error:
        raise SystemExit(f"bench: --latency needs a C compiler, to be named by CC: {compiler}: {error.strerror}") from None
    if done.returncode:
        raise SystemExit(f"bench: {compiler} cannot compile {SOURCE}:\n{done.stderr}")
