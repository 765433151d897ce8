"""Pure: the jobs of a run that are in memory. Groups take turns; none has more in hand than its host can take soon.

A job *waits*, is *in hand* (the fetcher's handler has it), or waits for *later*. Times are monotonic seconds.
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter, deque
from collections.abc import Callable, Iterable

from services.fetcher.politeness.limits import MAX_WAIT_SHARE, Limits
from shared.wire.jobs import FetchFeed


def share_of(limits: Limits, group: str) -> int:
    """Return how many jobs of a group the handler can make use of: what it begins soon, or has room for."""
    policy = limits.policy(group)
    assert policy.concurrency is not None
    reach = MAX_WAIT_SHARE * limits.max_hold_seconds
    within_reach = int(reach / policy.min_interval_seconds) if policy.min_interval_seconds else policy.concurrency + 1
    return max(min(policy.concurrency + 1, limits.max_held_per_group, within_reach), 1)


class Window:
    """See the module.

    Args:
        size: jobs in memory at a time; what is put in for later, or was there before, may exceed it.
        share: how many jobs of a group may be in hand.
    """

    def __init__(self, size: int, share: Callable[[str], int]) -> None:
        self.size = size
        self._share = share
        self._lines: dict[str, deque[FetchFeed]] = {}
        self._ready: dict[str, None] = {}
        self._in_hand: Counter[str] = Counter()
        self._later: list[tuple[float, int, FetchFeed]] = []
        self._numbers = itertools.count()
        self._waiting = 0

    def __len__(self) -> int:
        return self._waiting + self._in_hand.total() + len(self._later)

    @property
    def in_hand(self) -> int:
        """How many jobs the handler has."""
        return self._in_hand.total()

    @property
    def room(self) -> int:
        """How many jobs may be claimed."""
        return max(self.size - len(self), 0)

    def add(self, jobs: Iterable[FetchFeed]) -> None:
        """Let jobs wait, each at the end of its group's line."""
        for job in jobs:
            self._lines.setdefault(job.group, deque()).append(job)
            self._waiting += 1
            self._look_at(job.group)

    def put_later(self, job: FetchFeed, at: float) -> None:
        """Let a job wait that may not be taken before `at`."""
        heapq.heappush(self._later, (at, next(self._numbers), job))

    def take(self, now: float) -> FetchFeed | None:
        """Return the job that is to be handled next, in hand from now on; None if there is none at the moment."""
        while self._later and self._later[0][0] <= now:
            self.add([heapq.heappop(self._later)[2]])
        group = next(iter(self._ready), None)
        if group is None:
            return None
        line = self._lines[group]
        job = line.popleft()
        if not line:
            del self._lines[group]
        self._waiting -= 1
        self._in_hand[group] += 1
        del self._ready[group]  # to the end of the round
        self._look_at(group)
        return job

    def done(self, job: FetchFeed) -> None:
        """A job is in hand no more."""
        self._in_hand[job.group] -= 1
        if not self._in_hand[job.group]:
            del self._in_hand[job.group]
        self._look_at(job.group)

    def next_at(self) -> float | None:
        """Return when the first of those that wait for later may be taken."""
        return self._later[0][0] if self._later else None

    def empty(self) -> list[FetchFeed]:
        """Return all jobs that are not in hand, and forget them."""
        waiting = [job for line in self._lines.values() for job in line]
        later = [job for _, _, job in self._later]
        self._lines.clear()
        self._ready.clear()
        self._later.clear()
        self._waiting = 0
        return waiting + later

    def _look_at(self, group: str) -> None:
        if group in self._lines and self._in_hand[group] < self._share(group):
            self._ready.setdefault(group)
        else:
            self._ready.pop(group, None)
        if not self._in_hand[group]:
            del self._in_hand[group]
