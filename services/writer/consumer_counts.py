"""Adds up what consumers did, by the minute, and deletes old counts."""

from __future__ import annotations

from shared.database.postgres import Connection

CHUNK = 20_000
"""Calls that are added up by one statement."""

KEPT_DAYS = 7.0


async def add_up_calls(connection: Connection) -> int:
    """Move up to `CHUNK` rows of `consumer_calls` into `consumer_minutes`; return how many."""
    cursor = await connection.execute(
        """
        WITH calls AS (
            DELETE FROM consumer_calls
            WHERE ctid = ANY(ARRAY(SELECT ctid FROM consumer_calls LIMIT %s FOR UPDATE SKIP LOCKED))
            RETURNING at, consumer, kind, articles
        ), added AS (
            INSERT INTO consumer_minutes AS known (minute, consumer, kind, articles)
            SELECT date_trunc('minute', at, 'UTC') AS minute, consumer, kind, sum(articles) FROM calls GROUP BY 1, 2, 3
            ON CONFLICT (minute, consumer, kind) DO UPDATE SET articles = known.articles + excluded.articles
        )
        SELECT count(*) AS n FROM calls
        """,
        [CHUNK],
    )
    row = await cursor.fetchone()
    assert row is not None
    return int(row["n"])


async def prune_minutes(connection: Connection) -> int:
    """Delete the minutes that are older than `KEPT_DAYS`; return how many rows."""
    cursor = await connection.execute(
        "DELETE FROM consumer_minutes WHERE minute < now() - make_interval(secs => %s)", [KEPT_DAYS * 86_400.0]
    )
    return cursor.rowcount
