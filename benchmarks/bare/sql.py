"""Articles stored by SQL that does nothing else: COPY, and executemany with ON CONFLICT."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import LiteralString

import psycopg
from psycopg.types.json import Jsonb

from benchmarks.laps import Lap
from shared.wire.results import Entry, FeedFetched

PROCESS = "client"
BATCH = 500
"""Rows of one transaction, as in the writer."""

Article = tuple[object, ...]

_COLUMNS: LiteralString = (
    "md5, feed_id, entry_id, url, title, body, content_quality, content_hash, published_at, updated_at, author,"
    " categories, enclosures, language, flags, created_at"
)
_TYPES = [
    *("text", "int8", "text", "text", "text", "text", "text", "text", "timestamptz", "timestamptz", "text"),
    *("text[]", "jsonb", "text", "text[]", "timestamptz"),
]


class BareTables:
    """Two tables of the shape of `pending_articles`, indexes included: one that keeps what it gets, one that doesn't.

    Blocking; a context manager.
    """

    def __init__(self, database_url: str) -> None:
        self._connection = psycopg.connect(database_url, autocommit=True)
        for table in ("kept", "emptied"):
            self._connection.execute(f"CREATE TABLE {table} (LIKE pending_articles INCLUDING ALL)".encode())

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def copy(self, articles: Sequence[Article]) -> Lap:
        """COPY new articles into the table that keeps them."""
        return self._run(articles, lambda batch: self._copy("kept", batch))

    def copy_anew(self, articles: Sequence[Article]) -> Lap:
        """COPY articles, known or not, into an empty table: COPY knows no conflicts."""
        self._connection.execute("TRUNCATE emptied")
        return self._run(articles, lambda batch: self._copy("emptied", batch))

    def insert(self, articles: Sequence[Article]) -> Lap:
        """Insert articles into the table that keeps them by executemany … ON CONFLICT DO NOTHING."""
        return self._run(articles, self._insert)

    def _run(self, articles: Sequence[Article], write: Callable[[Sequence[Article]], None]) -> Lap:
        wall, cpu = time.monotonic(), time.process_time()
        for batch in _batches(articles):
            with self._connection.transaction():
                write(batch)
        return Lap(len(articles), time.monotonic() - wall, {PROCESS: time.process_time() - cpu})

    def _copy(self, table: LiteralString, batch: Sequence[Article]) -> None:
        query: LiteralString = f"COPY {table} ({_COLUMNS}) FROM STDIN (FORMAT BINARY)"
        with self._connection.cursor().copy(query) as copy:
            copy.set_types(_TYPES)
            for article in batch:
                copy.write_row(article)

    def _insert(self, batch: Sequence[Article]) -> None:
        values: LiteralString = "%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s"
        self._connection.cursor().executemany(
            f"INSERT INTO kept ({_COLUMNS}) VALUES ({values}) ON CONFLICT (md5) DO NOTHING", batch
        )


def as_articles(results: Sequence[FeedFetched], now: datetime) -> list[Article]:
    """Return the results' articles as rows, ready to be written."""
    return [_as_article(entry, fetched.feed_id, now) for fetched in results for entry in fetched.entries]


def _as_article(entry: Entry, feed_id: int, now: datetime) -> Article:
    return (
        *(entry.md5, feed_id, entry.entry_id, entry.url, entry.title, entry.body, entry.content_quality),
        *(entry.content_hash, entry.published_at, entry.updated_at, entry.author, list(entry.categories)),
        *(Jsonb([item.model_dump() for item in entry.enclosures]), entry.language, list(entry.flags), now),
    )


def _batches(articles: Sequence[Article]) -> Iterator[Sequence[Article]]:
    for start in range(0, len(articles), BATCH):
        yield articles[start : start + BATCH]
