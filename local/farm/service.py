"""`feedmill farm`: the demo's sites as a service, for the fetchers of other containers.

It registers its feeds, publishes new articles in waves, and counts the articles that arrive. It is ready (/readyz) once
all waves are published and while every article is in `pending_articles` exactly once. `/count` has the count by kind of
feed. A restarted farm continues where the former one stopped.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from local.farm import Farm, FeedKind, FeedSpec, demo_specs, named_specs
from local.farm.count import Count, count
from local.settings import FarmSettings
from services.admin.registry import NewFeed, add_feed, connect
from shared.errors import Unavailable
from shared.observability.telemetry import Health
from shared.waiting import keep_trying, pause

log = logging.getLogger(__name__)

DOMAIN = "farm"
"""The sites are site-2.farm, site-3.farm, …. The operator of the farm makes these names resolve to it."""

AFTER_AN_HOUR = frozenset({FeedKind.RECOVERS, FeedKind.THROTTLED, FeedKind.TRUNCATED})
"""Feeds that need a retry after an hour; here nobody waits so long (`feedmill demo` shortens the hour)."""

LOOK_SECONDS = 2.0


@dataclass(frozen=True)
class Plan:
    """The farm's options. It listens on `address` and `port`; its feeds are polled every `interval_seconds`."""

    address: str
    port: int
    waves: int
    wave_seconds: float
    interval_seconds: float


class FarmService:
    """Publishes waves and counts the articles that arrive."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._farm = Farm(public_specs(), port=plan.port, address=plan.address)
        self._ids: Mapping[str, int] = {}
        self._waves_to_come = plan.waves
        self._counted: Count | None = None

    async def serve(self, settings: FarmSettings, stop: asyncio.Event, health: Health) -> None:
        """Run until `stop`. Raises ConfigurationError if the tables are missing."""
        database_url = str(settings.database_url)
        health.add_check("articles", self.check)
        health.add_page("/count", self.page)
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, self.publish)
        with self._farm, contextlib.suppress(Unavailable):  # the stop came while the database was away
            await keep_trying(
                lambda: asyncio.to_thread(self._register, database_url), what="registering the feeds", until=(stop,)
            )
            await keep_trying(
                lambda: asyncio.to_thread(self._catch_up, database_url), what="counting the articles", until=(stop,)
            )
            log.info("serving", extra={"feeds": len(self._farm.specs), "hosts": len(self._farm.hosts)})
            publishing = asyncio.create_task(self._publish_waves())
            try:
                while not stop.is_set():
                    await keep_trying(
                        lambda: asyncio.to_thread(self._look, database_url), what="counting the articles", until=(stop,)
                    )
                    await pause(LOOK_SECONDS, stop)
            finally:
                publishing.cancel()

    def publish(self) -> None:
        """Publish new articles (SIGUSR1 does the same)."""
        wave = self._farm.publish()
        log.info("published", extra={"wave": wave, "articles": len(self._farm.expected_articles())})

    def check(self) -> str | None:
        """Return None while every article is there exactly once, else the reason why not."""
        if self._counted is None:
            return "not counted yet"
        if self._waves_to_come:
            return f"{self._waves_to_come} waves of new articles are still to come"
        expected = len(self._farm.expected_articles())
        missing = max(self._counted.lost, expected - self._counted.delivered)
        if missing or self._counted.duplicated or self._counted.unexpected:
            return (
                f"of {expected} articles {missing} are missing, {self._counted.duplicated} came twice,"
                f" {self._counted.unexpected} are there that were not published"
            )
        return None

    def page(self) -> Any:
        """Return the last count as JSON."""
        return dataclasses.asdict(self._counted) if self._counted else {}

    def _register(self, database_url: str) -> None:
        with connect(database_url) as connection:
            self._ids = {
                spec.name: add_feed(
                    connection,
                    NewFeed(self._farm.url(spec), name=spec.name, interval_seconds=self._plan.interval_seconds),
                )[0]
                for spec in self._farm.specs
            }

    def _catch_up(self, database_url: str) -> None:
        """Publish as many waves as a former farm did, to judge by the articles in the table."""
        unknown = self._count(database_url).unexpected
        while unknown:
            self._farm.publish()
            before, unknown = unknown, self._count(database_url).unexpected
            if unknown >= before:  # they are not from a farm
                return

    async def _publish_waves(self) -> None:
        while self._waves_to_come:
            await asyncio.sleep(self._plan.wave_seconds)
            self.publish()
            self._waves_to_come -= 1

    def _count(self, database_url: str) -> Count:
        with connect(database_url):  # its errors describe the problem in words
            return count(self._farm, self._ids, database_url, elapsed=0.0)

    def _look(self, database_url: str) -> None:
        counted = self._count(database_url)
        if self._counted is None or (counted.delivered, counted.expected) != (
            self._counted.delivered,
            self._counted.expected,
        ):
            numbers = ("expected", "delivered", "lost", "duplicated", "unexpected", "attempts")
            log.info("counted", extra={name: getattr(counted, name) for name in numbers})
        self._counted = counted


def public_specs() -> list[FeedSpec]:
    """Return the demo's sites, except those that need an hour, with names as hosts."""
    return [spec for spec in named_specs(demo_specs(), DOMAIN) if spec.kind not in AFTER_AN_HOUR]
