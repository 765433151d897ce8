"""Asks PostgreSQL how it is itself, at next to no cost."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from psycopg import errors

from services.admin.health.alarms.measured import DatabaseState
from shared.database.postgres import SCHEMA_VERSION, Connection

_ITSELF = """
SELECT clock_timestamp() AS at, pg_is_in_recovery() AS is_standby,
    current_setting('transaction_read_only')::boolean AS is_read_only,
    to_regclass('schema_migrations') IS NOT NULL AS has_tables
"""

# Forty times what may be held in memory, so it goes to a file: on the disk of the tables, and without a lock or a row.
_SCRATCH = "SELECT set_config('work_mem', '64kB', true), (SELECT count(*) FROM generate_series(1, 100000))"

_SCHEMA = "SELECT coalesce(max(version), 0) AS version FROM schema_migrations"

_NEWEST = """
SELECT extract(epoch FROM greatest(
    (SELECT started_at FROM feed_fetch_log WHERE ok ORDER BY started_at DESC LIMIT 1),
    (SELECT started_at FROM feed_fetch_log WHERE NOT ok ORDER BY started_at DESC LIMIT 1)
) - clock_timestamp())::float8 AS ahead
"""


async def read_state(connection: Connection) -> DatabaseState:
    """Return how the server is. Raises what the database raises."""
    before = datetime.now(UTC)
    itself = await _one(connection, _ITSELF)
    now = before + (datetime.now(UTC) - before) / 2
    schema, ahead = 0, 0.0
    if itself["has_tables"]:
        schema = (await _one(connection, _SCHEMA))["version"]
    if schema:
        ahead = (await _one(connection, _NEWEST))["ahead"] or 0.0
    return DatabaseState(
        schema=schema,
        needs_schema=SCHEMA_VERSION,
        is_read_only=itself["is_read_only"],
        is_standby=itself["is_standby"],
        is_full=not await _has_room(connection),
        ahead_seconds=(now - itself["at"]).total_seconds(),
        log_ahead_seconds=max(ahead, 0.0),
    )


async def _has_room(connection: Connection) -> bool:
    try:
        async with connection.transaction():
            await connection.execute(_SCRATCH.encode())
    except errors.DiskFull:
        return False
    return True


async def _one(connection: Connection, statement: str) -> dict[str, Any]:
    cursor = await connection.execute(statement.encode())
    row = await cursor.fetchone()
    assert row is not None
    return row
