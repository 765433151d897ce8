"""SQL migrations: in order, each once, safe when two services start together."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from shared.database.postgres import LIVELINESS, transaction_bounds
from shared.errors import ConfigurationError, DatabaseUnavailable
from shared.observability.secrets import mask_credentials

DIRECTORY = Path(__file__).parent / "migrations"

LOCK_KEY = 0x_FEED_0001
"""One advisory lock for all migration runs: the second waits, then finds nothing to do."""

_NAME = re.compile(r"^(\d{4})_(\w+)\.sql$")


@dataclass(frozen=True)
class Migration:
    """One file of `migrations/`: `0001_name.sql`."""

    version: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        """SHA-256 of the text: a migration that was applied must not change any more."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


def read_migrations(directory: Path = DIRECTORY) -> list[Migration]:
    """Return the migrations in order.

    Raises:
        ConfigurationError: a file whose name does not fit, a version twice, or a gap.
    """
    migrations = []
    for path in sorted(directory.glob("*.sql")):
        match = _NAME.match(path.name)
        if match is None:
            raise ConfigurationError(f"{path.name} is no migration: expected 0001_name.sql")
        migrations.append(Migration(int(match.group(1)), match.group(2), path.read_text(encoding="utf-8")))
    versions = [migration.version for migration in migrations]
    if versions != list(range(1, len(versions) + 1)):
        raise ConfigurationError(f"migrations must count 1, 2, 3 …; found {versions}")
    return migrations


def migrate(database_url: str, directory: Path = DIRECTORY) -> list[Migration]:
    """Apply what is missing, each migration in a transaction of its own; return what was applied.

    Raises:
        DatabaseUnavailable: the server is away, refuses us, or leaves us in the middle.
        ConfigurationError: an applied migration was changed since, or a migration's SQL fails.
    """
    migrations = read_migrations(directory)
    try:
        return _migrate(database_url, migrations)
    except psycopg.OperationalError as error:  # away from the start, or lost in the middle: the next run goes on
        raise DatabaseUnavailable(f"{mask_credentials(database_url)}: {mask_credentials(str(error))}") from error


def _migrate(database_url: str, migrations: Sequence[Migration]) -> list[Migration]:
    about: dict[str, Any] = {"application_name": "feedmill migrate", **LIVELINESS}
    with psycopg.connect(database_url, autocommit=True, **about) as connection:
        connection.execute("SELECT pg_advisory_lock(%s)", [LOCK_KEY])
        connection.execute(
            """
            CREATE TABLE IF NOT EXISTS schema_migrations (
                version integer PRIMARY KEY,
                name text NOT NULL,
                checksum text NOT NULL,
                applied_at timestamptz NOT NULL DEFAULT now()
            )
            """
        )
        missing = _missing(connection, migrations)
        for migration in missing:
            _apply(connection, migration)
    return missing


def _missing(connection: psycopg.Connection, migrations: Sequence[Migration]) -> list[Migration]:
    applied: dict[int, str] = dict(connection.execute("SELECT version, checksum FROM schema_migrations").fetchall())
    for migration in migrations:
        if applied.get(migration.version, migration.checksum) != migration.checksum:
            raise ConfigurationError(
                f"migration {migration.version:04d}_{migration.name} was changed after it had been applied;"
                " put the file back as it was and write a new migration"
            )
    return [migration for migration in migrations if migration.version not in applied]


def _apply(connection: psycopg.Connection, migration: Migration) -> None:
    try:
        with connection.transaction():
            connection.execute(*transaction_bounds())
            connection.execute(migration.sql.encode())
            connection.execute(
                "INSERT INTO schema_migrations (version, name, checksum) VALUES (%s, %s, %s)",
                [migration.version, migration.name, migration.checksum],
            )
    except psycopg.OperationalError:
        raise
    except psycopg.Error as error:
        raise ConfigurationError(
            f"migration {migration.version:04d}_{migration.name} failed and was rolled back: {error}"
        ) from error
