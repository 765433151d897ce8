"""CPU time and memory of processes, from /proc."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """Return the CPU seconds of one process and of its children that have ended; 10 ms is the finest step."""
    # Behind the name: state, parent, …, and from the twelfth on utime, stime, cutime, cstime.
    return sum(map(int, _stat(pid)[11:15])) / _TICKS_PER_SECOND


def family_cpu_seconds(roots: Iterable[int]) -> float:
    """Return the CPU seconds of these processes and of all their descendants."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                children.setdefault(int(_stat(int(entry.name))[1]), []).append(int(entry.name))
            except (FileNotFoundError, ProcessLookupError):
                continue  # it ended in between
    family = list(roots)
    for pid in family:  # grows while we walk it
        family.extend(children.get(pid, ()))
    return sum(map(_cpu_seconds_if_alive, family))


def peak_rss_bytes(pid: int) -> int:
    """Return the most memory that a process has had at a time."""
    return _status_bytes(pid, "VmHWM:")


def rss_bytes(pid: int) -> int:
    """Return the memory that a process has now."""
    return _status_bytes(pid, "VmRSS:")


def _status_bytes(pid: int, name: str) -> int:
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    (line,) = (line for line in status.splitlines() if line.startswith(name))
    return int(line.split()[1]) * 1024


def _cpu_seconds_if_alive(pid: int) -> float:
    try:
        return cpu_seconds(pid)
    except (FileNotFoundError, ProcessLookupError):
        return 0.0


def _stat(pid: int) -> list[str]:
    """Return the fields behind the name, which stands in brackets and may hold anything."""
    text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    return text.rpartition(")")[2].split()
