"""Pure: who may start when. Everything known about each politeness group, under one lock, with time as an argument.

A job is admitted (start now, hold, requeue, skip), started (the rules are checked again at the moment the request
leaves), and finished. Every admitted job ends exactly once: by `finish` if it was started, else by `withdraw`.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

EWMA_ALPHA = 0.25
"""Weight of the newest latency in the smoothed one."""

MAX_THROTTLE_SECONDS = 86400.0
"""A server may ask for at most this much patience with Retry-After."""

MAX_DOWN_SECONDS = 3600.0
"""Repeated connect failures double the time that a group is left alone, up to this."""

LEAST_WAIT_SECONDS = 0.01
"""A job that may not start waits at least this long before it asks again."""


@dataclass(frozen=True)
class Limits:
    """What the scoreboard holds to; spans in seconds."""

    host_concurrency: int = 2
    host_min_interval_seconds: float = 1.0
    max_active: int = 200
    max_held_per_group: int = 100
    max_hold_seconds: float = 20.0
    connect_failure_seconds: float = 600.0
    throttle_seconds: float = 30.0


@dataclass(frozen=True)
class Hold:
    """Keep the job here and ask `start` after this long (0: now)."""

    seconds: float


@dataclass(frozen=True)
class Requeue:
    """Its turn is too far away, or its group holds its share already: to the fast-delay queue."""

    throttled_seconds: float = 0.0
    """For how long the group is throttled by its server; a long wait is not for the queue."""


@dataclass(frozen=True)
class Skip:
    """The group could not be connected to a short while ago: to the retry queue, without burning an attempt."""


@dataclass(frozen=True)
class Started:
    """The request may leave now."""


Admission = Hold | Requeue | Skip
Start = Started | Hold | Skip


@dataclass(frozen=True)
class Report:
    """How a fetch went, as far as the group is concerned."""

    latency_seconds: float
    connected: bool = True
    succeeded: bool = True
    throttled: bool = False
    """The server answered 429."""
    retry_after_seconds: float | None = None


@dataclass
class _Group:
    active: int = 0
    held: int = 0
    latency: float = 0.0
    next_start: float = 0.0
    down_until: float = 0.0
    connect_failures: int = 0
    throttled_until: float = 0.0
    throttles: int = 0
    last_use: float = 0.0


@dataclass(frozen=True)
class Totals:
    """The whole board in three numbers."""

    groups: int
    active: int
    held: int


class Scoreboard:
    """See the module. All times are monotonic seconds."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._groups: dict[str, _Group] = {}
        self._active = 0

    def admit(self, name: str, now: float) -> Admission:
        """Decide on a job that has just arrived. `Hold` counts it as held until `start` or `withdraw`."""
        with self._lock:
            group = self._groups.setdefault(name, _Group())
            group.last_use = now
            if group.down_until > now:
                return Skip()
            wait = self._wait(group, now) + group.held * self._interval(group)
            if wait > self._limits.max_hold_seconds or group.held >= self._limits.max_held_per_group:
                return Requeue(throttled_seconds=max(group.throttled_until - now, 0.0))
            group.held += 1
            return Hold(wait)

    def start(self, name: str, now: float) -> Start:
        """Check the rules once more; on `Started` the job is active and its start counts for the spacing."""
        with self._lock:
            group = self._groups[name]
            if group.down_until > now:
                return Skip()
            wait = self._wait(group, now)
            if wait > 0:
                return Hold(max(wait, LEAST_WAIT_SECONDS))
            group.held -= 1
            group.active += 1
            self._active += 1
            group.next_start = now + self._interval(group)
            group.last_use = now
            return Started()

    def withdraw(self, name: str) -> None:
        """Take back a held job that will not start here."""
        with self._lock:
            self._groups[name].held -= 1

    def finish(self, name: str, now: float, report: Report) -> None:
        """Note the end of a started job."""
        with self._lock:
            group = self._groups[name]
            group.active -= 1
            self._active -= 1
            group.last_use = now
            self._note_latency(group, report)
            self._note_connect(group, now, report)
            self._note_throttle(group, now, report)

    def forget_idle(self, now: float, *, idle_seconds: float) -> None:
        """Drop groups of which nothing matters any more."""
        with self._lock:
            idle = [
                name
                for name, group in self._groups.items()
                if not (group.active or group.held)
                and max(group.next_start, group.down_until, group.throttled_until) <= now
                and group.last_use + idle_seconds <= now
            ]
            for name in idle:
                del self._groups[name]

    def totals(self) -> Totals:
        """Return the board's size at this moment."""
        with self._lock:
            return Totals(len(self._groups), self._active, sum(group.held for group in self._groups.values()))

    def _interval(self, group: _Group) -> float:
        return max(self._limits.host_min_interval_seconds, group.latency / self._limits.host_concurrency)

    def _wait(self, group: _Group, now: float) -> float:
        """Return how long until the group's next start, as far as can be foreseen (0: now)."""
        wait = max(group.next_start, group.throttled_until) - now
        # After a failure to connect, one job goes ahead and shows whether the host is back, before the crowd follows.
        most = 1 if group.connect_failures else self._limits.host_concurrency
        if group.active >= most or self._active >= self._limits.max_active:
            wait = max(wait, min(max(group.latency / 4, LEAST_WAIT_SECONDS), 0.25))
        return max(wait, 0.0)

    def _note_latency(self, group: _Group, report: Report) -> None:
        smoothed = (
            group.latency + EWMA_ALPHA * (report.latency_seconds - group.latency)
            if group.latency
            else report.latency_seconds
        )
        # Only a success may lower it: a host that fails fast is not a fast host.
        if report.succeeded or smoothed > group.latency:
            group.latency = smoothed

    def _note_connect(self, group: _Group, now: float, report: Report) -> None:
        if report.connected:
            group.connect_failures = 0
            return
        group.connect_failures += 1
        span = self._limits.connect_failure_seconds * 2.0 ** min(group.connect_failures - 1, 20)
        group.down_until = now + min(span, max(MAX_DOWN_SECONDS, self._limits.connect_failure_seconds))

    def _note_throttle(self, group: _Group, now: float, report: Report) -> None:
        if not report.throttled:
            if report.succeeded and group.throttled_until <= now:
                group.throttles = 0
            return
        group.throttles += 1
        bare = self._limits.throttle_seconds * 2.0 ** min(group.throttles - 1, 20)
        asked = report.retry_after_seconds
        span = bare if asked is None else max(asked, self._limits.throttle_seconds)
        group.throttled_until = max(group.throttled_until, now + min(span, MAX_THROTTLE_SECONDS))
