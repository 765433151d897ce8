"""SQL migrations: in order, each once, safe when two services start together."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg.errors import InsufficientPrivilege, InvalidSchemaName

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
    """Apply the missing migrations, each in a transaction of its own; return them.

    Raises:
        DatabaseUnavailable: the server is away, refuses the connection, or drops it in the middle.
        ConfigurationError: the role lacks a right, an applied migration was changed since, or a migration's SQL fails.
    """
    migrations = read_migrations(directory)
    about: dict[str, Any] = {"application_name": "feedmill migrate", **LIVELINESS}
    try:
        with psycopg.connect(database_url, autocommit=True, **about) as connection:
            try:
                return _apply_missing(connection, migrations)
            except (InsufficientPrivilege, InvalidSchemaName) as error:
                raise ConfigurationError(_explain_refusal(connection, migrations, error)) from error
    except psycopg.OperationalError as error:  # away from the start, or lost in the middle: the next run goes on
        reason = mask_credentials(" ".join(str(error).split()))
        raise DatabaseUnavailable(f"{mask_credentials(database_url)}: {reason}") from error


def _apply_missing(connection: psycopg.Connection, migrations: Sequence[Migration]) -> list[Migration]:
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
    except (psycopg.OperationalError, InsufficientPrivilege):
        raise
    except psycopg.Error as error:
        raise ConfigurationError(
            f"migration {migration.version:04d}_{migration.name} failed and was rolled back: {error}"
        ) from error


_SCHEMA_RIGHTS = """
SELECT format('%I', current_user), current_database(), target.name, to_regnamespace(target.name) IS NOT NULL,
    coalesce(has_schema_privilege(to_regnamespace(target.name), 'USAGE'), false)
        AND coalesce(has_schema_privilege(to_regnamespace(target.name), 'CREATE'), false)
FROM (SELECT format('%I', coalesce(current_schema(), 'public')) AS name) AS target
"""

_FOREIGN_OBJECTS = """
SELECT what, format('%%I', owner.rolname), owner.rolsuper
FROM (
    SELECT format('TABLE %%I', relname) AS what, relowner AS owner FROM pg_class
    WHERE relnamespace = to_regnamespace(%(schema)s) AND relkind IN ('r', 'v') AND relname = ANY(%(names)s)
    UNION ALL
    SELECT format('ROUTINE %%s', oid::regprocedure), proowner FROM pg_proc
    WHERE pronamespace = to_regnamespace(%(schema)s) AND proname = ANY(%(names)s)
) AS object JOIN pg_roles AS owner ON owner.oid = object.owner
WHERE NOT pg_has_role(owner.oid, 'USAGE') ORDER BY what
"""
"""Our tables, views and functions that only another role may alter."""

_OUR_NAMES = re.compile(
    r"^\s*CREATE (?:OR REPLACE )?(?:TABLE|VIEW|FUNCTION|PROCEDURE) (?:IF NOT EXISTS )?(\w+)", re.MULTILINE
)


def _explain_refusal(connection: psycopg.Connection, migrations: Sequence[Migration], error: psycopg.Error) -> str:
    """Return one line: which right the role lacks, on what, and the statements that give it."""
    found = connection.execute(_SCHEMA_RIGHTS).fetchone()
    assert found is not None
    role, database, schema, exists, has_rights = found
    lacks, remedies = [], []
    if not exists:
        lacks.append(f"a schema {schema} to create tables in")
        remedies.append(f"CREATE SCHEMA {schema} AUTHORIZATION {role};")
    elif not has_rights:
        lacks.append(f"CREATE on schema {schema}")
        remedies.append(f"GRANT USAGE, CREATE ON SCHEMA {schema} TO {role};")
    names = ["schema_migrations", *(name for migration in migrations for name in _OUR_NAMES.findall(migration.sql))]
    foreign = connection.execute(_FOREIGN_OBJECTS, {"schema": schema, "names": names}).fetchall()
    for owner, is_superuser in dict.fromkeys((owner, is_superuser) for _, owner, is_superuser in foreign):
        objects = [what for what, its_owner, _ in foreign if its_owner == owner]
        lacks.append(f"ownership of {objects[0]}{f' and {len(objects) - 1} more' if objects[1:] else ''}")
        # Membership in a superuser's role would give far more than these objects.
        remedies += (
            [f"ALTER {what} OWNER TO {role};" for what in objects] if is_superuser else [f"GRANT {owner} TO {role};"]
        )
    if not lacks:
        return f"database {database} refuses role {role}: {' '.join(str(error).split())}"
    return (
        f"role {role} may not migrate database {database}: it lacks {', '.join(lacks)}."
        f" A superuser, or the owner, can give it: {' '.join(remedies)}"
    )
