"""One job's request for a slot of its politeness group: checked at the last moment and made on a worker thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from services.fetcher.politeness.decisions import FastDelay, Refusal, Report, Target
from services.fetcher.politeness.metrics import ACTIVE, REQUEST_SECONDS
from services.fetcher.politeness.scoreboard import Scoreboard
from shared.errors import NackAndRequeue

R = TypeVar("R")

Sent = Callable[[], None]
Work = Callable[[Sent], tuple[R, Report]]
"""Makes the request, on a worker thread. Calls `sent` at the moment that the request leaves. May raise."""


@dataclass
class Progress:
    """How far a job has come in this process."""

    has_begun: bool = False
    """A request was made. The next one follows a redirect, which the delivered message does not record. So it goes
    before jobs that have not begun, and is never nacked: it goes to fast-delay."""


class Owner(Protocol):
    """The `Slots` that a request belongs to. Any thread may call it."""

    board: Scoreboard[SlotRequest[Any]]
    clock: Callable[[], float]
    may_leave: Callable[[Any], bool]

    def wake(self) -> None:
        """Look for starts again."""

    def return_to_loop(self, request: SlotRequest[Any], result: object) -> None:
        """Resolve a request on the event loop."""


@dataclass(eq=False)
class SlotRequest(Generic[R]):
    """One job's stay, from its arrival to the end of its request. Calling it runs the request."""

    slots: Owner
    group: str
    shard: Hashable
    label: str
    work: Work[R] = field(repr=False)
    result: asyncio.Future[R | Refusal] = field(repr=False)
    target: Target
    progress: Progress
    front: bool
    """It follows a redirect (`Progress.has_begun` at its arrival)."""
    ahead: bool = False
    """A person waits for it: it goes before all jobs that have not begun."""
    room_in: float = 0.0
    """When its group has room again, in seconds. Of a deferred job."""

    @property
    def is_delayed(self) -> bool:
        """Whether it goes to fast-delay if there is no room: its queue goes on delivering whatever is nacked."""
        return self.front or self.ahead

    def __call__(self) -> None:
        """Run the request on a worker thread."""
        if not self.begin():
            return
        try:
            with ACTIVE.track_inprogress(), REQUEST_SECONDS.time():
                result, report = self.work(self.note_sent)
        except BaseException as error:  # noqa: BLE001 - the coroutine that awaits the slot gets the bug
            self.end(error, Report(latency_seconds=None, connected=None, succeeded=False))
        else:
            self.end(result, report)

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
            return False
        self.progress.has_begun = True
        return True

    def note_sent(self) -> None:
        """Note that the request leaves now."""
        if self.slots.board.sent(self, self.slots.clock()):
            self.slots.wake()

    def end(self, result: R | BaseException, report: Report) -> None:
        """Free the slot, and return the result."""
        self.slots.board.finish(self, self.slots.clock(), report)
        self.slots.return_to_loop(self, result)

    def resolve(self, result: R | Refusal | BaseException) -> None:
        """Give the result to the coroutine that waits for it, if it still does. On the event loop."""
        if self.result.done():
            return
        if self.front and isinstance(result, NackAndRequeue):
            self.result.set_result(FastDelay())
        elif isinstance(result, BaseException):
            self.result.set_exception(result)
        else:
            self.result.set_result(result)
