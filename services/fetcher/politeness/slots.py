"""Slots: a job waits for the next slot of its politeness group, then its request runs on a worker thread.

The scoreboard decides who may start (rate limiter, circuit breaker, bulkhead); this module carries that out. Each
request crosses from the event loop to a thread once, and back once. Everything but the request runs on the event loop.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from services.fetcher.politeness.decisions import (
    ANYWHERE,
    Evicted,
    FastDelay,
    Held,
    Idle,
    NoRoom,
    Refusal,
    Report,
    Start,
    Target,
)
from services.fetcher.politeness.deferred import MAX_STAY_SECONDS, Deferred
from services.fetcher.politeness.scoreboard import Scoreboard
from shared.broker.prefetch import PrefetchLimit
from shared.errors import NackAndRequeue
from shared.waiting import until_any

REVIEW_SECONDS = 1.0
"""How often deferred jobs are reviewed."""

DEFER_SHARE = 0.5
"""A job that will have room within this part of a hold stays here."""

R = TypeVar("R")

Sent = Callable[[], None]
Work = Callable[[Sent], tuple[R, Report]]
"""Makes the request, on a worker thread. Calls `sent` at the moment that the request leaves. May raise."""


class Pool(Protocol):
    """Runs slot requests: worker threads, or a simulation of them."""

    def submit(self, label: str, task: SlotRequest[Any]) -> None:
        """Have `task` called on a thread. `label` describes it for people."""


@dataclass(eq=False)
class SlotRequest(Generic[R]):
    """One job's stay, from its arrival to the end of its request. Calling it runs the request."""

    slots: Slots
    group: str
    shard: Hashable
    label: str
    work: Work[R] = field(repr=False)
    result: asyncio.Future[R | Refusal] = field(repr=False)
    target: Target
    front: bool
    arrived_at: float

    def __call__(self) -> None:
        """Run the request on a worker thread."""
        if self.begin():
            self.end(*self.do())

    def begin(self) -> bool:
        """Check the rules at the last moment; return whether the request may be made."""
        board = self.slots.board
        may_leave = self.slots.may_leave(self.shard)
        refusal: Refusal | None
        if self.result.cancelled() or not may_leave:  # the message is lost, or another fetcher asks this host
            board.cancel_start(self)
            refusal = FastDelay()
        else:
            refusal = board.confirm_start(self, self.slots.clock())
        if refusal is not None:
            self.slots.return_to_loop(self, refusal)
        return refusal is None

    def do(self) -> tuple[R | BaseException, Report]:
        """Make the request."""
        try:
            return self.work(self._note_sent)
        except BaseException as error:  # noqa: BLE001 - whoever awaits the slot gets the bug
            return error, Report(latency_seconds=None, connected=None, succeeded=False)

    def end(self, result: R | BaseException, report: Report) -> None:
        """Free the slot, and return the result."""
        self.slots.board.finish(self, self.slots.clock(), report)
        self.slots.return_to_loop(self, result)

    def resolve(self, result: R | Refusal | BaseException) -> None:
        """Give the result to the coroutine that waits for it, if it still does. On the event loop."""
        if self.result.done():
            return
        if isinstance(result, BaseException):
            self.result.set_exception(result)
        else:
            self.result.set_result(result)

    def _note_sent(self) -> None:
        if self.slots.board.sent(self, self.slots.clock()):
            self.slots.wake()


