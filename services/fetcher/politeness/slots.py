"""Slots: a job waits for the next slot of its politeness group, then its request runs on a worker thread.

The scoreboard decides who may start (rate limiter, circuit breaker, bulkhead); this module carries that out. Each
request crosses from the event loop to a thread once, and back once. Everything but the request runs on the event loop.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Hashable
from typing import Any, Protocol, TypeVar

from services.fetcher.politeness.decisions import (
    ANYWHERE,
    Admission,
    Evicted,
    FastDelay,
    Held,
    Idle,
    NoRoom,
    Refusal,
    Start,
    Target,
)
from services.fetcher.politeness.intake import Intake
from services.fetcher.politeness.scoreboard import Scoreboard
from services.fetcher.politeness.slot_request import Progress, SlotRequest, Work
from shared.broker.prefetch import PrefetchLimit
from shared.errors import NackAndRequeue
from shared.waiting import until_any

DEFER_SECONDS = 1.0
"""How long a job without room is deferred at most: it waits here while the process sees which other jobs arrive."""

REQUEUE_SHARE = 0.25
"""A job is requeued only if there is no room for this part of a hold. A shorter wait is better spent at the broker."""

R = TypeVar("R")


class Pool(Protocol):
    """Runs slot requests: worker threads, or a simulation of them."""

    def submit(self, label: str, task: SlotRequest[Any]) -> None:
        """Have `task` called on a thread. `label` describes it for people."""


class Slots:
    """Gives slots to jobs.

    Args:
        board: decides.
        pool: runs the requests.
        prefetch_limit: how many jobs may be here at a time. `Intake` lowers it.
        threads: how many requests `pool` runs at a time.
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
        threads: int,
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
        self._deferred: list[SlotRequest[Any]] = []
        self._intake = Intake(prefetch_limit.most, threads, board.max_hold_seconds)
        self._threads = threads
        self._pending_nacks = 0
        self._jobs: Counter[Hashable] = Counter()
        self._opened_at: dict[Hashable, float] = {}
        self._closed: set[Hashable] = set()
        self._stopped = False
        self._returned: deque[tuple[SlotRequest[Any], object]] = deque()
        """Requests that ended on their threads, with their results."""
        self._is_woken = False
        self._looks_soon = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._review: asyncio.TimerHandle | None = None

    async def run(
        self,
        group: str,
        label: str,
        work: Work[R],
        *,
        target: Target = ANYWHERE,
        progress: Progress | None = None,
        ahead: bool = False,
    ) -> R | Refusal:
        """Wait for a slot of the group, do the work in it on a thread, return its result or why it was not done.

        Args:
            group: the politeness group.
            label: describes the job for people.
            work: makes the request.
            target: where the request goes.
            progress: of the job; None: its only request.
            ahead: whether it goes before all jobs that wait. It keeps to its group's limits as they do.

        Raises:
            NackAndRequeue: the service stops, gives up the group's shard, or has no room for this job.
        """
        self._loop = asyncio.get_running_loop()
        shard, progress = self._shard_of(group), progress or Progress()
        future: asyncio.Future[R | Refusal] = self._loop.create_future()
        request = SlotRequest(self, group, shard, label, work, future, target, progress, progress.has_begun, ahead)
        self._jobs[shard] += 1
        try:
            if self._stopped or shard in self._closed:
                request.resolve(NackAndRequeue("stopping" if self._stopped else "the shard of its group is given up"))
            else:
                self._take(request)
            return await future
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

    def return_to_loop(self, request: SlotRequest[Any], result: object) -> None:
        """Resolve a request. From any thread."""
        self._returned.append((request, result))
        self.wake()

    def wake(self) -> None:
        """Look for starts again. From any thread; one wake-up serves all that returns until the loop has its turn."""
        if not self._is_woken:
            self._is_woken = True
            assert self._loop is not None
            self._loop.call_soon_threadsafe(self._take_returned)

    def _take_returned(self) -> None:
        self._is_woken = False  # first, so that what returns from now on wakes the loop again
        while self._returned:
            request, result = self._returned.popleft()
            request.resolve(result)
        self._start_due()

    def _take(self, request: SlotRequest[Any]) -> None:
        """Hold a request that has just arrived, defer it, or resolve it with a refusal."""
        match self._admit(request):
            case Held(can_start, is_new_host):
                if can_start:
                    self._intake.note_idle_host(is_new=is_new_host)
                self._held.add(request)
                if not self._looks_soon:  # one look serves all jobs that arrive together
                    self._looks_soon = True
                    asyncio.get_running_loop().call_soon(self._start_due)
            case NoRoom(seconds):
                request.room_in = seconds
                self._defer(request)
            case refusal:
                request.resolve(refusal)

    def _admit(self, request: SlotRequest[Any]) -> Admission:
        return self.board.admit(
            request.group,
            request,
            self.clock(),
            target=request.target,
            front=request.is_delayed,
            ahead=request.ahead,
            since=self._opened_at.get(request.shard),
        )

    def _defer(self, request: SlotRequest[Any]) -> None:
        """Have the request wait for a review: soon, or at once if no more jobs of its shard can arrive."""
        assert self._loop is not None
        self._deferred.append(request)
        is_full = self._jobs[request.shard] >= self._prefetch_limit.share
        if self._review is not None and is_full:
            self._review.cancel()
            self._review = None
        if self._review is None:
            self._review = self._loop.call_later(0.0 if is_full else DEFER_SECONDS, self._review_deferred)

    def _review_deferred(self) -> None:
        """Hold the deferred requests that have room by now. Requeue others as far as that is paid; nack the rest."""
        self._review = None
        deferred, self._deferred = self._deferred, []
        excess = [request for request in deferred if not request.result.done() and not self._hold(request)]
        far = [request for request in excess if request.room_in >= REQUEUE_SHARE * self.board.max_hold_seconds]
        requeued = set(far[len(far) - self._intake.pay(len(far)) :])  # the youngest
        for request in requeued:
            request.resolve(FastDelay())
        self._nack_excess([request for request in excess if request not in requeued])
        self._start_due()

    def _hold(self, request: SlotRequest[Any]) -> bool:
        """Hold a deferred request, or resolve it with a refusal. Return False if there is no room."""
        match self._admit(request):
            case NoRoom(seconds):
                request.room_in = seconds
                return False
            case Held():
                self._held.add(request)
            case refusal:
                request.resolve(refusal)
        return True

    def _nack_excess(self, requests: list[SlotRequest[Any]], *, lacks_threads: bool = False) -> None:
        """Shrink the window, then nack the requests."""
        if not requests:
            return
        held, active = self.board.counts()
        room_in = min(request.room_in for request in requests)
        self._intake.shrink(
            self.clock(), held=held, active=active, room_in_seconds=room_in, lacks_threads=lacks_threads
        )
        self._prefetch_limit.set("intake", 0)
        # Only when the consumer has stopped: otherwise the broker would deliver them here again at once.
        self._pending_nacks += 1
        self._prefetch_limit.next_applied().add_done_callback(lambda _: self._nack_now(requests))

    def _nack_now(self, requests: list[SlotRequest[Any]]) -> None:
        self._pending_nacks -= 1
        for request in requests:
            request.resolve(NackAndRequeue("this process has no room for its group at the moment"))
        self._start_due()

    def _start_due(self) -> None:
        """Start the requests that are due, remove those that were evicted, and set the timer for the next look."""
        self._looks_soon = False
        now, expired = self.clock(), list[SlotRequest[Any]]()
        while not isinstance(decision := self.board.next_decision(now), Idle):
            request = decision.ticket
            self._held.discard(request)
            match decision:
                case Start():
                    self._intake.note_start()
                    self._pool.submit(request.label, request)
                case Evicted(_, None) if not request.is_delayed:
                    expired.append(request)
                case Evicted(_, refusal):
                    request.resolve(refusal or FastDelay())
        self._nack_excess(expired, lacks_threads=True)
        ask_again = None
        if not self._pending_nacks:
            held, active = self.board.counts()
            ask_again = self._intake.tick(now, held=held, idle=active < self._threads)
            self._prefetch_limit.set("intake", self._intake.window)
        self._set_timer([seconds for seconds in (decision.seconds, ask_again) if seconds is not None])

    def _set_timer(self, delays: list[float]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        assert self._loop is not None
        self._timer = self._loop.call_later(max(min(delays), 0.0), self._start_due) if delays else None

    def _nack(self, chosen: Callable[[SlotRequest[Any]], bool], reason: str) -> None:
        """Nack the chosen requests that have not started."""
        held = [request for request in self._held if chosen(request) and self.board.withdraw(request)]
        self._held.difference_update(held)
        deferred = [request for request in self._deferred if chosen(request)]
        self._deferred = [request for request in self._deferred if request not in deferred]
        for request in (*held, *deferred):
            request.resolve(NackAndRequeue(reason))

    def _forget(self, request: SlotRequest[Any]) -> None:
        """Forget a request whose result nobody awaits. If it runs, it frees its slot when it ends."""
        self._held.discard(request)
        self._deferred = [other for other in self._deferred if other is not request]
        self.board.withdraw(request)
