from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from services.fetcher.http.redirects import RedirectChain
from services.fetcher.politeness.decisions import Report
from services.fetcher.request import FeedRequest
from shared.errors import NackAndRequeue
from shared.wire.envelope import Message
from shared.wire.jobs import FetchFeed, ResumeState
from shared.wire.outcomes import Outcome
from shared.wire.results import FeedFetched
from tests.factories import NOW, make_job, make_result
from tests.fakes.virtual_time import run_virtually
from tests.unit.fetch_room import STAGE, Room, rooms

__all__ = ["rooms"]


async def test_a_job_becomes_its_result(rooms: Callable[..., Room]) -> None:
    ((key, message),) = await rooms().handle(feed_id=7)
    assert isinstance(message, FeedFetched)
    assert (key, message.feed_id, message.outcome) == ("feed.fetched.v1", 7, Outcome.FETCHED)


async def test_a_soft_error_becomes_a_result_and_a_retry(rooms: Callable[..., Room]) -> None:
    room = rooms()
    room.reader.answer = lambda request: make_result(outcome=Outcome.SOFT_ERROR)
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


@pytest.mark.parametrize(("prefetch", "requeued"), [(400, 0), (30, 28)])
def test_jobs_without_room_wait_here_and_the_youngest_make_way_while_the_window_is_full(
    rooms: Callable[..., Room], prefetch: int, requeued: int
) -> None:
    async def main() -> list[list[tuple[str, Message]]]:
        room = rooms(host_min_interval_seconds=1.5, max_hold=2.0, prefetch=prefetch, virtually=True)
        await room.handle()
        return await asyncio.gather(*(room.handle(feed_id=feed_id) for feed_id in range(30)))

    done = run_virtually(main())
    fetched = 30 - requeued
    assert all(isinstance(message, FeedFetched) for ((_, message),) in done[:fetched])
    assert done[fetched:] == [[(STAGE.fast_delay, make_job(feed_id=feed_id))] for feed_id in range(fetched, 30)]


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


async def test_a_job_whose_hold_ends_asks_for_room_again_and_is_fetched_in_the_end(rooms: Callable[..., Room]) -> None:
    room = rooms(max_hold=0.1, host_concurrency=1)
    room.reader.gate.clear()
    first = asyncio.create_task(room.handle(feed_id=1))
    await room.until_started(1)
    second = asyncio.create_task(room.handle(feed_id=2))
    await asyncio.sleep(0.3)  # three holds
    assert not second.done()
    room.reader.gate.set()
    for ((_, result),) in await asyncio.gather(first, second):
        assert isinstance(result, FeedFetched)


async def test_a_redirect_waits_for_the_turn_of_the_host_that_it_leads_to(rooms: Callable[..., Room]) -> None:
    room = rooms(host_min_interval_seconds=0.2)
    room.reader.answer = lambda request: make_result() if request.is_redirected else redirect_to_b(request)
    await room.handle(group="b.example", resume=make_resume("http://b.example/"))
    before = len(room.reader.started)
    ((_, result),) = await room.handle()
    assert isinstance(result, FeedFetched)
    assert [request.group for request in room.reader.requests[before:]] == ["news.example", "b.example"]
    assert room.reader.started[-1] - room.reader.started[before - 1] >= 0.199


async def test_a_redirect_to_a_host_that_is_throttled_goes_on_there_later(rooms: Callable[..., Room]) -> None:
    room = rooms(throttle_seconds=10.0)
    room.reader.report = Report(0.001, succeeded=False, throttled=True)
    await room.handle(group="b.example")
    room.reader.report = Report(0.001)
    room.reader.answer = redirect_to_b
    ((key, again),) = await room.handle(feed_id=2)
    assert isinstance(again, FetchFeed)
    assert key == STAGE.fast_delay
    assert (again.url, again.group, again.resume) == (
        "http://news.example/feed",
        "news.example",
        make_resume("http://b.example/"),
    )


async def test_a_redirect_to_a_host_that_is_down_is_skipped_and_starts_anew_later(rooms: Callable[..., Room]) -> None:
    room = rooms()
    room.reader.report = Report(0.001, connected=False, succeeded=False)
    await room.handle(group="b.example")
    (_, result), (key, again) = await room.handle(feed_id=2, resume=make_resume("http://b.example/"))
    assert isinstance(result, FeedFetched)
    assert isinstance(again, FetchFeed)
    assert (result.outcome, key, again.resume, again.attempt) == (Outcome.SKIPPED, STAGE.retry, None, 0)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"source_type": "sitemap"}, "source_type"),
        ({"url": "ftp://user:secret@news.example/"}, "ftp"),
        ({"url": "http://"}, "no host"),
        ({"url": "http://news.example/" + "x" * 10_000_000}, "10000020 characters"),
        ({"source_config": {"password": "a\nb", "user": "me"}}, "password"),
        ({"source_config": {"headers": {"Host": "x"}}}, "headers.Host"),
        ({"resume": {"url": "ftp://b.example/", "visited": ["http://a.example/"]}}, "ftp"),
    ],
)
async def test_settings_that_cannot_be_used_end_the_job_without_a_request(
    rooms: Callable[..., Room], changes: dict[str, Any], complaint: str
) -> None:
    room = rooms()
    if "resume" in changes:
        changes = {"resume": make_resume(**changes["resume"])}
    ((_, result),) = await room.handle(**changes)
    assert isinstance(result, FeedFetched)
    assert (result.outcome, result.final, room.reader.started) == (Outcome.HARD_ERROR, True, [])
    assert complaint in str(result.error)
    assert "secret" not in str(result.error)
    assert result.error_class in {"bad_options", "bad_url"}


