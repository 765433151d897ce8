"""The writer's SQL for `pending_articles` and `dead_articles`.

Rows are inserted first, in the order of md5, then changed in that order, then deleted from the dead in that order.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from operator import attrgetter

from services.writer.article import Article, Column, arrays, chunks, insert_statement
from shared.database.postgres import Connection


def _array(texts: Iterable[str]) -> str:
    """Return texts in PostgreSQL's array syntax."""
    return "{" + ",".join('"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"' for text in texts) + "}"


def _flags(article: Article) -> str:
    enrichment = article.entry.enrichment
    return _array((*article.entry.flags, *(enrichment.flags if enrichment else ())))


def _enclosures(article: Article) -> str:
    enclosures = article.entry.enclosures
    return json.dumps([enclosure.model_dump() for enclosure in enclosures]) if enclosures else "[]"


def _entities(article: Article) -> str | None:
    enrichment = article.entry.enrichment
    if enrichment is None or enrichment.entities is None:
        return None
    return json.dumps([entity.model_dump() for entity in enrichment.entities])


def _found(name: str, type_: str = "text", field: str | None = None) -> Column:
    """Return a column of what the enricher found out."""
    read = attrgetter(field or name)
    return Column(name, type_, lambda a: a.entry.enrichment and read(a.entry.enrichment), follows_text=True)


def _entry(name: str, type_: str = "text", *, follows_text: bool = False) -> Column:
    return Column(name, type_, attrgetter(f"entry.{name}"), follows_text)


COLUMNS = (
    Column("md5", "text", attrgetter("name")),
    Column("feed_id", "bigint", attrgetter("feed_id")),
    _entry("entry_id"),
    _entry("url"),
    _entry("title", follows_text=True),
    _entry("body", follows_text=True),
    _entry("html", follows_text=True),
    _entry("content_quality", follows_text=True),
    _entry("content_hash", follows_text=True),
    _entry("published_at", "timestamptz"),
    _entry("updated_at", "timestamptz", follows_text=True),
    _entry("author"),
    Column("categories", "text[]", lambda article: _array(article.entry.categories)),
    Column("enclosures", "jsonb", _enclosures),
    _entry("language"),
    Column("flags", "text[]", _flags),
    _found("detected_language", field="language"),
    _found("language_confidence", "real"),
    _found("topic"),
    _found("topic_confidence", "real"),
    Column("entities", "jsonb", _entities, follows_text=True),
    Column("duplicate_of", "text", attrgetter("duplicate_of")),
    Column("duplicate_kind", "text", attrgetter("duplicate_kind")),
    Column("duplicate_score", "real", attrgetter("duplicate_score")),
    Column("revision", "integer", attrgetter("revision")),
)
"""The columns of `pending_articles` that the writer fills, beside `created_at`: every statement below follows them."""

_TEXT = tuple(column for column in COLUMNS if column.follows_text)
_WRITTEN_WITH = (*_TEXT, *(column for column in COLUMNS if column.name in {"md5", "revision"}))

_INSERT = insert_statement("pending_articles AS pending", COLUMNS, set_to_now=["created_at"])
_OR_LEAVE = " ON CONFLICT (md5) DO NOTHING"
_OR_UPDATE = f"""
ON CONFLICT (md5) DO UPDATE SET {", ".join(f"{column.name} = excluded.{column.name}" for column in _TEXT)},
    revision = greatest(pending.revision + 1, excluded.revision), retry_count = 0, expiries = 0
WHERE (pending.title, pending.content_hash) <> (excluded.title, excluded.content_hash)
"""
_UPDATE = f"""
UPDATE pending_articles SET {", ".join(f"{column.name} = %({column.name})s" for column in _TEXT)},
    revision = greatest(revision + 1, %(revision)s), retry_count = 0, expiries = 0
WHERE md5 = %(md5)s AND (title, content_hash) <> (%(title)s, %(content_hash)s)
"""  # noqa: S608 - names of ours


async def insert_pending(
    connection: Connection, articles: Sequence[Article], now: datetime, *, update: bool = False
) -> None:
    """Insert the articles, given by name.

    Args:
        connection: in the writer's transaction.
        articles: new ones, and changed ones that were drained.
        now: when they are offered.
        update: give articles that are already pending their new text; otherwise leave them as they are. One statement
            does both: between a SELECT and a write a consumer may finish an article, or somebody may revive it.
    """
    statement = _INSERT + (_OR_UPDATE if update else _OR_LEAVE)
    for some in chunks(articles):
        await connection.execute(statement.encode(), {"now": now, **arrays(COLUMNS, some)})


async def update_pending(connection: Connection, articles: Sequence[Article]) -> None:
    """Give the articles that are still pending their new title and text.

    A lease goes on, because two consumers with two texts of one article would race. The ack of the old text leaves the
    row, because its text is another one by then. The counts of failures start anew: the new text may work.
    """
    async with connection.cursor() as cursor:
        await cursor.executemany(
            _UPDATE.encode(), [{column.name: column.value(article) for column in _WRITTEN_WITH} for article in articles]
        )


async def forget_dead(connection: Connection, names: Sequence[str]) -> None:
    """Delete articles from `dead_articles` that are pending with a new text."""
    if names:
        await connection.execute(
            """
            DELETE FROM dead_articles WHERE md5 IN (
                SELECT md5 FROM dead_articles WHERE md5 = ANY(%b::text[]) ORDER BY md5 FOR UPDATE
            )
            """,
            [names],
        )
