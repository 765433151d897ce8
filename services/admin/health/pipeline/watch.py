"""Looks at broker and database for the verdicts, each for a bounded time, whatever hangs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TypeVar

from psycopg import errors

from services.admin.health.diagnosis import Thresholds
from services.admin.health.looks import Look, bound
from services.admin.health.pipeline import figures
from services.admin.health.pipeline.picture import Attempts, Batches, Pace, Picture, Quality, Queues
from services.admin.health.queues import Levels, by_stage
from shared.broker.topology import Topology
from shared.database.postgres import Database
from shared.errors import FeedmillError
from shared.observability.secrets import mask_credentials

T = TypeVar("T")

KEEP_SECONDS = 5.0
"""Figures may be so old."""

PATIENCE_SECONDS = 2.0
"""Nobody waits longer for a server."""

KEEP_QUALITY_SECONDS = 300.0
QUALITY_SECONDS = 20.0
"""A count over a week may take so long; until it has ended, the quality is unknown."""


@dataclass(frozen=True)
class _Figures:
    pace: Pace
    attempts: Attempts
    batches: Batches


class HealthWatch:
    """Makes pictures of the pipeline.

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
        self._figures = Look(
            self._read_figures, what="PostgreSQL", keep_seconds=KEEP_SECONDS, patience_seconds=PATIENCE_SECONDS
        )
        self._quality = Look(
            self._read_quality, what="PostgreSQL", keep_seconds=KEEP_QUALITY_SECONDS, patience_seconds=PATIENCE_SECONDS
        )

    async def look(self) -> Picture:
        """Return the figures as they are now, or were `KEEP_SECONDS` ago; what can't be seen is told."""
        (queues, broker_trouble), (found, trouble), (quality, _) = await asyncio.gather(
            _attempt(self._read_queues()), _attempt(self._figures.get()), _attempt(self._quality.get())
        )
        return Picture(
            limits=self._limits,
            services=[stage.service for stage in self._topology.stages],
            optional={stage.service: stage.is_on for stage in self._topology.stages if stage.is_optional},
            queues=queues,
            broker_trouble=broker_trouble,
            pace=found.pace if found else None,
            attempts=found.attempts if found else None,
            batches=found.batches if found else Batches(),
            database_trouble=trouble,
            quality=None if trouble else quality,
        )

    async def _read_queues(self) -> Queues:
        return by_stage(await self._levels.get(), self._topology)

    async def _read_figures(self) -> _Figures:
        async with self._database.transaction() as connection:
            await bound(connection, PATIENCE_SECONDS)
            pace = await figures.read_pace(connection, self._limits.group_jobs)
            attempts = await figures.read_attempts(connection)
            return _Figures(pace, attempts, await figures.read_batches(connection))

    async def _read_quality(self) -> Quality:
        async with self._database.transaction() as connection:
            await bound(connection, QUALITY_SECONDS)
            return await figures.read_quality(connection)


async def _attempt(asked: Awaitable[T]) -> tuple[T | None, str | None]:
    """Return the answer, or why there is none."""
    try:
        return await asked, None
    except (errors.UndefinedTable, errors.UndefinedColumn):
        return None, "the tables are missing or too old: run `feedmill migrate`"
    except FeedmillError as error:
        return None, mask_credentials(str(error))
