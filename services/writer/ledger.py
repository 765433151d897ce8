"""The writer's SQL for the ledger `feed_items`: one small row for each article ever seen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TypeVar
from uuid import UUID

from services.writer.articles.article import Article
from services.writer.articles.identity import MAX_UPDATES, Ledger, Row, entry_key
from shared.database.postgres import Connection
from shared.wire.results import FeedFetched

ROWS_A_STATEMENT = 500
"""Of articles: more gains nothing (measured), and memory grows with it on both sides."""

LAST_SEEN_EVERY = "1 day"
"""`last_seen_at` is refreshed at most this often per article: most polls repeat what is known."""

T = TypeVar("T")


def chunks(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield the items some at a time: a result may hold thousands, and their texts stand in one statement."""
    for first in range(0, len(items), ROWS_A_STATEMENT):
        yield items[first : first + ROWS_A_STATEMENT]


async def read_ledger(connection: Connection, batch: Iterable[FeedFetched]) -> Ledger:
    """Return all rows that the entries of the batch may be: by key, and by link and title, now or when it was named.

    The feeds are locked, and nobody else writes their keys: what is read holds until the commit.
    """
    titles: dict[str, None] = {}
    keys: dict[tuple[int, UUID], None] = {}
    for fetched in batch:
        for entry in fetched.entries:
            titles[entry.md5] = None
            if key := entry_key(entry):
                keys[fetched.feed_id, key] = None
    if not titles:
        return Ledger()
    cursor = await connection.execute(
        """
        SELECT md5, feed_id, content_hash, entry_key, title_md5, updates, first_seen_at, last_seen_at
        FROM feed_items WHERE md5 = ANY(%(titles)b::text[])
        UNION
        SELECT md5, feed_id, content_hash, entry_key, title_md5, updates, first_seen_at, last_seen_at
        FROM feed_items WHERE title_md5 = ANY(%(titles)b::text[])
        UNION
        SELECT md5, feed_id, content_hash, entry_key, title_md5, updates, first_seen_at, last_seen_at
        FROM unnest(%(feeds)b::bigint[], %(keys)b::uuid[]) AS wanted (feed_id, entry_key)
        JOIN feed_items USING (feed_id, entry_key)
        """,
        {"titles": list(titles), "feeds": [feed_id for feed_id, _ in keys], "keys": [key for _, key in keys]},
    )
    return Ledger(
        Row(
            name=row["md5"],
            feed_id=row["feed_id"],
            title_md5=row["title_md5"] or row["md5"],
            content_hash=row["content_hash"],
            key=row["entry_key"],
            updates=row["updates"],
            is_brief=row["first_seen_at"] == row["last_seen_at"],
        )
        for row in await cursor.fetchall()
    )


async def find_originals(
    connection: Connection, articles: Sequence[Article], keys: Mapping[str, UUID]
) -> dict[str, str]:
    """Return which of the articles are duplicates, and of which: the one that was seen first, or is first here."""
    if not keys:
        return {}
    cursor = await connection.execute(
        """
        SELECT DISTINCT ON (canonical) canonical, md5 FROM feed_items
        WHERE canonical = ANY(%b::uuid[]) AND duplicate_of IS NULL
        ORDER BY canonical, first_seen_at, md5
        """,
        [list(set(keys.values()))],
    )
    first: dict[UUID, str] = {row["canonical"]: row["md5"] for row in await cursor.fetchall()}
    found: dict[str, str] = {}
    for article in articles:
        name = article.name
        if name in keys and (original := first.setdefault(keys[name], name)) != name:
            found[name] = original
    return found


