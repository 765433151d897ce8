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
from shared.broker.prefetch import PrefetchLimit
from shared.errors import NackAndRequeue
from shared.wire.jobs import FetchFeed, ResumeState
from shared.wire.outcomes import Outcome
from shared.wire.results import FeedFetched
from tests.factories import NOW, make_job, make_result
from tests.fakes.virtual_time import run_virtually
from tests.unit.fetcher.harness import STAGE, Harness, build

__all__ = ["build"]


async def test_a_job_becomes_its_result(build: Callable[..., Harness]) -> None:
    ((key, message),) = await build().handle(feed_id=7)
    assert isinstance(message, FeedFetched)
    assert (key, message.feed_id, message.outcome) == ("feed.fetched.v1", 7, Outcome.FETCHED)


async def test_a_soft_error_becomes_a_result_and_a_retry(build: Callable[..., Harness]) -> None:
    harness = build()
    harness.reader.answer = lambda request: make_result(outcome=Outcome.SOFT_ERROR)
    (_, result), (key, again) = await harness.handle()
    assert isinstance(result, FeedFetched)
    assert isinstance(again, FetchFeed)
    assert (result.final, key, again.attempt) == (False, STAGE.retry, 1)


async def test_a_job_past_its_deadline_is_stale(build: Callable[..., Harness]) -> None:
    harness = build()
    ((_, result),) = await harness.handle(not_after=NOW - timedelta(seconds=1))
    assert isinstance(result, FeedFetched)
    assert (result.outcome, result.final, harness.reader.started) == (Outcome.STALE, True, [])


async def test_a_host_that_is_down_is_skipped_without_a_request(build: Callable[..., Harness]) -> None:
    harness = build()
    harness.reader.report = Report(0.001, connected=False, succeeded=False)
    await harness.handle()
    (_, result), (key, again) = await harness.handle(attempt=3)
    assert isinstance(result, FeedFetched)
    assert isinstance(again, FetchFeed)
    assert (result.outcome, key, again.attempt, again.skips) == (Outcome.SKIPPED, STAGE.retry, 3, 1)
    assert len(harness.reader.started) == 1


def test_of_those_without_room_some_look_further_and_others_go_back_once_no_more_are_taken(
    build: Callable[..., Harness],
) -> None:
    async def main() -> list[Any]:
        harness = build(host_min_interval_seconds=1.5, max_hold=2.0, virtually=True)
        await harness.handle()
        waiting = [asyncio.create_task(harness.handle(feed_id=feed_id)) for feed_id in range(100)]
        async with asyncio.timeout(10):
            await until_shut_then_applied(harness.prefetch_limit)
            return await asyncio.gather(*waiting, return_exceptions=True)

    held, *others = run_virtually(main())
    assert not isinstance(held, BaseException), "the first had harness"
    requeued = [outcome for outcome in others if not isinstance(outcome, BaseException)]
    youngest = range(100 - len(requeued), 100)
    assert requeued == [[(STAGE.fast_delay, make_job(feed_id=feed_id))] for feed_id in youngest]
    assert 40 <= len(requeued) <= 60
    assert {type(outcome) for outcome in others[: -len(requeued)]} == {NackAndRequeue}


async def until_shut_then_applied(prefetch_limit: PrefetchLimit) -> None:
    """Play the consumer."""
    while prefetch_limit.total:
        await asyncio.sleep(0.01)
    prefetch_limit.note_applied()


async def test_a_group_that_is_throttled_for_long_ends_the_job_with_a_date(
    build: Callable[..., Harness],
) -> None:
    harness = build()
    harness.reader.report = Report(0.001, succeeded=False, throttled=True, retry_after_seconds=7200.0)
    await harness.handle()
    ((_, result),) = await harness.handle(feed_id=2)
    assert isinstance(result, FeedFetched)
    assert (result.outcome, result.final) == (Outcome.THROTTLED, True)
    assert result.not_before is not None
    assert 7199 < (result.not_before - NOW).total_seconds() <= 7200


async def test_a_held_job_is_held_no_longer_than_the_hold(build: Callable[..., Harness]) -> None:
    harness = build(max_hold=0.2, host_concurrency=1)
    harness.reader.gate.clear()
    first = asyncio.create_task(harness.handle(feed_id=1))
    await harness.until_started(1)
    second = asyncio.create_task(harness.handle(feed_id=2))
    async with asyncio.timeout(30):
        await until_shut_then_applied(harness.prefetch_limit)
    with pytest.raises(NackAndRequeue):
        await second
    harness.reader.gate.set()
    await first


