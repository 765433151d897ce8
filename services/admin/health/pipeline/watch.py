"""Looks at broker and database for the verdicts, each for a bounded time, whatever hangs."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

from psycopg import errors

from services.admin.feed_health.counts import count_words, in_use
from services.admin.health.alarms.measured import (
    BrokerState,
    Contact,
    DatabaseState,
    Failures,
    FeedsInUse,
    Waiting,
)
from services.admin.health.diagnosis import Thresholds
from services.admin.health.looks import Look, bound
from services.admin.health.pipeline import figures
from services.admin.health.pipeline.picture import Attempts, Batches, Pace, Picture, Quality
from services.admin.health.pipeline.server import read_state
from services.admin.health.queues import by_stage
from shared.broker.topology import Topology
from shared.database.postgres import Database
from shared.errors import FeedmillError
from shared.observability.secrets import mask_credentials

T = TypeVar("T")

KEEP_SECONDS = 5.0
"""Figures may be so old."""

PATIENCE_SECONDS = 2.0
"""Nobody waits longer for a server."""

SILENT_SECONDS = 60.0
"""Nothing has succeeded for longer: it is worth a look why."""

KEEP_WORDS_SECONDS = 15.0
WORDS_SECONDS = 20.0
"""Each feed is looked at, so a count may take so long; until it has ended, it is not known how many fail."""

KEEP_QUALITY_SECONDS = 300.0
QUALITY_SECONDS = 20.0
"""A count over a week may take so long; until it has ended, the quality is unknown."""


@dataclass(frozen=True)
class _Figures:
    pace: Pace
    attempts: Attempts
    batches: Batches
    waiting: Waiting
    failures: Failures | None


class HealthWatch:
    """Makes pictures of the pipeline.

    Args:
        database: an open pool.
        topology: the queues.
        limits: the settings above which feeds wait.
        broker: looks at the broker.
    """

    def __init__(self, database: Database, topology: Topology, limits: Thresholds, broker: Look[BrokerState]) -> None:
        self._database = database
        self._topology = topology
        self._limits = limits
        self._broker = broker
        self._state = self._look(self._read_state, KEEP_SECONDS)
        self._figures = self._look(self._read_figures, KEEP_SECONDS)
        self._words = self._look(self._read_words, KEEP_WORDS_SECONDS)
        self._quality = self._look(self._read_quality, KEEP_QUALITY_SECONDS)

    def _look(self, find: Callable[[], Awaitable[T]], keep_seconds: float) -> Look[T]:
        return Look(find, what="PostgreSQL", keep_seconds=keep_seconds, patience_seconds=PATIENCE_SECONDS)

    async def look(self) -> Picture:
        """Return the figures as they are now, or were `KEEP_SECONDS` ago; what can't be seen is told."""
        (
            (broker, broker_trouble),
            (state, trouble),
            (found, no_figures),
            (words, _),
            (quality, _),
        ) = await asyncio.gather(
            _attempt(self._broker.get()),
            _attempt(self._state.get()),
            _attempt(self._figures.get()),
            _attempt(self._words.get()),
            _attempt(self._quality.get()),
        )
        return Picture(
            limits=self._limits,
            services=[stage.service for stage in self._topology.stages],
            optional={stage.service: stage.is_on for stage in self._topology.stages if stage.is_optional},
            machine=socket.gethostname(),
            now=datetime.now(UTC),
            broker=_contact(self._broker, broker_trouble),
            broker_alarm=broker.alarm if broker else None,
            queues=by_stage(broker.levels, self._topology) if broker else None,
            database=_contact(self._state, trouble),
            state=state,
            figures_trouble=no_figures,
            pace=found.pace if found else None,
            attempts=found.attempts if found else None,
            failures=found.failures if found else None,
            feeds=words if words and found else FeedsInUse(),
            waiting=found.waiting if found else None,
            batches=found.batches if found else Batches(),
            quality=None if trouble or no_figures else quality,
        )

    async def _read_state(self) -> DatabaseState:
        async with self._database.transaction() as connection:
            await bound(connection, PATIENCE_SECONDS)
            return await read_state(connection)

    async def _read_figures(self) -> _Figures:
        async with self._database.transaction() as connection:
            await bound(connection, PATIENCE_SECONDS)
            pace = await figures.read_pace(connection, self._limits.group_jobs)
            attempts = await figures.read_attempts(connection)
            batches, waiting = await figures.read_batches(connection), await figures.read_waiting(connection)
            failures = None
            if seconds := self._failing_seconds(pace, attempts):
                failures = await figures.read_failures(connection, seconds)
            return _Figures(pace, attempts, batches, waiting, failures)

    def _failing_seconds(self, pace: Pace, attempts: Attempts) -> float:
        """Return for how long failures are worth a look: for the silence, or where many fail; 0: they are not."""
        if pace.silence_seconds > min(SILENT_SECONDS, self._limits.silence_seconds):
            return min(pace.silence_seconds + 1.0, figures.WINDOW_SECONDS)  # with the failure that began it
        return attempts.window_seconds if 2 * sum(attempts.failures.values()) > attempts.fetches else 0.0

    async def _read_words(self) -> FeedsInUse:
        async with self._database.transaction() as connection:
            await bound(connection, WORDS_SECONDS)
            return in_use(await count_words(connection))

    async def _read_quality(self) -> Quality:
        async with self._database.transaction() as connection:
            await bound(connection, QUALITY_SECONDS)
            return await figures.read_quality(connection)


def _contact(look: Look[T], trouble: str | None) -> Contact:
    return Contact(trouble, look.failing_since if trouble else None, look.last_at)


async def _attempt(asked: Awaitable[T]) -> tuple[T | None, str | None]:
    """Return the answer, or why there is none."""
    try:
        return await asked, None
    except (errors.UndefinedTable, errors.UndefinedColumn):
        return None, "the tables are missing or too old: run `feedmill migrate`"
    except FeedmillError as error:
        return None, mask_credentials(str(error))
