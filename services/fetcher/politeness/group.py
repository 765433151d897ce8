"""Pure: one politeness group: its per-host queue, and when its next request may start.

A rate limiter spaces the starts. A bulkhead caps the requests under way, and those of foreign redirects separately. A
circuit breaker per target opens after a failure to connect; then one job goes ahead as a half-open probe. All times are
monotonic seconds.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from services.fetcher.politeness.decisions import ANYWHERE, FastDelay, Refusal, Report, Skip, Target
from services.fetcher.politeness.limits import MAX_WAIT_SHARE, Limits
from shared.politeness import MAX_SERVER_WAIT_SECONDS

EWMA_ALPHA = 0.25
"""Weight of the newest latency in the moving average."""

MAX_DOWN_SECONDS = 3600.0
"""Repeated failures to connect double the down time up to this."""

TROUBLE_MEMORY_SECONDS = 7200.0
"""A throttle or down time is remembered for this long after its end. So a failure of the hourly retry counts as a
repetition. Twice the longest down time."""

PATIENCE = 3.0
"""Jobs wait out a throttle of up to so many holds in the fast-delay queue, a longer one in the retry queue."""

NEW_HOLDS = 3.0
"""A group is new if it had no jobs for so many holds."""

T = TypeVar("T")


@dataclass(eq=False)
class QueuedJob(Generic[T]):
    """A job in its group's queue, and later on the wire."""

    ticket: T
    group: Group[T]
    until: float
    """When its hold ends."""
    target: Target = ANYWHERE
    front: bool = False
    """It goes before jobs that have not begun. `Group.next_job` limits that for foreign redirects."""
    ahead: bool = False
    """It goes before the jobs of other groups, too."""
    has_left: bool = False
    """It is no longer in the queue."""


@dataclass
class Down:
    """The circuit breaker of a target: open after a failure to connect."""

    failures: int = 0
    """In a row."""
    until: float = 0.0

    def note(self, now: float, limits: Limits) -> None:
        """Count a failure. The breaker stays open for longer each time."""
        self.failures += 1
        span = limits.connect_failure_seconds * 2.0 ** min(self.failures - 1, 20)
        self.until = now + min(span, max(MAX_DOWN_SECONDS, limits.connect_failure_seconds))


@dataclass
class Throttle:
    """The answers 429 of a group's server."""

    times: int = 0
    """In a row."""
    until: float = 0.0

    def note(self, now: float, asked: float | None, limits: Limits) -> None:
        """Count a 429. `asked`: the seconds of its Retry-After; without one, each 429 in a row doubles the pause."""
        if self.until <= now:  # requests that were under way when the throttle began are no repetition
            self.times += 1
        bare = limits.throttle_seconds * 2.0 ** min(self.times - 1, 20)
        span = bare if asked is None else max(asked, limits.throttle_seconds)
        self.until = max(self.until, now + min(span, MAX_SERVER_WAIT_SECONDS))


