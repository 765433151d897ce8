"""Jobs that a person waits for, in the handler."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta

import pytest

from services.fetcher.politeness.decisions import Report
from shared.broker.topology import TRIALS
from shared.errors import NackAndRequeue
from shared.wire.jobs import FetchFeed
from shared.wire.outcomes import Outcome
from shared.wire.results import FeedFetched
from tests.factories import NOW, make_result
from tests.unit.fetcher.harness import STAGE, Harness, build

__all__ = ["build"]

MANUAL = {"reason": "manual", "queued_at": NOW + timedelta(seconds=1)}
FRONT = f"{STAGE.queues[0]}.front"


async def test_a_dry_run_ends_where_nobody_writes_it_and_is_not_retried(build: Callable[..., Harness]) -> None:
    harness = build()
    harness.reader.answer = lambda request: make_result(outcome=Outcome.SOFT_ERROR)
    ((queue, result),) = await harness.handle(**MANUAL, dry_run=True)
    assert isinstance(result, FeedFetched)
    assert (queue, result.outcome, result.final) == (TRIALS.queue, Outcome.SOFT_ERROR, True)


async def test_a_dry_run_that_comes_too_late_says_so(build: Callable[..., Harness]) -> None:
    ((queue, result),) = await build().handle(**MANUAL, dry_run=True, not_after=NOW)
    assert isinstance(result, FeedFetched)
    assert (queue, result.outcome) == (TRIALS.queue, Outcome.STALE)


async def test_an_earlier_job_of_a_feed_that_was_fired_is_stale(build: Callable[..., Harness]) -> None:
    harness = build()
    assert len(await harness.handle(**MANUAL)) == 1
    ((_, result),) = await harness.handle()
    assert isinstance(result, FeedFetched)
    assert (result.outcome, result.error) == (Outcome.STALE, "the feed was fired since, and that job took its place")
    assert len(harness.reader.requests) == 1
    for changes in ({"feed_id": 2}, {"queued_at": NOW + timedelta(seconds=2)}, {**MANUAL, "attempt": 1}):
        ((_, result),) = await harness.handle(**changes)
        assert isinstance(result, FeedFetched)
        assert result.outcome is Outcome.FETCHED


async def test_an_earlier_job_that_waits_in_this_process_is_stale_too(build: Callable[..., Harness]) -> None:
    harness = build(host_concurrency=1)
    harness.reader.gate.clear()
    running = asyncio.create_task(harness.handle(feed_id=2))
    await harness.until_started(1)
    waiting = asyncio.create_task(harness.handle())
    await harness.until_board(active=1, held=1)
    fired = asyncio.create_task(harness.handle(**MANUAL))
    await harness.until_board(active=1, held=2)
    harness.reader.gate.set()
    await asyncio.gather(running, waiting, fired)
    ((_, early),), ((_, late),) = waiting.result(), fired.result()
    assert isinstance(early, FeedFetched)
    assert isinstance(late, FeedFetched)
    assert (early.outcome, late.outcome) == (Outcome.STALE, Outcome.FETCHED)
    assert [request.job.reason for request in harness.reader.requests] == ["due", "manual"]


async def test_a_dry_run_makes_no_other_job_stale(build: Callable[..., Harness]) -> None:
    harness = build()
    await harness.handle(**MANUAL, dry_run=True)
    ((_, result),) = await harness.handle()
    assert isinstance(result, FeedFetched)
    assert result.outcome is Outcome.FETCHED


async def test_a_fired_job_comes_back_in_front_and_its_retry_does_not(build: Callable[..., Harness]) -> None:
    harness = build(throttle_seconds=10.0)
    harness.reader.report = Report(0.001, succeeded=False, throttled=True)
    harness.reader.answer = lambda request: make_result(outcome=Outcome.SOFT_ERROR, status=429)
    (_, (_, again)) = await harness.handle(feed_id=2)
    assert isinstance(again, FetchFeed)
    (delayed,) = await harness.handler([again.model_copy(update=MANUAL | {"attempt": 0})])
    assert (delayed.exchange, delayed.routing_key) == (STAGE.fast_delay, FRONT)
    (delayed,) = await harness.handler([again.model_copy(update=MANUAL | {"attempt": 1})])
    assert (delayed.exchange, delayed.routing_key) == (STAGE.fast_delay, STAGE.queues[0])


async def test_a_fired_job_is_sent_to_the_front_of_another_fetchers_shard(build: Callable[..., Harness]) -> None:
    harness = build(shards=12)
    shard = harness.stage.queue_of("news.example")
    harness.elsewhere.add(shard)
    ((queue, _),) = await harness.handle(**MANUAL)
    assert queue == f"{shard}.front"


async def test_a_fired_job_that_waits_is_nacked_when_the_service_stops(build: Callable[..., Harness]) -> None:
    harness = build(host_concurrency=1)
    harness.reader.gate.clear()
    running = asyncio.create_task(harness.handle(feed_id=2))
    await harness.until_started(1)
    waiting = asyncio.create_task(harness.handle(**MANUAL))
    await harness.until_board(active=1, held=1)
    stopping = asyncio.create_task(harness.slots.stop_when(harness.stopping))
    harness.stopping.set()
    with pytest.raises(NackAndRequeue):
        await waiting
    harness.reader.gate.set()
    await asyncio.gather(running, stopping)