async def insert_items(
    connection: Connection,
    articles: Sequence[Article],
    ledger: Ledger,
    canonical: Mapping[str, UUID],
    originals: Mapping[str, str],
    now: datetime,
) -> set[str]:
    """Insert rows for new articles, given by name; return the names that were new even against writers beside us.

    Args:
        connection: in the writer's transaction.
        articles: none of which was known.
        ledger: their rows.
        canonical: what they have in common with themselves under other addresses.
        originals: of those that are duplicates.
        now: when they were seen.
    """
    inserted: set[str] = set()
    for some in chunks(articles):
        cursor = await connection.execute(
            """
            INSERT INTO feed_items (md5, feed_id, content_hash, url, canonical, duplicate_of, entry_key, title_md5,
                first_seen_at, last_seen_at)
            SELECT md5, feed_id, content_hash, url, canonical, duplicate_of, entry_key, nullif(title_md5, md5),
                %(now)s, %(now)s
            FROM unnest(%(md5)b::text[], %(feed_id)b::bigint[], %(hash)b::text[], %(url)b::text[],
                %(canonical)b::uuid[], %(original)b::text[], %(key)b::uuid[], %(title)b::text[])
                AS item (md5, feed_id, content_hash, url, canonical, duplicate_of, entry_key, title_md5)
            ON CONFLICT (md5) DO NOTHING
            RETURNING md5
            """,
            {
                "now": now,
                "md5": [a.name for a in some],
                "feed_id": [a.feed_id for a in some],
                "hash": [a.entry.content_hash for a in some],
                "url": [a.entry.url for a in some],
                "canonical": [canonical.get(a.name) for a in some],
                "original": [originals.get(a.name) for a in some],
                "key": [ledger.rows[a.name].key for a in some],
                "title": [a.entry.md5 for a in some],
            },
        )
        inserted |= {row["md5"] for row in await cursor.fetchall()}
    return inserted


async def note_seen(
    connection: Connection, names: Sequence[str], keys: Mapping[str, UUID], must: set[str], now: datetime
) -> set[str]:
    """Lock, in order, the rows that have to be written, and note that their articles were seen; return which.

    These are the ones that must be, and those that were not written for a day.

    Args:
        connection: in the writer's transaction.
        names: of the known articles that were seen.
        keys: new keys of some of them.
        must: those that have changed, or have a new key.
        now: when they were seen.
    """
    if not names:
        return set()
    cursor = await connection.execute(
        """
        SELECT md5 FROM feed_items
        WHERE md5 = ANY(%(names)b::text[])
          AND (last_seen_at < %(now)s - %(every)s::interval OR md5 = ANY(%(must)b::text[]))
        ORDER BY md5 FOR UPDATE
        """,
        {"names": names, "must": sorted(must), "now": now, "every": LAST_SEEN_EVERY},
    )
    locked = [row["md5"] for row in await cursor.fetchall()]
    if locked:
        await connection.execute(
            """
            UPDATE feed_items SET last_seen_at = %(now)s, entry_key = coalesce(seen.key, entry_key)
            FROM unnest(%(names)b::text[], %(keys)b::uuid[]) AS seen (md5, key) WHERE feed_items.md5 = seen.md5
            """,
            {"now": now, "names": locked, "keys": [keys.get(name) for name in locked]},
        )
    return set(locked)


async def update_items(connection: Connection, changes: Sequence[Article]) -> tuple[dict[str, int], dict[str, str]]:
    """Give locked rows their new text and title; return the updates so far of those that counted, and originals."""
    if not changes:
        return {}, {}
    cursor = await connection.execute(
        """
        UPDATE feed_items
        SET content_hash = change.hash, title_md5 = nullif(change.title_md5, feed_items.md5), updates = updates + 1
        FROM unnest(%(names)b::text[], %(hash)b::text[], %(title)b::text[]) AS change (md5, hash, title_md5)
        WHERE feed_items.md5 = change.md5 AND updates < %(most)s
        RETURNING feed_items.md5, updates, duplicate_of
        """,
        {
            "most": MAX_UPDATES,
            "names": [a.name for a in changes],
            "hash": [a.entry.content_hash for a in changes],
            "title": [a.entry.md5 for a in changes],
        },
    )
    rows = await cursor.fetchall()
    revisions = {row["md5"]: row["updates"] for row in rows}
    return revisions, {row["md5"]: row["duplicate_of"] for row in rows if row["duplicate_of"] is not None}
