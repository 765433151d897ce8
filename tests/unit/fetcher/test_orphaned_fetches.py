"""Fetches whose session is lost under them, and tasks that fail beside the consumer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from services.fetcher.request import FeedRequest
from shared.background import beside
from shared.errors import NackAndRequeue
from shared.wire.jobs import FetchFeed
from shared.wire.results import FeedFetched
from tests.unit.fetcher.harness import STAGE, Harness, build

__all__ = ["build"]


async def test_a_fetch_goes_on_when_its_session_is_lost_and_its_job_gets_the_result_when_it_comes_again(
    build: Callable[..., Harness],
) -> None:
    harness = build()
    harness.reader.gate.clear()
    for _ in range(3):  # sessions that are lost, one after the other
        lost = asyncio.create_task(harness.handle(feed_id=7))
        await harness.until_started(1)
        await asyncio.sleep(0)
        lost.cancel()
        await asyncio.wait([lost])
    again = asyncio.create_task(harness.handle(feed_id=7))
    harness.reader.gate.set()
    ((_, message),) = await again
    assert isinstance(message, FeedFetched)
    assert (message.feed_id, len(harness.reader.started)) == (7, 1)


async def test_a_fetch_that_ended_while_the_broker_was_away_is_not_repeated(
    build: Callable[..., Harness],
) -> None:
    harness = build()
    harness.reader.gate.clear()
    lost = asyncio.create_task(harness.handle(feed_id=7))
    await harness.until_started(1)
    lost.cancel()
    await asyncio.wait([lost])
    harness.reader.gate.set()
    await harness.until_board(active=0, held=0)
    ((_, message),) = await harness.handle(feed_id=7)
    assert isinstance(message, FeedFetched)
    assert len(harness.reader.started) == 1
    await harness.handle(feed_id=7, attempt=1)
    assert len(harness.reader.started) == 2, "the next attempt is another job"


async def test_a_job_that_waits_when_its_session_is_lost_leaves_its_queue(build: Callable[..., Harness]) -> None:
    harness = build(threads=1)
    harness.reader.gate.clear()
    running = asyncio.create_task(harness.handle(feed_id=1))
    await harness.until_started(1)
    waiting = asyncio.create_task(harness.handle(feed_id=2))
    await harness.until_board(active=1, held=1)
    waiting.cancel()
    await asyncio.wait([waiting])
    await harness.until_board(active=1, held=0)
    harness.reader.gate.set()
    await running
    assert len(harness.reader.started) == 1


async def test_a_job_whose_shard_was_lost_asks_nobody(build: Callable[..., Harness]) -> None:
    harness = build()
    harness.lost.add(STAGE.queues[0])
    ((queue, message),) = await harness.handle(feed_id=7)
    assert (queue, isinstance(message, FetchFeed)) == (STAGE.fast_delay, True)
    assert not harness.reader.started
    harness.lost.clear()
    ((queue, _),) = await harness.handle(feed_id=7)
    assert (queue, len(harness.reader.started)) == (FeedFetched.KIND, 1)


async def test_a_request_that_finds_its_shard_lost_when_it_is_about_to_leave_is_requeued(
    build: Callable[..., Harness],
) -> None:
    def about_to_leave(request: FeedRequest) -> FeedFetched | FeedRequest:
        raise NackAndRequeue("the shard of its group was lost")

    harness = build()
    harness.reader.answer = about_to_leave
    with pytest.raises(NackAndRequeue):
        await harness.handle(feed_id=7)


async def test_a_task_beside_the_consumer_that_fails_ends_the_service_instead_of_being_missed() -> None:
    async def fail() -> None:
        raise ZeroDivisionError

    stop = asyncio.Event()
    with pytest.raises(ZeroDivisionError):
        async with beside(stop, fail()):
            await asyncio.wait_for(stop.wait(), 5)
