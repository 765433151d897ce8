"""Deletes old rows, of the ledger those that no feed lists any more, and sums up freshness by the hour.

One writer at a time deletes, in small transactions. They wait for no lock: the next round deletes rows that are held
now. A feed that is removed deletes its own rows of the log.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial

from prometheus_client import Counter

from services.writer.consumer_counts import CHUNK as MOST_CALLS
from services.writer.consumer_counts import add_up_calls, prune_minutes
from services.writer.fires.tasks import end_overdue
from services.writer.freshness.rows import prune_freshness, sum_hour
from shared.database.postgres import Connection, Database

PRUNED = Counter("feedmill_rows_pruned_total", "Rows that retention deleted, by table.", ["table"])

LOCK = 0x_FEED_0003
"""Advisory lock: one writer prunes at a time."""

ROUND_SECONDS = 300.0
"""Between two rounds of a writer."""

CHUNK = 2_000
"""Rows that one statement looks at: locks are short, and other work comes in between."""

SLICES = 4_096
"""The ledger is walked by the first three digits of its keys, each slice once in `LAP_SECONDS`."""

LAP_SECONDS = 7 * 86_400.0

FEEDS_A_STEP = 500

STILL_LISTED = "4 days"
"""A feed that was read within this time after an article's `last_seen_at` may still list it. Only full readings renew
`last_seen_at`, if it is a day old (ledger.LAST_SEEN_EVERY). A full reading is asked for once a day, and a job of before
may be retried for half a day."""


@dataclass(frozen=True)
class Retention:
    """For how many days rows are kept, and the most attempts that are kept of one feed."""

    ledger_days: float = 90.0
    log_days: float = 30.0
    log_per_feed: int = 500
    fire_days: float = 1.0
    duplicate_days: float = 7.0


class Pruning:
    """Deletes old rows. Args: the database, the retention, a clock in seconds since 1970."""

    def __init__(self, database: Database, retention: Retention, now: Callable[[], float] = time.time) -> None:
        self._database = database
        self._retention = retention
        self._now = now
        self._slice = _slice_at(now())
        self._feed = 0
        self._deletions: Mapping[str, Callable[[Connection], Awaitable[int]]] = {
            "fire_tasks": self._prune_fires,
            "article_sketches": self._prune_sketches,
            "feed_freshness": partial(prune_freshness, table="feed_freshness", limit=CHUNK),
            "host_freshness": partial(prune_freshness, table="host_freshness", limit=CHUNK),
            "consumer_minutes": prune_minutes,
            "feed_fetch_log": self._prune_old_log,
        }

    async def round(self, stop: asyncio.Event) -> None:
        """Sum up consumers' calls and freshness; delete what is old, and of the ledger only in the slices that are due.

        Ends if another writer prunes.
        """
        # First, for all that follows may take long or fail. What consumers do meanwhile is left to the next round.
        while not stop.is_set() and (await self._step("consumer_calls", add_up_calls) or 0) >= MOST_CALLS:
            pass
        while not stop.is_set() and await self._locked(sum_hour):
            pass
        for table, delete in self._deletions.items():
            while not stop.is_set() and await self._step(table, delete):
                pass
        while not stop.is_set() and await self._step("feed_fetch_log", self._prune_long_logs) is not None:
            if self._feed == 0:
                break
        until = _slice_at(self._now())
        while self._slice != until and not stop.is_set():
            if await self._step("feed_items", self._prune_slice) is None:
                return
            self._slice = (self._slice + 1) % SLICES

    async def _step(self, table: str, delete: Callable[[Connection], Awaitable[int]]) -> int | None:
        """Delete some rows in a transaction of its own; return how many, None if another writer prunes."""
        deleted = await self._locked(delete)
        PRUNED.labels(table).inc(deleted or 0)
        return deleted

    async def _locked(self, do: Callable[[Connection], Awaitable[int]]) -> int | None:
        """Return what `do` returns in a transaction of its own, None if another writer prunes."""
        async with self._database.transaction() as connection:
            cursor = await connection.execute("SELECT pg_try_advisory_xact_lock(%s) AS ours", [LOCK])
            row = await cursor.fetchone()
            if not (row and row["ours"]):
                return None
            return await do(connection)

    async def _prune_old_log(self, connection: Connection) -> int:
        return await prune_log_by_age(connection, self._retention.log_days)

    async def _prune_long_logs(self, connection: Connection) -> int:
        self._feed, deleted = await prune_log_by_count(connection, self._feed, self._retention.log_per_feed)
        return deleted

    async def _prune_fires(self, connection: Connection) -> int:
        await end_overdue(connection)
        return await prune_fires(connection, self._retention.fire_days)

    async def _prune_sketches(self, connection: Connection) -> int:
        return await prune_sketches(connection, self._retention.duplicate_days)

    async def _prune_slice(self, connection: Connection) -> int:
        return await prune_ledger(connection, f"{self._slice:03x}", self._retention.ledger_days)


def _slice_at(now: float) -> int:
    return int(now % LAP_SECONDS / LAP_SECONDS * SLICES)


async def prune_log_by_age(connection: Connection, days: float) -> int:
    """Delete one chunk of the log's rows that are older than `days`; return how many."""
    cursor = await connection.execute(
        """
        DELETE FROM feed_fetch_log
        WHERE id IN (
            SELECT id FROM feed_fetch_log
            WHERE id IN (SELECT id FROM feed_fetch_log ORDER BY id LIMIT %s)
              AND started_at < now() - make_interval(secs => %s)
            FOR UPDATE SKIP LOCKED
        )
        """,
        [CHUNK, days * 86_400.0],
    )
    return cursor.rowcount


