"""Waits for what PostgreSQL does. Tests beside this one share the server, so it asks for the test's own database."""

from __future__ import annotations

import asyncio

from shared.database.postgres import Database

BLOCKED = """
SELECT FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend' AND wait_event_type = 'Lock'
"""
"""The test's statements that wait for a lock."""

PATIENCE = 60.0
"""Seconds: a transaction of another test may hold a lock for its 30."""


async def until_blocked(database: Database) -> None:
    """Return when a statement waits for a lock."""
    await _until(database, BLOCKED)


async def until_others_ended(database: Database) -> None:
    """Return when all transactions of the whole server have ended that go on now, those of other tests among them."""
    async with database.transaction() as connection:
        row = await (await connection.execute("SELECT pg_current_xact_id()::text AS now")).fetchone()
    assert row
    await _until(database, f"SELECT WHERE pg_snapshot_xmin(pg_current_snapshot()) > '{row['now']}'::xid8")


async def _until(database: Database, condition: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            async with database.transaction() as connection:
                if (await connection.execute(condition.encode())).rowcount:
                    return
            await asyncio.sleep(0.01)
