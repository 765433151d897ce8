"""The writer's SQL for `pending_articles` and `dead_articles`.

Rows are inserted first, in the order of md5, then changed in that order, then deleted from the dead in that order.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime

from services.writer.articles.article import Article
from services.writer.ledger import chunks
from shared.database.postgres import Connection
from shared.wire.results import Entry

_INSERT = """
INSERT INTO pending_articles AS pending (md5, feed_id, entry_id, url, title, body, html, content_quality,
    content_hash, published_at, updated_at, author, categories, enclosures, language, flags, duplicate_of,
    revision, created_at)
SELECT md5, feed_id, entry_id, url, title, body, html, content_quality, content_hash, published_at,
    updated_at, author, categories::text[], enclosures::jsonb, language, flags::text[], duplicate_of,
    revision, %(now)s
FROM unnest(%(md5)b::text[], %(feed_id)b::bigint[], %(entry_id)b::text[], %(url)b::text[],
    %(title)b::text[], %(body)b::text[], %(html)b::text[], %(content_quality)b::text[],
    %(content_hash)b::text[], %(published_at)b::timestamptz[], %(updated_at)b::timestamptz[],
    %(author)b::text[], %(categories)b::text[], %(enclosures)b::text[], %(language)b::text[],
    %(flags)b::text[], %(original)b::text[], %(revision)b::int[])
    AS article (md5, feed_id, entry_id, url, title, body, html, content_quality, content_hash,
        published_at, updated_at, author, categories, enclosures, language, flags, duplicate_of, revision)
"""
_OR_LEAVE = "ON CONFLICT (md5) DO NOTHING"
_OR_UPDATE = """
ON CONFLICT (md5) DO UPDATE
SET title = excluded.title, body = excluded.body, html = excluded.html, content_quality = excluded.content_quality,
    content_hash = excluded.content_hash, updated_at = excluded.updated_at,
    revision = greatest(pending.revision + 1, excluded.revision), retry_count = 0, expiries = 0
WHERE (pending.title, pending.content_hash) <> (excluded.title, excluded.content_hash)
"""


async def insert_pending(
    connection: Connection,
    articles: Sequence[Article],
    originals: Mapping[str, str],
    revisions: Mapping[str, int],
    now: datetime,
    *,
    update: bool = False,
) -> None:
    """Insert the articles, given by name.

    Args:
        connection: in the writer's transaction.
        articles: new ones, and changed ones that were drained.
        originals: of those that are duplicates.
        revisions: how often their texts have changed; 0 if it isn't in there.
        now: when they are offered.
        update: give those that are pending already their new text. Else they are left as they are. It is one statement,
            since a consumer may finish with an article, or somebody revive it, between a look and a write.
    """
    for some in chunks(articles):
        await connection.execute(
            _INSERT + (_OR_UPDATE if update else _OR_LEAVE),
            {
                "now": now,
                "md5": [a.name for a in some],
                "feed_id": [a.feed_id for a in some],
                "original": [originals.get(a.name) for a in some],
                "revision": [revisions.get(a.name, 0) for a in some],
                **_columns([a.entry for a in some]),
            },
        )


async def update_pending(connection: Connection, articles: Sequence[Article], revisions: Mapping[str, int]) -> None:
    """Give those of the articles that are still pending, by name, their new title and text.

    A lease goes on: two consumers with two texts of one article would race. The ack of the old text sees that the text
    is another, and leaves the row. What failed with the old text may work with the new one.
    """
    async with connection.cursor() as updates:
        await updates.executemany(
            """
            UPDATE pending_articles
            SET title = %s, body = %s, html = %s, content_quality = %s, content_hash = %s, updated_at = %s,
                revision = greatest(revision + 1, %s), retry_count = 0, expiries = 0
            WHERE md5 = %s AND (title, content_hash) <> (%s, %s)
            """,
            [
                (
                    e.title,
                    e.body,
                    e.html,
                    e.content_quality,
                    e.content_hash,
                    e.updated_at,
                    revisions[a.name],
                    a.name,
                    e.title,
                    e.content_hash,
                )
                for a in articles
                for e in (a.entry,)
            ],
        )


async def forget_dead(connection: Connection, names: Sequence[str]) -> None:
    """Delete articles from the dead that are pending with a new text."""
    if not names:
        return
    await connection.execute(
        """
        DELETE FROM dead_articles WHERE md5 IN (
            SELECT md5 FROM dead_articles WHERE md5 = ANY(%b::text[]) ORDER BY md5 FOR UPDATE
        )
        """,
        [names],
    )


def _columns(entries: Sequence[Entry]) -> dict[str, list[object]]:
    """Return the entries column by column. Lists travel as text, since unnest would flatten an array of arrays."""
    plain = ("entry_id", "url", "title", "body", "html", "content_quality", "content_hash")
    more = ("published_at", "updated_at", "author", "language")
    columns: dict[str, list[object]] = {name: [getattr(e, name) for e in entries] for name in (*plain, *more)}
    columns["categories"] = [_array(e.categories) for e in entries]
    columns["flags"] = [_array(e.flags) for e in entries]
    columns["enclosures"] = [json.dumps([item.model_dump() for item in e.enclosures]) for e in entries]
    return columns


def _array(texts: Sequence[str]) -> str:
    """Return the texts as PostgreSQL writes an array of them."""
    quoted = (text.replace("\\", "\\\\").replace('"', '\\"') for text in texts)
    return "{" + ",".join(f'"{text}"' for text in quoted) + "}"
