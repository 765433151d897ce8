"""Pure: jobs that find their host's queue full. They wait in this process, or let others pass.

PostgreSQL holds the backlog, and schedulers issue few jobs of one host at a time. Retries, redirects and other
publishers may still bring many at once.

- A deferred job is admitted as soon as its host's queue has room.
- While the prefetch window is full, jobs of idle hosts may stand behind these in the broker's queue. Then deferred jobs
  go to the fast-delay queue, the youngest first. A token bucket limits how many: without it, a thousand jobs of one
  host would go round again and again.
- No job stays longer than `MAX_STAY_SECONDS`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

REQUEUES_PER_SECOND = 5.0
"""Rate of the token bucket. The bucket holds one prefetch window."""

MAX_STAY_SECONDS = 300.0
"""A claim lasts longer than this, and the broker waits longer for an acknowledgement."""


class Deferrable(Protocol):
    """A job that waits for a slot."""

    @property
    def group(self) -> str:
        """Its politeness group."""

    @property
    def arrived_at(self) -> float:
        """When this process received it, in monotonic seconds."""


J = TypeVar("J", bound=Deferrable)


class Deferred(Generic[J]):
    """The deferred jobs, the oldest first. One thread uses it; times are monotonic seconds.

    Args:
        window: the prefetch window.
        min_wait_seconds: a job goes to the fast-delay queue only if it would have to wait for so long here.
    """

    def __init__(self, window: int, min_wait_seconds: float) -> None:
        self._window = window
        self._min_wait = min_wait_seconds
        self._tokens = float(window)
        self._filled_at = 0.0
        self._jobs: list[J] = []

    def __bool__(self) -> bool:
        return bool(self._jobs)

    def add(self, job: J) -> None:
        """Defer a job."""
        self._jobs.append(job)

    def remove(self, chosen: Callable[[J], bool]) -> list[J]:
        """Remove and return the chosen jobs."""
        removed = [job for job in self._jobs if chosen(job)]
        self._jobs = [job for job in self._jobs if job not in removed]
        return removed

    def review(
        self, now: float, *, admit: Callable[[J], float | None], may_hide_others: Callable[[J], bool]
    ) -> list[J]:
        """Admit what has room by now; remove and return the jobs that are to go to the fast-delay queue.

        Args:
            now: the current time.
            admit: admits a job and returns None, or returns the seconds between two starts of its full group.
            may_hide_others: whether the prefetch window that the job came through is full.
        """
        self._tokens = min(self._tokens + (now - self._filled_at) * REQUEUES_PER_SECOND, float(self._window))
        self._filled_at = now
        waits: dict[str, tuple[float, float]] = {}
        left: list[tuple[J, float]] = []
        jobs, self._jobs = self._jobs, []  # `admit` may lead to further calls of `add`
        for job in jobs:
            wait, interval = waits.get(job.group, (0.0, 0.0))
            if job.group not in waits:
                full = admit(job)
                if full is None:
                    continue
                interval = full
            left.append((job, wait))
            waits[job.group] = wait + interval, interval
        requeued = [job for job, _ in left if now - job.arrived_at >= MAX_STAY_SECONDS]
        for job, wait in reversed(left):
            if self._tokens >= 1 and wait >= self._min_wait and job not in requeued and may_hide_others(job):
                self._tokens -= 1
                requeued.append(job)
        self._jobs[:0] = [job for job, _ in left if job not in requeued]
        return requeued
