"""The figures of `feedmill status`, with totals and the last day by the hour."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from services.admin.health.diagnosis import Thresholds
from services.admin.health.freshness import Freshness, Span, read_freshness
from services.admin.health.looks import Look, bound
from services.admin.health.pipeline.figures import read_quality
from services.admin.health.pipeline.picture import Quality
from services.admin.health.queues import Levels
from services.admin.health.status import Counts, Hour, find_reasons, read_counts, read_hours
from shared.broker.topology import Topology
from shared.database.postgres import Database
from shared.errors import Unavailable

T = TypeVar("T")

KEEP_SECONDS = 5.0
KEEP_HOURS_SECONDS = 60.0
KEEP_QUALITY_SECONDS = 300.0
QUALITY_SECONDS = 5.0
"""A count over a week may take longer; then the answer goes without it."""
PATIENCE_SECONDS = 20.0
"""A person waits for it, and the broker's figures are of no use without the database's."""


@dataclass(frozen=True)
class Stats:
    """How things stand."""

    levels: Levels
    counts: Counts
    reasons: list[str]
    """What keeps feeds from being fetched, each a sentence."""
    hours: list[Hour]
    quality: Quality | None = None
    """What new articles are like; None: not counted yet."""
    freshness: dict[Span, Freshness] | None = None
    """How long articles took; None: not counted yet."""


class StatsWatch:
    """Counts for all that ask, once in `KEEP_SECONDS`.

    Args:
        database: an open pool.
        topology: the queues.
        limits: the settings above which feeds wait.
        levels: looks at the queues.
    """

    def __init__(self, database: Database, topology: Topology, limits: Thresholds, levels: Look[Levels]) -> None:
        self._database = database
        self._topology = topology
        self._limits = limits
        self._levels = levels
        self._counts = Look(
            self._count, what="PostgreSQL", keep_seconds=KEEP_SECONDS, patience_seconds=PATIENCE_SECONDS
        )
        self._hours = Look(
            self._count_hours, what="PostgreSQL", keep_seconds=KEEP_HOURS_SECONDS, patience_seconds=PATIENCE_SECONDS
        )
        self._quality = Look(
            self._count_quality, what="PostgreSQL", keep_seconds=KEEP_QUALITY_SECONDS, patience_seconds=QUALITY_SECONDS
        )
        self._freshness = Look(
            self._measure, what="PostgreSQL", keep_seconds=KEEP_HOURS_SECONDS, patience_seconds=QUALITY_SECONDS
        )

    async def look(self) -> Stats:
        """Return how things stand.

        Raises:
            Unavailable: broker or database away.
        """
        # One after the other: none may outlive the pool of a command that ends with the first error.
        counts, hours = await self._counts.get(), await self._hours.get()
        quality, freshness = await _unless_late(self._quality), await _unless_late(self._freshness)
        levels = await self._levels.get(patience_seconds=PATIENCE_SECONDS)
        reasons = find_reasons(levels, self._topology, counts, self._limits)
        return Stats(levels, counts, reasons, hours, quality, freshness)

    async def _count(self) -> Counts:
        async with self._database.transaction() as connection:
            await bound(connection, PATIENCE_SECONDS)
            return await read_counts(connection)

    async def _count_hours(self) -> list[Hour]:
        async with self._database.transaction() as connection:
            await bound(connection, PATIENCE_SECONDS)
            return await read_hours(connection)

    async def _count_quality(self) -> Quality:
        async with self._database.transaction() as connection:
            await bound(connection, QUALITY_SECONDS)
            return await read_quality(connection)

    async def _measure(self) -> dict[Span, Freshness]:
        async with self._database.transaction() as connection:
            await bound(connection, QUALITY_SECONDS)
            return await read_freshness(connection)


async def _unless_late(look: Look[T]) -> T | None:
    try:
        return await look.get()
    except Unavailable:
        return None
