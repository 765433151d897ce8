"""The alarm, and what `feedmill status` counts, against real tables."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from services.cli.registry import NewFeed, add_feed, busiest_groups, connect, count_all
from services.scheduler.silence import SilenceWatch, look
from services.scheduler.store import claim_due_feeds
from shared.postgres import Database


def change(database_url: str, statement: str, *arguments: object) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute(statement.encode(), arguments)


def log_attempt(database_url: str, *, ok: bool, minutes_ago: int) -> None:
    change(
        database_url,
        """
        INSERT INTO feed_fetch_log (result_id, feed_id, queued_at, started_at, elapsed_seconds, ok, outcome, final,
            attempt, items_seen, items_new, wire_bytes, decoded_bytes)
        SELECT gen_random_uuid(), min(id), now(), now() - make_interval(mins => %s), 1, %s, '', true, 0, 0, 0, 0, 0
        FROM feeds
        """,
        minutes_ago,
        ok,
    )


async def found(database: Database) -> tuple[Any, ...]:
    async with database.transaction() as connection:
        due, longest_due, silence = await look(connection)
    return due, round(longest_due / 60), round(silence / 60)


async def test_silence_is_the_time_since_work_is_there_and_nothing_succeeds(
    database: Database, database_url: str
) -> None:
    assert await found(database) == (0, 0, 0)
    with connect(database_url) as connection:
        for number in range(3):
            add_feed(connection, NewFeed(f"http://h{number}.example/feed", priority=number))
    change(database_url, "UPDATE feeds SET next_fetch_at = now() + interval '1 hour'")
    log_attempt(database_url, ok=True, minutes_ago=90)
    assert await found(database) == (0, 0, 0)  # nothing succeeded for long, and nothing had to
    change(database_url, "UPDATE feeds SET next_fetch_at = now() - interval '40 min' WHERE priority < 2")
    assert await found(database) == (2, 40, 40)
    async with database.transaction() as connection:
        await claim_due_feeds(connection, limit=9, claim_seconds=3600)
    change(database_url, "UPDATE feeds SET issued_at = now() - interval '35 min' WHERE issued_at IS NOT NULL")
    assert await found(database) == (0, 0, 35)  # in flight is not done
    log_attempt(database_url, ok=False, minutes_ago=1)
    assert await found(database) == (0, 0, 35)
    log_attempt(database_url, ok=True, minutes_ago=2)
    assert await found(database) == (0, 0, 2)


async def test_neither_a_disabled_feeds_lost_job_nor_a_fetchers_fast_clock_misleads_the_alarm(
    database: Database, database_url: str
) -> None:
    with connect(database_url) as connection:
        for number in range(2):
            add_feed(connection, NewFeed(f"http://h{number}.example/feed", priority=number))
    change(database_url, "UPDATE feeds SET next_fetch_at = now() + interval '1 hour' WHERE priority = 0")
    change(database_url, "UPDATE feeds SET issued_at = now() - interval '1 day', enabled = false WHERE priority = 1")
    log_attempt(database_url, ok=True, minutes_ago=50)
    assert await found(database) == (0, 0, 0)
    change(database_url, "UPDATE feeds SET next_fetch_at = now() - interval '45 min' WHERE priority = 0")
    log_attempt(database_url, ok=True, minutes_ago=-6_000)
    assert await found(database) == (1, 45, 45)
    with connect(database_url) as connection:
        assert count_all(connection).seconds_since_success == pytest.approx(3000, abs=30)


def test_the_alarm_begins_and_ends(caplog: pytest.LogCaptureFixture) -> None:
    watch = SilenceWatch(Database("postgresql://nobody/", size=1), seconds=1800)
    watch.note(3, 60.0, 1800.0)
    assert watch.check() is None
    watch.note(3, 60.0, 1801.0)
    watch.note(3, 90.0, 1831.0)
    assert watch.check() == "feeds are due, and none was fetched successfully for 1831 s"
    watch.note(0, 0.0, 0.0)
    assert watch.check() is None
    assert [record.levelname for record in caplog.records if record.name == "services.scheduler.silence"] == ["ERROR"]


async def test_status_counts_feeds_by_where_they_are(database: Database, database_url: str) -> None:
    with connect(database_url) as connection:
        for number in range(7):
            add_feed(connection, NewFeed(f"http://h{number // 3}.example/{number}"))
        connection.execute("UPDATE feeds SET next_fetch_at = now() + interval '2 min' WHERE id % 7 NOT IN (1, 2)")
    async with database.transaction() as claiming:
        await claim_due_feeds(claiming, limit=2, claim_seconds=60)
    with connect(database_url) as connection:
        connection.execute("UPDATE feeds SET next_fetch_at = now() - interval '2 min' WHERE id % 7 = 3")
        connection.execute("UPDATE feeds SET next_fetch_at = now() WHERE id % 7 = 0")
        connection.execute("UPDATE feeds SET issued_at = NULL WHERE id % 7 = 1")
        connection.execute("UPDATE feeds SET enabled = false WHERE id % 7 = 6")
    with connect(database_url) as connection:
        counts = count_all(connection)
        assert busiest_groups(connection) == {"h0.example": 1}
    assert (counts.feeds, counts.disabled, counts.due, counts.overdue) == (7, 1, 2, 1)
    assert (counts.queued, counts.retrying) == (1, 1)
    assert counts.left_alone == 0
    assert counts.longest_due_seconds == pytest.approx(120, abs=30)
    assert counts.next_due_seconds == pytest.approx(120, abs=30)
    assert counts.seconds_since_success is None
    change(database_url, "INSERT INTO throttled_groups SELECT 'h1.example', now() + interval '1 hour'")
    change(database_url, "UPDATE feeds SET next_fetch_at = now() - interval '2 min' WHERE id %% 7 IN (4, 5)")
    with connect(database_url) as connection:
        counts = count_all(connection)
    assert (counts.overdue, counts.left_alone) == (3, 2)