async def test_a_redirect_waits_for_a_slot_of_the_host_that_it_leads_to(build: Callable[..., Harness]) -> None:
    harness = build(host_min_interval_seconds=0.2)
    harness.reader.answer = lambda request: make_result() if request.is_redirected else redirect_to_b(request)
    await harness.handle(group="b.example", resume=make_resume("http://b.example/"))
    before = len(harness.reader.started)
    ((_, result),) = await harness.handle()
    assert isinstance(result, FeedFetched)
    assert [request.group for request in harness.reader.requests[before:]] == ["news.example", "b.example"]
    assert harness.reader.started[-1] - harness.reader.started[before - 1] >= 0.199


async def test_a_redirect_to_a_host_that_is_throttled_goes_on_there_later(build: Callable[..., Harness]) -> None:
    harness = build(throttle_seconds=10.0)
    harness.reader.report = Report(0.001, succeeded=False, throttled=True)
    await harness.handle(group="b.example")
    harness.reader.report = Report(0.001)
    harness.reader.answer = redirect_to_b
    ((key, again),) = await harness.handle(feed_id=2)
    assert isinstance(again, FetchFeed)
    assert key == STAGE.fast_delay
    assert (again.url, again.group, again.resume) == (
        "http://news.example/feed",
        "news.example",
        make_resume("http://b.example/"),
    )


async def test_a_redirect_to_a_host_that_is_down_is_skipped_and_starts_anew_later(
    build: Callable[..., Harness],
) -> None:
    harness = build()
    harness.reader.report = Report(0.001, connected=False, succeeded=False)
    await harness.handle(group="b.example")
    (_, result), (key, again) = await harness.handle(feed_id=2, resume=make_resume("http://b.example/"))
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
    build: Callable[..., Harness], changes: dict[str, Any], complaint: str
) -> None:
    harness = build()
    if "resume" in changes:
        changes = {"resume": make_resume(**changes["resume"])}
    ((_, result),) = await harness.handle(**changes)
    assert isinstance(result, FeedFetched)
    assert (result.outcome, result.final, harness.reader.started) == (Outcome.HARD_ERROR, True, [])
    assert complaint in str(result.error)
    assert "secret" not in str(result.error)
    assert result.error_class in {"bad_options", "bad_url"}


def redirect_to_b(request: FeedRequest) -> FeedRequest:
    chain = RedirectChain("http://b.example/", ("http://news.example/feed",), None, permanent=False)
    return replace(request, chain=chain, group="b.example", started_at=NOW, spent_seconds=0.5)


def make_resume(url: str, visited: Sequence[str] = ("http://news.example/feed",)) -> ResumeState:
    return ResumeState(url=url, visited=tuple(visited), started_at=NOW, spent_seconds=0.5)


async def test_starts_in_one_group_keep_their_distance_where_the_request_leaves(
    build: Callable[..., Harness],
) -> None:
    harness = build(threads=8, host_min_interval_seconds=0.05, host_concurrency=8)
    await asyncio.gather(*(harness.handle(feed_id=n) for n in range(5)))
    gaps = [b - a for a, b in zip(harness.reader.started, harness.reader.started[1:], strict=False)]
    assert min(gaps) >= 0.049


async def test_a_full_group_does_not_keep_another_waiting(build: Callable[..., Harness]) -> None:
    harness = build(threads=4, host_concurrency=1)
    harness.reader.gate.clear()
    blocked = [asyncio.create_task(harness.handle(feed_id=n, group="slow")) for n in range(3)]
    await harness.until_board(active=1, held=2)
    other = asyncio.create_task(harness.handle(group="other"))
    await harness.until_started(2)
    harness.reader.gate.set()
    await asyncio.gather(*blocked, other)


async def test_on_stop_a_waiting_job_is_requeued_and_a_running_one_ends(build: Callable[..., Harness]) -> None:
    harness = build(host_concurrency=1)
    harness.reader.gate.clear()
    running = asyncio.create_task(harness.handle(feed_id=1))
    await harness.until_started(1)
    waiting = asyncio.create_task(harness.handle(feed_id=2))
    await harness.until_board(active=1, held=1)
    harness.stopping.set()
    await harness.slots.stop_when(harness.stopping)
    with pytest.raises(NackAndRequeue):
        await waiting
    with pytest.raises(NackAndRequeue):
        await harness.handle(feed_id=3)
    harness.reader.gate.set()
    assert len(await running) == 1


