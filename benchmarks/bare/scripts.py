"""Feed readers as people write them, to stand beside the pipeline: threads that fetch, parse, INSERT … ON CONFLICT.

They make conditional requests. Validators, articles and the last status are in PostgreSQL, a transaction per feed. They
know no politeness, no queue, no retries, no changed articles, and no text but the HTML that came.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import fastfeedparser
import feedparser
import httpx
import urllib3
from psycopg_pool import ConnectionPool

THREADS = 16

TABLES = """
CREATE TABLE script_feeds (
    url text PRIMARY KEY, etag text, last_modified text, polled_at timestamptz, status integer
);
CREATE TABLE script_articles (
    url text PRIMARY KEY, feed text NOT NULL, title text, body text, author text, published_at timestamptz
);
"""
INSERT = """
INSERT INTO script_articles (feed, url, title, body, author, published_at) VALUES (%s, %s, %s, %s, %s, %s)
ON CONFLICT (url) DO NOTHING
"""
UPDATE = "UPDATE script_feeds SET polled_at = now(), status = %s, etag = %s, last_modified = %s WHERE url = %s"


Answer = tuple[int, Any, bytes]
"""Status, headers by name in any case, and body."""

Row = tuple[str, str, str, str, str | None]
"""Link, title, body, author and publication time of an article."""


class Script(ABC):
    """A reader with a database of its own. Blocking; close it."""

    def __init__(self, database_url: str) -> None:
        self._database = ConnectionPool(database_url, min_size=THREADS, max_size=THREADS, open=True)
        self._threads = ThreadPoolExecutor(THREADS)
        with self._database.connection() as connection:
            connection.execute(TABLES)

    def close(self) -> None:
        """Close the connections and end the threads."""
        self._threads.shutdown()
        self._database.close()

    def register(self, urls: Sequence[str]) -> None:
        """Replace the feeds by these."""
        with self._database.connection() as connection:
            connection.execute("DELETE FROM script_feeds")
            connection.cursor().executemany("INSERT INTO script_feeds (url) VALUES (%s)", [(url,) for url in urls])

    def poll(self) -> None:
        """Poll all feeds once."""
        with self._database.connection() as connection:
            feeds = connection.execute("SELECT url, etag, last_modified FROM script_feeds").fetchall()
        list(self._threads.map(self._poll_feed, *zip(*feeds, strict=True)))

    def stored(self) -> list[str]:
        """Return the links of all articles."""
        with self._database.connection() as connection:
            return [url for (url,) in connection.execute("SELECT url FROM script_articles")]

    def _poll_feed(self, url: str, etag: str | None, last_modified: str | None) -> None:
        asked = {"If-None-Match": etag, "If-Modified-Since": last_modified}
        status, headers, body = self._fetch(url, {name: value for name, value in asked.items() if value})
        rows = self._read(body, headers["Content-Type"]) if status == 200 else []
        with self._database.connection() as connection:
            if rows:
                connection.cursor().executemany(INSERT, [(url, *row) for row in rows])
            connection.execute(UPDATE, [status, headers.get("ETag"), headers.get("Last-Modified"), url])

    @abstractmethod
    def _fetch(self, url: str, headers: dict[str, str]) -> Answer:
        """Send one request."""

    @abstractmethod
    def _read(self, body: bytes, content_type: str) -> list[Row]:
        """Return the entries of a feed."""


class UsualScript(Script):
    """httpx and feedparser, with what they do by default. feedparser reads no JSON Feed, so this reads it itself."""

    NAME = "httpx + feedparser"

    def __init__(self, database_url: str) -> None:
        super().__init__(database_url)
        self._client = httpx.Client(timeout=30.0, follow_redirects=True)

    def _fetch(self, url: str, headers: dict[str, str]) -> Answer:
        answer = self._client.get(url, headers=headers)
        return answer.status_code, answer.headers, answer.content

    def _read(self, body: bytes, content_type: str) -> list[Row]:
        if "json" in content_type:
            items = json.loads(body)["items"]
            return [(item["url"], item["title"], item["content_html"], "", item["date_published"]) for item in items]
        return [
            (
                entry.link,
                entry.title,
                entry.content[0].value if "content" in entry else entry.get("summary", ""),
                entry.get("author", ""),
                entry.get("published"),
            )
            for entry in feedparser.parse(body).entries
        ]


class FastScript(Script):
    """The same with what is fastest: urllib3 and fastfeedparser, whose core is compiled."""

    NAME = "urllib3 + fastfeedparser"

    def __init__(self, database_url: str) -> None:
        super().__init__(database_url)
        self._client = urllib3.PoolManager(timeout=30.0)

    def _fetch(self, url: str, headers: dict[str, str]) -> Answer:
        answer = self._client.request("GET", url, headers={**headers, "Accept-Encoding": "gzip"})
        return answer.status, answer.headers, answer.data

    def _read(self, body: bytes, content_type: str) -> list[Row]:
        return [
            (
                entry["link"],
                entry["title"],
                entry["content"][0]["value"] if entry.get("content") else entry.get("description", ""),
                entry.get("author", ""),
                entry.get("published"),
            )
            for entry in fastfeedparser.parse(body).entries
        ]