@dataclass(eq=False)
class Group(Generic[T]):
    """One politeness group. Not thread-safe: the scoreboard's lock guards it."""

    name: str
    concurrency: int
    min_interval: float
    limits: Limits = field(repr=False)
    queue: deque[QueuedJob[T]] = field(default_factory=deque)
    active: int = 0
    foreign_active: int = 0
    """Active requests that follow a redirect from another group."""
    foreign_was_last: bool = False
    """Whether the last start was such a request."""
    has_own: bool = False
    """Whether this process has seen a feed of the group itself."""
    at_gate: QueuedJob[T] | None = None
    """The job that has started and whose request has not left. It closes the start gate for others."""
    gate_opens_at: float = 0.0
    """The earliest next start, as long as the gate is closed: it is an interval after the request has left."""
    is_awaited: bool = False
    """That time has passed and the gate is still closed: the event loop has to be woken when it opens."""
    latency: float = 0.0
    next_start: float = 0.0
    down: dict[Target, Down] = field(default_factory=dict)
    throttle: Throttle = field(default_factory=Throttle)
    foreign_throttle: Throttle = field(default_factory=Throttle)
    """Applies to foreign requests besides."""
    last_use: float | None = None
    planned: float | None = None
    """The time of this group's entry in the scoreboard's plan."""

    @property
    def interval(self) -> float:
        """Least time between two starts. It grows with the latency, so that the concurrency cap is rarely met."""
        return max(self.min_interval, self.latency / self.concurrency)

    @property
    def is_slow(self) -> bool:
        """Whether it takes hardly one job per hold. Then a backlog in this process is of no use."""
        return self.interval > MAX_WAIT_SHARE * self.limits.max_hold_seconds

    def is_new(self, now: float) -> bool:
        """Return whether the group had no jobs for several holds."""
        return self.last_use is None or self.last_use + NEW_HOLDS * self.limits.max_hold_seconds <= now

    def can_start(self, now: float) -> bool:
        """Return whether the only job of the queue can start at once."""
        due = self.next_due()
        return len(self.queue) == 1 and self.at_gate is None and due is not None and due <= now

    def enqueue(self, job: QueuedJob[T]) -> None:
        """Put a job into the queue."""
        if job.front:
            self.queue.insert(sum(1 for other in self.queue if other.front), job)
        else:
            self.queue.append(job)
        self.has_own = self.has_own or not job.target.is_foreign

    def may_start(self, job: QueuedJob[T], now: float) -> bool:
        """Return whether `job` can start now."""
        due = self.next_due()
        return self.at_gate is None and due is not None and due <= now and self.next_job() is job

    def next_job(self) -> QueuedJob[T] | None:
        """Return the job that is to start next; None if each must wait for an active one to end.

        Foreign redirects leave every second start and one slot to the group's own feeds. The author of the redirects
        may have chosen the slowest page any number of times.
        """
        first = self.queue[0] if self.queue else None
        if first is None or not first.target.is_foreign or not self.has_own:
            return first
        has_all_slots = self.foreign_active >= max(1, self.concurrency - 1)
        if has_all_slots or self.foreign_was_last:
            own = next((job for job in self.queue if not job.target.is_foreign), None)
            if own is not None:
                return own
        return None if has_all_slots else first

    def next_due(self) -> float | None:
        """Return when the next job may start; None while that depends on another job."""
        job = self.next_job()
        # After a failure to connect, one half-open probe shows whether the host is back.
        if job is None or self.active >= (1 if self._downs(job.target) else self.concurrency):
            return None
        if self.at_gate is not None:
            return None if self.is_awaited else self.gate_opens_at
        arrived_at = job.until - self.limits.max_hold_seconds
        return max(self.next_start, self.throttle.until, arrived_at)

    def position_behind(self, target: Target, *, front: bool) -> int:
        """Return how many jobs would start before a new one."""
        if front:
            return sum(1 for other in self.queue if other.front)
        if target.is_foreign:
            return len(self.queue)
        own = sum(1 for other in self.queue if not other.target.is_foreign)
        return min(len(self.queue), 2 * own + 1)

    def wait_of(self, position: int, now: float) -> float:
        """Return the expected wait of a job that `position` others precede."""
        next_start = now + self.interval if self.at_gate is not None else self.next_start
        return max(next_start - now, self.throttle.until - now, 0.0) + position * self.interval

    def has_room(self, now: float, position: int) -> bool:
        """Return whether a job that `position` others precede is expected to start within its hold."""
        wait = self.wait_of(position, now)
        return position < self.limits.max_held_per_group and wait <= MAX_WAIT_SHARE * self.limits.max_hold_seconds

    def room_in(self, now: float) -> float:
        """Return after how many seconds half of the queue has started and a new job would start within its hold."""
        half = (len(self.queue) + 1) // 2
        wait = self.wait_of(half, now) - MAX_WAIT_SHARE * self.limits.max_hold_seconds
        return max(wait, half * self.interval, 0.0)

    def refusal(self, now: float, target: Target) -> Refusal | None:
        """Return why no job for `target` may be queued at the moment, if so."""
        down = max((down.until for down in self._downs(target)), default=0.0) - now
        if down > 0:
            return Skip(down)
        throttled, most = self.throttle.until - now, MAX_WAIT_SHARE * self.limits.max_hold_seconds
        if target.is_foreign and self.foreign_throttle.until > self.throttle.until:
            throttled, most = self.foreign_throttle.until - now, 0.0  # in the queue it would keep others waiting
        if throttled > PATIENCE * self.limits.max_hold_seconds:
            return Skip(throttled, throttled=True)
        return FastDelay() if throttled > most else None

    def note(self, now: float, target: Target, report: Report) -> None:
        """Learn from a request that ended."""
        self.last_use = now
        self._note_latency(target, report)
        self._note_connect(now, target, report)
        self._note_throttle(now, target, report)

    def is_forgettable(self, now: float, idle_seconds: float) -> bool:
        """Return whether the group is idle and all that is known of it is over."""
        throttles = self.throttle, self.foreign_throttle
        troubled = bool(self.down or any(throttle.times for throttle in throttles))
        ends = [throttle.until for throttle in throttles] + [down.until for down in self.down.values()]
        last = max(self.next_start, *ends)
        memory = TROUBLE_MEMORY_SECONDS if troubled else 0.0
        return not (self.queue or self.active) and last + memory <= now and (self.last_use or 0.0) + idle_seconds <= now

    def idleness(self) -> tuple[int, int, float, str]:
        """Return a sort key: the busiest group is the first."""
        return -self.active, -len(self.queue), -(self.last_use or 0.0), self.name

    def describe(self, now: float) -> dict[str, str | int | float]:
        """Return the group as plain data. Spans are seconds from now, 0 for those that are over."""
        breakers = self.down.values()
        return {
            "group": self.name,
            "active": self.active,
            "held": len(self.queue),
            "latency_seconds": round(self.latency, 3),
            "interval_seconds": round(self.interval, 3),
            "next_start_seconds": round(max(self.next_start - now, 0.0), 3),
            "down_seconds": round(max((down.until - now for down in breakers if down.until > now), default=0.0), 3),
            "connect_failures": max((down.failures for down in breakers), default=0),
            "throttled_seconds": round(max(self.throttle.until - now, 0.0), 3),
            "throttles": self.throttle.times,
            "idle_seconds": round(now - (self.last_use or now), 3),
        }

    def _downs(self, target: Target) -> list[Down]:
        """Return the breakers that hold for `target`. A foreign target shares that of the group's own feeds."""
        if not self.down:  # as good as always
            return []
        return [self.down[known] for known in {target, target.own} if known in self.down]

    def _note_latency(self, target: Target, report: Report) -> None:
        latency = report.latency_seconds
        if latency is None or target.is_foreign:  # a foreign redirect may lead to the slowest page
            return
        smoothed = self.latency + EWMA_ALPHA * (latency - self.latency) if self.latency else latency
        # Only a success may lower it: a host that fails fast is not fast.
        if report.succeeded or smoothed > self.latency:
            self.latency = smoothed

    def _note_connect(self, now: float, target: Target, report: Report) -> None:
        if report.connected:
            for known in (target.own, replace(target, is_foreign=True)) if self.down else ():
                self.down.pop(known, None)
        elif report.connected is not None:
            self.down.setdefault(target, Down()).note(now, self.limits)

    def _note_throttle(self, now: float, target: Target, report: Report) -> None:
        throttle = self.foreign_throttle if target.is_foreign else self.throttle
        if report.throttled:
            throttle.note(now, report.retry_after_seconds, self.limits)
            if target.is_foreign:  # the group's own feeds pause too, but no longer than after a bare 429
                self.throttle.until = max(self.throttle.until, now + self.limits.throttle_seconds)
        elif report.succeeded and throttle.until <= now:
            throttle.times = 0