async def test_a_redirect_that_is_found_while_stopping_is_taken_later_where_it_leads(
    build: Callable[..., Harness],
) -> None:
    harness = build()
    harness.reader.answer = redirect_to_b
    harness.reader.gate.clear()
    running = asyncio.create_task(harness.handle())
    await harness.until_started(1)
    harness.stopping.set()
    await harness.slots.stop_when(harness.stopping)
    harness.reader.gate.set()
    ((key, again),) = await running
    assert isinstance(again, FetchFeed)
    assert (key, again.resume) == (STAGE.fast_delay, make_resume("http://b.example/"))


async def test_cancelled_jobs_leave_nothing_on_the_scoreboard(build: Callable[..., Harness]) -> None:
    harness = build(threads=1, host_concurrency=2)
    harness.reader.gate.clear()
    tasks = [asyncio.create_task(harness.handle(feed_id=n, group=f"g{n % 3}")) for n in range(9)]
    await harness.until_board(active=1, held=8)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    harness.reader.gate.set()
    await harness.until_board(active=0, held=0)
    assert await harness.handle(group="g0")


async def test_a_bug_in_the_reader_does_not_keep_the_group_busy(build: Callable[..., Harness]) -> None:
    harness = build()

    def explode(request: FeedRequest) -> FeedFetched:
        raise ZeroDivisionError

    harness.reader.answer = explode
    with pytest.raises(ZeroDivisionError):
        await harness.handle()
    assert harness.board.counts() == (0, 0)


async def test_a_redirect_to_a_host_of_another_fetcher_goes_on_there_at_once(
    build: Callable[..., Harness],
) -> None:
    harness = build(shards=12)
    theirs = harness.stage.queue_of("b.example")
    assert harness.stage.queue_of("news.example") != theirs
    harness.elsewhere.add(theirs)
    harness.reader.answer = redirect_to_b
    ((key, again),) = await harness.handle()
    assert isinstance(again, FetchFeed)
    assert (key, again.resume) == (theirs, make_resume("http://b.example/"))
    assert len(harness.reader.started) == 1


async def test_a_job_that_is_in_another_fetchers_shard_is_sent_there_unasked(
    build: Callable[..., Harness],
) -> None:
    harness = build(shards=12)
    theirs = harness.stage.queue_of("news.example")
    harness.elsewhere.add(theirs)
    assert await harness.handle() == [(theirs, make_job())]
    assert harness.reader.started == []


async def test_what_waits_comes_back_to_the_shard_of_the_host_that_it_waits_for(
    build: Callable[..., Harness],
) -> None:
    harness = build(shards=12, throttle_seconds=10.0)
    harness.reader.report = Report(0.001, succeeded=False, throttled=True)
    await harness.handle(group="b.example")
    harness.reader.report = Report(0.001)
    harness.reader.answer = redirect_to_b
    (delayed,) = await harness.handler([make_job(feed_id=2)])
    assert (delayed.exchange, delayed.routing_key) == (harness.stage.fast_delay, harness.stage.queue_of("b.example"))
    harness.reader.answer = lambda request: make_result(outcome=Outcome.SOFT_ERROR)
    _, retry = await harness.handler([make_job(feed_id=3, group="c.example")])
    assert (retry.exchange, retry.routing_key) == (harness.stage.retry, harness.stage.queue_of("c.example"))


async def test_a_shard_that_is_given_up_gives_back_what_waits_and_ends_what_runs_and_leaves_others_alone(
    build: Callable[..., Harness],
) -> None:
    harness = build(shards=12, host_concurrency=1)
    shard, other = harness.stage.queue_of("a.example"), harness.stage.queue_of("b.example")
    assert shard != other
    harness.reader.gate.clear()
    running = asyncio.create_task(harness.handle(group="a.example"))
    elsewhere = asyncio.create_task(harness.handle(group="b.example"))
    await harness.until_started(2)
    waiting = asyncio.create_task(harness.handle(group="a.example", feed_id=2))
    await harness.until_board(active=2, held=1)
    harness.slots.close_shard(shard)
    with pytest.raises(NackAndRequeue):
        await waiting
    with pytest.raises(NackAndRequeue):
        await harness.handle(group="a.example", feed_id=3)
    assert (harness.slots.count_jobs(shard), harness.slots.count_jobs(other)) == (1, 1)
    harness.reader.gate.set()
    assert len(await running) == len(await elsewhere) == 1
    assert harness.slots.count_jobs(shard) == 0
    harness.slots.open_shard(shard, time.monotonic())
    assert await harness.handle(group="a.example", feed_id=4)
