"""Ends a feed's wait for its retry: moves its job from the retry queue back to its shard.

The job keeps its claim, so it stays the feed's only job: nothing is fetched or written twice.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from services.admin.dead_letters import holding, way_back
from services.admin.registry import Connection
from shared.broker.port import Broker, Delivery
from shared.broker.topology import Topology
from shared.errors import DecodeError, MessageTooLarge
from shared.wire.jobs import FetchFeed

MOST_JOBS = 20_000
"""The most jobs of the retry queue that are searched. The broker delivers all of them, which counts as a delivery of
each. After twenty RabbitMQ 4 moves a job to its shard before its time; nothing is lost."""


async def retry_now(broker: Broker, topology: Topology, connection: Connection, id_: int) -> bool:
    """Publish a feed's job from the retry queue to its shard; False if it is not among the first in that queue.

    The feed is marked as issued before the job is published, because the result may come at once.

    Raises:
        BrokerUnavailable: the broker is away, or refuses us this queue.
    """
    stage = topology.fetcher

    def is_the_feeds(delivery: Delivery) -> bool:
        return delivery.headers.get("feed_id") == id_

    async with holding(broker, topology, stage.retry, MOST_JOBS, is_the_feeds) as (session, jobs):
        for job in jobs:
            if is_the_feeds(job.delivery) and _mark_issued(connection, id_, _claim_of(job.delivery)):
                await session.publish(way_back(job, stage))
                await session.ack(job.delivery)
                return True
    return False


def _claim_of(delivery: Delivery) -> UUID | None:
    try:
        return FetchFeed.decode(delivery.body, delivery.content_encoding).claim_id
    except (DecodeError, MessageTooLarge):
        return None


def _mark_issued(connection: Connection, id_: int, claim_id: UUID | None) -> bool:
    """Return whether this claim is the feed's present one; a job of an earlier claim is left where it is."""
    with connection.transaction():
        row = connection.execute(
            "UPDATE feeds SET issued_at = now() WHERE id = %s AND claim_id = %s AND issued_at IS NULL RETURNING id",
            [id_, claim_id],
        ).fetchone()
    return row is not None


def unreachable_until(connection: Connection, id_: int, connect_failure_seconds: float) -> datetime | None:
    """Return until when, at least, fetchers avoid the feed's host after a failed connection; None if they don't."""
    row: dict[str, Any] | None = connection.execute(
        """
        SELECT until FROM (
            SELECT started_at + make_interval(secs => %s) AS until, error_class
            FROM feed_fetch_log WHERE feed_id = %s AND outcome <> 'skipped' ORDER BY started_at DESC, id DESC LIMIT 1
        ) AS last WHERE error_class = 'connect' AND until > now()
        """,
        [connect_failure_seconds, id_],
    ).fetchone()
    return row["until"] if row else None
