"""The claim: which feeds are due, each given to one scheduler only."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from shared.database.postgres import Connection
from shared.wire.jobs import FetchFeed
from shared.wire.outcomes import Outcome

log = logging.getLogger(__name__)

CLAIM = (Path(__file__).parent / "claim.sql").read_bytes()

CLAIM_LOCK = 0x_FEED_0002
"""Schedulers claim one after the other: side by side they would choose the same feeds, and get few of them."""

# A scheduler that stands still with the lock in its hands must not stop the others for long. JIT would compile for
# 0.7 s what runs for 0.02 s. Only the index serves the claim: after an import, before the table was analysed, the
# planner would sort all that is due, for each look.
PREPARE = b"""
SELECT set_config('jit', 'off', true), set_config('enable_seqscan', 'off', true),
    set_config('enable_bitmapscan', 'off', true), set_config('lock_timeout', '5s', true),
    set_config('idle_in_transaction_session_timeout', '10s', true), pg_advisory_xact_lock(%s)
"""

SPAN = 2
"""The claim looks at so many times the feeds that it is to give, ..."""

LEAST_SPAN = 1000
"""... and at no fewer than this: among a few feeds every group would look dominant."""

LOOKS = 32
"""So often it looks past dominant hosts for others. By then there are many groups to choose from."""

NO_LIMIT = 2**62

PROBE_EVERY = timedelta(days=1)
"""A feed is asked unconditionally at most so often, to see whether its server's 304 are true, ..."""

PROBE_SHARE = 0.01
"""... and in this part of its polls, unless it was found to lie: then every time that it may be."""

FULL_EVERY_SECONDS = 86_400.0
"""Each feed is read in full so often. The ledger then knows what it still lists (`feed_items.last_seen_at`, which is
written once a day), and a mistake about what need not be read lasts no longer."""

GOLDEN_RATIO = 0.618033988749895
"""Its multiples are spread evenly over the unit interval, and those of neighbours lie far apart."""


@dataclass(frozen=True)
class Claimed:
    """What a claim brought: jobs in the order in which they are to be published, and how many claims had expired."""

    jobs: list[FetchFeed]
    feeds: int
    """Feeds claimed; more than jobs if a feed's row made none."""
    expired: int
    """Of these, feeds whose earlier claim had run out: a job was lost, or took too long."""
    lateness: list[float]
    """For how long each feed had been due, in seconds."""


async def claim_due_feeds(
    connection: Connection,
    *,
    limit: int,
    claim_seconds: float,
    per_group: int | None = None,
    due_by: datetime | None = None,
    chance: Callable[[], float] = random.random,
) -> Claimed:
    """Claim up to `limit` due feeds in one short statement (claim.sql tells which) and return their jobs.

    Any number of schedulers may do so at once; nobody gets a feed twice, and each gets as many as there are. The
    caller commits before it publishes. A feed whose row makes no job is disabled with the reason, and keeps nobody
    else waiting.

    Args:
        connection: in a transaction of its own.
        limit: at least 1.
        claim_seconds: how long the claims live.
        per_group: jobs of one politeness group under way at most, those claimed before included.
        due_by: leave what has become due after this moment, by the database's clock.
        chance: gives numbers in [0, 1).
    """
    await connection.execute(PREPARE, [CLAIM_LOCK])
    cursor = await connection.execute(
        CLAIM,
        {
            "limit": limit,
            "span": max(SPAN * limit, LEAST_SPAN),
            "looks": LOOKS,
            "per_group": NO_LIMIT if per_group is None else per_group,
            "claim_seconds": claim_seconds,
            "due_by": due_by,
        },
        prepare=False,  # a plan for any limit would be one for a tenth of all feeds
    )
    rows = sorted(await cursor.fetchall(), key=lambda row: (-row["priority"], row["nth"], row["was_due_at"]))
    jobs = []
    for row in rows:
        try:
            jobs.append(make_job(row, chance))
        except ValueError as error:  # pydantic's ValidationError is one
            await disable_feed(connection, row["id"], f"configuration: {' '.join(str(error).split())}")
    lateness = [(row["issued_at"] - row["was_due_at"]).total_seconds() for row in rows]
    return Claimed(jobs, len(rows), sum(row["had_expired"] for row in rows), lateness)


def make_job(row: Mapping[str, Any], chance: Callable[[], float]) -> FetchFeed:
    """Return the job of a claimed feed's row, as claim.sql returns it. Raises ValueError if the row makes none."""
    probe = _is_time_to_probe(row, row["issued_at"], chance)
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
        known=b"" if probe or must_read_all(row["id"], row["full_at"], row["issued_at"]) else row["digests"],
        probe=probe,
        date_order=row["date_order"] or row["date_order_seen"],
        queued_at=row["issued_at"],  # all moments of a claim by one clock
    )


def _is_time_to_probe(row: Mapping[str, Any], now: datetime, chance: Callable[[], float]) -> bool:
    """Whether to leave out the validators this once: only a 304 can have been a lie."""
    if row["last_outcome"] != Outcome.NOT_MODIFIED:
        return False
    if row["probed_at"] is not None and now - row["probed_at"] < PROBE_EVERY:
        return False
    return row["lying_since"] is not None or chance() < PROBE_SHARE


def must_read_all(feed_id: int, full_at: datetime | None, now: datetime) -> bool:
    """Whether a feed, read in full at `full_at`, is to be so again: once a day, at a time that its id decides."""
    if full_at is None:
        return True
    start = feed_id * GOLDEN_RATIO % 1.0 * FULL_EVERY_SECONDS
    before, day = ((moment.timestamp() - start) // FULL_EVERY_SECONDS for moment in (full_at, now))
    return before != day


async def disable_feed(connection: Connection, feed_id: int, reason: str) -> None:
    """Disable a feed until a person has looked at it. `reason` is cut to 500 characters."""
    log.error("feed disabled: %s", reason, extra={"feed_id": feed_id})
    await connection.execute(
        """
        UPDATE feeds
        SET enabled = false, disabled_reason = left(%s, 500),
            claim_id = NULL, claim_expires_at = NULL, issued_at = NULL
        WHERE id = %s
        """,
        [reason, feed_id],
    )


async def release_claims(connection: Connection, jobs: Sequence[FetchFeed]) -> None:
    """Release the claims of jobs that were not published. Their feeds are due again at once.

    Locks rows in the order of ids, as writers do: some of the jobs may have been published, and have results already.
    """
    await connection.execute(
        """
        UPDATE feeds SET claim_id = NULL, claim_expires_at = NULL, issued_at = NULL
        FROM (SELECT id FROM feeds WHERE id = ANY(%(ids)s) ORDER BY id FOR NO KEY UPDATE) AS locked
        WHERE feeds.id = locked.id AND claim_id = ANY(%(claims)s)
        """,
        {"ids": [job.feed_id for job in jobs], "claims": [job.claim_id for job in jobs]},
    )
