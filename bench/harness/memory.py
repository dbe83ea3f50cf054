"""Memory of the server, as the operating system sees it."""

import pathlib
import re

SEGMENT = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) .* (/dev/shm/PostgreSQL\.\d+|/\S*/pg_dynshmem/mmap\.\d+)", re.MULTILINE)


def private_bytes(process):
    """What a process has for itself alone: no shared memory, no files."""
    status = pathlib.Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    return int(re.search(r"^RssAnon:\s+(\d+) kB", status, re.MULTILINE).group(1)) * 1024


def segments_bytes(bench):
    """Dynamic shared memory that sessions have mapped, each segment once: the extension's, and the statistics'."""
    found = {}
    for process, in bench.connection.execute("SELECT pid FROM pg_stat_activity"):
        try:
            maps = pathlib.Path(f"/proc/{process}/maps").read_text(encoding="utf-8")
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended
        found.update((name, int(last, 16) - int(first, 16)) for first, last, name in SEGMENT.findall(maps))
    return sum(found.values())
