"""Gathers what a feed's next poll depends on: its host, its shard, the feeds that are due before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from services.admin.health.alarms.measured import BrokerState
from services.admin.health.diagnosis import QueueLevel, Thresholds, in_all
from services.admin.health.hosts import read_host_of
from services.admin.health.looks import Look
from services.admin.health.queues import Levels
from services.admin.health.status import read_thresholds
from services.admin.polling.timing import Surroundings, Timing, explain_timing
from services.fetcher.settings import FetcherSettings
from services.writer.settings import WriterSettings
from shared.broker.shards import is_shard
from shared.broker.topology import Topology
from shared.database.postgres import Connection
from shared.errors import FeedmillError
from shared.observability.secrets import mask_credentials
from shared.settings import read_settings

MOST_COUNTED = 10_000
"""Feeds that are due before another one are counted up to here."""

# Served by the index feeds_due.
_DUE_BEFORE = """
SELECT now() AS now, (SELECT count(*) FROM (
    SELECT FROM feeds AS other
    WHERE other.enabled AND other.due_at <= now() AND other.priority >= feeds.priority
        AND (other.priority > feeds.priority OR (other.due_at, other.id) < (feeds.due_at, feeds.id))
    LIMIT %(most)s
) AS before) AS due_before
FROM feeds WHERE id = %(id)s AND enabled AND due_at <= now()
UNION ALL SELECT now(), 0
LIMIT 1
"""


@dataclass(frozen=True)
class Pipeline:
    """The queues and settings that all feeds share."""

    topology: Topology
    levels: Levels
    broker_trouble: str | None
    """Why there are no levels."""
    limits: Thresholds
    fetcher: FetcherSettings
    writer: WriterSettings

    def shard_of(self, host: str) -> str:
        """Return the queue of a host's jobs."""
        return self.topology.fetcher.queue_of(host)

    def level_of(self, host: str) -> QueueLevel | None:
        """Return how full that queue is, and how many fetchers read it; None: it is not declared, or not known."""
        return self.levels.get(self.shard_of(host))


async def look_at_pipeline(topology: Topology, broker: Look[BrokerState], fetcher: FetcherSettings) -> Pipeline:
    """Return the queues and settings as this environment has them; the services should have the same."""
    found, trouble = await _look_at_levels(broker)
    return Pipeline(topology, found, trouble, read_thresholds(), fetcher, read_settings(WriterSettings))


async def _look_at_levels(broker: Look[BrokerState]) -> tuple[Levels, str | None]:
    try:
        return (await broker.get()).levels, None
    except FeedmillError as error:
        return {}, mask_credentials(str(error))


async def read_timing(connection: Connection, feed: Mapping[str, Any], pipeline: Pipeline) -> Timing:
    """Return when a feed, as `listing.read_feed` returns it, is polled next, and why then."""
    host = await read_host_of(connection, feed["id"], connect_failure_seconds=pipeline.fetcher.connect_failure_seconds)
    cursor = await connection.execute(_DUE_BEFORE.encode(), {"id": feed["id"], "most": MOST_COUNTED})
    row = await cursor.fetchone()
    assert row is not None
    shards = in_all(level for name, level in pipeline.levels.items() if is_shard(name))
    around = Surroundings(
        shard=pipeline.shard_of(host["host"]),
        level=pipeline.level_of(host["host"]),
        jobs_waiting=shards.ready if shards else 0,
        fetcher_high_water=pipeline.limits.fetcher_high_water,
        group_jobs=pipeline.limits.group_jobs,
        host_jobs=host["in_flight"],
        down_until=host["down_until"],
        due_before=row["due_before"],
        shortest_seconds=pipeline.writer.min_poll_seconds,
        longest_seconds=pipeline.writer.max_poll_seconds,
        broker_trouble=pipeline.broker_trouble,
    )
    return explain_timing(feed, around, row["now"])
