"""What is deleted, and when: old rows of the fetch log, and ledger rows of articles that no feed lists any more.

A little at a time, by whichever writer comes first. It waits for no lock (what somebody holds, the next round deletes):
a feed that is removed takes its rows of the log along in an order of its own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from prometheus_client import Counter

from shared.database.postgres import Connection, Database

PRUNED = Counter("feedmill_rows_pruned_total", "Rows that retention deleted, by table.", ["table"])

LOCK = 0x_FEED_0003
"""One writer prunes at a time; the others have nothing to do."""

ROUND_SECONDS = 300.0
"""Between two rounds of a writer."""

CHUNK = 2_000
"""Rows that one statement looks at: locks are short, and other work comes in between."""

SLICES = 4_096
"""The ledger is walked by the first three digits of its keys, each slice once in `LAP_SECONDS`."""

LAP_SECONDS = 7 * 86_400.0

FEEDS_A_STEP = 500

STILL_LISTED = "2 days"
"""`last_seen_at` is up to a day behind (store.LAST_SEEN_EVERY): what was seen so shortly before a read was in it."""


Step = Callable[..., Awaitable[int]]
"""Deletes some rows on a connection, and returns how many."""


@dataclass(frozen=True)
class Retention:
    """For how long things are kept, in days; and attempts of one feed at most."""

    ledger_days: float = 90.0
    log_days: float = 30.0
    log_per_feed: int = 500


class Pruning:
    """Deletes what need not be kept. Args: the database, the rules, seconds since 1970."""

    def __init__(self, database: Database, retention: Retention, now: Callable[[], float] = time.time) -> None:
        self._database = database
        self._retention = retention
        self._now = now
        self._slice = _slice_at(now())
        self._feed = 0

    async def round(self, stop: asyncio.Event) -> None:
        """Delete what is old by now: of the log all, of the ledger the slices whose time has come."""
        await self._repeat(stop, "feed_fetch_log", prune_log_by_age, self._retention.log_days)
        await self._prune_long_logs(stop)
        until = _slice_at(self._now())
        while self._slice != until and not stop.is_set():
            first = f"{self._slice:03x}"
            if await self._once("feed_items", prune_ledger, first, self._retention.ledger_days) is None:
                return
            self._slice = (self._slice + 1) % SLICES

    async def _prune_long_logs(self, stop: asyncio.Event) -> None:
        """Go through the feeds step by step; one round is over when all were looked at."""
        while not stop.is_set():
            async with self._database.transaction() as connection:
                if not await _is_ours(connection):
                    return
                last, deleted = await prune_log_by_count(connection, self._feed, self._retention.log_per_feed)
            PRUNED.labels("feed_fetch_log").inc(deleted)
            self._feed = last
            if last == 0:
                return

    async def _repeat(self, stop: asyncio.Event, table: str, step: Step, *arguments: object) -> None:
        while not stop.is_set() and await self._once(table, step, *arguments):
            pass

    async def _once(self, table: str, step: Step, *arguments: object) -> int | None:
        """Run one statement in a transaction of its own; None if another writer is at it."""
        async with self._database.transaction() as connection:
            if not await _is_ours(connection):
                return None
            deleted = await step(connection, *arguments)
        PRUNED.labels(table).inc(deleted)
        return deleted


def _slice_at(now: float) -> int:
    return int(now % LAP_SECONDS / LAP_SECONDS * SLICES)


async def _is_ours(connection: Connection) -> bool:
    cursor = await connection.execute("SELECT pg_try_advisory_xact_lock(%s) AS ours", [LOCK])
    row = await cursor.fetchone()
    return bool(row and row["ours"])


async def prune_log_by_age(connection: Connection, days: float) -> int:
    """Delete the oldest rows of the log that are older than so many days, a chunk of them; return how many."""
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


async def prune_log_by_count(connection: Connection, after: int, most: int) -> tuple[int, int]:
    """Delete what the feeds after `after`, some of them, have beyond their newest `most` rows of the log.

    Returns the last feed that was looked at (0: it was the last one of all), and how many rows were deleted.
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
    """Forget articles whose md5 begins with `first`, that nobody lists any more, and that are not pending.

    Not listed means: not seen for so many days, *and* the feed was read since and did not have it (or is gone). A feed
    that answers 304 for months still lists what it had; forgetting that would import it anew with the next change.
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
