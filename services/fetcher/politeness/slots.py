"""Between the event loop and the threads: who waits, who runs, and how many jobs to take meanwhile.

The scoreboard decides; this room acts on it. Everything but a turn itself happens on the event loop.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from services.fetcher.politeness.decisions import (
    ANYWHERE,
    Admission,
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
from services.fetcher.politeness.intake import Intake
from services.fetcher.politeness.scoreboard import Scoreboard
from shared.broker.prefetch import PrefetchLimit
from shared.errors import NackAndRequeue
from shared.waiting import until_any

WORTH = 0.25
"""A job is requeued only if its line has no room for this part of a hold: else waiting in the queue is shorter."""

LOOK_SECONDS = 1.0
"""How long a job without room is kept aside while the process looks at what else is coming."""

R = TypeVar("R")

Sent = Callable[[], None]
Work = Callable[[Sent], tuple[R, Report]]
"""On a worker thread: does the request and calls `sent` the moment that it leaves. It may raise."""


class Pool(Protocol):
    """Where turns run: threads, or a simulation of them."""

    def submit(self, label: str, task: SlotRequest[Any]) -> None:
        """Have `task` called."""


@dataclass(eq=False)
class SlotRequest(Generic[R]):
    """One job's way through line and wire."""

    slots: Slots
    group: str
    shard: Hashable
    label: str
    work: Work[R] = field(repr=False)
    ending: asyncio.Future[R | Refusal] = field(repr=False)
    target: Target = ANYWHERE
    front: bool = False
    """It goes on with what a redirect began; its message does not know of that."""
    room_in: float = 0.0
    """When its group's line will have room again, in seconds."""

    def __call__(self) -> None:
        """Run the turn on a worker thread."""
        if self.begin():
            self.end(*self.do())

    def begin(self) -> bool:
        """Check the rules at the last moment; return whether the work may be done."""
        board = self.slots.board
        may_leave = self.slots.may_leave(self.shard)
        if self.ending.cancelled() or not may_leave:  # nobody can settle its message any more, or another asks there
            board.cancel_start(self)
            refusal: Refusal | None = FastDelay()
        else:
            refusal = board.confirm_start(self, self.slots.clock())
        if refusal is not None:
            self.slots.ended_elsewhere(self, refusal)
        return refusal is None

    def do(self) -> tuple[R | BaseException, Report]:
        """Do the work."""
        try:
            return self.work(self._sent)
        except BaseException as error:  # noqa: BLE001 - a bug belongs to whoever awaits the turn
            return error, Report(latency_seconds=None, connected=None, succeeded=False)

    def end(self, result: R | BaseException, report: Report) -> None:
        """Make way for others, and hand the result over."""
        self.slots.board.finish(self, self.slots.clock(), report)
        self.slots.ended_elsewhere(self, result)

    def _sent(self) -> None:
        if self.slots.board.sent(self, self.slots.clock()):
            self.slots.wake()


