"""Where a run takes place: given servers, those of the `feedmill up` that runs here, or private ones for its length."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from local.addresses import Addresses, given, given_or_kept, running_here
from local.servers import Servers
from local.settings import LocalSettings
from shared.database.migrate import migrate
from shared.waiting import pause

LOOK_SECONDS = 1.0


@dataclass(frozen=True)
class Place:
    """See the module."""

    addresses: Addresses
    servers: Servers | None = None
    """Private ones that were started for this run."""
    is_shared: bool = False
    """They are private ones of another process, which has a writer, too."""

    @property
    def is_given(self) -> bool:
        """Whether the environment names the servers."""
        return self.servers is None and not self.is_shared


@contextmanager
def find_place(settings: LocalSettings, say: Callable[[str], None]) -> Iterator[Place]:
    """Yield a place; private servers of our own are migrated.

    Raises:
        ConfigurationError: only one of both servers is given, or private ones can't be started.
    """
    there = given(settings)
    if there is not None:
        yield Place(there)
        return
    neighbour = running_here(settings)
    if neighbour is not None:
        yield Place(neighbour, is_shared=True)
        return
    say("starting RabbitMQ and PostgreSQL ...")
    with given_or_kept(settings) as (addresses, servers):
        migrate(addresses.database_url)
        try:
            yield Place(addresses, servers)
        finally:
            say("stopping RabbitMQ and PostgreSQL ...")


async def until_deserted(settings: LocalSettings) -> None:
    """Wait until the process has ended whose private servers are used."""
    while await asyncio.to_thread(running_here, settings) is not None:
        await pause(LOOK_SECONDS)
