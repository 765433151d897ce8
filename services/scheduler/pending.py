"""Metrics of pending articles: how many there are, and how long the oldest has waited."""

from __future__ import annotations

import math
from typing import NamedTuple

from prometheus_client import Gauge

from shared.database.postgres import Connection, Database

PENDING = Gauge("feedmill_pending_articles", "Articles that are pending, as PostgreSQL's statistics count them.")
LONGEST_PENDING = Gauge(
    "feedmill_longest_pending_seconds",
    "How long the oldest claimable article has waited, in seconds; 0 if there is none.",
)
DEAD = Gauge("feedmill_dead_articles", "Dead-lettered articles, as PostgreSQL's statistics count them.")

# Millions of rows may wait: counting them would read them all, twice a minute. The statistics know, a second or so
# late; after a crash of the server they know nothing until the table was analysed. The ages are one look each into the
# indexes that claims go by.
_LOOK = b"""
SELECT pg_stat_get_live_tuples('pending_articles'::regclass)::float8 AS pending,
    greatest(0, extract(epoch FROM now() - least(
        (SELECT created_at FROM pending_articles WHERE claimed_until IS NULL ORDER BY created_at, md5 LIMIT 1),
        (SELECT claimed_until FROM pending_articles WHERE claimed_until <= now()
         ORDER BY claimed_until, created_at, md5 LIMIT 1)
    )))::float8 AS longest,
    pg_stat_get_live_tuples('dead_articles'::regclass)::float8 AS dead
"""


class PendingWatch:
    """Sets the metrics. While the database is away they are NaN, not the last values."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def look(self) -> None:
        """Look once. Raises what the database raises."""
        found = UNKNOWN
        try:
            async with self._database.transaction() as connection:
                found = await look(connection)
        finally:
            note(found)


class Pending(NamedTuple):
    """What a look found."""

    articles: float
    longest_seconds: float
    dead: float


UNKNOWN = Pending(math.nan, math.nan, math.nan)


async def look(connection: Connection) -> Pending:
    """Return how many articles are pending, how long the oldest has waited, and how many are dead."""
    cursor = await connection.execute(_LOOK)
    row = await cursor.fetchone()
    assert row is not None
    return Pending(row["pending"], row["longest"], row["dead"])


def note(found: Pending) -> None:
    """Set the metrics."""
    PENDING.set(found.articles)
    LONGEST_PENDING.set(found.longest_seconds)
    DEAD.set(found.dead)
