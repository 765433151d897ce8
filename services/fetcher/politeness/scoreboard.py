"""Pure: the scoreboard decides which job may start when. One lock guards all politeness groups; time is an argument.

A job is *admitted* into its group's queue and *held* there. `next_decision` says that it may *start*; on its worker
thread the rules are checked once more (`confirm_start`). Its request is *sent* and *finishes*. Every admitted job
leaves exactly once: it finishes, its start is cancelled or refused, it is evicted, or it is withdrawn.

- Each group has a start gate, which lets one job through at a time. The next job may start an interval after the
  request of the job before has left. So the interval holds on the wire, also after a stall of the process, and a host
  that is down costs one connection and not one per job.
- Over all groups, the job that has been due for longest starts first. With few threads, groups take turns whatever the
  length of their queues. A job that goes *ahead*, since a person waits for it, goes before these.
"""

from __future__ import annotations

import heapq
import itertools
import threading
from collections import deque
from collections.abc import Hashable
from contextlib import AbstractContextManager
from typing import Generic, TypeVar

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
from services.fetcher.politeness.limits import Limits

RECENT_SECONDS = 60.0
"""A group counts as recent for this long after its last use."""

MOST_REST_SECONDS = 60.0
"""A group that comes from another fetcher rests for its interval, but no longer than this. Otherwise a host with an
interval of a day would never be asked if fetchers come and go every day."""

T = TypeVar("T", bound=Hashable)


