"""The figures of `feedmill status`, with totals and the last day by the hour."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from psycopg import errors

from services.admin.health.alarms.alarm import Alarm
from services.admin.health.alarms.measured import BrokerState
from services.admin.health.alarms.rules import find_alarms
from services.admin.health.diagnosis import Thresholds
from services.admin.health.freshness import Freshness, Span, read_freshness
from services.admin.health.looks import Look, bound
from services.admin.health.pipeline.figures import read_quality
from services.admin.health.pipeline.picture import Picture, Quality
from services.admin.health.pipeline.watch import HealthWatch
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
"""For counts of a database that answers: a person waits for them."""


@dataclass(frozen=True)
class Stats:
    """How things stand. What can't be seen now is as it was last seen by this process; None or empty: it never was."""

    levels: Levels | None
    counts: Counts | None
    reasons: list[str]
    """What keeps feeds from being fetched, each a sentence: the alarms', then others."""
    hours: list[Hour]
    quality: Quality | None = None
    """What new articles are like; None: not counted yet."""
    alarms: list[Alarm] = field(default_factory=list)
    levels_at: datetime | None = None
    """When `levels` were seen."""
    counts_at: datetime | None = None
    """When `counts` were seen."""
    freshness: dict[Span, Freshness] | None = None
    """How long articles took; None: not counted yet."""


class StatsWatch:
    """Counts for all that ask, once in `KEEP_SECONDS`.

    Args:
        database: an open pool.
        topology: the queues.
        limits: the settings above which feeds wait.
        broker: looks at the broker.
        health: looks at both servers, with the same look at the broker.
    """

    def __init__(
        self,
        database: Database,
        topology: Topology,
        limits: Thresholds,
        broker: Look[BrokerState],
        health: HealthWatch,
    ) -> None:
        self._database = database
        self._topology = topology
        self._limits = limits
        self._broker = broker
        self._health = health
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
        """Return how things stand: within two seconds or so if a server hangs."""
        at = await self._health.look()
        alarms = find_alarms(at)
        if at.state is not None:  # else it would be waited for in vain
            # One after the other: none may outlive the pool of a command.
            await _or_none(self._counts.get())
            await _or_none(self._hours.get())
            await _or_none(self._quality.get())
            await _or_none(self._freshness.get())
        broker, counts = self._broker.last, self._counts.last
        return Stats(
            levels=broker.levels if broker else None,
            counts=counts,
            reasons=[*(alarm.sentence for alarm in alarms), *self._find_others(at, alarms)],
            hours=self._hours.last or [],
            quality=self._quality.last,
            alarms=alarms,
            levels_at=self._broker.last_at,
            counts_at=self._counts.last_at,
            freshness=self._freshness.last,
        )

    def _find_others(self, at: Picture, alarms: list[Alarm]) -> list[str]:
        """Return the reasons that no alarm gives."""
        broker, counts = self._broker.last, self._counts.last
        if at.broker.trouble or at.database.trouble or broker is None or counts is None:
            return []
        named = {alarm.name for alarm in alarms}
        if named & {"writer_behind", "enricher_behind"}:
            named.add("backpressure")
        reasons = find_reasons(broker.levels, self._topology, counts, self._limits)
        return [reason.sentence for reason in reasons if reason.name not in named]

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


async def _or_none(asked: Awaitable[T]) -> T | None:
    """Return the answer; None: there is none, which the alarms tell."""
    try:
        return await asked
    except (Unavailable, errors.UndefinedTable, errors.UndefinedColumn):
        return None
