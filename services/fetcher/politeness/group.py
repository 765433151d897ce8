"""Pure: one politeness group: what is known about it, and the rules that follow. Monotonic seconds throughout."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from services.fetcher.politeness.decisions import ANYWHERE, FastDelay, Refusal, Report, Skip, Target
from services.fetcher.politeness.limits import MAX_WAIT_SHARE, Limits

EWMA_ALPHA = 0.25
"""Weight of the newest latency in the smoothed one."""

MAX_THROTTLE_SECONDS = 86400.0
"""A server may ask for at most this much patience with Retry-After."""

MAX_DOWN_SECONDS = 3600.0
"""Repeated connect failures double the time that a group is left alone, up to this."""

TROUBLE_MEMORY_SECONDS = 7200.0
"""How long past its end a throttle or a down time is remembered, so that a repetition after the hourly retry counts
as one. Twice the longest down time."""

PATIENCE = 3.0
"""A throttle of up to so many holds is waited for in the fast-delay queue; a longer one in the retry queue."""

T = TypeVar("T")


@dataclass(eq=False)
class QueuedJob(Generic[T]):
    """A job's place in its group's line, later its place on the wire."""

    ticket: T
    group: Group[T]
    until: float
    """When it may be held no longer."""
    target: Target = ANYWHERE
    front: bool = False
    """It goes before those that have not begun yet, unless a stranger sent it (`Group.next_place`)."""
    left: bool = False
    """It stands in line no more."""


@dataclass
class Down:
    """A target that could not be connected to."""

    failures: int = 0
    """In a row."""
    until: float = 0.0

    def note(self, now: float, limits: Limits) -> None:
        """Count a failure: the target is left alone for longer each time."""
        self.failures += 1
        span = limits.connect_failure_seconds * 2.0 ** min(self.failures - 1, 20)
        self.until = now + min(span, max(MAX_DOWN_SECONDS, limits.connect_failure_seconds))


@dataclass
class Throttle:
    """The answers 429 of a group."""

    times: int = 0
    """In a row."""
    until: float = 0.0

    def note(self, now: float, asked: float | None, limits: Limits) -> None:
        """Count a 429 that asks for so many seconds, if it says so: a bare one counts for longer each time."""
        if self.until <= now:  # those that were under way when it began are no repetition
            self.times += 1
        bare = limits.throttle_seconds * 2.0 ** min(self.times - 1, 20)
        span = bare if asked is None else max(asked, limits.throttle_seconds)
        self.until = max(self.until, now + min(span, MAX_THROTTLE_SECONDS))


@dataclass(eq=False)
class Group(Generic[T]):
    """See the module. Not safe to share between threads: the scoreboard's lock guards it."""

    name: str
    concurrency: int
    min_interval: float
    limits: Limits = field(repr=False)
    line: deque[QueuedJob[T]] = field(default_factory=deque)
    active: int = 0
    foreign_active: int = 0
    """How many of the active ones a redirect from another group led here."""
    foreign_was_last: bool = False
    """Whether the last one that was called is such a one."""
    has_own: bool = False
    """Whether the group has feeds of its own, as far as this process has seen."""
    at_door: QueuedJob[T] | None = None
    """Who was called and whose request has not left yet. The next one is called when it has."""
    latency: float = 0.0
    next_start: float = 0.0
    down: dict[Target, Down] = field(default_factory=dict)
    throttle: Throttle = field(default_factory=Throttle)
    foreign_throttle: Throttle = field(default_factory=Throttle)
    """What foreign requests keep to besides."""
    last_use: float | None = None
    planned: float | None = None
    """The start that stands in the scoreboard's plan."""

    @property
    def interval(self) -> float:
        """Least time between two starts: slow hosts get longer ones, so that the cap on concurrency is rarely met."""
        return max(self.min_interval, self.latency / self.concurrency)

    def next_place(self) -> QueuedJob[T] | None:
        """Return whose turn is next; None: those in line wait for another to end.

        Requests of other groups' feeds leave every second turn, and one of the slots, to the group's own feeds: whoever
        redirects here may have chosen the slowest page, any number of times.
        """
        first = self.line[0] if self.line else None
        if first is None or not first.target.is_foreign or not self.has_own:
            return first
        has_all_slots = self.foreign_active >= max(1, self.concurrency - 1)
        if has_all_slots or self.foreign_was_last:
            own = next((place for place in self.line if not place.target.is_foreign), None)
            if own is not None:
                return own
        return None if has_all_slots else first

    def next_due(self) -> float | None:
        """Return when the next one in line may start; None as long as that depends on somebody else."""
        place = self.next_place()
        if place is None or self.at_door is not None:
            return None
        # After a failure to connect one job goes ahead and shows whether the host is back, before the crowd follows.
        if self.active >= (1 if self._downs(place.target) else self.concurrency):
            return None
        came_at = place.until - self.limits.max_hold_seconds
        return max(self.next_start, self.throttle.until, came_at)

    def position_behind(self, target: Target, *, front: bool) -> int:
        """Return where in line a new job would stand, counted by the turns before its own (0: it is the first)."""
        if front:
            return sum(1 for other in self.line if other.front)
        if target.is_foreign:
            return len(self.line)
        own = sum(1 for other in self.line if not other.target.is_foreign)
        return min(len(self.line), 2 * own + 1)

    def wait_of(self, position: int, now: float) -> float:
        """Return how long the job at `position` (0: the first) would stand in line, as far as can be foreseen."""
        next_start = now + self.interval if self.at_door is not None else self.next_start
        return max(next_start - now, self.throttle.until - now, 0.0) + position * self.interval

    def has_room(self, now: float, position: int) -> bool:
        """Return whether a job at this position in line (0: the first) gets its turn within the hold."""
        wait = self.wait_of(position, now)
        return position < self.limits.max_held_per_group and wait <= MAX_WAIT_SHARE * self.limits.max_hold_seconds

    def refusal(self, now: float, target: Target) -> Refusal | None:
        """Return why no job for `target` may stand in this line at the moment, if so."""
        down = max((down.until for down in self._downs(target)), default=0.0) - now
        if down > 0:
            return Skip(down)
        throttled, most = self.throttle.until - now, MAX_WAIT_SHARE * self.limits.max_hold_seconds
        if target.is_foreign and self.foreign_throttle.until > self.throttle.until:
            throttled, most = self.foreign_throttle.until - now, 0.0  # in line it would keep others waiting
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
        """Return whether nothing about this group matters any more."""
        throttles = self.throttle, self.foreign_throttle
        troubled = bool(self.down or any(throttle.times for throttle in throttles))
        ends = [throttle.until for throttle in throttles] + [down.until for down in self.down.values()]
        last = max(self.next_start, *ends)
        memory = TROUBLE_MEMORY_SECONDS if troubled else 0.0
        return not (self.line or self.active) and last + memory <= now and (self.last_use or 0.0) + idle_seconds <= now

    def _downs(self, target: Target) -> list[Down]:
        """Return what is known of failures to connect to `target`: those of the group's own feeds count for all."""
        return [self.down[known] for known in {target, target.own} if known in self.down]

    def _note_latency(self, target: Target, report: Report) -> None:
        latency = report.latency_seconds
        if latency is None or target.is_foreign:  # a stranger may have chosen the slowest page of the host
            return
        smoothed = self.latency + EWMA_ALPHA * (latency - self.latency) if self.latency else latency
        # Only a success may lower it: a host that fails fast is not a fast host.
        if report.succeeded or smoothed > self.latency:
            self.latency = smoothed

    def _note_connect(self, now: float, target: Target, report: Report) -> None:
        if report.connected:
            for known in (target.own, replace(target, is_foreign=True)):
                self.down.pop(known, None)
        elif report.connected is not None:
            self.down.setdefault(target, Down()).note(now, self.limits)

    def _note_throttle(self, now: float, target: Target, report: Report) -> None:
        throttle = self.foreign_throttle if target.is_foreign else self.throttle
        if report.throttled:
            throttle.note(now, report.retry_after_seconds, self.limits)
            if target.is_foreign:  # the group's own feeds rest, too, but for no longer than a bare 429 asks for
                self.throttle.until = max(self.throttle.until, now + self.limits.throttle_seconds)
        elif report.succeeded and throttle.until <= now:
            throttle.times = 0
