"""Pure: who may start when. All politeness groups under one lock, with time (monotonic seconds) as an argument.

A job is *admitted* into its group's line, *called* when it is its turn, *started* on a worker thread (the rules are
checked again), *sent* when its request leaves, and *finished*. Every admitted job leaves exactly once: it is called and
then finished or turned away at its start; or it is let out of the line (held too long, group down); or withdrawn.

- One at a time goes through a group's door: the next one is called when the request of the one before has left (or
  failed to), an interval later. So the distance between two requests holds where they leave, also after a stall, and
  a host that is down costs one connection, not one per job.
- Who is due first is called first, over all groups: with few threads, groups take turns whatever the length of
  their lines.
"""

from __future__ import annotations

import heapq
import itertools
import threading
from collections import deque
from collections.abc import Hashable
from contextlib import AbstractContextManager
from typing import Any, Generic, TypeVar

from services.fetcher.politeness.decisions import (
    ANYWHERE,
    Admission,
    Decision,
    Evicted,
    FastDelay,
    Held,
    Idle,
    NoRoom,
    Refusal,
    Report,
    Start,
    Target,
    Totals,
)
from services.fetcher.politeness.group import Group, QueuedJob
from services.fetcher.politeness.limits import MAX_WAIT_SHARE, Limits

RECENT_SECONDS = 60.0
"""A group counts as recent for this long after its last use."""

MOST_REST_SECONDS = 60.0
"""A group that is taken over rests for its interval, but no longer than this: else a host that is asked once a day
would never be asked, if fetchers come and go every day."""

NEWS_HOLDS = 3.0
"""A group is news if nothing was asked of it for so many holds."""

T = TypeVar("T", bound=Hashable)


