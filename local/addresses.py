"""Where RabbitMQ and PostgreSQL are: given by the environment, or private ones that are started here."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from psycopg.conninfo import conninfo_to_dict

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


def find_database(settings: LocalSettings) -> str:
    """Return the URL of the given database, with or without a given broker; else as `find`."""
    return str(settings.database_url) if settings.database_url else find(settings).database_url


def find_broker(settings: LocalSettings) -> str:
    """Return the URL of the given broker, with or without a given database; else as `find`."""
    return str(settings.amqp_url) if settings.amqp_url else find(settings).amqp_url


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
        files = {
            _file(settings.home): json.dumps(asdict(addresses)),
            _psql_file(settings.home): _psql_service(addresses.database_url),
        }
        for file, text in files.items():
            file.touch(mode=0o600)
            file.write_text(text, encoding="utf-8")
        try:
            yield addresses, servers
        finally:
            for file in files:
                file.unlink()


def psql_command(settings: LocalSettings) -> str:
    """Return a shell command, without a password, that opens the given database, else the private one that runs."""
    if settings.database_url:
        return 'psql "$FEEDMILL_DATABASE_URL"'
    return f"PGSERVICEFILE={shlex.quote(str(_psql_file(settings.home).resolve()))} psql service=feedmill"


def _psql_service(database_url: str) -> str:
    """Return the file in which libpq finds the connection `feedmill`."""
    parts = conninfo_to_dict(database_url)
    return "\n".join(["[feedmill]", *(f"{name}={value}" for name, value in parts.items())]) + "\n"


@contextmanager
def open_database(settings: LocalSettings, *, create: bool = False) -> Iterator[str]:
    """Yield the given database, else that of the servers that run here; else run the kept one for the block.

    The broker need not be given.

    Args:
        settings: where the servers are.
        create: make a private one if there is none yet.

    Raises:
        ConfigurationError: there is none.
    """
    if settings.database_url:
        yield str(settings.database_url)
        return
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


def _psql_file(home: Path) -> Path:
    return home / "up" / "pg_service.conf"


def _file(home: Path) -> Path:
    return home / "up" / "addresses.json"
