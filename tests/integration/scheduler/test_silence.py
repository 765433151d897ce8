"""The alarm, and what `feedmill status` counts, against real tables."""

from __future__ import annotations

import math
import re
from typing import Any

import psycopg
import pytest
from prometheus_client import REGISTRY

from services.admin.health.status import busiest_groups, count_all
from services.admin.registry import NewFeed, add_feed, connect
from services.scheduler.silence import LOOK, SilenceWatch, look
from services.scheduler.store import claim_due_feeds
from shared.background import PeriodicTask
from shared.database.postgres import Database


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
        seen = await look(connection)
    return seen.due, round(seen.longest_due / 60), round(seen.silence / 60)


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
    async with database.transaction() as counting:
        assert (await count_all(counting)).seconds_since_success == pytest.approx(3000, abs=30)


TROUBLES = {
    "in back-off after a failure": "failures = 1, last_outcome = 'hard_error', "
    "next_fetch_at = now() + interval '8 hours'",
    "waiting for their retry": "claim_id = gen_random_uuid(), claim_expires_at = now() + interval '2 hours', "
    "last_outcome = 'soft_error', next_fetch_at = now() - interval '3 hours'",
    "asked to wait": "last_outcome = 'throttled', next_fetch_at = now() + interval '5 hours'",
}


def add_feeds(database_url: str, number: int, more: str = "") -> None:
    """Add feeds that all is well with: not due for a day."""
    change(
        database_url,
        """
        INSERT INTO feeds (url, politeness_group, next_fetch_at, created_at, last_success_at)
        SELECT 'http://h' || n || '.example/', 'h' || n, now() + interval '1 day', now() - interval '90 days',
            now() - interval '4 hours'
        FROM generate_series(1, %s) AS n
        """,
        number,
    )
    if more:
        change(database_url, f"UPDATE feeds SET {more}")


def log_of_each(database_url: str, *minutes_ago: int, ok: bool = False) -> None:
    """Log attempts at every feed."""
    change(
        database_url,
        """
        INSERT INTO feed_fetch_log (result_id, feed_id, queued_at, started_at, elapsed_seconds, ok, outcome, final,
            attempt, items_seen, items_new, wire_bytes, decoded_bytes)
        SELECT gen_random_uuid(), id, now(), now() - make_interval(mins => minutes), 1, %s, '', true, 0, 0, 0, 0, 0
        FROM feeds, unnest(%s::int[]) AS minutes
        """,
        ok,
        list(minutes_ago),
    )


@pytest.mark.parametrize("trouble", TROUBLES.values(), ids=TROUBLES)
async def test_silence_is_heard_though_nobody_is_due(database: Database, database_url: str, trouble: str) -> None:
    add_feeds(database_url, 5, f"{trouble}, last_attempt_at = now() - interval '2 min'")
    log_of_each(database_url, 240, ok=True)
    log_of_each(database_url, 50, 35, 2)
    assert await found(database) == (0, 0, 50)  # the first that failed since the last success
    log_of_each(database_url, 1, ok=True)
    assert await found(database) == (0, 0, 1)


async def test_failing_quickly_does_not_keep_the_silence_young(database: Database, database_url: str) -> None:
    add_feeds(database_url, 120, "failures = 7, last_attempt_at = now() - interval '1 s', next_fetch_at = now()")
    log_of_each(database_url, *range(1, 45))
    assert await found(database) == (120, 0, 44)
    log_attempt(database_url, ok=True, minutes_ago=31)
    assert await found(database) == (120, 0, 31)  # they were failing before that one success, and still are


async def test_a_job_that_is_dropped_or_put_off_counts_as_wanted(database: Database, database_url: str) -> None:
    add_feeds(database_url, 3, "claim_expires_at = now() + interval '9 min'")
    log_of_each(database_url, 240, ok=True)
    log_of_each(database_url, 40, 20, 10)
    assert await found(database) == (0, 0, 40)


async def test_a_pause_between_healthy_polls_is_no_silence(database: Database, database_url: str) -> None:
    add_feeds(database_url, 5)
    log_of_each(database_url, 300, 299, ok=False)
    log_of_each(database_url, 240, ok=True)
    assert await found(database) == (0, 0, 0)
    # One feed that is broken for weeks tells nothing of those that are not due.
    change(
        database_url,
        "UPDATE feeds SET failures = 20, last_success_at = now() - interval '9 days', "
        "last_attempt_at = now() - interval '3 hours', last_outcome = 'hard_error' "
        "WHERE id = (SELECT min(id) FROM feeds)",
    )
    log_attempt(database_url, ok=False, minutes_ago=180)
    assert await found(database) == (0, 0, 0)