class Scoreboard(Generic[T]):
    """See the module. Tickets stand for jobs and are compared by equality.

    Args:
        lock: guards everything; the composition root hands in one that measures how long it is waited for.
    """

    def __init__(self, limits: Limits, lock: AbstractContextManager[Any] | None = None) -> None:
        self._limits = limits
        self.max_hold_seconds = limits.max_hold_seconds
        self._lock = lock or threading.Lock()
        self._groups: dict[str, Group[T]] = {}
        self._places: dict[T, QueuedJob[T]] = {}
        self._by_age: deque[QueuedJob[T]] = deque()
        self._let_out: deque[Evicted[T]] = deque()
        self._plan: list[tuple[float, int, Group[T]]] = []
        self._numbers = itertools.count()
        self._active = 0
        self._held = 0

    def admit(
        self,
        name: str,
        ticket: T,
        now: float,
        *,
        target: Target = ANYWHERE,
        front: bool = False,
        since: float | None = None,
    ) -> Admission:
        """Put a job in its group's line, if there is room.

        `target`: where its request goes. `front`: it goes on with what it began elsewhere (a redirect led here), and
        stands before those that have not begun, as far as `Group.next_place` lets it. It is never `NoRoom`. `since`:
        when others may have asked the group for something last; it rests for an interval from then on.
        """
        with self._lock:
            group = self._group(name)
            if since is not None:
                group.next_start = max(group.next_start, since + min(group.min_interval, MOST_REST_SECONDS))
                self._plan_start(group)
            is_news = group.last_use is None or group.last_use + NEWS_HOLDS * self._limits.max_hold_seconds <= now
            group.last_use = now
            refusal = group.refusal(now, target)
            if refusal is not None:
                return refusal
            has_room = group.has_room(now, group.position_behind(target, front=front))
            if front and not has_room:
                return FastDelay()
            if not has_room:
                # Where hardly one job fits into a hold there is no backlog to be held, and nothing to wait for.
                is_slow = group.interval > MAX_WAIT_SHARE * self._limits.max_hold_seconds
                return FastDelay() if is_slow else NoRoom(self._room_in(group, now))
            self._line_up(group, QueuedJob(ticket, group, now + self._limits.max_hold_seconds, target, front))
            due = group.next_due()
            return Held(len(group.line) == 1 and due is not None and due <= now, is_news)

    def next_decision(self, now: float) -> Decision[T]:
        """Return whose turn it is. Ask until it is nobody's."""
        with self._lock:
            self._expire(now)
            if self._let_out:
                return self._let_out.popleft()
            due = None
            if self._active < self._limits.max_active:
                due = self._first_due()
                if due is not None and due <= now:
                    return self._call(self._plan[0][2])
            oldest = self._by_age[0].until if self._by_age else None
            times = [time for time in (due, oldest) if time is not None]
            return Idle(min(times) - now if times else None)

    def confirm_start(self, ticket: T, now: float) -> Refusal | None:
        """Check the rules once more for a job that was called. A refusal ends it; None: its request may leave."""
        with self._lock:
            place = self._places[ticket]
            group = place.group
            refusal = group.refusal(now, place.target)
            if refusal is None and group.throttle.until > now:
                refusal = FastDelay()
            if refusal is not None:
                self._leave_wire(place)
                return refusal
            group.last_use = now
            return None

    def sent(self, ticket: T, now: float) -> bool:
        """Note that the job's request leaves now. Return whether somebody waits for the door that is open again."""
        with self._lock:
            place = self._places[ticket]
            self._open_door(place, now)
            return bool(place.group.line)

    def finish(self, ticket: T, now: float, report: Report) -> None:
        """Note the end of a started job's request."""
        with self._lock:
            place = self._places[ticket]
            group = place.group
            group.note(now, place.target, report)
            self._open_door(place, now)
            self._leave_wire(place)
            for waiting in list(group.line):
                refusal = group.refusal(now, waiting.target)
                if refusal is not None:
                    self._leave_line(waiting)
                    self._let_out.append(Evicted(waiting.ticket, refusal))

    def withdraw(self, ticket: T) -> bool:
        """Take a job back that stands in line. Return False if it does not (it was called, or it is unknown)."""
        with self._lock:
            place = self._places.get(ticket)
            if place is None or place.left:
                return False
            self._leave_line(place)
            return True

    def cancel_start(self, ticket: T) -> None:
        """End a job that was called and will not be started."""
        with self._lock:
            self._leave_wire(self._places[ticket])

    def forget_idle(self, now: float, *, idle_seconds: float) -> None:
        """Drop groups of which nothing matters any more."""
        for name in [group.name for group in self._snapshot() if group.is_forgettable(now, idle_seconds)]:
            with self._lock:
                group = self._groups.get(name)
                if group is not None and group.is_forgettable(now, idle_seconds):
                    del self._groups[name]

    def totals(self, now: float) -> Totals:
        """Return the board's size. With many groups it takes a while, in which the board goes on."""
        groups = self._snapshot()
        with self._lock:
            held, active = self._held, self._active
            in_line = {place.group for place in self._places.values() if not place.left}
            ready = sum(1 for group in in_line if (due := group.next_due()) is not None and due <= now)
        return Totals(
            active=active,
            held=held,
            ready=ready,
            groups=len(groups),
            groups_active=sum(1 for group in groups if group.active or group.line),
            groups_recent=sum(
                1 for group in groups if group.last_use is not None and group.last_use + RECENT_SECONDS > now
            ),
        )

    def counts(self) -> tuple[int, int]:
        """Return how many jobs are held and how many are active."""
        with self._lock:
            return self._held, self._active

    def dump(self, now: float, most: int = 1000) -> list[dict[str, str | int | float]]:
        """Return the `most` busiest groups as plain data. Spans are seconds from now, 0 for what is over."""
        busiest = heapq.nsmallest(
            most,
            self._snapshot(),
            key=lambda group: (-group.active, -len(group.line), -(group.last_use or 0.0), group.name),
        )
        return [_describe(group, now) for group in busiest]

    def _snapshot(self) -> list[Group[T]]:
        """Return all groups, to be looked at without the lock: nobody waits for a person who looks."""
        with self._lock:
            return list(self._groups.values())

    # ---- under the lock ---------------------------------------------------------------------------------------

    def _group(self, name: str) -> Group[T]:
        group = self._groups.get(name)
        if group is None:
            policy = self._limits.policy(name)
            assert policy.concurrency is not None
            assert policy.min_interval_seconds is not None
            group = Group(name, policy.concurrency, policy.min_interval_seconds, self._limits)
            self._groups[name] = group
        return group

    def _room_in(self, group: Group[T], now: float) -> float:
        """Return when about half of the line will have gone, and its next one would get a turn within the hold."""
        half = (len(group.line) + 1) // 2
        return max(
            group.wait_of(half, now) - MAX_WAIT_SHARE * self._limits.max_hold_seconds, half * group.interval, 0.0
        )

    def _line_up(self, group: Group[T], place: QueuedJob[T]) -> None:
        if place.front:
            group.line.insert(sum(1 for other in group.line if other.front), place)
        else:
            group.line.append(place)
        group.has_own = group.has_own or not place.target.is_foreign
        self._places[place.ticket] = place
        self._by_age.append(place)
        self._held += 1
        self._plan_start(group)

    def _plan_start(self, group: Group[T]) -> None:
        due = group.next_due()
        if due is not None and due != group.planned:
            heapq.heappush(self._plan, (due, next(self._numbers), group))
        group.planned = due

    def _first_due(self) -> float | None:
        """Return when the first start of the plan is due; what was planned otherwise since is dropped."""
        while self._plan:
            due, _, group = self._plan[0]
            if due == group.planned:
                return due
            heapq.heappop(self._plan)
        return None

    def _call(self, group: Group[T]) -> Start[T]:
        heapq.heappop(self._plan)
        place = group.next_place()
        assert place is not None
        self._leave_line(place, keep=True)
        group.active += 1
        group.foreign_active += place.target.is_foreign
        group.foreign_was_last = place.target.is_foreign
        self._active += 1
        group.at_door = place
        self._plan_start(group)
        return Start(place.ticket)

    def _leave_line(self, place: QueuedJob[T], *, keep: bool = False) -> None:
        place.left = True
        place.group.line.remove(place)
        self._held -= 1
        if not keep:
            del self._places[place.ticket]
        self._plan_start(place.group)

    def _open_door(self, place: QueuedJob[T], now: float) -> None:
        group = place.group
        if group.at_door is place:
            group.at_door = None
            group.next_start = now + group.interval
            self._plan_start(group)

    def _leave_wire(self, place: QueuedJob[T]) -> None:
        group = place.group
        del self._places[place.ticket]
        group.active -= 1
        group.foreign_active -= place.target.is_foreign
        self._active -= 1
        if group.at_door is place:  # turned away before it went through
            group.at_door = None
        self._plan_start(group)

    def _expire(self, now: float) -> None:
        while self._by_age and (self._by_age[0].left or self._by_age[0].until <= now):
            place = self._by_age.popleft()
            if not place.left:
                self._leave_line(place)
                self._let_out.append(Evicted(place.ticket, None))


def _describe(group: Group[Any], now: float) -> dict[str, str | int | float]:
    downs = group.down.values()
    return {
        "group": group.name,
        "active": group.active,
        "held": len(group.line),
        "latency_seconds": round(group.latency, 3),
        "interval_seconds": round(group.interval, 3),
        "next_start_seconds": round(max(group.next_start - now, 0.0), 3),
        "down_seconds": round(max((down.until - now for down in downs if down.until > now), default=0.0), 3),
        "connect_failures": max((down.failures for down in downs), default=0),
        "throttled_seconds": round(max(group.throttle.until - now, 0.0), 3),
        "throttles": group.throttle.times,
        "idle_seconds": round(now - (group.last_use or now), 3),
    }
