"""Polls a feed now: lets it be due, or ends its wait for its retry by moving its job from the retry queue to its shard.

The job keeps its claim, so it stays the feed's only job: nothing is fetched or written twice.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from services.admin.actor import Actor
from services.admin.dead_letters.letters import holding, way_back
from services.admin.feeds.edits import make_due
from services.admin.feeds.listing import read_feed
from services.fetcher.retries import RetryRules
from shared.broker.port import Broker, Delivery
from shared.broker.topology import Topology
from shared.database.postgres import Connection, Database
from shared.errors import BrokerUnavailable, ConfigurationError, DecodeError, MessageTooLarge, Unavailable
from shared.wire.jobs import FetchFeed

MOST_JOBS = 20_000
"""The most jobs of the retry queue that are searched. The broker delivers all of them, which counts as a delivery of
each. After twenty RabbitMQ 4 moves a job to its shard before its time; nothing is lost."""

PATIENCE_SECONDS = 60.0


class Polling(StrEnum):
    """What becomes of a feed that somebody wants to be polled now."""

    DUE = "due"
    IN_FLIGHT = "in_flight"
    RETRIED = "retried"
    """Its job was waiting for its retry, and is at its shard now."""
    THROTTLED = "throttled"
    """Its host asked to be left alone."""
    UNREACHABLE = "unreachable"
    """Its host could not be connected to, and fetchers leave it alone."""
    WAITING = "waiting"
    """Its job is neither in the retry queue nor known to be issued: a fetcher has it, or it is lost."""


@dataclass(frozen=True)
class Servers:
    """What `fetch_now` works with."""

    database: Database
    broker: Broker
    topology: Topology
    retrying: asyncio.Lock
    """One search of the retry queue hides its jobs from another one."""
    rules: RetryRules
    connect_failure_seconds: float


async def fetch_now(servers: Servers, actor: Actor, id_: int) -> dict[str, Any]:
    """Poll a feed ahead of its time or of its retry; return its state, with `polling`, and `until` when it waits.

    Raises:
        NotFound: there is no such feed.
        Conflict: it is disabled.
        Unavailable: it waits for its retry, and the broker is away.
    """
    async with servers.database.transaction() as connection:
        await make_due(connection, actor, id_)
        feed = await read_feed(connection, servers.rules, id_)
        unreachable = await _unreachable_until(connection, id_, servers.connect_failure_seconds)
    if feed["throttled_until"]:
        return feed | {"polling": Polling.THROTTLED, "until": feed["throttled_until"]}
    if not feed["retry_at"]:
        polling = Polling.IN_FLIGHT if feed["in_flight"] else Polling.DUE
        return feed | {"polling": polling, "until": feed["claim_expires_at"] if feed["in_flight"] else None}
    if unreachable:
        return feed | {"polling": Polling.UNREACHABLE, "until": unreachable}
    try:
        async with asyncio.timeout(PATIENCE_SECONDS), servers.retrying:
            if await _retry_now(servers, id_):
                return feed | {"polling": Polling.RETRIED, "until": None}
    except TimeoutError:
        raise Unavailable(f"feed {id_} is due; others search the retry queue for its job: try again") from None
    except (BrokerUnavailable, ConfigurationError) as error:
        at = f"{feed['retry_at'].astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
        retry = f"retry {feed['retry']} of {feed['retries']} at {at}" if feed["retry"] else f"deferred until {at}"
        raise Unavailable(f"feed {id_} waits, {retry}, and that can't be changed without RabbitMQ: {error}") from error
    return feed | {"polling": Polling.WAITING, "until": feed["claim_expires_at"]}


async def _retry_now(servers: Servers, id_: int) -> bool:
    """Publish a feed's job from the retry queue to its shard; False if it is not among the first in that queue.

    The feed is marked as issued before the job is published, because the result may come at once.
    """
    stage = servers.topology.fetcher

    def is_the_feeds(delivery: Delivery) -> bool:
        return delivery.headers.get("feed_id") == id_

    async with holding(servers.broker, servers.topology, stage.retry, MOST_JOBS, is_the_feeds) as (session, jobs):
        for job in jobs:
            if is_the_feeds(job.delivery) and await _mark_issued(servers.database, id_, _claim_of(job.delivery)):
                await session.publish(way_back(job, stage))
                await session.ack(job.delivery)
                return True
    return False


def _claim_of(delivery: Delivery) -> UUID | None:
    try:
        return FetchFeed.decode(delivery.body, delivery.content_encoding).claim_id
    except (DecodeError, MessageTooLarge):
        return None


async def _mark_issued(database: Database, id_: int, claim_id: UUID | None) -> bool:
    """Return whether this claim is the feed's present one; a job of an earlier claim is left where it is."""
    async with database.transaction() as connection:
        cursor = await connection.execute(
            "UPDATE feeds SET issued_at = now() WHERE id = %s AND claim_id = %s AND issued_at IS NULL RETURNING id",
            [id_, claim_id],
        )
        return await cursor.fetchone() is not None


async def _unreachable_until(connection: Connection, id_: int, connect_failure_seconds: float) -> datetime | None:
    """Return until when, at least, fetchers avoid the feed's host after a failed connection; None if they don't."""
    cursor = await connection.execute(
        """
        SELECT until FROM (
            SELECT started_at + make_interval(secs => %s) AS until, error_class
            FROM feed_fetch_log WHERE feed_id = %s AND outcome <> 'skipped' ORDER BY started_at DESC, id DESC LIMIT 1
        ) AS last WHERE error_class = 'connect' AND until > now()
        """,
        [connect_failure_seconds, id_],
    )
    row = await cursor.fetchone()
    return row["until"] if row else None