class Scoreboard(Generic[T]):
    """Decides for jobs, which tickets stand for. Tickets are compared by equality.

    Args:
        limits: what it enforces.
        lock: guards everything; a caller may pass one that measures waits.
    """

    def __init__(self, limits: Limits, lock: AbstractContextManager[object] | None = None) -> None:
        self._limits = limits
        self.max_hold_seconds = limits.max_hold_seconds
        self._lock = lock or threading.Lock()
        self._groups: dict[str, Group[T]] = {}
        self._jobs: dict[T, QueuedJob[T]] = {}
        self._by_age: deque[QueuedJob[T]] = deque()
        self._ahead: dict[QueuedJob[T], None] = {}
        self._evicted: deque[Evicted[T]] = deque()
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
        ahead: bool = False,
        since: float | None = None,
    ) -> Admission:
        """Put a job into its group's queue, if there is room.

        Args:
            name: the group.
            ticket: the job.
            now: the current time.
            target: where its request goes.
            front: it goes before others of its group (it follows a redirect here, or goes ahead), as far as
                `Group.next_job` allows. For such a job the answer is never `NoRoom`.
            ahead: it goes before the jobs of all groups.
            since: when another fetcher may have asked the group last. The group rests for an interval from then on.
        """
        with self._lock:
            group = self._group(name)
            if since is not None:
                group.next_start = max(group.next_start, since + min(group.min_interval, MOST_REST_SECONDS))
                self._plan_start(group)
            is_new_host = group.is_new(now)
            group.last_use = now
            refusal = group.refusal(now, target)
            if refusal is not None:
                return refusal
            if not group.has_room(now, group.position_behind(target, front=front)):
                return FastDelay() if front or group.is_slow else NoRoom(group.room_in(now))
            self._enqueue(group, QueuedJob(ticket, group, now + self._limits.max_hold_seconds, target, front, ahead))
            return Held(group.can_start(now), is_new_host)

    def next_decision(self, now: float) -> Decision[T]:
        """Return what to do next. Call it until it returns `Idle`."""
        with self._lock:
            self._evict_old(now)
            if self._evicted:
                return self._evicted.popleft()
            due = None
            if self._active < self._limits.max_active:
                first = next((job.group for job in self._ahead if job.group.may_start(job, now)), None)
                if first is not None:
                    return self._start(first, now)
                due = self._first_due(now)
                if due is not None and due <= now:
                    return self._start(heapq.heappop(self._plan)[2], now)
            hold_ends = self._by_age[0].until if self._by_age else None
            return Idle(min((time - now for time in (due, hold_ends) if time is not None), default=None))

    def confirm_start(self, ticket: T, now: float) -> Refusal | None:
        """Check the rules once more for a job that may start. Return a refusal, which ends the job, or None."""
        with self._lock:
            job = self._jobs[ticket]
            group = job.group
            refusal = group.refusal(now, job.target)
            if refusal is None and group.throttle.until > now:
                refusal = FastDelay()
            if refusal is not None:
                self._leave_wire(job)
                return refusal
            group.last_use = now
            return None

    def cancel_start(self, ticket: T) -> None:
        """End a job that may start and will not."""
        with self._lock:
            self._leave_wire(self._jobs[ticket])

    def sent(self, ticket: T, now: float) -> bool:
        """Note that the job's request leaves now. Return whether the event loop has to be woken for the next start."""
        with self._lock:
            job = self._jobs[ticket]
            is_awaited = job.group.is_awaited and bool(job.group.queue)
            self._open_gate(job, now)
            return is_awaited

    def finish(self, ticket: T, now: float, report: Report) -> None:
        """Note the end of the request of a started job."""
        with self._lock:
            job = self._jobs[ticket]
            group = job.group
            group.note(now, job.target, report)
            self._open_gate(job, now)
            self._leave_wire(job)
            for waiting in list(group.queue):
                refusal = group.refusal(now, waiting.target)
                if refusal is not None:
                    self._leave_queue(waiting)
                    self._evicted.append(Evicted(waiting.ticket, refusal))

    def withdraw(self, ticket: T) -> bool:
        """Remove a held job. Return False if it is not held: it has started, or it is unknown."""
        with self._lock:
            job = self._jobs.get(ticket)
            if job is None or job.has_left:
                return False
            self._leave_queue(job)
            return True

    def forget_idle(self, now: float, *, idle_seconds: float) -> None:
        """Drop the groups that were idle for so long and of which nothing needs to be remembered."""
        for name in [group.name for group in self._snapshot() if group.is_forgettable(now, idle_seconds)]:
            with self._lock:
                group = self._groups.get(name)
                if group is not None and group.is_forgettable(now, idle_seconds):
                    del self._groups[name]

    def counts(self) -> tuple[int, int]:
        """Return how many jobs are held and how many are active."""
        with self._lock:
            return self._held, self._active

    def totals(self, now: float) -> Totals:
        """Return the scoreboard in numbers. Most of the count is done without the lock."""
        groups, recent = self._snapshot(), now - RECENT_SECONDS
        with self._lock:
            held, active = self._held, self._active
            waiting = {job.group for job in self._jobs.values() if not job.has_left}
            dues = [group.next_due() for group in waiting if group.at_gate is None]
        return Totals(
            active=active,
            held=held,
            ready=sum(1 for due in dues if due is not None and due <= now),
            groups=len(groups),
            groups_active=sum(1 for group in groups if group.active or group.queue),
            groups_recent=sum(1 for group in groups if group.last_use is not None and group.last_use > recent),
        )

    def dump(self, now: float, most: int = 1000) -> list[dict[str, str | int | float]]:
        """Return the `most` busiest groups as plain data."""
        busiest = heapq.nsmallest(most, self._snapshot(), key=Group.idleness)
        return [group.describe(now) for group in busiest]

    def _snapshot(self) -> list[Group[T]]:
        with self._lock:
            return list(self._groups.values())

    # Below: with the lock held.
    def _group(self, name: str) -> Group[T]:
        group = self._groups.get(name)
        if group is None:
            policy = self._limits.policy(name)
            assert policy.concurrency is not None
            assert policy.min_interval_seconds is not None
            group = Group(name, policy.concurrency, policy.min_interval_seconds, self._limits)
            self._groups[name] = group
        return group

    def _enqueue(self, group: Group[T], job: QueuedJob[T]) -> None:
        group.enqueue(job)
        if job.ahead:
            self._ahead[job] = None
        self._jobs[job.ticket] = job
        self._by_age.append(job)
        self._held += 1
        self._plan_start(group)

    def _plan_start(self, group: Group[T]) -> None:
        due = group.next_due()
        if due is not None and due != group.planned:
            heapq.heappush(self._plan, (due, next(self._numbers), group))
        group.planned = due

    def _first_due(self, now: float) -> float | None:
        """Return when the first start of the plan is due. Drops outdated entries."""
        while self._plan:
            due, _, group = self._plan[0]
            if due == group.planned and (group.at_gate is None or due > now):
                return due
            heapq.heappop(self._plan)
            if due == group.planned:
                group.is_awaited = True
                group.planned = None
        return None

    def _start(self, group: Group[T], now: float) -> Start[T]:
        job = group.next_job()
        assert job is not None
        self._leave_queue(job, keep=True)
        group.active += 1
        group.foreign_active += job.target.is_foreign
        group.foreign_was_last = job.target.is_foreign
        self._active += 1
        group.at_gate, group.gate_opens_at = job, now + group.interval
        self._plan_start(group)
        return Start(job.ticket)

    def _leave_queue(self, job: QueuedJob[T], *, keep: bool = False) -> None:
        job.has_left = True
        job.group.queue.remove(job)
        self._ahead.pop(job, None)
        self._held -= 1
        if not keep:
            del self._jobs[job.ticket]
        self._plan_start(job.group)

    def _open_gate(self, job: QueuedJob[T], now: float) -> None:
        group = job.group
        if group.at_gate is job:
            group.at_gate, group.is_awaited = None, False
            group.next_start = now + group.interval
            self._plan_start(group)

    def _leave_wire(self, job: QueuedJob[T]) -> None:
        group = job.group
        del self._jobs[job.ticket]
        group.active -= 1
        group.foreign_active -= job.target.is_foreign
        self._active -= 1
        if group.at_gate is job:  # its request never left
            group.at_gate, group.is_awaited = None, False
        self._plan_start(group)

    def _evict_old(self, now: float) -> None:
        while self._by_age and (self._by_age[0].has_left or self._by_age[0].until <= now):
            job = self._by_age.popleft()
            if not job.has_left:
                self._leave_queue(job)
                self._evicted.append(Evicted(job.ticket, None))
