"""How things stand: the queues, the feeds, the articles, and what keeps feeds from being fetched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from services.admin.feed_health.counts import count_words
from services.admin.feed_health.rule import Word
from services.admin.feeds.states import FAILING
from services.admin.health.diagnosis import LATE_SECONDS, FeedCounts, Reason, Situation, Thresholds, explain
from services.admin.health.queues import Levels, by_stage
from services.fetcher.settings import FetcherSettings
from services.scheduler.settings import SchedulerSettings
from shared.broker.topology import Topology
from shared.database.postgres import Connection
from shared.settings import read_settings


@dataclass(frozen=True)
class Counts:
    """What the database says."""

    feeds: FeedCounts
    busiest: dict[str, int]
    """The politeness groups with the most jobs under way."""
    articles: dict[str, int]
    """`pending`, `claimed` (of these), `dead`; `ledger` is an estimate."""
    health: Mapping[Word, int] = field(default_factory=dict)
    """How many feeds are how."""


@dataclass(frozen=True)
class Hour:
    """What was written in one hour."""

    at: datetime
    """When it begins."""
    succeeded: int
    """Fetches."""
    failed: int
    """Attempts that failed, or were put off without a request."""
    articles: int


def read_thresholds() -> Thresholds:
    """Return the settings above which feeds wait, of this environment."""
    scheduler, fetcher = read_settings(SchedulerSettings), read_settings(FetcherSettings)
    return Thresholds(
        fetcher_high_water=scheduler.fetcher_high_water,
        writer_high_water=fetcher.writer_high_water,
        group_jobs=scheduler.group_jobs,
        silence_seconds=scheduler.silence_seconds,
    )


def find_reasons(levels: Levels, topology: Topology, counts: Counts, limits: Thresholds) -> list[Reason]:
    """Return what keeps feeds from being fetched."""
    queues = by_stage(levels, topology)
    stages = topology.behind(topology.fetcher)
    behind = {stage.queue: queues.behind[stage.service] for stage in stages}
    optional = [stage.queue for stage in stages if stage.is_optional]
    return explain(Situation(counts.feeds, queues.shards, behind, counts.busiest, limits, optional))


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

_BUSIEST = """
SELECT politeness_group, count(*) AS jobs FROM feeds
WHERE issued_at IS NOT NULL AND claim_expires_at > now()
GROUP BY politeness_group ORDER BY jobs DESC, politeness_group LIMIT 5
"""

# The statistics come late, and a small table is counted at once.
_ARTICLES = """
SELECT (SELECT count(*) FROM pending_articles WHERE lease_id IS NOT NULL AND claimed_until > now()) AS claimed,
    (SELECT count(*) FROM dead_articles) AS dead,
    (SELECT greatest(
        CASE WHEN reltuples < 10000 THEN (SELECT count(*) FROM (SELECT FROM feed_items LIMIT 10000) AS few)
            ELSE reltuples END,
        (SELECT count(*) FROM pending_articles) + (SELECT count(*) FROM dead_articles)
    )::bigint FROM pg_class WHERE oid = 'feed_items'::regclass) AS ledger
"""

# Each count reads an index only; hours without anything count 0.
_HOURS = """
WITH hours AS (
    SELECT at FROM generate_series(
        date_trunc('hour', now()) - interval '23 hours', date_trunc('hour', now()), interval '1 hour'
    ) AS at
),
succeeded AS (
    SELECT date_trunc('hour', started_at) AS at, count(*) AS number
    FROM feed_fetch_log WHERE ok AND started_at >= (SELECT min(at) FROM hours) GROUP BY 1
),
failed AS (
    SELECT date_trunc('hour', started_at) AS at, count(*) AS number
    FROM feed_fetch_log WHERE NOT ok AND started_at >= (SELECT min(at) FROM hours) GROUP BY 1
),
articles AS (
    SELECT date_trunc('hour', started_at) AS at, sum(items_new)::bigint AS number
    FROM feed_fetch_log WHERE items_new > 0 AND started_at >= (SELECT min(at) FROM hours) GROUP BY 1
)
SELECT at, coalesce(succeeded.number, 0) AS succeeded, coalesce(failed.number, 0) AS failed,
    coalesce(articles.number, 0) AS articles
FROM hours LEFT JOIN succeeded USING (at) LEFT JOIN failed USING (at) LEFT JOIN articles USING (at)
ORDER BY at
"""


async def count_all(connection: Connection) -> FeedCounts:
    """Return how many feeds are in which state, and how many articles are pending."""
    return FeedCounts(**await _one(connection, _COUNTS, {"late": LATE_SECONDS}))


async def busiest_groups(connection: Connection) -> dict[str, int]:
    """Return the five politeness groups with the most jobs that have no result yet, and their number of jobs."""
    cursor = await connection.execute(_BUSIEST)
    return {row["politeness_group"]: row["jobs"] for row in await cursor.fetchall()}


async def read_counts(connection: Connection) -> Counts:
    """Return what the database says."""
    feeds = await count_all(connection)
    articles = await _one(connection, _ARTICLES)
    busiest, health = await busiest_groups(connection), await count_words(connection)
    return Counts(feeds, busiest, {"pending": feeds.pending_articles, **articles}, health)


async def read_hours(connection: Connection) -> list[Hour]:
    """Return the last 24 hours, the present one last."""
    cursor = await connection.execute(_HOURS)
    return [Hour(**row) for row in await cursor.fetchall()]


async def _one(connection: Connection, statement: str, values: dict[str, Any] | None = None) -> dict[str, Any]:
    cursor = await connection.execute(statement.encode(), values)
    row = await cursor.fetchone()
    assert row is not None
    return row