class Slots:
    """Gives slots to jobs.

    Args:
        board: decides.
        pool: runs the requests.
        prefetch_limit: how many jobs may be here at a time.
        clock: monotonic seconds.
        shard_of: the shard (a queue) of a group.
        may_leave: asked on a worker thread before each request: whether this process may ask hosts of this shard. It
            may wait.
    """

    def __init__(
        self,
        board: Scoreboard[SlotRequest[Any]],
        pool: Pool,
        prefetch_limit: PrefetchLimit,
        *,
        clock: Callable[[], float],
        shard_of: Callable[[str], Hashable] = lambda group: None,
        may_leave: Callable[[Any], bool] = lambda shard: True,
    ) -> None:
        self.board = board
        self.clock = clock
        self.may_leave = may_leave
        self._pool = pool
        self._prefetch_limit = prefetch_limit
        self._shard_of = shard_of
        self._held: set[SlotRequest[Any]] = set()
        self._deferred: Deferred[SlotRequest[Any]] = Deferred(prefetch_limit.most, DEFER_SHARE * board.max_hold_seconds)
        self._jobs: Counter[Hashable] = Counter()
        self._opened_at: dict[Hashable, float] = {}
        self._closed: set[Hashable] = set()
        self._stopped = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._review: asyncio.TimerHandle | None = None

    async def run(
        self, group: str, label: str, work: Work[R], *, target: Target = ANYWHERE, front: bool = False
    ) -> R | Refusal:
        """Wait for a slot of the group, do the work in it on a thread, return its result or why it was not done.

        Args:
            group: the politeness group.
            label: describes the job for people.
            work: makes the request.
            target: where the request goes.
            front: the request follows a redirect that this process received. It goes before jobs that have not
                begun. The message does not record the redirect, so it is never nacked: it goes to fast-delay.

        Raises:
            NackAndRequeue: the service stops, or gives up the group's shard.
        """
        self._loop = asyncio.get_running_loop()
        shard = self._shard_of(group)
        if self._stopped or shard in self._closed:
            if front:
                return FastDelay()
            raise NackAndRequeue("stopping" if self._stopped else "the shard of its group is given up")
        future: asyncio.Future[R | Refusal] = self._loop.create_future()
        request = SlotRequest(self, group, shard, label, work, future, target, front, self.clock())
        self._jobs[shard] += 1
        try:
            self._admit(request)
            return await request.result
        except asyncio.CancelledError:
            self._forget(request)
            raise
        finally:
            self._jobs[shard] -= 1

    def open_shard(self, shard: Hashable, now: float) -> None:
        """Accept jobs of this shard. Another fetcher had it before, so each of its groups first rests an interval."""
        self._closed.discard(shard)
        self._opened_at[shard] = now

    def close_shard(self, shard: Hashable) -> None:
        """Accept no more jobs of this shard, and nack those that wait. Running requests end as usual."""
        self._closed.add(shard)
        self._nack(lambda request: request.shard == shard, "the shard of its group is given up")

    def count_jobs(self, shard: Hashable) -> int:
        """Return how many jobs of this shard wait or run."""
        return self._jobs[shard]

    async def stop_when(self, stopping: asyncio.Event) -> None:
        """Nack all waiting jobs once `stopping` is set. Running requests end as usual."""
        await until_any(stopping)
        self._stopped = True
        self._nack(lambda request: True, "stopping")

    def wake(self) -> None:
        """Look for starts again. From any thread."""
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._start_due)

    def return_to_loop(self, request: SlotRequest[Any], result: object) -> None:
        """Resolve a request. From any thread."""
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._end, request, result)

    def _end(self, request: SlotRequest[Any], result: object) -> None:
        request.resolve(result)
        self._start_due()

    def _admit(self, request: SlotRequest[Any]) -> None:
        if self._try_to_admit(request) is not None:
            self._deferred.add(request)
            self._plan_review(0.0 if self._may_hide_others(request) else REVIEW_SECONDS)

    def _try_to_admit(self, request: SlotRequest[Any]) -> float | None:
        """Hold the request, or resolve it with a refusal. If its group has no room, return the group's interval."""
        since = self._opened_at.get(request.shard)
        match self.board.admit(
            request.group, request, self.clock(), target=request.target, front=request.front, since=since
        ):
            case Held():
                self._held.add(request)
                self._start_due()
            case NoRoom(interval):
                return interval
            case refusal:
                request.resolve(refusal)
        return None

    def _may_hide_others(self, request: SlotRequest[Any]) -> bool:
        return self._jobs[request.shard] >= self._prefetch_limit.share

    def _plan_review(self, delay: float) -> None:
        assert self._loop is not None
        at = self._loop.time() + delay
        if self._review is not None and self._review.when() > at:
            self._review.cancel()
            self._review = None
        if self._review is None:
            self._review = self._loop.call_at(at, self._review_deferred)

    def _review_deferred(self) -> None:
        self._review = None
        requeued = self._deferred.review(self.clock(), admit=self._try_to_admit, may_hide_others=self._may_hide_others)
        for request in requeued:
            request.resolve(FastDelay())
        if self._deferred:
            self._plan_review(REVIEW_SECONDS)

    def _start_due(self) -> None:
        """Start the requests that are due, remove those that were evicted, and set the timer for the next look."""
        now, expired = self.clock(), list[SlotRequest[Any]]()
        while not isinstance(decision := self.board.next_decision(now), Idle):
            request = decision.ticket
            self._held.discard(request)
            match decision:
                case Start():
                    self._pool.submit(request.label, request)
                case Evicted(_, None) if not request.front and now - request.arrived_at < MAX_STAY_SECONDS:
                    expired.append(request)
                case Evicted(_, refusal):
                    request.resolve(refusal or FastDelay())
        self._set_timer(decision.seconds)
        for request in expired:
            self._admit(request)

    def _set_timer(self, seconds: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        assert self._loop is not None
        self._timer = None if seconds is None else self._loop.call_later(max(seconds, 0.0), self._start_due)

    def _nack(self, chosen: Callable[[SlotRequest[Any]], bool], reason: str) -> None:
        """Nack the chosen requests that have not started."""
        held = [request for request in self._held if chosen(request) and self.board.withdraw(request)]
        self._held.difference_update(held)
        for request in (*held, *self._deferred.remove(chosen)):
            request.resolve(FastDelay() if request.front else NackAndRequeue(reason))

    def _forget(self, request: SlotRequest[Any]) -> None:
        """Forget a request whose result nobody awaits. If it runs, it frees its slot when it ends."""
        self._held.discard(request)
        self._deferred.remove(lambda other: other is request)
        self.board.withdraw(request)
