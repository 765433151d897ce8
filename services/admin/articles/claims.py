"""What consumers do with pending articles, by the functions of docs/how-to/consume.md; and a person in their place."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, LiteralString
from uuid import UUID

from services.admin.actor import Actor, audit
from shared.database.postgres import Connection, Database

ROUND = 1000
"""So many articles are revived in one transaction."""

NAMED = 20
"""So many keys of a call stand in the audit log."""

COLUMNS: LiteralString = (
    "md5, feed_id, entry_id, url, title, body, html, content_quality, content_hash, published_at, updated_at, author,"
    " categories, enclosures, language, flags, detected_language, language_confidence, topic,"
    " topic_confidence, entities, duplicate_of, duplicate_kind, duplicate_score, revision, retry_count, expiries,"
    " created_at, claimed_until, lease_id"
)

Leases = Sequence[UUID] | None
"""Whose articles a call may touch: those held under one of these leases; None: anybody's."""


async def call_as(connection: Connection, actor: Actor) -> None:
    """Let the following calls of this transaction be counted for this consumer."""
    await connection.execute("SELECT set_config('feedmill.consumer', %s, true)", [actor.name])


async def claim(connection: Connection, most: int, lease: timedelta, max_expiries: int) -> list[dict[str, Any]]:
    """Claim up to `most` articles, in the order of claims."""
    query: LiteralString = f"SELECT {COLUMNS} FROM claim_pending_articles(%s, %s, %s)"  # noqa: S608 - our own text
    return await (await connection.execute(query, [most, lease, max_expiries])).fetchall()


async def acknowledge(
    connection: Connection, md5s: Sequence[str], hashes: Sequence[str | None]
) -> tuple[int, list[str]]:
    """Remove articles that are done; return how many, and which of them stay pending because their text has changed.

    Args:
        connection: in a transaction.
        md5s: the articles.
        hashes: in the same order the `content_hash` of the text that is done; None: of the one that was claimed last.
    """
    removed = await _number(connection, "SELECT ack_articles(%s::text[], %s::text[]) AS n", [list(md5s), list(hashes)])
    if removed == len(md5s):
        return removed, []
    cursor = await connection.execute("SELECT md5 FROM pending_articles WHERE md5 = ANY(%s) ORDER BY md5", [list(md5s)])
    return removed, [row["md5"] for row in await cursor.fetchall()]


async def fail(
    connection: Connection,
    md5s: Sequence[str],
    leases: Leases,
    error: str,
    *,
    max_failures: int,
    retry_after: timedelta | None,
) -> list[dict[str, Any]]:
    """Count a failure; return md5, retry_count and retry_at (None: it is dead now) of each article that was held."""
    cursor = await connection.execute(
        "SELECT * FROM fail_articles(%s::text[], %s, %s::uuid[], %s, %s)",
        [list(md5s), error, _listed(leases), max_failures, retry_after],
    )
    return await cursor.fetchall()


async def renew(connection: Connection, md5s: Sequence[str], leases: Leases, lease: timedelta) -> list[str]:
    """Let the leases run from now; return the md5s that are still held."""
    cursor = await connection.execute(
        "SELECT md5 FROM renew_articles(%s::text[], %s, %s::uuid[]) AS md5", [list(md5s), lease, _listed(leases)]
    )
    return [row["md5"] for row in await cursor.fetchall()]


async def release(connection: Connection, md5s: Sequence[str], leases: Leases = None) -> int:
    """Let articles be given out again at once, with nothing counted; return how many were held."""
    return await _number(
        connection, "SELECT release_articles(%s::text[], %s::uuid[]) AS n", [list(md5s), _listed(leases)]
    )


async def bury(connection: Connection, md5s: Sequence[str], reason: str) -> int:
    """Move pending articles to the dead ones, with the reason; return how many."""
    return await _number(connection, "SELECT bury_articles(%s, %s) AS n", [list(md5s), reason])


async def revive(connection: Connection, actor: Actor, md5s: Sequence[str]) -> int:
    """Make dead articles pending again, with nothing counted against them; return how many."""
    revived = await _number(connection, "SELECT revive_articles(%s) AS n", [list(md5s)])
    await audit_articles(connection, actor, "article.revive", md5s, done=revived)
    return revived


async def revive_all(database: Database, actor: Actor) -> int:
    """Make all dead articles pending again whose feed is still there; return how many. Some at a time."""
    revived, last = 0, ""
    while True:
        async with database.transaction() as connection:
            cursor = await connection.execute(
                "SELECT md5 FROM dead_articles WHERE md5 > %s ORDER BY md5 LIMIT %s", [last, ROUND]
            )
            md5s = [row["md5"] for row in await cursor.fetchall()]
            if not md5s:
                return revived
            revived += await revive(connection, actor, md5s)
            last = md5s[-1]


async def audit_articles(
    connection: Connection, actor: Actor, action: str, md5s: Sequence[str], **details: Any
) -> None:
    """Write that somebody did something with these articles; only the first keys are named."""
    await audit(connection, actor, action, None, {"articles": len(md5s), "md5s": list(md5s[:NAMED]), **details})


def _listed(leases: Leases) -> list[UUID] | None:
    return None if leases is None else list(leases)


async def _number(connection: Connection, query: LiteralString, values: list[Any]) -> int:
    row = await (await connection.execute(query, values)).fetchone()
    assert row is not None
    return int(row["n"] or 0)
