"""Where RabbitMQ and PostgreSQL are: given by the environment, or private ones that are started here."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from local.servers import Servers, is_held, is_installed, private_database, private_servers
from local.settings import LocalSettings
from shared.database.migrate import migrate
from shared.errors import ConfigurationError


@dataclass(frozen=True)
class Addresses:
    """The URLs of both servers, credentials included, and the management UI where we know it."""

    amqp_url: str
    database_url: str
    management_url: str | None = None

    @classmethod
    def of(cls, servers: Servers) -> Self:
        """Return where private servers are."""
        return cls(servers.amqp_url, servers.database_url, servers.management_url)

    def environment(self) -> dict[str, str]:
        """Return them as the settings that services read."""
        return {"FEEDMILL_AMQP_URL": self.amqp_url, "FEEDMILL_DATABASE_URL": self.database_url}


def configured(settings: LocalSettings) -> Addresses | None:
    """Return the servers that the environment names, if it does.

    Raises:
        ConfigurationError: only one of the two is named.
    """
    if settings.amqp_url and settings.database_url:
        return Addresses(str(settings.amqp_url), str(settings.database_url))
    if settings.amqp_url or settings.database_url:
        missing = "FEEDMILL_DATABASE_URL" if settings.amqp_url else "FEEDMILL_AMQP_URL"
        raise ConfigurationError(f"{missing} is not set: give both servers, or neither to have private ones started")
    return None


def find(settings: LocalSettings) -> Addresses:
    """Return the given servers, else those of the `feedmill up` that is running.

    Raises:
        ConfigurationError: there are neither.
    """
    there = configured(settings)
    if there is not None:
        return there
    try:
        return Addresses(**json.loads(_file(settings.home).read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise ConfigurationError(
            "no servers: start `feedmill up` first (in this directory, or set FEEDMILL_HOME), or set"
            " FEEDMILL_AMQP_URL and FEEDMILL_DATABASE_URL"
        ) from None


def find_running(settings: LocalSettings) -> Addresses | None:
    """Return the private servers that another process runs in this directory (`feedmill up`), if one does."""
    if not is_held(settings.home / "up"):
        return None
    try:
        return Addresses(**json.loads(_file(settings.home).read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None  # it is only starting, or about to end


@contextmanager
def open_servers(settings: LocalSettings) -> Iterator[tuple[Addresses, Servers | None]]:
    """Yield the given servers, else private ones whose data is kept between runs; other commands `find` them."""
    there = configured(settings)
    if there is not None:
        yield there, None
        return
    with private_servers(settings.home / "up") as servers:
        addresses = Addresses.of(servers)
        file = _file(settings.home)
        file.touch(mode=0o600)
        file.write_text(json.dumps(asdict(addresses)), encoding="utf-8")
        try:
            yield addresses, servers
        finally:
            file.unlink()


@contextmanager
def open_database(settings: LocalSettings, *, create: bool = False) -> Iterator[str]:
    """Yield the database of the given servers, else of those that run here; else run the kept one for the block.

    Args:
        settings: where the servers are.
        create: make a private one if there is none yet.

    Raises:
        ConfigurationError: there is none.
    """
    there = configured(settings) or find_running(settings)
    if there is not None:
        yield there.database_url
        return
    place = settings.home / "up"
    if not ((place / "postgres").exists() or (create and is_installed())):
        yield find(settings).database_url  # which says what to do
        return
    print(f"no servers run here: using the private database in {place}", file=sys.stderr)
    with private_database(place) as database_url:
        migrate(database_url)
        yield database_url


def _file(home: Path) -> Path:
    return home / "up" / "addresses.json"