def redirect_to_b(request: FeedRequest) -> FeedRequest:
    chain = RedirectChain("http://b.example/", ("http://news.example/feed",), None, permanent=False)
    return replace(request, chain=chain, group="b.example", started_at=NOW, spent_seconds=0.5)


def make_resume(url: str, visited: Sequence[str] = ("http://news.example/feed",)) -> ResumeState:
    return ResumeState(url=url, visited=tuple(visited), started_at=NOW, spent_seconds=0.5)


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
    await room.slots.stop_when(room.stopping)
    with pytest.raises(NackAndRequeue):
        await waiting
    with pytest.raises(NackAndRequeue):
        await room.handle(feed_id=3)
    room.reader.gate.set()
    assert len(await running) == 1


async def test_a_redirect_that_is_found_while_stopping_is_taken_later_where_it_leads(
    rooms: Callable[..., Room],
) -> None:
    room = rooms()
    room.reader.answer = redirect_to_b
    room.reader.gate.clear()
    running = asyncio.create_task(room.handle())
    await room.until_started(1)
    room.stopping.set()
    await room.slots.stop_when(room.stopping)
    room.reader.gate.set()
    ((key, again),) = await running
    assert isinstance(again, FetchFeed)
    assert (key, again.resume) == (STAGE.fast_delay, make_resume("http://b.example/"))


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

    def explode(request: FeedRequest) -> FeedFetched:
        raise ZeroDivisionError

    room.reader.answer = explode
    with pytest.raises(ZeroDivisionError):
        await room.handle()
    assert room.board.counts() == (0, 0)


async def test_a_redirect_to_a_host_of_another_fetcher_goes_on_there_at_once(rooms: Callable[..., Room]) -> None:
    room = rooms(shards=12)
    theirs = room.stage.queue_of("b.example")
    assert room.stage.queue_of("news.example") != theirs
    room.elsewhere.add(theirs)
    room.reader.answer = redirect_to_b
    ((key, again),) = await room.handle()
    assert isinstance(again, FetchFeed)
    assert (key, again.resume) == (theirs, make_resume("http://b.example/"))
    assert len(room.reader.started) == 1


async def test_a_job_that_is_in_another_fetchers_shard_is_sent_there_unasked(rooms: Callable[..., Room]) -> None:
    room = rooms(shards=12)
    theirs = room.stage.queue_of("news.example")
    room.elsewhere.add(theirs)
    assert await room.handle() == [(theirs, make_job())]
    assert room.reader.started == []


async def test_what_waits_comes_back_to_the_shard_of_the_host_that_it_waits_for(rooms: Callable[..., Room]) -> None:
    room = rooms(shards=12, throttle_seconds=10.0)
    room.reader.report = Report(0.001, succeeded=False, throttled=True)
    await room.handle(group="b.example")
    room.reader.report = Report(0.001)
    room.reader.answer = redirect_to_b
    (delayed,) = await room.handler([make_job(feed_id=2)])
    assert (delayed.exchange, delayed.routing_key) == (room.stage.fast_delay, room.stage.queue_of("b.example"))
    room.reader.answer = lambda request: make_result(outcome=Outcome.SOFT_ERROR)
    _, retry = await room.handler([make_job(feed_id=3, group="c.example")])
    assert (retry.exchange, retry.routing_key) == (room.stage.retry, room.stage.queue_of("c.example"))


async def test_a_shard_that_is_given_up_gives_back_what_waits_and_ends_what_runs_and_leaves_others_alone(
    rooms: Callable[..., Room],
) -> None:
    room = rooms(shards=12, host_concurrency=1)
    shard, other = room.stage.queue_of("a.example"), room.stage.queue_of("b.example")
    assert shard != other
    room.reader.gate.clear()
    running = asyncio.create_task(room.handle(group="a.example"))
    elsewhere = asyncio.create_task(room.handle(group="b.example"))
    await room.until_started(2)
    waiting = asyncio.create_task(room.handle(group="a.example", feed_id=2))
    await room.until_board(active=2, held=1)
    room.slots.close_shard(shard)
    with pytest.raises(NackAndRequeue):
        await waiting
    with pytest.raises(NackAndRequeue):
        await room.handle(group="a.example", feed_id=3)
    assert (room.slots.count_jobs(shard), room.slots.count_jobs(other)) == (1, 1)
    room.reader.gate.set()
    assert len(await running) == len(await elsewhere) == 1
    assert room.slots.count_jobs(shard) == 0
    room.slots.open_shard(shard, time.monotonic())
    assert await room.handle(group="a.example", feed_id=4)