async def test_the_first_feed_counts_from_when_it_is_due_and_disabled_ones_never(
    database: Database, database_url: str
) -> None:
    with connect(database_url) as connection:
        add_feed(connection, NewFeed("http://h.example/feed"))
    change(database_url, "UPDATE feeds SET next_fetch_at = now() - interval '3 min'")
    assert await found(database) == (1, 3, 3)
    log_attempt(database_url, ok=False, minutes_ago=2)
    change(
        database_url,
        "UPDATE feeds SET failures = 1, last_attempt_at = now() - interval '2 min', "
        "next_fetch_at = now() + interval '1 hour'",
    )
    assert await found(database) == (0, 0, 2)
    change(database_url, "UPDATE feeds SET enabled = false, issued_at = now() - interval '1 hour'")
    assert await found(database) == (0, 0, 0)


async def test_whoever_cannot_look_hears_silence(database: Database, database_url: str) -> None:
    now = [1000.0]
    watch = SilenceWatch(database, seconds=1800, clock=lambda: now[0])
    await watch.look()
    change(database_url, "ALTER TABLE feed_fetch_log RENAME TO hidden")
    try:
        rounds = PeriodicTask("silence", watch.look, seconds=30, clock=lambda: now[0])
        await rounds.run_once()
        assert math.isnan(REGISTRY.get_sample_value("feedmill_feeds_due") or 0)
        now[0] += 1801.0
        assert "nobody could look" in (watch.check() or "")
        assert REGISTRY.get_sample_value("feedmill_silence_seconds") == 1801
        assert "feed_fetch_log" in (rounds.check() or "")
    finally:
        change(database_url, "ALTER TABLE hidden RENAME TO feed_fetch_log")
    await rounds.run_once()
    assert (watch.check(), rounds.check()) == (None, None)
    assert REGISTRY.get_sample_value("feedmill_background_failing_seconds", {"task": "silence"}) == 0


async def test_the_look_goes_by_indexes(database: Database) -> None:
    async with database.transaction() as connection:
        await connection.execute("SET LOCAL enable_seqscan = off")
        cursor = await connection.execute(b"EXPLAIN " + LOOK)
        plan = "\n".join(row["QUERY PLAN"] for row in await cursor.fetchall())
    assert "Seq Scan" not in plan
    assert {"feeds_in_trouble", "feed_fetch_log_failed", "feed_fetch_log_ok"} <= set(re.findall(r"using (\w+)", plan))


async def test_jobs_that_nobody_fetches_are_issued_anew_and_the_silence_goes_on(
    database: Database, database_url: str
) -> None:
    now = [0.0]
    watch = SilenceWatch(database, seconds=1800, clock=lambda: now[0])
    add_feeds(
        database_url, 3, "issued_at = now(), claim_id = gen_random_uuid(), next_fetch_at = now() - interval '1 s'"
    )
    for _ in range(130):
        now[0] += 30.0
        if now[0] % 3600 == 0:
            change(database_url, "UPDATE feeds SET issued_at = now()")
        else:
            change(database_url, "UPDATE feeds SET issued_at = issued_at - interval '30 s'")
        await watch.look()
    assert watch.silence_seconds() == pytest.approx(3900, abs=60)


async def test_feeds_that_were_due_in_a_pause_count_from_when_work_begins_again(
    database: Database, database_url: str
) -> None:
    add_feeds(database_url, 4, "next_fetch_at = now() - interval '8 hours'")
    log_of_each(database_url, 540, ok=True)
    assert await found(database) == (4, 480, 480)  # nobody works
    change(
        database_url,
        "UPDATE feeds SET issued_at = now() - interval '2 min', claim_id = gen_random_uuid(),"
        " claim_expires_at = now() + interval '1 hour' WHERE id = (SELECT min(id) FROM feeds)",
    )
    assert await found(database) == (3, 480, 2)


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
    async with database.transaction() as counting:
        counts = await count_all(counting)
        assert await busiest_groups(counting) == {"h0.example": 1}
    assert (counts.feeds, counts.disabled, counts.due, counts.overdue) == (7, 1, 2, 1)
    assert (counts.queued, counts.retrying) == (1, 1)
    assert counts.left_alone == 0
    assert counts.longest_due_seconds == pytest.approx(120, abs=30)
    assert counts.next_due_seconds == pytest.approx(120, abs=30)
    assert counts.seconds_since_success is None
    change(database_url, "INSERT INTO throttled_groups SELECT 'h1.example', now() + interval '1 hour'")
    change(database_url, "UPDATE feeds SET next_fetch_at = now() - interval '2 min' WHERE id %% 7 IN (4, 5)")
    async with database.transaction() as counting:
        counts = await count_all(counting)
    assert (counts.overdue, counts.left_alone) == (3, 2)
