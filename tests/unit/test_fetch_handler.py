from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest

from services.fetcher.attempt import Attempt, Clock
from services.fetcher.handler import FetchFeeds
from services.fetcher.scoreboard import Limits, Report, Scoreboard, Totals
from services.fetcher.verdict import RetryRules
from shared.errors import GiveBack
from shared.messages import FeedFetched, FetchFeed, Message, Outcome
from shared.outgoing import Outgoing
from shared.topology import build_topology
from tests.factories import NOW, make_job, make_result

STAGE = build_topology(fast_delay_seconds=20, retry_delay_seconds=3600, message_retry_seconds=60).fetcher


class FakeReader:
    """Answers every job as told; `gate` holds the worker threads back until it is opened."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.gate.set()
        self.report = Report(latency_seconds=0.001)
        self.answer: Callable[[FetchFeed], FeedFetched] = lambda job: make_result(feed_id=job.feed_id)
        self.started: list[float] = []

    def attempt(self, job: FetchFeed) -> Attempt:
        self.started.append(time.monotonic())
        assert self.gate.wait(5)
        return Attempt(self.answer(job), self.report)


class Room:
    """A handler with everything that it stands on."""

    def __init__(self, threads: int = 2, max_hold: float = 5.0, **limits: float) -> None:
        self.reader = FakeReader()
        self.stopping = asyncio.Event()
        fields = {"host_min_interval_seconds": 0.001, "max_hold_seconds": max_hold, **limits}
        self.board = Scoreboard(Limits(**fields))  # type: ignore[arg-type]
        self.handler = FetchFeeds(
            self.reader,  # type: ignore[arg-type]
            self.board,
            STAGE,
            rules=RetryRules(),
            clock=Clock(now=lambda: NOW, monotonic=time.monotonic),
            threads=threads,
            max_hold_seconds=max_hold,
            stopping=self.stopping,
        )

    async def handle(self, **changes: object) -> list[tuple[str, Message]]:
        outgoing: list[Outgoing] = list(await self.handler([make_job(**changes)]))
        return [(item.routing_key, item.message) for item in outgoing]

    async def until_board(self, *, active: int, held: int) -> None:
        """Let others run until the scoreboard counts so many."""
        async with asyncio.timeout(5):
            while (self.board.totals().active, self.board.totals().held) != (active, held):
                await asyncio.sleep(0)

    async def until_started(self, number: int) -> None:
        async with asyncio.timeout(5):
            while len(self.reader.started) < number:
                await asyncio.sleep(0)


@pytest.fixture
def rooms() -> Iterator[Callable[..., Room]]:
    made: list[Room] = []

    def make(**settings: float) -> Room:
        made.append(Room(**settings))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for room in made:
        room.reader.gate.set()
        room.handler.close()
        totals = room.board.totals()
        assert (totals.active, totals.held) == (0, 0), "the scoreboard did not return to zero"


async def test_a_job_becomes_its_result(rooms: Callable[..., Room]) -> None:
    ((key, message),) = await rooms().handle(feed_id=7)
    assert isinstance(message, FeedFetched)
    assert (key, message.feed_id, message.outcome) == ("feed.fetched.v1", 7, Outcome.FETCHED)


async def test_a_soft_error_becomes_a_result_and_a_retry(rooms: Callable[..., Room]) -> None:
    room = rooms()
    room.reader.answer = lambda job: make_result(outcome=Outcome.SOFT_ERROR)
    (_, result), (key, again) = await room.handle()
    assert isinstance(result, FeedFetched)
    assert isinstance(again, FetchFeed)
    assert (result.final, key, again.attempt) == (False, STAGE.retry, 1)


async def test_a_job_past_its_deadline_is_stale(rooms: Callable[..., Room]) -> None:
    room = rooms()
    ((_, result),) = await room.handle(not_after=NOW - timedelta(seconds=1))
    assert isinstance(result, FeedFetched)
    assert (result.outcome, result.final, room.reader.started) == (Outcome.STALE, True, [])


async def test_a_host_that_is_down_is_skipped_without_a_request(rooms: Callable[..., Room]) -> None:
    room = rooms()
    room.reader.report = Report(0.001, connected=False, succeeded=False)
    await room.handle()
    (_, result), (key, again) = await room.handle(attempt=3)
    assert isinstance(result, FeedFetched)
    assert isinstance(again, FetchFeed)
    assert (result.outcome, key, again.attempt, again.skips) == (Outcome.SKIPPED, STAGE.retry, 3, 1)
    assert len(room.reader.started) == 1


async def test_what_cannot_start_in_time_goes_to_fast_delay_as_it_was(rooms: Callable[..., Room]) -> None:
    room = rooms(host_min_interval_seconds=60.0)
    await room.handle()
    ((key, message),) = await room.handle(feed_id=2)
    assert (key, message) == (STAGE.fast_delay, make_job(feed_id=2))


async def test_a_group_that_is_throttled_for_long_ends_the_job_with_a_date(rooms: Callable[..., Room]) -> None:
    room = rooms()
    room.reader.report = Report(0.001, succeeded=False, throttled=True, retry_after_seconds=7200.0)
    await room.handle()
    ((_, result),) = await room.handle(feed_id=2)
    assert isinstance(result, FeedFetched)
    assert (result.outcome, result.final) == (Outcome.THROTTLED, True)
    assert result.not_before is not None
    assert 7199 < (result.not_before - NOW).total_seconds() <= 7200


async def test_a_dry_run_publishes_nothing(rooms: Callable[..., Room]) -> None:
    assert await rooms().handle(dry_run=True) == []


async def test_a_held_job_is_held_no_longer_than_the_hold(rooms: Callable[..., Room]) -> None:
    room = rooms(max_hold=0.2, host_concurrency=1)
    room.reader.gate.clear()
    first = asyncio.create_task(room.handle(feed_id=1))
    await room.until_started(1)
    ((key, _),) = await room.handle(feed_id=2)
    assert key == STAGE.fast_delay
    room.reader.gate.set()
    await first


async def test_starts_in_one_group_keep_their_distance_where_the_request_leaves(rooms: Callable[..., Room]) -> None:
    room = rooms(threads=8, host_min_interval_seconds=0.05, host_concurrency=8)
    await asyncio.gather(*(room.handle(feed_id=n) for n in range(5)))
    gaps = [b - a for a, b in zip(room.reader.started, room.reader.started[1:], strict=False)]
    assert min(gaps) >= 0.049


async def test_a_full_group_does_not_keep_another_waiting(rooms: Callable[..., Room]) -> None:
    room = rooms(threads=4, host_concurrency=1)
    room.reader.gate.clear()
    blocked = [asyncio.create_task(room.handle(feed_id=n, group="slow")) for n in range(3)]
    await room.until_board(active=1, held=2)
    other = asyncio.create_task(room.handle(group="other"))
    await room.until_started(2)
    room.reader.gate.set()
    await asyncio.gather(*blocked, other)


async def test_on_stop_a_waiting_job_is_given_back_and_a_running_one_ends(rooms: Callable[..., Room]) -> None:
    room = rooms(host_concurrency=1)
    room.reader.gate.clear()
    running = asyncio.create_task(room.handle(feed_id=1))
    await room.until_started(1)
    waiting = asyncio.create_task(room.handle(feed_id=2))
    await room.until_board(active=1, held=1)
    room.stopping.set()
    with pytest.raises(GiveBack):
        await waiting
    room.reader.gate.set()
    assert len(await running) == 1


async def test_cancelled_jobs_leave_nothing_on_the_scoreboard(rooms: Callable[..., Room]) -> None:
    room = rooms(threads=1, host_concurrency=2)
    room.reader.gate.clear()
    tasks = [asyncio.create_task(room.handle(feed_id=n, group=f"g{n % 3}")) for n in range(9)]
    await room.until_board(active=1, held=8)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    room.reader.gate.set()
    await room.until_board(active=0, held=0)
    assert await room.handle(group="g0")


async def test_a_bug_in_the_reader_does_not_keep_the_group_busy(rooms: Callable[..., Room]) -> None:
    room = rooms()

    def explode(job: FetchFeed) -> FeedFetched:
        raise ZeroDivisionError

    room.reader.answer = explode
    with pytest.raises(ZeroDivisionError):
        await room.handle()
    assert room.board.totals() == Totals(groups=1, active=0, held=0)
