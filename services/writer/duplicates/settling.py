"""Compares new articles once more when every transaction that may not have seen them has ended.

Two writers, or two batches of one, that get a story at the same moment don't see each other's article, be it the same
text or the same address. So each new article with a sketch stands in `unsettled_articles`, too. One writer at a time
compares those with each other, about once a second: of two the later one, by `first_seen_at` and then md5, becomes the
duplicate. A row goes when all transactions have ended that began before it could be seen. A writer that dies in between
leaves its rows to the others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, LiteralString

from prometheus_client import Counter

from services.writer.articles.similar import decide
from services.writer.articles.sketched import Sketched
from services.writer.duplicates.sketches import read_sketches
from services.writer.store import Duplicates
from shared.database.postgres import Connection, Database

SETTLED = Counter(
    "feedmill_duplicates_settled_total", "Articles that were found to be near-duplicates after their transaction."
)

LOCK = 0x_FEED_0017
"""Advisory lock: one writer settles at a time."""

ROUND_SECONDS = 1.0
"""Between two rounds of a writer."""

PATIENCE = "15 minutes"
"""No transaction of a writer takes as long. One of somebody else may."""

PATIENCE_UNSEEN = "1 hour"
"""Nobody compares: comparing fails, or near-duplicates are off."""

MOST_FRESH = 5_000
"""New articles that are compared in one round."""

_BEGIN = """
SELECT CASE WHEN EXISTS (SELECT FROM unsettled_articles) THEN pg_try_advisory_xact_lock(%s) ELSE false END AS ours,
    pg_snapshot_xmin(pg_current_snapshot())::text AS ended_before
"""

_SEEN = """
UPDATE unsettled_articles SET settles_at = pg_current_xact_id() WHERE md5 IN (
    SELECT md5 FROM unsettled_articles WHERE settles_at IS NULL ORDER BY added_at, md5 LIMIT %s
) RETURNING md5
"""
"""The transaction's id is higher than that of any that may not have seen these rows: these have begun by now."""

_PAIRS = """
WITH fresh AS MATERIALIZED (
    SELECT md5, feed_id, unnest(keys) AS key FROM unsettled_articles WHERE md5 = ANY(%b::text[])
)
SELECT DISTINCT fresh.md5 AS one, every.md5 AS other
FROM fresh JOIN (SELECT md5, feed_id, unnest(keys) AS key FROM unsettled_articles) AS every
    ON every.key = fresh.key AND every.feed_id <> fresh.feed_id
"""

_ADDRESSES = """
SELECT item.md5 AS one, item.first_seen_at AS one_at, other.md5 AS other, other.first_seen_at AS other_at
FROM feed_items AS item JOIN feed_items AS other ON other.canonical = item.canonical AND other.md5 <> item.md5
WHERE item.md5 = ANY(%b::text[]) AND item.duplicate_of IS NULL AND other.duplicate_of IS NULL
"""

_FOLLOWERS = """
SELECT unsettled.md5, unsettled.duplicate_of, original.duplicate_of AS first
FROM unsettled_articles AS unsettled JOIN feed_items AS original ON original.md5 = unsettled.duplicate_of
WHERE original.duplicate_of IS NOT NULL OR unsettled.duplicate_of = ANY(%b::text[])
"""

_FLAG: tuple[LiteralString, ...] = (
    "SELECT FROM feed_items WHERE md5 = ANY(%(names)b::text[]) ORDER BY md5 FOR NO KEY UPDATE",
    """
    UPDATE feed_items SET duplicate_of = first, duplicate_kind = coalesce(kind, duplicate_kind),
        duplicate_score = CASE WHEN kind IS NULL THEN duplicate_score ELSE score END
    FROM unnest(%(names)b::text[], %(firsts)b::text[], %(kinds)b::text[], %(scores)b::real[])
        AS change (name, first, kind, score) WHERE feed_items.md5 = change.name
    """,
    "SELECT FROM pending_articles WHERE md5 = ANY(%(names)b::text[]) ORDER BY md5 FOR UPDATE",
    """
    DELETE FROM pending_articles USING unnest(%(names)b::text[], %(kinds)b::text[]) AS change (name, kind)
    WHERE %(drop)s AND pending_articles.md5 = change.name AND kind IS NOT NULL
        AND (lease_id IS NULL OR claimed_until <= clock_timestamp())
    """,
    """
    UPDATE pending_articles SET duplicate_of = first, duplicate_kind = coalesce(kind, duplicate_kind),
        duplicate_score = CASE WHEN kind IS NULL THEN duplicate_score ELSE score END
    FROM unnest(%(names)b::text[], %(firsts)b::text[], %(kinds)b::text[], %(scores)b::real[])
        AS change (name, first, kind, score) WHERE pending_articles.md5 = change.name
    """,
    """
    DELETE FROM article_sketches WHERE md5 IN (
        SELECT md5 FROM article_sketches WHERE md5 = ANY(%(names)b::text[]) ORDER BY md5 FOR UPDATE
    )
    """,
    """
    UPDATE unsettled_articles SET keys = '{}', duplicate_of = first
    FROM unnest(%(names)b::text[], %(firsts)b::text[]) AS change (name, first)
    WHERE unsettled_articles.md5 = change.name
    """,
)
"""In the order of locks of all transactions."""

