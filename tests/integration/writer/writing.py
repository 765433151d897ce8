"""Steps that several tests of the writer's rows share."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from services.writer.schedule.feed_state import Rules
from services.writer.store import Policy, Written, write_batch
from shared.database.postgres import Database
from shared.wire.results import FeedFetched
from tests.factories import NOW


async def claim(database: Database, feed_id: int) -> UUID:
    claim_id = uuid4()
    async with database.transaction() as connection:
        await connection.execute(
            "UPDATE feeds SET claim_id = %s, claim_expires_at = now() + interval '1 hour' WHERE id = %s",
            [claim_id, feed_id],
        )
    return claim_id


async def write(
    database: Database, *batch: FeedFetched, later: timedelta = timedelta(), policy: Policy | None = None
) -> Written:
    async with database.transaction() as connection:
        return await write_batch(
            connection, batch, now=NOW + later, rules=Rules(), proxy_hosts=frozenset(), policy=policy
        )


async def drain(database: Database) -> None:
    async with database.transaction() as connection:
        await connection.execute("DELETE FROM pending_articles")


async def rows(database: Database, query: str) -> list[dict[str, Any]]:
    async with database.transaction() as connection:
        return await (await connection.execute(query.encode())).fetchall()
