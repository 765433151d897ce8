"""The SQL behind the figures. Each statement reads index ranges, however large the tables are."""

from __future__ import annotations

from typing import Any

from services.admin.health.alarms.causes import Attempt, count_causes
from services.admin.health.alarms.measured import Failures, Waiting
from services.admin.health.pipeline.picture import Attempts, Batches, Pace, Quality, TierQuality
from services.scheduler import pending, silence
from shared.database.postgres import Connection

BUSY_PER_MINUTE = 2_000
"""With more attempts in the last minute, rates are of the last `SHORT_WINDOW_SECONDS` and not of the last hour."""

WINDOW_SECONDS, SHORT_WINDOW_SECONDS = 3600.0, 300.0

# Both branches have an index of their own, by started_at.
_MINUTE = """
SELECT (SELECT count(*) FROM feed_fetch_log WHERE ok AND started_at > now() - interval '1 minute')
    + (SELECT count(*) FROM feed_fetch_log WHERE NOT ok AND started_at > now() - interval '1 minute') AS attempts
"""

_COUNTED = "outcome, tier, items_seen, items_new, items_duplicate"
_ATTEMPTS = f"""
SELECT outcome, tier, count(*) AS attempts, sum(items_seen)::bigint AS listed, sum(items_new)::bigint AS new,
    coalesce(sum(items_duplicate), 0)::bigint AS duplicates
FROM (
    SELECT {_COUNTED} FROM feed_fetch_log WHERE ok AND started_at > now() - make_interval(secs => %(window)s)
    UNION ALL
    SELECT {_COUNTED} FROM feed_fetch_log WHERE NOT ok AND started_at > now() - make_interval(secs => %(window)s)
) AS recent GROUP BY outcome, tier
"""  # noqa: S608 - our own text

# The feeds that wait for the scheduler: not those whose host asked for a pause, or has as many jobs as it may have.
_PACE = """
WITH RECURSIVE priorities (priority) AS (
    SELECT max(priority) FROM feeds WHERE enabled
    UNION ALL
    SELECT (SELECT max(feeds.priority) FROM feeds WHERE enabled AND feeds.priority < above.priority)
    FROM priorities AS above WHERE above.priority IS NOT NULL
),
waiting AS MATERIALIZED (
    SELECT politeness_group FROM throttled_groups WHERE until > now()
    UNION
    SELECT politeness_group FROM feeds WHERE issued_at IS NOT NULL AND claim_expires_at > now()
    GROUP BY politeness_group HAVING count(*) >= %(group_jobs)s
)
SELECT EXISTS (SELECT 1 FROM priorities WHERE priority IS NOT NULL) AS has_feeds,
    coalesce(extract(epoch FROM now() - (
        SELECT min(first.due_at) FROM priorities CROSS JOIN LATERAL (
            SELECT due_at FROM feeds
            WHERE enabled AND priority = priorities.priority AND due_at <= now()
                AND politeness_group NOT IN (SELECT politeness_group FROM waiting)
            ORDER BY due_at LIMIT 1
        ) AS first
    )), 0)::float8 AS late_seconds,
    extract(epoch FROM now() - greatest(
        (SELECT max(issued_at) FROM feeds WHERE issued_at IS NOT NULL),
        (SELECT max(queued_at) FROM (
            (SELECT queued_at FROM feed_fetch_log WHERE ok ORDER BY started_at DESC LIMIT 20)
            UNION ALL
            (SELECT queued_at FROM feed_fetch_log WHERE NOT ok ORDER BY started_at DESC LIMIT 20)
        ) AS last)
    ))::float8 AS idle_seconds
"""

# The newest ones: of a log with thousands a minute they tell as much as all. A job that waits for a host that is down
# tells nothing of its own.
_FAILED = """
SELECT feeds.politeness_group AS host, log.error_class, log.error
FROM (
    SELECT feed_id, error_class, error FROM feed_fetch_log
    WHERE NOT ok AND outcome <> 'skipped' AND started_at > now() - make_interval(secs => %(seconds)s)
    ORDER BY started_at DESC LIMIT %(most)s
) AS log JOIN feeds ON feeds.id = log.feed_id
"""

