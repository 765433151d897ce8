"""What a fetcher makes of a feed's entries if its job knows some of them."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any
from uuid import UUID

from services.scheduler.store import claim_due_feeds
from shared.database.postgres import Database
from shared.wire.jobs import DIGEST_BYTES, FetchFeed
from shared.wire.results import Entry, FeedFetched
from tests.factories import NOW, make_result

CONTEXT = b"context."


def digest(entry: Entry) -> bytes:
    return blake2b(entry.model_dump_json().encode(), digest_size=DIGEST_BYTES).digest()


def read(
    feed_id: int, claim_id: UUID, entries: Sequence[Entry], known: bytes = b"", context: bytes = CONTEXT, **changes: Any
) -> FeedFetched:
    """Return the result of reading these entries, of which the job knew some."""
    digests = [digest(entry) for entry in entries]
    job = {known[at : at + DIGEST_BYTES] for at in range(DIGEST_BYTES, len(known), DIGEST_BYTES)}
    if known[:DIGEST_BYTES] != context:
        job = set()
    sent = [place for place, it in enumerate(digests) if it not in job]
    return make_result(
        **{
            "feed_id": feed_id,
            "claim_id": claim_id,
            "entries": [entries[place] for place in sent],
            "known": b"".join(it for it in digests if it in job),
            "digests": context + b"".join(digests[place] for place in sent),
            "started_at": NOW,
            **changes,
        }
    )


async def claim_job(database: Database, feed_id: int) -> FetchFeed:
    """Let the feed be due, less than a day after its last full reading, and claim it."""
    async with database.transaction() as connection:
        await connection.execute("UPDATE feed_listings SET full_at = now() WHERE full_at IS NOT NULL")
        await connection.execute(
            "UPDATE feeds SET next_fetch_at = now() - interval '1 hour', claim_id = NULL, claim_expires_at = NULL,"
            " issued_at = NULL WHERE id = %s",
            [feed_id],
        )
        (job,) = (await claim_due_feeds(connection, limit=10, claim_seconds=600.0)).jobs
    assert job.feed_id == feed_id
    return job


async def poll(database: Database, feed_id: int, entries: Sequence[Entry], **changes: Any) -> FeedFetched:
    """Return the result of the feed's next job."""
    job = await claim_job(database, feed_id)
    return read(feed_id, job.claim_id, entries, job.known, **changes)
