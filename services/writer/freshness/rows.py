"""The writer's SQL for freshness: counts by feed, hour, kind and bucket; their sums over hosts and over all feeds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime

from services.writer.freshness.buckets import bucket_of
from services.writer.freshness.rules import Arrival
from shared.database.postgres import Connection

KEPT = "8 days"
"""How long the counts are kept: a week, and what may not be summed up yet."""

SUMMED = "summed"
"""The kind of the row that says that an hour has been summed up."""

GRACE = "10 minutes"
"""An hour is summed up so long after its end: no transaction of a writer takes longer."""

_ADD = """
INSERT INTO feed_freshness (at, feed_id, kind, bucket, articles)
SELECT %(at)s, feed_id, kind, bucket, articles
FROM unnest(%(feeds)b::bigint[], %(kinds)b::text[], %(buckets)b::smallint[], %(articles)b::integer[])
    AS new (feed_id, kind, bucket, articles)
ON CONFLICT (at, feed_id, kind, bucket) DO UPDATE SET articles = feed_freshness.articles + excluded.articles
"""

# The first hour after those that are summed up, else the oldest hour; none of those that will be deleted.
_NEXT_HOUR = f"""
SELECT hour.at FROM (
    SELECT greatest(
        coalesce(
            (SELECT max(at) + interval '1 hour' FROM host_freshness WHERE politeness_group = '' AND kind = '{SUMMED}'),
            (SELECT min(at) FROM feed_freshness)
        ),
        date_trunc('hour', now() - interval '{KEPT}', 'UTC')
    ) AS at
) AS hour
WHERE hour.at + interval '1 hour' + interval '{GRACE}' <= now()
    AND EXISTS (SELECT FROM feed_freshness WHERE at >= hour.at)
"""  # noqa: S608 - our own text

# Of feeds that are gone only the sum over all feeds knows. In this order each host's rows lie side by side.
_SUM = f"""
INSERT INTO host_freshness (at, politeness_group, kind, bucket, articles)
SELECT %(at)s, coalesce(politeness_group, ''), kind, bucket, sum(articles)
FROM feed_freshness LEFT JOIN feeds ON feeds.id = feed_id
WHERE at = %(at)s
GROUP BY GROUPING SETS ((politeness_group, kind, bucket), (kind, bucket))
HAVING grouping(politeness_group) = 1 OR politeness_group IS NOT NULL
UNION ALL SELECT %(at)s, '', '{SUMMED}', 0, 0
ORDER BY 1, 2, 3, 4
"""  # noqa: S608 - our own text

_KEYS = {
    "feed_freshness": "at, feed_id, kind, bucket",
    "host_freshness": "at, politeness_group, kind, bucket",
}
_PRUNE = """
DELETE FROM {table} WHERE ({key}) IN (
    SELECT {key} FROM {table} WHERE at < now() - %(kept)s::interval ORDER BY at LIMIT %(limit)s FOR UPDATE SKIP LOCKED
)
"""


async def add_arrivals(connection: Connection, arrivals: Iterable[Arrival], now: datetime) -> None:
    """Count new articles in the present hour. Their feeds are locked, so no other writer has these rows."""
    counts = Counter((each.feed_id, each.kind, bucket_of(each.seconds or 0.0)) for each in arrivals)
    if not counts:
        return
    feeds, kinds, buckets = zip(*counts, strict=True)
    at = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    numbers = {"feeds": list(feeds), "kinds": list(kinds), "buckets": list(buckets), "articles": list(counts.values())}
    await connection.execute(_ADD, {"at": at, **numbers})


async def sum_hour(connection: Connection) -> int:
    """Sum up the next hour that has ended; return how many rows that made, 0 if all are summed up."""
    cursor = await connection.execute(_NEXT_HOUR.encode())
    row = await cursor.fetchone()
    if row is None:
        return 0
    cursor = await connection.execute(_SUM.encode(), row)
    return cursor.rowcount


async def prune_freshness(connection: Connection, table: str, limit: int) -> int:
    """Delete a chunk of the counts in this table that are too old; return how many."""
    statement = _PRUNE.format(table=table, key=_KEYS[table])
    cursor = await connection.execute(statement.encode(), {"kept": KEPT, "limit": limit})
    return cursor.rowcount
