"""The claim: which feeds are due, each given to one scheduler only."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from shared.messages import FetchFeed
from shared.postgres import Connection

log = logging.getLogger(__name__)

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


SOURCE_TYPES = frozenset({"feed"})
"""What the fetcher knows how to fetch."""


async def claim_due_feeds(connection: Connection, *, limit: int, claim_seconds: float) -> list[FetchFeed]:
    """Claim up to `limit` due feeds, in one short statement, and return their jobs.

    Any number of schedulers may do so at once: nobody waits for a lock, nobody gets a feed twice. A feed whose
    row makes no job is disabled with the reason, and keeps nobody else waiting.
    """
    cursor = await connection.execute(CLAIM, {"limit": limit, "claim_seconds": claim_seconds})
    queued_at = datetime.now(UTC)
    jobs = []
    for row in await cursor.fetchall():
        try:
            jobs.append(_make_job(row, queued_at))
        except ValueError as error:  # pydantic's ValidationError is one
            await disable_feed(connection, row["id"], f"configuration: {' '.join(str(error).split())}")
    return take_turns(jobs)


def take_turns(jobs: Sequence[FetchFeed]) -> list[FetchFeed]:
    """Return the jobs so that politeness groups take turns: no group stands in the queue as one block."""
    place: Counter[str] = Counter()
    ranked = []
    for job in jobs:
        ranked.append((place[job.group], job))
        place[job.group] += 1
    return [job for _, job in sorted(ranked, key=lambda item: item[0])]


def _make_job(row: Mapping[str, Any], queued_at: datetime) -> FetchFeed:
    if row["source_type"] not in SOURCE_TYPES:
        raise ValueError(f"unknown source type {row['source_type']!r}; known: {', '.join(sorted(SOURCE_TYPES))}")
    return FetchFeed(
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


async def disable_feed(connection: Connection, feed_id: int, reason: str) -> None:
    """Take a feed out of the running, for a person to look at; `reason` is cut to 500 characters."""
    log.error("feed disabled: %s", reason, extra={"feed_id": feed_id})
    await connection.execute(
        """
        UPDATE feeds SET enabled = false, disabled_reason = left(%s, 500), claim_id = NULL, claim_expires_at = NULL
        WHERE id = %s
        """,
        [reason, feed_id],
    )


async def release_claims(connection: Connection, claim_ids: Sequence[UUID]) -> None:
    """Give claims back whose jobs were not published; their feeds are due again at once."""
    await connection.execute(
        "UPDATE feeds SET claim_id = NULL, claim_expires_at = NULL WHERE claim_id = ANY(%s)", [list(claim_ids)]
    )
