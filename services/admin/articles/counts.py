"""Counts pending and dead articles."""

from __future__ import annotations

from typing import Any

from shared.database.postgres import Connection

# Only what was claimed before is read from the table; the others, usually nearly all, are counted in their index.
_COUNTS = """
SELECT fresh + back AS pending, fresh + back - claimed - waiting_for_retry AS claimable, claimed, waiting_for_retry,
    lease_expired, (SELECT count(*) FROM dead_articles) AS dead,
    extract(epoch FROM now() - least(
        oldest_back, (SELECT created_at FROM pending_articles WHERE claimed_until IS NULL ORDER BY created_at LIMIT 1)
    ))::float8 AS oldest_seconds
FROM (SELECT count(*) AS fresh FROM pending_articles WHERE claimed_until IS NULL) AS never_claimed, (
    SELECT count(*) AS back,
        count(*) FILTER (WHERE claimed_until > now() AND lease_id IS NOT NULL) AS claimed,
        count(*) FILTER (WHERE claimed_until > now() AND lease_id IS NULL) AS waiting_for_retry,
        count(*) FILTER (WHERE claimed_until <= now() AND lease_id IS NOT NULL) AS lease_expired,
        min(created_at) AS oldest_back
    FROM pending_articles WHERE claimed_until IS NOT NULL
) AS once_claimed
"""


async def count_articles(connection: Connection) -> dict[str, Any]:
    """Return how many articles there are, by what they wait for, and the age of the oldest in seconds."""
    row = await (await connection.execute(_COUNTS)).fetchone()
    assert row is not None
    return row
