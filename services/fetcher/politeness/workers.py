"""The worker threads, which make requests and read feeds. The fetcher runs blocking code nowhere else."""

from __future__ import annotations

import ctypes
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

HEAPS = 2
"""glibc gives threads up to eight heaps per core, and each keeps the memory that its largest feed took."""

_M_ARENA_MAX = -8


def share_heaps() -> None:
    """Have all threads allocate from `HEAPS` heaps (MALLOC_ARENA_MAX), where the C library is glibc."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, HEAPS)


@dataclass(frozen=True)
class Busy:
    """The task of a thread."""

    thread: str
    task: str
    seconds: float


class Workers:
    """A fixed number of threads over one queue. Leaner than an executor: a task delivers its result itself."""

    def __init__(self, number: int) -> None:
        share_heaps()
        self._tasks: queue.SimpleQueue[tuple[str, Callable[[], None]] | None] = queue.SimpleQueue()
        self._busy: dict[str, tuple[str, float]] = {}
        self._threads = [threading.Thread(target=self._run, name=f"fetch-{n}", daemon=True) for n in range(number)]
        for thread in self._threads:
            thread.start()

    def submit(self, label: str, task: Callable[[], None]) -> None:
        """Have `task` run on the next free thread. It must not raise. `label` says what it is, to people."""
        self._tasks.put((label, task))

    def busy(self) -> list[Busy]:
        """Return the running tasks, the longest first."""
        now = time.monotonic()
        found = [Busy(name, label, now - since) for name, (label, since) in list(self._busy.items())]
        return sorted(found, key=lambda busy: -busy.seconds)

    def close(self) -> None:
        """Wait until the threads have ended their tasks."""
        for _ in self._threads:
            self._tasks.put(None)
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        name = threading.current_thread().name
        while (item := self._tasks.get()) is not None:
            label, task = item
            self._busy[name] = (label, time.monotonic())
            try:
                task()
            finally:
                del self._busy[name]
            del item, task  # an idle thread must not keep a large result alive
