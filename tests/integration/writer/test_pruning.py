"""Retention deletes old rows, and above all no others."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from services.writer.pruning import LAP_SECONDS, LOCK, SLICES, Pruning, Retention, prune_ledger, prune_log_by_count
from services.writer.schedule.feed_state import Rules
from services.writer.store import write_batch
from shared.database.postgres import Database
from shared.wire.outcomes import Outcome
from shared.wire.results import Entry
from tests.factories import make_entry, make_result
from tests.integration.writer.writing import drain

NOW = datetime.now(UTC)
KEEP = Retention(ledger_days=90, log_days=30, log_per_feed=5)


async def read(database: Database, feed_id: int, *entries: Entry, days_ago: float) -> None:
    """Write a poll of so many days ago that read these entries; without any, the feed has not changed."""
    moment, claim_id = NOW - timedelta(days=days_ago), uuid4()
    outcome = Outcome.FETCHED if entries else Outcome.NOT_MODIFIED
    async with database.transaction() as connection:
        await connection.execute("UPDATE feeds SET claim_id = %s WHERE id = %s", [claim_id, feed_id])
        result = make_result(
            feed_id=feed_id, claim_id=claim_id, outcome=outcome, entries=entries, started_at=moment, queued_at=moment
        )
        await write_batch(connection, [result], now=moment, rules=Rules(), proxy_hosts=frozenset())


async def count(database: Database, table: str) -> int:
    async with database.transaction() as connection:
        cursor = await connection.execute(f"SELECT count(*) AS n FROM {table}".encode())
        row = await cursor.fetchone()
    assert row is not None
    return int(row["n"])


async def prune(database: Database, keep: Retention = KEEP) -> None:
    await Pruning(database, keep).round(asyncio.Event())
    for digit in "0123456789abcdef":
        async with database.transaction() as connection:
            await prune_ledger(connection, digit, keep.ledger_days)


async def test_an_article_that_its_feed_no_longer_lists_is_forgotten_after_a_while(
    database: Database, feed_id: int
) -> None:
    await read(database, feed_id, make_entry(1), make_entry(2), days_ago=120)
    await drain(database)
    await read(database, feed_id, make_entry(2), days_ago=100)
    await prune(database)
    assert await count(database, "feed_items") == 1
    await read(database, feed_id, make_entry(2), days_ago=0)
    assert await count(database, "pending_articles") == 0


async def test_a_feed_that_has_not_changed_still_lists_what_it_had(database: Database, feed_id: int) -> None:
    await read(database, feed_id, make_entry(1), days_ago=200)
    await drain(database)
    for days_ago in (150, 100, 50, 1):
        await read(database, feed_id, days_ago=days_ago)
    await prune(database)
    await read(database, feed_id, make_entry(1), make_entry(2), days_ago=0)
    assert await count(database, "pending_articles") == 1  # the second alone is new


async def test_an_article_that_readings_in_part_left_out_is_still_listed(database: Database, feed_id: int) -> None:
    keep = Retention(ledger_days=1)
    await read(database, feed_id, make_entry(1), make_entry(2), days_ago=8)
    await drain(database)
    for days_ago, left in ((4.5, 2), (3.5, 1)):  # of the second one alone; the first was seen 3.5 and 4.5 days before
        await read(database, feed_id, make_entry(2), days_ago=days_ago)
        await prune(database, keep)
        assert await count(database, "feed_items") == left


async def test_a_pending_article_is_never_forgotten(database: Database, feed_id: int) -> None:
    await read(database, feed_id, make_entry(1), days_ago=200)
    await read(database, feed_id, make_entry(2), days_ago=100)
    await prune(database)
    assert await count(database, "feed_items") == 2


async def test_articles_of_a_feed_that_was_removed_are_forgotten_by_age(database: Database, feed_id: int) -> None:
    await read(database, feed_id, make_entry(1), days_ago=100)
    await read(database, feed_id, make_entry(2), days_ago=80)
    async with database.transaction() as connection:
        await connection.execute("DELETE FROM feeds")
    await prune(database)
    assert await count(database, "feed_items") == 1


async def test_the_log_is_kept_for_so_long_and_for_so_many_attempts(database: Database, feed_id: int) -> None:
    for days_ago in (40, 31, 29, 20, 15, 10, 5, 3, 1):
        await read(database, feed_id, days_ago=days_ago)
    await prune(database, Retention(log_days=30, log_per_feed=100))
    assert await count(database, "feed_fetch_log") == 7
    await prune(database, Retention(log_days=30, log_per_feed=5))
    async with database.transaction() as connection:
        cursor = await connection.execute("SELECT min(started_at) AS oldest, count(*) AS n FROM feed_fetch_log")
        assert await cursor.fetchone() == {"oldest": NOW - timedelta(days=15), "n": 5}


async def test_feeds_are_gone_through_step_by_step(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.writer.pruning.FEEDS_A_STEP", 2)
    async with database.transaction() as connection:
        await connection.execute(
            "INSERT INTO feeds (url, politeness_group) SELECT 'http://h/' || n, 'h' FROM generate_series(1, 5) AS n"
        )
    seen = [0]
    while True:
        async with database.transaction() as connection:
            last, _ = await prune_log_by_count(connection, seen[-1], 5)
        seen.append(last)
        if last == 0:
            break
    assert seen == [0, 2, 4, 0]


async def test_one_writer_prunes_and_nobody_waits(database: Database, database_url: str, feed_id: int) -> None:
    await read(database, feed_id, days_ago=40)
    with psycopg.connect(database_url) as other:
        other.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
        async with asyncio.timeout(30):
            await prune(database)
        assert await count(database, "feed_fetch_log") == 1
    await prune(database)
    assert await count(database, "feed_fetch_log") == 0


async def test_every_slice_of_the_ledger_has_its_time(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    pruned: list[str] = []

    async def note(connection: object, first: str, days: float) -> int:
        pruned.append(first)
        return 0

    monkeypatch.setattr("services.writer.pruning.prune_ledger", note)
    seconds = [LAP_SECONDS * (4_094.5 / SLICES)]
    pruning = Pruning(database, KEEP, lambda: seconds[0])
    await pruning.round(asyncio.Event())
    assert pruned == []
    seconds[0] += LAP_SECONDS * 4 / SLICES
    await pruning.round(asyncio.Event())
    assert pruned == ["ffe", "fff", "000", "001"]


async def test_a_slice_of_the_ledger_is_found_by_its_key(database: Database, feed_id: int) -> None:
    await read(database, feed_id, *(make_entry(n) for n in range(50)), days_ago=200)
    async with database.transaction() as connection:
        await connection.execute("SET LOCAL enable_seqscan = off")
        cursor = await connection.execute("EXPLAIN SELECT md5 FROM feed_items WHERE md5 >= 'abc' AND md5 < 'abcg'")
        plan: list[Any] = await cursor.fetchall()
        assert "feed_items_pkey" in str(plan)
        assert await prune_ledger(connection, "000", 90) == 0
