"""How things stand: the queues, the feeds, the pending articles, and what keeps feeds from being fetched."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass
from typing import Any

from services.admin.diagnosis import LATE_SECONDS, FeedCounts, QueueLevel, Situation, Thresholds, explain
from services.admin.feeds import FAILING
from services.admin.registry import Connection, connect
from services.fetcher.settings import FetcherSettings
from services.scheduler.settings import SchedulerSettings
from shared.broker.port import Session
from shared.broker.rabbitmq import RabbitMQ
from shared.broker.shards import MOST_SHARDS, is_shard, shard_name
from shared.broker.topology import Topology
from shared.settings import BrokerSettings, read_settings


@dataclass(frozen=True)
class Status:
    """How things stand."""

    queues: dict[str, QueueLevel | None]
    """By name; None: the queue is not declared."""
    counts: FeedCounts
    busiest: dict[str, int]
    """The politeness groups with the most jobs under way."""
    reasons: list[str]
    """What keeps feeds from being fetched, each a sentence."""

    def as_json(self) -> dict[str, Any]:
        """Return it for machines: `queues` holds ready messages, `consumers` the number of readers."""
        return {
            "queues": {name: level.ready if level else None for name, level in self.queues.items()},
            "consumers": {name: level.consumers if level else 0 for name, level in self.queues.items()},
            "counts": asdict(self.counts),
            "busiest": self.busiest,
            "reasons": self.reasons,
        }


def look(amqp_url: str, database_url: str) -> Status:
    """Return how things stand.

    Raises:
        Unavailable: broker or database away.
        ConfigurationError: not migrated yet.
    """
    with connect(database_url) as connection:
        counts, busiest = count_all(connection), busiest_groups(connection)
    topology = read_settings(BrokerSettings).topology()
    queues = asyncio.run(_levels(amqp_url, topology))
    shards = {name: level for name, level in queues.items() if is_shard(name)}
    behind = {stage.queue: queues[stage.queue] for stage in topology.behind(topology.fetcher)}
    situation = Situation(counts, shards, behind, busiest, _thresholds())
    return Status(queues, counts, busiest, explain(situation))


def _thresholds() -> Thresholds:
    scheduler, fetcher = read_settings(SchedulerSettings), read_settings(FetcherSettings)
    return Thresholds(
        fetcher_high_water=scheduler.fetcher_high_water,
        writer_high_water=fetcher.writer_high_water,
        group_jobs=scheduler.group_jobs,
        silence_seconds=scheduler.silence_seconds,
    )


async def _levels(amqp_url: str, topology: Topology) -> dict[str, QueueLevel | None]:
    """Look at all queues of the topology, and at shards beyond those that this environment's settings name."""
    broker = RabbitMQ(amqp_url, name="feedmill status", max_message_bytes=1024)
    async with broker.connect(None) as session:
        levels = {queue.name: await _level(session, queue.name) for queue in topology.queues}
        for number in range(len(topology.fetcher.queues), MOST_SHARDS):
            level = await _level(session, shard_name(number))
            if level is None:
                break
            levels[shard_name(number)] = level
    return levels


async def _level(session: Session, queue: str) -> QueueLevel | None:
    ready = await session.count_ready(queue)
    return None if ready is None else QueueLevel(ready, await session.count_consumers(queue))


_COUNTS = f"""
SELECT count(*) AS feeds,
    count(*) FILTER (WHERE NOT enabled) AS disabled,
    count(*) FILTER (WHERE enabled AND due_at <= now()) AS due,
    count(*) FILTER (WHERE enabled AND due_at <= now() - make_interval(secs => %(late)s)) AS overdue,
    count(*) FILTER (
        WHERE enabled AND due_at <= now() - make_interval(secs => %(late)s)
        AND politeness_group IN (SELECT politeness_group FROM throttled_groups WHERE until > now())
    ) AS left_alone,
    count(*) FILTER (WHERE enabled AND claim_expires_at > now() AND issued_at IS NOT NULL) AS queued,
    count(*) FILTER (WHERE enabled AND claim_expires_at > now() AND issued_at IS NULL) AS retrying,
    count(*) FILTER (WHERE {FAILING}) AS failing,
    (SELECT count(*) FROM pending_articles) AS pending_articles,
    extract(epoch FROM now() - min(due_at) FILTER (WHERE enabled AND due_at <= now()))::float8
        AS longest_due_seconds,
    extract(epoch FROM min(next_fetch_at) FILTER (WHERE enabled AND next_fetch_at > now()) - now())::float8
        AS next_due_seconds,
    (SELECT extract(epoch FROM now() - max(started_at))::float8 FROM feed_fetch_log WHERE ok AND started_at <= now())
        AS seconds_since_success
FROM feeds
"""  # noqa: S608 - our own text


def count_all(connection: Connection) -> FeedCounts:
    """Return how many feeds are in which state, and how many articles are pending."""
    row = connection.execute(_COUNTS.encode(), {"late": LATE_SECONDS}).fetchone()
    assert row is not None
    return FeedCounts(**row)


def busiest_groups(connection: Connection) -> dict[str, int]:
    """Return the five politeness groups with the most jobs that have no result yet, and their number of jobs."""
    rows = connection.execute(
        """
        SELECT politeness_group, count(*) AS jobs FROM feeds
        WHERE issued_at IS NOT NULL AND claim_expires_at > now()
        GROUP BY politeness_group ORDER BY jobs DESC, politeness_group LIMIT 5
        """
    ).fetchall()
    return {row["politeness_group"]: row["jobs"] for row in rows}
