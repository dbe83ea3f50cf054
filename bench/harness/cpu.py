"""CPU time of processes: what a statement takes, whatever else the machine is doing."""

import os
import pathlib


def cpu_seconds(process):
    """User and system time of a process so far; None if it has ended."""
    try:
        return int(pathlib.Path(f"/proc/{process}/schedstat").read_text().split()[0]) / 1e9
    except FileNotFoundError:
        pass  # ended, or a kernel without it
    try:
        fields = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except FileNotFoundError:
        return None


def cpu_microseconds(connection, statement):
    """Run a statement; returns (microseconds of CPU time that its backend spent on it; its rows, or their number)."""
    backend = connection.info.backend_pid
    before = cpu_seconds(backend)
    cursor = connection.execute(statement)
    rows = cursor.fetchall() if cursor.description else cursor.rowcount
    return (cpu_seconds(backend) - before) * 1e6, rows
