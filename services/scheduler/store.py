"""The claim: which feeds are due, each given to one scheduler only."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

from shared.messages import FetchFeed
from shared.postgres import Connection

CLAIM = """
WITH due AS (
    SELECT id FROM feeds
    WHERE enabled
      AND next_fetch_at <= now()
      AND (claim_expires_at IS NULL OR claim_expires_at <= now())
    ORDER BY priority DESC, next_fetch_at, id
    LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
)
UPDATE feeds
SET claim_id = gen_random_uuid(), claim_expires_at = now() + make_interval(secs => %(claim_seconds)s)
FROM due
WHERE feeds.id = due.id
RETURNING feeds.id, url, source_type, source_config, etag, last_modified, validators_url, body_hash, cursor_at,
    politeness_group, claim_id, claim_expires_at
"""


async def claim_due_feeds(connection: Connection, *, limit: int, claim_seconds: float) -> list[FetchFeed]:
    """Claim up to `limit` due feeds, in one short statement, and return their jobs.

    Any number of schedulers may do so at once: nobody waits for a lock, nobody gets a feed twice.
    """
    cursor = await connection.execute(CLAIM, {"limit": limit, "claim_seconds": claim_seconds})
    queued_at = datetime.now(UTC)
    return [
        FetchFeed(
            feed_id=row["id"],
            url=row["url"],
            source_type=row["source_type"],
            source_config=row["source_config"],
            etag=row["etag"],
            last_modified=row["last_modified"],
            validators_url=row["validators_url"],
            body_hash=row["body_hash"],
            since=row["cursor_at"],
            group=row["politeness_group"],
            claim_id=row["claim_id"],
            not_after=row["claim_expires_at"],
            queued_at=queued_at,
        )
        for row in await cursor.fetchall()
    ]


async def release_claims(connection: Connection, claim_ids: Sequence[UUID]) -> None:
    """Give claims back whose jobs were not published; their feeds are due again at once."""
    await connection.execute(
        "UPDATE feeds SET claim_id = NULL, claim_expires_at = NULL WHERE claim_id = ANY(%s)", [list(claim_ids)]
    )