class Slots:
    """See the module.

    Args:
        clock: monotonic seconds.
        threads: how many turns `pool` runs at a time.
        shard_of: which of the queues behind the prefetch limit the jobs of a group come from, if there are several.
        may_leave: asked on a worker thread before a request begins: whether those of this queue are ours to make. It
            may wait.
    """

    def __init__(
        self,
        board: Scoreboard[Any],
        pool: Pool,
        prefetch_limit: PrefetchLimit,
        *,
        window: int,
        threads: int,
        clock: Callable[[], float],
        shard_of: Callable[[str], Hashable] = lambda group: None,
        may_leave: Callable[[Any], bool] = lambda shard: True,
    ) -> None:
        self.board = board
        self.clock = clock
        self._pool = pool
        self._prefetch_limit = prefetch_limit
        self._intake = Intake(window, threads, board.max_hold_seconds)
        self._threads = threads
        self._waiting: set[SlotRequest[Any]] = set()
        self._aside: list[SlotRequest[Any]] = []
        self._lane_of = shard_of
        self.may_leave = may_leave
        self._in_hand: Counter[Hashable] = Counter()
        self._opened: dict[Hashable, float] = {}
        self._closed: set[Hashable] = set()
        self._stopped = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._decision: asyncio.TimerHandle | None = None
        self._returning = 0

    async def run(
        self, group: str, label: str, work: Work[R], *, target: Target = ANYWHERE, front: bool = False
    ) -> R | Refusal:
        """Wait for the group's next turn, do the work in it on a thread, return its result.

        `target`: where the request goes. `front`: it goes on with what a redirect began in this process. Its message
        does not know of that, so that it is requeued where another would be given back.

        Raises:
            NackAndRequeue: the service stops, or there is no room for this job in this process.
        """
        self._loop = asyncio.get_running_loop()
        shard = self._lane_of(group)
        if self._stopped or shard in self._closed:
            if front:
                return FastDelay()
            raise NackAndRequeue("stopping" if self._stopped else "the shard of its group is given up")
        turn = SlotRequest(self, group, shard, label, work, self._loop.create_future(), target, front)
        self._in_hand[shard] += 1
        try:
            return await self._wait(turn)
        finally:
            self._in_hand[shard] -= 1

    async def _wait(self, turn: SlotRequest[R]) -> R | Refusal:
        admission = self._admit(turn)
        match admission:
            case Held(at_once, is_news):
                if at_once:
                    self._intake.note_find(news=is_news)
                self._waiting.add(turn)
                self._pump()
            case NoRoom(seconds):
                self._put_aside(turn, seconds)
            case refusal:
                return refusal
        try:
            return await turn.ending
        except asyncio.CancelledError:
            self._abandon(turn)
            raise

    def _admit(self, turn: SlotRequest[Any]) -> Admission:
        since = self._opened.get(turn.shard)
        return self.board.admit(turn.group, turn, self.clock(), target=turn.target, front=turn.front, since=since)

    def open_shard(self, shard: Hashable, now: float) -> None:
        """Take jobs of this shard from now on. Others had it before: each of its groups rests for an interval first."""
        self._closed.discard(shard)
        self._opened[shard] = now

    def close_shard(self, shard: Hashable) -> None:
        """Take no more of this shard, and give back what waits of it; what runs comes to its end."""
        self._closed.add(shard)
        self._let_go(lambda turn: turn.shard == shard, "the shard of its group is given up")

    def count_jobs(self, shard: Hashable) -> int:
        """Return how many jobs of this shard wait or run."""
        return self._in_hand[shard]

    async def stop_when(self, stopping: asyncio.Event) -> None:
        """Give back all that waits once `stopping` is set; what runs comes to its end."""
        await until_any(stopping)
        self._stopped = True
        self._let_go(lambda turn: True, "stopping")

    def _let_go(self, chosen: Callable[[SlotRequest[Any]], bool], why: str) -> None:
        """Give back those that wait and are chosen."""
        waiting = [turn for turn in self._waiting if chosen(turn) and self.board.withdraw(turn)]
        aside = [turn for turn in self._aside if chosen(turn)]
        self._waiting.difference_update(waiting)
        self._aside = [turn for turn in self._aside if turn not in aside]
        for turn in (*waiting, *aside):
            _settle(turn, FastDelay() if turn.front else NackAndRequeue(why))

    def wake(self) -> None:
        """Look again who may start. From any thread."""
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._pump)

    def ended_elsewhere(self, turn: SlotRequest[Any], ending: object) -> None:
        """Hand over what a turn came to. From any thread."""
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._end, turn, ending)

    def _end(self, turn: SlotRequest[Any], ending: object) -> None:
        _settle(turn, ending)
        self._pump()

    def _pump(self) -> None:
        """Start whose turn it is, let out who was held too long, and set the timer for the next look."""
        now, expired = self.clock(), list[SlotRequest[Any]]()
        while not isinstance(call := self.board.next_decision(now), Idle):
            turn = call.ticket
            self._waiting.discard(turn)
            match call:
                case Start():
                    self._intake.note_start()
                    self._pool.submit(turn.label, turn)
                case Evicted(_, refusal):
                    if refusal is None and turn.front:
                        _settle(turn, FastDelay())
                    elif refusal is None:
                        expired.append(turn)
                    else:
                        _settle(turn, refusal)
        if expired:  # more was taken than could be started
            self._give_back(expired, starved=True)
        held, active = self.board.counts()
        ask_again = None
        if not self._returning:
            ask_again = self._intake.tick(now, held=held, idle=active < self._threads)
            self._prefetch_limit.set("intake", self._intake.window)
        self._set_timer([seconds for seconds in (call.seconds, ask_again) if seconds is not None])

    def _set_timer(self, delays: list[float]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        assert self._loop is not None
        self._timer = self._loop.call_later(max(min(delays), 0.0), self._pump) if delays else None

    def _put_aside(self, turn: SlotRequest[Any], room_in_seconds: float) -> None:
        assert self._loop is not None
        turn.room_in = room_in_seconds
        self._aside.append(turn)
        is_full = self._in_hand[turn.shard] >= self._prefetch_limit.share
        if self._decision is not None and is_full:
            self._decision.cancel()
            self._decision = None
        if self._decision is None:
            self._decision = self._loop.call_later(0.0 if is_full else LOOK_SECONDS, self._decide)

    def _decide(self) -> None:
        """Settle what becomes of those aside: into the line if there is room by now, on, or back."""
        self._decision = None
        aside, self._aside = self._aside, []
        excess = [turn for turn in aside if not turn.ending.done() and not self._admit_again(turn)]
        far = [turn for turn in excess if turn.room_in >= WORTH * self.board.max_hold_seconds]
        requeued = set(far[len(far) - self._intake.pay(len(far)) :])  # the youngest
        for turn in requeued:
            _settle(turn, FastDelay())
        self._give_back([turn for turn in excess if turn not in requeued])
        self._pump()

    def _give_back(self, turns: list[SlotRequest[Any]], *, starved: bool = False) -> None:
        """Give back what can't be started in time, and take fewer."""
        if not turns:
            return
        held, active = self.board.counts()
        room_in = min(turn.room_in for turn in turns)
        self._intake.narrow(self.clock(), held=held, active=active, room_in_seconds=room_in, starved=starved)
        self._prefetch_limit.set("intake", 0)
        # Only once nothing is taken any more: the broker would hand them to us again at once.
        self._returning += 1
        self._prefetch_limit.next_applied().add_done_callback(lambda _: self._hand_back(turns))

    def _hand_back(self, turns: list[SlotRequest[Any]]) -> None:
        self._returning -= 1
        for turn in turns:
            _settle(turn, NackAndRequeue("this process has no room for its group at the moment"))
        self._pump()

    def _admit_again(self, turn: SlotRequest[Any]) -> bool:
        admission = self._admit(turn)
        match admission:
            case NoRoom(seconds):
                turn.room_in = seconds
                return False
            case Held():
                self._waiting.add(turn)
            case refusal:
                _settle(turn, refusal)
        return True

    def _abandon(self, turn: SlotRequest[Any]) -> None:
        """Forget a turn that nobody waits for. If it runs already, it frees its place when it is done."""
        self._waiting.discard(turn)
        if turn in self._aside:
            self._aside.remove(turn)
        self.board.withdraw(turn)


def _settle(turn: SlotRequest[Any], ending: object) -> None:
    if turn.ending.done():
        return
    if isinstance(ending, BaseException):
        turn.ending.set_exception(ending)
    else:
        turn.ending.set_result(ending)
