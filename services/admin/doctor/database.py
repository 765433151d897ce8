"""Checks the database: the connection, its version, the migrations, the clock, how full it is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import psycopg
from psycopg import errors
from psycopg.rows import dict_row

from services.admin.doctor.findings import Finding, error, judge_clock, judge_schema, judge_version, warning, well
from shared.database.migrate import read_migrations
from shared.database.postgres import LIVELINESS, SCHEMA_VERSION, Connection
from shared.observability.secrets import mask_credentials

LEAST_VERSION = "14"
SECONDS = 10.0
FULL = 0.9
"""Of the connections that the server allows."""

_ADVICE = {
    "password authentication failed": "correct user and password in FEEDMILL_DATABASE_URL",
    "no password supplied": "put the password into FEEDMILL_DATABASE_URL, or into the directory of FEEDMILL_SECRETS",
    "does not exist": "create it (`CREATE DATABASE …`, `CREATE ROLE …`), or correct FEEDMILL_DATABASE_URL",
    "too many": "raise max_connections, or end some connections",
    "refused": "start PostgreSQL, or correct host and port in FEEDMILL_DATABASE_URL",
    "resolve": "correct the host in FEEDMILL_DATABASE_URL",
}
_USUAL_ADVICE = "look whether PostgreSQL runs, and at FEEDMILL_DATABASE_URL"


async def check_database(url: str) -> AsyncIterator[Finding]:
    """Yield findings; after an error of the connection there are no others."""
    try:
        async with asyncio.timeout(SECONDS):
            connection = await psycopg.AsyncConnection.connect(
                url, row_factory=dict_row, autocommit=True, application_name="feedmill doctor", **LIVELINESS
            )
    except (psycopg.Error, OSError, TimeoutError) as failure:
        said = mask_credentials(" ".join(str(failure).split())) or f"no answer within {SECONDS:g} s"
        advice = next((advice for words, advice in _ADVICE.items() if words in said), _USUAL_ADVICE)
        yield error("database", f"{mask_credentials(url)}: {said}", advice)
        return
    async with connection:
        yield well("database", f"connected to {mask_credentials(url)}")
        for check in (_check_version, _check_schema, _check_clock, _check_size):
            try:
                async with asyncio.timeout(SECONDS):
                    yield await check(connection)
            except (psycopg.Error, TimeoutError) as failure:
                said = mask_credentials(" ".join(str(failure).split())) or f"no answer within {SECONDS:g} s"
                yield error("database", said, _USUAL_ADVICE)


async def _one(connection: Connection, statement: str) -> dict[str, Any]:
    cursor = await connection.execute(statement.encode())
    row = await cursor.fetchone()
    assert row is not None
    return row


async def _check_version(connection: Connection) -> Finding:
    row = await _one(connection, "SELECT current_setting('server_version') AS version")
    return judge_version("PostgreSQL", row["version"], LEAST_VERSION)


async def _check_schema(connection: Connection) -> Finding:
    try:
        cursor = await connection.execute("SELECT version, checksum FROM schema_migrations")
        applied = {row["version"]: row["checksum"] for row in await cursor.fetchall()}
    except errors.UndefinedTable:
        return error("migrations", "there are no tables yet", "run `feedmill migrate`")
    except errors.InsufficientPrivilege:
        return warning("migrations", "this role may not read schema_migrations", "run this as the role that migrates")
    changed = [m for m in read_migrations() if applied.get(m.version, m.checksum) != m.checksum]
    if changed:
        names = ", ".join(f"{migration.version:04d}_{migration.name}" for migration in changed)
        return error("migrations", f"other text was applied than is here: {names}", "run the version that migrated")
    return judge_schema(max(applied, default=0), SCHEMA_VERSION)


async def _check_clock(connection: Connection) -> Finding:
    before = datetime.now(UTC)
    row = await _one(connection, "SELECT clock_timestamp() AS at")
    return judge_clock(((before + (datetime.now(UTC) - before) / 2) - row["at"]).total_seconds())


async def _check_size(connection: Connection) -> Finding:
    row = await _one(
        connection,
        "SELECT pg_database_size(current_database()) AS bytes, current_setting('max_connections')::int AS most,"
        " (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend') AS used",
    )
    said = f"{row['bytes'] / 2**30:.2f} GiB, {row['used']} of {row['most']} connections"
    if row["used"] > FULL * row["most"]:
        return warning("database", said, "raise max_connections, or put a PgBouncer in front of it")
    return well("database", said)
