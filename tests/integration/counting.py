"""Counts feeds as `feedmill status` does."""

from __future__ import annotations

from services.admin.health.diagnosis import FeedCounts
from services.admin.health.status import count_all
from shared.database.postgres import Database


async def count(database_url: str) -> FeedCounts:
    """Return how many feeds are in which state."""
    async with Database(database_url, size=1).open() as database, database.transaction() as connection:
        return await count_all(connection)