async def prune_fires(connection: Connection, days: float) -> int:
    """Delete one chunk of the fires that are older than `days` and have ended; return how many."""
    cursor = await connection.execute(
        """
        DELETE FROM fire_tasks
        WHERE id IN (
            SELECT id FROM fire_tasks
            WHERE queued_at < now() - make_interval(secs => %s) AND status <> 'running'
            ORDER BY queued_at, id LIMIT %s
            FOR UPDATE SKIP LOCKED
        )
        """,
        [days * 86_400.0, CHUNK],
    )
    return cursor.rowcount


async def prune_sketches(connection: Connection, days: float) -> int:
    """Delete one chunk of the sketches that are older than `days`; return how many."""
    cursor = await connection.execute(
        """
        DELETE FROM article_sketches
        WHERE md5 IN (
            SELECT md5 FROM article_sketches
            WHERE first_seen_at < now() - make_interval(secs => %s)
            ORDER BY first_seen_at LIMIT %s
            FOR UPDATE SKIP LOCKED
        )
        """,
        [days * 86_400.0, CHUNK],
    )
    return cursor.rowcount


async def prune_log_by_count(connection: Connection, after: int, most: int) -> tuple[int, int]:
    """Delete all but the newest `most` rows of the log, for the next feeds after the id `after`.

    Returns the last of these feeds (0 after the very last one), and how many rows were deleted.
    """
    cursor = await connection.execute(
        """
        WITH step AS (SELECT id FROM feeds WHERE id > %(after)s ORDER BY id LIMIT %(feeds)s),
        oldest_kept AS (
            SELECT step.id AS feed_id, kept.started_at
            FROM step CROSS JOIN LATERAL (
                SELECT started_at FROM feed_fetch_log
                WHERE feed_fetch_log.feed_id = step.id
                ORDER BY started_at DESC OFFSET %(most)s - 1 LIMIT 1
            ) AS kept
        ),
        deleted AS (
            DELETE FROM feed_fetch_log WHERE id IN (
                SELECT log.id FROM feed_fetch_log AS log JOIN oldest_kept USING (feed_id)
                WHERE log.started_at < oldest_kept.started_at
                FOR UPDATE OF log SKIP LOCKED
            )
            RETURNING 1
        )
        SELECT (SELECT max(id) FROM step) AS last, (SELECT count(*) FROM step) AS looked,
            (SELECT count(*) FROM deleted) AS deleted
        """,
        {"after": after, "feeds": FEEDS_A_STEP, "most": most},
    )
    row = await cursor.fetchone()
    assert row is not None
    return (row["last"] if row["looked"] == FEEDS_A_STEP else 0), row["deleted"]


async def prune_ledger(connection: Connection, first: str, days: float) -> int:
    """Forget articles whose md5 begins with `first` if no feed lists them any more and they are not pending.

    An article is no longer listed if it was not seen for `days`, *and* its feed was read since without it, or is gone.
    A feed that answers 304 for months still lists its articles: the next change would bring forgotten ones again.
    """
    cursor = await connection.execute(
        """
        DELETE FROM feed_items
        WHERE md5 IN (
            SELECT md5 FROM feed_items
            WHERE md5 >= %(first)s AND md5 < %(first)s || 'g'
              AND last_seen_at < now() - make_interval(secs => %(seconds)s)
              AND NOT EXISTS (
                  SELECT FROM feeds
                  WHERE feeds.id = feed_items.feed_id
                    AND (last_read_at IS NULL OR last_read_at < last_seen_at + %(listed)s::interval)
              )
              AND NOT EXISTS (SELECT FROM pending_articles WHERE pending_articles.md5 = feed_items.md5)
            ORDER BY md5
            FOR UPDATE SKIP LOCKED
        )
        """,
        {"first": first, "seconds": days * 86_400.0, "listed": STILL_LISTED},
    )
    return cursor.rowcount
