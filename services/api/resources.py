"""What the handlers of requests work with.

A command runs an API within itself for one call or two, so what few of them need is imported where it is needed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Request

from services.admin.access.remembered import Remembered
from services.admin.feeds.urls import UrlRules
from services.api.arrivals import Arrivals
from services.api.settings import ApiSettings
from services.api.turns import Turns
from services.fetcher.retries import RetryRules
from services.fetcher.settings import FetcherSettings
from shared.broker.port import Broker, Session
from shared.broker.topology import Topology
from shared.database.postgres import Database
from shared.errors import ConfigurationError, Unavailable
from shared.settings import read_settings

if TYPE_CHECKING:
    from services.admin.articles.consumers import Draining
    from services.admin.health.alarms.measured import BrokerState
    from services.admin.health.backlog import Backlog
    from services.admin.health.looks import Look
    from services.admin.health.pipeline.watch import HealthWatch
    from services.admin.health.scene import Scene
    from services.admin.health.stats import StatsWatch

SEARCHES = 8
"""Searches for feeds at a time; each has a thread and a connection of its own."""

SCANS = 2
"""Statements at a time that read a whole table. An index for each order would cost every poll more than that."""

PATIENCE_SECONDS = 60.0
"""The longest wait of both for others. A client waits for its answer for twice as long."""


@dataclass
class Resources:
    """The database, the broker and the settings. Nothing is connected before it is used.

    The command line, which runs the API within itself, may have a database and no broker, or the other way round.
    """

    settings: ApiSettings
    database: Database
    """An open pool."""
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the process is told to stop: who waits for something, such as a long poll, answers at once."""
    remembered: Remembered = field(default_factory=Remembered)
    """The tokens and sessions that this process knows."""

    no_broker: str | None = None
    """Why there is no broker; None: there is one."""

    @cached_property
    def fetcher(self) -> FetcherSettings:
        """How fetchers are set, if they have this environment's settings."""
        return read_settings(FetcherSettings)

    @cached_property
    def topology(self) -> Topology:
        """The queues."""
        return self.settings.topology()

    @cached_property
    def url_rules(self) -> UrlRules:
        """Which URLs can be polled."""
        return UrlRules(self.fetcher.allowed(), self.settings.proxy_host_set())

    @cached_property
    def searches(self) -> Turns:
        """Searches for feeds, which wait for strangers' hosts."""
        return Turns(SEARCHES, PATIENCE_SECONDS)

    @cached_property
    def retrying(self) -> asyncio.Lock:
        """Held while the retry queue is searched."""
        return asyncio.Lock()

    @cached_property
    def arrivals(self) -> Arrivals:
        """Those that wait for articles."""
        return Arrivals(str(self.settings.database_url), at_once=max(1, self.settings.api_connections // 2))

    @cached_property
    def broker_look(self) -> Look[BrokerState]:
        """How full the queues are, and whether the broker takes messages."""
        from services.admin.health.looks import Look
        from services.admin.health.pipeline import watch
        from services.admin.health.queues import BrokerLook

        return Look(
            BrokerLook(self.broker, self.topology).find,
            what="RabbitMQ",
            keep_seconds=watch.KEEP_SECONDS,
            patience_seconds=watch.PATIENCE_SECONDS,
        )

    @cached_property
    def health(self) -> HealthWatch:
        """How the pipeline fares."""
        from services.admin.health.pipeline.watch import HealthWatch
        from services.admin.health.status import read_thresholds

        return HealthWatch(self.database, self.topology, read_thresholds(), self.broker_look)

    @cached_property
    def stats(self) -> StatsWatch:
        """How things stand."""
        from services.admin.health.stats import StatsWatch
        from services.admin.health.status import read_thresholds

        return StatsWatch(self.database, self.topology, read_thresholds(), self.broker_look, self.health)

    @cached_property
    def backlog(self) -> Backlog:
        """How the backlog went since this process started."""
        from services.admin.health.backlog import Backlog

        return Backlog(self.topology, self.scene)

    @cached_property
    def scene(self) -> Look[Scene]:
        """All that the overview shows."""
        from services.admin.health.scene import watch_scene
        from services.admin.health.worst import watch_worst

        return watch_scene(self.health, self.stats, watch_worst(self.database))

    @cached_property
    def draining(self) -> Look[Draining]:
        """How pending articles are drained."""
        from services.admin.articles import consumers
        from services.admin.health.looks import Look

        async def find() -> Draining:
            async with self.database.transaction() as connection:
                return await consumers.read_draining(connection)

        return Look(
            find, what="PostgreSQL", keep_seconds=consumers.KEEP_SECONDS, patience_seconds=consumers.PATIENCE_SECONDS
        )

    @asynccontextmanager
    async def scan(self) -> AsyncIterator[None]:
        """Yield when few enough others read a whole table: a list by a column that has no index, or by a text.

        Raises:
            Unavailable: too many others do.
        """
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await self._scans.acquire()
        except TimeoutError:
            raise Unavailable("others search whole tables just now: try again, or list by id without a text") from None
        try:
            yield
        finally:
            self._scans.release()

    @cached_property
    def _scans(self) -> asyncio.Semaphore:
        return asyncio.Semaphore(SCANS)

    def retry_rules(self) -> RetryRules:
        """Return when and how often fetchers retry."""
        fetcher = self.fetcher
        return RetryRules(fetcher.max_retries, fetcher.retry_delay_seconds, fetcher.claim_seconds)

    def broker(self, name: str = "feedmill api") -> Broker:
        """Return the broker; `name` is what its management UI shows."""
        if self.no_broker:
            return _NoBroker(self.no_broker)
        from shared.broker.rabbitmq import RabbitMQ

        return RabbitMQ(str(self.settings.amqp_url), name=name, max_message_bytes=self.settings.max_message_bytes)


class _NoBroker:
    """Stands for a broker that is not there, until somebody connects to it."""

    max_message_bytes = 0

    def __init__(self, reason: str) -> None:
        self._reason = reason

    @asynccontextmanager
    async def connect(self, _topology: Topology | None) -> AsyncIterator[Session]:
        raise ConfigurationError(self._reason)
        yield


def open_database(settings: ApiSettings) -> Database:
    """Return the pool of an API with these settings, to be opened."""
    return Database(
        str(settings.database_url),
        size=settings.api_connections,
        prepared=settings.prepared_statements,
        statement_seconds=settings.statement_seconds,
    )


async def _resources(request: Request) -> Resources:  # not async, it would wait for a thread
    found: Resources = request.app.state.resources
    return found


Here = Annotated[Resources, Depends(_resources)]
"""The parameter of a handler that works with the resources."""
