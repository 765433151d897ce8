"""What a feed's page knows beside the feed's row: its surroundings, rhythm and last polls; and a host's troubles."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Json

from services.admin.errors import NotFound
from services.admin.feeds import listing
from services.admin.health.diagnosis import QueueLevel, Thresholds
from services.admin.health.hosts import list_jobs, list_troubles, read_host_of
from services.admin.polling import history, surroundings
from services.admin.polling.history import read_history, read_rhythm
from services.admin.polling.surroundings import Pipeline, look_at_pipeline, read_timing
from services.admin.polling.timing import Sentence, Timing
from services.admin.registry import NewFeed, add_feed, connect
from services.api.resources import Resources
from services.writer.settings import WriterSettings
from shared.settings import read_settings


def register(database_url: str, *feeds: NewFeed) -> None:
    with connect(database_url) as connection:
        for feed in feeds:
            add_feed(connection, feed)


def change(database_url: str, statement: str, *values: Any) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute(statement.encode(), values or None)


LOG = """
INSERT INTO feed_fetch_log (result_id, feed_id, queued_at, started_at, elapsed_seconds, ok, outcome, final, attempt,
    items_seen, items_new, wire_bytes, decoded_bytes, error_class)
SELECT gen_random_uuid(), %s, at, at, 0.5, %s, %s, true, 1, 20, %s, 0, 0, %s FROM (SELECT now() - %s AS at) AS attempt
"""


def log(database_url: str, ago: timedelta, outcome: str = "fetched", new: int = 0, feed: int = 1) -> None:
    ok = outcome in {"fetched", "not_modified", "unchanged"}
    error_class = "connect" if outcome == "soft_error" else None
    change(database_url, LOG, feed, ok, outcome, new, error_class, ago)


@pytest.fixture
def pipeline(resources: Resources) -> Pipeline:
    shard = QueueLevel(3, 1)
    return Pipeline(
        topology=resources.topology,
        levels=dict.fromkeys(resources.topology.fetcher.queues, shard),
        broker_trouble=None,
        limits=Thresholds(fetcher_high_water=1000, writer_high_water=1000, group_jobs=2, silence_seconds=900.0),
        fetcher=resources.fetcher,
        writer=read_settings(WriterSettings),
    )


async def timing_of(resources: Resources, pipeline: Pipeline, id_: int = 1) -> Timing:
    async with resources.database.transaction() as connection:
        feed = await listing.read_feed(connection, resources.retry_rules(), id_)
        return await read_timing(connection, feed, pipeline)


def text(sentence: Sentence) -> str:
    return "".join(map(str, sentence))


async def test_an_overdue_feed_says_how_many_go_before_it(
    resources: Resources, pipeline: Pipeline, database_url: str
) -> None:
    register(database_url, *(NewFeed(f"http://{n}.example/feed", priority=n % 2) for n in range(1, 8)))
    change(database_url, "UPDATE feeds SET next_fetch_at = now() - make_interval(hours => id::int)")
    timing = await timing_of(resources, pipeline, 4)
    assert timing.is_late
    assert "5 due feeds go before it" in text(timing.reasons[0]), "four with a higher priority, and one longer due"
    first = await timing_of(resources, pipeline, 7)
    assert "No due feed goes before it" in text(first.reasons[0])


async def test_a_host_with_its_share_of_jobs_holds_its_feeds_up(
    resources: Resources, pipeline: Pipeline, database_url: str
) -> None:
    register(database_url, *(NewFeed(f"http://a.example/{n}") for n in range(3)))
    change(database_url, "UPDATE feeds SET next_fetch_at = now() - interval '1 hour'")
    issued = "claim_id = gen_random_uuid(), issued_at = now(), claim_expires_at = now() + interval '1 hour'"
    change(database_url, f"UPDATE feeds SET {issued} WHERE id > 1")
    assert "has 2 jobs under way (FEEDMILL_GROUP_JOBS is 2)" in text((await timing_of(resources, pipeline)).reasons[0])
    under_way = await timing_of(resources, pipeline, 2)
    shard = pipeline.topology.fetcher.queue_of("a.example")
    assert f"3 jobs wait in its queue `{shard}`" in text(under_way.reasons[0])
    full = replace(pipeline, limits=replace(pipeline.limits, fetcher_high_water=30))
    assert "FEEDMILL_FETCHER_HIGH_WATER is 30" in text((await timing_of(resources, full)).reasons[0])


async def test_a_host_that_is_down_holds_a_retry_up(
    resources: Resources, pipeline: Pipeline, database_url: str
) -> None:
    register(database_url, NewFeed("http://a.example/1"))
    change(
        database_url,
        "UPDATE feeds SET claim_id = gen_random_uuid(), claim_expires_at = now() + interval '2 hours',"
        " last_outcome = 'soft_error', last_error = 'refused', last_attempt_at = now()",
    )
    log(database_url, timedelta(minutes=1), "soft_error")
    timing = await timing_of(resources, pipeline)
    assert "could not be connected to" in text(timing.reasons[0])


async def test_a_broker_that_is_away_is_no_error(resources: Resources) -> None:
    resources.no_broker = "no RabbitMQ at amqp://guest:hunter2@nowhere/"
    pipeline = await look_at_pipeline(resources.topology, resources.broker_look, resources.fetcher)
    assert (pipeline.levels, pipeline.broker_trouble) == ({}, "no RabbitMQ at amqp://***@nowhere/")
    assert pipeline.level_of("a.example") is None


async def test_feeds_that_go_before_are_counted_by_index(resources: Resources) -> None:
    async with resources.database.transaction() as connection:
        await connection.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off")
        statement = surroundings._DUE_BEFORE.encode()
        cursor = await connection.execute(b"EXPLAIN " + statement, {"id": 1, "most": 10})
        plan = "\n".join(row["QUERY PLAN"] for row in await cursor.fetchall())
    assert "Seq Scan" not in plan
    assert "feeds_due" in plan


async def test_the_rhythm_is_what_the_writer_remembers(resources: Resources, database_url: str) -> None:
    register(database_url, NewFeed("http://a.example/1"), NewFeed("http://b.example/1"))
    counts = [0] * 31
    counts[7], counts[24] = 5, 5
    since = "2026-11-01T00:00:00Z"
    change(database_url, "UPDATE feeds SET pace = %s WHERE id = 1", Json({"rhythm": counts, "rhythm_since": since}))
    async with resources.database.transaction() as connection:
        rhythm = await read_rhythm(connection, 1)
        assert (rhythm.hours[7], sum(rhythm.hours), rhythm.weekdays[0], sum(rhythm.weekdays)) == (5, 5, 5, 5)
        assert rhythm.since == datetime(2026, 11, 1, tzinfo=UTC)
        assert sum((await read_rhythm(connection, 2)).hours) == 0
        with pytest.raises(NotFound):
            await read_rhythm(connection, 3)


async def test_polls_of_the_last_days_are_counted_by_day(resources: Resources, database_url: str) -> None:
    register(database_url, NewFeed("http://a.example/1"))
    for days in range(3):
        log(database_url, timedelta(days=days, seconds=1), new=days)
        log(database_url, timedelta(days=days, seconds=2), "hard_error")
        log(database_url, timedelta(days=days, seconds=3), "skipped")
    log(database_url, timedelta(days=40), new=99)
    async with resources.database.transaction() as connection:
        found = await read_history(connection, 1)
    assert not found.by_hour
    assert [(span.good, span.failed) for span in found.spans if span.good] == [(1, 1)] * 3
    assert [span.new for span in found.spans if span.good] == [2, 1, 0]


async def test_polls_of_a_feed_with_a_short_log_are_counted_by_hour(resources: Resources, database_url: str) -> None:
    register(database_url, NewFeed("http://a.example/1"), NewFeed("http://b.example/1"))
    for minutes in range(0, 300, 30):
        log(database_url, timedelta(minutes=minutes, seconds=1), "not_modified")
    async with resources.database.transaction() as connection:
        found = await read_history(connection, 1)
        assert (await read_history(connection, 2)).spans == ()
    assert found.by_hour
    assert sum(span.good for span in found.spans) == 10
    assert len(found.spans) in {5, 6}


def test_spans_without_a_poll_are_there_and_no_picture_has_too_many() -> None:
    now = datetime(2026, 11, 22, 12, 30, tzinfo=UTC)
    attempts = [
        {"started_at": now - timedelta(days=days), "ok": True, "items_new": 1} for days in (0, 3, 27, 28)
    ]  # fmt: skip
    spans = history.sum_up(attempts, now).spans
    assert len(spans) == history.MOST_BARS
    assert [span.new for span in spans] == [1, *[0] * 23, 1, 0, 0, 1]
    assert spans[-1].at == datetime(2026, 11, 22, tzinfo=UTC)


async def test_a_host_tells_its_troubles_and_its_jobs(resources: Resources, database_url: str) -> None:
    register(database_url, *(NewFeed(f"http://a.example/{n}?token=hunter2") for n in range(1, 6)))
    change(
        database_url,
        """
        UPDATE feeds SET failures = 1, last_outcome = 'hard_error', last_error = 'http://u:hunter2@x/: 404',
            last_attempt_at = now() - id * interval '1 minute' WHERE id <= 2;
        UPDATE feeds SET last_outcome = 'throttled', last_attempt_at = now() WHERE id = 3;
        UPDATE feeds SET claim_id = gen_random_uuid(), claim_expires_at = now() + interval '1 hour',
            issued_at = now() - id * interval '1 minute' WHERE id >= 4;
        """,
    )
    async with resources.database.transaction() as connection:
        troubles = await list_troubles(connection, "a.example", limit=10)
        assert [(row["feed_id"], row["outcome"]) for row in troubles] == [
            (3, "throttled"), (1, "hard_error"), (2, "hard_error"),
        ]  # fmt: skip
        jobs = await list_jobs(connection, "a.example", limit=10)
        assert [row["feed_id"] for row in jobs] == [5, 4]
        assert "hunter2" not in f"{troubles}{jobs}"
        assert await list_jobs(connection, "b.example", limit=10) == []
        of_feed = await read_host_of(connection, 4, connect_failure_seconds=600.0)
        assert (of_feed["host"], of_feed["feeds"], of_feed["in_flight"]) == ("a.example", 5, 2)
        with pytest.raises(NotFound, match=re.escape("there is no feed 9")):
            await read_host_of(connection, 9, connect_failure_seconds=600.0)
