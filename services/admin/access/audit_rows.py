"""The audit log: who changed what, and when."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from shared.database.postgres import Connection

_LIST = """
SELECT id, at, actor, token_id, address, action, target, details FROM audit_log
WHERE {} ORDER BY at DESC, id DESC LIMIT %(limit)s
"""

SWEPT_ROWS = 10_000
"""Deleted in one transaction, at most."""


async def list_rows(
    connection: Connection,
    *,
    actor: str | None = None,
    action: str | None = None,
    target: str | None = None,
    since: datetime | None = None,
    limit: int,
    after: Sequence[Any] | None = None,
) -> list[dict[str, Any]]:
    """Return rows, the latest first.

    Args:
        connection: in a transaction.
        actor: only what this actor did.
        action: only this action, such as `feed.update`.
        target: only what was done to the thing with this id.
        since: only later rows.
        limit: at most so many.
        after: `at` and `id` of the row before.
    """
    wanted = {"actor": actor, "action": action, "target": target}
    conditions = [f"{column} = %({column})s" for column, value in wanted.items() if value is not None]
    if since is not None:
        conditions.append("at >= %(since)s")
    if after is not None:
        conditions.append("(at, id) < (%(at)s::timestamptz, %(id)s)")
    at, id_ = after or (None, None)
    cursor = await connection.execute(
        _LIST.format(" AND ".join(conditions or ["true"])).encode(),
        {**wanted, "since": since, "at": at, "id": id_, "limit": limit},
    )
    return await cursor.fetchall()


async def forget_rows(connection: Connection, days: float) -> int:
    """Delete the oldest rows that are older than so many days; return how many."""
    cursor = await connection.execute(
        "DELETE FROM audit_log WHERE id IN (SELECT id FROM audit_log"
        " WHERE at < now() - make_interval(secs => %s) ORDER BY at, id LIMIT %s)",
        [days * 86_400, SWEPT_ROWS],
    )
    return cursor.rowcount
