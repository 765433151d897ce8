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
from tests.unit.fetch_room import STAGE, Room, rooms

__all__ = ["rooms"]


async def test_a_fetch_goes_on_when_its_session_is_lost_and_its_job_gets_the_result_when_it_comes_again(
    rooms: Callable[..., Room],
) -> None:
    room = rooms()
    room.reader.gate.clear()
    for _ in range(3):  # sessions that are lost, one after the other
        lost = asyncio.create_task(room.handle(feed_id=7))
        await room.until_started(1)
        await asyncio.sleep(0)
        lost.cancel()
        await asyncio.wait([lost])
    again = asyncio.create_task(room.handle(feed_id=7))
    room.reader.gate.set()
    ((_, message),) = await again
    assert isinstance(message, FeedFetched)
    assert (message.feed_id, len(room.reader.started)) == (7, 1)


async def test_a_fetch_that_ended_while_the_broker_was_away_is_not_repeated(rooms: Callable[..., Room]) -> None:
    room = rooms()
    room.reader.gate.clear()
    lost = asyncio.create_task(room.handle(feed_id=7))
    await room.until_started(1)
    lost.cancel()
    await asyncio.wait([lost])
    room.reader.gate.set()
    await room.until_board(active=0, held=0)
    ((_, message),) = await room.handle(feed_id=7)
    assert isinstance(message, FeedFetched)
    assert len(room.reader.started) == 1
    await room.handle(feed_id=7, attempt=1)
    assert len(room.reader.started) == 2, "the next attempt is another job"


async def test_a_job_that_waits_when_its_session_is_lost_leaves_its_line(rooms: Callable[..., Room]) -> None:
    room = rooms(threads=1)
    room.reader.gate.clear()
    running = asyncio.create_task(room.handle(feed_id=1))
    await room.until_started(1)
    waiting = asyncio.create_task(room.handle(feed_id=2))
    await room.until_board(active=1, held=1)
    waiting.cancel()
    await asyncio.wait([waiting])
    await room.until_board(active=1, held=0)
    room.reader.gate.set()
    await running
    assert len(room.reader.started) == 1


async def test_a_job_whose_shard_was_lost_asks_nobody(rooms: Callable[..., Room]) -> None:
    room = rooms()
    room.lost.add(STAGE.queues[0])
    ((queue, message),) = await room.handle(feed_id=7)
    assert (queue, isinstance(message, FetchFeed)) == (STAGE.fast_delay, True)
    assert not room.reader.started
    room.lost.clear()
    ((queue, _),) = await room.handle(feed_id=7)
    assert (queue, len(room.reader.started)) == (FeedFetched.KIND, 1)


async def test_a_request_that_finds_its_shard_lost_when_it_is_about_to_leave_is_given_back(
    rooms: Callable[..., Room],
) -> None:
    def about_to_leave(request: FeedRequest) -> FeedFetched | FeedRequest:
        raise NackAndRequeue("the shard of its group was lost")

    room = rooms()
    room.reader.answer = about_to_leave
    with pytest.raises(NackAndRequeue):
        await room.handle(feed_id=7)


async def test_a_task_beside_the_consumer_that_fails_ends_the_service_instead_of_being_missed() -> None:
    async def fail() -> None:
        raise ZeroDivisionError

    stop = asyncio.Event()
    with pytest.raises(ZeroDivisionError):
        async with beside(stop, fail()):
            await asyncio.wait_for(stop.wait(), 5)
