"""Pure: the jobs of a run that are in memory.

A job waits in its group's queue, is in progress (the fetcher's handler has it), or waits for a later time. The groups'
queues are served round robin. No group has more jobs in progress than its host can take soon. Times are in monotonic
seconds.
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter, deque
from collections.abc import Callable, Iterable

from services.fetcher.politeness.limits import MAX_WAIT_SHARE, Limits
from shared.wire.jobs import FetchFeed


def max_in_progress(limits: Limits, group: str) -> int:
    """Return how many jobs of a group the handler can use: those that it starts soon, or can hold."""
    policy = limits.policy(group)
    assert policy.concurrency is not None
    reach = MAX_WAIT_SHARE * limits.max_hold_seconds
    within_reach = int(reach / policy.min_interval_seconds) if policy.min_interval_seconds else policy.concurrency + 1
    return max(min(policy.concurrency + 1, limits.max_held_per_group, within_reach), 1)


class Window:
    """The jobs of a run.

    Args:
        size: the most jobs for which new claims are made; jobs that come back may exceed it.
        most: how many jobs of a group may be in progress.
    """

    def __init__(self, size: int, most: Callable[[str], int]) -> None:
        self.size = size
        self._most = most
        self._queues: dict[str, deque[FetchFeed]] = {}
        self._ready: dict[str, None] = {}  # groups that have a waiting job and may start it, in their order
        self._in_progress: Counter[str] = Counter()
        self._later: list[tuple[float, int, FetchFeed]] = []
        self._numbers = itertools.count()
        self._waiting = 0

    def __len__(self) -> int:
        return self._waiting + self._in_progress.total() + len(self._later)

    @property
    def in_progress(self) -> int:
        """How many jobs the handler has."""
        return self._in_progress.total()

    @property
    def room(self) -> int:
        """How many jobs may be claimed."""
        return max(self.size - len(self), 0)

    def add(self, jobs: Iterable[FetchFeed]) -> None:
        """Append jobs to their groups' queues."""
        for job in jobs:
            self._queues.setdefault(job.group, deque()).append(job)
            self._waiting += 1
            self._update_ready(job.group)

    def add_later(self, job: FetchFeed, at: float) -> None:
        """Add a job that must not be taken before `at`."""
        heapq.heappush(self._later, (at, next(self._numbers), job))

    def take(self, now: float) -> FetchFeed | None:
        """Return the next job, which is in progress from now on; None if none may start now."""
        while self._later and self._later[0][0] <= now:
            self.add([heapq.heappop(self._later)[2]])
        group = next(iter(self._ready), None)
        if group is None:
            return None
        queue = self._queues[group]
        job = queue.popleft()
        if not queue:
            del self._queues[group]
        self._waiting -= 1
        self._in_progress[group] += 1
        del self._ready[group]  # it goes to the end of the round
        self._update_ready(group)
        return job

    def done(self, job: FetchFeed) -> None:
        """End a job's progress."""
        self._in_progress[job.group] -= 1
        self._update_ready(job.group)

    def next_at(self) -> float | None:
        """Return when the first job that waits for a later time may be taken."""
        return self._later[0][0] if self._later else None

    def empty(self) -> list[FetchFeed]:
        """Remove and return all jobs that are not in progress."""
        jobs = [*itertools.chain(*self._queues.values()), *(job for _, _, job in self._later)]
        self._queues.clear()
        self._ready.clear()
        self._later.clear()
        self._waiting = 0
        return jobs

    def _update_ready(self, group: str) -> None:
        if group in self._queues and self._in_progress[group] < self._most(group):
            self._ready.setdefault(group)
        else:
            self._ready.pop(group, None)
        if not self._in_progress[group]:
            del self._in_progress[group]