_FORGET = "DELETE FROM unsettled_articles WHERE settles_at <= %s::text::xid8"

_GIVE_UP = """
DELETE FROM unsettled_articles WHERE md5 IN (
    SELECT md5 FROM unsettled_articles
    WHERE added_at < now() - CASE WHEN settles_at IS NULL THEN %s ELSE %s END::interval FOR UPDATE SKIP LOCKED
)
"""


@dataclass(frozen=True)
class Change:
    """What an article becomes."""

    first: str
    """The article that it is a duplicate of."""
    kind: Literal["address", "title", "text"] | None = None
    """None: it was a duplicate of another one."""
    score: float | None = None


@dataclass(frozen=True)
class Settling:
    """Compares what is not settled."""

    database: Database
    duplicates: Duplicates
    most_fresh: int = MOST_FRESH

    async def round(self) -> None:
        """Flag, or drop, the later one of each two that are one story. Ends if another writer settles."""
        async with self.database.transaction() as connection:  # its own: a comparison that fails keeps nothing forever
            await connection.execute(_GIVE_UP, [PATIENCE_UNSEEN, PATIENCE])
        if self.duplicates == "off":
            return
        async with self.database.transaction() as connection:
            row = await (await connection.execute(_BEGIN, [LOCK])).fetchone()
            if row and row["ours"]:
                settled = await settle(
                    connection, self.duplicates, ended_before=row["ended_before"], most_fresh=self.most_fresh
                )
                SETTLED.inc(settled)


async def settle(connection: Connection, duplicates: Duplicates, *, ended_before: str, most_fresh: int) -> int:
    """Settle what can be settled; return how many articles have become duplicates.

    Args:
        connection: in a transaction that holds the lock.
        duplicates: what to do with them.
        ended_before: all transactions with lower ids have ended, and everything below sees what they wrote.
        most_fresh: how many new articles are compared; the oldest ones.
    """
    fresh = [row["md5"] for row in await (await connection.execute(_SEEN, [most_fresh])).fetchall()]
    found = await _compare(connection, fresh)
    changes = dict(found)
    cursor = await connection.execute(_FOLLOWERS, [list(found)])
    for row in await cursor.fetchall():
        first = row["first"] or found[row["duplicate_of"]].first
        changes[row["md5"]] = Change(found[first].first if first in found else first)
    if changes:
        names = sorted(changes)
        parameters = {
            "names": names,
            "firsts": [changes[name].first for name in names],
            "kinds": [changes[name].kind for name in names],
            "scores": [changes[name].score for name in names],
            "drop": duplicates == "drop",
        }
        for statement in _FLAG:
            await connection.execute(statement, parameters)
    if len(fresh) < most_fresh:  # else those that wait may have to be compared with these
        await connection.execute(_FORGET, [ended_before])
    return len(found)


async def _compare(connection: Connection, fresh: Sequence[str]) -> dict[str, Change]:
    """Return what becomes of articles that are not settled, `fresh` being seen for the first time."""
    if not fresh:
        return {}
    cursor = await connection.execute(_ADDRESSES, [list(fresh)])
    addresses = _choose_first([tuple(row.values()) for row in await cursor.fetchall()])
    pairs: dict[str, set[str]] = defaultdict(set)
    for row in await (await connection.execute(_PAIRS, [list(fresh)])).fetchall():
        pairs[row["one"]].add(row["other"])
        pairs[row["other"]].add(row["one"])
    return choose(pairs, await read_sketches(connection, pairs), addresses)


def _choose_first(pairs: Iterable[tuple[str, datetime, str, datetime]]) -> dict[str, Change]:
    """Return what becomes of articles of one address, given in pairs with their times: the first one stays."""
    firsts: dict[str, tuple[datetime, str]] = {}
    for one, one_at, other, other_at in pairs:
        early, late = sorted(((one_at, one), (other_at, other)))
        firsts[late[1]] = min(early, firsts.get(late[1], early))
    return {name: Change(first, "address") for name, (_, first) in firsts.items()}


def choose(
    pairs: Mapping[str, set[str]], sketches: Mapping[str, tuple[datetime, Sketched]], addresses: Mapping[str, Change]
) -> dict[str, Change]:
    """Return what becomes of these articles: each is a duplicate of the first one that it is like, if any.

    `addresses` has those that are duplicates by their address.
    """

    def order(name: str) -> tuple[datetime, str]:
        return sketches[name][0], name

    changes: dict[str, Change] = dict(addresses)
    for name in sorted(sketches.keys() - addresses.keys(), key=order):
        before = (other for other in pairs[name] if other in sketches and order(other) < order(name))
        for other in sorted(before, key=order):
            if other not in changes and (match := decide(sketches[name][1], sketches[other][1])):
                changes[name] = Change(other, *match)
                break
    return {name: replace(change, first=_end(change.first, changes)) for name, change in changes.items()}


def _end(name: str, changes: Mapping[str, Change]) -> str:
    """Return the first article of a chain: an article of the same address may be like an earlier one."""
    while name in changes:
        name = changes[name].first
    return name
