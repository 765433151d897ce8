"""Servers that hang: all their processes stand still, and their sockets take what is sent."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def frozen(pid: int) -> Iterator[None]:
    """Stop a process and its descendants for the length of the block."""
    stopped: list[int] = []
    try:
        while new := [one for one in [pid, *_descendants(pid)] if one not in stopped]:  # the stopped ones start no more
            for one in new:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(one, signal.SIGSTOP)
            stopped += new
        yield
    finally:
        for one in reversed(stopped):
            with contextlib.suppress(ProcessLookupError):
                os.kill(one, signal.SIGCONT)


def _descendants(pid: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parent = int(stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(stat.parent.name))
    found, look_at = [], [pid]
    while look_at:
        of_one = children.get(look_at.pop(), [])
        found += of_one
        look_at += of_one
    return found