_ANSWERED = """
SELECT DISTINCT feeds.politeness_group AS host
FROM (
    SELECT feed_id FROM feed_fetch_log WHERE ok AND started_at > now() - make_interval(secs => %(seconds)s)
    ORDER BY started_at DESC LIMIT %(most)s
) AS log JOIN feeds ON feeds.id = log.feed_id
"""

MOST_FAILED = 1000

_BATCHES = """
SELECT count(*) FILTER (WHERE finished_at > now() - interval '1 day') AS runs,
    extract(epoch FROM now() - max(finished_at))::float8 AS seconds_since
FROM batch_runs
"""

_QUALITY = """
SELECT started_at > now() - interval '1 day' AS is_of_day, coalesce(tier, 'unknown') AS tier,
    sum(items_new)::bigint AS articles, sum(items_dated)::bigint AS dated, sum(items_full)::bigint AS full,
    coalesce(sum(items_enriched), 0)::bigint AS enriched, coalesce(sum(items_language), 0)::bigint AS language,
    coalesce(sum(items_topic), 0)::bigint AS topic, coalesce(sum(items_duplicate), 0)::bigint AS duplicate,
    coalesce(sum(items_duplicate_title), 0)::bigint AS duplicate_title,
    coalesce(sum(items_duplicate_text), 0)::bigint AS duplicate_text
FROM feed_fetch_log
WHERE items_new > 0 AND started_at > now() - interval '8 days' AND items_dated IS NOT NULL
GROUP BY is_of_day, coalesce(tier, 'unknown')
"""


async def read_attempts(connection: Connection) -> Attempts:
    """Return the attempts of the last hour, or of minutes where an hour has too many."""
    minute = await _one(connection, _MINUTE)
    window = SHORT_WINDOW_SECONDS if minute["attempts"] > BUSY_PER_MINUTE else WINDOW_SECONDS
    cursor = await connection.execute(_ATTEMPTS.encode(), {"window": window})
    rows = await cursor.fetchall()
    outcomes: dict[str, int] = {}
    tiers: dict[str, int] = {}
    for row in rows:
        outcomes[row["outcome"]] = outcomes.get(row["outcome"], 0) + row["attempts"]
        if row["tier"]:
            tiers[row["tier"]] = tiers.get(row["tier"], 0) + row["attempts"]
    listed, new, duplicates = (sum(row[name] for row in rows) for name in ("listed", "new", "duplicates"))
    return Attempts(window, outcomes, tiers, listed, new, duplicates)


async def read_pace(connection: Connection, group_jobs: int) -> Pace:
    """Return whether feeds are polled in time. A host with `group_jobs` jobs under way gets no more."""
    found = await silence.look(connection)
    row = await _one(connection, _PACE, {"group_jobs": group_jobs})
    return Pace(due=found.due, silence_seconds=found.silence, **row)


async def read_failures(connection: Connection, seconds: float) -> Failures:
    """Return why the attempts of the last `seconds` failed, of the newest ones if there were many."""
    values = {"seconds": seconds, "most": MOST_FAILED}
    cursor = await connection.execute(_FAILED.encode(), values)
    failed = [Attempt(**row) for row in await cursor.fetchall()]
    cursor = await connection.execute(_ANSWERED.encode(), values)
    return count_causes(failed, [row["host"] for row in await cursor.fetchall()])


async def read_waiting(connection: Connection) -> Waiting:
    """Return how many articles wait for a consumer, and for how long."""
    found = await pending.look(connection)
    return Waiting(int(found.articles), found.longest_seconds)


async def read_batches(connection: Connection) -> Batches:
    """Return what is known of the runs of `feedmill batch`."""
    return Batches(**await _one(connection, _BATCHES))


async def read_quality(connection: Connection) -> Quality:
    """Return what the new articles of the last day, and of the week before, are like."""
    cursor = await connection.execute(_QUALITY)
    spans: dict[bool, dict[str, TierQuality]] = {True: {}, False: {}}
    for row in await cursor.fetchall():
        span = spans[row.pop("is_of_day")]
        tier = row.pop("tier")
        span[tier] = TierQuality(**row)
    return Quality(day=spans[True], week=spans[False])


async def _one(connection: Connection, statement: str, values: dict[str, Any] | None = None) -> dict[str, Any]:
    cursor = await connection.execute(statement.encode(), values)
    row = await cursor.fetchone()
    assert row is not None
    return row
