"""A fetch handler with all its parts except HTTP."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from services.fetcher.clock import Clock
from services.fetcher.handler import FetchFeeds
from services.fetcher.politeness.decisions import Report
from services.fetcher.politeness.limits import Limits
from services.fetcher.politeness.scoreboard import Scoreboard
from services.fetcher.politeness.slots import Slots
from services.fetcher.politeness.workers import Workers
from services.fetcher.request import FeedRequest
from services.fetcher.retries import RetryRules
from shared.broker.port import Outgoing
from shared.broker.prefetch import PrefetchLimit
from shared.broker.topology import Stage, build_topology
from shared.wire.envelope import Message
from shared.wire.results import FeedFetched
from tests.factories import NOW, make_job, make_result


def make_stage(shards: int) -> Stage:
    delays: dict[str, Any] = {"fast_delay_seconds": 20, "retry_delay_seconds": 3600, "message_retry_seconds": 60}
    return build_topology(**delays, fetcher_shards=shards).fetcher


STAGE = make_stage(1)


class FakeReader:
    """Gives every job the same answer. `gate` stops the worker threads until it is opened."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.gate.set()
        self.report = Report(latency_seconds=0.001)
        self.answer: Callable[[FeedRequest], FeedFetched | FeedRequest] = lambda request: make_result(
            feed_id=request.job.feed_id
        )
        self.started: list[float] = []
        self.requests: list[FeedRequest] = []

    def make_request(self, request: FeedRequest, sent: Callable[[], None]) -> tuple[FeedFetched | FeedRequest, Report]:
        self.started.append(time.monotonic())
        sent()
        self.requests.append(request)
        assert self.gate.wait(30)
        return self.answer(request), self.report


def where(item: Outgoing) -> str:
    """Return the delay that a message is sent through, or else its routing key."""
    return item.exchange if item.exchange in {STAGE.fast_delay, STAGE.retry} else item.routing_key


class LoopWorkers:
    """Instead of worker threads, in a loop whose clock jumps: only one thread may take part there."""

    def submit(self, label: str, task: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_soon(task)

    def close(self) -> None:
        pass


class Harness:
    """A handler with all its parts. With `virtually` it uses the running loop's clock."""

    def __init__(
        self,
        threads: int = 2,
        max_hold: float = 5.0,
        prefetch: int = 400,
        shards: int = 1,
        virtually: bool = False,
        **limits: float,
    ) -> None:
        clock = asyncio.get_running_loop().time if virtually else time.monotonic
        self.stage = make_stage(shards)
        self.elsewhere: set[str] = set()
        """Shards that another fetcher owns."""
        self.lost: set[str] = set()
        """Shards whose lock is found to be gone at the last moment."""
        self.reader = FakeReader()
        self.stopping = asyncio.Event()
        fields = {
            "host_min_interval_seconds": 0.001,
            "max_hold_seconds": max_hold,
            "max_active": threads,
            **limits,
        }
        self.board: Scoreboard[Any] = Scoreboard(Limits(**fields))  # type: ignore[arg-type]
        self.workers = LoopWorkers() if virtually else Workers(threads)
        self.prefetch_limit = PrefetchLimit(prefetch)
        self.slots = Slots(
            self.board,
            self.workers,
            self.prefetch_limit,
            threads=threads,
            clock=clock,
            shard_of=self.stage.queue_of,
            may_leave=lambda queue: queue not in self.lost,
        )
        self.handler = FetchFeeds(
            self.reader,  # type: ignore[arg-type]
            self.slots,
            self.stage,
            rules=RetryRules(),
            clock=Clock(now=lambda: NOW, monotonic=clock),
            owns=lambda queue: queue not in self.elsewhere,
        )

    async def handle(self, **changes: object) -> list[tuple[str, Message]]:
        outgoing: list[Outgoing] = list(await self.handler([make_job(**changes)]))
        return [(where(item), item.message) for item in outgoing]

    async def until_board(self, *, active: int, held: int) -> None:
        """Let others run until the scoreboard counts so many."""
        async with asyncio.timeout(30):
            while self.board.counts() != (held, active):
                await asyncio.sleep(0)

    async def until_started(self, number: int) -> None:
        async with asyncio.timeout(30):
            while len(self.reader.started) < number:
                await asyncio.sleep(0)


@pytest.fixture
def build() -> Iterator[Callable[..., Harness]]:
    made: list[Harness] = []

    def make(**settings: float) -> Harness:
        made.append(Harness(**settings))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for harness in made:
        harness.reader.gate.set()
        harness.workers.close()
        assert harness.board.counts() == (0, 0), "the scoreboard did not return to zero"
