"""The database that commands use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from local.addresses import open_database
from services.admin.registry import Connection, connect
from services.cli.settings import CliSettings
from shared.settings import read_settings


@contextmanager
def connect_here(*, create: bool = False) -> Iterator[Connection]:
    """Like `connect`, to the database of the given servers, or of the private ones here (`open_database`)."""
    with (
        open_database(read_settings(CliSettings), create=create) as database_url,
        connect(database_url) as connection,
    ):
        yield connection
