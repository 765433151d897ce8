"""What becomes of the tasks of fetches by hand when their results are written, or only tried."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg

from services.writer.fires.tasks import MOST_ENTRIES
from services.writer.fires.trials import TryArticles
from services.writer.handler import ARTICLES, WriteArticles
from services.writer.pruning import prune_fires
from services.writer.schedule.feed_state import Rules
from services.writer.store import Policy
from shared.database.postgres import Database
from shared.wire.outcomes import Outcome
from tests.factories import NOW, make_entry, make_result
from tests.integration.writer.writing import claim, rows


def writing(database: Database) -> WriteArticles:
    return WriteArticles(database, Rules(), Policy(), frozenset(), now=lambda: NOW)


async def task(database: Database, feed_id: int, id_: UUID | None = None, *, dry_run: bool = False) -> UUID:
    id_ = id_ or uuid4()
    async with database.transaction() as connection:
        await connection.execute(
            "INSERT INTO fire_tasks (id, feed_id, dry_run, requested_by, queued_at, deadline_at)"
            " VALUES (%s, %s, %s, 'me', now(), now() + interval '5 minutes')",
            [id_, feed_id, dry_run],
        )
    return id_


async def the_task(database: Database) -> dict[str, Any]:
    (row,) = await rows(database, "SELECT * FROM fire_tasks")
    return row


def dump(database_url: str) -> dict[str, list[str]]:
    """Return every row of every table but `fire_tasks`, as text."""
    with psycopg.connect(database_url) as connection:
        tables = [
            name
            for (name,) in connection.execute(
                "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'fire_tasks'"
            )
        ]
        return {
            name: [row for (row,) in connection.execute(f"SELECT t::text FROM {name} AS t ORDER BY 1".encode())]
            for name in tables
        }


async def test_the_result_of_a_fire_ends_its_task(database: Database, feed_id: int) -> None:
    handler = writing(database)
    await handler([make_result(feed_id=feed_id, entries=(make_entry(1), make_entry(2)))])
    claim_id = await task(database, feed_id, await claim(database, feed_id))
    fired = {"feed_id": feed_id, "claim_id": claim_id, "reason": "manual"}
    changed = make_entry(2, body="Another text.")
    await handler([make_result(**fired, entries=(make_entry(1), changed, make_entry(3), make_entry(3)))])
    row = await the_task(database)
    assert (row["status"], row["outcome"], row["error"]) == ("done", "fetched", None)
    assert (row["fetched"], row["new"], row["changed"], row["known"]) == (4, 1, 1, 2)
    assert (row["started_at"], row["entries"]) == (NOW, None)


async def test_the_first_attempt_ends_the_task_and_says_when_it_is_retried(database: Database, feed_id: int) -> None:
    handler = writing(database)
    claim_id = await task(database, feed_id, await claim(database, feed_id))
    fired = {"feed_id": feed_id, "claim_id": claim_id, "reason": "manual"}
    failed = {"outcome": Outcome.SOFT_ERROR, "error": "http 503", "status": 503}
    await handler([make_result(**fired, **failed, final=False, claim_until=NOW + timedelta(hours=2))])
    row = await the_task(database)
    assert (row["status"], row["error"]) == ("error", "soft_error: http 503; it is retried at 2026-11-21 13:00:00 UTC")
    await handler([make_result(**fired, attempt=1, entries=(make_entry(),))])
    assert await the_task(database) == row


async def test_a_late_result_corrects_a_task_that_ended_by_its_deadline(database: Database, feed_id: int) -> None:
    claim_id = await task(database, feed_id)
    async with database.transaction() as connection:
        await connection.execute("UPDATE fire_tasks SET status = 'error', error = 'no result'")
    await writing(database)([make_result(feed_id=feed_id, claim_id=claim_id, reason="manual", entries=(make_entry(),))])
    row = await the_task(database)
    assert (row["status"], row["error"], row["new"]) == ("done", None, 1)


async def test_a_due_job_of_the_same_claim_leaves_tasks_alone(database: Database, feed_id: int) -> None:
    claim_id = await task(database, feed_id)
    await writing(database)([make_result(feed_id=feed_id, claim_id=claim_id)])
    assert (await the_task(database))["status"] == "running"


async def test_a_dry_run_shows_what_would_be_written_and_writes_nothing(
    database: Database, database_url: str, feed_id: int
) -> None:
    handler = writing(database)
    old = make_entry(3, url="http://www.other.example/3?utm_source=a")
    await handler([make_result(feed_id=feed_id, entries=(make_entry(1), make_entry(2), old))])
    async with database.transaction() as connection:
        await connection.execute("DELETE FROM pending_articles WHERE url = %s", ["http://news.example/1"])
    claim_id = await task(database, feed_id, dry_run=True)
    before, counted = dump(database_url), ARTICLES.labels("new")._value.get()
    same_elsewhere = make_entry(3, url="http://www.other.example/3")
    entries = (make_entry(1), make_entry(2, body="Another text."), make_entry(4), same_elsewhere)
    fired = {"feed_id": feed_id, "claim_id": claim_id, "reason": "manual"}
    again = {"status": 429, "not_before": NOW + timedelta(hours=1)}
    trial = make_result(**fired, entries=entries, etag='"new"', moved_to="http://news.example/moved", **again)
    assert await TryArticles(handler)([trial]) == ()
    assert dump(database_url) == before
    assert ARTICLES.labels("new")._value.get() == counted
    row = await the_task(database)
    assert (row["status"], row["fetched"], row["new"], row["changed"], row["known"]) == ("done", 4, 2, 1, 1)
    assert [entry["state"] for entry in row["entries"]] == ["known", "changed", "new", "new"]
    assert [entry["duplicate_of"] for entry in row["entries"]] == [None, None, None, old.md5]
    assert row["entries"][2] == {
        "md5": make_entry(4).md5,
        "url": "http://news.example/4",
        "title": "Article 4",
        "published_at": "2026-11-21T11:56:00Z",
        "content_quality": "full",
        "flags": [],
        "state": "new",
        "detected_language": None,
        "topic": None,
        "duplicate_of": None,
        "duplicate_kind": None,
        "duplicate_score": None,
    }
    # The very same result, written for real, does that.
    await handler([trial])
    assert dump(database_url) != before
    assert ARTICLES.labels("new")._value.get() == counted + 2


async def test_a_dry_run_that_failed_says_why(database: Database, feed_id: int) -> None:
    claim_id = await task(database, feed_id, dry_run=True)
    failed = make_result(
        feed_id=feed_id, claim_id=claim_id, reason="manual", outcome=Outcome.HARD_ERROR, error="http 404"
    )
    await TryArticles(writing(database))([failed])
    row = await the_task(database)
    assert (row["status"], row["error"], row["fetched"]) == ("error", "hard_error: http 404", 0)


async def test_a_dry_run_that_the_writer_can_not_write_says_so(database: Database, feed_id: int) -> None:
    claim_id = await task(database, feed_id, dry_run=True)
    async with database.transaction() as connection:
        await connection.execute("ALTER TABLE feed_items RENAME TO elsewhere")
    await TryArticles(writing(database))([make_result(feed_id=feed_id, claim_id=claim_id, entries=(make_entry(),))])
    row = await the_task(database)
    assert row["status"] == "error"
    assert "UndefinedTable" in row["error"]


async def test_of_a_large_dry_run_the_first_entries_are_kept(database: Database, feed_id: int) -> None:
    claim_id = await task(database, feed_id, dry_run=True)
    many = tuple(make_entry(n, title=f"{n} " + "é" * 5000) for n in range(MOST_ENTRIES + 10))
    await TryArticles(writing(database))([make_result(feed_id=feed_id, claim_id=claim_id, entries=many)])
    row = await the_task(database)
    assert (row["fetched"], row["new"]) == (len(many), len(many))
    assert 100 < len(row["entries"]) <= MOST_ENTRIES
    assert len(json.dumps(row["entries"], ensure_ascii=False).encode()) < 600_000


async def test_a_dry_run_of_a_feed_that_was_removed_is_dropped(database: Database, feed_id: int) -> None:
    claim_id = await task(database, feed_id, dry_run=True)
    async with database.transaction() as connection:
        await connection.execute("DELETE FROM feeds")
    await TryArticles(writing(database))([make_result(feed_id=feed_id, claim_id=claim_id, entries=(make_entry(),))])
    assert await rows(database, "SELECT * FROM fire_tasks") == []


async def test_old_tasks_are_deleted_once_they_have_ended(database: Database, feed_id: int) -> None:
    for _ in range(3):
        await task(database, feed_id, dry_run=True)
    async with database.transaction() as connection:
        await connection.execute("UPDATE fire_tasks SET queued_at = now() - interval '25 hours'")
        await connection.execute(
            "UPDATE fire_tasks SET status = 'done' WHERE id = (SELECT min(id::text)::uuid FROM fire_tasks)"
        )
        assert await prune_fires(connection, 1.0) == 1
        assert await prune_fires(connection, 1.0) == 0
