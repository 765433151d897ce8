"""A whole pipeline under test: farm, real servers, every service as a process, and a count at the end."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import psycopg

from local.addresses import Addresses
from local.demo.demo import SETTINGS
from local.farm import Farm, FeedFormat, FeedKind, FeedSpec
from local.farm.specs import loopback_host
from local.settings import child_environment
from local.supervisor import Supervisor, all_processes
from services.admin.registry import NewFeed, add_feed, connect


def growing_specs(feeds: int, hosts: int = 12) -> list[FeedSpec]:
    formats = list(FeedFormat)
    return [
        FeedSpec(
            name=f"feed-{n}",
            host=loopback_host(n % hosts),
            path=f"/{n}",
            kind=FeedKind.GROWING,
            format=formats[n % len(formats)],
            items=10,
            items_per_wave=5,
            delay_seconds=0.1,
        )
        for n in range(feeds)
    ]


@dataclass
class Pipeline:
    """A running pipeline, for tests that watch it and break parts of it."""

    farm: Farm
    supervisor: Supervisor
    database_url: str
    lines: list[tuple[str, str]] = field(default_factory=list)

    def delivered(self) -> list[tuple[str, str]]:
        """Return URL and title of every pending article; raises if the database is away."""
        with psycopg.connect(self.database_url, connect_timeout=2) as connection:
            return [(url, title) for url, title in connection.execute("SELECT url, title FROM pending_articles")]

    async def until(self, condition: Callable[[], bool], seconds: float = 60.0) -> None:
        """Wait for a condition over the database, which may be away in between."""
        async with asyncio.timeout(seconds):
            while True:
                with contextlib.suppress(psycopg.Error):
                    if await asyncio.to_thread(condition):
                        return
                await asyncio.sleep(0.2)

    async def until_started(self, share: float = 0.2, *, since: int = 0) -> None:
        """Wait until part of the articles after the first `since` is there: the middle of the work."""
        wanted = since + share * (len(self.farm.expected_articles()) - since)
        await self.until(lambda: len(self.delivered()) >= wanted)

    def unlabelled(self) -> int:
        """Return the number of pending articles that no enricher saw."""
        with psycopg.connect(self.database_url, connect_timeout=2) as connection:
            cursor = connection.execute("SELECT count(*) FROM pending_articles WHERE detected_language IS NULL")
            row = cursor.fetchone()
            assert row is not None
            return int(row[0])

    async def until_complete(self) -> None:
        """Wait until all published articles are there, then check that nothing is there twice, or besides."""
        expected = sorted(self.farm.expected_articles().items())
        await self.until(lambda: set(expected) <= set(self.delivered()))
        assert sorted(self.delivered()) == expected
        # The table's primary key hides a second insert; the log counts what every result brought that was new.
        assert self.brought() == len(expected)

    def brought(self) -> int:
        """Return the number of new articles in the fetch log."""
        with psycopg.connect(self.database_url, connect_timeout=2) as connection:
            row = connection.execute("SELECT coalesce(sum(items_new), 0) FROM feed_fetch_log").fetchone()
            assert row is not None
            return int(row[0])

    async def until_replaced(self, name: str, killed: int) -> None:
        """Wait until the supervisor has started `name` again."""
        async with asyncio.timeout(30):
            while self.supervisor.pid(name) in {None, killed}:
                await asyncio.sleep(0.05)


@asynccontextmanager
async def running_pipeline(
    amqp_url: str,
    database_url: str,
    specs: Sequence[FeedSpec],
    *,
    fetchers: int = 1,
    writers: int = 1,
    enrichers: int = 0,
    also: Mapping[str, str] | None = None,
    **settings: str,
) -> AsyncIterator[Pipeline]:
    lines: list[tuple[str, str]] = []
    with Farm(specs) as farm:
        with connect(database_url) as connection:
            for spec in farm.specs:
                add_feed(connection, NewFeed(farm.url(spec), name=spec.name))
        environment = Addresses(amqp_url, database_url).environment() | SETTINGS | settings | dict(also or {})
        supervisor = Supervisor(
            all_processes(fetchers=fetchers, writers=writers, enrichers=enrichers),
            child_environment(environment),
            lambda name, line: lines.append((name, line)),
        )
        async with supervisor.run():
            yield Pipeline(farm, supervisor, database_url, lines)
